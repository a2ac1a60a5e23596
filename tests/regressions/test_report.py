"""What is worse now: planted in seeded rounds, in facts and in checks, and nothing where nothing moved."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler import cli
from profiler.bundles import decisions, location
from profiler.bundles.run import Run, Samples
from profiler.compare.counter_noise import CounterNoise
from profiler.compare.noise_model import NoiseModel
from profiler.evidence import metric_table
from profiler.gate import acknowledgement
from profiler.history import baselines, lineage
from profiler.history.trend import load_latency_trends
from profiler.regressions.cause import CauseFinder
from profiler.regressions.regression import CORRECTNESS, Regression, RegressionKind
from profiler.regressions.report import RegressionReport, find_regressions
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.counters import Wobble
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from tests import lineages, timed_runs
from tests.timed_runs import GPU, WARM, WORKLOAD, run


def look(data: Path) -> RegressionReport:
    store, root = open_store(str(data)), location.open_root(str(data))
    records = decisions.load_decisions(root)
    report = find_regressions(
        store,
        metric_table.load_metrics(),
        lineages=lineage.load_lineages(root, store),
        noise=NoiseModel.of_store(lambda: store),
        acknowledged=acknowledgement.list_acknowledgements(records),
        pins=baselines.list_pins(records),
    )
    store.close()
    return report


def only(data: Path) -> Regression:
    (regression,) = look(data).regressions
    return regression


def due_to(data: Path, one: Regression) -> tuple[str, str]:
    store = open_store(str(data))
    told = CauseFinder(store, location.open_root(str(data)), metric_table.load_metrics()).find(one)
    store.close()
    return told.due_to, told.words


@pytest.fixture(autouse=True)
def own_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PROFILER_DB", raising=False)
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))


def wander(seed: int, count: int) -> list[float]:
    return list(np.exp(np.random.default_rng(seed).normal(0, 0.003, count)))


class TestCalls:
    @pytest.mark.slow
    def test_a_planted_3_percent_between_two_runs_is_worse_by_the_floor(self, tmp_path: Path) -> None:
        timed_runs.seal(
            tmp_path,
            timed_runs.noise(170e3, 0.003),
            run({"v1": 170e3}, 0, sass={"v1": "a"}),
            run({"v1": 175.1e3}, 1, sass={"v1": "b"}),
        )
        regression = only(tmp_path)
        assert (regression.kind, regression.series.concept, regression.series.version) == (
            RegressionKind.RUNS,
            "latency",
            "v1",
        )
        assert regression.effect == pytest.approx(0.03, abs=0.008)
        assert regression.interval is not None
        assert regression.interval.low > 0
        assert regression.floor is not None
        assert regression.since == "v1 2026-03-02 12:00"
        assert "noise floor: " in regression.how_sure
        assert due_to(tmp_path, regression) == ("code", "SASS of main differs")

    @pytest.mark.slow
    def test_the_floor_is_that_of_the_driver_of_the_newer_run(self, tmp_path: Path) -> None:
        newer = {"driver": "580.1"}
        timed_runs.seal(
            tmp_path,
            timed_runs.noise(170e3, 0.003),
            run({"v1": 170e3}, 0, told=newer),
            run({"v1": 175.1e3}, 1, told=newer),
        )
        report = look(tmp_path)
        assert report.regressions == ()
        ((unclear, count),) = report.coverage.unclear.items()
        assert (count, unclear.command) == (1, "profiler collect --noise VERSION")
        assert unclear.why == f"no A/A floor of {GPU}, {WARM}, driver 580.1"

    def test_the_same_build_twice_is_no_regression(self, tmp_path: Path) -> None:
        timed_runs.seal(
            tmp_path, timed_runs.noise(170e3, 0.003), run({"v1": 170e3}, 0), run({"v1": 170.3e3}, 1)
        )
        report = look(tmp_path)
        assert report.regressions == ()
        assert report.coverage.pairs == 1
        assert not report.coverage.unclear

    def test_without_a_floor_two_runs_cannot_be_judged_and_the_command_is_named(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, run({"v1": 170e3}, 0), run({"v1": 200e3}, 1))
        report = look(tmp_path)
        assert report.regressions == ()
        ((unclear, count),) = report.coverage.unclear.items()
        assert count == 1
        assert unclear.why == f"no A/A floor of {GPU}, {WARM}, driver 570.1"
        assert unclear.command == "profiler collect --noise VERSION"

    @pytest.mark.slow
    @pytest.mark.parametrize(("slower", "is_worse"), [(1.03, False), (1.06, True)])
    def test_newest_runs_are_judged_together_as_by_a_gate(
        self, tmp_path: Path, slower: float, is_worse: bool
    ) -> None:
        """Among 20 rows a change that alone is beyond the floor may be chance; of both it is the same one."""

        def night(day: float, factor: float) -> Run:
            cells = [
                run(
                    {"v1": 1.8e6 * (factor if number == 7 else 1)},
                    day,
                    seed=number,
                    sass={"v1": f"code {day}"},
                    family=timed_runs.FAMILY if number % 2 else "norm",
                    workload=f"{1 + number}x8x2048x64",
                )
                for number in range(20)
            ]
            return replace(cells[0], results=tuple(result for cell in cells for result in cell.results))

        floor = timed_runs.noise(1.8e6, 0.006)
        of_norm = replace(
            floor,
            run_id=f"{floor.run_id}-norm",
            results=tuple(replace(result, family="norm") for result in floor.results),
        )
        timed_runs.seal(tmp_path, floor, of_norm, night(0, 1), night(1, slower))
        report = look(tmp_path)
        assert [one.series.workload for one in report.open] == ["8x8x2048x64"] * is_worse
        unclear = [reason.why for reason in report.coverage.unclear]
        assert unclear == ["slower, but within chance among all newest timings of its run"] * (not is_worse)
        assert cli.main(["gate", "--json"]) == (1 if is_worse else 3)

    def test_a_cell_alone_is_judged_by_itself(self, tmp_path: Path) -> None:
        nights = [
            run({"v1": 1.8e6 * factor}, day, seed=3, sass={"v1": f"code {day}"})
            for day, factor in enumerate((1.0, 1.03))
        ]
        timed_runs.seal(tmp_path, timed_runs.noise(1.8e6, 0.006), *nights)
        assert only(tmp_path).is_open

    @pytest.mark.slow
    def test_a_slower_version_of_one_run_is_judged_by_the_rounds(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, run({"v1": 170e3, "v2": 175.1e3}, 0))
        regression = only(tmp_path)
        assert (regression.kind, regression.held_against) == (
            RegressionKind.BASELINE,
            "the version before, v1",
        )
        assert regression.before.run_id == regression.now.run_id
        assert regression.interval_kind == "99 %"
        assert regression.detectable is not None

    @pytest.mark.slow
    @pytest.mark.parametrize("count", [2, 20])
    def test_timed_calls_of_another_dtype_are_worse_for_none(self, tmp_path: Path, count: int) -> None:
        """One label of a workload, fp16 before and fp32 since: `compare` refuses the two runs."""

        def made(number: int) -> Run:
            is_after = number >= count // 2
            timed = run({"v1": 175.1e3 if is_after else 170e3}, number)
            problem = {"dtype": "float32" if is_after else "float16"}
            return replace(timed, results=tuple(replace(one, problem=problem) for one in timed.results))

        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *map(made, range(count)))
        report = look(tmp_path)
        assert report.regressions == ()
        assert any("dtype" in reason.why for reason in report.coverage.unclear)

    def test_a_faster_version_is_none(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, run({"v1": 175.1e3, "v2": 170e3}, 0))
        assert look(tmp_path).regressions == ()

    def test_a_step_is_dated_to_the_runs_it_can_lie_in_and_same_code_is_the_environment(
        self, tmp_path: Path
    ) -> None:
        levels = [170e3 * at for at in wander(3, 12)] + [178e3 * at for at in wander(4, 8)]
        runs = [
            run({"v1": ns}, day, told={"driver": "570.1" if day < 12 else "580.2"})
            for day, ns in enumerate(levels)
        ]
        timed_runs.seal(tmp_path, *runs)
        regression = only(tmp_path)
        assert regression.kind == RegressionKind.STEP
        assert [spot.run_id for spot in regression.possible] == [runs[12].run_id]
        assert regression.now.run_id == runs[-1].run_id
        assert regression.interval is not None
        assert regression.interval.low < 178 / 170 - 1 < regression.interval.high
        word, words = due_to(tmp_path, regression)
        assert word == "environment"
        assert words == "the machine code is the same: the environment moved; driver 570.1 → 580.2"

    def test_a_step_that_was_undone_is_not_worse_now(self, tmp_path: Path) -> None:
        levels = [*[170e3] * 10, *[178e3] * 10, *[169e3] * 10]
        wobble = wander(5, 30)
        timed_runs.seal(
            tmp_path,
            *(run({"v1": ns * at}, day) for day, (ns, at) in enumerate(zip(levels, wobble, strict=True))),
        )
        assert look(tmp_path).regressions == ()

    def test_what_got_worse_some_runs_ago_is_worse_still_before_a_change_point_can_tell(
        self, tmp_path: Path
    ) -> None:
        levels = (170e3, 170.2e3, 177e3, 177.2e3, 176.9e3)
        runs = [run({"v1": ns}, day) for day, ns in enumerate(levels)]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        regression = only(tmp_path)
        assert (regression.kind, regression.held_against) == (RegressionKind.RUNS, "")
        assert (regression.before.run_id, regression.possible[0].run_id) == (runs[1].run_id, runs[2].run_id)
        assert regression.now.run_id == runs[4].run_id

    def test_one_fast_run_among_equal_ones_is_no_step(self, tmp_path: Path) -> None:
        levels = (170e3, 170.2e3, 163e3, 170.1e3, 170.3e3)
        runs = [run({"v1": ns}, day) for day, ns in enumerate(levels)]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        assert look(tmp_path).regressions == ()

    @pytest.mark.slow
    def test_a_newest_run_that_is_worse_again_is_not_hidden_by_an_older_step(self, tmp_path: Path) -> None:
        levels = [170e3 * at for at in wander(3, 12)] + [178e3 * at for at in wander(4, 8)] + [210e3]
        runs = [run({"v1": ns}, day) for day, ns in enumerate(levels)]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        regression = only(tmp_path)
        assert (regression.kind, regression.earlier_steps) == (RegressionKind.RUNS, 1)
        assert regression.effect == pytest.approx(210 / 178 - 1, abs=0.01)
        assert regression.b.number == pytest.approx(210e3, rel=0.01)

    def test_a_version_of_a_catalogue_is_held_against_its_nearest_correct_ancestor(
        self, tmp_path: Path
    ) -> None:
        lineages.dissected(tmp_path)
        timed_runs.seal(
            tmp_path, run({"zero": 170e3, "alpha": 175.1e3}, 1, family=lineages.FAMILY, workload="1x1x8x64")
        )
        regression = only(tmp_path)
        assert (regression.series.version, regression.held_against) == ("alpha", "parent zero")

    def test_a_pinned_baseline_comes_before_the_parent(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, run({"v1": 170e3, "v2": 160e3, "v3": 165e3}, 0))
        assert only(tmp_path).held_against == "the version before, v2"
        assert cli.main(["decide", "baseline", "set", "flash", "v1", "--why", "it ships"]) == 0
        assert look(tmp_path).regressions == ()

    @pytest.mark.slow
    def test_a_version_that_the_pinned_one_was_made_from_is_compared_with_its_own_parent(
        self, tmp_path: Path
    ) -> None:
        lineages.dissected(tmp_path)
        timed_runs.seal(
            tmp_path, run({"zero": 180e3, "alpha": 170e3}, 1, family=lineages.FAMILY, workload="1x1x8x64")
        )
        assert look(tmp_path).regressions == ()
        assert cli.main(["decide", "baseline", "set", lineages.FAMILY, "alpha", "--why", "it ships"]) == 0
        assert look(tmp_path).regressions == (), "zero has no parent that it could be slower than"

    def test_a_pinned_run_that_was_forgotten_is_no_silent_gap(self, tmp_path: Path) -> None:
        runs = [run({"v1": 170e3}, 0), run({"v1": 175.1e3}, 1)]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        assert cli.main(["decide", "baseline", "set", "flash", runs[0].run_id]) == 0
        assert cli.main(["data", "forget", runs[0].run_id]) == 0
        ((unclear, count),) = look(tmp_path).coverage.unclear.items()
        assert (unclear.why, unclear.command, count) == (
            f"the baseline of flash is lost: run {runs[0].run_id} was forgotten",
            f"profiler data forget --undo {runs[0].run_id}",
            1,
        )

    def test_a_run_without_samples_is_a_gap_that_says_so(self, tmp_path: Path) -> None:
        (row,) = run({"v1": 170e3}, 1).results
        empty = replace(run({"v1": 1.0}, 1), results=(replace(row, samples=(Samples(WARM, (), ()),)),))
        timed_runs.seal(tmp_path, run({"v1": 170e3}, 0), empty)
        (series,) = load_latency_trends(open_store(str(tmp_path)))
        assert [point.on_line for point in series.points] == [True, False]
        assert series.points[1].gap == "not collected"
        assert series.points[1].value.state.words == "not collected"


def at_levels(*levels: float, count: int = 9, code: str = "", **changed: Any) -> list[Run]:
    """Runs of v1 whose level changes every `count` runs; `code` has a letter a level, as the code's hash."""
    values = [ns * at for seed, ns in enumerate(levels) for at in wander(30 + seed, count)]
    return [
        run({"v1": ns}, day, sass={"v1": code[day // count]} if code else None, **changed)
        for day, ns in enumerate(values)
    ]


class TestStates:
    @pytest.mark.slow
    def test_a_level_that_was_there_before_is_listed_and_not_open(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(tmp_path, *at_levels(170e3, 180e3, 170e3, 180e3))
        report = look(tmp_path)
        (regression,) = report.regressions
        assert (regression.level, regression.is_open, report.open) == (LevelKind.KNOWN, False, ())
        assert regression.equal is not None
        assert regression.equal.created.day == 10
        assert regression.command == ""
        assert cli.main(["regressions"]) == 0
        assert "Δ back in a known state +" in capsys.readouterr().out
        assert cli.main(["regressions", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["alarms"] == 0
        assert document["regressions"][0]["level"] == "back in a known state"

    @pytest.mark.slow
    def test_a_known_level_that_came_with_other_code_is_open(self, tmp_path: Path) -> None:
        runs = at_levels(170e3, 180e3, 170e3, 180e3)
        with_code = [
            replace(run({"v1": 1.0}, day, sass={"v1": "ab"[day // 9 % 2]}), results=())
            for day in range(len(runs))
        ]
        for day, made in enumerate(runs):
            (row,) = made.results
            code = timed_runs.static("ab"[day // 9 % 2])
            with_code[day] = replace(made, results=(replace(row, facts=(code,)),))
        timed_runs.seal(tmp_path, *with_code)
        regression = only(tmp_path)
        assert (regression.level, regression.is_open) == (LevelKind.NEW, True)

    @pytest.mark.slow
    def test_the_newest_run_in_a_known_state_is_not_open(self, tmp_path: Path) -> None:
        runs = [*at_levels(170e3, 180e3, 170e3), run({"v1": 180e3}, 27)]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        regression = only(tmp_path)
        assert (regression.kind, regression.level) == (RegressionKind.RUNS, LevelKind.KNOWN)
        assert look(tmp_path).open == ()

    @pytest.mark.slow
    def test_a_new_level_above_known_states_is_open(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, *at_levels(170e3, 180e3, 170e3, 180e3, 200e3, code="aaaab"))
        assert only(tmp_path).is_open

    @pytest.mark.slow
    def test_a_slow_drift_is_listed_as_one(self, tmp_path: Path) -> None:
        runs = [run({"v1": 170e3 * at * (1 + 0.2 * day / 60)}, day) for day, at in enumerate(wander(40, 60))]
        timed_runs.seal(tmp_path, *runs)
        regression = only(tmp_path)
        assert (regression.level, regression.is_open) == (LevelKind.DRIFT, False)

    @pytest.mark.slow
    def test_what_many_versions_share_on_one_run_is_one_alarm(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        noise = [wander(50 + number, 20) for number in range(4)]
        runs = []
        for day in range(20):
            slow = 1.05 if day >= 12 else 1.0
            levels = {f"v{at}": 170e3 * (4 - at) * noise[at][day] * slow for at in range(4)}
            runs.append(run(levels, day, told={"driver": "570.1" if day < 12 else "580.2"}))
        timed_runs.seal(tmp_path, *runs)
        report = look(tmp_path)
        assert (len(report.regressions), report.open) == (4, ())
        assert cli.main(["regressions"]) == 0
        text = capsys.readouterr().out
        assert "one alarm, due to the environment: 4 of 4 series worse +" in text
        assert "(driver 570.1 → 580.2)" in text
        assert cli.main(["regressions", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["alarms"] == 1
        assert {row["shared_run"] for row in document["regressions"]} == {runs[12].run_id}


class TestOneBuild:
    @pytest.mark.slow
    def test_slower_runs_of_one_build_are_the_environment_where_a_change_of_it_is_recorded(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = ({"host": "node1"}, {"host": "node2"})
        runs = [run({"v1": 170e3}, 0, told=told[0]), run({"v1": 175.1e3}, 1, told=told[1])]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        regression = only(tmp_path)
        assert (regression.kind, regression.same_build) == (RegressionKind.RUNS, True)
        assert (regression.environment_moved, regression.is_open) == (True, False)
        assert due_to(tmp_path, regression)[0] == "environment"
        assert look(tmp_path).open == ()
        assert cli.main(["regressions"]) == 0
        assert "Δ changed +" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("others", "moved"), [((), False), ((1.0, 1.0), False), ((1.03, 1.0), True), ((1.03, 1.03), True)]
    )
    def test_without_one_it_is_the_environment_only_where_other_versions_moved_too(
        self, tmp_path: Path, others: tuple[float, ...], moved: bool
    ) -> None:
        names = [f"v{number}" for number in range(2, 2 + len(others))]
        before = {"v1": 170e3, **dict.fromkeys(names, 170e3)}
        after = {"v1": 175.1e3} | {name: 170e3 * by for name, by in zip(names, others, strict=True)}
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), run(before, 0), run(after, 1))
        regression = next(one for one in look(tmp_path).regressions if one.series.version == "v1")
        assert regression.same_build
        assert (regression.environment_moved, regression.is_open) == (moved, not moved)
        assert regression.verdict is (Verdict.CHANGED if moved else Verdict.WORSE)
        assert due_to(tmp_path, regression)[0] == ("environment" if moved else "unknown")

    def test_equal_machine_code_from_other_source_may_be_launched_otherwise(self, tmp_path: Path) -> None:
        before, after = run({"v1": 170e3}, 0), run({"v1": 175.1e3}, 1)
        (row,) = after.results
        after = replace(after, results=(replace(row, source_sha256="edited"),))
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), before, after)
        regression = only(tmp_path)
        assert (regression.same_build, regression.is_open) == (False, True)
        assert due_to(tmp_path, regression)[0] == "code or environment"

    @pytest.mark.slow
    def test_a_step_of_the_code_is_not_hidden_by_a_later_one_of_the_environment(self, tmp_path: Path) -> None:
        timed_runs.seal(tmp_path, *at_levels(170e3, 180e3, 195e3, code="abb"))
        regression = only(tmp_path)
        assert (regression.kind, regression.is_open) == (RegressionKind.STEP, True)
        assert regression.possible[0].created.day == 10
        assert regression.b.number == pytest.approx(195e3, rel=0.01)

    @pytest.mark.slow
    def test_one_of_many_that_got_slower_with_other_code_is_an_alarm_beside_that_of_the_environment(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        noise = [wander(60 + number, 20) for number in range(6)]
        runs = []
        for day in range(20):
            slow = 1.05 if day >= 12 else 1.0
            levels = {f"v{at}": 170e3 * (6 - at) * noise[at][day] * slow for at in range(6)}
            levels["v0"] *= 1.06 if day >= 12 else 1.0
            runs.append(run(levels, day, sass={"v0": "b" if day >= 12 else "a"}))
        timed_runs.seal(tmp_path, *runs)
        assert [regression.series.version for regression in look(tmp_path).open] == ["v0"]
        assert cli.main(["regressions", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["alarms"] == 2
        (shared,) = document["shared"]
        assert (shared["regressions"], shared["series"]) == (5, 5), "what has other code could not show it"


class TestFacts:
    def test_spills_and_registers_between_two_runs_of_a_version_are_found_with_the_run(
        self, tmp_path: Path
    ) -> None:
        facts = {"static__spill_bytes": 0, "static__registers": 64, "static__opcode_BAR": 3}
        worse = {"static__spill_bytes": 16, "static__registers": 84, "static__opcode_BAR": 3}
        runs = [
            run({"v1": 170e3}, day, facts={"v1": facts if day < 2 else worse}, sass={"v1": "ab"[day > 1]})
            for day in range(4)
        ]
        timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *runs)
        spills, registers = sorted(
            look(tmp_path).regressions, key=lambda one: one.series.concept, reverse=True
        )
        assert (spills.kind, spills.series.concept, registers.series.concept) == (
            RegressionKind.EXACT,
            "static_spills",
            "static_registers",
        )
        assert (spills.before.run_id, spills.possible[0].run_id) == (runs[1].run_id, runs[2].run_id)
        assert (spills.change, registers.change) == ("from 0", "+20")
        assert spills.changed_with == ("registers, compiled 64 register/thread → 84 register/thread",)
        assert due_to(tmp_path, spills)[0] == "code"

    def test_modelled_conflicts_between_two_dissections_are_found(self, tmp_path: Path) -> None:
        first = lineages.results()
        lineages.dissected(tmp_path, first)
        doubled = tuple(
            one
            if one.version != "zero" or not one.check
            else type(one)(**{**vars(one), "facts": (lineages.modelled(64, 1e-4),)})
            for one in first
        )
        lineages.dissected(tmp_path, doubled, created=lineages.CREATED + timedelta(days=1))
        one = only(tmp_path)
        assert (one.series.concept, one.series.version, one.change) == (
            "modelled_conflicts",
            "zero",
            "from 0",
        )
        assert one.series.evidence.value == "modelled"

    def test_a_rejected_version_has_nothing_to_lose(self, tmp_path: Path) -> None:
        first = lineages.results()
        lineages.dissected(tmp_path, first)
        worse = tuple(
            one
            if one.version != "bad" or not one.check
            else type(one)(**{**vars(one), "facts": (lineages.modelled(800, 0.5),)})
            for one in first
        )
        lineages.dissected(tmp_path, worse, created=lineages.CREATED + timedelta(days=1))
        assert look(tmp_path).regressions == ()

    def test_what_was_right_and_is_wrong_comes_first_and_cannot_be_let_pass(self, tmp_path: Path) -> None:
        lineages.dissected(tmp_path)
        later = lineages.CREATED + timedelta(days=1)
        lineages.dissected(tmp_path, lineages.results(alpha="wrong"), created=later)
        first = look(tmp_path).regressions[0]
        assert (first.series.concept, first.series.version) == (CORRECTNESS, "alpha")
        assert first.command == ""
        assert first.basis == "race at k.cu:6 in alpha"
        assert first.before.created == lineages.CREATED

    def test_what_is_wrong_on_one_gpu_is_not_hidden_by_another_on_which_it_is_right(
        self, tmp_path: Path
    ) -> None:
        def without_facts(one: Run, **changed: Any) -> Run:
            results = tuple(replace(row, facts=(), **changed) for row in one.results)
            return replace(one, results=results)

        other = {"gpu": "NVIDIA L4", "compute_capability": "8.9"}
        timed_runs.seal(
            tmp_path,
            *(
                without_facts(run({"v1": 170e3}, day, told=told))
                for day, told in ((0, {}), (0.5, other), (2, other))
            ),
            without_facts(run({"v1": 170e3}, 1), status="wrong", reason="max error 0.3", samples=()),
        )
        one = only(tmp_path)
        assert (one.series.concept, one.series.gpu, one.basis) == (CORRECTNESS, GPU, "max error 0.3")


class TestAnswers:
    @pytest.fixture
    def slower(self, tmp_path: Path) -> Path:
        noise = timed_runs.noise(170e3, 0.003)  # the floor is that of the newer driver
        return timed_runs.seal(
            tmp_path,
            replace(noise, provenance={**noise.provenance, "driver": "580.2"}),
            run({"v1": 170e3}, 0),
            run({"v1": 175.1e3}, 1, sass={"v1": "other"}, told={"driver": "580.2"}),
        )

    @pytest.mark.slow
    def test_its_command_acknowledges_it_and_then_it_stands_last(
        self, slower: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        regression = only(slower)
        words = regression.command.replace("--why TEXT", "--why known")
        assert words == (
            f"profiler decide acknowledge flash/v1 --concept latency --workload {WORKLOAD} --gpu '{GPU}' "
            "--why known"
        )
        arguments = words.replace("'", "").split()[1:]
        at = arguments.index("--gpu")
        arguments[at + 1 : at + 3] = [GPU]
        assert cli.main(arguments) == 0
        capsys.readouterr()
        report = look(slower)
        assert report.open == ()
        assert report.regressions[0].acknowledged is not None
        assert "known" in report.regressions[0].acknowledged.words

    @pytest.mark.slow
    def test_one_let_pass_up_to_an_older_run_is_open_again_and_says_so(
        self, slower: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = f"{timed_runs.START:%Y%m%dT%H%M%S}-flash-v1"
        about = ["flash/v1", "--concept", "latency", "--until", first, "--why", "known"]
        assert cli.main(["decide", "acknowledge", *about]) == 0
        capsys.readouterr()
        assert len(look(slower).open) == 1
        ended = f"it was for results up to run {first}, and these are newer, of 2026-03-02 12:00"
        assert cli.main(["regressions"]) == 0
        text = capsys.readouterr().out
        assert f"acknowledged: not covered: {ended} (" in text
        assert cli.main(["regressions", "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["regressions"]
        assert one["acknowledged"] is None
        assert one["acknowledgement_ended"]["ended"] == ended
        assert one["acknowledgement_ended"]["why"] == "known"

    @pytest.mark.slow
    def test_the_command_line_lists_them_and_says_what_was_looked_at(
        self, slower: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["regressions"]) == 0
        text = capsys.readouterr().out
        assert "flash/v1" in text
        assert "! worse +" in text
        assert "environment" in text
        assert " in 1 family, and the newest timing against" in text
        assert cli.main(["regressions", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        (one,) = document["regressions"]
        assert one["due_to"] == "code or environment"
        assert one["interval"][0] < one["effect"] < one["interval"][1]
        assert document["looked_at"]["pairs"] == 1

    def test_an_empty_index_has_nothing_to_say(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["regressions"]) == 0
        assert "no run yet" in capsys.readouterr().out


@pytest.mark.slow
def test_a_real_launch_slower_than_the_pinned_one_is_unreplicated_and_its_time_is_split(
    reports: Path, tmp_path: Path
) -> None:
    import_paths([reports / "ncar"], data=str(tmp_path))
    assert look(tmp_path).regressions == (), "the newer of the two is the faster one"
    assert cli.main(["decide", "baseline", "set", "ncar", "MW_DivToMult", "--why", "it ships"]) == 0
    regression = only(tmp_path)
    assert (regression.series.version, regression.series.concept, regression.kind) == (
        "MW_Baseline",
        "duration",
        RegressionKind.BASELINE,
    )
    assert regression.held_against == "pinned ncar/MW_DivToMult"
    assert regression.basis == "unreplicated: one launch per side"
    assert regression.change == "+77.8 %"
    assert "waiting" in due_to(tmp_path, regression)[1]
    store = open_store(str(tmp_path))
    causes = CauseFinder(
        store,
        location.open_root(),
        metric_table.load_metrics(),
        NoiseModel(counter_noise=lambda _key, kernel, *_: CounterNoise(Wobble((0.7,) * 20), kernel)),
    )
    assert "waiting" not in causes.find(regression).words, "A/A pairs move as far: splitting noise misleads"
    store.close()
