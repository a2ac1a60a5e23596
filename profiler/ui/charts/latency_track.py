"""One latency on a log line from its floor, with the best baseline; one scale for all rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from profiler.evidence import Value, formatting
from profiler.history.version_latency import VersionLatency
from profiler.ui import markup
from profiler.ui.markup import Html

_ROOM = 1.08  # beyond the slowest


@dataclass(frozen=True)
class Scale:
    """From the least to the most that any row shows, as times of a row's own floor or in ns."""

    low: float
    high: float

    def at(self, number: float) -> float:
        """Percent of the line."""
        share = math.log(max(number, self.low) / self.low) / math.log(self.high / self.low)
        return round(min(share, 1.0) * 100, 2)


def scale(numbers: Iterable[float]) -> Scale | None:
    """The scale that all of them fit on; None where there are none."""
    known = [one for one in numbers if one > 0]
    return Scale(min(known), max(max(known), min(known) * 2) * _ROOM) if known else None


def line(on: Scale, own: float, floor: float | None, baseline: float | None, words: str) -> Html:
    """┃ the floor, ▾ the baseline, ● the version, all in the scale's unit."""
    marks = [f'<i class="stem" style="left:{on.at(floor) if floor else 0}%;right:{100 - on.at(own)}%"></i>']
    if floor:
        marks.append(f'<i class="floor" style="left:{on.at(floor)}%"></i>')
    if baseline:
        marks.append(f'<i class="base" style="left:{on.at(baseline)}%"></i>')
    marks.append(f'<i class="dot" style="left:{on.at(own)}%"></i>')
    return Html(f'<span class="track" title="{markup.escaped(words)}">{"".join(marks)}</span>')


def gap(one: VersionLatency) -> Html:
    """How many times its floor; a dash where its run computed none."""
    if one.times_bound is None:
        return markup.muted("–")
    words = f"{formatting.TIMES}{formatting.digits(one.times_bound)}" + (" ?" if one.times_bound < 1 else "")
    return markup.tag("span", words, title=floor_words(one))


def floor_words(one: VersionLatency) -> str:
    """The floor and which one it is."""
    if one.bound_ns is None:
        return "no floor: its run computed none"
    words = f"floor {nanoseconds(one.bound_ns)}, by {one.binding}"
    below = one.times_bound is not None and one.times_bound < 1
    return f"{words}; nothing can be shorter: the floor or the timing is wrong" if below else words


def nanoseconds(number: float) -> str:
    """A time as text."""
    return str(formatting.quantity(Value(number, "ns")))
