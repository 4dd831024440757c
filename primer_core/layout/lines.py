"""From spans to lines: what stands side by side on one baseline, near enough to be read in one go."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from primer_core.layout.geometry import Box, Line, Span, union
from primer_core.layout.scripts import has_letter_from_the_right, runs_from_the_right

NEAR = 0.8
"""Widest gap within a line, in font sizes: justified text stays below, the gutter between columns and table cells is above."""

OVERLAP = 1.5
"""How far the next span of a line may begin before the last one's end, in font sizes: indices stand over one another."""

WORD_GAP = 0.12
"""Narrowest gap that is a space, in font sizes: a space is about 0.25, kerning and a change of font stay under 0.1."""

CODE_GAP = 60.0
"""Widest gap within a line of code, in font sizes: spaces are part of it."""

SAME_BASELINE = 0.5
"""Least share of the lower span's height that both cover: raised figures share more, the next line's box less."""

RAISED = 0.2
"""The same where one is much smaller than the other: indices stand above and below the line."""

MUCH_SMALLER = 0.8

SAME_SIZE = 0.08
"""A box that is up to this much taller or lower than what its font mostly gives is of the same size: boxes vary with the glyphs."""

_BAND = 24.0


def settle_sizes(spans: Sequence[Span], fonts: Sequence[str]) -> list[Span]:
    """The spans with their sizes settled: within one font, heights that are near its most common one become that one.

    `fonts` names each span's font. The height of a box says how tall its glyphs are, so one font gives several.
    """
    heights: defaultdict[str, Counter[float]] = defaultdict(Counter)
    for span, font in zip(spans, fonts, strict=True):
        heights[font][round(span.size, 1)] += len(span.text)
    common = {font: [height for height, _ in counted.most_common()] for font, counted in heights.items()}
    settled: dict[tuple[str, float], float] = {}
    for font, ordered in common.items():
        kept: list[float] = []
        for height in ordered:
            near = next((other for other in kept if abs(height - other) <= SAME_SIZE * other), None)
            if near is None:
                kept.append(height)
            settled[font, height] = height if near is None else near
    return [replace(span, size=settled[font, round(span.size, 1)]) for span, font in zip(spans, fonts, strict=True)]


def join_spans(spans: Iterable[Span]) -> list[Line]:
    """Lines of spans, in no particular order. Every span is in exactly one line."""
    bands: defaultdict[int, list[list[Span]]] = defaultdict(list)
    groups: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: (span.box.left, span.box.top, span.order)):
        touched = range(int(span.box.top // _BAND), int(span.box.bottom // _BAND) + 1)
        best: list[Span] | None = None
        best_gap = 0.0
        for band in touched:
            for group in bands[band]:
                gap = _gap(group, span)
                if gap is not None and (best is None or gap < best_gap):
                    best, best_gap = group, gap
        if best is None:
            best = []
            groups.append(best)
        best.append(span)
        for band in touched:
            if not any(group is best for group in bands[band]):
                bands[band].append(best)
    return [make_line(group) for group in groups]


def _gap(group: Sequence[Span], span: Span) -> float | None:
    """How far the span stands right of the group, None where it is not of its line."""
    last = max(group[-3:], key=lambda member: member.box.right)
    lower = min(last.box.height, span.box.height)
    raised = min(last.size, span.size) < MUCH_SMALLER * max(last.size, span.size)
    if last.box.shared_height(span.box) < (RAISED if raised else SAME_BASELINE) * lower:
        return None
    gap = span.box.left - last.box.right
    size = max(last.size, span.size)
    widest = CODE_GAP if last.mono and span.mono else NEAR
    return abs(gap) if -OVERLAP * size <= gap <= widest * size else None


def make_line(spans: Sequence[Span]) -> Line:
    """One line of spans that stand side by side, in whatever order they come."""
    ordered = reading_order(spans)
    text = ordered[0].text.strip()
    for before, span in itertools.pairwise(ordered):
        left, right = sorted((before, span), key=lambda member: member.box.left)
        apart = right.box.left - left.box.right > WORD_GAP * min(before.size, span.size)
        spaced = before.text[-1:].isspace() or span.text[:1].isspace()
        text += (" " if apart or spaced else "") + span.text.strip()
    letters: Counter[float] = Counter()
    for span in ordered:
        letters[span.size] += len(span.text.strip())
    written = [span for span in ordered if any(char.isalnum() for char in span.text)] or ordered
    size = letters.most_common(1)[0][0]
    whole = union(span.box for span in ordered)
    core = union(span.box for span in ordered if span.size == size)
    return Line(
        spans=tuple(ordered),
        text=text.strip(),
        box=Box(whole.left, core.top, whole.right, core.bottom),
        size=size,
        bold=all(span.bold for span in written),
        italic=all(span.italic for span in written),
        mono=all(span.mono for span in written),
    )


def reading_order(spans: Sequence[Span]) -> list[Span]:
    """Spans of one line as they are read: from the right where the line runs from the right, but numbers and foreign words in it
    from the left."""
    from_left = sorted(spans, key=lambda span: (span.box.left, span.order))
    if not runs_from_the_right("".join(span.text for span in spans)):
        return from_left
    ordered: list[Span] = []
    run: list[Span] = []
    for span in reversed(from_left):
        if has_letter_from_the_right(span.text):
            ordered += reversed(run)
            run = []
            ordered.append(span)
        else:
            run.append(span)
    return ordered + run[::-1]
