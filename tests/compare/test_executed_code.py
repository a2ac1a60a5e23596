"""Machine code that executed another number of instructions, as report files hold both."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.compare.executed_code import machine_code
from profiler.evidence.metric_table import load_metrics
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from tests.compare.test_clock_drift import GPU
from tests.reportfiles import machine_code as made
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, SessionDetails

TABLE = load_metrics()
FUNCTION = made.BY_HEAD_DIM[64]


def _no_store() -> Store:
    raise AssertionError("two files need no store")


def report(
    path: Path, cubin: str, ns: float, executed: int, address: int = 0x7F0000000000, threads: int = 128
) -> Path:
    code = made.load(cubin, address)
    pcs = [pc for pc, _ in made.instructions(cubin, [code.functions[FUNCTION]])]
    metrics = GPU | {
        "gpu__time_duration.sum": ns,
        "smsp__inst_executed.sum": executed,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 4096,
        "lts__t_sectors.sum": 1_000_000,
        "inst_executed": Metric(executed, [(pc, executed // len(pcs)) for pc in pcs]),
    }
    launch = LaunchResult(
        "v1", "void v1<64>(__half*)", FUNCTION, metrics, (1024, 1, 1), (threads, 1, 1), code=code
    )
    path.write_bytes(ReportFile([launch], SessionDetails(created=1_730_000_000 + int(ns))).to_bytes())
    return path


def compared(a: Path, b: Path) -> Comparison:
    sides = resolve_names.resolve_all([str(a), str(b)], _no_store)
    return compare(*sides, TABLE)


@pytest.mark.parametrize(
    ("cubin", "executed", "expected"),
    [
        ("v1", 900_000, Verdict.UNCLEAR),  # nine times of the same instructions
        ("edited", 900_000, Verdict.WORSE),
        ("v1", 101_000, Verdict.WORSE),  # as many, and far slower
    ],
)
def test_more_of_the_same_machine_code_is_other_data(
    tmp_path: Path, cubin: str, executed: int, expected: Verdict
) -> None:
    a = report(tmp_path / "a.ncu-rep", "v1", 1.88e6, 100_000)
    b = report(tmp_path / "b.ncu-rep", cubin, 3.08e6, executed, address=0x7F1234500000)
    there, back = compared(a, b), compared(b, a)
    assert there.pairs[0].verdict is expected
    assert back.pairs[0].verdict is (Verdict.BETTER if expected is Verdict.WORSE else expected)
    change = there.pairs[0].workload_change
    assert (change is not None and change.whatever_the_code) is (expected is Verdict.UNCLEAR)


@pytest.mark.parametrize(
    ("cubin", "ns", "expected"),
    [
        ("v1", 2.30e6, Verdict.UNCLEAR),  # one launch a side of the same instructions, 22 % apart
        ("v1", 1.90e6, Verdict.SAME),
        ("edited", 2.30e6, Verdict.WORSE),
    ],
)
def test_one_launch_a_side_of_the_same_machine_code_decides_no_small_change(
    tmp_path: Path, cubin: str, ns: float, expected: Verdict
) -> None:
    a = report(tmp_path / "a.ncu-rep", "v1", 1.88e6, 100_000)
    b = report(tmp_path / "b.ncu-rep", cubin, ns, 100_000)
    (pair,) = compared(a, b).pairs
    assert pair.verdict is expected
    assert pair.workload_change is None
    (back,) = compared(b, a).pairs
    assert back.verdict is (Verdict.BETTER if expected is Verdict.WORSE else expected)


def test_another_block_of_the_same_machine_code_is_tuning(tmp_path: Path) -> None:
    a = report(tmp_path / "a.ncu-rep", "v1", 1.88e6, 100_000, threads=32)
    b = report(tmp_path / "b.ncu-rep", "v1", 3.08e6, 364_000)
    assert compared(a, b).pairs[0].verdict is Verdict.WORSE


def test_code_is_the_same_wherever_it_was_loaded(tmp_path: Path) -> None:
    codes = []
    for index, address in enumerate((0x7F0000000000, 0x7F1234500000)):
        path = report(tmp_path / f"{index}.ncu-rep", "v1", 1e6, 100_000, address)
        (side,) = resolve_names.resolve_all([str(path)], _no_store)
        codes.append(machine_code(side, side.launches[0]))
    assert len(codes[0]) > 100
    assert codes[0] == codes[1]
    assert any("BRA +" in text for text in codes[0]), "jumps are relative"
