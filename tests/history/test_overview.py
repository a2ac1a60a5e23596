"""The newest state of every family, from real reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.evidence import metric_table
from profiler.evidence.values import State
from profiler.history.overview import SHOWN, Overview, OverviewCell, load_overview
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store


@pytest.fixture(scope="module")
def store(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """All 16 reports; the two mistic ones on two workloads, a third version of ncar on another GPU."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PROFILER_DATA", str(tmp_path_factory.mktemp("overview")))
    patch.delenv("PROFILER_DB", raising=False)
    import_paths([reports / name for name in ("esmm", "ncar", "cutlass", "llm.c")])
    import_paths([reports / "mistic" / "prof1.ncu-rep"], workload="small")
    import_paths([reports / "mistic" / "prof2.ncu-rep"], workload="large")
    import_paths([reports / "hyperspec"], family="ncar", version="elsewhere")
    import_paths([reports / "mistic" / "profileHIGGS.ncu-rep"], family="higgs")
    index = open_store()
    patch.undo()
    return index


@pytest.fixture(scope="module")
def overview(store: Store) -> Overview:
    return load_overview(store, metric_table.load_metrics())


def cell(overview: Overview, family: str, gpu: str = "", workload: str | None = None) -> OverviewCell:
    (one,) = [
        c for c in overview.cells if c.family == family and gpu in (c.gpu or "") and c.workload == workload
    ]
    return one


@pytest.mark.slow
def test_the_newest_version_is_held_against_the_one_before(overview: Overview) -> None:
    ncar = cell(overview, "ncar", "V100")
    assert (ncar.version, ncar.before, ncar.comparable) == ("MW_DivToMult", "MW_Baseline", True)
    assert [row.verdict for row in ncar.rows] == [
        Verdict.SAME,
        Verdict.SAME,
        Verdict.BETTER,
        Verdict.UNCLEAR,
        Verdict.SAME,
    ], "longest first"
    assert dict(ncar.tally) == {Verdict.SAME: 3, Verdict.BETTER: 1, Verdict.UNCLEAR: 1}
    assert ncar.verdict is Verdict.BETTER, "as compare, explain and the gate say"
    better = ncar.rows[2]
    assert better.duration.number == 3482240.0
    assert better.change is not None
    assert better.change.change_pct == pytest.approx(-43.75, abs=0.01)
    assert better.better > 0


@pytest.mark.slow
def test_every_row_has_the_headline_metrics_or_their_state(overview: Overview) -> None:
    for one in overview.cells:
        for row in one.rows:
            assert tuple(row.shown) == SHOWN
    row = cell(overview, "cutlass").rows[0]
    assert row.shown["tensor_busy"].number is not None
    basic = cell(overview, "llm.c").rows[0]
    assert basic.shown["occupancy"].unit == "%"


def test_a_first_version_has_rows_without_a_verdict(overview: Overview) -> None:
    first = cell(overview, "llm.c")
    assert (first.before, first.comparable, dict(first.tally)) == (None, True, {})
    assert {(row.verdict, row.reason) for row in first.rows} == {(None, "the first version")}


def test_workloads_and_gpus_are_cells_of_their_own(overview: Overview) -> None:
    assert cell(overview, "mistic", workload="small").version == "prof1"
    assert cell(overview, "mistic", workload="large").before is None
    elsewhere = cell(overview, "ncar", "RTX 2060")
    assert (elsewhere.version, elsewhere.before) == ("elsewhere", None)


def test_what_came_and_went_is_named(overview: Overview, store: Store) -> None:
    esmm = cell(overview, "esmm")
    order = [info.version for info in store.versions("esmm")]
    assert (esmm.version, esmm.before) == (order[-1], order[-2])
    new = {row.base_name for row in esmm.rows if row.verdict is None}
    assert new or esmm.gone, "kernels come and go between any two of these versions"
    assert all(row.reason == "new in this version" for row in esmm.rows if row.verdict is None)


def test_a_failed_duration_comes_first_and_is_no_number(overview: Overview, store: Store) -> None:
    failed = store.side(family="esmm", version="profile@5c6231e5")
    states = [launch.values.value("gpu__time_duration.sum").state for launch in failed.launches]
    assert State.FAILED in states
    for cell in overview.cells:
        numbers = [row.duration.number for row in cell.rows]
        present = [number for number in numbers if number is not None]
        assert numbers == [None] * (len(numbers) - len(present)) + sorted(present, reverse=True)


def test_a_launch_without_a_number_is_counted_though_the_version_before_lacks_it(overview: Overview) -> None:
    lost = [
        (one, row)
        for one in overview.cells
        for row in one.rows
        if row.change is None and row.duration.number is None
    ]
    assert lost, "mistic/profileHIGGS holds one that failed"
    for one, row in lost:
        assert row.verdict is Verdict.MISSING
        assert one.tally[Verdict.MISSING] >= 1


def test_the_family_measured_last_comes_first(overview: Overview, store: Store) -> None:
    made = {one.family: one.last_created for one in sorted(store.versions(), key=lambda v: v.last_created)}
    shown = list(dict.fromkeys(one.family for one in overview.cells))
    assert [made[family] for family in shown] == sorted(made.values(), reverse=True)


def test_limits_cut_and_count(store: Store, overview: Overview) -> None:
    small = load_overview(store, metric_table.load_metrics(), cells=2, rows=1)
    assert len(small.cells) == 2
    assert small.hidden_cells == len(overview.cells) - 2
    assert all(len(cell.rows) == 1 for cell in small.cells)
    whole = {(cell.family, cell.gpu, cell.workload): cell for cell in overview.cells}
    for cell in small.cells:
        full = whole[cell.family, cell.gpu, cell.workload]
        assert cell.hidden_rows == len(full.rows) + full.hidden_rows - 1
        assert cell.tally == full.tally
