"""Machine code that executed another number of instructions, as report files hold both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import profiler
from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.compare.executed_code import machine_code
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
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
    path: Path,
    cubin: str,
    ns: float,
    executed: int,
    address: int = 0x7F0000000000,
    threads: int = 128,
    counted: bool = True,
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
    if not counted:
        names = ("gpu__time_duration.sum", "inst_executed")  # of each instruction, which holds the code
        metrics = GPU | {name: metrics[name] for name in names}
    launch = LaunchResult(
        "v1", "void v1<64>(__half*)", FUNCTION, metrics, (1024, 1, 1), (threads, 1, 1), code=code
    )
    path.write_bytes(ReportFile([launch], SessionDetails(created=1_730_000_000 + int(ns))).to_bytes())
    return path


def without_registers(launch: Launch) -> Launch:
    values = {name: value for name, value in launch.values.items() if name != "launch__registers_per_thread"}
    return replace(launch, values=pack_values(values))


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


def test_more_of_the_same_machine_code_is_other_data_where_the_time_is_too_short_to_tell(
    tmp_path: Path,
) -> None:
    a = report(tmp_path / "a.ncu-rep", "v1", 2400, 100_000)
    b = report(tmp_path / "b.ncu-rep", "v1", 3870, 190_000)
    edited = report(tmp_path / "edited.ncu-rep", "edited", 3870, 190_000)
    assert profiler.gate(b, baseline=a).exit_code == 3
    assert profiler.gate(edited, baseline=a).exit_code == 1, "other code that executes more"
    change = compared(a, b).pairs[0].workload_change
    assert change is not None
    assert change.whatever_the_code
    assert compared(a, edited).pairs[0].workload_change is None


@pytest.mark.parametrize(
    ("cubin", "ns", "expected"),
    [
        ("v1", 2.30e6, Verdict.UNCLEAR),  # one launch per side of the same instructions, 22 % apart
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


@pytest.mark.parametrize(("cubin", "expected"), [("v1", Verdict.UNCLEAR), ("edited", Verdict.WORSE)])
def test_equal_machine_code_of_which_nothing_was_counted_decides_no_small_change(
    tmp_path: Path, cubin: str, expected: Verdict
) -> None:
    a = report(tmp_path / "a.ncu-rep", "v1", 1.88e6, 100_000, counted=False)
    b = report(tmp_path / "b.ncu-rep", cubin, 2.13e6, 100_000, counted=False)
    (pair,) = compared(a, b).pairs
    assert pair.verdict is expected


@pytest.mark.parametrize(
    ("moved", "ns", "expected"),
    [
        ({}, 2.2e6, Verdict.UNCLEAR),  # 17 % apart, and every count is equal
        ({}, 1.6e6, Verdict.UNCLEAR),
        ({}, 2.8e6, Verdict.WORSE),  # further than single launches of one program were seen to lie apart
        ({"smsp__inst_executed.sum": 1.005e5}, 2.2e6, Verdict.WORSE),
        ({"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 5.2e6}, 2.2e6, Verdict.WORSE),
        ({"launch__registers_per_thread": 40.0}, 2.2e6, Verdict.WORSE),
        ({"launch__shared_mem_per_block_dynamic": 1024.0}, 2.2e6, Verdict.WORSE),
    ],
)
def test_one_launch_a_side_of_equal_counts_decides_no_small_change_without_machine_code(
    moved: dict[str, float], ns: float, expected: Verdict
) -> None:
    counts = {
        "gpu__time_duration.sum": 1.88e6,
        "smsp__inst_executed.sum": 1e5,
        "lts__t_sectors.sum": 1e6,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 4.2e6,
        "launch__registers_per_thread": 32.0,
        "launch__shared_mem_per_block_dynamic": 0.0,
    }
    sides = [
        Side(
            "side",
            (
                Launch(
                    "v1",
                    "v1(float*)",
                    "",
                    (1024, 1, 1),
                    (128, 1, 1),
                    7,
                    (),
                    0,
                    pack_values({name: Value(x, "ns" if "time" in name else "") for name, x in of.items()}),
                ),
            ),
            "GPU",
            "8.0",
        )
        for of in (counts, counts | {"gpu__time_duration.sum": ns} | moved)
    ]
    (pair,) = compare(sides[0], sides[1], TABLE).pairs
    assert pair.verdict is expected
    # Without registers nothing says that the build is the same.
    bare = [replace(of, launches=tuple(without_registers(x) for x in of.launches)) for of in sides]
    (pair,) = compare(bare[0], bare[1], TABLE).pairs
    assert pair.verdict is (Verdict.BETTER if ns < 1.88e6 else Verdict.WORSE)


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
    assert machine_code(replace(side, report_path=None), side.launches[0]) == (), "no report file"
    path.write_bytes(path.read_bytes()[:100])
    assert machine_code(side, side.launches[0]) == (), "it cannot be read any more"
