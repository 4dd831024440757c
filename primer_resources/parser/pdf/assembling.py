"""Text of blocks: Docling's joining of lines, and no space between lines of scripts that are written without spaces."""

from docling.models.stages.page_assemble.page_assemble_model import PageAssembleModel, PageAssembleOptions

from primer_core.layout.marks import without_leaders
from primer_core.layout.scripts import is_unspaced


class RuleAssembleModel(PageAssembleModel):
    """Docling's page assembly."""

    def __init__(self) -> None:
        """Docling's assembly has no options."""
        super().__init__(options=PageAssembleOptions())

    def sanitize_text(self, lines: list[str]) -> str:
        """The lines as one text: hyphens closed and ligatures undone as Docling does; leaders of dots cut short."""
        joined: list[str] = []
        for line in lines:
            if joined and joined[-1] and line and is_unspaced(joined[-1][-1]) and is_unspaced(line[0]):
                joined[-1] += line
            else:
                joined.append(line)
        return without_leaders(super().sanitize_text(joined))
