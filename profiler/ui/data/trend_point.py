"""One point of a history with what is known of it: neighbours, what changed before it, its code."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.bundles.location import open_root
from profiler.compare.environment_change import RunChanges
from profiler.evidence.values import Evidence
from profiler.history.point_changes import changes_between
from profiler.history.run_spread import RunSpread
from profiler.history.trend import LATENCY, Trend, TrendPoint
from profiler.ui import addresses
from profiler.ui.data import launches, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, store
from profiler.ui.data.run_axis import RunAxis


@dataclass(frozen=True)
class PointOfLine:
    """A point that was clicked, on the line that it belongs to."""

    trend: Trend
    point: TrendPoint
    before: TrendPoint | None  # the last number before it
    after: TrendPoint | None  # the next number
    changes: RunChanges | None  # since the one before; None for the first
    spread: RunSpread | None
    code: addresses.LaunchKey | addresses.CompiledKey | None  # None: neither report nor static facts hold it
    launch: addresses.LaunchView | None = None  # None: the point is no launch


def find_point(
    data_version: DataVersion, trend: Trend | None, at: str, axis: RunAxis, spread_of: dict[int, RunSpread]
) -> PointOfLine | None:
    """The point that an address names as `version~run`; None where the line has no number there."""
    if trend is None or not at:
        return None
    points = [point for point in trend.points if point.on_line and axis.x_of(point) is not None]
    names = [addresses.version_of_run(point.version, point.run_id) for point in points]
    if at not in names:
        return None
    place = names.index(at)
    before = points[place - 1] if place else None
    point = points[place]
    return PointOfLine(
        trend,
        point,
        before,
        points[place + 1] if place + 1 < len(points) else None,
        _changes(data_version, trend, before, point) if before else None,
        spread_of.get(point.result_id) if point.result_id is not None else None,
        _code(data_version, trend, point),
        launches.view_of_result(data_version, point.run_id, point.result_id),
    )


@cached()
def _changes(data_version: DataVersion, _trend: Trend, before: TrendPoint, after: TrendPoint) -> RunChanges:
    return changes_between(store(), open_root(), _trend, before, after)


def _code(
    data_version: DataVersion, trend: Trend, point: TrendPoint
) -> addresses.LaunchKey | addresses.CompiledKey | None:
    """The launch of the point, or what a compiler made of its version in its run."""
    if trend.concept != LATENCY and trend.evidence is Evidence.MEASURED:
        launches = results.launches(data_version, point.run_id)
        row = next((row for row in launches if row.result_id == point.result_id), None)
        if row is None or row.report_sha256 is None:
            return None
        return addresses.LaunchKey(row.report_sha256[: addresses.SHA256_DIGITS], str(row.ordinal))
    facts = results.facts(data_version, point.run_id)
    arches = [row.gpu for row in facts if row.version == point.version and row.evidence is Evidence.STATIC]
    if not arches or not arches[0]:
        return None
    name = addresses.version_of_run(f"{trend.family}/{point.version}", point.run_id)
    return addresses.CompiledKey(name, arches[0])
