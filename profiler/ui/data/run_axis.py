"""Where the points of a history stand: by version, by commit or by time, and which part of it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from statistics import median

from profiler.history.trend import TrendPoint
from profiler.store.rows import RunInfo
from profiler.ui.charts.small_multiples import Axis

VERSIONS, COMMITS, TIME = "versions", "commits", "time"
RANGES = {"30 d": 30, "90 d": 90}  # days back from the newest run; any other word: all
ALL = "all"
MOST_POINTS = 2000  # that a chart opens with
COMMIT_DIGITS = 7
_NIGHT_MS = 6 * 3_600_000.0  # runs that follow one another faster are of one night
_LEAST_NIGHTS = 8  # below which nobody knows how often runs are made
_LONGER_THAN = 1.6  # times the usual distance of two nights: at least one has no run
_REGULAR = 0.6  # the least share of usual distances; runs without a rhythm leave no hole
_COLUMN = 0.8  # of a commit's column over which its runs are spread


@dataclass(frozen=True)
class RunAxis:
    """The x axis of a history, and the runs that it shows."""

    over: str
    versions: tuple[str, ...] = ()  # in order, on an axis of versions
    places: Mapping[str, float] = field(default_factory=dict)  # by run id, on an axis of commits
    commits: tuple[str, ...] = ()  # short hashes in the order of their first runs
    since: datetime | None = None  # the range: runs before it are left out
    zoom: tuple[datetime, datetime] | None = None  # the part that is drawn

    @staticmethod
    def of_versions(versions: Sequence[str]) -> RunAxis:
        """The axis of these versions."""
        return RunAxis(VERSIONS, tuple(versions))

    @property
    def is_over_runs(self) -> bool:
        """Whether each run has a place of its own: by commit or by time."""
        return self.over != VERSIONS

    @cached_property
    def _index_of(self) -> Mapping[str, int]:
        return {version: index for index, version in enumerate(self.versions)}

    def x_of(self, point: TrendPoint) -> float | None:
        """The place of a point: an index, or milliseconds since 1970; None where the axis lacks it."""
        if self.over == VERSIONS:
            return float(self._index_of[point.version]) if point.version in self._index_of else None
        if self.since is not None and point.created < self.since:
            return None
        if self.over == COMMITS:
            return self.places.get(point.run_id)
        return point.created.timestamp() * 1000

    def chart_axis(self, positions: Iterable[float]) -> Axis:
        """The axis as charts draw it; `positions` are those of all points."""
        if self.over == VERSIONS:
            return Axis(self.versions, span=(0.0, float(max(len(self.versions) - 1, 0))))
        if self.over == COMMITS:
            return Axis(self.commits, span=(0.0, float(max(len(self.commits) - 1, 0))))
        times = list(positions)
        holes = tuple(find_holes(times))
        zoom = None
        if self.zoom is not None:
            zoom = (self.zoom[0].timestamp() * 1000, self.zoom[1].timestamp() * 1000)
        return Axis(time=True, span=(min(times), max(times)) if times else (0.0, 1.0), zoom=zoom, holes=holes)


def find_holes(times: Iterable[float]) -> list[tuple[float, float]]:
    """Where runs that come night after night are missing: begin and end of each hole in milliseconds.

    `times` are those of all runs in milliseconds. Of runs that come without a rhythm none is missing.
    """
    ordered = sorted(set(times))
    nights = ordered[:1] + [later for before, later in pairwise(ordered) if later - before > _NIGHT_MS]
    steps = [later - before for before, later in pairwise(nights)]
    if len(nights) < _LEAST_NIGHTS:
        return []
    usual = median(steps)
    if sum(abs(step - usual) < 0.25 * usual for step in steps) < _REGULAR * len(steps):
        return []
    return [
        (before + usual / 2, later - usual / 2)
        for before, later in pairwise(nights)
        if later - before > _LONGER_THAN * usual
    ]


def commit_of(run: RunInfo) -> str:
    """The short hash of the commit that a run was made of; "" where it does not say."""
    return str(run.provenance.get("git_commit") or "")[:COMMIT_DIGITS]


def by_commit(runs: Sequence[RunInfo], since: datetime | None = None) -> RunAxis:
    """The axis of the commits in the order of their first runs; runs that say none come last, as one."""
    in_range = [run for run in runs if since is None or run.created >= since]
    runs_of: dict[str, list[RunInfo]] = {}
    for run in sorted(in_range, key=lambda run: (not commit_of(run), run.created, run.run_id)):
        runs_of.setdefault(commit_of(run), []).append(run)
    places: dict[str, float] = {}
    for index, members in enumerate(runs_of.values()):
        step = _COLUMN / len(members)
        for position, run in enumerate(members):
            places[run.run_id] = index + step * (position - (len(members) - 1) / 2)
    labels = tuple(commit or "no commit" for commit in runs_of)
    return RunAxis(COMMITS, places=places, commits=labels, since=since)


def default_range(moments: Sequence[datetime]) -> str:
    """The range that a chart of numbers of these moments opens with: the longest with at most MOST_POINTS.

    Thousands of points lie on top of one another, and a browser draws them slowly.
    """
    newest = max(moments, default=None)
    widest_first = [ALL, *sorted(RANGES, key=lambda name: -RANGES[name])]
    for words in widest_first:
        since = range_start(newest, words)
        if sum(since is None or moment >= since for moment in moments) <= MOST_POINTS:
            return words
    return widest_first[-1]


def range_start(newest: datetime | None, words: str) -> datetime | None:
    """Where a range of that name begins, counted from the newest run; None: everything."""
    days = RANGES.get(words)
    return None if newest is None or days is None else newest - timedelta(days=days)


def parse_zoom(begin: str, end: str) -> tuple[datetime, datetime] | None:
    """The part of the axis that an address names by two moments; None where it names none."""
    try:
        moments = datetime.fromisoformat(begin), datetime.fromisoformat(end)
    except ValueError:
        return None
    first, last = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in moments)
    return (first, last) if first < last else None
