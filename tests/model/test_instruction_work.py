"""What an instruction of a warp computes and moves."""

from __future__ import annotations

import pytest

from profiler.model.instruction_work import Work, access_bytes, instruction_work, sum_of


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("FFMA R1, R2, R3, R4", (64, 0, 0)),
        ("@P0 FADD.FTZ R1, R2, R3", (32, 0, 0)),
        ("HFMA2.BF16_V2 R1, R2, R3, R4", (128, 0, 0)),
        ("HFMA2 R1, -RZ, RZ, 0, 0", (0, 0, 0)),
        ("HFMA2.MMA R1, -RZ, RZ, 0, 0", (0, 0, 0)),
        ("HMMA.16816.F32 R4, R8, R12, R4", (4096, 0, 0)),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", (2048, 0, 0)),
        ("HMMA.SP.16832.F32 R4, R8, R12, R4, R2, 0x0", (None, 0, 0)),
        ("DMMA.8x8x4 R4, R8, R12, R4", (512, 0, 0)),
        ("IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", (0, 0, 0)),
        ("HGMMA.64x128x16.F32 R24, gdesc[UR8], R24", (65536, 0, None)),
        ("UTCHMMA gdesc[UR6], gdesc[UR10], tmem[UR4], tmem[UR12], idesc[UR13]", (None, 0, None)),
        ("LDG.E.128.CONSTANT R4, desc[UR4][R2.64]", (0, 512, 0)),
        ("STG.E.U16 desc[UR4][R2.64], R5", (0, 64, 0)),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R1], desc[UR4][R2.64]", (0, 512, 512)),
        ("LDS.64 R2, [R4]", (0, 0, 256)),
        ("LDSM.16.MT88.4 R4, [R8]", (0, 0, 512)),
        ("LDSM.16.M88 R4, [R8]", (0, 0, 128)),
        ("LD.E R4, [R8.64]", (0, None, None)),
        ("UTMALDG.2D [UR8], [UR4]", (0, None, None)),
        ("IADD3 R1, R2, R3, RZ", (0, 0, 0)),
        ("LDL.128 R4, [R1]", (0, 0, 0)),
    ],
)
def test_the_work_of_an_instruction(text: str, work: tuple[int | None, int | None, int | None]) -> None:
    assert instruction_work(text) == Work(*work)


def test_the_width_of_an_access() -> None:
    opcodes = ("LDG.E", "LDG.E.U8", "STL.64", "LDS.U.128", "LDG.E.ENL2.256")
    assert [access_bytes(opcode) for opcode in opcodes] == [4, 1, 8, 16, 32]


def test_what_one_part_does_not_say_the_sum_does_not() -> None:
    assert sum_of({Work(64, 0, 128): 2, Work(32, 512, None): 1}) == Work(160, 512, None)
    assert sum_of({}) == Work(0, 0, 0)
