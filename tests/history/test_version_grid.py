"""The grid of versions: change over the range, a verdict only by a step that goes the same way, gaps."""

from dataclasses import replace
from datetime import timedelta

import pytest

from profiler.evidence.cell import Cell
from profiler.history.change_points import RUNS, History
from profiler.history.version_grid import build_grid
from profiler.statistics.verdict import Verdict
from tests.ui.views.test_history_steps import history, series

HERE = Cell(version="c3", workload="", gpu="H100")


def one_version(levels: tuple[float, float]) -> History:
    """A history whose every run is of version c3."""
    stepped = history(series(levels))
    points = tuple(point._replace(version="c3") for point in stepped.series.points)
    return replace(stepped, series=replace(stepped.series, points=points), version="c3", over=RUNS)


def test_a_step_gives_the_verdict_and_the_ends_the_change() -> None:
    found = one_version((5e6, 6e6))
    cell = build_grid([found.series], [found])[HERE]
    assert cell.change == pytest.approx(0.2, abs=0.01)
    assert cell.verdict is Verdict.WORSE
    assert cell.numbers == len(found.series.points)


def test_runs_before_the_range_count_for_nothing() -> None:
    found = one_version((5e6, 6e6))
    since = found.series.points[-1].created - timedelta(hours=1)
    cell = build_grid([found.series], [found], since)[HERE]
    assert (cell.numbers, cell.change, cell.verdict, cell.step) == (1, None, None, None)


def test_a_step_that_was_undone_gives_no_verdict() -> None:
    found = one_version((5e6, 6e6))
    *rest, last = found.series.points
    healed = last._replace(value=last.value._replace(number=4.9e6))
    trend = replace(found.series, points=(*rest, healed))
    cell = build_grid([trend], [replace(found, series=trend)])[HERE]
    assert cell.change == pytest.approx(-0.02, abs=0.005)
    assert cell.verdict is None


def test_a_version_without_a_number_is_a_gap_with_its_reason() -> None:
    found = one_version((5e6, 6e6))
    points = tuple(point._replace(wrong=True, gap="wrong") for point in found.series.points)
    cell = build_grid([replace(found.series, points=points)], [])[HERE]
    assert (cell.gap, cell.numbers, cell.change) == ("wrong", 0, None)
