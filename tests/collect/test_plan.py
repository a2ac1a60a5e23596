"""The order of jobs, and what a time budget leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.collect import plan
from profiler.collect.plan import Job, Pace, fresh_processes
from profiler.collect.settings import collection_settings
from profiler.errors import ProfilerError

TAKES = {"small": ["a", "b", "bad"], "large": ["a", "b"]}


def jobs(**changed: object) -> list[Job]:
    return plan.plan_jobs(TAKES, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "seconds"), [("8m", 480), ("90s", 90), ("1h30m", 5400), ("480", 480)])
def test_a_budget_is_read(text: str, seconds: float) -> None:
    assert plan.parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "8x", "m"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ProfilerError, match="8m"):
        plan.parse_budget(text)


def test_a_workload_is_whole_before_the_next_begins() -> None:
    order = [(job.workload, job.stage) for job in jobs(blocks=2, full=("a",))]
    small = [stage for label, stage in order if label == "small" and stage != "full"]
    assert small == ["check"] * 3 + ["time"] * 2 + ["lean"]
    assert order.index(("small", "lean")) < order.index(("large", "check"))
    assert order[-1][1] == "full"


def test_every_job_has_a_key_of_its_own() -> None:
    made = jobs(full=("a", "b"), sanitize=("a",), model=("a", "b"))
    assert len({job.key for job in made}) == len(made)


def test_a_job_that_does_not_fit_leaves_room_for_a_shorter_one() -> None:
    pace = Pace()
    long, short = Job("full", "w", ("a",), 0, 100.0), Job("check", "w", ("a",), 0, 5.0)
    assert not plan.fits(long, pace, 50, 60)
    assert plan.fits(short, pace, 50, 60)
    assert plan.fits(long, pace, 50, None)


def test_what_a_stage_took_before_corrects_its_estimates() -> None:
    pace, job = Pace(), Job("check", "w", ("a",), 0, 5.0)
    for seconds in (10.0, 9.0, 40.0):
        pace.learn(job, seconds)
    assert pace.seconds(Job("check", "w", ("b",), 0, 10.0)) == pytest.approx(20.0)
    assert pace.seconds(Job("time", "w", ("b",), 0, 10.0)) == 10.0


def test_a_slow_kernel_and_more_passes_take_longer() -> None:
    quick = {job.key: job.seconds for job in jobs()}
    slow = {job.key: job.seconds for job in jobs(call_s={("a", "small"): 1.0}, passes={"lean": 40})}
    lean = next(key for key in quick if key.startswith("lean-small"))
    assert slow[lean] > quick[lean] + 30


def test_checks_of_one_workload_run_side_by_side_and_nothing_else_does() -> None:
    planned, at_once = jobs(blocks=1), {"check": 2}
    assert [len(plan.next_batch(planned[at:], at_once)) for at in range(4)] == [2, 2, 1, 1]


def test_a_forecast_counts_building_and_names_what_the_budget_leaves_out() -> None:
    planned = jobs(blocks=1)
    whole = plan.forecast(planned, {"check": 3})
    assert [job for job, _ in whole] == planned
    ended = [at for _, at in whole if at is not None]
    assert len(ended) == len(planned)
    assert ended == sorted(ended)
    assert ended[0] == pytest.approx(plan.BUILD_S + planned[0].seconds)
    assert ended[2] == ended[0], "the three checks run side by side"
    cut = plan.forecast(planned, {"check": 3}, ended[3] + 1)
    assert [at is None for _, at in cut][:4] == [False] * 4
    assert cut[-1][1] is None


def test_a_process_a_round_where_the_time_allows_and_five_where_it_does_not() -> None:
    lineage = load_catalog()

    def processes(versions: list[str], budget_s: float | None = None, rounds: int = 25) -> int:
        settings = collection_settings(lineage, versions, workloads=["1x8x512x64"], model=False)
        settings = replace(settings, rounds=rounds)
        return fresh_processes(settings, settings.select(lineage), budget_s)

    pair = ["v2d_b", "v2d_c"]
    assert processes(pair) == 25
    assert processes(pair, rounds=10) == 10
    assert processes(pair, budget_s=60) == plan.FEWEST_PROCESSES
    some = processes(pair, budget_s=240)
    assert plan.FEWEST_PROCESSES < some < 25
    assert some * (plan.START_S["time"] + 2 * plan.PREPARE_S) <= 240 * plan.TIMING_SHARE


def test_every_process_is_in_the_forecast() -> None:
    def seconds(blocks: int) -> float:
        planned = plan.plan_jobs({"small": ["a", "b"]}, blocks=blocks)
        return sum(job.seconds for job in planned if job.stage == "time")

    each = plan.START_S["time"] + 2 * plan.PREPARE_S
    assert seconds(25) - seconds(5) == pytest.approx(20 * each)
