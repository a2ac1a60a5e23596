"""What else moved: the counters furthest beyond their thresholds, each once, and the opcodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from profiler.compare.comparison import compare
from profiler.compare.pair_comparison import PairComparison
from profiler.documents.explanation import explain_comparison
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.explain.explanation import Explanation, explain
from profiler.explain.what_moved import what_moved
from profiler.statistics.verdict import Verdict

TABLE = load_metrics()
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# Block barriers became polling: more instructions, no more waiting at the barrier, some of it asleep instead.
BARRIERS = {
    "gpu__time_duration.sum": Value(5_000_000.0, "ns"),
    "gpc__cycles_elapsed.max": Value(5_000_000, "cycle"),
    "gpc__cycles_elapsed.avg.per_second": Value(1e9, "hz"),
    "smsp__inst_executed.sum": Value(1_000_000, "inst"),
    "smsp__issue_inst0.avg.pct_of_peak_sustained_active": Value(60.0, "%"),
    STALL.format("barrier"): Value(8.45, "inst"),
    STALL.format("sleeping"): Value(0.0, "inst"),
    STALL.format("wait"): Value(3.0, "inst"),
    STALL.format("membar"): Value(0.0001, "inst"),
    "launch__registers_per_thread": Value(32, "register/thread"),
    "dram__bytes.sum.per_second": Value(1e11, "byte/s"),
}
POLLING = {
    **BARRIERS,
    "gpu__time_duration.sum": Value(5_529_000.0, "ns"),
    "gpc__cycles_elapsed.max": Value(5_529_000, "cycle"),
    "smsp__inst_executed.sum": Value(1_880_000, "inst"),
    "smsp__issue_inst0.avg.pct_of_peak_sustained_active": Value(20.0, "%"),
    STALL.format("barrier"): Value(0.12, "inst"),
    STALL.format("sleeping"): Value(1.63, "inst"),
    STALL.format("membar"): Value(0.0009, "inst"),
    "launch__registers_per_thread": Value(64, "register/thread"),
    "dram__bytes.sum.per_second": Value(3e11, "byte/s"),
}


def side(label: str, values: Mapping[str, Value], opcodes: Mapping[str, float] | None = None) -> Side:
    launch = Launch("k", "k", "", (64, 1, 1), (128, 1, 1), 7, (), 0, pack_values(values), opcodes or {})
    return Side(label, (launch,), "GPU", compute_capability="8.0")


def explained(a: Side, b: Side) -> Explanation:
    (explanation,) = explain(compare(a, b, TABLE), TABLE)
    return explanation


def pair_of(a: Mapping[str, Value], b: Mapping[str, Value]) -> PairComparison:
    return compare(side("a", a), side("b", b), TABLE).pairs[0]


def concepts(pair: PairComparison) -> list[str]:
    return [move.change.concept for move in what_moved(pair, TABLE).counters]


def test_counts_and_stalls_are_named_before_rates_and_small_stalls() -> None:
    assert concepts(pair_of(BARRIERS, POLLING)) == ["inst_executed", "stall_barrier", "stall_sleeping"]


def test_swapping_the_sides_names_the_same() -> None:
    there, back = (
        what_moved(pair, TABLE) for pair in (pair_of(BARRIERS, POLLING), pair_of(POLLING, BARRIERS))
    )
    assert [move.change.concept for move in there.counters] == [move.change.concept for move in back.counters]
    assert [move.thresholds for move in there.counters] == pytest.approx(
        [move.thresholds for move in back.counters]
    )


def test_rates_are_named_where_nothing_that_was_counted_moved() -> None:
    moved = {**BARRIERS, "dram__bytes.sum.per_second": Value(3e11, "byte/s")}
    assert concepts(pair_of(BARRIERS, moved)) == ["dram_bandwidth"]


def test_counters_that_say_one_thing_are_named_once() -> None:
    issued = {**BARRIERS, "smsp__inst_issued.sum": Value(1_010_000, "inst")}
    more = {**POLLING, "smsp__inst_issued.sum": Value(1_900_000, "inst")}
    assert concepts(pair_of(issued, more)) == ["inst_issued", "stall_barrier", "stall_sleeping"]


def test_a_change_from_zero_has_no_number_of_thresholds_and_comes_first() -> None:
    local = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
    a, b = {**BARRIERS, local: Value(0, "sector")}, {**POLLING, local: Value(4_000_000, "sector")}
    moved = what_moved(pair_of(a, b), TABLE)
    assert moved.counters[0].change.concept == "local_load_sectors"
    assert moved.counters[0].thresholds is None
    assert "local load sectors 0 → 4.00 M" in moved.words
    stores = local.replace("_ld", "_st")
    both = pair_of({**a, stores: Value(0, "sector")}, {**b, stores: Value(9, "sector")})
    assert concepts(both)[:2] == ["local_load_sectors", "inst_executed"], "from 0 too: one says it for both"
    gone = pair_of({**a, stores: Value(9, "sector")}, {**b, stores: Value(0, "sector")})
    assert concepts(gone)[:2] == ["local_load_sectors", "local_store_sectors"], "one came, the other went"
    some = pair_of({**a, stores: Value(9, "sector")}, {**b, stores: Value(90, "sector")})
    assert concepts(some)[1] == "local_store_sectors", "it was there before"


def test_settings_and_what_did_not_move_are_no_reasons() -> None:
    moved = {**BARRIERS, "launch__registers_per_thread": Value(64, "register/thread")}
    assert concepts(pair_of(BARRIERS, moved)) == []


def test_the_opcodes_that_moved_most_are_named_and_small_ones_not() -> None:
    a = side("a", BARRIERS, {"BAR": 200_000.0, "BRA": 100_000.0, "FFMA": 700_000.0, "MOV": 10.0})
    b = side("b", POLLING, {"BRA": 900_000.0, "NANOSLEEP": 280_000.0, "FFMA": 700_000.0, "MOV": 20.0})
    moved = what_moved(compare(a, b, TABLE).pairs[0], TABLE)
    assert [opcode.opcode for opcode in moved.opcodes] == ["BRA", "NANOSLEEP", "BAR"]
    assert moved.words.endswith("by opcode BRA 100 k → 900 k, NANOSLEEP 0 → 280 k, BAR 200 k → 0")
    few = side("c", POLLING, {**b.launches[0].opcodes, "MOV": 30.0})
    assert what_moved(compare(b, few, TABLE).pairs[0], TABLE).opcodes == ()


def test_a_change_of_cycles_alone_says_so_and_names_what_moved_and_what_to_collect() -> None:
    explanation = explained(side("a", BARRIERS), side("b", POLLING))
    assert explanation.split is not None
    assert (explanation.verdict, explanation.split.depth) == (Verdict.WORSE, "cycles")
    sentence = explanation.sentence
    assert sentence.startswith("529 µs slower, cycles +529 µs, clock ±0; no counters on both sides divide")
    assert (
        "Moved most: instructions executed 1.00 M → 1.88 M (+88.0 %); stall barrier 8.45 → 0.120 (−98.6 %); "
        "stall sleeping 0 → 1.63." in sentence
    )
    assert "fewer cycles" not in sentence
    assert "To split the time, collect " in sentence
    assert '`ncu --metrics "$(profiler list metrics --chip sm_80 --tier lean)"`.' in sentence


def test_without_any_split_what_moved_is_named_all_the_same() -> None:
    a, b = (
        {name: value for name, value in values.items() if "cycles" not in name}
        for values in (BARRIERS, POLLING)
    )
    explanation = explained(side("a", a), side("b", b))
    assert explanation.split is None
    assert explanation.sentence.startswith("529 µs slower, but no split: too few counters for the causes.")
    assert "Moved most: instructions executed 1.00 M → 1.88 M" in explanation.sentence


def test_a_launch_of_which_nothing_else_was_collected_says_that_nothing_moved() -> None:
    a, b = ({"gpu__time_duration.sum": Value(1e6 * ms, "ns")} for ms in (1, 2))
    assert "Moved most: no counter beyond its threshold." in explained(side("a", a), side("b", b)).sentence


def test_a_clock_that_made_the_change_is_its_cause() -> None:
    slow = {
        **BARRIERS,
        "gpu__time_duration.sum": Value(5_555_556.0, "ns"),
        "gpc__cycles_elapsed.avg.per_second": Value(0.9e9, "hz"),
        "smsp__inst_executed.sum": Value(1_030_000, "inst"),  # else only the clock moved, which is no change
    }
    assert explained(side("a", BARRIERS), side("b", slow)).sentence == (
        "556 µs slower, mainly from a lower clock (+556 µs). "
        "Moved most: instructions executed 1.00 M → 1.03 M (+3.0 %). Residue ±0."
    )


def test_an_unchanged_pair_and_one_that_cannot_be_compared_name_nothing() -> None:
    assert explained(side("a", BARRIERS), side("b", BARRIERS)).moved is None
    other = replace(side("b", POLLING), gpu="another GPU")
    explanation = explained(side("a", BARRIERS), other)
    assert (explanation.verdict, explanation.moved) == (Verdict.NOT_COMPARABLE, None)
    assert "Moved most" not in explanation.sentence


def test_the_document_has_what_moved_with_its_numbers() -> None:
    document = explain_comparison(compare(side("a", BARRIERS), side("b", POLLING), TABLE), TABLE)
    (launch,) = document.to_dict()["launches"]
    executed, barrier, sleeping = launch["also_moved"]
    assert (executed["concept"], executed["a"], executed["b"]) == ("inst_executed", 1_000_000, 1_880_000)
    assert executed["change_pct"] == pytest.approx(88)
    assert executed["metric"] == "smsp__inst_executed.sum"
    assert (barrier["a"], barrier["b"]) == (8.45, 0.12)
    assert barrier["thresholds"] == pytest.approx((8.45 - 0.12) / (0.05 * (8.45 + 3 + 0.0001)))
    assert (sleeping["a"], sleeping["change_pct"]) == (0, None)
    assert launch["also_moved_opcodes"] == []
    assert [stand_in["words"] for stand_in in launch["stand_ins"]] == []
    assert "Moved most: instructions executed" in document.to_markdown()


def test_what_to_collect_says_which_side_lacks_the_counter_itself() -> None:
    # Each side holds the warps of one level alone, and nothing compares a counter with its stand-in.
    sm, scheduler = "sm__warps_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active"
    a = {**BARRIERS, sm: Value(20.0, "warp")}
    b = {**POLLING, scheduler: Value(5.0, "warp")}
    why = {counter.concept: counter.why for counter in explained(side("a", a), side("b", b)).missing}
    assert why["warps_active"] == "not collected in A"
    assert why["warp_latency"] == "not collected in either"
