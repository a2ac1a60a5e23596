"""The path of a kernel through the roofline: order, gaps, breaks, and whose roofs are drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from profiler.evidence import metric_table
from profiler.evidence.launch import Launch
from profiler.evidence.values import NOT_COLLECTED, Evidence, Value, pack_values
from profiler.explain.roofline_path import LAUNCH_METRIC, RooflinePath, load_roofline_path
from profiler.history.trend import ABSENT, Trend, TrendPoint, load_trends
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from profiler.store.rows import RunInfo
from tests import made
from tests.explain.test_roofline import whole
from tests.history.test_trend import run

TABLE = metric_table.load_metrics()
NCU = {"v1": "2024.1", "v2": "2025.1", "v3": "2025.1"}
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(version: str, result: int | None, **more: object) -> TrendPoint:
    number = Value(1000.0, "ns") if result is not None else NOT_COLLECTED
    when = START + timedelta(days=result or 0)
    point = TrendPoint(f"run-{version}", version, when, number, LAUNCH_METRIC, None, None, result)
    return point._replace(**({"gap": "" if result is not None else ABSENT} | more))  # type: ignore[arg-type]


def series(*points: TrendPoint) -> Trend:
    return Trend(
        "", "duration", "lower", "ns", "f", None, "GPU", Evidence.MEASURED, "cold", "k#0", "k", points
    )


def launches(count: int) -> dict[int, Launch]:
    """Each moves half the bytes of the one before."""
    return {
        index: replace(
            made.launch(),
            values=pack_values(whole(**{"dram__bytes.sum.per_second": 5e11 / 2**index})),
            opcodes={},
        )
        for index in range(count)
    }


def path_of(
    trend: Trend,
    launches_by_id: dict[int, Launch],
    runs: dict[str, RunInfo] | None = None,
    parents: dict[str, str | None] | None = None,
) -> RooflinePath:
    return load_roofline_path(
        trend, lambda ids: [launches_by_id[result_id] for result_id in ids], runs or {}, TABLE, parents
    )


def test_a_step_for_each_version_in_their_order_and_a_segment_between_neighbours() -> None:
    path = path_of(series(at("v1", 0), at("v2", 1), at("v3", 2)), launches(3))
    assert [step.version for step in path.steps_at("DRAM")] == ["v1", "v2", "v3"]
    assert [step.point("DRAM").intensity for step in path.steps] == pytest.approx([0.5, 1.0, 2.0])
    assert [(segment.start.version, segment.end.version) for segment in path.segments("DRAM")] == [
        ("v1", "v2"),
        ("v2", "v3"),
    ]
    assert path.roofs is path.steps[-1].roofline


def test_a_version_without_the_kernel_or_the_metrics_has_a_gap_and_no_point() -> None:
    by_id = launches(3)
    by_id[1] = replace(made.launch(), values=pack_values({}), opcodes={})
    path = path_of(series(at("v1", 0), at("v1b", None), at("v2", 1), at("v3", 2)), by_id)
    assert [step.gap for step in path.steps] == ["", ABSENT, "not collected", ""]
    assert path.steps[1].counters("DRAM") == ()
    assert path.steps[3].counters("DRAM") == ("dram__bytes.sum.per_second",)
    (segment,) = path.segments("DRAM")
    assert (segment.start.version, segment.end.version, segment.breaks) == (
        "v1",
        "v3",
        "",
    )


@pytest.mark.parametrize(("of_launch", "of_run"), [("11.0", "9.0"), ("11.0", None), (None, "11.0")])
def test_a_launch_is_read_as_one_of_its_own_gpu_or_else_of_its_run_s(
    of_launch: str | None, of_run: str | None
) -> None:
    """sm_110 has no DRAM of its own, so that nothing of it is missing."""
    launch = replace(made.launch(), values=pack_values({}), opcodes={})
    if of_launch:
        numbers = zip(("major", "minor"), of_launch.split("."), strict=True)
        attributes = {f"device__attribute_compute_capability_{name}": Value(int(n)) for name, n in numbers}
        launch = replace(launch, values=pack_values(attributes))
    runs = {"run-v1": run("run-v1", "v1", 0, compute_capability=of_run)} if of_run else {}
    (step,) = path_of(series(at("v1", 0)), {0: launch}, runs).steps
    assert step.chip == "sm_110"
    assert step.roofline is not None
    assert "DRAM" not in step.roofline.missing


def test_a_wrong_version_is_no_part_of_the_path() -> None:
    path = path_of(series(at("v1", 0), at("v2", 1, gap="rejected", wrong=True), at("v3", 2)), launches(3))
    assert [step.version for step in path.steps_at("DRAM")] == ["v1", "v3"]
    assert path.steps[1].gap == "rejected"


def test_nothing_joins_what_another_ncu_counted_even_across_a_gap() -> None:
    by_id = launches(3)
    by_id[1] = replace(made.launch(), values=pack_values({}), opcodes={})
    runs = {f"run-{name}": run(f"run-{name}", name, 0, ncu_version=ncu) for name, ncu in NCU.items()}
    points = series(at("v1", 0), at("v2", 1), at("v3", 2))
    (segment,) = path_of(points, by_id, runs).segments("DRAM")
    assert segment.breaks == "ncu differs: 2024.1 and 2025.1"


def test_arrows_follow_the_catalogues_parents_past_those_without_a_point() -> None:
    parents = {"v1": None, "v2": "v1", "v2b": "v2", "w": "v1"}
    points = series(at("v1", 0), at("v2", None), at("v2b", 1), at("w", 2))
    by_id = launches(3)
    segments = path_of(points, by_id, parents=parents).segments("DRAM")
    assert [(segment.start.version, segment.end.version) for segment in segments] == [
        ("v1", "v2b"),
        ("v1", "w"),
    ]


def test_nothing_joins_traffic_of_different_counters() -> None:
    by_id = launches(2)
    values = dict(by_id[1].values)
    del values["dram__bytes.sum.per_second"]
    by_id[1] = replace(by_id[1], values=pack_values(values | {"dram__bytes.sum": Value(2.5e8, "byte")}))
    (segment,) = path_of(series(at("v1", 0), at("v2", 1)), by_id).segments("DRAM")
    assert segment.breaks == "DRAM traffic by different counters"


@pytest.mark.slow
def test_the_path_of_the_kernel_that_ncar_mended(reports: Path, tmp_path: Path) -> None:
    import_paths([reports / "ncar"], data=str(tmp_path))
    store = open_store(str(tmp_path))
    runs = {run.run_id: run for run in store.runs("ncar")}
    for trend in load_trends(store, LAUNCH_METRIC, TABLE, family="ncar", evidence=Evidence.MEASURED):
        path = load_roofline_path(trend, store.load, runs, TABLE)
        assert [step.version for step in path.steps] == ["MW_Baseline", "MW_DivToMult"]
        if trend.base_name == "compute_tendencies_x_279_gpu":
            assert [step.point("DRAM").bound for step in path.steps] == ["arithmetic", "memory"]
            assert [segment.breaks for segment in path.segments("L1")] == [""]
        if trend.base_name.startswith("set_halo"):
            assert path.steps_at("DRAM") == (), "they only copy"
            assert path.roofs is None
