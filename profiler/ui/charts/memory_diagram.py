"""The memory hierarchy of a launch as an SVG: levels from left to right, lines as wide as their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profiler.ui.markup import Html, escaped

_WIDTH, _HEIGHT = 880, 262
_WIDEST_PX, _LEAST_PX = 18.0, 1.5
_HEAD_PX = 8  # of an arrow, beyond half the line's width
_LINE_PX = 15  # between lines of text
_BOX_LETTERS = 16  # that fit into the narrowest box


@dataclass(frozen=True)
class Flow:
    """One line: where it lies, what stands above and below it, and how wide it is."""

    name: str
    above: str
    below: str
    share: float | None  # of the widest line, 0 to 1; None: no width is known
    missing: str = ""  # the word of its state; "" where it has a number
    is_zero: bool = False
    title: str = ""  # under the pointer


@dataclass(frozen=True)
class Box:
    """One level: its name, lines of text, and a meter with the baseline's tick."""

    name: str
    lines: Sequence[tuple[str, bool]]  # text, and whether it is a state that stands for a number
    meter: float | None = None  # 0 to 1
    tick: float | None = None  # the baseline's
    title: str = ""


@dataclass(frozen=True)
class _Place:
    x: float
    y: float
    width: float
    height: float


_BOXES = {
    "kernel": _Place(1, 12, 96, 246),
    "L1/TEX": _Place(268, 12, 118, 162),
    "shared": _Place(268, 184, 118, 74),
    "L2": _Place(526, 12, 108, 162),
    "DRAM": _Place(771, 12, 108, 162),
}
# From x to x at y: the direction of the line is that of the bytes.
_FLOWS = {
    "loads": (268, 97, 62),
    "stores": (97, 268, 132),
    "L2 to L1": (526, 386, 62),
    "L1 to L2": (386, 526, 132),
    "DRAM read": (771, 634, 62),
    "DRAM write": (634, 771, 132),
    "shared loads": (268, 97, 206),
    "shared stores": (97, 268, 240),
}


def svg(boxes: Sequence[Box], flows: Sequence[Flow], alt: str) -> Html:
    """The diagram; colours come from the style sheet, so it follows the theme."""
    parts = [_flow(flow) for flow in flows] + [_box(box) for box in boxes]
    return Html(
        # The attributes hold until the style sheet is there: without them it is all black for a moment.
        f'<svg class="mem" viewBox="0 0 {_WIDTH} {_HEIGHT}" fill="none" text-anchor="middle" role="img" '
        f'aria-label="{escaped(alt)}">'
        f'<defs><pattern id="mem-hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path class="hatchline" d="M-1 1l2 -2M0 6l6 -6M5 7l2 -2"></path></pattern></defs>'
        f"{''.join(parts)}</svg>"
    )


def _box(box: Box) -> str:
    place = _BOXES[box.name]
    middle = place.x + place.width / 2
    pieces = [
        f'<rect class="box" x="{place.x}" y="{place.y}" width="{place.width}" height="{place.height}" rx="3">'
        "</rect>",
        _text(middle, place.y + 18, box.name, "name"),
    ]
    y = place.y + 36
    for words, is_state in box.lines:
        # "throughput not collected" is wider than a box.
        for line in words.split(" ", 1) if is_state and len(words) > _BOX_LETTERS else (words,):
            pieces.append(_text(middle, y, line, "state" if is_state else "small"))
            y += _LINE_PX
    if box.meter is not None:
        pieces += _meter(place, place.y + place.height - 20, box.meter, box.tick)
    return _group("".join(pieces), box.title)


def _meter(place: _Place, y: float, share: float, tick: float | None) -> Iterator[str]:
    left, width = place.x + 12, place.width - 24
    full = width * min(max(share, 0), 1)
    yield f'<rect class="rail" x="{left}" y="{y}" width="{width}" height="5"></rect>'
    yield f'<rect class="fill" x="{left}" y="{y}" width="{full:.1f}" height="5"></rect>'
    if tick is not None:
        at = left + width * min(max(tick, 0), 1)
        yield f'<rect class="tick" x="{at - 0.75:.1f}" y="{y - 3}" width="1.5" height="11"></rect>'


def _flow(flow: Flow) -> str:
    start, end, y = _FLOWS[flow.name]
    left, right = min(start, end), max(start, end)
    middle = (left + right) / 2
    pieces = [_text(middle, y - 6 - _half_px(flow), flow.above, "state" if flow.missing else "bytes")]
    if flow.below:
        pieces.append(_text(middle, y + 15 + _half_px(flow), flow.below, "small"))
    if flow.missing:
        pieces.append(
            f'<rect class="missing" x="{left + 1}" y="{y - 3}" width="{right - left - 2}" height="6"></rect>'
        )
    elif flow.is_zero:
        pieces.append(f'<line class="zero" x1="{left + 1}" x2="{right - 1}" y1="{y}" y2="{y}"></line>')
    else:
        pieces.append(_arrow(start, end, y, 2 * _half_px(flow), flow.share is None))
    return _group("".join(pieces), flow.title)


def _half_px(flow: Flow) -> float:
    if flow.missing:
        return 3.0
    if flow.is_zero or flow.share is None:
        return _LEAST_PX / 2
    return max(_WIDEST_PX * flow.share, _LEAST_PX) / 2


def _arrow(start: float, end: float, y: float, width: float, is_without_width: bool) -> str:
    """A line with its head; one without a known width is thin and hollow at its head."""
    sign = 1 if end > start else -1
    half, head = width / 2, width / 2 + _HEAD_PX / 2
    neck = end - sign * (_HEAD_PX + half / 2)
    tip = end - sign
    css = "flow bare" if is_without_width else "flow"
    points = (
        f"{start + sign},{y - half:.2f} {neck:.2f},{y - half:.2f} {neck:.2f},{y - head:.2f} {tip},{y} "
        f"{neck:.2f},{y + head:.2f} {neck:.2f},{y + half:.2f} {start + sign},{y + half:.2f}"
    )
    return f'<polygon class="{css}" points="{points}"></polygon>'


def _text(x: float, y: float, words: str, css: str) -> str:
    return f'<text class="{css}" fill="currentColor" x="{x:.1f}" y="{y:.1f}">{escaped(words)}</text>'


def _group(pieces: str, title: str) -> str:
    return f"<g><title>{escaped(title)}</title>{pieces}</g>" if title else f"<g>{pieces}</g>"
