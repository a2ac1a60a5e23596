"""Builds of a library in the store: a history of each kernel's static facts, without a GPU."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import profiler
from profiler.build.toolkits import compile_cubin, find_toolkit
from profiler.cli import main
from profiler.errors import BuildFailed, CannotJudge, Exit
from profiler.sass import library_facts
from tests.toolchain import needs_sass

_SOURCE = """
template <int N> __global__ void sum(const float *x, float *y, int n) {
  float acc[N] = {};
  for (int i = threadIdx.x; i < n; i += N * blockDim.x)
#pragma unroll
    for (int k = 0; k < N; k++) acc[k] = acc[k] * x[i + k * blockDim.x] + 1.0f;
  float total = 0;
  for (int k = 0; k < N; k++) total += acc[k];
  y[threadIdx.x] = total;
}
template __global__ void sum<32>(const float *, float *, int);
__global__ void __launch_bounds__(64) fill(float *y) { y[threadIdx.x] = 1; }
"""


def _library(folder: Path, name: str, *flags: str, day: int = 1) -> Path:
    (folder / "sums.cu").write_text(_SOURCE)
    output = folder / f"{name}.cubin"
    compile_cubin(find_toolkit("installed"), folder / "sums.cu", "sm_90a", (), flags, output)
    os.utime(output, (86_400 * day, 86_400 * day))
    return output


@needs_sass
def test_the_facts_of_each_kernel_are_those_of_its_machine_code(tmp_path: Path) -> None:
    facts = {one.part: one for one in library_facts.library_facts(_library(tmp_path, "small"))}
    assert facts.keys() == {"sum<32>", "fill"}
    values = {name: value.number for name, value in facts["fill"].values.items()}
    assert (values["static__threads"], values["static__shared_static_bytes"]) == (64, 0)
    assert values["static__occupancy_pct"] == 100.0
    assert facts["sum<32>"].values["static__occupancy_pct"].number is None  # no launch bounds: not known
    assert facts["sum<32>"].values["static__spill_instructions"].number == 0
    assert facts["sum<32>"].opcodes["FFMA"] >= 32
    assert facts["sum<32>"].values["static__opcode_FFMA"].number == facts["sum<32>"].opcodes["FFMA"]
    spilling = library_facts.library_facts(_library(tmp_path, "spilling", "-maxrregcount=24"))
    (values,) = (one.values for one in spilling if one.part == "sum<32>")
    total, in_loops = (values[f"static__{name}spill_instructions"].number for name in ("", "loop_"))
    assert total is not None
    assert in_loops is not None
    assert 0 < in_loops <= total


@needs_sass
def test_builds_become_a_history_that_a_gate_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    old, new = _library(tmp_path, "old"), _library(tmp_path, "new", "-maxrregcount=24", day=2)
    for path, version in ((old, "v1"), (new, "v2")):
        assert main(["import", str(path), "--family", "sums", "--version", version]) == Exit.PASS
        assert f"sums/{version}  static facts of 2 kernels" in capsys.readouterr().out
    assert main(["import", str(new), "--family", "sums", "--version", "v2"]) == Exit.PASS
    assert "1 already there" in capsys.readouterr().out
    trend = profiler.trend("static_loop_spills", family="sums", data=str(tmp_path / "data"))
    (row,) = (
        row
        for row in trend.to_frame().to_dict("records")
        if row["kernel"] == "sum<32>" and row["version"] == "v2"
    )
    assert row["value"] > 0
    assert main(["gate", "sums/v2", "--baseline", "sums/v1", "--json"]) == Exit.REGRESSION
    failed = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["outcome"] == "failed"]
    assert {one["concept"] for one in failed} >= {"static_loop_spills", "static_spill_count"}
    assert main(["gate", "sums/v1", "--baseline", "sums/v1", "--json"]) != Exit.REGRESSION
    capsys.readouterr()
    assert main(["insights", "sums/v2"]) == Exit.PASS
    advice = capsys.readouterr().out
    assert "On a machine with a GPU: `ncu --metrics $(profiler list metrics --chip sm_90) PROGRAM`" in advice
    assert "profiler collect" not in advice, "no catalogue says how it is built"


@needs_sass
def test_what_cannot_be_stored_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    library = _library(tmp_path, "small")
    assert main(["import", str(library)]) == Exit.UNUSABLE_INPUT
    assert "--version" in capsys.readouterr().err
    (tmp_path / "bad.cubin").write_bytes(library.read_bytes()[:700])
    with pytest.raises(BuildFailed):
        library_facts.library_facts(tmp_path / "bad.cubin")
    assert main(["import", str(tmp_path / "bad.cubin"), "--version", "v1"]) == Exit.UNUSABLE_INPUT
    monkeypatch.setattr(library_facts, "MOST_KERNELS", 1)
    with pytest.raises(CannotJudge, match="profiler pin"):
        library_facts.library_facts(library)
    folder = tmp_path / "folder"
    folder.mkdir()
    library.rename(folder / "small.cubin")
    assert main(["import", str(folder)]) == Exit.UNUSABLE_INPUT  # met in a folder it is no report
