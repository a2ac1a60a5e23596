"""Lines over time as SVG in a page without scripts, whose CSS has the colours; and as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from profiler.evidence import formatting
from profiler.evidence.values import Value

_WIDTH, _HEIGHT = 560, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 120, 8, 22
_LABEL_PX = 13
_LETTERS = 26  # of a name beside a line


@dataclass(frozen=True)
class TimeLine:
    """One line: its name and points; `strong` is drawn in ink, the others in grey."""

    name: str
    points: tuple[tuple[datetime, float], ...]
    strong: bool = False


def draw(lines: Sequence[TimeLine], unit: str, title: str) -> str:
    """Lines over time on a linear axis that need not begin at zero; each named at its last point."""
    times = [moment.timestamp() for line in lines for moment, _ in line.points]
    numbers = [number for line in lines for _, number in line.points]
    first, last = min(times), max(times)
    low, high = min(numbers), max(numbers)
    margin = (high - low) * 0.06 or high * 0.05 or 1.0
    low, high = max(0.0, low - margin), high + margin
    scale = formatting.scale_for(unit, high)

    def x(moment: float) -> float:
        share = (moment - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(number: float) -> float:
        return _TOP + (1 - (number - low) / (high - low)) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for share in (0.0, 0.5, 1.0):
        number = low + share * (high - low)
        text = escape(formatting.quantity(Value(number, unit), scale).number)
        text += f" {escape(scale.unit)}" if share == 1.0 else ""
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" '
            f'y1="{y(number):.1f}" y2="{y(number):.1f}"/>'
        )
        parts.append(
            f'<text class="m" x="{_LEFT - 6}" y="{y(number) + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for moment, anchor in ((first, "start"), (last, "end")) if last > first else ((first, "middle"),):
        day = datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d")
        parts.append(
            f'<text class="m" x="{x(moment):.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{day}</text>'
        )
    ends = _name_heights(lines, y)
    for line in lines:
        css = "strong" if line.strong else "quiet"
        places = " ".join(f"{x(moment.timestamp()):.1f},{y(number):.1f}" for moment, number in line.points)
        parts.append(f'<polyline class="{css}" points="{places}"/>')
        if len(line.points) <= 60:
            parts += [
                f'<circle class="{css}" cx="{x(moment.timestamp()):.1f}" cy="{y(number):.1f}" r="2">'
                f"<title>{escape(line.name)} {moment:%Y-%m-%d}: "
                f"{escape(str(formatting.quantity(Value(number, unit), scale)))}</title></circle>"
                for moment, number in line.points
            ]
    for line, height in ends:
        css = "strong" if line.strong else "m"
        name = escape(_short(line.name))
        parts.append(f'<text class="{css}" x="{_WIDTH - _RIGHT + 8}" y="{height + 4:.1f}">{name}</text>')
    label = escape(f"{title}, {scale.unit}", quote=True)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _name_heights(lines: Sequence[TimeLine], y: Callable[[float], float]) -> list[tuple[TimeLine, float]]:
    """The lines with the heights of their names, which do not lie over each other."""
    placed: list[tuple[TimeLine, float]] = []
    floor = float(_TOP)
    for line in sorted(lines, key=lambda line: y(line.points[-1][1])):
        height = max(y(line.points[-1][1]), floor)
        placed.append((line, height))
        floor = height + _LABEL_PX
    over = floor - _LABEL_PX - (_HEIGHT - _BOTTOM)
    return [(line, height - max(0.0, over)) for line, height in placed]


def summary(lines: Sequence[TimeLine], unit: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows of a table in place of the chart: how each line began, ended and ranged."""
    rows = []
    for line in lines:
        numbers = [number for _, number in line.points]
        ends = (numbers[0], numbers[-1], min(numbers), max(numbers))
        rows.append((line.name, str(len(numbers)), *(str(formatting.quantity(Value(n, unit))) for n in ends)))
    return ("", "runs", "first", "last", "smallest", "largest"), rows


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 9]}…{name[-8:]}"
