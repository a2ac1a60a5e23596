"""Which unit limits a launch, by made counters: the boundaries, the level of memory, what warps wait for."""

from __future__ import annotations

import pytest

from profiler.advice.bottleneck import find_bottlenecks
from profiler.advice.statement import OpenQuestion, Statement
from profiler.evidence.metric_table import load_metrics
from profiler.explain.explanation import stall_metrics
from tests.advice.test_rules import launch_metrics

STALLS = stall_metrics(load_metrics(), "sm_90")
NO_STALLS = {metric.concept: 0.0 for metric in STALLS.values()}
LOCAL = {"local_load_sectors": 20.0, "local_store_sectors": 0.0, "sol_compute": 20.0}
GLOBAL = {"global_load_sectors": 60.0, "global_store_sectors": 20.0}
WAITS = {"warp_latency": 20.0, "stall_long_scoreboard": 1.0, "stall_lg_throttle": 0.0}


def answers(numbers: dict[str, float], *, stalls: bool = False) -> list[Statement | OpenQuestion]:
    return [*find_bottlenecks(launch_metrics(numbers, {}, "sm_90"), STALLS if stalls else {})]


def said(numbers: dict[str, float], *, stalls: bool = False) -> dict[str, Statement]:
    return {one.id: one for one in answers(numbers, stalls=stalls) if isinstance(one, Statement)}


def asked(numbers: dict[str, float], *, stalls: bool = False) -> dict[str, OpenQuestion]:
    return {one.id: one for one in answers(numbers, stalls=stalls) if isinstance(one, OpenQuestion)}


@pytest.mark.parametrize(
    ("numbers", "statement", "share"),
    [
        ({"sol_compute": 90.0, "sol_memory": 30.0}, "limit:compute", 0.9),
        ({"sol_compute": 60.0, "sol_memory": 30.0}, "limit:compute", 0.6),
        ({"sol_compute": 59.0, "sol_memory": 30.0}, "limit:latency", 0.41),
        ({"sol_compute": 70.0, "sol_memory": 70.0}, "limit:memory", 0.7),
        ({"sol_compute": 30.0, "sol_memory": 90.0}, "limit:memory", 0.9),
        (
            {"sol_compute": 40.0, "sol_memory": 20.0, "sm_cycles_active": 50.0, "cycles": 100.0},
            "limit:compute",
            0.8,
        ),
        (
            {"sol_compute": 29.0, "sol_memory": 20.0, "sm_cycles_active": 50.0, "cycles": 100.0},
            "limit:latency",
            0.71,
        ),
    ],
)
def test_a_unit_limits_from_three_fifths_of_its_peak_on_and_else_latency(
    numbers: dict[str, float], statement: str, share: float
) -> None:
    (one,) = (one for name, one in said(numbers).items() if name.startswith("limit:"))
    assert (one.id, one.share) == (statement, pytest.approx(share))


def test_compute_that_limits_where_there_is_work_says_for_how_long_that_is() -> None:
    numbers = {"sol_compute": 40.0, "sol_memory": 20.0, "sm_cycles_active": 50.0, "cycles": 100.0}
    text = said(numbers)["limit:compute"].text
    assert text.startswith(
        "Compute limits the SMs that have work: 80.0 % of peak there. They have work for 50 %"
    )


@pytest.mark.parametrize(
    ("dram", "l2", "text"),
    [
        (90.0, 40.0, "DRAM limits this launch: 90.0 % of its peak"),
        (40.0, 90.0, "L2 limits this launch: 90.0 % of its peak"),
        (85.0, 40.0, "DRAM limits this launch: 85.0 % of its peak"),
        (84.0, 40.0, "L1/TEX and shared memory limit this launch: 90.0 % of their peak"),
        (40.0, 40.0, "L1/TEX and shared memory limit this launch: 90.0 % of their peak"),
        (86.0, 88.0, "L2 limits this launch: 88.0 % of its peak"),
    ],
)
def test_the_level_of_memory_that_limits_is_the_one_near_the_whole(dram: float, l2: float, text: str) -> None:
    numbers = {"sol_compute": 30.0, "sol_memory": 90.0, "sol_dram": dram, "sol_l2": l2}
    assert said(numbers)["limit:memory"].text.startswith(text)
    assert "level" not in asked(numbers)


def test_dram_below_its_limit_is_only_the_busiest_and_an_uncounted_level_is_a_question() -> None:
    busiest = {"sol_compute": 30.0, "sol_memory": 84.0, "sol_dram": 84.0, "sol_l2": 40.0}
    assert said(busiest)["limit:memory"].text.startswith("DRAM is the busiest unit: 84.0 % of its peak")
    lacking = {"sol_compute": 30.0, "sol_memory": 90.0, "sol_dram": 40.0}
    assert said(lacking)["limit:memory"].text.endswith("which level is unknown.")
    assert [one.concept for one in asked(lacking)["level"].inputs] == ["sol_l2", "l1_wavefronts"]
    neither = asked({"sol_compute": 30.0})["limit"]
    assert [one.concept for one in neither.inputs if not one.valid] == ["sol_memory", "sol_dram", "sol_l2"]


def test_the_busiest_pipe_is_named_where_it_makes_the_throughput() -> None:
    near = {"sol_compute": 90.0, "sol_memory": 30.0, "pipe_fma": 85.0, "pipe_alu": 20.0}
    assert "; the busiest part: FMA pipe busy, 85.0 %." in said(near)["limit:compute"].text
    assert "by none of the parts" in said({**near, "pipe_fma": 84.0})["limit:compute"].text


@pytest.mark.parametrize(("local", "weight"), [(0.5, None), (1.0, 0.01), (5.0, 0.05), (9.0, 0.09)])
def test_a_little_local_memory_is_a_remark_and_next_to_none_is_not(
    local: float, weight: float | None
) -> None:
    rest = {"global_load_sectors": 100.0 - local, "global_store_sectors": 0.0}
    found = said({**LOCAL, **rest, "local_load_sectors": local, "sol_memory": 20.0}).get("local")
    assert (found and found.weight) == (weight and pytest.approx(weight))


def test_local_memory_that_nobody_waits_for_asks_for_nothing() -> None:
    few = {**LOCAL, **GLOBAL, "sol_memory": 20.0, **NO_STALLS, **WAITS}
    found = said(few)["local"]
    assert (found.kind, found.lever, found.share) == ("no_action", None, pytest.approx(0.05))
    assert "20 % of the local and global sectors are local" in found.text
    for lacking in ("sol_memory", "warp_latency"):
        assert "local" not in said({name: number for name, number in few.items() if name != lacking})
    assert "local" not in said({**few, "sol_memory": 60.0}), "a rule has a lever on it"


def test_drams_roof_asks_for_nothing_where_no_sector_is_wasted() -> None:
    full = {"sol_dram": 88.0, "global_excess": 4.0, "global_load_sectors": 90.0, "global_store_sectors": 10.0}
    assert said(full)["roof"].weight == pytest.approx(0.88)
    assert "roof" not in said({**full, "sol_dram": 87.0})
    assert "roof" not in said({**full, "global_excess": 6.0})


def test_what_warps_wait_for_is_known_only_beyond_what_missing_stalls_may_be() -> None:
    waits = {**NO_STALLS, "warp_latency": 10.0, "issue_active": 30.0, "stall_barrier": 6.0, "stall_wait": 4.0}
    found = said(waits, stalls=True)
    assert "waiting:barrier" in found
    assert found["waiting:barrier"].share == pytest.approx(0.6)
    assert "waiting" not in asked(waits, stalls=True)
    lacking = {name: number for name, number in waits.items() if name != "stall_math_pipe_throttle"}
    assert "waiting:barrier" in said(lacking, stalls=True), "what is missing is at most 1 of 11"
    unknown = {**lacking, "warp_latency": 15.0}
    assert asked(unknown, stalls=True)["waiting"].inputs[-1].concept == "stall_math_pipe_throttle"
    assert "waiting:barrier" not in said(unknown, stalls=True)
    more = asked({**waits, "stall_wait": 6.1}, stalls=True)["waiting"]
    assert "the stalls are more than the latency" in more.question
    assert "waiting" not in asked({**waits, "stall_wait": 5.9}, stalls=True)


@pytest.mark.parametrize(("issue", "limited"), [(79.0, False), (80.0, True)])
def test_from_four_fifths_of_the_cycles_on_instructions_are_the_limit(issue: float, limited: bool) -> None:
    waits = {
        **NO_STALLS,
        "warp_latency": 10.0,
        "issue_active": issue,
        "stall_barrier": 6.0,
        "stall_wait": 4.0,
    }
    found = said(waits, stalls=True)
    assert ("issue" in found) == limited
    if limited:
        assert found["issue"].share == pytest.approx(0.8)
