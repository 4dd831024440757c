"""Reading order: Docling's rules, in a mirror for pages whose text runs from the right, and stricter where paragraphs are joined."""

from collections import defaultdict
from collections.abc import Sequence
from math import isnan

from docling.datamodel.document import ConversionResult
from docling.models.postprocessing.reading_order_rb import PageElement, ReadingOrderPredictor, SeparatorElement
from docling.models.stages.reading_order.readingorder_model import ReadingOrderModel, ReadingOrderOptions
from docling_core.types.doc import DocItemLabel, DoclingDocument

from primer_core.layout.columns import column_order
from primer_core.layout.geometry import Box
from primer_core.layout.scripts import runs_from_the_right

_RUNNING = (DocItemLabel.PAGE_HEADER, DocItemLabel.PAGE_FOOTER)

LONG_ENOUGH = 100
"""Characters; a shorter text without a full stop is a label or a title, not the first half of a paragraph."""


class MirroringPredictor(ReadingOrderPredictor):
    """Docling's predictor, which reads columns from the left; pages that are mostly written from the right are shown to it mirrored."""

    def __init__(self) -> None:
        """`settled_pages` are those whose elements come in reading order already."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.settled_pages: frozenset[int] = frozenset()

    def predict_reading_order(
        self, page_elements: list[PageElement], page_separators: list[SeparatorElement] | None = None
    ) -> list[PageElement]:
        """The elements page by page in reading order. Those of mirrored pages come back as they were."""
        by_page: defaultdict[int, list[PageElement]] = defaultdict(list)
        for element in page_elements:
            by_page[element.page_no].append(element)
        mirrored = {page for page, elements in by_page.items() if runs_from_the_right("".join(element.text for element in elements))}
        given = {element.cid: element for element in page_elements}
        stretched = [element for elements in by_page.values() for element in _stretch(elements)]
        shown = [_mirror(element) if element.page_no in mirrored else element for element in stretched]
        predicted = [given[element.cid] for element in super().predict_reading_order(shown, page_separators)]
        ordered: defaultdict[int, list[PageElement]] = defaultdict(list)
        for element in predicted:
            ordered[element.page_no].append(element)
        for page, elements in ordered.items():
            ordered[page] = _by_columns(elements, page in mirrored)
        return [element for page in sorted(ordered) for element in (by_page if page in self.settled_pages else ordered)[page]]

    def predict_to_footnotes(self, sorted_elements: list[PageElement]) -> dict[int, list[int]]:
        """None: a footnote stands for itself. Docling hangs each below the table before it, where no serializer prints it."""
        return {}

    def predict_merges(self, sorted_elements: list[PageElement]) -> dict[int, list[int]]:
        """Docling's merges of paragraphs over columns and pages, up to the first piece that does not plainly go on: Docling joins
        whatever begins with a letter to whatever ends with a small one, however many pages lie between."""
        by_cid = {element.cid: element for element in sorted_elements}
        merges: dict[int, list[int]] = {}
        for first, pieces in super().predict_merges(sorted_elements).items():
            chain = [first]
            for piece in pieces:
                if not _goes_on(by_cid[chain[-1]], by_cid[piece]):
                    break
                chain.append(piece)
            if len(chain) > 1:
                merges[first] = chain[1:]
        return merges


def _by_columns(elements: list[PageElement], is_mirrored: bool) -> list[PageElement]:
    """One page's elements, column by column where it is plainly set in columns of paragraphs: Docling reads paragraphs that stand in
    rows over two columns row by row. Running lines stay where they are, all else as it was on other pages."""
    body = [place for place, element in enumerate(elements) if element.label not in _RUNNING]
    shown = [_mirror(elements[place]) if is_mirrored else elements[place] for place in body]
    height = elements[0].page_size.height
    order = column_order([Box(each.l, height - each.t, each.r, height - each.b) for each in shown], [len(each.text) for each in shown])
    if order is None:
        return elements
    arranged = list(elements)
    for place, position in zip(body, order, strict=True):
        arranged[place] = elements[body[position]]
    return arranged


def _goes_on(before: PageElement, after: PageElement) -> bool:
    if after.page_no - before.page_no > 1:
        return False
    begun = after.text.lstrip()[:1]
    if begun.islower() or before.text.rstrip().endswith(("-", ",", "\u00ad")):
        return len(before.text) >= LONG_ENOUGH or len(after.text) >= LONG_ENOUGH
    return len(before.text) >= LONG_ENOUGH and len(after.text) >= LONG_ENOUGH


def _stretch(elements: Sequence[PageElement]) -> list[PageElement]:
    """One page's elements, those that stand alone across the gutter between two columns as wide as the page's text.

    A centred title narrower than the left column's indent would otherwise be no neighbour of it, and be read after it.
    """
    body = [element for element in elements if element.label not in _RUNNING]
    gutters = [(left.r, right.l) for left in body for right in body if left.r < right.l and min(left.t, right.t) - max(left.b, right.b) > 0]
    if not gutters:
        return list(elements)
    between = max(left for left, _ in gutters), min(right for _, right in gutters)
    least, most = min(element.l for element in elements), max(element.r for element in elements)
    shown = []
    for element in elements:
        across = any(element.l <= left and right <= element.r for left, right in gutters)
        across = across or between[0] <= (element.l + element.r) / 2 <= between[1]
        shown.append(element.model_copy(update={"l": least, "r": most}) if across and _alone(element, elements) else element)
    return shown


def _alone(element: PageElement, elements: Sequence[PageElement]) -> bool:
    """Whether nothing stands beside an element."""
    return not any(min(element.t, other.t) - max(element.b, other.b) > 0 for other in elements if other.cid != element.cid)


def _mirror(element: PageElement) -> PageElement:
    width = element.page_size.width
    return element.model_copy(update={"l": width - element.r, "r": width - element.l})


class RuleReadingOrderModel(ReadingOrderModel):
    """Docling's reading-order stage with the mirroring predictor, for pages that OCR did not read: the OCR engine has seen how a page's
    columns and pictures lie, its order is better than one made of boxes."""

    def __init__(self) -> None:
        """Rules drawn on a page part columns too, but the layout has used them already."""
        super().__init__(options=ReadingOrderOptions())
        self.ro_model: MirroringPredictor = MirroringPredictor()

    def __call__(self, conv_res: ConversionResult, *, time_budget_s: float | None = None) -> DoclingDocument:
        """The document in reading order."""
        scores = {page: confidence.ocr_score for page, confidence in conv_res.confidence.pages.items()}
        self.ro_model.settled_pages = frozenset(page for page, score in scores.items() if not isnan(score))
        return super().__call__(conv_res, time_budget_s=time_budget_s)
