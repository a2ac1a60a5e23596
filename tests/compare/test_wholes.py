"""Changes of counters that are next to nothing of what they are a part of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from profiler.compare.comparison import compare
from profiler.compare.pair_comparison import MetricChange
from profiler.compare.wholes import find_whole
from profiler.evidence.launch import Launch, Session
from profiler.evidence.metric_table import COMPUTED_WHOLES, MetricTable, load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, Value, pack_values
from profiler.statistics.verdict import Verdict

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
PEAK, CLOCK = "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"
BUSY = "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
UNITS = {
    READ: "byte",
    WRITTEN: "byte",
    PEAK: "byte/cycle",
    CLOCK: "hz",
    BUSY: "%",
    "dram__bytes.sum.per_second": "byte/s",
    LATENCY: "cycle",
    BARRIER: "inst",
}


@pytest.fixture(scope="module")
def table() -> MetricTable:
    return load_metrics()


def side(counters: Mapping[str, float | None], ns: float) -> Side:
    values = {"gpu__time_duration.sum": Value(ns, "ns")}
    values |= {
        name: Value(number, UNITS.get(name, "")) for name, number in counters.items() if number is not None
    }
    launch = Launch("kernel", "kernel", "", (64, 1, 1), (128, 1, 1), 7, (), 0, pack_values(values))
    session = Session("2025.3.1", "580.1", "13.0", None, "ncu ./a", "none", "all", "kernel")
    return Side("side", (launch,), "GPU", "9.0", None, None, Evidence.MEASURED, session, "f", "v", "run")


def change(
    table: MetricTable,
    concept: str,
    a: Mapping[str, float | None],
    b: Mapping[str, float | None],
    ns: float = 1e6,
) -> MetricChange:
    (pair,) = compare(side(a, ns), side(b, ns), table).pairs
    return next(one for one in pair.metrics if one.concept == concept)


def conflicts(table: MetricTable, a: float, b: float, *wavefronts: float | None) -> MetricChange:
    sides = [{CONFLICTS: number, WAVEFRONTS: whole} for number, whole in zip((a, b), wavefronts, strict=True)]
    return change(table, "shared_conflicts", sides[0], sides[1])


def test_a_change_of_next_to_nothing_of_the_whole_is_same_and_says_so(table: MetricTable) -> None:
    tiny = conflicts(table, 7349, 9658, 223e6, 223e6)
    assert tiny.verdict is Verdict.SAME
    assert tiny.reason == (
        "7\u2009349 → 9\u2009658 of 223 M wavefronts: a change under 1 % of shared_wavefronts"
    )
    assert tiny.change_pct == pytest.approx(31.42, abs=0.01), "the numbers are shown as they are"
    assert not tiny.unreplicated


def test_the_same_numbers_of_a_small_kernel_are_worse(table: MetricTable) -> None:
    assert conflicts(table, 7349, 9658, 20e3, 22e3).verdict is Verdict.WORSE
    assert conflicts(table, 0, 300, 1000, 1300).verdict is Verdict.WORSE
    assert conflicts(table, 300, 0, 1300, 1000).verdict is Verdict.BETTER


def test_both_the_threshold_and_the_share_have_to_be_exceeded(table: MetricTable) -> None:
    within = conflicts(table, 500_000, 520_000, 1e6, 1e6)
    assert (within.verdict, within.reason) == (Verdict.SAME, "within 5 %"), "2 % of the whole, 4 % of itself"
    assert conflicts(table, 100_000, 109_999, 1e6, 1e6).verdict is Verdict.SAME, "10 %, 1 % of the whole"
    assert conflicts(table, 100_000, 110_001, 1e6, 1e6).verdict is Verdict.WORSE


def test_the_smaller_whole_counts(table: MetricTable) -> None:
    """What is little of A's whole may be most of what is left of it in B."""
    assert conflicts(table, 10, 6000, 10e6, 12e3).verdict is Verdict.WORSE


@pytest.mark.parametrize("wavefronts", [(None, None), (223e6, None), (None, 223e6)])
def test_without_the_whole_on_both_sides_the_threshold_holds_alone(
    table: MetricTable, wavefronts: tuple[float | None, float | None]
) -> None:
    assert conflicts(table, 7349, 9658, *wavefronts).verdict is Verdict.WORSE


def test_a_whole_of_zero_makes_nothing_small(table: MetricTable) -> None:
    assert conflicts(table, 7349, 9658, 0, 0).verdict is Verdict.WORSE


def test_every_computed_whole_is_computed() -> None:
    for name in COMPUTED_WHOLES:
        assert find_whole(name, load_metrics(), lambda _: 100.0, lambda _: 100.0) is not None


def test_a_whole_that_the_table_does_not_declare_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text("time | time | ns | lower | 2% | time | lean | gpu__time_duration.sum\n", "utf-8")
    assert find_whole("shared_wavefronts", load_metrics(path), lambda _: 1.0, lambda _: 1.0) is None


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({PEAK: 1000.0, CLOCK: 1e9, BUSY: 2.0, WRITTEN: 2e6}, "1.00 GB that DRAM could move in the time"),
        ({BUSY: 2.0, WRITTEN: 2e6}, "101 MB that DRAM could move in the time"),
        ({BUSY: 0.0, WRITTEN: 2e6}, "2.02 MB that DRAM moved in all"),
        ({WRITTEN: 2e6}, "2.02 MB that DRAM moved in all"),
    ],
)
def test_dram_bytes_are_held_against_what_dram_could_move(
    table: MetricTable, counters: Mapping[str, float | None], words: str
) -> None:
    """By its peak and clock, else by the share of time that it was busy, else by all that it did move."""
    read = change(table, "dram_read", {READ: 19_456, **counters}, {READ: 36_096, **counters})
    assert (read.verdict, round(read.change_pct or 0)) == (Verdict.SAME, 86)
    assert read.reason == f"19.5 kB → 36.1 kB of {words}: a change under 1 % of dram_capacity"


def test_dram_bytes_that_take_time_are_worse(table: MetricTable) -> None:
    roof = {PEAK: 1000.0, CLOCK: 1e9}
    assert change(table, "dram_read", {READ: 100e6, **roof}, {READ: 120e6, **roof}).verdict is Verdict.WORSE
    alone = change(table, "dram_read", {READ: 19_456}, {READ: 36_096})
    assert alone.verdict is Verdict.WORSE, "nothing says how much DRAM could move"
    nothing = change(table, "dram_read", {READ: 0, WRITTEN: 0}, {READ: 64, WRITTEN: 0})
    assert nothing.verdict is Verdict.WORSE, "all that DRAM moved is a whole of its own in so small a kernel"


def test_dram_counts_by_one_way_on_both_sides(table: MetricTable) -> None:
    a: Mapping[str, float | None] = {READ: 19_456, WRITTEN: 2e6, PEAK: 1000.0, CLOCK: 1e9}
    b: Mapping[str, float | None] = {READ: 36_096, WRITTEN: 2e6}
    assert "that DRAM moved in all" in change(table, "dram_read", a, b).reason


def test_a_stall_of_next_to_no_latency_did_not_change(table: MetricTable) -> None:
    tiny = change(
        table, "stall_barrier", {BARRIER: 2.03e-4, LATENCY: 12.3}, {BARRIER: 3.35e-4, LATENCY: 12.1}
    )
    assert tiny.verdict is Verdict.SAME
    assert "of 12.1 warp cycles per issued instruction: a change under 1 % of" in tiny.reason
    real = change(table, "stall_barrier", {BARRIER: 0.12, LATENCY: 12.3}, {BARRIER: 8.45, LATENCY: 20.0})
    assert real.verdict is Verdict.CHANGED


@pytest.mark.parametrize(
    "concept", ["local_load_sectors", "local_store_sectors", "spill_insts", "static_spills"]
)
def test_a_spill_is_never_too_small(table: MetricTable, concept: str) -> None:
    assert table.by_concept[concept].whole == ""


def test_a_unit_that_the_label_has_is_not_said_twice(table: MetricTable) -> None:
    whole = find_whole("l2_sectors", table, lambda _: 109e6, lambda _: 109e6)
    assert whole is not None
    assert whole.words == "109 M L2 sectors"


def test_dram_bandwidth_is_held_against_what_dram_could_do(table: MetricTable) -> None:
    bandwidth, roof = "dram__bytes.sum.per_second", {PEAK: 1000.0, CLOCK: 1e9}
    little = change(table, "dram_bandwidth", {bandwidth: 4.97e9, **roof}, {bandwidth: 4.73e9, **roof})
    assert little.verdict is Verdict.SAME
    assert little.reason == (
        "4.97 GB/s → 4.73 GB/s of 1.00 TB/s that DRAM could move: a change under 1 % of dram_rate"
    )
    much = change(table, "dram_bandwidth", {bandwidth: 4.97e11, **roof}, {bandwidth: 4.73e11, **roof})
    assert much.verdict is Verdict.CHANGED
    alone = change(table, "dram_bandwidth", {bandwidth: 4.97e9}, {bandwidth: 4.73e9})
    assert alone.verdict is Verdict.CHANGED, "nothing says how much DRAM could do"
