"""What the parts of series and the modes of calls are called on screen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from profiler.history.trend import LATENCY, Trend

PartAndMode = tuple[str, str]


def short_names(parts: Iterable[str]) -> dict[str, str]:
    """Every part (`range/kernel#0`) with the name it goes by among these: without `#0` where it ran once.

    The same names that `compare` prints.
    """
    parts_by_kernel: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        parts_by_kernel[part.rpartition("#")[0]].add(part)
    return {
        part: kernel if kernel and len(same_kernel) == 1 else part
        for kernel, same_kernel in parts_by_kernel.items()
        for part in same_kernel
    }


def line_names(trends: Sequence[Trend]) -> dict[PartAndMode, str]:
    """What each part and mode is called: its kernel, with the mode where there are several; calls by mode."""
    kernel_names = short_names(trend.part for trend in trends if trend.concept != LATENCY)
    for trend in trends:
        if trend.also:  # before the number, which a short label keeps
            kernel, mark, number = kernel_names[trend.part].partition("#")
            kernel_names[trend.part] = f"{kernel}{trend.also}{mark}{number}"
    modes: dict[str, set[str]] = defaultdict(set)
    for trend in trends:
        modes[trend.part].add(trend.mode)
    names = {}
    for trend in trends:
        if trend.concept == LATENCY:  # its part is the whole call
            names[trend.part, trend.mode] = mode_name(trend.mode)
        elif len(modes[trend.part]) > 1:
            names[trend.part, trend.mode] = f"{kernel_names[trend.part]} ({trend.mode})"
        else:
            names[trend.part, trend.mode] = kernel_names[trend.part]
    return names


def mode_name(mode: str) -> str:
    """How calls were timed, without the clock that all of one GPU share: `events; cache warm`."""
    return mode.rpartition("; clock ")[0] or mode
