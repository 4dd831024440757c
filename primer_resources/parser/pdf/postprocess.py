"""The layout of a page after OCR: its text cells, read or recognised, become clusters of lines, tables and pictures."""

from collections.abc import Sequence

from docling.datamodel.base_models import Cluster, LayoutPrediction, Page
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import LayoutPostprocessorOptions
from docling.models.stages.layout.layout_postprocessing_model import LayoutPostprocessingModel
from docling_core.types.doc import DocItemLabel
from docling_core.types.doc.page import TextCell

from primer_core.layout.blocks import Block, build_blocks
from primer_core.layout.figures import drawings, holds_labels, lines_inside
from primer_core.layout.geometry import Box, Line, union
from primer_core.layout.grids import Grid, row_groups
from primer_core.layout.lines import join_spans
from primer_core.layout.marks import is_bare_bullet
from primer_resources.parser.pdf.cells import box_of, cell_of, docling_box, is_turned, spans_of
from primer_resources.parser.pdf.clusters import GridCluster, TextCluster
from primer_resources.parser.pdf.tables.finder import Strokes, find_tables

THICKEST = 3.0
"""Points; a thicker box is no rule."""

BACKGROUND = 0.5
"""A picture over this share of the page is what the text is printed on."""

SMALLEST_PICTURE = 0.002
"""Share of the page below which a picture is a bullet or an icon."""

INSIDE = 0.5


class RulePostprocessingModel(LayoutPostprocessingModel):
    """Docling's layout post-processing stage, with blocks of lines in place of a model's boxes."""

    def __init__(self) -> None:
        """Docling's own post-processing, which mends the boxes of a model, is off."""
        super().__init__(options=LayoutPostprocessorOptions(run_postprocessor=False))

    def postprocess_layout(self, conv_res: ConversionResult, pages: Sequence[Page]) -> Sequence[LayoutPrediction]:
        """The clusters of each page, in the order of the file."""
        predictions = []
        for page in pages:
            if page._backend is None or page.size is None or not page._backend.is_valid():
                predictions.append(page.predictions.layout or LayoutPrediction())
                continue
            clusters = lay_out(page)
            self._update_layout_score(conv_res, page, clusters)
            predictions.append(LayoutPrediction(clusters=clusters))
        return predictions


def lay_out(page: Page) -> list[Cluster]:
    """Clusters of all text cells of a page, and of its tables and pictures. Labels of text are TEXT: kinds are told at the end."""
    assert page.size is not None
    whole = Box(0.0, 0.0, page.size.width, page.size.height)
    cells = page.cells
    word_cells = page.parsed_page.word_cells if page.parsed_page is not None else []
    words = spans_of(word_cells)
    grids = find_tables(words, _strokes(page), whole)
    inside = [grid.box.grown(1.0) for grid in grids]
    spans = [span for span in spans_of(cells, word_cells) if not any(span.box.share_inside(box) > INSIDE for box in inside)]
    lines = join_spans(spans)
    pictures = [box for box in _pictures(page, whole) if not (held := lines_inside(lines, box)) or holds_labels(box, held)]
    figures = [*pictures, *drawings(_shapes(page), lines, [*inside, *pictures], whole)]
    labelled = [(figure, lines_inside(lines, figure)) for figure in figures]
    labels = {id(line) for _, held in labelled for line in held}
    blocks = build_blocks([line for line in lines if id(line) not in labels], [*inside, *pictures])
    clusters: list[Cluster] = []
    found: list[tuple[int, Cluster]] = [(block.order, _text(block, cells)) for block in blocks if not is_bare_bullet(block.text)]
    found += [(_first(cells, grid.box), _table(grid)) for grid in grids]
    found += [(held[0].order, _labels(held, cells)) for _, held in labelled if held]
    found += [(len(cells), Cluster(id=0, label=DocItemLabel.PICTURE, bbox=docling_box(box))) for box in figures]
    found += [(order, cluster) for order, cluster in _turned(cells)]
    for number, (_, cluster) in enumerate(sorted(found, key=lambda pair: pair[0])):
        cluster.id = number
        clusters.append(cluster)
    return clusters


def _strokes(page: Page) -> Strokes:
    assert page._backend is not None
    boxes = [box_of(box) for box in page._backend.get_shape_lines() or ()]
    boxes += [box_of(box) for box in page._backend.get_thin_shape_boxes(max_thickness=THICKEST) or ()]
    return Strokes(
        tuple(box for box in boxes if box.height <= THICKEST < box.width),
        tuple(box for box in boxes if box.width <= THICKEST < box.height),
    )


def _pictures(page: Page, whole: Box) -> list[Box]:
    """Pictures that stand on the page, those that lie in one another once."""
    assert page._backend is not None
    kept: list[Box] = []
    boxes = (_cut(box_of(box), whole) for box in page._backend.get_bitmap_rects())
    for box in sorted(boxes, key=lambda box: -box.area):
        if SMALLEST_PICTURE * whole.area < box.area < BACKGROUND * whole.area and not any(
            box.share_inside(other) > INSIDE for other in kept
        ):
            kept.append(box)
    return kept


def _cut(box: Box, whole: Box) -> Box:
    left, top = min(max(box.left, whole.left), whole.right), min(max(box.top, whole.top), whole.bottom)
    return Box(left, top, max(left, min(box.right, whole.right)), max(top, min(box.bottom, whole.bottom)))


def _text(block: Block, cells: Sequence[TextCell]) -> TextCluster:
    return TextCluster(
        id=0,
        label=DocItemLabel.TEXT,
        bbox=docling_box(block.box),
        cells=[cell_of(line, cells) for line in block.lines],
        size=block.size,
        bold=block.bold,
        italic=block.italic,
        mono=block.mono,
    )


def _table(grid: Grid) -> GridCluster:
    return GridCluster(id=0, label=DocItemLabel.TABLE, bbox=docling_box(grid.box), grid=grid)


def _labels(lines: Sequence[Line], cells: Sequence[TextCell]) -> TextCluster:
    """The words in a figure as one block, row by row."""
    ordered = [line for row in row_groups(lines) for line in row]
    cluster = _text(Block(tuple(ordered)), cells)
    cluster.in_figure = True
    return cluster


def _shapes(page: Page) -> list[Box]:
    assert page._backend is not None
    return [box_of(box) for box in page._backend.get_connected_shape_bounding_boxes(tolerance=THICKEST) or ()]


def _first(cells: Sequence[TextCell], box: Box) -> int:
    """Place in the file's order of the first cell in a box."""
    places = (place for place, cell in enumerate(cells) if box_of(cell.rect.to_bounding_box()).share_inside(box) > INSIDE)
    return next(places, len(cells))


def _turned(cells: Sequence[TextCell]) -> list[tuple[int, TextCluster]]:
    """Text that does not run along the horizontal: runs of such cells, in the order of the file, each as one block."""
    found: list[tuple[int, TextCluster]] = []
    run: list[TextCell] = []
    for place, cell in enumerate([*cells, None]):
        if cell is not None and cell.text.strip() and is_turned(cell):
            run.append(cell)
        elif run:
            box = union(box_of(member.rect.to_bounding_box()) for member in run)
            cluster = TextCluster(id=0, label=DocItemLabel.TEXT, bbox=docling_box(box), cells=run, size=0.0)
            found.append((place - len(run), cluster))
            run = []
    return found
