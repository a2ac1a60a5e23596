"""Levers that depend on the chip: each names what the chip has."""

from __future__ import annotations

import pytest

from profiler.advice.levers import EVEN_BLOCKS, MORE_BLOCKS, blocks_lever, tensor_cores_lever
from profiler.evidence.gpu_arch import ARCHITECTURES


@pytest.mark.parametrize(
    ("chip", "instruction"),
    [
        ("sm_80", "mma.sync"),
        ("sm_86", "mma.sync"),
        ("sm_89", "mma.sync"),
        ("sm_90", "wgmma"),
        ("sm_90a", "wgmma"),
        ("sm_100", "tcgen05"),
        ("sm_120", "mma.sync"),
    ],
)
def test_the_matrix_instruction_is_one_that_the_chip_has(chip: str, instruction: str) -> None:
    start = f"matrix products on the tensor cores: {instruction} (the precision changes"
    assert tensor_cores_lever(chip).startswith(start)


def test_of_an_unknown_chip_no_instruction_is_named() -> None:
    for chip in (None, "sm_999"):
        lever = tensor_cores_lever(chip)
        assert not any(one.matrix_instruction in lever for one in ARCHITECTURES.values())


def test_less_than_one_wave_asks_for_more_blocks_and_else_for_full_waves() -> None:
    assert [blocks_lever(waves) for waves in (0.99, 1.0, 1.5)] == [MORE_BLOCKS, EVEN_BLOCKS, EVEN_BLOCKS]
