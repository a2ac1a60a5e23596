"""Programs of a few instructions, run from their text: what they compute, count, and refuse."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from threading import Barrier, Thread

import numpy as np
import pytest

from profiler.model.cubin import KernelImage, Parameter
from profiler.model.instructions import NoModel, parse_instruction
from profiler.model.interpreter import Execution, count_blocks, load_program, run_blocks
from profiler.model.machine import NotedRegisters, note_read, note_write, noted_registers
from profiler.model.memory import GlobalMemory

IMAGE = KernelImage("k", (Parameter(0, 0, 8), Parameter(1, 8, 4)), 0x210, {}, 0)
STORE = ("IMAD.WIDE R2, R0, 0x4, R2", "STG.E desc[UR4][R2.64], R5", "EXIT")
HEAD = ("S2R R0, SR_TID.X", "LDC.64 R2, c[0x0][0x210]")


def run(
    lines: Sequence[str], threads: int = 32, number: int = 0, blocks: int = 1, size: int = 256
) -> tuple[np.ndarray, Execution]:
    """Run a kernel k(unsigned* out, int number): what is in `out` then, and what was executed."""
    out = np.zeros(size, np.uint32)
    memory = GlobalMemory([out])
    code = [(16 * position, line) for position, line in enumerate(lines)]
    parameters = [struct.pack("<Q", memory.addresses[0]), struct.pack("<i", number)]
    program = load_program(IMAGE, code)
    execution = run_blocks(program, (blocks, 1, 1), (threads, 1, 1), 1024, parameters, memory)
    return memory.read_array(0, out), execution


def compute(*lines: str, number: int = 0) -> np.ndarray:
    """What each lane of a warp has in R5 after some instructions; R0 is its number."""
    out, _ = run((*HEAD, *lines, *STORE), number=number)
    return out[:32]


LANES = np.arange(32, dtype=np.uint32)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("IADD3 R5, R0, -0x1, RZ",), LANES - np.uint32(1)),
        (("IADD3 R5, -R0, 0x20, R0",), np.full(32, 32)),
        # 64-bit additions in two halves: the carry of the lower one goes into the upper one.
        (("IADD3 R6, P0, R0, -0x4, RZ", "IADD3.X R5, RZ, 0x7, RZ, P0, !PT"), 7 + (LANES >= 4)),
        (("IADD3 R6, P0, R0, -R0, RZ", "IMAD.X R5, RZ, RZ, RZ, P0"), np.ones(32)),
        (("IMAD R5, R0, R0, -R0",), LANES * LANES - LANES),
        # Blackwell has 255 uniform registers, of which its largest kernels use more than the 63 of others.
        (("UMOV UR63, 0x5", "UMOV UR76, 0x2", "IMAD R5, R0, UR63, UR76"), 5 * LANES + 2),
        (("UMOV UR63, 0x5", "UMOV UR254, 0x2", "IADD3 R5, R0, UR254, URZ"), LANES + 2),
        (("IMAD.HI R5, R0, 0x40000000, RZ",), LANES >> 2),
        # The addend is a register pair: here 5 * 2^32, so that 5 is added.
        (("MOV R6, RZ", "MOV R7, 0x5", "IMAD.HI.U32 R5, R0, 0x40000000, R6"), (LANES >> 2) + 5),
        (("LEA R5, R0, 0x3, 0x4",), LANES * 16 + 3),
        (("LEA.HI R5, R0, R0, RZ, 0x1f",), LANES + (LANES >> 1)),
        (("IADD3 R6, -R0, RZ, RZ", "LEA.HI.X.SX32 R5, R6, 0x5, 0x1, !PT"), np.where(LANES, 4, 5)),
        (("IADD3 R6, -R0, RZ, RZ", "SHF.R.S32.HI R5, RZ, 0x1f, R6"), np.where(LANES, 2**32 - 1, 0)),
        (("SHF.L.U64.HI R5, R0, 0x1e, RZ",), LANES >> 2),
        (("LOP3.LUT R5, R0, 0x6, RZ, 0xc0, !PT",), LANES & 6),
        (("LOP3.LUT R5, R0, 0x6, 0x11, 0xf8, !PT",), LANES | (6 & 0x11)),
        (("LOP3.LUT R5, R0, 0x6, 0x11, 0xca, !PT",), (LANES & 6) | (~LANES & 0x11)),
        (("PRMT R5, R0, 0x5410, R0",), LANES | LANES << 16),
        (("VIMNMX R5, R0, 0x10, !PT",), np.maximum(LANES, 16)),
        (("VIADDMNMX R5, R0, 0xfffffff0, RZ, !PT",), np.maximum(LANES.astype(int) - 16, 0)),
        (("ISETP.GE.AND P0, PT, R0, 0x9, PT", "SEL R5, RZ, 0x1, !P0"), LANES >= 9),
        (("UMOV UR6, 0x5", "ULEA UR6, UR6, UR6, 0x2", "VIADD R5, R0, UR6"), LANES + 25),
        (("LDC R5, c[0x0][0x218]",), np.full(32, 77)),
        (("LDC.S8 R5, c[0x0][0x218]", "LDC.U8 R6, c[0x0][0x219]", "LEA R5, R6, R5, 0x8"), np.full(32, 77)),
        (("SHFL.BFLY PT, R5, R0, 0x3, 0x1f",), LANES ^ 3),
        (("SHFL.IDX PT, R5, R0, 0x9, 0x1f",), np.full(32, 9)),
        (("SHFL.DOWN PT, R5, R0, 0x4, 0x1f",), np.minimum(LANES + 4, LANES + 4 * (LANES < 28))),
        (("ISETP.LT.AND P0, PT, R0, 0x4, PT", "VOTE.ANY R5, PT, P0"), np.full(32, 15)),
        (("P2R R6, PR, RZ, 0x7f", "R2P PR, R0, 0x5", "P2R.B1 R5, PR, R0, 0x7f"), LANES | (LANES & 5) << 8),
        (("R2P PR, R0, 0x2", "SEL R5, R0, 0x63, P1"), np.where(LANES & 2, LANES, 99)),
        (
            ("SHF.L.U32 R6, R0, 0x8, RZ", "R2P PR, R6.B1, 0x2", "SEL R5, R0, 0x63, P1"),
            np.where(LANES & 2, LANES, 99),
        ),
        (("BMSK R5, R0, 0x3",), (7 << LANES.astype(np.uint64)) & 0xFFFFFFFF),
        (("SGXT R5, R0, 0x4",), np.where(LANES & 8, (LANES & 15) + np.uint32(2**32 - 16), LANES & 15)),
        (("SGXT.U32 R5, R0, 0x4",), LANES & 15),
        (
            ("I2FP.F32.S32 R6, R0", "FMUL R6, R6, -0.5", "F2I.TRUNC.NTZ R5, R6"),
            2**32 - (LANES >> 1).astype(int),
        ),
        (("I2FP.F32.S32 R6, R0", "FMUL R6, R6, -0.5", "F2I.U32.NTZ R5, R6"), np.zeros(32)),
        # -1 * 2^32 + lane - 1: the sum carries for all lanes but the first
        (
            ("MOV R7, 0xffffffff", "MOV R6, R7", "IMAD.WIDE.U32 R8, P0, R0, 0x1, R6", "SEL R5, RZ, 0x1, !P0"),
            LANES > 0,
        ),
        (("STL [R1+-0x8], R0", "LDL R5, [R1+-0x8]"), LANES),
    ],
)
def test_what_integer_instructions_compute(lines: Sequence[str], expected: np.ndarray) -> None:
    prepared = ("LDC R1, c[0x0][0x28]", *lines)
    assert compute(*prepared, number=77).tolist() == np.asarray(expected).astype(np.uint32).tolist()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("I2FP.F32.S32 R6, R0", "FFMA R5, R6, R6, -1"), LANES.astype(np.float32) ** 2 - 1),
        (("I2FP.F32.S32 R6, R0", "FMUL R5, |R6|, -0.5"), LANES * np.float32(-0.5)),
        (("LEA R6, R0, 0x1000001, 0x2", "I2F.U32.RP R5, R6"), 2**24 + 2 + 4 * LANES),
        (("I2FP.F32.S32 R6, R0", "FMNMX R5, R6, 7, !PT"), np.maximum(LANES, 7)),
        (("I2FP.F32.S32 R6, R0", "MUFU.EX2 R5, -R6"), np.exp2(-LANES.astype(np.float32))),
        (("HFMA2.MMA R6, -RZ, RZ, 1.5, 0.25", "HADD2.F32 R5, -RZ, R6.H1_H1"), np.full(32, 1.5)),
        (
            ("I2FP.F32.S32 R6, R0", "F2FP.F16.F32.PACK_AB R6, RZ, R6", "HADD2.F32 R5, -RZ, R6.H0_H0"),
            LANES,
        ),
        # A row of A is 8 ones and 8 zeros, a column of B its number: 8 times the number.
        (
            (
                "MOV R8, 0x3c003c00",
                "MOV R9, R8",
                "MOV R10, RZ",
                "MOV R11, RZ",
                "SHF.R.U32.HI R12, RZ, 0x2, R0",
                "I2FP.F32.U32 R12, R12",
                "F2FP.F16.F32.PACK_AB R12, R12, R12",
                "MOV R13, R12",
                "CS2R R16, SRZ",
                "CS2R R18, SRZ",
                "HMMA.16816.F32 R16, R8, R12, R16",
                "FADD R5, R16, R19",
            ),
            8.0 * (4 * (LANES % 4) + 1),
        ),
    ],
)
def test_what_floating_point_instructions_compute(lines: Sequence[str], expected: np.ndarray) -> None:
    assert np.array_equal(compute(*lines).view(np.float32), np.asarray(expected, np.float32))


def test_lanes_that_part_in_a_loop_meet_behind_it() -> None:
    """A lane goes round as often as its number; the warp as often as the last of them."""
    lines = (
        *HEAD,  # 0, 1
        "MOV R5, RZ",  # 2
        "BSSY B0, 0x80",  # 3
        "ISETP.GE.AND P0, PT, R5, R0, PT",  # 4
        "@P0 BRA 0x80",  # 5
        "IADD3 R5, R5, 0x1, RZ",  # 6
        "BRA 0x40",  # 7
        "BSYNC B0",  # 8
        *STORE,
    )
    out, execution = run(lines, threads=64)
    assert out[:64].tolist() == list(range(64))
    counts = dict(zip((i.offset // 16 for i in execution.instructions), execution.warps, strict=True))
    lanes = dict(zip((i.offset // 16 for i in execution.instructions), execution.threads, strict=True))
    assert counts[6] == 31 + 63
    assert lanes[6] == sum(range(64))
    assert counts[9] == 2


def test_a_loop_that_is_left_by_a_call_is_no_place_that_a_function_returns_to() -> None:
    """ptxas leaves loops by a guarded CALL without a way back: the function called later returns elsewhere.

    If it were one, the loop's counter would seem to be the number that the function computes, and the branch
    around the load one on numbers, which a run without values does not take: the load left the array then.
    """
    lines = (
        *HEAD,
        "MOV R6, RZ",  # 0x20
        "ISETP.GE.AND P0, PT, R6, 0x2, PT",  # 0x30: the loop, of which two rounds load
        "@P0 BRA 0x70",
        "IMAD.WIDE R8, R6, 0x80, R2",
        "LDG.E R5, desc[UR4][R8.64]",
        "IADD3 R6, R6, 0x1, RZ",  # 0x70
        "ISETP.NE.AND P0, PT, R6, 0x8, PT",
        "@!P0 CALL.REL.NOINC 0xb0",
        "BRA 0x30",
        "FADD R6, R5, R5",  # 0xb0: behind the loop
        "MOV R4, 0xe0",
        "CALL.REL.NOINC 0x100",
        "STG.E desc[UR4][R2.64], R6",  # 0xe0
        "EXIT",
        "FADD R6, R6, R6",  # 0x100: a function
        "RET.REL.NODEC R4 0x0",
    )
    memory = GlobalMemory([np.zeros(64, np.uint32)])
    program = load_program(IMAGE, [(16 * position, line) for position, line in enumerate(lines)])
    parameters = [struct.pack("<Q", memory.addresses[0]), struct.pack("<i", 0)]
    shape = (1, 1, 1), (32, 1, 1), 0
    block = np.zeros((1, 3), np.int64)
    counted = count_blocks(program, *shape, parameters, memory, block, with_values=False, with_trace=False)
    assert counted.assumed == ()
    whole = run_blocks(program, *shape, parameters, memory)
    assert counted.warps[0].tolist() == whole.warps.tolist()
    load, store = counted.total().accesses.values()
    assert (load.requests, store.requests) == (2, 1)


def test_an_access_that_only_an_assumption_makes_says_so() -> None:
    """The load lies behind a branch on a number, at which no run without values looks: it never happens."""
    lines = (
        *HEAD,
        "LDG.E R5, desc[UR4][R2.64]",  # 0x20
        "FSETP.GT.AND P0, PT, R5, RZ, PT",
        "@!P0 BRA 0x60",  # 0x40
        "LDG.E R7, desc[UR4][R2.64+0x4000]",
        "EXIT",
    )
    memory = GlobalMemory([np.zeros(64, np.uint32)])
    program = load_program(IMAGE, [(16 * position, line) for position, line in enumerate(lines)])
    parameters = [struct.pack("<Q", memory.addresses[0]), struct.pack("<i", 0)]
    shape = (1, 1, 1), (32, 1, 1), 0
    assert run_blocks(program, *shape, parameters, memory).warps.tolist() == [1, 1, 1, 1, 1, 0, 1]
    block = np.zeros((1, 3), np.int64)
    with pytest.raises(NoModel, match=r"outside of every array; how branches on .* is assumed, at 0x0040$"):
        count_blocks(program, *shape, parameters, memory, block, with_values=False, with_trace=False)


def test_a_block_waits_at_its_barrier_for_warps_that_come_later() -> None:
    """Thread i reads what thread 63 - i wrote, which is in the other warp."""
    lines = (
        *HEAD,
        "ISETP.LT.AND P0, PT, R0, 0x20, PT",
        "@P0 BRA 0x50",
        "NOP",
        "LEA R6, R0, RZ, 0x2",
        "STS [R6], R0",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "IADD3 R6, -R6, 0xfc, RZ",
        "LDS R5, [R6]",
        *STORE,
    )
    out, execution = run(lines, threads=64)
    assert out[:64].tolist() == list(range(63, -1, -1))
    loads = next(
        count for count in execution.accesses.values() if (count.space, count.kind) == ("shared", "load")
    )
    assert (loads.requests, loads.wavefronts, loads.conflicts) == (2, 2, 0)


def test_a_strided_access_counts_its_conflicts_and_sectors() -> None:
    lines = (*HEAD, "LDS R5, [R0.X16]", "IMAD.WIDE R2, R0, 0x20, R2", "STG.E [R2.64], R5", "EXIT")
    _, execution = run(lines, number=0)
    shared, stores = execution.accesses.values()
    assert (shared.wavefronts, shared.conflicts) == (4, 3)  # 16 bytes apart: four lanes a bank
    assert (stores.sectors, stores.lines, stores.global_bytes) == (32, 8, 128)


def test_an_unknown_opcode_is_named_where_it_is_reached_and_only_there() -> None:
    with pytest.raises(NoModel, match=r"no model of `UTMALDG\.2D .*` at 0x0020: opcode UTMALDG is not known"):
        compute("UTMALDG.2D [UR8], [UR4], desc[UR6]".replace(", desc[UR6]", ""))
    out = compute("MOV R5, 0x1", "BRA 0x50", "UTMALDG.2D [UR8], [UR4]")
    assert out.tolist() == [1] * 32
    assert compute("MOV R5, 0x1", "BRA 0x50", "NOP.X what[is]{this}").tolist() == [1] * 32


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("IADD3 R5, R0, c[0x0][0x100], RZ", r"what c\[0x0\]\[0x100\] holds is not known"),
        ("MOV R5, c[0x3][0x0]", r"what c\[0x3\]\[0x0\] holds is not known"),
        ("S2R R5, SR_CLOCKLO", "special register SR_CLOCKLO is not known"),
        ("LDG.E R5, [R0.64+0x10]", "outside of every array"),
        ("LDS R5, [R0+0x3fe]", "leaves the shared memory"),
        ("SHF.L.W.U32 R5, R0, 0x1, R0", "wraps around"),
        ("MUFU.SIN R5, R0", "not known"),
        ("BAR.SYNC 0x1", "a barrier of another form"),
        ("IADD3 R5, R0", "a sum of another form"),
    ],
)
def test_what_is_not_known_ends_in_no_model(line: str, why: str) -> None:
    with pytest.raises(NoModel, match=why):
        compute(line)


def test_threads_that_wait_for_ever_are_no_result() -> None:
    """Lane 0 waits for the others of its warp, and they for it, at different places."""
    lines = (*HEAD, "BSSY B0, 0x50", "ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x60")
    with pytest.raises(NoModel, match=r"wait for others that never come, at BAR.*, BSYNC B0"):
        run((*lines, "BAR.SYNC.DEFER_BLOCKING 0x0", "BSYNC B0", "EXIT"))


def test_an_operand_of_another_form_is_named() -> None:
    with pytest.raises(NoModel, match=r"no model of `MOV R1, c\[UR4\]\[R2\]` at 0x0010: operand"):
        parse_instruction(16, "MOV R1, c[UR4][R2]")


def test_blocks_of_a_grid_have_their_numbers_and_their_own_shared_memory() -> None:
    lines = (
        *HEAD,
        "S2R R7, SR_CTAID.X",
        "LEA R6, R0, RZ, 0x2",
        "STS [R6], R7",
        "LDS R5, [R6]",
        "IMAD R0, R7, 0x20, R0",
        *STORE,
    )
    out, execution = run(lines, blocks=5)
    assert out[:160].tolist() == np.repeat(np.arange(5), 32).tolist()
    assert execution.blocks == 5


def test_two_threads_note_their_own_registers() -> None:
    meet = Barrier(2)
    noted: dict[int, NotedRegisters] = {}

    def note(number: int) -> None:
        with noted_registers() as use:
            meet.wait(10)
            note_write("R", number)
            meet.wait(10)
            note_read("R", number)
        noted[number] = use

    threads = [Thread(target=note, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert noted == {n: NotedRegisters({("R", n)}, {("R", n)}) for n in (1, 2)}


TABLES = KernelImage(
    "k", (Parameter(0, 0, 8), Parameter(1, 8, 4)), 0x210, {3: struct.pack("<8I", *range(100, 180, 10))}, 0
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ("LOP3.LUT R6, R0, 0x3, RZ, 0xc0, !PT", "LEA R6, R6, RZ, 0x2", "LDC R5, c[0x3][R6+0x8]"),
            120 + LANES % 4 * 10,
        ),
        (("UMOV UR6, 0x8", "ULDC UR7, c[0x3][UR6+0x4]", "MOV R5, UR7"), np.full(32, 130)),
        (("LOP3.LUT R6, R0, 0x4, RZ, 0xc0, !PT", "LDC.U8 R5, c[0x3][R6+0x10]"), 140 + LANES // 4 % 2 * 10),
        (("LDC.S8 R5, c[0x3][0x10]",), np.full(32, 140 - 256 + 2**32)),
        # A branch and a call to where a table says: here to the instruction at 0x60 or 0x80.
        (
            (
                "LOP3.LUT R6, R0, 0x1, RZ, 0xc0, !PT",
                "LEA R6, R6, 0x60, 0x5",
                "BRX R6 -0x50",
                "EXIT",
                "MOV R5, 0x7",
                "BRA 0xb0",
                "MOV R5, 0x9",
                "BRA 0xb0",
                "NOP",
            ),
            np.where(LANES % 2, 9, 7),
        ),
        (
            (
                "MOV R6, 0x80",
                "MOV R7, RZ",
                "MOV R20, 0x60",
                "CALL.REL.NOINC R6 0x0",
                "BRA 0xb0",
                "EXIT",
                "IADD3 R5, R0, 0x5, RZ",
                "RET.REL.NODEC R20 0x0",
                "NOP",
            ),
            LANES + 5,
        ),
        (("I2F.F64.U32 R6, R0", "DMUL R6, R6, 0.5", "DADD R6, R6, 1", "F2F.F32.F64 R5, R6"), None),
        # Generic addresses: of the thread's own memory, whose window stands in a constant.
        (
            (
                "LDC R1, c[0x0][0x28]",
                "LDC.64 R8, c[0x0][0x20]",
                "IADD3 R1, R1, -0x10, RZ",
                "STL [R1+0x4], R0",
                "IADD3 R8, R8, R1, RZ",
                "LD.E R5, desc[UR4][R8.64+0x4]",
            ),
            LANES,
        ),
        (
            (
                "S2R R9, SR_SWINHI",
                "LEA R8, R0, RZ, 0x2",
                "S2R R7, SR_SWINLO",
                "IADD3 R8, R7, R8, RZ",
                "ST.E desc[UR4][R8.64], R0",
                "LEA R6, R0, RZ, 0x2",
                "LDS R5, [R6]",
            ),
            LANES,
        ),
        # Who meets at a barrier, put away and taken back.
        (
            ("BSSY B6, 0x90", "BMOV.32.CLEAR R5, B6", "BMOV.32 B6, R5", "BSYNC B6"),
            np.full(32, 2**32 - 1),
        ),
    ],
)
def test_tables_functions_and_generic_addresses(lines: Sequence[str], expected: np.ndarray | None) -> None:
    out = np.zeros(64, np.uint32)
    memory = GlobalMemory([out])
    code = [(16 * position, line) for position, line in enumerate((*HEAD, *lines, *STORE))]
    parameters = [struct.pack("<Q", memory.addresses[0]), struct.pack("<i", 0)]
    run_blocks(load_program(TABLES, code), (1, 1, 1), (32, 1, 1), 1024, parameters, memory)
    result = memory.read_array(0, out)[:32]
    if expected is None:
        expected = (LANES * 0.5 + 1).astype(np.float32).view(np.uint32)
    assert result.tolist() == np.asarray(expected, np.uint32).tolist()
