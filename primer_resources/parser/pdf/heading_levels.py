"""Levels of headings: from numbers and type first, then the file's own bookmarks by Docling's rules, which win where they match."""

from collections.abc import Sequence

from docling.datamodel.base_models import Page, TextElement
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import HeadingHierarchyOptions
from docling.models.stages.heading_hierarchy.heading_hierarchy_model import HeadingHierarchyModel
from docling_core.types.doc import DoclingDocument, SectionHeaderItem

from primer_core.layout.headings import HeadingStyle, heading_levels
from primer_resources.parser.pdf.clusters import TextCluster

_Place = tuple[int, int, int]


class RuleHeadingHierarchyModel(HeadingHierarchyModel):
    """Docling's heading-hierarchy stage, with levels from the layout's own styles underneath."""

    def __init__(self, options: HeadingHierarchyOptions) -> None:
        """`options` should leave numbers and styles to the rules here: Docling's need every page's cells at the end."""
        super().__init__(options=options)

    def __call__(self, conv_res: ConversionResult) -> DoclingDocument:
        """The document with levels."""
        styles = _styles(conv_res.pages)
        headings = [item for item in conv_res.document.texts if isinstance(item, SectionHeaderItem)]
        for item, level in zip(headings, heading_levels([_style(item, conv_res, styles) for item in headings]), strict=True):
            item.level = level
        return super().__call__(conv_res)


def _styles(pages: Sequence[Page]) -> dict[_Place, TextCluster]:
    found: dict[_Place, TextCluster] = {}
    for page in pages:
        for element in page.assembled.elements if page.assembled else ():
            if isinstance(element, TextElement) and isinstance(element.cluster, TextCluster):
                found[page.page_no, round(element.cluster.bbox.l), round(element.cluster.bbox.t)] = element.cluster
    return found


def _style(item: SectionHeaderItem, conv_res: ConversionResult, styles: dict[_Place, TextCluster]) -> HeadingStyle:
    prov = item.prov[0]
    box = prov.bbox.to_top_left_origin(conv_res.document.pages[prov.page_no].size.height)
    cluster = styles.get((prov.page_no, round(box.l), round(box.t)))
    if cluster is None:
        return HeadingStyle(item.text, float(abs(box.height)), False)
    return HeadingStyle(item.text, cluster.size, cluster.bold, cluster.italic)
