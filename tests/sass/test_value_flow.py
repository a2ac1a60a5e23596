"""Loops, and which instruction computed what another reads: made code, read by hand."""

from __future__ import annotations

from collections import Counter

from profiler.sass.listing import SassLine, function_rows
from profiler.sass.loops import block_graph
from profiler.sass.value_flow import ValueFlow, instruction_flow, value_flow

_NESTED = [
    "MOV R0, RZ",  # 0x00
    "MOV R2, RZ",  # 0x10: the head of the outer loop
    "FFMA R3, R4, R5, R3",  # 0x20: the inner loop
    "IADD3 R2, R2, 0x1, RZ",
    "ISETP.GE.AND P0, PT, R2, 0x8, PT",
    "@!P0 BRA 0x20",
    "IADD3 R0, R0, 0x1, RZ",  # 0x60
    "ISETP.GE.AND P1, PT, R0, R6, PT",
    "@!P1 BRA 0x10",
    "STG.E desc[UR4][R8.64], R3",
    "EXIT",
    "BRA 0xb0",  # padding
    "NOP",
]


def _rows(texts: list[str]) -> tuple[SassLine, ...]:
    return function_rows([[(16 * place, text) for place, text in enumerate(texts)]])[0]


def _flow(texts: list[str]) -> ValueFlow:
    rows = _rows(texts)
    return value_flow([instruction_flow(row.masked or "") for row in rows], block_graph(rows))


def _origins(texts: list[str], place: int, source: int) -> list[set[tuple[int, int]]]:
    return [set(some) for some in _flow(texts).origins(place, source)]


def _colours(texts: list[str]) -> Counter[int]:
    flow = _flow(texts)
    *_, last = flow.colours(flow.base, flow.base)
    return Counter(last.tolist())


def test_each_instruction_is_in_as_many_loops_as_jumps_go_back_around_it() -> None:
    assert block_graph(_rows(_NESTED)).depths == (0, 1, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0)


def test_a_block_that_is_laid_behind_the_loop_is_in_it_all_the_same() -> None:
    texts = ["MOV R0, RZ", "@P0 BRA 0x60", "IADD3 R0, R0, 0x1, RZ", "@P1 BRA 0x10", "EXIT", "NOP"]
    texts += ["FADD R1, R1, R2", "BRA 0x20"]
    assert block_graph(_rows(texts)).depths == (0, 1, 1, 1, 0, 0, 1, 1)


def test_a_jump_back_that_does_not_come_from_behind_its_target_is_no_loop() -> None:
    """Two ways into it: neither head is before the other."""
    texts = [
        "@P0 BRA 0x40",
        "FADD R1, R1, R2",
        "@P1 BRA 0x40",
        "EXIT",
        "FMUL R1, R1, R2",
        "@P2 BRA 0x10",
        "EXIT",
    ]
    assert block_graph(_rows(texts)).depths == (0,) * 7


def test_an_indirect_jump_leads_where_its_table_says() -> None:
    texts = ["MOV R0, RZ", "BRX R2 -0x20", "FADD R1, R1, R2", "BRA 0x60", "FMUL R1, R1, R2", "BRA 0x60"]
    texts += ["@P0 BRA 0x10", "EXIT"]
    rows = _rows(texts)
    graph = block_graph(rows, {1: (2, 4, 99)})
    assert graph.depths == (0, 1, 1, 1, 1, 1, 1, 0)
    assert len(graph.loops) == 1
    assert set(graph.successors[graph.block_of[1]]) == {graph.block_of[2], graph.block_of[4]}
    assert max(block_graph(rows).depths) > 1, "unknown: to any block"
    guarded = block_graph(_rows([texts[0], f"@!P1 {texts[1]}", *texts[2:]]), {1: (4,)})
    assert set(guarded.successors[guarded.block_of[1]]) == {guarded.block_of[2], guarded.block_of[4]}


def test_code_that_is_called_is_in_the_loops_of_the_call() -> None:
    texts = [
        "MOV R0, RZ",
        "CALL.REL.NOINC 0x50",
        "@P0 BRA 0x10",
        "EXIT",
        "NOP",
        "LDL R1, [R2]",
        "RET.REL.NODEC R6 0x0",
    ]
    assert block_graph(_rows(texts)).depths == (0, 1, 1, 0, 0, 1, 1)


def test_a_value_comes_from_before_the_loop_and_from_the_step_before() -> None:
    assert _origins(_NESTED, 2, 2) == [{(-1, 3), (2, 0)}], "R3: as it was at the start, or the last sum"
    assert _origins(_NESTED, 3, 0) == [{(1, 0), (3, 0)}]
    assert _origins(_NESTED, 9, 1) == [{(2, 0)}], "the inner loop runs once at least"


def test_a_guarded_write_leaves_what_was_there() -> None:
    texts = ["MOV R0, RZ", "@P0 MOV R0, 0x1", "IADD3 R1, R0, R2, RZ", "EXIT"]
    assert _origins(texts, 2, 0) == [{(0, 0), (1, 0)}]
    texts[1] = "MOV R0, 0x1"
    assert _origins(texts, 2, 0) == [{(1, 0)}]


def test_a_wide_result_is_all_its_registers() -> None:
    texts = ["LDG.E.128 R4, desc[UR4][R2.64]", "FADD R8, R6, R7", "EXIT"]
    assert _origins(texts, 1, 0) == [{(0, 2)}]
    assert _origins(texts, 1, 1) == [{(0, 3)}]


def test_a_call_of_other_code_may_change_any_register() -> None:
    texts = ["MOV R8, RZ", "CALL.ABS.NOINC 0x800", "FADD R1, R8, R9", "EXIT"]
    assert _origins(texts, 2, 0) == [{(0, 0), (-2, 8)}]


def test_order_and_places_of_factors_do_not_colour_and_swapped_operands_do() -> None:
    first = ["FMUL R2, R0, R1", "FADD R3, R0, R1", "FADD R4, R2, -R3", "STG.E desc[UR4][R12.64], R4", "EXIT"]
    other = ["FADD R6, R1, R0", "FMUL R3, R1, R0", "FADD R9, -R6, R3", "STG.E desc[UR4][R12.64], R9", "EXIT"]
    assert _colours(first) == _colours(other)
    wrong = ["FADD R6, R1, R0", "FMUL R3, R1, R0", "FADD R9, -R3, R6", "STG.E desc[UR4][R12.64], R9", "EXIT"]
    assert _colours(first) != _colours(wrong)
