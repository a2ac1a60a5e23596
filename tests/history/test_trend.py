"""A metric over versions: its gaps, its breaks, its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import UnknownName
from profiler.evidence import metric_table
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value
from profiler.history.trend import ABSENT, Trend, load_trends
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.rows import Environment, Point, RunInfo, Series, VersionInfo
from tests.made import DURATION, imported, launch

START = datetime(2026, 1, 1, tzinfo=UTC)
TABLE_TEXT = """\
duration | ncu duration | ns | lower  | 2%  | time        | lean | gpu__time_duration.sum
clock    | SM clock     | hz | -      | 1%  | clock       | lean | clock.a, clock.b
tensor   | tensor busy  | %  | higher | 1pp | tensor core | lean | tensor.sm90@sm_90
clock    = cycles.sum / gpu__time_duration.sum * 1e9
clock ~ 5% = other.clock @sm_90
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> metric_table.MetricTable:
    path = tmp_path_factory.mktemp("table") / "metrics.txt"
    path.write_text(TABLE_TEXT, "utf-8")
    return metric_table.load_metrics(path)


def run(run_id: str, version: str, day: int, **changes: Any) -> RunInfo:
    told: dict[str, Any] = {
        "run_id": run_id,
        "family": "f",
        "version": version,
        "workload": None,
        "kind": "import",
        "created": START + timedelta(days=day),
        "gpu": "GPU",
        "compute_capability": "8.0",
        "driver": "560",
        "ncu_version": "2024.1",
        "cuda": None,
        "host": None,
        "command_line": None,
        "clock_control": None,
        "cache_control": None,
        "launches": 1,
        "reports": (),
        "evidence": frozenset({Evidence.MEASURED}),
        "hidden": False,
    }
    return RunInfo(**(told | changes))


@dataclass
class Answers:
    """What the trend asks a store for, answered from lists."""

    told: list[RunInfo]
    series_: list[Series] = field(default_factory=list)

    def families(self) -> list[str]:
        return ["f"]

    def environments(self, run_ids: Iterable[str]) -> dict[str, Environment]:
        return {
            one.run_id: Environment(one.compute_capability, one.driver, one.ncu_version)
            for one in self.told
            if one.run_id in run_ids
        }

    def versions(self, family: str) -> list[VersionInfo]:
        first: dict[str, RunInfo] = {}
        for one in sorted(self.told, key=lambda one: one.created):
            first.setdefault(str(one.version), one)
        return [VersionInfo("f", name, one.created, one.created, 1, (), ()) for name, one in first.items()]

    def series(self, names: Sequence[str], **filters: object) -> list[Series]:
        return [one for one in self.series_ if one.metric in names]

    def add(
        self,
        part: str,
        metric: str,
        values: dict[str, Value | float],
        *,
        old: Sequence[str] = (),
        gpu: str = "GPU",
    ) -> None:
        """A series with a value for each of these runs; `old` ones are not the newest of their version."""
        points = []
        for number, one in enumerate(self.told):
            if one.run_id in values:
                value = values[one.run_id]
                shown = value if isinstance(value, Value) else Value(value, "ns")
                points.append(
                    Point(
                        number,
                        one.run_id,
                        str(one.version),
                        one.created,
                        shown,
                        None,
                        None,
                        one.run_id not in old,
                    )
                )
        told = ("f", None, gpu, Evidence.MEASURED, "ncu", part, part.split("#")[0], metric, "ns")
        self.series_.append(Series(*told, tuple(points)))

    def ask(self, name: str, table: metric_table.MetricTable, **filters: Any) -> list[Trend]:
        return load_trends(self, name, table, **filters)  # type: ignore[arg-type]


def shown(one: Trend) -> list[tuple[str, float | None, str]]:
    return [(point.version, point.value.number, point.gap) for point in one.points]


def test_a_kernel_that_came_later_has_a_gap_that_says_so(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2), run("r3", "v3", 3)])
    answers.add("old#0", DURATION, {"r1": 5.0, "r2": 6.0})
    answers.add("new#0", DURATION, {"r2": 1.0, "r3": 2.0})
    told = {history.part: shown(history) for history in answers.ask("duration", table)}
    assert told == {
        "old#0": [("v1", 5.0, ""), ("v2", 6.0, ""), ("v3", None, ABSENT)],
        "new#0": [("v1", None, ABSENT), ("v2", 1.0, ""), ("v3", 2.0, "")],
    }


def test_every_state_stays_itself(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2)])
    answers.add("k#0", DURATION, {"r1": Value(None, "ns", state=State.FAILED), "r2": NOT_COLLECTED})
    (history,) = answers.ask("duration", table)
    assert shown(history) == [("v1", None, "failed"), ("v2", None, "not collected")]
    assert history.newest.state is State.NOT_COLLECTED


def test_a_change_of_driver_or_ncu_breaks_the_line_unless_asked_across(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers(
        [
            run("r1", "v1", 1),
            run("r2", "v2", 2, driver="570"),
            run("r3", "v3", 3, driver="570", ncu_version="2025"),
        ]
    )
    answers.add("k#0", DURATION, {"r1": 1.0, "r2": 2.0, "r3": 3.0})
    (history,) = answers.ask("duration", table)
    assert [point.breaks for point in history.points] == [
        "",
        "driver differs: 560 and 570",
        "ncu differs: 2024.1 and 2025",
    ]
    (history,) = answers.ask("duration", table, across={"driver"})
    assert [bool(point.breaks) for point in history.points] == [False, False, True]


def test_a_break_is_seen_across_a_gap(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2), run("r3", "v3", 3, driver="570")])
    answers.add("k#0", DURATION, {"r1": 1.0, "r2": Value(None, "ns", state=State.FAILED), "r3": 3.0})
    (history,) = answers.ask("duration", table)
    assert history.points[2].breaks == "driver differs: 560 and 570"


def test_an_unknown_driver_breaks_nothing(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2, driver=None)])
    answers.add("k#0", DURATION, {"r1": 1.0, "r2": 2.0})
    (history,) = answers.ask("duration", table)
    assert history.points[1].breaks == ""


def test_another_spelling_of_a_concept_or_another_unit_breaks_the_line(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2), run("r3", "v3", 3)])
    answers.add("k#0", "clock.a", {"r1": Value(1.0, "hz"), "r2": NOT_COLLECTED, "r3": Value(3.0, "mhz")})
    answers.add("k#0", "clock.b", {"r1": Value(1.0, "hz"), "r2": Value(2.0, "hz"), "r3": NOT_COLLECTED})
    (history,) = answers.ask("clock", table)
    assert [(point.metric, point.value.number) for point in history.points] == [
        ("clock.a", 1.0),
        ("clock.b", 2.0),
        ("clock.a", 3.0),
    ]
    assert history.points[1].breaks == "different counters: clock.a and clock.b"
    assert "different units: hz and mhz" in history.points[2].breaks


def test_what_a_report_lacks_is_derived_and_not_joined_to_the_counter(
    table: metric_table.MetricTable,
) -> None:
    """Runs of before are read so too: the index has every number that a report carries."""
    answers = Answers([run(f"r{day}", f"v{day}", day) for day in (1, 2, 3, 4, 5)])
    failed = Value(None, "hz", state=State.FAILED)
    clocks = {"r1": Value(2e9, "hz"), "r4": failed}
    answers.add("k#0", "clock.a", {f"r{day}": clocks.get(f"r{day}", NOT_COLLECTED) for day in range(1, 6)})
    answers.add("k#0", DURATION, {f"r{day}": 100.0 for day in range(1, 6)})
    cycles = {f"r{day}": Value(200.0) for day in range(1, 6)}
    answers.add("k#0", "cycles.sum", cycles | {"r3": NOT_COLLECTED})
    answers.add("k#0", "other.clock", {f"r{day}": Value(1.9e9, "hz") for day in range(1, 6)})
    (history,) = answers.ask("clock", table)
    assert shown(history) == [
        ("v1", 2e9, ""),
        ("v2", 2e9, ""),
        ("v3", None, "not collected"),  # the stand-in is another chip's
        ("v4", None, "failed"),
        ("v5", 2e9, ""),
    ]
    derived = "derived from cycles.sum / gpu__time_duration.sum * 1e9"
    assert [point.metric for point in history.points] == ["clock.a", derived, "clock.a", "clock.a", derived]
    assert history.points[1].value.derivation is not None
    breaks = [point.breaks for point in history.points]
    assert breaks == ["", f"different counters: clock.a and {derived}", "", "", ""]


def test_a_kernel_without_the_concept_or_what_it_is_derived_from_has_no_series(
    tmp_path: Path, table: metric_table.MetricTable
) -> None:
    with Store.open(tmp_path / "index.sqlite") as store:
        store.add(*imported("v1", launch(duration=100.0)))
        assert load_trends(store, "clock", table) == []


def test_an_index_answers_with_what_is_derived_of_runs_that_it_had_before(
    tmp_path: Path, table: metric_table.MetricTable
) -> None:
    with Store.open(tmp_path / "index.sqlite") as store:
        for minute, version in enumerate(("v1", "v2")):
            more = {"cycles.sum": Value(200.0 * (minute + 1), "cycle")}
            store.add(*imported(version, launch(duration=100.0, **more), minute=minute))
        (history,) = load_trends(store, "clock", table)
    assert [(point.version, point.value.number) for point in history.points] == [("v1", 2e9), ("v2", 4e9)]
    assert all(point.value.derivation and not point.breaks for point in history.points)


def test_a_name_of_another_chip_is_not_available_rather_than_not_collected(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2)])
    answers.add("k#0", "tensor.sm90", {"r1": NOT_COLLECTED, "r2": NOT_COLLECTED})
    (history,) = answers.ask("tensor", table)
    assert [point.gap for point in history.points] == ["not available on this GPU"] * 2


def test_over_versions_the_newest_run_of_each_counts_and_its_first_gives_the_place(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2), run("r1b", "v1", 3)])
    answers.add("k#0", DURATION, {"r1": 1.0, "r2": 2.0, "r1b": 1.5}, old=["r1"])
    (history,) = answers.ask("duration", table)
    assert shown(history) == [("v1", 1.5, ""), ("v2", 2.0, "")]
    (history,) = answers.ask("duration", table, over="time")
    assert shown(history) == [("v1", 1.0, ""), ("v2", 2.0, ""), ("v1", 1.5, "")]


def test_an_older_run_does_not_fill_in_for_a_kernel_that_the_newest_run_left_out(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers([run("r1", "v1", 1), run("r1b", "v1", 3), run("r2", "v2", 2)])
    answers.add("gone#0", DURATION, {"r1": 5.0, "r2": 6.0})
    answers.add("kept#0", DURATION, {"r1": 1.0, "r1b": 2.0, "r2": 3.0}, old=["r1"])
    told = {history.part: shown(history) for history in answers.ask("duration", table)}
    assert told == {
        "gone#0": [("v1", None, ABSENT), ("v2", 6.0, "")],
        "kept#0": [("v1", 2.0, ""), ("v2", 3.0, "")],
    }
    (gone,) = answers.ask("duration", table, over="time", kernel="gone")
    assert shown(gone) == [("v1", 5.0, ""), ("v2", 6.0, ""), ("v1", None, ABSENT)]


def test_a_newer_run_on_another_gpu_hides_nothing(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r1b", "v1", 3, gpu="other")])
    answers.add("k#0", DURATION, {"r1": 5.0})
    answers.add("k#0", DURATION, {"r1b": 7.0}, gpu="other")
    told = {history.gpu: shown(history) for history in answers.ask("duration", table)}
    assert told == {"GPU": [("v1", 5.0, "")], "other": [("v1", 7.0, "")]}


def test_a_kernel_pattern_keeps_the_columns_of_the_others(table: metric_table.MetricTable) -> None:
    answers = Answers([run("r1", "v1", 1), run("r2", "v2", 2)])
    answers.add("gemm#0", DURATION, {"r2": 5.0})
    answers.add("softmax#0", DURATION, {"r1": 5.0})
    (history,) = answers.ask("duration", table, kernel="GEMM")
    assert shown(history) == [("v1", None, ABSENT), ("v2", 5.0, "")]


def test_an_exact_ncu_name_that_is_no_concept_has_a_series_of_its_own(
    table: metric_table.MetricTable,
) -> None:
    answers = Answers([run("r1", "v1", 1)])
    answers.add("k#0", "lts__t_bytes.sum", {"r1": Value(7, "byte")})
    (history,) = answers.ask("lts__t_bytes.sum", table)
    assert (history.concept, history.label, history.unit, history.newest.number) == (
        "",
        "lts__t_bytes.sum",
        "byte",
        7,
    )


def test_a_concept_that_does_not_exist_names_the_nearest(table: metric_table.MetricTable) -> None:
    with pytest.raises(UnknownName, match="did you mean duration"):
        Answers([]).ask("duratoin", table)


def test_a_filter_that_fits_nothing_says_what_there_is(esmm: Store) -> None:
    table = metric_table.load_metrics()
    for filters, words in (
        ({"family": "esm"}, "no family 'esm' in the index; there are esmm"),
        ({"workload": "big"}, "no workload 'big' in the index; there is none"),
        ({"gpu": "NVIDIA A10"}, "no GPU 'NVIDIA A10' in the index; there are NVIDIA A10G"),
        ({"kernel": "warptilin_two"}, "there are warptiling_two, warptiling, "),
    ):
        with pytest.raises(UnknownName, match=words):
            load_trends(esmm, "duration", table, **filters)  # type: ignore[arg-type]
    with pytest.raises(
        UnknownName, match=r"carries gpu__time_duraton\.sum; there are gpu__time_duration\.sum,"
    ):
        load_trends(esmm, "gpu__time_duraton.sum", table)


def test_a_metric_that_no_launch_carries_has_no_series(esmm: Store) -> None:
    table = metric_table.load_metrics()
    assert load_trends(esmm, "spill_insts", table) == []
    assert load_trends(esmm, table.by_concept["spill_insts"].alternatives[0].name, table) == []
    assert load_trends(esmm, "duration", table, workload=""), "nobody named one"


@pytest.fixture(scope="module")
def esmm(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The six esmm reports, imported."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PROFILER_DATA", str(tmp_path_factory.mktemp("esmm")))
    patch.delenv("PROFILER_DB", raising=False)
    import_paths([reports / "esmm"])
    store = open_store()
    patch.undo()
    return store


def test_the_esmm_history_comes_and_goes_and_its_nan_is_failed(esmm: Store) -> None:
    told = {
        one.base_name: one
        for one in load_trends(esmm, "duration", metric_table.load_metrics(), family="esmm")
    }
    assert all(len(one.points) == 6 for one in told.values())
    created = [point.created for point in told["basic"].points]
    assert created == sorted(created)
    assert [point.gap for point in told["basic"].points] == [""] * 6
    failed = [point for point in told["one_d_vec"].points if point.version.endswith("5c6231e5")]
    assert [(point.gap, point.value.number) for point in failed] == [("failed", None)]
    assert ABSENT in {point.gap for point in told["warptiling_two"].points}
    assert sum(point.value.number is not None for point in told["warptiling_two"].points) == 1
    grids = {point.grid for point in told["warptiling"].points if point.grid}
    assert grids == {(8, 8, 1), (16, 8, 1)}, "one series, though the grid doubled"


def test_over_versions_a_store_gives_what_it_would_of_all_runs(tmp_path: Path) -> None:
    """Only the newest runs are asked for: a kernel that its version's newest run lacks stays a gap."""
    store = Store.open(tmp_path / "index.db")
    store.add(*imported("v1", launch("a", 1.0), launch("b", 2.0, ordinal=1)))
    store.add(*imported("v1", launch("a", 3.0), minute=1))
    store.add(*imported("v2", launch("b", 4.0), minute=2))
    trends = load_trends(store, DURATION, metric_table.load_metrics())
    store.close()
    told = {trend.part: [(point.value.number, point.gap) for point in trend.points] for trend in trends}
    assert told == {"a#0": [(3.0, ""), (None, ABSENT)], "b#0": [(None, ABSENT), (4.0, "")]}


def test_another_grid_breaks_the_line_where_no_workload_is_declared(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "index.db")
    small = launch("a", 1e6)
    for minute, workload in enumerate((None, "b4")):
        larger = replace(small, grid=(512, 2, 1))
        store.add(*imported("v1", small, minute=2 * minute, workload=workload))
        store.add(*imported("v2", larger, minute=2 * minute + 1, workload=workload))
    trends = load_trends(store, "duration", metric_table.load_metrics(), over="time")
    store.close()
    breaks = {trend.workload or "": trend.points[-1].breaks for trend in trends}
    assert breaks == {"": "grid 64 × 2 → 512 × 2", "b4": ""}
