"""Regressions of launches: pairs as `compare` makes them, of one workload, and rows that name the launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.cli.output import text_of
from profiler.documents.regressions import RegressionsDocument
from profiler.evidence.launch import Launch, Session
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Value, pack_values
from profiler.regressions.cause import CauseFinder
from profiler.regressions.regression import RegressionKind
from profiler.regressions.report import RegressionReport, find_regressions
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests.made import ATTRIBUTES, imported

TABLE = load_metrics()
SESSION = Session(
    "2025.3.1", "570.1", "12.8", clock_control="base", cache_control="all", replay_mode="kernel"
)
US = 1e3


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.delenv("PROFILER_DB", raising=False)
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    opened = open_store(str(tmp_path))
    yield opened
    opened.close()


def launch(
    duration_us: float, blocks: int = 64, *, name: str = "gemm", registers: int = 32, **more: float
) -> Launch:
    """A launch of 128 threads per block; `more` are counters, with `__DOT__` for a point."""
    values = {
        "gpu__time_duration.sum": Value(duration_us * US, "ns"),
        "launch__registers_per_thread": Value(registers, "register/thread"),
        "launch__grid_size": Value(blocks, ""),
        "launch__block_size": Value(128, ""),
        **{key.replace("__DOT__", "."): Value(number, "inst") for key, number in more.items()},
    }
    packed = pack_values(values | ATTRIBUTES)
    return Launch(name, f"{name}(float*)", f"_Z{name}", (blocks, 1, 1), (128, 1, 1), 7, (), 0, packed)


def add(
    store: Store, minute: int, *launches: Launch, version: str = "head", workload: str | None = None
) -> str:
    """Import a report of these launches; its run's id."""
    numbered = [replace(launch, ordinal=index) for index, launch in enumerate(launches)]
    run, reports = imported(version, *numbered, minute=minute, session=SESSION, workload=workload)
    assert store.add(run, reports)
    return run.run_id


def look(store: Store) -> RegressionReport:
    return find_regressions(store, TABLE)


def unclear(report: RegressionReport) -> dict[str, int]:
    return {reason.why: count for reason, count in report.coverage.unclear.items()}


def test_every_row_names_the_kernel_and_its_grid(store: Store, tmp_path: Path) -> None:
    add(store, 0, launch(100, 64), launch(200, 32))
    add(store, 1, launch(150, 64), launch(300, 32))
    report = look(store)
    assert [(one.launch, one.grid, one.block) for one in report.regressions] == [
        ("gemm, grid 64", (64, 1, 1), (128, 1, 1)),
        ("gemm#1, grid 32", (32, 1, 1), (128, 1, 1)),
    ]
    assert report.regressions[0].what == "ncu duration of gemm, grid 64"
    document = RegressionsDocument(report, CauseFinder(store, location.open_root(str(tmp_path)), TABLE))
    assert [entry["grid"] for entry in document.to_dict()["regressions"]] == [[64, 1, 1], [32, 1, 1]]
    assert set(document.to_frame()["kernel"]) == {"gemm#0", "gemm#1"}
    assert any("of gemm#1, grid 32: +50" in sentence for sentence in document.sentences)
    printed = [line for line in text_of(document.blocks()).splitlines() if "! worse" in line]
    assert len(set(printed)) == 2
    assert "gemm#1, grid 32" in printed[1]


def test_what_moved_with_it_follows_the_split_as_part_of_one_sentence(store: Store, tmp_path: Path) -> None:
    for minute, factor, registers in ((0, 1, 32), (1, 2, 40)):
        counters = {
            "gpc__cycles_elapsed__DOT__max": 1e5 * factor,
            "gpc__cycles_elapsed__DOT__avg__DOT__per_second": 1e9,
            "smsp__inst_issued__DOT__sum": 1e6 * factor,
            "smsp__inst_executed__DOT__sum": 1e6 * factor,
        }
        add(store, minute, launch(100 * factor, registers=registers, **counters))
    causes, report = CauseFinder(store, location.open_root(str(tmp_path)), TABLE), look(store)
    words = [causes.find(regression).words for regression in report.regressions]
    assert any("µs slower" in line and "; with it: " in line for line in words)
    assert not any(".;" in line for line in words)
    printed = text_of(RegressionsDocument(report, causes).blocks()).splitlines()
    assert {line.split("  ")[1].strip() for line in printed if "! worse" in line} >= {"issued", "executed"}
    (explained,) = [line for line in printed if " of gemm, grid 64: exact; " in line]
    assert explained.startswith("  gemms/head executed, issued of gemm")


def test_another_grid_is_another_workload_and_no_regression(store: Store) -> None:
    add(store, 0, launch(100, 64, smsp__inst_executed__DOT__sum=1000))
    add(store, 1, launch(400, 256, smsp__inst_executed__DOT__sum=4000))
    report = look(store)
    assert report.regressions == ()
    assert "launches of another grid, so of another workload" in unclear(report)


def test_another_grid_of_a_declared_workload_is_one(store: Store) -> None:
    add(store, 0, launch(100, 64), workload="b4")
    add(store, 1, launch(400, 256), workload="b4")
    (regression,) = look(store).regressions
    assert regression.effect == pytest.approx(3.0)


def test_another_grid_with_other_code_is_one(store: Store) -> None:
    add(store, 0, launch(100, 64))
    add(store, 1, launch(400, 256, registers=40))
    (regression,) = look(store).regressions
    assert regression.effect == pytest.approx(3.0)


def test_a_size_is_held_against_the_last_run_of_that_size(store: Store) -> None:
    first = add(store, 0, launch(100, 64, smsp__inst_executed__DOT__sum=1000))
    add(store, 1, launch(30, 16, smsp__inst_executed__DOT__sum=250))
    add(store, 2, launch(150, 64, smsp__inst_executed__DOT__sum=1500))
    found = {one.series.concept: one for one in look(store).regressions}
    assert set(found) == {"duration", "inst_executed"}
    assert {one.before.run_id for one in found.values()} == {first}
    assert found["inst_executed"].a.number == 1000


def test_a_step_to_what_may_be_another_size_is_none_whatever_came_after(store: Store) -> None:
    counts = [(1000, 500), (5380, 2630)]
    for minute, (executed, sectors) in enumerate(counts):
        add(
            store,
            minute,
            launch(100, 64, smsp__inst_executed__DOT__sum=executed, lts__t_sectors__DOT__sum=sectors),
        )
    add(
        store,
        2,
        launch(110, 64, registers=40, smsp__inst_executed__DOT__sum=2600, lts__t_sectors__DOT__sum=5000),
    )
    report = look(store)
    assert {one.series.concept for one in report.regressions} <= {"duration"}
    assert unclear(report)["launches that may be of another problem size"] > 0


def test_what_is_back_at_its_old_level_is_not_worse_now(store: Store) -> None:
    add(store, 0, launch(100), version="a")
    add(store, 1, launch(200), version="b")
    assert [one.series.version for one in look(store).regressions] == ["b"]
    add(store, 2, launch(101), version="c")
    assert look(store).regressions == ()


def test_a_place_that_the_newest_run_has_no_more_is_not_worse_now(store: Store) -> None:
    """The second launch got slower, and then the kernel was profiled once alone."""
    add(store, 0, launch(100), launch(100), version="a")
    add(store, 1, launch(100), launch(200), version="b")
    assert [one.series.part for one in look(store).regressions] == ["gemm#1"]
    add(store, 2, launch(100), version="c")
    assert look(store).regressions == ()


def test_a_kernel_that_the_newest_run_does_not_profile_is_worse_still(store: Store) -> None:
    add(store, 0, launch(100), version="a")
    add(store, 1, launch(200), version="b")
    add(store, 2, launch(100, name="softmax"), version="c")
    assert [one.series.part for one in look(store).regressions] == ["gemm#0"]


def test_what_compare_calls_ambiguous_is_not_paired_by_its_place(store: Store) -> None:
    add(store, 0, *(launch(100 + 100 * kind) for kind in range(3)))
    add(store, 1, *(launch(500 + 200 * kind) for kind in range(6)))
    report = look(store)
    assert report.regressions == ()
    assert unclear(report)["launches of a kernel that cannot be told apart in the two runs"] == 3


def test_a_launch_whose_place_moved_is_held_against_its_own(store: Store) -> None:
    """A new first launch moves the others on by a place."""
    add(store, 0, launch(100, 64), launch(500, 32))
    add(store, 1, launch(900, 7, registers=40), launch(150, 64), launch(500, 32))
    (regression,) = look(store).regressions
    assert (regression.series.part, regression.grid) == ("gemm#1", (64, 1, 1))
    assert (regression.a.number, regression.b.number) == (100 * US, 150 * US)
    assert regression.kind is RegressionKind.RUNS
