"""The index on both databases: what goes in comes out, whatever the order, with the newest marked."""

from __future__ import annotations

import math
import multiprocessing
import random
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.dialects import sqlite

from profiler.bundles.run import COLLECT, NOISE, Facts, Labels, Result, Run, Samples
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence.launch import Session
from profiler.evidence.values import Evidence, State, Value
from profiler.store import payload_columns, prepared_series, schema, statements
from profiler.store.index import Store
from tests import made
from tests.made import DURATION, START, WARPS, imported, launch


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store.open(url)
    yield opened
    opened.close()


def durations(store: Store, **wanted: str) -> list[tuple[str, list[float | None]]]:
    return [
        (series.part, [point.value.number for point in series.points])
        for series in store.series([DURATION], family="gemms", **wanted)
    ]


def test_a_launch_comes_out_as_it_went_in(store: Store) -> None:
    values = {
        "whole": Value(2**63 + 11, "inst"),
        "small": Value(5e-324, ""),
        "text": Value(None, "", "a, b\u0000ü"),
        "failed": Value(math.nan, "%"),
        "absent": Value(None, "byte", state=State.INSTANCES_ONLY),
    }
    put_in = launch("gemm", 1234.5, nvtx=("outer", "inner"), **values)
    store.add(*imported("v1", put_in))
    [info] = store.results()
    [got] = store.load([info.result_id])
    assert dict(got.values) == dict(put_in.values)
    assert got.values["whole"].number == 2**63 + 11
    assert got.values["failed"] == Value(None, "%", state=State.FAILED)
    assert got.values["absent"].state is State.INSTANCES_ONLY
    assert list(got.values) == list(put_in.values)
    assert replace(got, values=put_in.values) == put_in
    assert (info.part, info.base_name, info.grid) == ("outer/inner/gemm#0", "gemm", (64, 2, 1))
    assert info.duration_ns == Value(1234.5, "ns")


def test_a_duration_that_failed_is_failed_everywhere_and_never_zero(store: Store) -> None:
    store.add(*imported("v1", launch(duration=None)))
    store.add(*imported("v2", launch(duration=7.0), minute=1))
    assert [info.duration_ns.state for info in store.results()] == [State.FAILED, State.PRESENT]
    for prepared in (False, True):
        if prepared:
            store.prepare_series([DURATION], tail=1)
        [series] = store.series([DURATION], family="gemms")
        assert [point.value for point in series.points] == [
            Value(None, "ns", state=State.FAILED),
            Value(7.0, "ns"),
        ]


def test_parts_count_launches_of_one_name_within_their_range(store: Store) -> None:
    launches = [
        launch("k", ordinal=0),
        launch("k", ordinal=1),
        launch("k", ordinal=2, nvtx=("r",)),
        launch("j", ordinal=3),
    ]
    store.add(*imported("v1", *launches))
    assert [info.part for info in store.results()] == ["k#0", "k#1", "r/k#0", "j#0"]


def test_adding_a_run_twice_adds_it_once_and_says_so(store: Store) -> None:
    assert store.add(*imported("v1")) is True
    before = store.data_version()
    assert store.add(*imported("v1")) is False
    assert store.add_many([(*imported("v1"), None), (*imported("v2"), None), (*imported("v2"), None)]) == [
        False,
        True,
        False,
    ]
    assert len(store.runs()) == len(store.results()) == 2
    assert store.data_version() != before


@pytest.mark.slow
def test_the_order_of_imports_changes_no_answer(url: str, tmp_path: Path) -> None:
    runs = [
        (*imported(f"v{n % 4}", launch("a", 10.0 + n), launch("b", 20.0 + n, ordinal=1), minute=n // 2), None)
        for n in range(12)
    ]
    runs[5] = (*runs[5][:2], Labels(hidden=True))
    runs[7] = (*runs[7][:2], Labels(version="renamed", workload="big"))
    store = Store.open(url)
    for item in runs:
        store.add(*item)
    answers = [made.everything(store)]
    random.Random(1).shuffle(runs)
    other = Store.open(f"sqlite:///{tmp_path / 'other.db'}")
    other.add_many(runs)
    answers.append(made.everything(other))
    store.prepare_series([DURATION, WARPS], tail=1)
    answers.append(made.everything(store))
    store.rebuild(reversed(runs))
    answers.append(made.everything(store))
    assert len(set(answers)) == 1
    store.close()
    other.close()


def test_the_newest_run_of_a_version_is_the_latest_and_the_one_before_when_it_goes(store: Store) -> None:
    old, new = imported("v1", launch(duration=1.0)), imported("v1", launch(duration=2.0), minute=5)
    store.add(*new)
    store.add(*old)
    assert [info.duration_ns.number for info in store.results()] == [2.0]
    assert [info.duration_ns.number for info in store.results(latest=False)] == [1.0, 2.0]
    store.replace([(*new, Labels(hidden=True))])
    assert [info.duration_ns.number for info in store.results()] == [1.0]
    assert [info.duration_ns.number for info in store.results(latest=False)] == [1.0]
    assert [run.hidden for run in store.runs(hidden=True)] == [True, False]
    store.replace([(*new, None)])
    assert [info.duration_ns.number for info in store.results()] == [2.0]
    store.replace([], gone=[new[0].run_id])
    assert [info.duration_ns.number for info in store.results()] == [1.0]


def test_runs_of_the_same_second_are_ordered_by_their_id(store: Store) -> None:
    runs = [imported("v1", launch(duration=float(n))) for n in (1, 2, 3)]
    newest = max(runs, key=lambda one: one[0].run_id)
    for run in runs:
        store.add(*run)
    [info] = store.results()
    assert info.run_id == newest[0].run_id
    assert [point.run_id for point in store.series([DURATION])[0].points] == sorted(
        run.run_id for run, _ in runs
    )


def test_a_series_has_a_point_for_every_launch_and_says_where_the_metric_is_missing(store: Store) -> None:
    store.add(*imported("v1", launch(duration=1.0)))
    store.add(*imported("v2", launch(duration=2.0, **{WARPS: Value(50.0, "%")}), minute=1))
    store.add(*imported("v3", launch("other", duration=3.0), minute=2))
    for prepared in (False, True):
        if prepared:
            assert store.prepare_series([DURATION, WARPS], tail=1) == 2
            assert store.prepare_series([DURATION, WARPS], tail=1) == 0
        found = {
            (series.part, series.metric): series for series in store.series([WARPS, DURATION], family="gemms")
        }
        assert set(found) == {("gemm#0", WARPS), ("gemm#0", DURATION), ("other#0", DURATION)}
        warps = found["gemm#0", WARPS]
        assert warps.unit == "%"
        assert [(point.version, point.value.state, point.value.number) for point in warps.points] == [
            ("v1", State.NOT_COLLECTED, None),
            ("v2", State.PRESENT, 50.0),
        ]
        assert warps.points[1].created == START + timedelta(minutes=1)
        assert warps.points[1].grid == (64, 2, 1)


def test_prepared_series_give_what_payloads_give(store: Store) -> None:
    """Units that differ between reports, whole numbers, texts and states, over several chunks."""
    names = [f"metric_{n}" for n in range(40)]
    for minute in range(5):
        values = {name: Value(float(n * minute), "ns") for n, name in enumerate(names) if (n + minute) % 7}
        values["metric_3"] = Value(2**60 + minute, "inst" if minute % 2 else "thread")
        values["metric_33"] = Value(None, "", f"text {minute}")
        values["metric_17"] = Value(None, "%", state=State.FAILED)
        store.add(*imported(f"v{minute}", launch(**values), minute=minute))
    plain = store.series(names)
    store.prepare_series([*names, "nobody_has_this"], tail=1)
    assert store.series(names) == plain
    assert len(plain) == 40
    assert [point.value for point in plain[3].points][:2] == [
        Value(2**60, "thread"),
        Value(2**60 + 1, "inst"),
    ]
    assert plain[33].points[2].value.text == "text 2"
    series = store.series(["metric_33", "metric_3", "metric_33"])
    assert series == [plain[33], plain[3]]
    store.add(*imported("v9", launch(**{"metric_3": Value(1, "inst")}), minute=9))
    assert [point.version for point in store.series(["metric_3"])[0].points][-1] == "v9"


def test_timings_are_all_rows_of_timed_calls_however_many_statements_they_take(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oldest run first, without noise runs and forgotten ones; filters leave what was asked for."""
    for minute in (3, 0, 2, 1):
        place = {"mode": f"m{minute % 2}", "driver": f"57{minute}"}
        store.add(timed(f"v{minute % 2}", (1.0 + minute, 9.0), minute=minute, **place), {})
    store.add(timed("v0", (5.0, 6.0), minute=4, purpose=NOISE), {})
    forgotten = timed("v0", (7.0,), minute=5)
    store.add(forgotten, {}, Labels(hidden=True))
    rows = store.results(kind="latency", latest=False)
    monkeypatch.setattr(statements, "ROW_LIMIT", 3)
    timings = store.median_latencies()
    assert [one.created for one in timings] == sorted(one.created for one in rows)
    assert len(timings) == 4
    assert sorted(timings) == sorted(
        (
            *(row.result_id, row.run_id, row.version, row.created, row.median_ns),
            *(f"57{row.created.minute}", row.workload, row.gpu, row.mode, row.part, row.base_name),
        )
        for row in rows
    )
    assert store.median_latencies(family=rows[0].family, workload="another") == []


@pytest.mark.slow
def test_a_series_that_grows_is_lengthened_over_the_edges_of_its_chunks(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prepared again and again, in chunks of two names by four points, it gives what payloads give."""
    monkeypatch.setattr(prepared_series, "CHUNK", 4)
    monkeypatch.setattr(prepared_series, "BAND", 2)
    plain = Store.open(f"sqlite:///{tmp_path / 'plain.db'}")
    names = [DURATION, "late", "early", "never", "mixed"]
    order = [*range(2, 20), 0, 1, 25, 24, *range(26, 31)]  # some come late: then all is prepared anew
    for step, minute in enumerate(order):
        values = {"mixed": Value(2**60 + minute, "a") if minute % 3 else Value(None, "", f"text {minute}")}
        if minute > 9:
            values["late"] = Value(float(minute), "ns")
        if minute < 6:
            values["early"] = Value(None, "%", state=State.FAILED)
        run = imported(f"v{minute % 4}", launch(duration=float(minute), **values), minute=minute)
        for one in (store, plain):
            one.add(*run)
        if step % 3 == 0:
            assert store.prepare_series(names, tail=1) == 1
            assert store.prepare_series(names, tail=1) == 0
        assert store.series(names) == plain.series(names)
        assert store.series(names, latest=True) == plain.series(names, latest=True)
    [part] = store.part_arrays(names)
    series = {one.metric: one.points for one in store.series(names)}
    assert part.metrics == tuple(series) == (DURATION, "late", "early", "mixed")
    for row, points in enumerate(series.values()):
        states = [point.value.state for point in points]
        numbers = [math.nan if point.value.number is None else point.value.number for point in points]
        assert part.states[row].tolist() == states
        np.testing.assert_array_equal(part.numbers[row], np.array(numbers, float))
    points = series[DURATION]
    assert [part.versions[place] for place in part.version] == [point.version for point in points]
    run_ids = store.run_ids(part.run_keys.tolist())
    assert [run_ids[key] for key in part.run_keys.tolist()] == [point.run_id for point in points]
    assert part.result_ids.tolist() == [point.result_id for point in points]
    assert part.latest.tolist() == [point.latest for point in points]
    plain.close()


@pytest.mark.slow
def test_prepared_series_that_grow_together_past_the_row_limit_lose_no_point(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a long import does: six kernels by ten new runs, where a statement brings 20 rows."""
    runs = [
        imported("v1", *(launch(f"k{n}", minute + 1.0, ordinal=n) for n in range(6)), minute=minute)
        for minute in range(12)
    ]
    for run in runs[:2]:
        store.add(*run)
    assert store.prepare_series([DURATION], tail=1) == 6
    monkeypatch.setattr(payload_columns, "ROW_LIMIT", 20)
    for run in runs[2:]:
        store.add(*run)
    whole = [(f"k{n}", [minute + 1.0 for minute in range(12)]) for n in range(6)]
    assert [(part.partition("#")[0], numbers) for part, numbers in durations(store)] == whole
    store.prepare_series([DURATION], tail=1)
    assert [(part.partition("#")[0], numbers) for part, numbers in durations(store)] == whole


def timed(
    version: str, *blocks: tuple[float, ...], minute: int = 0, mode: str = "base", **provenance: str
) -> Run:
    """A run that timed one version: a block of samples, and a round number each, for each tuple."""
    samples = tuple(
        Samples(f"events; cache warm; clock {mode}", block, tuple(range(len(block)))) for block in blocks
    )
    created = START + timedelta(minutes=minute)
    return Run(
        f"{created:%Y%m%dT%H%M%S}-{version}-timed",
        COLLECT,
        created,
        {"gpu": "NVIDIA Test 1", **provenance},
        (Result("attention", version, "b1", samples=samples),),
    )


def test_latencies_come_with_their_samples_newest_run_or_history(store: Store) -> None:
    for minute in (3, 1, 2):
        store.add(timed("v1", (10.0 + minute, 20.0 + minute, 12.0), minute=minute), {})
    store.add(timed("v2", (5.0,), minute=1), {})
    store.add(*imported("v1", minute=9))
    [newest] = store.latencies(family="attention", version="v1", workload="b1", gpu="NVIDIA Test 1")
    assert (newest.median_ns, newest.latest, newest.mode) == (13.0, True, "events; cache warm; clock base")
    assert newest.samples.ns.tolist() == [13.0, 23.0, 12.0]
    assert newest.samples.rounds.tolist() == [0, 1, 2]
    history = store.latencies(family="attention", version="v1", latest=False)
    assert [one.created.minute for one in history] == [1, 2, 3]
    assert [one.run_id for one in history][-1] == newest.run_id
    assert [one.latest for one in history] == [False, False, True]
    two = store.latencies(family="attention", version="v1", latest=False, limit=2)
    assert [one.created.minute for one in two] == [2, 3]
    assert two.truncated
    assert store.latencies(mode="events; cache cold; clock base") == []
    assert {one.version for one in store.latencies()} == {"v1", "v2"}
    assert [one.version for one in store.latencies(run_id=newest.run_id)] == ["v1"]


def test_the_sessions_of_a_noise_run_are_pairs_and_nobodys_latency(store: Store) -> None:
    store.add(timed("v1", (10.0, 11.0)), {})
    noise = timed("v1", (1e6, 1.1e6), (1.2e6,), (1.3e6,), (1.4e6,), (9e6,), minute=5, purpose="noise")
    store.add(noise, {})
    store.add(timed("v2", (50.0,), (51.0,), minute=6, mode="none", purpose="noise"), {})
    pairs = store.noise_pairs()
    assert [(one.a.samples.ns[0], one.b.samples.ns[0]) for one in pairs] == [
        (1e6, np.float32(1.2e6)),
        (np.float32(1.3e6), np.float32(1.4e6)),
        (50.0, 51.0),
    ]
    assert [(one.clock_mode, one.workload_class) for one in pairs[1:]] == [
        ("base", "long"),
        ("none", "short"),
    ]
    assert len(store.noise_pairs(clock_mode="base", workload_class="long")) == 2
    assert store.noise_pairs(gpu="NVIDIA Test 2") == []
    assert [one.a.version for one in store.noise_pairs(workload_class="short")] == ["v2"]
    [latency] = store.latencies(family="attention")
    assert latency.samples.ns.tolist() == [10.0, 11.0]
    assert [one.kind for one in store.results()] == ["latency"]
    assert [one.run_id for one in store.results(kind="noise", version="v1")] == [noise.run_id] * 5
    assert len(store.results(run_id=noise.run_id)) == 5
    store.replace([(noise, {}, Labels(hidden=True))])
    assert {one.a.version for one in store.noise_pairs()} == {"v2"}


def test_a_noise_run_is_the_newest_state_of_no_side(store: Store) -> None:
    store.add(*imported("v1", family="attention", workload="b1"))
    store.add(timed("v1", (10.0,), (11.0,), minute=5, purpose="noise"), {})
    assert len(store.side(family="attention", version="v1").launches) == 1
    assert {cell.evidence for cell in store.cells("attention")} == {Evidence.MEASURED}
    assert store.versions("attention")[0].runs == 2


def test_a_version_on_several_workloads_of_one_run_has_one_run(store: Store) -> None:
    run = collected()
    more = (*run.results, replace(run.results[0], workload="b2"), replace(run.results[0], workload="b3"))
    store.add(replace(run, results=more), {})
    assert [(info.version, info.runs, info.workloads) for info in store.versions()] == [
        ("v2", 1, ("b1", "b2", "b3")),
        ("v3", 1, ("b1",)),
    ]


def test_the_kernel_filter_is_a_piece_of_the_name_or_a_pattern_for_all_of_it(store: Store) -> None:
    names = ["Gemm_a", "gemm_b", "gemmXb", "soft%max"]
    store.add(*imported("v1", *(launch(name, ordinal=n) for n, name in enumerate(names))))

    def found(kernel: str) -> list[str]:
        return [info.base_name for info in store.results(kernel=kernel)]

    assert found("gemm_") == ["Gemm_a", "gemm_b"]
    assert found("gemm?b#*") == ["gemm_b", "gemmXb"]
    assert found("gemm*b") == []
    assert found("%") == ["soft%max"]
    assert [series.base_name for series in store.series([DURATION], kernel="GEMM_B")] == ["gemm_b"]


def test_unknown_workloads_are_apart_from_known_ones(store: Store) -> None:
    store.add(*imported("v1", workload=None))
    store.add(*imported("v2", workload="big", minute=1))
    assert [(workload.workload, workload.versions) for workload in store.workloads("gemms")] == [
        (None, 1),
        ("big", 1),
    ]
    assert [info.version for info in store.results(workload="")] == ["v1"]
    assert [info.version for info in store.results(workload="big")] == ["v2"]
    assert len(store.results()) == 2
    assert len(store.series([DURATION], family="gemms")) == 2


def test_modes_that_may_not_be_compared_are_two_series(store: Store) -> None:
    store.add(*imported("v1", session=Session(clock_control="base")))
    store.add(*imported("v2", session=Session(clock_control="none"), minute=1))
    modes = [series.mode for series in store.series([DURATION])]
    assert modes == ["ncu; clock base; cache unknown", "ncu; clock none; cache unknown"]


def test_versions_are_those_of_now_whoever_changed_the_index(store: Store, url: str) -> None:
    def names() -> list[str]:
        return [info.version for info in store.versions("gemms")]

    store.add(*imported("v1"))
    store.versions("gemms").clear()  # an answer is the caller's own
    assert names() == ["v1"]
    store.add(*imported("v2", minute=1))
    assert names() == ["v1", "v2"]
    with Store.open(url) as of_another_process:
        of_another_process.add(*imported("v3", minute=2))
    assert names() == ["v1", "v2", "v3"]
    store.replace([], [store.runs()[0].run_id])
    assert names() == ["v1", "v2"]


def test_versions_come_in_the_order_of_their_first_run(store: Store) -> None:
    for version, minute in (("v10", 3), ("v2", 1), ("v10", 0), ("v2", 9)):
        store.add(*imported(version, minute=minute))
    versions = store.versions("gemms")
    assert [(info.version, info.runs) for info in versions] == [("v10", 2), ("v2", 2)]
    assert versions[1].last_created == START + timedelta(minutes=9)
    assert versions[0].gpus == ("NVIDIA Test 1",)
    assert store.versions("nothing") == []


def test_a_run_tells_its_provenance_and_its_reports(store: Store) -> None:
    session = Session("2024.1.1", "550.1", "12.4", START, "ncu ./a.out", "base", "none")
    run, reports = imported("v1", session=session)
    store.add(run, reports)
    [info] = store.runs(family="gemms")
    assert (info.family, info.version, info.workload, info.kind) == ("gemms", "v1", None, "import")
    assert (info.ncu_version, info.driver, info.cuda, info.clock_control) == (
        "2024.1.1",
        "550.1",
        "12.4",
        "base",
    )
    assert (info.gpu, info.compute_capability, info.launches) == ("NVIDIA Test 1", "9.0", 1)
    assert info.reports == run.reports
    assert info.evidence == {Evidence.MEASURED}
    assert store.run(run.run_id) == info
    assert store.run("nothing") is None
    assert store.provenances([run.run_id, "nothing"]) == {run.run_id: run.provenance}
    assert store.runs_with_reports([run.reports[0].sha256, "0" * 64]) == {run.reports[0].sha256: run.run_id}


def test_kernels_runs_and_metrics_are_listed_once_each(store: Store) -> None:
    first, second = (
        imported("v1", launch("b"), launch("a", ordinal=1), launch("b", ordinal=2), minute=minute)
        for minute in (1, 2)
    )
    other = imported("v1", launch("a", extra=Value(1)), family="others")
    for one in (second, first, other):
        store.add(*one)
    assert [*store.kernels()] == [("gemms", "a"), ("gemms", "b"), ("others", "a")]
    assert store.listed_run_ids() == [second[0].run_id, first[0].run_id, other[0].run_id]
    assert "extra" in store.metric_names()
    assert "extra" not in store.metric_names("gemms")
    store.replace([(first[0], first[1], Labels(hidden=True))])
    assert store.listed_run_ids() == [second[0].run_id, other[0].run_id]


def test_a_side_is_the_newest_run_of_a_version_whole(store: Store) -> None:
    store.add(*imported("v1", launch("a", 1.0), launch("b", 2.0, ordinal=1)))
    store.add(*imported("v1", launch("a", 3.0), minute=1, session=Session(driver="9")))
    side = store.side(family="gemms", version="v1")
    assert [one.base_name for one in side.launches] == ["a"]  # and not b of the run before
    assert side.launches[0].values[DURATION].number == 3.0
    assert (side.label, side.gpu, side.compute_capability, side.session.driver) == (
        "gemms/v1",
        "NVIDIA Test 1",
        "9.0",
        "9",
    )
    assert [info.result_id for info in store.results(run_id=side.run_id)] == list(side.result_ids)


def test_a_side_says_what_its_report_leaves_to_its_run(store: Store) -> None:
    run, reports = imported("v1", session=Session(driver="550.1"))
    provenance = {**run.provenance, "ncu_version": "2023.1.1.0", "driver": "9", "cuda": 12}
    store.add(replace(run, provenance=provenance), reports)
    session = store.side(family="gemms", version="v1").session
    assert (session.ncu_version, session.driver, session.cuda) == ("2023.1.1.0", "550.1", None)


def test_a_side_that_means_several_things_names_them(store: Store) -> None:
    store.add(*imported("v1", workload="small"))
    store.add(*imported("v1", workload="big", minute=1))
    with pytest.raises(UnknownName, match=r"big, small.*--workload"):
        store.side(family="gemms", version="v1")
    assert store.side(family="gemms", version="v1", workload="small").workload == "small"
    with pytest.raises(UnknownName, match="gemms/v7"):
        store.side(family="gemms", version="v7")
    store.add(*imported("v1", family="others"))
    with pytest.raises(UnknownName, match="gemms, others"):
        store.side(version="v1")


def test_a_forgotten_run_is_nowhere_but_under_its_own_id(store: Store) -> None:
    run, reports = imported("v1")
    store.add(run, reports, Labels(hidden=True))
    assert store.families() == store.versions() == store.workloads() == store.runs() == []
    assert store.results() == store.results(latest=False) == store.series([DURATION]) == []
    assert store.metric_names() == []
    with pytest.raises(UnknownName):
        store.side(family="gemms", version="v1")
    assert store.run(run.run_id) is not None
    assert len(store.side(run_id=run.run_id).launches) == 1


def collected() -> Run:
    """One collection with every kind of evidence: what later commands put into the index."""
    facts = {"registers": Value(40, "register/thread"), "spill_bytes": Value(0, "byte")}
    good = Result(
        family="attention",
        version="v2",
        workload="b1",
        problem={"dtype": "fp16"},
        check={"max_abs_error": 1e-3},
        samples=(
            Samples("events; cache warm", (10.0, 12.0, 11.0), (0, 0, 1), (1410.0,) * 3, (1,), (0, 0, 1)),
        ),
        facts=(
            Facts(Evidence.STATIC, "main", facts, "sm_90", opcodes={"HMMA": 64}),
            Facts(Evidence.MODELLED, "main", {"bank_conflicts": Value(96, "")}, "sm_90"),
        ),
    )
    wrong = Result("attention", "v3", "b1", status="wrong", reason="max_abs_error 0.5")
    return Run(
        "20250301T120000-collected", COLLECT, START, {"gpu": "NVIDIA H100", "host": "node"}, (good, wrong)
    )


def test_static_modelled_and_latency_results_are_kept_apart(store: Store) -> None:
    store.add(collected(), {})
    [run] = store.runs()
    assert (run.version, run.versions, run.family, run.launches) == (None, ("v2", "v3"), "attention", 0)
    assert run.evidence == set(Evidence)
    found = {(info.version, info.kind, str(info.evidence)): info for info in store.results()}
    assert set(found) == {
        ("v2", "facts", "static"),
        ("v2", "facts", "modelled"),
        ("v2", "latency", "measured"),
        ("v3", "cell", "measured"),
    }
    latency = found["v2", "latency", "measured"]
    assert (latency.median_ns, latency.samples, latency.gpu) == (11.0, 3, "NVIDIA H100")
    assert (found["v3", "cell", "measured"].status, found["v3", "cell", "measured"].reason) == (
        "wrong",
        "max_abs_error 0.5",
    )
    samples = store.samples([latency.result_id])[latency.result_id]
    assert samples.ns.tolist() == [10.0, 12.0, 11.0]
    assert (samples.rounds.tolist(), samples.throttled.tolist()) == ([0, 0, 1], [1])
    assert samples.processes.tolist() == [0, 0, 1]
    [registers] = store.series(["registers"], family="attention")
    assert (registers.evidence, registers.gpu, registers.points[0].value.number) == (
        Evidence.STATIC,
        "sm_90",
        40,
    )
    assert store.series(["registers"], evidence=Evidence.MEASURED) == []
    side = store.side(family="attention", version="v2", evidence=Evidence.STATIC)
    assert (side.dtype, side.evidence, side.launches[0].opcodes) == ("fp16", Evidence.STATIC, {"HMMA": 64})


def test_an_id_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(UnknownName, match="no result 42 "):
        store.load([42])


def test_rows_over_the_limit_are_left_out_and_that_is_said(store: Store) -> None:
    store.add(*imported("v1", *(launch("k", ordinal=n) for n in range(12))))
    cut = store.results(limit=5)
    assert len(cut) == 5
    assert cut.truncated
    assert not store.results(limit=12).truncated


def test_a_rebuild_that_fails_leaves_the_index_as_it_was(store: Store) -> None:
    store.add(*imported("v1"))
    before = made.everything(store)

    def items() -> Iterator[tuple[object, ...]]:
        yield (*imported("v2"), None)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        store.rebuild(items())
    assert made.everything(store) == before


def _add_runs(url: str, seed: int, count: int) -> None:
    store = Store.open(url)
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    for n in numbers:
        store.add(*imported(f"v{n % 5}", launch(duration=float(n)), minute=n))
    store.close()


@pytest.mark.slow
def test_two_processes_adding_the_same_runs_lose_and_double_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A spawned process imports the parent's __main__: that may be a page, left there by a test of the pages.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules[__name__])
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_runs, args=(url, seed, 40)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    store, alone = Store.open(url), f"sqlite:///{tmp_path / 'alone.db'}"
    _add_runs(alone, 3, 40)
    other = Store.open(alone)
    assert made.everything(store) == made.everything(other)
    assert len(store.runs()) == 40
    store.close()
    other.close()


def test_the_newest_state_is_read_from_the_partial_index_alone(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    store = Store.open(f"sqlite:///{path}")
    store.add(*imported("v1"))
    store.close()
    result = schema.result.c
    for column in (result.config, result.version):
        asked = select(result.duration if column is result.config else result.run)
        statement = asked.where(result.is_latest, column.in_([1, 2]))
        compiled = str(statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
        plan = sqlite3.connect(path).execute(f"EXPLAIN QUERY PLAN {compiled}")
        assert "COVERING INDEX result_latest" in " ".join(str(row) for row in plan)


def test_an_index_of_another_layout_is_emptied_to_be_filled_again(store: Store, url: str) -> None:
    store.add(*imported("v1"))
    store.put_notes({"decisions": "x"})
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '0' WHERE key = 'schema'")
    store.close()
    again = Store.open(url)
    assert again.runs() == []
    assert again.notes() == {}
    assert again.add(*imported("v1"))
    again.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://x/y", "SQLite or PostgreSQL"),
        ("nonsense", "PROFILER_DB"),
        ("sqlite:////proc/none/x.db", "PROFILER_DB"),
        ("postgresql://u:secret@127.0.0.1:1/x", "check the server"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line(url: str, said: str) -> None:
    with pytest.raises(ProfilerError, match=said) as caught:
        Store.open(url)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.server
def test_a_server_on_which_nothing_may_be_written_is_one_line(postgres: str) -> None:
    import psycopg

    with made.fresh_database(postgres) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            # of this database, whose name is made anew for every test
            connection.execute(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', "
                "current_database()); END $$"
            )
        with pytest.raises(ProfilerError, match="its user has to be allowed to make and change tables"):
            Store.open(url)


def test_a_file_that_is_no_database_says_how_to_make_the_index_again(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ProfilerError, match="index --rebuild"):
        Store.open(f"sqlite:///{path}")


def test_a_path_may_hold_what_a_url_cannot(tmp_path: Path) -> None:
    path = tmp_path / "a?b%20c#d" / "index.db"
    store = Store.open(path)
    store.add(*imported("v1"))
    store.close()
    assert path.is_file()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a?b%20c#d"]


def test_a_run_without_rows_of_results_changes_nothing_else(store: Store) -> None:
    store.add(*imported("v1"))
    empty = replace(collected(), results=())
    assert store.add(empty, {}) is True
    assert len(store.results()) == 1


@pytest.mark.parametrize("parts", [("one",), (), ("a", "b", "c")])
def test_a_run_that_fits_into_no_index_is_refused_and_named(store: Store, parts: tuple[str, ...]) -> None:
    run, reports = imported("v1", launch("a"), launch("b", ordinal=1))
    capture = replace(run.results[0].captures[0], parts=parts)
    bad = replace(run, results=(replace(run.results[0], captures=(capture,)),))
    with pytest.raises(BadBundle, match=run.run_id):
        store.add(bad, reports)
    assert store.runs() == []
    assert store.add_many([Store.make_rows(run, reports)]) == [True]


def test_numbers_that_no_database_takes_do_not_stop_the_index(store: Store) -> None:
    store.add(*imported("v1", launch(**{DURATION: Value(2**64 - 1, "ns")})))
    assert store.results()[0].duration_ns.number == 2.0**64
    with pytest.raises(BadBundle, match="launch number"):
        store.add(*imported("v2", launch(ordinal=2**40)))


def test_values_keep_their_bits_on_the_way_through_a_chunk(store: Store) -> None:
    numbers = [0.1, -0.0, 1e308, 5e-324, float(np.nextafter(1.0, 2.0))]
    for minute, number in enumerate(numbers):
        store.add(*imported("v1", launch(duration=number), minute=minute))
    store.prepare_series([DURATION], tail=1)
    [series] = store.series([DURATION])
    assert [point.value.number for point in series.points] == numbers
    assert [point.latest for point in series.points] == [False] * 4 + [True]


def test_what_runs_were_made_with_is_told_of_those_that_are_there(store: Store) -> None:
    run, reports = imported("v1", session=Session("2024.1.1", "550.1"))
    store.add(run, reports)
    environment = store.environments([run.run_id, "nothing"])[run.run_id]
    assert environment == ("9.0", "550.1", "2024.1.1", {"NVIDIA Test 1": "9.0"})
    assert environment.capability_on("NVIDIA Test 1") == "9.0"
