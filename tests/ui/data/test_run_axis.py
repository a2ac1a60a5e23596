"""Where points stand: by version, commit or time; ranges count from the newest run, zooms are checked."""

from datetime import UTC, datetime, timedelta

import pytest

from profiler.evidence.values import Value
from profiler.history.trend import TrendPoint
from profiler.store.rows import RunInfo
from profiler.ui.data import run_axis
from profiler.ui.data.run_axis import RunAxis, find_holes

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def run(day: int, commit: str | None) -> RunInfo:
    provenance = {} if commit is None else {"git_commit": commit}
    unknown = (None,) * 9
    about = ("f", None, None, "collect", DAY + timedelta(days=day), *unknown)
    return RunInfo(f"run-{day}", *about, 0, (), frozenset(), False, provenance=provenance)


def point(day: int, version: str = "v1") -> TrendPoint:
    created = DAY + timedelta(days=day)
    return TrendPoint(f"run-{day}", version, created, Value(1.0, "ns"), "m", None, None, day)


def test_versions_stand_in_their_order_and_others_nowhere() -> None:
    axis = RunAxis.of_versions(["a", "b"])
    assert (axis.x_of(point(0, "b")), axis.x_of(point(0, "c"))) == (1.0, None)


def test_commits_stand_by_their_first_run_and_runs_of_one_share_its_column() -> None:
    axis = run_axis.by_commit([run(0, "a" * 40), run(1, "b" * 40), run(2, "a" * 40), run(3, None)])
    assert axis.commits == ("a" * 7, "b" * 7, "no commit")
    places = [axis.x_of(point(day)) for day in range(4)]
    assert places == pytest.approx([-0.2, 1.0, 0.2, 2.0])


def test_a_range_leaves_out_what_is_older() -> None:
    since = run_axis.range_start(DAY + timedelta(days=40), "30 d")
    axis = RunAxis(run_axis.TIME, since=since)
    assert axis.x_of(point(9)) is None
    assert axis.x_of(point(10)) == (DAY + timedelta(days=10)).timestamp() * 1000
    assert run_axis.range_start(DAY, "all") is None


@pytest.mark.parametrize(("begin", "end"), [("", ""), ("soon", "2026-01-02"), ("2026-01-03", "2026-01-02")])
def test_an_address_that_names_no_part_zooms_to_none(begin: str, end: str) -> None:
    assert run_axis.parse_zoom(begin, end) is None


def test_a_zoomed_axis_shows_that_part_and_no_more() -> None:
    zoom = run_axis.parse_zoom("2026-01-02T00:00", "2026-01-03T12:00")
    axis = RunAxis(run_axis.TIME, zoom=zoom).chart_axis([0.0, 1e15])
    assert axis.range == [1767312000000.0, 1767441600000.0]


def test_nights_without_a_run_are_holes() -> None:
    night = 24 * 3_600_000.0
    moments = [n * night + minute * 60_000 for n in range(12) if n not in (5, 6, 7) for minute in (0, 30)]
    assert find_holes(moments) == [(4.5 * night, 7.5 * night)]
    assert find_holes(moments[:8]) == []  # four nights: nobody knows how often runs are made


def test_runs_without_a_rhythm_leave_no_hole() -> None:
    night = 24 * 3_600_000.0
    assert find_holes([day * night for day in (0, 1, 5, 6, 14, 15, 17, 30, 34, 50)]) == []


@pytest.mark.slow
def test_a_chart_opens_with_the_longest_range_that_is_not_crowded() -> None:
    newest = datetime(2026, 6, 1, tzinfo=UTC)

    def every(hours: float, days: int) -> list[datetime]:
        return [newest - timedelta(hours=hours * number) for number in range(int(days * 24 / hours))]

    assert run_axis.default_range([]) == "all"
    assert run_axis.default_range(every(24, 1500)) == "all"
    assert run_axis.default_range(every(2, 400)) == "90 d"
    assert run_axis.default_range(every(0.5, 400)) == "30 d"
    assert run_axis.default_range(every(0.1, 400)) == "30 d"  # the shortest
