"""What `profiler roofline` prints, on made reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.cli import main
from profiler.errors import Exit
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile, SessionDetails

DRAM_SHARE = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
# A GPU of CC 8.0 whose DRAM moves 5120 / 4 bytes per cycle; SMs and their clock give the peak of L1.
GPU = {
    "device__attribute_display_name": "Test GPU",
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_multiprocessor_count": 100,
    "device__attribute_global_memory_bus_width": 5120,
    "gpu__time_duration.sum": 1e6,
    "sm__cycles_elapsed.avg.per_second": 1e9,
    "dram__cycles_elapsed.avg.per_second": 1e9,
}


def report(path: Path, *launches: dict[str, float]) -> str:
    results = [
        LaunchResult("gemm", "gemm(float *)", "_Z4gemmPf", GPU | values, (8, 8, 1), (16, 16, 1))
        for values in launches
    ]
    path.write_bytes(ReportFile(results, SessionDetails(created=1730121091)).to_bytes())
    return str(path)


def test_launches_that_reached_no_roof_are_one_line_with_their_peaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ncu_report")
    assert main(["roofline", report(tmp_path / "three.ncu-rep", {}, {}, {})]) == Exit.UNJUDGED
    printed = capsys.readouterr().out
    assert "3 launches (gemm 3) have no FLOPs (not collected) and no bytes (not collected)" in printed
    assert "  peaks, of gemm#0: L1 12.8 TB/s, DRAM 1.28 TB/s" in printed
    assert "of peak" not in printed, "no table"


def test_a_launch_that_reached_a_roof_has_its_table_though_it_has_no_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ncu_report")
    assert main(["roofline", report(tmp_path / "two.ncu-rep", {}, {DRAM_SHARE: 25.0})]) == Exit.UNJUDGED
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "DRAM 320 GB/s 1.28 TB/s 25.0 % closest of the known roofs" in printed
    assert sum(line.startswith("roof reached") for line in printed) == 1
