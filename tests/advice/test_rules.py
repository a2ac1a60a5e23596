"""The rules of advice: each can hold, none rests on a counter that is missing, and known steps are theirs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from profiler.advice.bottleneck import find_bottlenecks
from profiler.advice.insights import rank_statements
from profiler.advice.levers import (
    CONSTANTS_BY_THREAD,
    FEWER_BIT_COUNTS,
    FEWER_BLOCK_BARRIERS,
    FEWER_CONVERSIONS,
    FEWER_FUNCTIONS,
    FEWER_INDIRECT_BRANCHES,
)
from profiler.advice.quantities import QUANTITIES, quantity_text, read_quantity
from profiler.advice.rules import (
    QUESTIONS,
    RULES,
    Advised,
    Rule,
    apply_rule,
    apply_rules,
    record_digest,
    rules_digest,
)
from profiler.advice.statement import OPCODE_MIX, LaunchMetrics, OpenQuestion, Statement
from profiler.advice.techniques import TECHNIQUES
from profiler.advice.track_record import (
    CHIPS,
    HELPED,
    RECORD_DIGEST,
    REPOSITORIES,
    RULES_DIGEST,
    STEPS,
)
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Value, pack_values
from profiler.explain.explanation import stall_metrics
from profiler.explain.time_identity import TimeIdentity
from tests import made

TABLE = load_metrics()
# Values that contradict what could be derived from others are meant here.
WITHOUT_FORMS = replace(TABLE, metrics=tuple(replace(metric, forms=()) for metric in TABLE.metrics))
# A kernel of few busy units on an A100; each rule's case changes what it has to.
PLAIN: Mapping[str, float] = {
    "sol_compute": 40,
    "sol_memory": 40,
    "sol_dram": 5,
    "sol_l2": 5,
    "l1_requests": 10,
    "l1_wavefronts": 10,
    "issue_slots": 10,
    "issue_active": 20,
    "pipe_fp64": 0,
    "pipe_fma": 5,
    "pipe_alu": 5,
    "pipe_xu": 0,
    "pipe_adu": 0,
    "tensor_busy": 0,
    "l2_atomics": 0,
    "shared_static": 0,
    "shared_dynamic": 0,
    "warp_latency": 10,
    "stall_long_scoreboard": 1,
    "stall_short_scoreboard": 0,
    "stall_mio_throttle": 0,
    "stall_lg_throttle": 0,
    "stall_drain": 0,
    "stall_barrier": 0,
    "stall_wait": 2,
    "global_excess": 0,
    "global_load_sectors": 1000,
    "global_store_sectors": 1000,
    "shared_excess": 0,
    "shared_wavefronts_source": 100,
    "local_load_sectors": 0,
    "local_store_sectors": 0,
    "threads_per_inst_on": 32,
    "occupancy_theoretical": 100,
    "occupancy": 50,
    "waves": 10,
    "grid_size": 1080,
    "sm_count": 108,
    "block_size": 256,
    "duration": 100000,
    "sm_cycles_active": 1000,
    "sm_cycles_active_max": 1010,
    "cycles": 1010,
    "limit_registers": 2,
    "limit_shared": 4,
    "limit_warps": 8,
    "limit_blocks": 32,
}
OPCODES: Mapping[str, float] = {"IMAD": 70, "LDG": 20, "STG": 10}
L1 = {"sol_memory": 80, "l1_wavefronts": 80}
HOLDS: dict[str, Mapping[str, float]] = {
    "block:partial": {"block_size": 1},
    "grid:small": {"grid_size": 54},
    "idle:grid": {"waves": 0.5, "sm_cycles_active": 500},
    "idle:uneven": {"sm_cycles_active": 700},
    "occupancy:block": {"occupancy": 10, "waves": 0.4},
    "occupancy:room": {"occupancy_theoretical": 25},
    "l1:scattered": {**L1, "l1_requests": 10},
    "l1:scattered_shared": {**L1, "l1_requests": 10, "shared_static": 4096},
    "l1:tile": {**L1, "l1_requests": 60},
    "l1:registers": {**L1, "l1_requests": 60},
    "l1:narrow_shared": {**L1, "l1_requests": 60, "shared_static": 4096},
    "l1:narrow_global": {**L1, "l1_requests": 85, "sol_memory": 85},
    "dram:in_flight": {"sol_dram": 67, "sol_memory": 67},
    "dram:roof": {"sol_dram": 91, "sol_memory": 91},
    "l2:limit": {"sol_l2": 80, "sol_memory": 80},
    "sectors": {"global_excess": 1500, "stall_long_scoreboard": 6},
    "sectors:limit": {"global_excess": 1500, "sol_memory": 80},
    "shared:excess": {"shared_excess": 60, "stall_short_scoreboard": 5},
    "shared:limit": {**L1, "l1_requests": 20, "shared_excess": 60},
    "shared:exchange": {"stall_barrier": 2, "stall_long_scoreboard": 5},
    "local": {"local_load_sectors": 500, "stall_long_scoreboard": 3},
    "local:limit": {"local_load_sectors": 500, "sol_memory": 80},
    "fp64:slow": {"pipe_fp64": 86, "sol_compute": 86},
    "fp64:fewer": {"pipe_fp64": 70, "sol_compute": 70},
    "fp64:precision": {"pipe_fp64": 70, "sol_compute": 70},
    "issue:slots": {"sol_compute": 88, "issue_slots": 87},
    "tensor:unused": {"pipe_fma": 60},
    "pipe:alu": {"sol_compute": 70, "pipe_alu": 70},
    "pipe:xu": {"sol_compute": 70, "pipe_xu": 70},
    "pipe:fma": {"sol_compute": 70, "pipe_fma": 70},
    "pipe:tensor": {"sol_compute": 70, "tensor_busy": 70},
    "pipe:adu": {"sol_compute": 70, "pipe_adu": 70},
    "atomics": {"stall_drain": 4},
    "atomics:l2": {"l2_atomics": 5},
    "divergence": {"threads_per_inst_on": 12},
    "debug:local": {"stall_wait": 9, "local_load_sectors": 3000},
    "launch:short": {"duration": 3000, "waves": 0.4},
    "latency:independent": {"occupancy": 80},
    "memory:scattered": {"sol_memory": 50, "l1_wavefronts": 40},
}
# Two SMs of five have no work: on the average over all a pipe is at 51 % where it is at 86 % on the others.
IDLE = {"sm_cycles_active": 600, "sm_cycles_active_max": 605, "sol_compute": 51, "waves": 0.6}
HOLDS |= {
    "fp64:slow:active": {**IDLE, "pipe_fp64": 49},
    "fp64:fewer:active": {**IDLE, "pipe_fp64": 49},
    "fp64:precision:active": {**IDLE, "pipe_fp64": 49},
    "pipe:alu:active": {**IDLE, "pipe_alu": 51},
    "pipe:xu:active": {**IDLE, "pipe_xu": 51},
    "pipe:fma:active": {**IDLE, "pipe_fma": 51},
    "pipe:tensor:active": {**IDLE, "tensor_busy": 51},
    "pipe:adu:active": {**IDLE, "pipe_adu": 51},
}
MIXES: Mapping[str, Mapping[str, float]] = {
    "tensor:unused": {"FFMA": 80, "LDG": 20},
    "atomics": {"RED": 30, "IMAD": 70},
    "debug:local": {"MOV": 50, "IMAD": 50},
    "pipe:xu": {"MUFU": 30, "FFMA": 70},
    "pipe:xu:active": {"MUFU": 30, "FFMA": 70},
    "pipe:adu": {"LDC": 30, "FFMA": 70},
    "pipe:adu:active": {"LDC": 30, "FFMA": 70},
}


def launch_metrics(numbers: Mapping[str, float], opcodes: Mapping[str, float], chip: str) -> LaunchMetrics:
    values = {}
    for concept, number in numbers.items():
        metric = TABLE.by_concept[concept]
        unit = "%" if metric.unit == "%" else metric.unit
        values[metric.names_for(chip)[0]] = Value(float(number), unit)
    launch = replace(made.launch(), values=pack_values(values), opcodes=dict(opcodes))
    return LaunchMetrics(launch, WITHOUT_FORMS, chip)


def case(rule: Rule) -> tuple[dict[str, float], Mapping[str, float], str]:
    """Numbers, opcodes and a chip for which the rule holds."""
    chip = "sm_86" if "sm_86" in rule.chips else "sm_80"
    return {**PLAIN, **HOLDS[rule.id]}, MIXES.get(rule.id, OPCODES), chip


def levers(metrics: LaunchMetrics) -> set[tuple[str, str]]:
    return {(one.rule.id, one.lever) for one in apply_rules(metrics) if isinstance(one, Advised)}


def test_ids_are_different_and_what_rules_name_is_declared() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert {rule.id for rule in RULES} == set(HOLDS)
    for rule in RULES:
        assert {condition.quantity for condition in rule.when} | {rule.at_stake} <= set(QUANTITIES)
        assert rule.topic in QUESTIONS
        assert set(rule.techniques) <= set(TECHNIQUES)
        assert rule.techniques
        assert rule.refuted_by
        assert rule.saves > 0
    for quantity in QUANTITIES.values():
        for source in quantity.inputs:
            assert source.startswith("opcodes:") or source in TABLE.by_concept, source


def test_nothing_is_advised_where_nothing_is_wrong() -> None:
    assert levers(launch_metrics(PLAIN, OPCODES, "sm_80")) == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_holds_where_all_its_conditions_do_and_says_its_numbers(rule: Rule) -> None:
    advised = apply_rule(rule, launch_metrics(*case(rule)))
    assert isinstance(advised, Advised)
    assert advised.lever
    assert "{" not in advised.finding
    assert 0 < advised.taken <= 1
    assert (advised.share is not None) == rule.of_time
    assert advised.share is None or 0 < advised.share <= 1
    assert all(metric.valid for metric in advised.inputs)


# Every case is judged by all rules: one case of each topic, and the others in a run of their own.
OF_TOPIC = {rule.topic: rule for rule in RULES}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule.id, marks=() if rule in OF_TOPIC.values() else pytest.mark.long)
        for rule in RULES
    ],
)
def test_no_counter_that_is_taken_away_or_spoilt_adds_a_lever(rule: Rule) -> None:
    numbers, opcodes, chip = case(rule)
    whole = levers(launch_metrics(numbers, opcodes, chip))
    for fewer, mix in spoilt(numbers, opcodes):
        assert levers(launch_metrics(fewer, mix, chip)) <= whole, set(numbers) - set(fewer)


def spoilt(
    numbers: Mapping[str, float], opcodes: Mapping[str, float]
) -> Iterator[tuple[Mapping[str, float], Mapping[str, float]]]:
    """The numbers without each, with each negative, without each pair of the first few; and no opcodes."""
    for concept in numbers:
        less = {name: number for name, number in numbers.items() if name != concept}
        yield less, opcodes
        yield {**less, concept: -1.0}, opcodes
    for pair in itertools.combinations(list(numbers)[:8], 2):
        yield {name: number for name, number in numbers.items() if name not in pair}, opcodes
    yield numbers, {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_without_any_of_its_counters_a_rule_is_silent_and_none_is_taken_for_zero(rule: Rule) -> None:
    numbers, opcodes, chip = case(rule)
    metrics = launch_metrics(numbers, opcodes, chip)
    concepts = {
        source
        for condition in rule.when
        for source in QUANTITIES[condition.quantity].inputs
        if source in TABLE.by_concept
    }
    for concept in concepts:
        less = {name: number for name, number in numbers.items() if name != concept}
        assert not isinstance(apply_rule(rule, launch_metrics(less, opcodes, chip)), Advised), concept
    assert isinstance(apply_rule(rule, metrics), Advised)


@pytest.mark.parametrize(
    ("rule_id", "opcodes"),
    [
        ("atomics", {"REDG": 30, "IMAD": 70}),
        ("atomics", {"ATOM": 30, "IMAD": 70}),
        ("tensor:unused", {"FFMA2": 80, "LDG": 20}),
    ],
)
def test_a_rule_on_opcodes_holds_whatever_the_architecture_calls_them(
    rule_id: str, opcodes: Mapping[str, float]
) -> None:
    rule = next(rule for rule in RULES if rule.id == rule_id)
    assert isinstance(
        apply_rule(rule, launch_metrics({**PLAIN, **HOLDS[rule_id]}, opcodes, "sm_100")), Advised
    )


def test_parts_above_their_whole_contradict_and_nothing_rests_on_them() -> None:
    bad = launch_metrics({**PLAIN, "global_excess": 9000.0}, OPCODES, "sm_80")
    reading = read_quantity("excess_sectors", bad)
    assert reading.number is None
    assert {metric.state for metric in reading.inputs} == {"implausible"}


def test_no_shared_memory_has_no_excess() -> None:
    """0 of 0 wavefronts: neither a share that is no number nor a lever."""
    numbers = {**PLAIN, **L1, "l1_requests": 60, "shared_wavefronts_source": 0}
    metrics = launch_metrics(numbers, OPCODES, "sm_80")
    assert read_quantity("excess_wavefronts", metrics).number == 0
    assert not {rule for rule, _ in levers(metrics)} & {"shared:limit", "shared:excess"}
    assert (
        read_quantity("excess_wavefronts", launch_metrics({**numbers, "shared_excess": 5}, OPCODES, "sm_80"))[
            0
        ]
        is None
    ), "an excess of nothing"


def test_lanes_without_a_thread_are_no_divergence() -> None:
    alone = {**PLAIN, "block_size": 1, "threads_per_inst_on": 1}
    assert read_quantity("idle_lanes", launch_metrics(alone, OPCODES, "sm_80")).number == 0
    half = {**PLAIN, "block_size": 48, "threads_per_inst_on": 12}
    assert read_quantity("idle_lanes", launch_metrics(half, OPCODES, "sm_80")).number == 0.5


def statements(numbers: Mapping[str, float], opcodes: Mapping[str, float] = OPCODES) -> dict[str, Statement]:
    """All that is said of a launch on an A100 by its own counters, in their order."""
    stalls = stall_metrics(TABLE, "sm_80")
    whole = {**{metric.concept: 0.0 for metric in stalls.values()}, **numbers}
    found = find_bottlenecks(launch_metrics(whole, opcodes, "sm_80"), stalls)
    ranked, _ = rank_statements(found)
    return {statement.id: statement for statement in ranked}


def test_a_debug_build_is_a_note_before_levers_and_what_it_makes_comes_last() -> None:
    numbers = {**PLAIN, "sol_compute": 77, "pipe_alu": 77, "threads_per_inst_on": 22, "stall_wait": 9}
    debug = statements(numbers, {"MOV": 42, "IMAD": 58})
    assert list(debug) == ["debug", "limit:compute", "divergence", "waiting:wait", "pipe:alu"]
    assert debug["debug"].lever is None
    assert "Build without -G" in debug["debug"].text
    optimised = statements(numbers, {"MOV": 20, "IMAD": 80})
    assert list(optimised) == ["waiting:wait", "limit:compute", "pipe:alu", "divergence"]


def test_a_debug_build_is_a_lever_where_its_arrays_are_in_local_memory() -> None:
    numbers = {**PLAIN, "stall_wait": 9, "stall_long_scoreboard": 0, "local_load_sectors": 8000}
    found = statements(numbers, {"MOV": 42, "IMAD": 58})
    assert next(iter(found)) == "debug:local"
    assert "debug" not in found
    assert (found["debug:local"].lever or "").startswith("build without -G")


def test_local_memory_that_nobody_waits_for_asks_for_nothing() -> None:
    numbers = {**PLAIN, "local_load_sectors": 8000}
    idle = statements({**numbers, "stall_long_scoreboard": 0})["local"]
    assert (idle.kind, idle.lever) == ("no_action", None)
    waited_for = statements({**numbers, "stall_long_scoreboard": 6})["local"]
    assert waited_for.lever
    assert waited_for.share == pytest.approx(0.8 * 0.6)


def test_little_local_memory_has_no_share_of_time() -> None:
    """6 % of the sectors are local: no share of time, and without them a public kernel took 21 % less."""
    found = statements({**PLAIN, "local_load_sectors": 120})["local"]
    assert (found.kind, found.share, found.saves_at_most) == ("bottleneck", None, None)
    assert 0.05 < found.rank < 0.07


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_only_what_leaves_the_work_of_every_unit_has_a_bound_which_is_what_the_busiest_leaves(
    rule: Rule,
) -> None:
    numbers, opcodes, chip = case(rule)
    found = {
        one.id: one
        for one in find_bottlenecks(launch_metrics(numbers, opcodes, chip), {})
        if isinstance(one, Statement)
    }[rule.id]
    assert (found.saves_at_most is not None) == rule.leaves_work
    if found.saves_at_most is not None:
        most = max(numbers[name] for name in ("sol_compute", "sol_memory", "sol_dram", "sol_l2"))
        assert found.saves_at_most == pytest.approx(1 - most / 100)
        assert found.share is not None
        assert found.share <= found.saves_at_most
        assert most in {metric.number for metric in found.inputs}


def test_fewer_instructions_save_more_than_the_issue_slots_that_they_took() -> None:
    """By the identity of the time: what was computed again and again went, and 84 % of the time with it."""
    found = statements({**PLAIN, "sol_compute": 56, "issue_slots": 56})["issue:slots"]
    before = TimeIdentity(523e3, 1.5e9, 1e12, 8.0, 4.0, 432.0, 1.0)
    saved = 1 - (replace(before, instructions=0.16e12).modelled_us or 0) / (before.modelled_us or 1)
    assert found.share == pytest.approx(0.56)
    assert saved == pytest.approx(0.84)
    assert found.saves_at_most is None


def test_more_blocks_save_what_a_full_unit_leaves() -> None:
    numbers = {**PLAIN, "grid_size": 64, "sm_count": 84, "sol_dram": 97.7, "sol_memory": 97.7}
    found = statements(numbers)["grid:small"]
    assert (found.share, found.saves_at_most) == (pytest.approx(0.023), pytest.approx(0.023))
    alone = statements({**PLAIN, "grid_size": 64, "sm_count": 84})["grid:small"]
    assert (alone.share, alone.saves_at_most) == (pytest.approx(20 / 84), pytest.approx(0.6))


def test_prefetching_saves_what_a_full_unit_leaves_and_less_waiting_alone_has_no_bound() -> None:
    numbers = {**PLAIN, "stall_long_scoreboard": 8, "sol_compute": 90, "pipe_alu": 20}
    found = statements(numbers)["waiting:long_scoreboard"]
    assert (found.share, found.saves_at_most) == (pytest.approx(0.1), pytest.approx(0.1))
    throttled = statements({**PLAIN, "stall_math_pipe_throttle": 8})["waiting:math_pipe_throttle"]
    assert (throttled.share, throttled.saves_at_most) == (pytest.approx(0.8), None)


@pytest.mark.parametrize(("dram", "share"), [(5.0, 0.8), (97.7, 0.023)])
def test_fewer_barriers_leave_the_bytes_and_so_what_dram_needs_for_them(dram: float, share: float) -> None:
    numbers = {**PLAIN, "stall_barrier": 8, "sol_dram": dram, "sol_memory": max(dram, 40), "sol_compute": 99}
    barrier = statements(numbers)["waiting:barrier"]
    assert (barrier.share, barrier.saves_at_most) == (pytest.approx(share), pytest.approx(1 - dram / 100))


@pytest.mark.parametrize(
    ("numbers", "name", "share", "busiest"),
    [
        ({"sol_compute": 16.6, "sol_memory": 49.7, "sol_l1": 99.3}, "limit:unit", 0.993, "sol_l1"),
        ({"sol_compute": 53.6, "pipe_xu": 59.0}, "limit:latency", 0.41, "pipe_xu"),
        ({"sol_compute": 53.6, "pipe_xu": 66.0}, "limit:unit", 0.66, "pipe_xu"),
        ({"sol_compute": 53.6}, "limit:latency", 0.464, "sol_compute"),
        ({"sol_compute": 10, "sol_memory": 10, "sol_l1": 96.0}, "limit:unit", 0.96 / 2, "sol_l1"),
    ],
)
def test_a_unit_that_its_own_counter_shows_near_its_peak_is_named(
    numbers: Mapping[str, float], name: str, share: float, busiest: str
) -> None:
    active = 505 if numbers["sol_compute"] == 10 else 1010
    found = statements({**PLAIN, "sm_cycles_active": active, **numbers})
    assert {one for one in found if one.startswith("limit")} == {name}
    assert found[name].share == pytest.approx(share)
    assert busiest in {metric.concept for metric in found[name].inputs}


def test_what_waits_where_l1_is_full_by_its_own_counter_is_little() -> None:
    """Independent work fills no idle unit where one is full; its own peak may be another: no bound."""
    numbers = {**PLAIN, "occupancy": 97.5, "sm_cycles_active": 1010, "sol_l1": 99.3}
    rule = next(rule for rule in RULES if rule.id == "latency:independent")
    advised = apply_rule(rule, launch_metrics(numbers, OPCODES, "sm_80"))
    assert isinstance(advised, Advised)
    assert (advised.share, advised.at_most) == (pytest.approx(0.007), None)


def test_a_level_that_the_chip_lacks_leaves_the_others_known() -> None:
    """Thor has no counter of DRAM's throughput: memory at 93.9 % is L1, whose wavefronts are at 93.9 %."""
    numbers = {name: number for name, number in PLAIN.items() if name != "sol_dram"}
    full = {**numbers, "sol_memory": 93.9, "l1_wavefronts": 93.9, "l1_requests": 40}
    answers = find_bottlenecks(launch_metrics(full, OPCODES, "sm_110"), {})
    limit = next(one for one in answers if one.id == "limit:memory")
    assert isinstance(limit, Statement)
    assert limit.valid
    assert {"sol_memory": 93.9, "l1_wavefronts": 93.9}.items() <= {
        metric.concept: metric.number for metric in limit.inputs
    }.items()
    assert not {"limit", "level"} & {one.id for one in answers}
    unknown = {**full, "l1_wavefronts": 20}
    answers = find_bottlenecks(launch_metrics(unknown, OPCODES, "sm_110"), {})
    assert {"limit:memory", "level"} <= {one.id for one in answers}
    assert "limit" not in {one.id for one in answers}


def test_one_is_counted_in_the_singular() -> None:
    assert [quantity_text("blocks", number) for number in (1.0, 2.0)] == ["1 block", "2 blocks"]
    assert [quantity_text("waves", number) for number in (1.0, 0.5)] == ["1 wave", "0.500 waves"]
    advised = apply_rule(
        next(rule for rule in RULES if rule.id == "grid:small"),
        launch_metrics({**PLAIN, "grid_size": 1, "sm_count": 20}, OPCODES, "sm_80"),
    )
    assert isinstance(advised, Advised)
    assert advised.finding.startswith("1 block for 20 SMs")


@pytest.mark.parametrize("issue_active", [20.0, 90.0])
def test_every_lever_says_how_often_it_helped_and_what_refutes_it(issue_active: float) -> None:
    waits = {"warp_latency": 10.0, "issue_active": issue_active, "stall_barrier": 8.0}
    stalls = {reason: metric for reason, metric in stall_metrics(TABLE, None).items() if reason == "barrier"}
    answers = find_bottlenecks(launch_metrics({**PLAIN, **waits}, OPCODES, "sm_80"), stalls)
    advised = {one.id: one for one in answers if isinstance(one, Statement) and one.lever}
    assert ("waiting:barrier" if issue_active < 80 else "issue") in advised
    for statement in advised.values():
        assert statement.refuted_by
        assert f"refuted if {statement.refuted_by}" in statement.confidence
        assert "recorded optimisation step" in statement.confidence


def test_levers_are_of_the_chip() -> None:
    numbers = {**PLAIN, "pipe_fp64": 80.0, "sol_compute": 80.0}
    ids = {
        chip: {rule for rule, _ in levers(launch_metrics(numbers, OPCODES, chip))}
        for chip in ("sm_86", "sm_80")
    }
    assert "fp64:slow" in ids["sm_86"] - ids["sm_80"], "FP64 at a 64th of FP32's rate"
    assert "fp64:precision" in ids["sm_80"] - ids["sm_86"]


@pytest.mark.parametrize(
    ("pipe", "mix", "lever"),
    [
        ("xu", {"MUFU.EX2": 20, "I2F": 5}, FEWER_FUNCTIONS),
        ("xu", {"MUFU.RCP": 5, "I2F.U32": 15, "F2I": 4}, FEWER_CONVERSIONS),
        ("xu", {"FLO.U32": 20, "POPC": 10, "MUFU": 1}, FEWER_BIT_COUNTS),
        ("xu", {}, None),
        ("xu", {"IADD3": 40}, None),
        ("adu", {"LDC.64": 20, "BAR.SYNC": 5}, CONSTANTS_BY_THREAD),
        ("adu", {"LDC": 2, "BAR.SYNC": 5}, FEWER_BLOCK_BARRIERS),
        ("adu", {"BRX": 5}, FEWER_INDIRECT_BRANCHES),
        ("adu", {}, None),
    ],
)
def test_what_a_pipe_of_many_uses_executes_is_counted_or_asked_for(
    pipe: str, mix: Mapping[str, float], lever: str | None
) -> None:
    rule = next(rule for rule in RULES if rule.id == f"pipe:{pipe}")
    numbers = {**PLAIN, **HOLDS[rule.id]}
    answer = apply_rule(rule, launch_metrics(numbers, mix, "sm_86"))
    if lever is None:
        assert isinstance(answer, OpenQuestion)
        assert {metric.name.partition("[")[0] for metric in answer.invalid_inputs} == {OPCODE_MIX}
    else:
        assert isinstance(answer, Advised)
        assert answer.lever.startswith(lever)


@pytest.mark.parametrize(
    ("active", "expected", "busy"), [(1000, "limit:latency", 0.51), (600, "limit:compute", 0.858)]
)
def test_a_pipe_that_is_busy_where_sms_have_work_limits_them(
    active: float, expected: str, busy: float
) -> None:
    numbers = {**PLAIN, **IDLE, "sol_compute": 51, "pipe_fp64": 51, "sm_cycles_active": active}
    found = statements({**numbers, "occupancy": 16})
    limit = next(one for name, one in found.items() if name.startswith("limit"))
    assert limit.id == expected
    assert limit.share == pytest.approx(1 - busy if expected == "limit:latency" else busy, abs=0.01)
    # More warps are advised only where no unit of a working SM is near its peak.
    assert ("occupancy:block" in found) is (expected == "limit:latency")
    assert read_quantity("fp64_of_active", launch_metrics(numbers, OPCODES, "sm_80")).number == pytest.approx(
        51 * 1010 / active
    )


def test_an_idle_share_that_cannot_be_true_makes_no_pipe_busy() -> None:
    numbers = {**PLAIN, "pipe_fp64": 49}
    for cycles in ({"sm_cycles_active": 0}, {"cycles": 0}, {"sm_cycles_active": 1100}):
        metrics = launch_metrics({**numbers, **cycles}, OPCODES, "sm_80")
        assert read_quantity("fp64_of_active", metrics).number is None
    short = launch_metrics({**numbers, "pipe_fp64": 98, "sm_cycles_active": 950}, OPCODES, "sm_80")
    assert read_quantity("fp64_of_active", short).number == 100, "counted in two passes"


@pytest.mark.parametrize(("wavefronts", "advised"), [(60, True), (111, True), (118, False), (150, False)])
def test_accesses_as_wide_as_they_can_be_are_not_made_wider(wavefronts: float, advised: bool) -> None:
    """As many per cent of requests as of wavefronts are two wavefronts per request: 118 of 60 are 3.93."""
    shares = {"sol_memory": wavefronts / 2, "l1_wavefronts": wavefronts / 2, "l1_requests": 30}
    numbers = {**PLAIN, **shares, "sol_compute": 20}
    rules = {rule for rule, _ in levers(launch_metrics({**numbers, "shared_static": 99}, OPCODES, "sm_80"))}
    assert ("l1:narrow_shared" in rules) is advised


@pytest.mark.parametrize(
    ("l1", "l2", "dram", "busiest"),
    [(76, 74, 20, 77), (70, 74, 20, 74), (70, 20, 76, 76), (30, 20, 20, 77), (None, 20, 20, 77)],
)
def test_the_busiest_level_is_the_one_with_the_highest_number(
    l1: float | None, l2: float, dram: float, busiest: float
) -> None:
    numbers = {**PLAIN, "sol_memory": 77.0, "sol_l2": l2, "sol_dram": dram, "l1_wavefronts": l1}
    numbers = {name: number for name, number in numbers.items() if number is not None}
    text = statements(numbers)["limit:memory"].text
    assert f": {busiest:.1f} % of {'their' if busiest == 77 else 'its'} peak (" in text
    assert text.startswith("L1") is (busiest == 77)  # what is left of memory's throughput


def test_no_rule_calls_a_unit_the_busiest_that_another_may_exceed() -> None:
    for rule in RULES:
        assert "busiest unit" not in rule.finding, rule.id


def test_one_block_is_no_blocks() -> None:
    room = next(rule for rule in RULES if rule.id == "occupancy:room")
    for limit, words in ((1, "to 1 block)"), (2, "to 2 blocks)")):
        numbers = {**PLAIN, "occupancy_theoretical": 25.0, "limit_registers": float(limit)}
        advised = apply_rule(room, launch_metrics(numbers, OPCODES, "sm_80"))
        assert isinstance(advised, Advised)
        assert advised.lever.endswith(words)


@pytest.mark.parametrize(
    ("limits", "start", "end"),
    [
        ({"limit_blocks": 1}, "larger blocks", "(the number of blocks limits an SM to 1 block)"),
        (
            {"limit_shared": 2},
            "fewer live registers",
            "(registers and shared memory limit an SM to 2 blocks)",
        ),
    ],
)
def test_room_is_made_where_it_is_missing(limits: Mapping[str, float], start: str, end: str) -> None:
    room = next(rule for rule in RULES if rule.id == "occupancy:room")
    advised = apply_rule(
        room, launch_metrics({**PLAIN, "occupancy_theoretical": 25.0, **limits}, OPCODES, "sm_80")
    )
    assert isinstance(advised, Advised)
    assert (advised.lever.startswith(start), advised.lever.endswith(end)) == (True, True), advised.lever


def test_known_steps_are_those_of_these_rules() -> None:
    """After a change of a rule: `python bench/advice.py REPORTS STEPS.json --write`."""
    assert rules_digest(CHIPS) == RULES_DIGEST
    known = {rule.id for rule in RULES}
    assert {name for name in HELPED if name not in known and not name.startswith("waiting:")} <= {"issue"}
    assert all(0 <= helped <= given for helped, given in HELPED.values())
    assert record_digest(STEPS, REPOSITORIES, HELPED) == RECORD_DIGEST, "nobody counts by hand"
