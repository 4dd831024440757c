"""What each text block of a whole document is, told when all pages are there: running lines, headings, list items, captions."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from docling.datamodel.base_models import AssembledUnit, Page, TextElement
from docling.models.stages.page_assemble.page_assemble_model import PageAssembleModel
from docling_core.types.doc import DocItemLabel
from docling_core.types.doc.page import TextCell

from primer_core.layout.furniture import PageLine, running_lines, running_shape
from primer_core.layout.geometry import Box, union
from primer_core.layout.kinds import BlockFacts, BlockKind, judge_kinds
from primer_resources.parser.pdf.cells import box_of, docling_box
from primer_resources.parser.pdf.clusters import TextCluster

NEAR_GRAPHIC = 3.0
"""Farthest that a caption stands from its table or picture, in font sizes."""

_LABELS = {
    BlockKind.TEXT: DocItemLabel.TEXT,
    BlockKind.HEADING: DocItemLabel.SECTION_HEADER,
    BlockKind.LIST_ITEM: DocItemLabel.LIST_ITEM,
    BlockKind.CAPTION: DocItemLabel.CAPTION,
    BlockKind.CODE: DocItemLabel.CODE,
    BlockKind.FOOTNOTE: DocItemLabel.FOOTNOTE,
}
_GRAPHICS = (DocItemLabel.TABLE, DocItemLabel.PICTURE)


def label_pages(pages: Sequence[Page], assembler: PageAssembleModel) -> None:
    """Give the text elements of assembled pages their labels. Running lines leave the body; one of each kind stays as furniture."""
    take_out_running_lines(pages, assembler)
    elements = [(page, element) for page in pages for element in _texts(page) if element.label is DocItemLabel.TEXT]
    facts = [_facts(page, element) for page, element in elements]
    for (_, element), kind in zip(elements, judge_kinds(facts), strict=True):
        element.label = element.cluster.label = _LABELS[kind]
        if kind is BlockKind.CODE:
            element.text = _code(element.cluster.cells)


def _texts(page: Page) -> list[TextElement]:
    if page.assembled is None:
        return []
    return [element for element in page.assembled.elements if isinstance(element, TextElement) and isinstance(element.cluster, TextCluster)]


def _facts(page: Page, element: TextElement) -> BlockFacts:
    cluster = element.cluster
    assert isinstance(cluster, TextCluster)
    assert page.assembled is not None
    box = box_of(cluster.bbox)
    near = NEAR_GRAPHIC * cluster.size
    reach = Box(box.left, box.top - near, box.right, box.bottom + near)
    graphics = (box_of(other.cluster.bbox) for other in page.assembled.elements if other.label in _GRAPHICS)
    beside = any(reach.shared_width(graphic) and reach.shared_height(graphic) for graphic in graphics)
    lines = len(cluster.cells)
    return BlockFacts(
        page.page_no, element.text, box, cluster.size, cluster.bold, cluster.italic, lines, cluster.mono, beside, cluster.in_figure
    )


def _code(cells: Sequence[TextCell]) -> str:
    """Lines of code, one a row, indented as they stand."""
    boxes = [box_of(cell.rect.to_bounding_box()) for cell in cells]
    left = min(box.left for box in boxes)
    width = median(box.width / max(1, len(cell.text)) for box, cell in zip(boxes, cells, strict=True)) or 1.0
    return "\n".join(" " * round((box.left - left) / width) + cell.text for box, cell in zip(boxes, cells, strict=True))


def take_out_running_lines(pages: Sequence[Page], assembler: PageAssembleModel) -> None:
    """Move running headers, footers and page numbers out of the body. A document that is nothing else stays as it is."""
    lines: list[PageLine] = []
    places: list[tuple[TextElement, int]] = []
    for page in pages:
        for element in _texts(page):
            for number, cell in enumerate(element.cluster.cells):
                lines.append(PageLine(page.page_no, cell.text, box_of(cell.rect.to_bounding_box())))
                places.append((element, number))
    heights = {page.page_no: page.size.height for page in pages if page.size is not None}
    running = running_lines(lines, heights)
    tables = any(element.label in _GRAPHICS for page in pages if page.assembled for element in page.assembled.elements)
    if not running or (len(running) == len(lines) and not tables):
        return
    by_element: defaultdict[int, set[int]] = defaultdict(set)
    for position in running:
        element, number = places[position]
        by_element[id(element)].add(number)
    kept: set[str] = set()
    for page in pages:
        if page.assembled is not None:
            _move(page, by_element, kept, assembler)


def _move(page: Page, running: dict[int, set[int]], kept: set[str], assembler: PageAssembleModel) -> None:
    assert page.assembled is not None
    assert page.size is not None
    body, headers = [], list(page.assembled.headers)
    next_id = 1 + max((element.id for element in page.assembled.elements), default=0)
    for element in page.assembled.elements:
        taken = running.get(id(element), set())
        if not taken or not isinstance(element, TextElement):
            body.append(element)
            continue
        cells = element.cluster.cells
        moved = [cell for number, cell in enumerate(cells) if number in taken]
        left = [cell for number, cell in enumerate(cells) if number not in taken]
        if left:
            element.cluster.cells = left
            element.cluster.bbox = docling_box(union(box_of(cell.rect.to_bounding_box()) for cell in left))
            element.text = assembler.sanitize_text([cell.text.strip() for cell in left])
            body.append(element)
        for cell in moved:
            box = box_of(cell.rect.to_bounding_box())
            shape = running_shape(cell.text)
            if shape in kept:
                continue
            kept.add(shape)
            label = DocItemLabel.PAGE_HEADER if box.middle < page.size.height / 2 else DocItemLabel.PAGE_FOOTER
            cluster = TextCluster(id=next_id, label=label, bbox=docling_box(box), cells=[cell])
            headers.append(TextElement(label=label, id=next_id, text=cell.text.strip(), page_no=page.page_no, cluster=cluster))
            next_id += 1
    page.assembled = AssembledUnit(elements=[*headers, *body], headers=headers, body=body)
