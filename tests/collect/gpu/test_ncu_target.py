"""Tests of what the profiled program says without a GPU: names of ranges, and NVTX where torch has none."""

import shutil
import subprocess
import types

import pytest

from profiler.catalog.attention import ACCEPTANCE
from profiler.collect.gpu import ncu_target
from profiler.collect.gpu.launch_probe import PTX
from profiler.collect.gpu.messages import CellRequest, TargetRequest
from tests.collect.gpu.conftest import SDPA

SMALL = {"batch": 1, "heads": 2, "len_q": 48, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}


def test_a_range_names_version_and_workload_and_has_no_level_of_its_own():
    names = {ncu_target.range_name("v2b", workload.label) for workload in ACCEPTANCE}
    assert "v2b_at_1x8x512x64_causal" in names
    assert len(names) == 5
    assert ncu_target.range_name("a/b", "1:2") == "a_2f_b_at_1_3a_2"
    assert all(name.isascii() and name.replace("_", "").isalnum() for name in names), "nothing to escape"


def torch_with(push):
    nvtx = types.SimpleNamespace(range_push=push, range_pop=lambda: None)
    return types.SimpleNamespace(cuda=types.SimpleNamespace(nvtx=nvtx))


def test_a_torch_without_nvtx_and_no_library_is_said(monkeypatch):
    def refuse(_name):
        raise RuntimeError("NVTX functions not installed")

    monkeypatch.setattr(ncu_target, "nvtx_library", lambda: None)
    with pytest.raises(RuntimeError, match="no NVTX: torch says NVTX functions not installed"):
        ncu_target.NvtxRanges(torch_with(refuse))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_a_real_library_stands_in_for_a_torch_without_nvtx(tmp_path, monkeypatch):
    source = tmp_path / "nvtx.c"
    source.write_text(
        "#include <stdio.h>\nstatic FILE *f;\n"
        f'static FILE *out(void) {{ return f ? f : (f = fopen("{tmp_path}/said", "w")); }}\n'
        'int nvtxRangePushA(const char *s) { fprintf(out(), "push %s\\n", s); fflush(f); return 0; }\n'
        'int nvtxRangePop(void) { fprintf(out(), "pop\\n"); fflush(f); return 0; }\n'
    )
    library = tmp_path / "libnvToolsExt.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(ncu_target, "_NVTX_LIBRARIES", ("nowhere.so", str(library)))

    def refuse(_name):
        raise RuntimeError("NVTX functions not installed")

    ranges = ncu_target.NvtxRanges(torch_with(refuse))
    with pytest.raises(ValueError, match="inside"), ranges.open("v1|1x8x512x64"):
        raise ValueError("inside")
    assert (tmp_path / "said").read_text() == "push v1|1x8x512x64\npop\n"


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_the_smallest_kernel_is_ptx_for_every_chip(tmp_path, arch):
    path = tmp_path / "probe.ptx"
    path.write_bytes(PTX)
    subprocess.run(["ptxas", f"-arch={arch}", "-o", tmp_path / "probe.cubin", path], check=True)


# ---------------------------------------------------------------- launches, on the host in the place of a GPU


def test_only_the_counted_calls_are_in_ranges(torch, version):
    cells = (CellRequest("right", SMALL), CellRequest("sdpa", SMALL))
    result = ncu_target.launch_cells(TargetRequest((version(), SDPA), cells, calls=2, warm_up=3))
    label = "1x2x48_3a_64x64_causal"
    assert [cell["range"] for cell in result["cells"]] == [f"right_at_{label}", f"sdpa_at_{label}"]
    pushed = [name for name in torch.cuda.pushed if name not in ("pop", "probe")]
    assert pushed == [f"right_at_{label}"] * 2 + [f"sdpa_at_{label}"] * 2
    assert torch.cuda.pushed.count("pop") == len(pushed) + 1


def test_a_cell_that_is_refused_leaves_the_others(torch, version):
    versions = (version(REFUSE=1), version())
    cells = tuple(CellRequest(code.id, SMALL) for code in versions)
    result = ncu_target.launch_cells(TargetRequest(versions, cells))
    assert [cell["status"] for cell in result["cells"]] == ["failed", "done"]
    assert result["status"] == "done"
    assert "launch refused" in result["reason"]
    assert ncu_target.launch_cells(TargetRequest(versions, cells[:1]))["status"] == "failed"


def test_no_cell_is_begun_after_the_time_is_over_and_none_of_them_has_failed(torch, version):
    cells = (CellRequest("right", SMALL), CellRequest("sdpa", SMALL))
    result = ncu_target.launch_cells(TargetRequest((version(), SDPA), cells, max_seconds=1e-9))
    assert [cell["status"] for cell in result["cells"]] == ["done", ncu_target.UNLAUNCHED]
    assert (result["status"], result["reason"]) == ("done", None)
    assert not any("sdpa" in name for name in torch.cuda.pushed)
