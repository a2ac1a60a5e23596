"""What is one line over time: the runs of one version, or all runs where versions follow as commits do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from profiler.history.change_points import RUNS, series_views
from profiler.history.trend import Trend, TrendPoint


def timelines(trend: Trend) -> list[tuple[str | None, Trend]]:
    """The lines of a series over time, each with its version; None: all versions are one line.

    As `series_views` has it: where runs hold several versions, or versions take turns, a line from one to
    the next would show differences between versions as if they were changes.
    """
    views = [(view.over, view.version) for view in series_views(trend, (), None)]
    if views == [(RUNS, None)]:
        return [(None, trend)]
    points_by_version: dict[str, list[TrendPoint]] = defaultdict(list)
    # A break that another version met on the way is a break for this version too: breaks are counted, and
    # a point is broken where more were met than up to the version's last number.
    reasons = ["", *(point.breaks for point in trend.points if point.breaks)]
    breaks_met = 0
    breaks_at_last_number: dict[str, int] = {}
    for point in trend.points:
        breaks_met += bool(point.breaks)
        if point.on_line:
            is_broken = breaks_at_last_number.get(point.version, breaks_met) < breaks_met
            breaks_at_last_number[point.version] = breaks_met
            breaks = reasons[breaks_met] if is_broken else ""
            if breaks != point.breaks:  # rarely, and a copy takes long
                point = point._replace(breaks=breaks)
        points_by_version[point.version].append(point)
    return [(version, replace(trend, points=tuple(points))) for version, points in points_by_version.items()]
