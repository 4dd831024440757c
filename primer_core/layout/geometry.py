"""Boxes, and pieces of text that stand in boxes."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; left ≤ right and top ≤ bottom."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Width in points."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Height in points."""
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Area in square points."""
        return self.width * self.height

    @property
    def middle(self) -> float:
        """The y of its centre."""
        return (self.top + self.bottom) / 2

    @property
    def centre(self) -> float:
        """The x of its centre."""
        return (self.left + self.right) / 2

    def shared_width(self, other: "Box") -> float:
        """How much of the x axis both cover; 0 where they are apart."""
        return max(0.0, min(self.right, other.right) - max(self.left, other.left))

    def shared_height(self, other: "Box") -> float:
        """How much of the y axis both cover; 0 where they are apart."""
        return max(0.0, min(self.bottom, other.bottom) - max(self.top, other.top))

    def share_inside(self, other: "Box") -> float:
        """The share of this box's area that lies in the other, 0 to 1; for a box without area, whether its centre does."""
        if self.area <= 0:
            return float(other.left <= self.centre <= other.right and other.top <= self.middle <= other.bottom)
        return self.shared_width(other) * self.shared_height(other) / self.area

    def grown(self, by: float) -> "Box":
        """The box with each side moved outwards."""
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around all. Raises ValueError for none."""
    found = list(boxes)
    if not found:
        raise ValueError("no boxes to unite")
    return Box(
        min(box.left for box in found),
        min(box.top for box in found),
        max(box.right for box in found),
        max(box.bottom for box in found),
    )


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text in one font. `size` is its height in points, `order` its place in the file's own order; `mono` is a typewriter font."""

    text: str
    box: Box
    size: float
    bold: bool = False
    italic: bool = False
    order: int = 0
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Spans that are read as one line. `text` has spaces where gaps are; `bold`, `italic` and `mono` where all of its letters are. The
    box is as high as the spans of its own size are: a raised figure does not make the line higher."""

    spans: tuple[Span, ...]
    text: str
    box: Box
    size: float
    bold: bool
    italic: bool
    mono: bool = False

    @property
    def order(self) -> int:
        """The first place in the file's own order."""
        return min(span.order for span in self.spans)
