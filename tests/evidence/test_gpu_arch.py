"""The table of architectures is the one place that a new GPU has to be written into."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from profiler.build import lower_bounds
from profiler.build.occupancy import occupancy
from profiler.build.toolchain import find_tool
from profiler.cli import parser
from profiler.collect import ncu_command
from profiler.evidence import chip_metrics, nvperf
from profiler.evidence.gpu_arch import (
    ARCHITECTURES,
    Architecture,
    architecture_of,
    chip_of,
    find_architecture,
)
from profiler.evidence.gpu_parts import part_of_device
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.rollups import CounterRates
from profiler.evidence.tensor_pipes import TensorPath
from profiler.evidence.values import Value, pack_values
from profiler.explain import occupancy_whatif, roofline

PACKAGE = Path(roofline.__file__).parents[1]
NEW = Architecture(
    name="sm_130",
    ncu_chip="gx100",
    max_warps=64,
    max_blocks=32,
    shared_bytes=300 << 10,
    tensor_flops=16384,
    l1_counter="l1tex__new_counter",
    l1_bytes=256 << 10,
    l2_bytes_per_clock=4096,
    l2_latency=300,
    dram_latency=700,
    launch_cycles=2500,
)
GPU = {"compute_capability": "13.0", "sms": 100, "max_sm_mhz": 2000}


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch) -> Architecture:
    """An architecture that is in the table and nowhere else."""
    monkeypatch.setitem(ARCHITECTURES, NEW.name, NEW)
    return NEW


def test_a_new_row_has_an_occupancy(new: Architecture) -> None:
    assert occupancy("sm_130a", 32, 128, 100 << 10).fits["shared memory"] == 2
    facts = {
        "static__registers": Value(64),
        "static__threads": Value(128),
        "static__shared_bytes": Value(32 << 10, "byte"),
    }
    curves = occupancy_whatif.static_occupancy(pack_values(facts), "sm_130").curves
    shared = next(curve for curve in curves if "shared memory" in curve.name)
    assert max(shared.amounts) == new.block_shared_bytes


def test_a_new_row_has_lower_bounds_at_its_own_rate(new: Architecture) -> None:
    rates = {dtype: lower_bounds.peak_rates(GPU, dtype) for dtype in ("fp16", "fp8")}
    assert rates["fp16"].flops_per_s == 16384 * 100 * 2e9
    assert rates["fp8"].flops_per_s == 2 * 16384 * 100 * 2e9
    assert rates["fp16"].exponentials_per_s == 16 * 100 * 2e9


def test_without_the_row_nothing_is_known_of_it() -> None:
    rates = lower_bounds.peak_rates(GPU)
    assert rates.flops_per_s is None
    assert rates.exponentials_per_s is None
    assert TensorPath("", "fp16", "fp32").has_sparsity("sm_130"), "newer than every GPU in the table"


def test_a_new_row_may_stand_in_a_metrics_file(new: Architecture, tmp_path: Path) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text("x | x | | - | 2% | time | lean | new__name.sum@sm_130, old__name.sum@sm_90\n")
    [metric] = load_metrics(file).metrics
    assert metric.names_for(chip_of("13.0")) == ("new__name.sum",)
    assert metric.names_for("sm_80") == ()


def test_a_new_row_is_a_chip_of_the_metrics_command(new: Architecture) -> None:
    assert parser().parse_args(["list", "metrics", "--chip", "sm_130"]).chip == "sm_130"


@pytest.mark.parametrize(
    ("asked", "chip"), [("sm_121a", "sm_121"), ("sm_103f", "sm_103"), ("sm_101", "sm_110")]
)
def test_the_metrics_command_takes_a_chip_as_nvcc_writes_it(asked: str, chip: str) -> None:
    assert parser().parse_args(["list", "metrics", "--chip", asked]).chip == chip


def test_ncu_is_asked_by_the_chip_of_the_row(new: Architecture, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(ncu_command, "_output_of", commands.append)
    assert ncu_command.known_metrics(ncu_command.Ncu(Path("ncu"), "2099.1.0.0"), "sm_130") is None
    assert commands[0][-2:] == ["--chips", "gx100"]


def test_nvidias_library_is_asked_by_the_chip_of_the_row(
    new: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Chip:
        def __init__(self, library: object, name: str) -> None:
            self.name = name

        def exists(self, name: str) -> bool:
            return self.name == "GX100"

    monkeypatch.setattr(nvperf, "load", object)
    monkeypatch.setattr(nvperf, "Chip", Chip)
    assert chip_metrics.exists("new__name.sum", "sm_130")
    chip_metrics._library_chip.cache_clear()


def test_a_new_row_has_a_roofline_of_its_own_counter(new: Architecture) -> None:
    rates = CounterRates(pack_values({}))
    assert roofline._l1_counter(rates, "sm_130") == "l1tex__new_counter"


def test_an_architecture_is_found_with_a_suffix_and_by_its_compute_capability() -> None:
    assert find_architecture("sm_90a") is architecture_of("9.0") is ARCHITECTURES["sm_90"]
    assert architecture_of("12.0") is ARCHITECTURES["sm_120"]
    for unknown in ("sm_37", "sm_9", "90", "", None):
        assert find_architecture(unknown) is None
    assert architecture_of("None") is None
    capabilities = {name: ARCHITECTURES[name].compute_capability for name in ("sm_75", "sm_90", "sm_100")}
    assert capabilities == {"sm_75": "7.5", "sm_90": "9.0", "sm_100": "10.0"}


def test_an_older_name_of_an_architecture_is_the_same_row() -> None:
    assert find_architecture("sm_101a") is architecture_of("10.1") is ARCHITECTURES["sm_110"]
    assert chip_of("10.1") == "sm_110"


# Most warps, blocks and kilobytes of shared memory of an SM. Source: CUDA 13.0, ptxas and cuda_occupancy.h.
LIMITS = {
    "sm_75": (32, 16, 64),
    "sm_80": (64, 32, 164),
    "sm_86": (48, 16, 100),
    "sm_87": (48, 16, 164),
    "sm_88": (48, 16, 100),
    "sm_89": (48, 24, 100),
    "sm_90": (64, 32, 228),
    "sm_100": (64, 32, 228),
    "sm_103": (64, 32, 228),
    "sm_110": (48, 24, 228),
    "sm_120": (48, 24, 100),
    "sm_121": (48, 24, 100),
}


def test_limits_are_those_of_the_toolkit() -> None:
    found = {
        name: (row.max_warps, row.max_blocks, row.shared_bytes >> 10) for name, row in ARCHITECTURES.items()
    }
    assert {name: found.get(name) for name in LIMITS} == LIMITS


PTX = """\
.version 9.0
.target {arch}
.address_size 64
.visible .entry k(.param .u64 p) .maxntid {threads},1,1 .minnctapersm {blocks}
{{ .reg .u64 %r; ld.param.u64 %r,[p]; st.global.u64 [%r],%r; ret; }}
"""


@pytest.mark.parametrize("arch", LIMITS)
def test_ptxas_takes_as_many_blocks_as_the_table_says_and_no_more(tmp_path: Path, arch: str) -> None:
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas")
    warps, blocks, _ = LIMITS[arch]
    for threads, most in ((32, blocks), (128, warps // 4)):
        for count, is_taken in ((most, True), (most + 1, False)):
            file = tmp_path / "k.ptx"
            file.write_text(PTX.format(arch=arch, threads=threads, blocks=count))
            command = [ptxas.path, f"-arch={arch}", file, "-o", tmp_path / "k.cubin"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"ptxas {ptxas.version} does not compile for {arch}")
            assert ("out of range" not in done.stderr) == is_taken, (threads, count)


def test_metrics_of_a_chip_that_no_list_has_are_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ARCHITECTURES["sm_88"].ncu_chip == ""
    assert not chip_metrics.exists("gpu__time_duration.sum", "sm_88")
    with pytest.raises(SystemExit):
        parser().parse_args(["list", "metrics", "--chip", "sm_88"])
    metric = load_metrics().by_concept["tensor_busy"]
    assert len(metric.names_for("sm_88")) == len(metric.names_for(None)), "excludes nothing"


def test_a_block_may_have_what_the_programming_guide_says() -> None:
    most = {name: architecture.block_shared_bytes >> 10 for name, architecture in ARCHITECTURES.items()}
    assert most.items() >= {"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_89": 99, "sm_90": 227}.items()


def test_no_other_module_asks_which_architecture_it_is() -> None:
    """What depends on the architecture is a field of the table: nothing else compares its name."""
    allowed = {
        "evidence/gpu_arch.py",
        "evidence/ncu_release.py",  # what a release of ncu has wrong for one of them
        "advice/track_record.py",  # which of them a record was made with
    }
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if where not in allowed and "sm_" in text else ():
            if isinstance(node, ast.Compare | ast.Dict | ast.Tuple | ast.List | ast.Set):
                found += [
                    f"{where}:{part.lineno}"
                    for part in ast.iter_child_nodes(node)
                    if isinstance(part, ast.Constant) and re.fullmatch(r"sm_\d+[af]?", str(part.value))
                ]
    assert found == []


@pytest.mark.parametrize(
    ("device", "part"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA H200", "H200-SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A10", "A10"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA A10G", None),
        ("NVIDIA L40", None),
        ("", None),
    ],
)
def test_a_device_is_known_by_the_name_that_the_driver_gives_it(device: str, part: str | None) -> None:
    found = part_of_device(device)
    assert (found.name if found else None) == part
