"""Which opcodes multiply matrices, and the classes that an opcode mix is shown in."""

from __future__ import annotations

import pytest

from profiler.evidence import CLASS_NAMES, OPCODE_CLASSES, class_shares, is_matrix_multiply, opcode_class
from profiler.evidence.opcodes import OTHER, TENSOR_CORE


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
