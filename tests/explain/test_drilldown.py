"""Drill-downs of one launch and of two: bank conflicts, the tensor pipe, opcode classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profiler.evidence.values import State, Value, pack_values
from profiler.explain import drilldown
from profiler.reports import read


def test_hardware_conflicts_without_excess_are_arbitration(reports: Path) -> None:
    """Trap 1 on a real launch: 11,596 conflicts counted, and no access pattern that costs anything."""
    launch = read.read_report(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep").launches[0]
    conflicts = drilldown.bank_conflicts(launch)
    assert (conflicts.counted.number, conflicts.excess.number, conflicts.residue) == (11596, 0, 11596)


def test_a_missing_conflict_counter_leaves_no_residue(reports: Path) -> None:
    conflicts = drilldown.bank_conflicts(read.read_report(reports / "mistic" / "prof1.ncu-rep").launches[0])
    assert conflicts.counted.state is State.NOT_COLLECTED
    assert conflicts.residue is None


def test_the_tensor_pipe_is_held_against_the_opcodes(reports: Path) -> None:
    gemm = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0]
    pipe = drilldown.tensor_pipe(gemm)
    assert pipe.instructions == gemm.opcodes["IMMA"] == 110592
    assert pipe.matrix.state is State.NOT_AVAILABLE, "sm_80 has no counter of matrix work alone"
    assert pipe.pipe.number
    half = replace(gemm, opcodes={"HFMA2": 500.0, "FFMA": 3.0})
    assert drilldown.tensor_pipe(half).words.startswith(
        "no matrix instruction: the tensor pipe counts HFMA2.MMA"
    )
    assert "is unknown" in drilldown.tensor_pipe(replace(gemm, opcodes={})).words


def test_the_counter_of_matrix_work_alone_comes_first_where_there_is_one(reports: Path) -> None:
    gemm = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0]
    counter = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"
    name = f"{counter}.avg.pct_of_peak_sustained_elapsed"
    hopper = replace(gemm, values=pack_values({**gemm.values, name: Value(0.0, "%")}))
    assert drilldown.tensor_pipe(hopper).matrix.number == 0.0
    assert drilldown.tensor_pipe(hopper).matrix_name == name


def test_opcode_classes_add_up_and_name_what_came_and_went(reports: Path) -> None:
    a, b = (
        read.read_report(reports / "cutlass" / f"report{n}.ncu-rep").launches[2].opcodes for n in (75, 80)
    )
    changes = drilldown.opcode_class_changes(a, b)
    assert sum(change.a for change in changes) == sum(a.values())
    assert sum(change.b for change in changes) == sum(b.values())
    memory = next(change for change in changes if change.name == "global, local memory")
    assert dict(memory.added) == {"STL": 1536.0, "LDL": 1536.0}, "report80 spills"
    assert [change.name for change in changes if change.matrix] == ["tensor core"]
    assert drilldown.opcode_class_changes({}, b) == ()
