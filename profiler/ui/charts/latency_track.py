"""A version's latency beside its lower bound and the best baseline: a mark on a log line, and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.version_latency import VersionLatency
from profiler.ui import markup
from profiler.ui.markup import Html

_MARGIN = 1.08  # beyond the slowest


@dataclass(frozen=True)
class TrackScale:
    """The log line that all rows of a table share, in ns or as times of each row's own lower bound."""

    low: float
    high: float

    def percent(self, number: float) -> float:
        """How far along the line the number lies."""
        share = math.log(max(number, self.low) / self.low) / math.log(self.high / self.low)
        return round(min(share, 1.0) * 100, 2)


def scale_of(numbers: Iterable[float]) -> TrackScale | None:
    """The scale that all of them fit on; None where there are none."""
    positive = [number for number in numbers if number > 0]
    return TrackScale(min(positive), max(max(positive), min(positive) * 2) * _MARGIN) if positive else None


def track(scale: TrackScale, latency: float, bound: float | None, baseline: float | None, title: str) -> Html:
    """┃ the lower bound, ▾ the baseline, ● the version, all in the scale's unit; `title` for the pointer."""
    start, end = scale.percent(bound) if bound else 0, 100 - scale.percent(latency)
    marks = [f'<i class="stem" style="left:{start}%;right:{end}%"></i>']
    if bound:
        marks.append(f'<i class="floor" style="left:{scale.percent(bound)}%"></i>')
    if baseline:
        marks.append(f'<i class="base" style="left:{scale.percent(baseline)}%"></i>')
    marks.append(f'<i class="dot" style="left:{scale.percent(latency)}%"></i>')
    return Html(f'<span class="track" title="{markup.escaped(title)}">{"".join(marks)}</span>')


def times_bound(latency: VersionLatency) -> Html:
    """How many times its lower bound; a dash where its run computed none."""
    times = latency.times_bound
    if times is None:
        return markup.muted("–")
    doubt = " ?" if times < 1 else ""  # nothing is faster than its bound
    return markup.tag(
        "span", f"{formatting.TIMES}{formatting.digits(times)}{doubt}", title=bound_words(latency)
    )


def bound_words(latency: VersionLatency) -> str:
    """The lower bound, and what sets it."""
    if latency.bound_ns is None:
        return "no lower bound: its run computed none"
    words = f"lower bound {nanoseconds(latency.bound_ns)}, by {latency.binding}"
    below = latency.times_bound is not None and latency.times_bound < 1
    return f"{words}; the latency is below it: the bound or the timing is wrong" if below else words


def nanoseconds(number: float) -> str:
    """A time as text."""
    return str(formatting.quantity(Value(number, "ns")))
