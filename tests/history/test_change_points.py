"""The steps of stored series: where they can lie, what they are called, and what else changed there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import COLLECT, Facts, Result, Run, Samples
from profiler.cli import main
from profiler.compare.same_code import CodeChange
from profiler.errors import UnknownName
from profiler.evidence import metric_table
from profiler.evidence.values import Evidence, Value
from profiler.history import step_words
from profiler.history.change_points import RUNS, VERSIONS, History, change_points_in, find_change_points
from profiler.history.shared_steps import find_shared_steps
from profiler.history.trend import load_latency_trends, load_trends
from profiler.statistics.changepoint import MIN_POINTS, LevelKind, change_points
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from tests import made

START = datetime(2026, 1, 1, tzinfo=UTC)
MODE = "events; cache warm; clock none"
GPU = "NVIDIA H100"
HERE = {"gpu": GPU, "compute_capability": "9.0", "driver": "570.1", "cuda": "13.0", "nvcc": "13.0.88"}
HERE |= {"gpu_uuid": "GPU-1", "clock_control": "none", "ncu_version": "2026.1"}


@dataclass
class Place:
    """A data folder whose runs a test makes day by day."""

    root: LocalRoot
    store: Store
    days: int = 0

    def run(
        self,
        medians: Mapping[str, float],
        *,
        sass: str | None = "a",
        source: str | None = "s",
        told: Mapping[str, Any] | None = None,
    ) -> str:
        """One run with the latency, and the hash of the machine code, of some versions."""
        code = Facts(
            Evidence.STATIC, "main", {"static__sass_sha256": Value(None, text=sass or "")}, target="sm_90"
        )
        results = tuple(
            Result(
                "attention",
                version,
                "b1 h8",
                source_sha256=source,
                samples=(Samples(MODE, (ns, ns * 1.01, ns * 0.99), (0, 1, 2)),),
                facts=(code,) if sass else (),
            )
            for version, ns in medians.items()
        )
        run = Run(
            f"run-{self.days:03d}",
            COLLECT,
            START + timedelta(days=self.days),
            {**HERE, **(told or {})},
            results,
        )
        self.days += 1
        assert bundle.seal(self.root, run, {})
        self.store.add(run, {})
        return run.run_id

    def ask(self, name: str = "latency", **filters: Any) -> list[History]:
        return find_change_points(self.store, self.root, metric_table.load_metrics(), name, **filters)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = Store.open(tmp_path / "index.db")
    yield Place(LocalRoot(tmp_path), store)
    store.close()


def wobble(seed: int, level: float, count: int) -> list[float]:
    return list(level * np.exp(np.random.default_rng(seed).normal(0, 0.003, count)))


def test_a_slower_run_of_the_same_sass_is_the_environment(place: Place) -> None:
    for ns in wobble(1, 1e5, 12):
        place.run({"v1": ns})
    for ns in wobble(2, 1.05e5, 6):
        place.run({"v1": ns}, told={"driver": "580.2"})
    (history,) = place.ask()
    (change,) = history.steps
    assert (change.verdict, change.by_direction, change.is_alarm) == (Verdict.CHANGED, Verdict.WORSE, False)
    assert change.reason.startswith("the machine code is the same: the environment moved; t ")
    assert change.likeliest.run_id == "run-012"
    assert (change.before.run_id, change.after.run_id) == ("run-011", "run-012")
    assert change.change_point.size_low < 0.05 < change.change_point.size_high
    (moved,) = change.circumstances.environment
    assert moved == ("driver", "570.1", "580.2", "run-012")
    assert change.circumstances.code.word == "same"
    assert change.circumstances.cause == "environment"


def test_a_faster_run_of_other_sass_is_the_code(place: Place) -> None:
    for ns in wobble(3, 1e5, 10):
        place.run({"v1": ns})
    for ns in wobble(4, 0.9e5, 10):
        place.run({"v1": ns}, sass="b", source="t")
    ((change,),) = (history.steps for history in place.ask())
    assert change.verdict is Verdict.BETTER
    assert change.circumstances.code[:2] == ("changed", "SASS of main differs")
    assert change.circumstances.cause == "code"
    assert change.circumstances.unknown == ("SM clock, MHz",)


@pytest.mark.slow
def test_a_slower_run_of_equal_sass_from_other_source_is_worse(place: Place) -> None:
    for ns in wobble(1, 1e5, 12):
        place.run({"v1": ns})
    for ns in wobble(2, 1.05e5, 6):
        place.run({"v1": ns}, source="t")
    ((change,),) = (history.steps for history in place.ask())
    assert (change.verdict, change.is_alarm) == (Verdict.WORSE, True)
    assert change.circumstances.cause == "code or environment"
    assert change.circumstances.code.why == "SASS has the same hash; source or flags differ"


def states(*levels: float, count: int = 9) -> list[float]:
    return [ns for seed, level in enumerate(levels) for ns in wobble(30 + seed, level, count)]


@pytest.mark.slow
def test_a_level_that_was_there_before_is_a_state_of_the_machine(place: Place) -> None:
    for ns in states(1e5, 1.06e5, 1e5, 1.06e5):
        place.run({"v1": ns})
    (history,) = place.ask()
    assert [step.level for step in history.steps] == [LevelKind.LEFT, LevelKind.KNOWN, LevelKind.KNOWN]
    assert {step.verdict for step in history.steps} == {Verdict.CHANGED}
    assert not any(step.is_alarm for step in history.steps)
    assert step_words.verdict_words(history.steps[2]) == "Δ back in a known state"
    assert step_words.level_kind_words(history.steps[2]) == (
        "back in a known state, as since v1 2026-01-10 00:00"
    )
    assert step_words.level_kind_words(history.steps[0]) == "did not last, back since v1 2026-01-19 00:00"
    assert step_words.due_to_words(history.steps[0]) == "state of the machine"


@pytest.mark.slow
def test_a_new_level_after_states_is_worse(place: Place) -> None:
    for number, ns in enumerate(states(1e5, 1.06e5, 1e5, 1.06e5, 1.2e5)):
        place.run({"v1": ns}, sass="a" if number < 36 else "b")
    (history,) = place.ask()
    assert (history.steps[-1].verdict, history.steps[-1].level) == (Verdict.WORSE, LevelKind.NEW)
    assert [step.is_alarm for step in history.steps] == [False, False, False, True]


@pytest.mark.slow
def test_a_level_that_came_back_with_other_code_is_judged(place: Place) -> None:
    for half, level in enumerate((1e5, 1.06e5, 1e5)):
        for ns in wobble(40 + half, level, 9):
            place.run({"v1": ns}, sass="ab"[half % 2])
    (history,) = place.ask()
    assert [step.verdict for step in history.steps] == [Verdict.WORSE, Verdict.BETTER]
    assert {step.level for step in history.steps} == {LevelKind.NEW}


@pytest.mark.slow
def test_a_slow_drift_is_no_step_and_says_from_where_to_where(place: Place) -> None:
    for day, ns in enumerate(wobble(41, 1e5, 80)):
        place.run({"v1": ns * (1 + 0.2 * day / 80)})
    (history,) = place.ask()
    assert history.steps == ()
    (drift,) = history.drifts
    assert 0.17 < drift.size < 0.22
    assert (drift.first.run_id, drift.last.run_id) == ("run-000", "run-079")
    words = step_words.drift_words(drift, "ns")
    assert words.startswith("drifts +")
    assert words.endswith(": no step")


@pytest.mark.slow
def test_steps_that_many_series_share_on_one_run_are_one_alarm(place: Place) -> None:
    names = [f"v{number}" for number in range(5)]
    noise = [wobble(50 + number, 1e5, 20) for number in range(5)]
    for day in range(20):
        slow = 1.05 if day >= 12 else 1.0
        medians = {name: noise[at][day] * (slow if name != "v4" else 1.0) for at, name in enumerate(names)}
        place.run(medians, told={"driver": "570.1" if day < 12 else "580.2"})
    histories = place.ask()
    (shared,) = find_shared_steps(histories)
    assert (shared.run_id, shared.verdict, len(shared.steps), shared.series) == (
        "run-012",
        Verdict.WORSE,
        4,
        5,
    )
    assert [tuple(change) for change in shared.environment] == [("driver", "570.1", "580.2", "run-012")]
    words = step_words.shared_words(shared)
    assert words.startswith("one alarm, due to the environment: driver: 4 of 5 series ! worse +")
    assert "since the run of 2026-01-13 00:00 (driver 570.1 → 580.2)" in words


@pytest.mark.slow
def test_steps_with_other_code_share_nothing(place: Place) -> None:
    noise = [wobble(60 + number, 1e5, 20) for number in range(4)]
    for day in range(20):
        slow = 1.05 if day >= 12 else 1.0
        place.run({f"v{at}": noise[at][day] * slow for at in range(4)}, sass="a" if day < 12 else "b")
    assert find_shared_steps(place.ask()) == ()


@pytest.mark.slow
def test_series_with_other_code_do_not_count_among_those_that_could_share_a_step(place: Place) -> None:
    noise = [wobble(70 + number, 1e5, 20) for number in range(7)]
    for day in range(20):
        slow = 1.05 if day >= 12 else 1.0
        place.run({f"v{at}": noise[at][day] * slow for at in range(7)})
    histories = [history for history in place.ask() if history.over == RUNS]
    for at, history in enumerate(histories[:4]):
        (step,) = history.steps
        other_code = replace(step.circumstances, code=CodeChange("changed", "SASS of main differs"))
        histories[at] = replace(history, steps=(replace(step, circumstances=other_code),))
    (shared,) = find_shared_steps(histories)
    assert (len(shared.steps), shared.series) == (3, 3)


def test_without_hashes_nobody_guesses_about_the_code(place: Place) -> None:
    for ns in (*wobble(5, 1e5, 10), *wobble(6, 1.1e5, 10)):
        place.run({"v1": ns}, sass=None, source=None)
    ((change,),) = (history.steps for history in place.ask())
    assert change.circumstances.code.word == "unknown"
    assert change.circumstances.cause == "unknown"


@pytest.mark.parametrize(
    ("sources", "compilers", "word"),
    [
        (("s", "s"), ("13.0", "13.0"), "same"),
        (("s", "s"), ("13.0", "13.1"), "unknown"),
        (("s", "t"), ("13.0", "13.0"), "changed"),
    ],
)
def test_without_sass_source_and_compiler_tell(
    place: Place, sources: tuple[str, str], compilers: tuple[str, str], word: str
) -> None:
    for half in range(2):
        for ns in wobble(7 + half, (1e5, 1.1e5)[half], 9):
            place.run({"v1": ns}, sass=None, source=sources[half], told={"nvcc": compilers[half]})
    ((change,),) = (history.steps for history in place.ask())
    assert change.circumstances.code.word == word


def test_a_clock_that_moved_is_named(place: Place) -> None:
    for half, clock in enumerate((1980.0, 1755.0)):
        for ns in wobble(9 + half, (1e5, 1.1e5)[half], 9):
            place.run({"v1": ns}, told={"states": [{"during": [{"round": 0, "sm_mhz": clock}]}]})
    ((change,),) = (history.steps for history in place.ask())
    assert change.circumstances.environment == (("SM clock, MHz", "1980", "1755", "run-009"),)
    assert change.circumstances.unknown == ()


def test_runs_of_several_versions_give_each_its_own_history(place: Place) -> None:
    slow, fast = wobble(11, 2e5, 16), wobble(12, 1e5, 16)
    for day in range(16):
        place.run({"v1": slow[day], "v2": fast[day] * (1.08 if day >= 8 else 1)})
    found = {(history.over, history.version): history for history in place.ask()}
    assert set(found) == {(RUNS, "v1"), (RUNS, "v2"), (VERSIONS, None)}
    assert found[RUNS, "v1"].steps == ()
    (change,) = found[RUNS, "v2"].steps
    assert change.likeliest.run_id == "run-008"
    assert {point.version for point in found[RUNS, "v2"].series.points} == {"v2"}
    assert [point.run_id for point in found[VERSIONS, None].series.points] == ["run-015", "run-015"]
    assert found[VERSIONS, None].not_judged == f"2 points, a step needs {MIN_POINTS}"


def test_one_version_can_be_asked_for(place: Place) -> None:
    for ns in wobble(13, 1e5, 9):
        place.run({"v1": ns, "v2": 2 * ns})
    (history,) = place.ask(version="v2")
    assert (history.over, history.version) == (RUNS, "v2")
    with pytest.raises(UnknownName, match=r"no version 'v3'.*v1"):
        place.ask(version="v3")


def test_versions_that_follow_one_another_are_one_history(place: Place) -> None:
    for day, ns in enumerate((*wobble(14, 1e5, 8), *wobble(15, 0.8e5, 8))):
        place.run({f"commit-{day}": ns}, sass=str(day // 8))
    (history,) = place.ask()
    assert (history.over, history.version) == (RUNS, None)
    (change,) = history.steps
    assert change.likeliest.version == "commit-8"


def test_a_wrong_version_is_no_part_of_a_level(place: Place) -> None:
    for day, ns in enumerate(wobble(16, 1e5, 20)):
        place.run({f"commit-{day}": ns * (0.2 if 8 <= day < 14 else 1)})
    wrong = {f"commit-{day}": "wrong" for day in range(8, 14)}
    (history,) = place.ask(wrong={"attention": wrong})
    assert history.steps == ()
    assert sum(point.on_line for point in history.series.points) == 14


def test_a_bundle_that_is_gone_leaves_the_code_unknown(place: Place) -> None:
    for ns in (*wobble(17, 1e5, 9), *wobble(18, 1.1e5, 9)):
        place.run({"v1": ns})
    (place.root.folder / "runs" / "run-009" / "run.json").unlink()
    ((change,),) = (history.steps for history in place.ask())
    assert change.circumstances.code.word == "unknown"


def test_an_unknown_family_is_refused(place: Place) -> None:
    place.run({"v1": 1e5})
    with pytest.raises(UnknownName, match="no family 'atention'"):
        place.ask(family="atention")


def test_a_fact_without_a_better_direction_is_changed(place: Place) -> None:
    for day in range(18):
        value = Value(72 if day < 9 else 80, "register/thread")
        facts = Facts(Evidence.STATIC, "main", {"static__registers": value}, target="sm_90")
        run = Run(
            f"run-{day:03d}",
            COLLECT,
            START + timedelta(days=day),
            HERE,
            (Result("attention", "v1", facts=(facts,)),),
        )
        assert bundle.seal(place.root, run, {})
        place.store.add(run, {})
    ((change,),) = (history.steps for history in place.ask("static_registers"))
    assert change.verdict is Verdict.CHANGED
    assert (change.change_point.before, change.change_point.after) == (72, 80)
    assert [point.run_id for point in change.possible] == ["run-009"]


@pytest.mark.slow
def test_counters_of_another_name_are_not_joined(place: Place) -> None:
    for ns in (*wobble(19, 1e5, 10), *wobble(20, 2e5, 10)):
        place.run({"v1": ns})
    (series,) = load_latency_trends(place.store)
    assert len(change_points_in(series, None)) == 1
    from dataclasses import replace

    points = tuple(
        point._replace(metric="another") if place_ >= 10 else point
        for place_, point in enumerate(series.points)
    )
    assert change_points_in(replace(series, points=points), None) == []


@pytest.mark.slow
def test_the_command_prints_the_step_and_its_json(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for ns in wobble(21, 1e5, 10):
        place.run({"v1": ns})
    for ns in wobble(22, 1.2e5, 5):
        place.run({"v1": ns}, told={"driver": "580.2"})
    monkeypatch.setenv("PROFILER_DATA", str(place.root.folder))
    assert main(["trend", "--steps", "latency"]) == 0
    output = capsys.readouterr().out
    assert "Δ changed" in output
    assert "driver 570.1 → 580.2" in output
    assert "profiler compare run-013 run-014" in output
    assert main(["trend", "--steps", "latency", "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    (change,) = series["changes"]
    assert change["cause"] == "environment"
    assert change["size_interval"][0] < 0.2 < change["size_interval"][1]
    assert main(["trend", "--steps", "duration"]) == 3
    assert "import" in capsys.readouterr().err


@pytest.fixture(scope="module")
def esmm(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, LocalRoot]]:
    folder = tmp_path_factory.mktemp("data")
    store = Store.open(folder / "index.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROFILER_DATA", str(folder))
        import_paths([reports / "esmm"], store=store)
    yield store, LocalRoot(folder)
    store.close()


def test_six_commits_are_too_few_to_tell_a_step(esmm: tuple[Store, LocalRoot]) -> None:
    histories = find_change_points(*esmm, metric_table.load_metrics(), "duration")
    assert len(histories) == 13
    assert all(history.not_judged and not history.steps for history in histories)
    basic = next(history for history in histories if history.series.base_name == "basic")
    assert basic.not_judged == f"6 points, a step needs {MIN_POINTS}"


def _real_noise(store: Store) -> Sequence[float]:
    """The durations of kernels that no commit touched, each relative to its own median, one after another."""
    untouched = ("basic", "gmem_coalesce", "smem_blocking", "one_blocktiling", "two_blocktiling")
    found: list[float] = []
    for trend in load_trends(store, "duration", metric_table.load_metrics(), over="time"):
        if trend.base_name in (*untouched, "ampere_sgemm_128x64_nn", "vectorized_blocktiling"):
            numbers = [float(p.value.number) for p in trend.points if p.value.number is not None]
            found += list(np.array(numbers) / np.median(numbers))
    return found


@pytest.mark.long
def test_the_noise_of_real_commits_raises_no_alarm_and_hides_no_step(esmm: tuple[Store, LocalRoot]) -> None:
    noise = np.array(_real_noise(esmm[0]))
    assert len(noise) > 35
    assert change_points(noise) == ()
    noise[-6:] *= 1.03
    (planted,) = change_points(noise)
    assert planted.index == len(noise) - 6
    assert planted.size_low < 0.03 < planted.size_high


@pytest.mark.parametrize(("workload", "verdict"), [(None, Verdict.NOT_COMPARABLE), ("b4", Verdict.WORSE)])
def test_a_step_to_another_grid_is_of_another_workload(
    place: Place, workload: str | None, verdict: Verdict
) -> None:
    small = made.launch("gemm", 1e6)
    for minute in range(2 * MIN_POINTS):
        is_later = minute >= MIN_POINTS
        of_run = replace(small, grid=(512, 2, 1) if is_later else small.grid)
        of_run = replace(of_run, values=made.launch("gemm", 8e6 if is_later else 1e6 + minute).values)
        place.store.add(*made.imported("v1", of_run, minute=minute, workload=workload))
    (step,) = place.ask("duration", family="gemms")[0].steps
    assert step.verdict is verdict
    if workload is None:
        assert step.reason == "another workload: grid 64 × 2 → 512 × 2"
