"""Theoretical occupancy: against what Nsight Compute computed in real reports, and figures done by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build.occupancy import occupancy
from profiler.errors import CannotJudge
from profiler.evidence import chip_of
from profiler.reports import read as reports_read

_NEEDED = (
    "device__attribute_compute_capability_major",
    "device__attribute_compute_capability_minor",
    "launch__registers_per_thread",
    "launch__block_size",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__occupancy_limit_blocks",
    "sm__maximum_warps_per_active_cycle_pct",
)


def test_it_agrees_with_every_real_report(good_reports: list[Path]) -> None:
    """Blocks an SM and occupancy of every launch of the public reports that carries both."""
    judged, chips = 0, set()
    for read in reports_read.read_reports(good_reports):
        assert not isinstance(read, Exception)
        for launch in read.launches:
            numbers = [launch.values.number(name) for name in _NEEDED]
            known = [number for number in numbers if number is not None]
            if len(known) < len(_NEEDED):
                continue
            major, minor, registers, threads, static, dynamic = (int(number) for number in known[:6])
            chip = chip_of(f"{major}.{minor}")
            found = occupancy(chip, registers, threads, static + dynamic)
            where = f"{read.name} {launch.base_name} on {chip}"
            assert found.blocks == min(known[6:10]), where
            assert found.pct == pytest.approx(known[10], abs=0.01), where
            judged += 1
            chips.add(chip)
    assert judged > 90
    assert chips >= {"sm_70", "sm_75", "sm_80", "sm_86"}


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared_kb", "blocks", "pct", "limiters"),
    [
        # kernels.md: 2, 3, 4 stages of an mma kernel with 99 registers and 128 threads
        ("sm_90a", 99, 128, 40, 4, 25, ("registers",)),
        ("sm_90a", 99, 128, 56, 4, 25, ("registers", "shared memory")[:2]),
        ("sm_90a", 99, 128, 72, 3, 18.75, ("shared memory",)),
        ("sm_89", 99, 128, 40, 2, 16.67, ("shared memory",)),
        ("sm_89", 99, 128, 56, 1, 8.33, ("shared memory",)),
        # the owner's v2b: 79 KB and 60 registers, 256 threads
        ("sm_90", 60, 256, 79, 2, 25, ("shared memory",)),
        ("sm_89", 60, 256, 79, 1, 16.67, ("shared memory",)),
        ("sm_80", 32, 1024, 0, 2, 100, ("warps", "registers")),
        ("sm_86", 16, 32, 0, 16, 33.33, ("blocks",)),
        ("sm_89", 40, 256, 170, 0, 0, ("shared memory",)),
    ],
)
def test_figures_worked_out_by_hand(
    arch: str,
    registers: int,
    threads: int,
    shared_kb: int,
    blocks: int,
    pct: float,
    limiters: tuple[str, ...],
) -> None:
    found = occupancy(arch, registers, threads, shared_kb << 10)
    assert (found.blocks, found.limiters) == (blocks, limiters)
    assert found.pct == pytest.approx(pct, abs=0.01)


def test_a_block_of_odd_size_takes_whole_warps() -> None:
    assert occupancy("sm_90", 32, 33, 0) == occupancy("sm_90", 32, 64, 0)


def test_an_unknown_architecture_cannot_be_judged() -> None:
    with pytest.raises(CannotJudge, match="the limits of sm_37 are not known here: it knows sm_70"):
        occupancy("sm_37", 32, 32, 0)
