"""When two launches are one workload: each row of the table in docs/calibration.md, and what follows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.compare.comparison import Comparison, compare
from profiler.compare.kernel_pairs import KernelPair, Pairing
from profiler.compare.same_code import CHANGED, SAME, UNKNOWN
from profiler.compare.workload_change import (
    WorkloadChange,
    find_workload_change,
    is_other_grid,
    launch_code_change,
)
from profiler.errors import Exit
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.explain.explanation import explain
from profiler.gate import judgement
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.statistics.verdict import Verdict
from tests.conftest import ROOT
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, SessionDetails

TABLE = load_metrics()
INSTRUCTIONS, SECTORS = "smsp__inst_executed.sum", "lts__t_sectors.sum"
STORED = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
DURATION, CYCLES = "gpu__time_duration.sum", "gpc__cycles_elapsed.max"
READ, TENSOR = "dram__bytes_read.sum", "sm__inst_executed_pipe_tensor.sum"
HELD = "profiler__replayer_bytes_mem_accessible.sum"
REGISTERS, SHARED = "launch__registers_per_thread", "launch__shared_mem_per_block_static"
COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
UNITS = {DURATION: "ns", INSTRUCTIONS: "inst", SECTORS: "sector", CYCLES: "cycle", COMPUTE: "%", MEMORY: "%"}
USUAL = {DURATION: 1e6, REGISTERS: 32.0, SHARED: 0.0}
MIX = {"FFMA": 600.0, "LDG": 300.0, "BRA": 100.0}

Size = tuple[int, int, int]


def launch(
    grid: Size | None = (64, 1, 1),
    block: Size | None = (128, 1, 1),
    values: Mapping[str, float] | None = None,
    *,
    opcodes: Mapping[str, float] | None = None,
    name: str = "kernel",
    arguments: str = "",
    demangled: str = "",
) -> Launch:
    numbers = {key: Value(number, UNITS.get(key, "")) for key, number in (USUAL | dict(values or {})).items()}
    demangled = demangled or f"void {name}{arguments}(float*)"
    return Launch(name, demangled, "", grid, block, 7, (), 0, pack_values(numbers), opcodes or {})


def work(instructions: float, sectors: float, **more: float) -> dict[str, float]:
    return {INSTRUCTIONS: instructions, SECTORS: sectors, **more}


def side(*launches: Launch, workload: str | None = None) -> Side:
    return Side("side", launches, "GPU", "8.0", workload=workload)


def gate(comparison: Comparison) -> judgement.Verdicts:
    pair = ComparisonPair("b", "a", comparison.a, comparison.b)
    return judgement.judge_comparisons([pair], [comparison], TABLE)


SMALL, LARGE = launch((8, 8, 1)), launch((32, 32, 1), values={DURATION: 16e6})
GRID = "grid 8 × 8 → 32 × 32"

ALL_MOVED = (
    "another grid and other code, where threads, instructions, traffic and stored sectors all doubled or "
    "halved"
)
# A row of docs/calibration.md each, by its first words: B against A, and what is made of it.
ROWS: dict[str, tuple[Launch, Launch, Verdict | None, str]] = {
    "grid and block are the same": (launch(), launch(values={DURATION: 2e6}), None, ""),
    "a side does not say its grid": (launch(None), launch((9, 1, 1)), None, ""),
    "another block covers the same threads": (
        launch((2048, 1, 1), (512, 1, 1)), launch((1024, 1, 1), (1024, 1, 1)), None, "",
    ),
    "another block, the same grid": (
        launch((64, 1, 1), (128, 1, 1)), launch((64, 1, 1), (256, 1, 1)), None, "",
    ),
    "another grid, other code": (
        launch((63, 63, 1)), launch((32, 63, 1), values={REGISTERS: 40.0}), None, "",
    ),
    "another grid, the same work": (
        launch((108, 1, 1), values=work(1000, 500)), launch((216, 1, 1), values=work(1040, 510)), None, "",
    ),
    "another grid, fewer threads that executed less for the same traffic": (
        launch((65536, 1, 1), values=work(1e8, 6e6, **{HELD: 1.6e10})),
        launch((32768, 1, 1), values=work(0.55e8, 6e6, **{HELD: 1.6e10})),
        None,
        "",
    ),
    "another grid, the same code and instructions, and equal stores": (
        launch((1, 64, 1), values=work(118e6, 12e6, **{STORED: 6_675_336})),
        launch((32, 1, 1), values=work(117.3e6, 14.7e6, **{STORED: 6_675_336})),
        None,
        "",
    ),
    "another grid, else": (SMALL, LARGE, Verdict.NOT_COMPARABLE, f"another workload: {GRID}"),
    "another grid and block, else": (
        launch((2048, 1, 1), (512, 1, 1)),
        launch((1022, 1, 1), (1024, 1, 1)),
        Verdict.NOT_COMPARABLE,
        "another workload: grid 2 048 → 1 022, block 512 → 1 024",
    ),
    "another grid and other code, eight times the threads and traffic, with other stores": (
        launch((8, 8, 1), values=work(1000, 500, **{STORED: 100})),
        launch((32, 32, 1), values=work(1450, 10_000, **{STORED: 1600, REGISTERS: 40.0})),
        Verdict.UNCLEAR,
        f"{GRID}; threads (+1500 %) and L2 sectors (+1900 %) grew alike: perhaps another problem size",
    ),
    "another grid and other code that executed and moved at least twice as much, both alike": (
        launch((2048, 1, 1), (512, 1, 1), work(1000, 500)),
        launch((1022, 1, 1), (1024, 1, 1), work(8600, 4000, **{REGISTERS: 40.0})),
        Verdict.UNCLEAR,
        "grid 2 048 → 1 022, block 512 → 1 024; instructions (+760 %) and L2 sectors (+700 %) grew alike: "
        "perhaps another problem size",
    ),
    ALL_MOVED: (
        launch((8, 8, 1), values=work(1000, 500, **{STORED: 100})),
        launch((25, 11, 1), values=work(2070, 41500, **{STORED: 1560, REGISTERS: 40.0})),
        Verdict.UNCLEAR,
        "grid 8 × 8 → 25 × 11; threads (+330 %), instructions (+107 %), L2 sectors (+8200 %) and global "
        "store sectors (+1460 %) all grew: perhaps another problem size",
    ),
    "any grid and other code that executed and moved eight times as much or an eighth, both alike": (
        launch(values=work(1000, 500)),
        launch(name="kernel_v2", values=work(256_000, 125_000)),
        Verdict.UNCLEAR,
        "instructions (×256) and L2 sectors (×250) grew alike: perhaps another problem size",
    ),
    "the same grid and code, instructions and traffic moved alike": (
        launch(values=work(1000, 500)),
        launch(values=work(5380, 2630)),
        Verdict.UNCLEAR,
        "instructions (+438 %) and L2 sectors (+426 %) grew alike: perhaps another problem size",
    ),
    "the same grid and code, other cycles at the same throughput": (
        launch(values={CYCLES: 1e6, COMPUTE: 30.0, MEMORY: 48.0}),
        launch(values={CYCLES: 1.96e6, COMPUTE: 30.5, MEMORY: 48.2}),
        Verdict.UNCLEAR,
        "cycles (+96 %) at the same compute and memory throughput: perhaps another problem size",
    ),
    "any grid and code, tensor instructions on one side alone, which took at least twice as long": (
        launch(values={TENSOR: 0.0}),
        launch(values={TENSOR: 3.2e6, DURATION: 129e6, SHARED: 8192.0}),
        Verdict.UNCLEAR,
        "tensor instructions 0 → 3.20 M and the time (×129): perhaps other work",
    ),
    "any grid and code, arrays of other lengths in the signature, where the work moved": (
        launch(arguments="<5>", values=work(1000, 500), demangled="void kernel(int (*)[9000], float)"),
        launch(arguments="<5>", values=work(446, 206), demangled="void kernel(int (*)[5000], float)"),
        Verdict.UNCLEAR,
        "arrays of other lengths in the signature, [9000] → [5000]: perhaps another problem size",
    ),
    "any grid and code, tensor instructions moved by half and something else alike": (
        launch(values=work(1000, 500, **{REGISTERS: 200.0}), opcodes={"HMMA": 100.0, "LDSM": 50.0}),
        launch(values=work(6700, 10_600), opcodes={"HMMA": 1600.0, "LDSM": 800.0}),
        Verdict.UNCLEAR,
        "tensor instructions (+1500 %) and L2 sectors (+2020 %) grew alike: perhaps another problem size",
    ),
    "any grid and code, a hundredth of the DRAM reads, of more than caches hold": (
        launch((64, 1, 1), values={READ: 1.07e9}),
        launch((128, 1, 1), values={READ: 3330.0, REGISTERS: 40.0}),
        Verdict.UNCLEAR,
        "grid 64 → 128; DRAM bytes read (÷321 k), which no cache accounts for: perhaps other data",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_table(row: str) -> None:
    a, b, verdict, reason = ROWS[row]
    change = find_workload_change(a, b)
    words = change.reason.replace(formatting.THIN, " ") if change else ""
    assert (change and change.verdict, words) == (verdict, reason)


def test_the_document_has_these_rows_and_no_other() -> None:
    text = (ROOT / "docs" / "calibration.md").read_text("utf-8")
    section = text.partition("## One workload or another")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!B beside A|---)([^|]+?) \|", section, re.MULTILINE)
    assert rows == list(ROWS)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (((2048, 1, 1), (512, 1, 1)), ((1024, 1, 1), (1024, 1, 1)), True),
        (((7813, 1, 1), (128, 1, 1)), ((3907, 1, 1), (256, 1, 1)), True),  # a million, rounded up
        (((7813, 1, 1), (128, 1, 1)), ((7_812_501, 1, 1), (128, 1, 1)), False),
        (((2048, 1, 1), (512, 1, 1)), ((1022, 1, 1), (1024, 1, 1)), False),
        (((94, 94, 1), (8, 8, 1)), ((47, 47, 1), (16, 16, 1)), True),
        (((8, 8, 1), (16, 16, 1)), ((32, 32, 1), (16, 16, 1)), False),
        (((4, 6, 1), (16, 16, 1)), ((24, 1, 1), (256, 1, 1)), True),  # laid out in one dimension
        (((8, 8, 1), (16, 16, 1)), ((7, 9, 1), (16, 16, 1)), False),
        # 1200 x 800 in whole blocks, and by `1200 / 8 + 1`: one of the two is rounded as no other block is
        (((75, 50, 1), (16, 16, 1)), ((151, 101, 1), (8, 8, 1)), True),
        (((75, 50, 1), (16, 16, 1)), ((152, 101, 1), (8, 8, 1)), False),
        (((75, 50, 1), (16, 16, 1)), ((76, 51, 1), (16, 16, 1)), False),
    ],
)
def test_the_same_threads_in_other_blocks(a: tuple[Size, Size], b: tuple[Size, Size], same: bool) -> None:
    assert is_other_grid(launch(*a), launch(*b)) is not same
    assert is_other_grid(launch(*b), launch(*a)) is not same


@pytest.mark.parametrize(
    ("b", "word", "why"),
    [
        (launch(opcodes=MIX), SAME, "0.0 % of the executed instructions are of other opcodes"),
        (launch(opcodes={key: 7 * count for key, count in MIX.items()}), SAME, "0.0 %"),
        (launch(opcodes=MIX | {"BRA": 150.0}), UNKNOWN, "4.3 %"),
        (launch(opcodes=MIX | {"HMMA": 500.0}), CHANGED, "33.3 %"),
        (launch(), UNKNOWN, "no opcodes on both sides"),
        (launch(values={REGISTERS: 40.0}, opcodes=MIX), CHANGED, "registers 32 → 40"),
        (launch(values={SHARED: 8192.0}, opcodes=MIX), CHANGED, "static shared memory 0 → 8192"),
        (launch(arguments="<128>", opcodes=MIX), CHANGED, "template arguments differ"),
        (launch(name="kernel_v2", opcodes=MIX), CHANGED, "kernel and kernel_v2"),
    ],
)
def test_what_tells_that_the_code_changed(b: Launch, word: str, why: str) -> None:
    change = launch_code_change(launch(opcodes=MIX), b)
    assert change.word == word
    assert why in change.why


@pytest.mark.parametrize(
    "b",
    [
        launch(values=work(1080, 540)),  # within a tenth
        launch(values=work(3000, 700)),  # not alike
        launch(values=work(3000, 250)),  # in opposite directions
        launch(values={INSTRUCTIONS: 5380}),  # no traffic on one side
        launch(values=work(5380, 2630, **{REGISTERS: 40.0})),  # other code may well do more
    ],
)
def test_what_grows_otherwise_is_judged(b: Launch) -> None:
    assert find_workload_change(launch(values=work(1000, 500)), b) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # A tile of another length, at the same work.
        (
            launch(values=work(1000, 500), demangled="void kernel(float (*)[32])"),
            launch(values=work(1010, 505, **{REGISTERS: 40.0}), demangled="void kernel(float (*)[64])"),
        ),
        # A tensor instruction of twice the depth.
        (
            launch(values=work(1000, 500), opcodes={"HMMA": 200.0, "LDSM": 50.0}),
            launch(values=work(850, 500), opcodes={"HMMA": 100.0, "LDSM": 50.0}),
        ),
        # What caches may keep, and a hundredth part.
        (launch(values={READ: 100e6}), launch(values={READ: 1e3})),
        (launch(values={READ: 1.07e9}), launch(values={READ: 11e6})),
    ],
)  # fmt: skip
def test_what_an_edit_may_do_is_compared(a: Launch, b: Launch) -> None:
    assert find_workload_change(a, b) is None
    assert find_workload_change(b, a) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (launch(values={TENSOR: 0.0}), launch(values={TENSOR: 3.2e6, DURATION: 0.2e6})),  # a faster version
        (launch(values={TENSOR: 0.0}), launch(values={TENSOR: 3.2e6, DURATION: 1.9e6})),
        (launch(values={TENSOR: 3.2e6}), launch(values={TENSOR: 0.0, DURATION: 9e6})),  # they were given up
        (launch(values={TENSOR: 0.0}), launch(values={TENSOR: 0.0, DURATION: 9e6})),
        (launch(), launch(values={TENSOR: 3.2e6, DURATION: 9e6})),
        (launch(opcodes=MIX), launch(values={DURATION: 0.4e6}, opcodes=MIX | {"HMMA": 500.0})),
    ],
)  # fmt: skip
def test_tensor_instructions_that_came_or_went_are_judged(a: Launch, b: Launch) -> None:
    assert find_workload_change(a, b) is None


def test_a_side_that_lost_its_tensor_instructions_and_most_of_its_time_did_other_work() -> None:
    matrices = launch(values={DURATION: 7e6}, opcodes=MIX | {"HMMA": 500.0})
    change = find_workload_change(matrices, launch(opcodes=MIX))
    assert change
    assert change.verdict is Verdict.UNCLEAR
    assert not change.whatever_the_code


@pytest.mark.parametrize("more", [{COMPUTE: 40.0}, {MEMORY: 60.0}, {CYCLES: 1.1e6}])
def test_cycles_at_another_throughput_are_judged(more: dict[str, float]) -> None:
    a = launch(values={CYCLES: 1e6, COMPUTE: 30.0, MEMORY: 48.0})
    b = launch(values={CYCLES: 2e6, COMPUTE: 30.0, MEMORY: 48.0, **more})
    assert find_workload_change(a, b) is None


@pytest.mark.parametrize(
    ("grid", "values"),
    [
        ((25, 11, 1), work(2070, 41500, **{STORED: 100})),  # smaller tiles of the same output
        ((25, 11, 1), work(2070, 41500)),  # what was stored is not known
        ((4, 4, 1), work(250, 100, **{STORED: 12})),  # coarser threads whose stores are wider
        ((8, 8, 1), work(7000, 3500)),  # the same grid, and less than eight times as much
        ((8, 8, 1), work(9000, 500)),  # the same grid, and traffic stayed
    ],
)
def test_what_other_code_may_do_to_one_problem_is_judged(grid: Size, values: dict[str, float]) -> None:
    a = launch((8, 8, 1), values=work(1000, 500, **{STORED: 100}))
    assert find_workload_change(a, launch(grid, values=values | {REGISTERS: 40.0})) is None


def test_what_shrank_with_its_output_may_be_another_problem_size() -> None:
    large = launch((25, 11, 1), values=work(1000, 500, **{STORED: 100}))
    small = launch((8, 8, 1), values=work(420, 8, **{STORED: 25, REGISTERS: 40.0}))
    change = find_workload_change(large, small)
    assert change is not None
    assert change.verdict is Verdict.UNCLEAR
    assert "all shrank: perhaps another problem size" in change.reason


SHARE_OF_ISSUE = "sm__inst_executed.avg.pct_of_peak_sustained_elapsed"
SHARE_OF_L2 = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"


def shares(cycles: float, issue: float, l2: float, **more: float) -> dict[str, float]:
    """What the speed of light alone collects: cycles and time in step, and shares of two peaks."""
    return {CYCLES: cycles, DURATION: cycles / 1.3, SHARE_OF_ISSUE: issue, SHARE_OF_L2: l2, **more}


def test_shares_times_cycles_say_that_other_code_did_many_times_the_work() -> None:
    """esmm, one_warptiling_tn: registers 54 → 64, grid 8 × 8 → 32 × 32, no sum collected."""
    a = launch((8, 8, 1), values=shares(0.192e6, 21.6, 27.2, **{REGISTERS: 54.0}))
    b = launch((32, 32, 1), values=shares(7.44e6, 31.0, 41.1, **{REGISTERS: 64.0}))
    for x, y in ((a, b), (b, a)):
        change = find_workload_change(x, y)
        assert change is not None
        assert change.verdict is Verdict.UNCLEAR
        assert gate(compare(side(x), side(y), TABLE)).exit_code() is Exit.UNJUDGED


def test_a_block_of_another_size_and_nine_times_the_work_by_shares_are_unclear() -> None:
    """The grid grew by three along each side, the block fell to half: other code and no sum."""
    a = launch((16, 16, 1), (256, 1, 1), shares(0.5e6, 30.0, 20.0, **{REGISTERS: 54.0}))
    b = launch((48, 48, 1), (128, 1, 1), shares(4.6e6, 29.0, 22.0, **{REGISTERS: 64.0}))
    for x, y in ((a, b), (b, a)):
        change = find_workload_change(x, y)
        assert change is not None
        assert change.verdict is Verdict.UNCLEAR


def test_equal_stores_of_a_grid_with_an_eighth_of_the_threads_are_judged() -> None:
    """One thread does what eight did, in the same code and almost as many instructions."""
    a = launch((64, 8, 1), values=work(80e6, 9e6, **{STORED: 1_048_576}))
    b = launch((64, 1, 1), values=work(79e6, 13e6, **{STORED: 1_048_576}))
    assert find_workload_change(a, b) is None
    other = launch((64, 1, 1), values=work(79e6, 13e6, **{STORED: 131_072}))
    assert find_workload_change(a, other) is not None


def test_many_times_the_threads_and_traffic_are_unclear_where_stores_do_not_tell() -> None:
    """esmm again: code that skips zeros executes ×1.5 for ×16 the threads and ×20 the sectors."""
    a = launch((8, 8, 1), (256, 1, 1), shares(0.192e6, 21.6, 27.2, **{REGISTERS: 54.0}))
    b = launch((32, 32, 1), (256, 1, 1), shares(1.5e6, 4.0, 69.5, **{REGISTERS: 36.0}))
    for x, y in ((a, b), (b, a)):
        change = find_workload_change(x, y)
        assert change is not None
        assert change.verdict is Verdict.UNCLEAR


def test_many_times_the_threads_that_store_the_same_are_judged() -> None:
    """A thread an output, where each made sixteen: its traffic grew, and the output is the same."""
    a = launch((8, 8, 1), (256, 1, 1), work(1e6, 5e5, **{STORED: 32_768, REGISTERS: 64.0}))
    b = launch((32, 32, 1), (256, 1, 1), work(3e6, 9e6, **{STORED: 32_768, REGISTERS: 24.0}))
    assert find_workload_change(a, b) is None


@pytest.mark.parametrize("grew", [1.0, 1.2])
def test_work_by_shares_that_stayed_near_is_judged(grew: float) -> None:
    """The same grid and code: 11 % more cycles at shares that fell with them is the same work, slower."""
    a = launch(values=shares(1e6, 40.0, 30.0))
    slower = launch(values=shares(1.5e6, 40.0 / 1.5 * grew, 30.0 / 1.5 * grew))
    assert find_workload_change(a, slower) is None
    grid = launch((128, 1, 1), values=shares(1.5e6, 40.0 / 1.5, 30.0 / 1.5))
    assert find_workload_change(launch((64, 1, 1), values=shares(1e6, 40.0, 30.0)), grid) is None


def test_shares_of_one_grid_and_code_that_grew_alike_are_unclear() -> None:
    a, b = launch(values=shares(1e6, 40.0, 30.0)), launch(values=shares(2e6, 41.0, 30.5))
    change = find_workload_change(a, b)
    assert change is not None
    assert change.verdict is Verdict.UNCLEAR


@pytest.mark.parametrize("clock", [{}, {"gpc__cycles_elapsed.avg.per_second": 1.5e9}])
def test_a_rate_times_the_time_stands_in_for_cycles(clock: dict[str, float]) -> None:
    """Three times the context of one persistent kernel: as busy, three times as long."""
    busy = {
        "sm__inst_executed.sum.per_cycle_elapsed": 120.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 80.0,
        **clock,
    }
    a, b = (launch(values={DURATION: ns, **busy}) for ns in (1.1e5, 3.9e5))
    change = find_workload_change(a, b)
    assert change is not None
    assert change.verdict is Verdict.UNCLEAR
    slower = launch(values={DURATION: 3.9e5, **busy, "sm__inst_executed.sum.per_cycle_elapsed": 34.0})
    assert find_workload_change(a, slower) is None, "as many instructions"


@pytest.mark.parametrize(
    ("traffic", "held", "opcodes", "compared"),
    [
        (1.0, 1.0, None, True),  # each thread loads two, and half as many read the same
        (1.3, 1.0, None, True),
        (0.55, 1.0, None, False),  # half of everything is half the data
        (1.0, 0.5, None, False),
        (1.0, 1.0, MIX, False),  # the same code
    ],
)
def test_half_the_threads_that_read_the_same_are_other_code(
    traffic: float, held: float, opcodes: dict[str, float] | None, compared: bool
) -> None:
    a = launch((65536, 1, 1), values=work(1e8, 6e6, **{HELD: 1.6e10}), opcodes=opcodes)
    values = work(0.55e8, 6e6 * traffic, **{HELD: 1.6e10 * held})
    b = launch((32768, 1, 1), values=values, opcodes=opcodes)
    for one, other in ((a, b), (b, a)):
        change = find_workload_change(one, other)
        assert (change is None) is compared
        assert change is None or change.verdict is Verdict.NOT_COMPARABLE


def test_equal_stores_do_not_hide_a_longer_inner_loop() -> None:
    """A reduction stores one sector whatever it reads: more of everything but stores is another problem."""
    few = launch((64, 1, 1), values=work(1e6, 5e5, **{STORED: 1}))
    many = launch((2048, 1, 1), values=work(32e6, 16e6, **{STORED: 1}))
    change = find_workload_change(few, many)
    assert change is not None
    assert change.verdict is Verdict.NOT_COMPARABLE
    other_code = launch((2048, 1, 1), values=work(32e6, 16e6, **{STORED: 1, REGISTERS: 40.0}))
    change = find_workload_change(few, other_code)
    assert change is not None
    assert change.verdict is Verdict.UNCLEAR
    longer = launch((64, 1, 1), values=work(2e6, 1e6, **{STORED: 1}))
    change = find_workload_change(few, longer)
    assert change is not None
    assert change.verdict is Verdict.UNCLEAR


def test_other_code_that_stores_the_same_and_loads_twice_as_much_is_judged() -> None:
    """A lost tile: another grid, twice the instructions and traffic, and the same output."""
    a = launch((32, 32, 1), (256, 1, 1), work(1e6, 5e5, **{STORED: 32_768}))
    b = launch((64, 64, 1), (256, 1, 1), work(2.2e6, 1.2e6, **{STORED: 32_768, REGISTERS: 24.0}))
    assert find_workload_change(a, b) is None
    no_stores = launch((64, 64, 1), (256, 1, 1), work(2.2e6, 1.2e6, **{STORED: 32_800, REGISTERS: 24.0}))
    assert find_workload_change(a, no_stores) is not None


def test_another_workload_has_its_numbers_and_no_verdict_on_any() -> None:
    comparison = compare(side(SMALL), side(LARGE), TABLE)
    assert comparison.comparable, "the sides are: their launches are not"
    (pair,) = comparison.pairs
    assert isinstance(pair.workload_change, WorkloadChange)
    assert pair.verdict is Verdict.NOT_COMPARABLE
    assert {change.verdict for change in pair.metrics} == {Verdict.NOT_COMPARABLE}
    assert pair.headline is not None
    assert (pair.headline.a.number, pair.headline.b.number) == (1e6, 16e6)
    assert pair.headline.reason == f"another workload: {GRID}"
    (explanation,) = explain(comparison, TABLE)
    assert explanation.sentence == f"No causes: another workload: {GRID}."
    assert not explanation.causes


def test_what_may_be_another_problem_size_is_unclear_where_it_moved() -> None:
    a, b = launch(values=work(1000, 500)), launch(values=work(5380, 2630, **{DURATION: 5e6}))
    comparison = compare(side(a), side(b), TABLE)
    (pair,) = comparison.pairs
    verdicts = {change.concept: change.verdict for change in pair.metrics if change.b.number is not None}
    assert verdicts == {
        "duration": Verdict.UNCLEAR,
        "inst_executed": Verdict.UNCLEAR,
        "l2_sectors": Verdict.UNCLEAR,
        "registers": Verdict.SAME,
        "shared_static": Verdict.SAME,
    }
    (explanation,) = explain(comparison, TABLE)
    assert explanation.moved is None, "what moved with the size is no reason"
    assert explanation.sentence.startswith("No causes: instructions (+438 %) and L2 sectors (+426 %) grew")
    verdicts = gate(comparison)
    assert verdicts.exit_code() is Exit.UNJUDGED
    assert verdicts.compared == 1
    assert [finding.verdict for finding in verdicts.findings] == [Verdict.UNCLEAR]


def test_a_gate_cannot_judge_another_workload_and_says_which_launch() -> None:
    verdicts = gate(compare(side(SMALL), side(LARGE), TABLE))
    assert verdicts.exit_code() is Exit.UNJUDGED
    finding = next(finding for finding in verdicts.findings if finding.kernel)
    assert (finding.kernel, finding.verdict) == ("kernel", Verdict.NOT_COMPARABLE)
    assert finding.line == f"not comparable: another workload: {GRID}"


def test_sides_of_a_declared_workload_may_differ_in_their_grid_and_work() -> None:
    declared = compare(side(SMALL, workload="b4"), side(LARGE, workload="b4"), TABLE)
    assert declared.pairs[0].workload_change is None
    assert declared.pairs[0].verdict is Verdict.WORSE
    assert gate(declared).exit_code() is Exit.REGRESSION
    one_side = compare(side(SMALL), side(LARGE, workload="b4"), TABLE)
    assert one_side.pairs[0].verdict is Verdict.NOT_COMPARABLE


def test_a_declared_pair_may_differ_in_its_grid_and_work() -> None:
    pairing = Pairing(asked=(KernelPair("kernel", "kernel"),))
    (pair,) = compare(side(SMALL), side(LARGE), TABLE, pairing=pairing).pairs
    assert pair.workload_change is None
    assert pair.verdict is Verdict.WORSE


def test_a_planted_regression_of_one_size_still_fails() -> None:
    slower = compare(side(SMALL), side(replace(SMALL, values=LARGE.values)), TABLE)
    assert slower.pairs[0].verdict is Verdict.WORSE
    assert gate(slower).exit_code() is Exit.REGRESSION


def report(path: Path, grid: Size, duration: float, created: int) -> str:
    """A report file of one launch, whose registers and opcode mix are always the same."""
    attributes = {f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")}
    metrics = {
        **attributes,
        "device__attribute_display_name": "Test GPU",
        DURATION: duration,
        REGISTERS: 32.0,
        "sass__inst_executed_per_opcode": Metric(1000.0, [(key, int(count)) for key, count in MIX.items()]),
    }
    launch = LaunchResult("gemm", "gemm(float *)", "_Z4gemmPf", metrics, grid, (16, 16, 1))
    path.write_bytes(ReportFile([launch], SessionDetails(created=created)).to_bytes())
    return str(path)


@pytest.mark.slow
def test_two_report_files_of_two_sizes_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ncu_report")
    a = report(tmp_path / "small.ncu-rep", (8, 8, 1), 1e6, 1730121091)
    b = report(tmp_path / "large.ncu-rep", (32, 32, 1), 16e6, 1730121991)
    assert main(["compare", a, b]) == Exit.PASS
    printed = capsys.readouterr().out
    assert "≠ not comparable" in printed
    assert f"gemm: another workload: {GRID}" in printed
    assert "worse" not in printed
    assert "to compare them anyway: --pair gemm=gemm, or a workload declared" in printed
    assert main(["compare", a, b, "--fail", "--json"]) == Exit.UNJUDGED
    document = json.loads(capsys.readouterr().out)
    (pair,) = document["launches"]
    assert pair["verdict"] == "not_comparable"
    assert pair["workload_change"] == {
        "verdict": "not_comparable",
        "reason": f"another workload: {GRID}",
        "code": "same",
        "code_reason": "0.0 % of the executed instructions are of other opcodes",
    }
    assert document["comparable"] is True


def test_threads_of_a_block_that_nobody_says_are_not_counted() -> None:
    a = launch((8, 8, 1), None, work(1000, 500, **{STORED: 100}))
    b = launch((20, 1, 1), (1, 1, 1), work(1450, 10_000, **{STORED: 2000, REGISTERS: 40.0}))
    assert find_workload_change(a, b) is None
    assert find_workload_change(b, a) is None
