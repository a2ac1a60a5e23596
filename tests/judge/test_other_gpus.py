"""Machine code and PTX that the GPU or the compiler at hand does not take: unknown, never not valid."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profiler.build.toolchain import require_tool
from profiler.catalog.catalog import load_catalog
from profiler.errors import CannotJudge
from profiler.judge.candidate import load_candidate
from profiler.judge.compilation import compile_candidate
from profiler.judge.isolation import Isolation
from tests.toolchain import needs_sass

_MANIFEST = """
family = "attention"
kernel = "k"
grid = ["ceil_div(len_q, 64)", "heads"]
block = 128
arguments = ["q"]
"""
_PTX = ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 q) {{ ret; }}\n"


def _compile(folder: Path, arch: str = "sm_90a") -> str:
    candidate = folder / "candidate"
    code = folder / f"code-{arch}"
    code.mkdir()
    (candidate / "candidate.toml").write_text(_MANIFEST)
    catalog = load_catalog()
    loaded = load_candidate(candidate, catalog)
    return compile_candidate(loaded, catalog, ["k"], arch, code, Isolation(trust=True)).arch


@needs_sass
@pytest.mark.parametrize(("version", "target"), [("99.0", "sm_90"), ("8.6", "sm_100"), ("9.0", "sm_190")])
def test_ptx_that_this_ptxas_does_not_take_is_unknown(tmp_path: Path, version: str, target: str) -> None:
    (tmp_path / "candidate").mkdir()
    (tmp_path / "candidate" / "k.ptx").write_text(_PTX.format(version=version, target=target))
    with pytest.raises(CannotJudge) as raised:
        _compile(tmp_path)
    assert raised.value.option == "--gpu"


@needs_sass
def test_a_cubin_for_another_gpu_is_unknown_and_one_that_runs_is_read(tmp_path: Path) -> None:
    (tmp_path / "candidate").mkdir()
    (tmp_path / "k.ptx").write_text(_PTX.format(version="8.0", target="sm_80"))
    tool = str(require_tool("ptxas").path)
    cubin = tmp_path / "candidate" / "k.cubin"
    subprocess.run([tool, "-arch=sm_80", "-o", str(cubin), str(tmp_path / "k.ptx")], check=True)
    with pytest.raises(CannotJudge) as raised:
        _compile(tmp_path)
    assert raised.value.option == "--gpu"
    assert _compile(tmp_path, "sm_89") == "sm_80"  # what runs on an L4
    subprocess.run([tool, "-arch=sm_90", "-o", str(cubin), str(tmp_path / "k.ptx")], check=True)
    (tmp_path / "code-sm_90a").rename(tmp_path / "first")
    assert _compile(tmp_path) == "sm_90"


@needs_sass
@pytest.mark.parametrize("arch", ["sm_100", "sm_120a"])
def test_a_cubin_for_a_newer_gpu_is_unknown(tmp_path: Path, arch: str) -> None:
    (tmp_path / "candidate").mkdir()
    (tmp_path / "k.ptx").write_text(_PTX.format(version="9.0", target=arch))
    command = [str(require_tool("ptxas").path), f"-arch={arch}", "-o", "candidate/k.cubin", "k.ptx"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip(f"ptxas does not compile for {arch}")
    with pytest.raises(CannotJudge) as raised:
        _compile(tmp_path)
    assert raised.value.option == "--gpu"
