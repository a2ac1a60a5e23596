"""Which opcodes multiply matrices, and the classes that an opcode mix is shown in."""

from __future__ import annotations

import pytest

from profiler.evidence.opcodes import (
    CLASS_NAMES,
    OPCODE_CLASSES,
    OTHER,
    TENSOR_CORE,
    class_shares,
    is_matrix_multiply,
    opcode_class,
    operation,
)


@pytest.mark.parametrize(
    "opcode",
    [
        "HMMA.16816.F32",
        "HGMMA.64x64x16.F32",
        "IMMA.16816.S8.S8",
        "IMMA.16832.S8.S8.SAT",
        "DMMA.884",
        "UTCHMMA",
    ],
)
def test_a_tensor_instruction_multiplies_matrices(opcode: str) -> None:
    assert is_matrix_multiply(opcode)
    assert opcode_class(opcode) == TENSOR_CORE


@pytest.mark.parametrize("opcode", ["HFMA2.MMA", "WARPGROUP.ARRIVE", "FFMA", "HMNMX2", "IMAD", "LDSM"])
def test_what_the_tensor_pipe_also_counts_multiplies_none(opcode: str) -> None:
    assert not is_matrix_multiply(opcode)


def test_an_opcode_is_of_one_class() -> None:
    members = [opcode for opcodes in OPCODE_CLASSES.values() for opcode in opcodes]
    assert len(members) == len(set(members))
    assert opcode_class("IADD3.X") == OTHER


def test_shares_add_up_to_all_opcodes() -> None:
    shares = class_shares({"HMMA.16816.F32": 1, "FFMA": 2, "IADD3": 1})
    assert tuple(shares) == CLASS_NAMES
    assert shares[TENSOR_CORE] == 25
    assert shares[OTHER] == 25
    assert sum(shares.values()) == 100
    assert class_shares({}) == {}


@pytest.mark.parametrize(
    ("opcodes", "name"),
    [
        ("FFMA2 FADD2 FMUL2 FMNMX3 FHADD FHFMA HFMA2.BF16_V2 UFFMA UFSETP.GT.AND FRND.FLOOR", "float math"),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU LDG.E.ENL2.256 LDCU.64 LDC.64", "global, local memory"),
        (
            "UTMALDG.2D UTMASTG.3D UTMAREDG.2D.ADD UTMAPF.L2.2D UBLKCP.S.G UBLKPF UBLKRED",
            "global, local memory",
        ),
        ("LDTM.x32 STTM.x16 UTCCP.T.S.4x32dp128bit UTCATOMSWS.FIND_AND_SET.ALIGN UTCSHIFT", "tensor memory"),
        (
            "CREDUX.MAX.S32 REDUX.SUM UTCBAR SYNCS.PHASECHK.TRANS64 FENCE.VIEW.ASYNC.S ELECT",
            "barriers and shuffles",
        ),
        ("UCGABAR_WAIT ARRIVES.LDGSTSBAR.64 VOTEU.ANY", "barriers and shuffles"),
        ("STAS.64 REDAS.ADD LDSM.16.M88.4 STSM.16.M88.4", "shared memory"),
        (
            "UTCHMMA UTCQMMA.2CTA UTCOMMA.4X QMMA.16832.F32.E4M3.E4M3 OMMA.SF.16864 WARPGROUP.DEPBAR.LE",
            TENSOR_CORE,
        ),
        ("IADD.64 UIADD3.64 VIMNMX3.S32 UISETP.GE.AND R2UR UMOV.64 NOP", OTHER),
    ],
)
def test_an_opcode_of_hopper_and_blackwell_is_in_the_class_of_what_it_does(opcodes: str, name: str) -> None:
    assert {opcode: opcode_class(opcode) for opcode in opcodes.split()} == dict.fromkeys(
        opcodes.split(), name
    )


def test_an_operation_has_one_name_whatever_the_architecture_calls_it() -> None:
    assert [operation(one) for one in ("RED.E.ADD", "REDG.E.ADD.F32", "REDUX.SUM", "REDAS")] == [
        "RED",
        "RED",
        "REDUX",
        "REDAS",
    ]
    assert [operation(one) for one in ("FFMA2", "FADD2", "FMUL2", "HFMA2.MMA")] == [
        "FFMA",
        "FADD",
        "FMUL",
        "HFMA2",
    ]
