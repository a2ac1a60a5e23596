"""What is one line over time: the runs of one version, or all runs where versions follow as commits do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from profiler.history import Trend, TrendPoint, change_points


def timelines(one: Trend) -> list[tuple[str | None, Trend]]:
    """The lines of a series over time, each with its version; None: all versions are one line.

    As `history.views` has it: where runs hold several versions, or versions take turns, a line from one to
    the next would show differences between versions as if they were changes.
    """
    if [told[:2] for told in change_points.series_views(one, (), None)] == [(change_points.RUNS, None)]:
        return [(None, one)]
    own: dict[str, list[TrendPoint]] = defaultdict(list)
    met: dict[str, int] = {}  # breaks up to the last number of each version
    broken = ["", *(point.breaks for point in one.points if point.breaks)]
    count = 0
    for point in one.points:
        count += bool(point.breaks)
        if point.on_line:  # a break that another version met on the way is one for this version too
            since = broken[count] if met.get(point.version, count) < count else ""
            met[point.version] = count
            point = replace(point, breaks=since)
        own[point.version].append(point)
    return [(version, replace(one, points=tuple(points))) for version, points in own.items()]
