"""Several builds of one source: what each compiler, architecture and definition makes of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import profiler
from profiler.build import toolkits
from profiler.build.toolkits import Toolkit, find_toolkit
from profiler.cli import main
from profiler.documents.matrix import MatrixBuild, MatrixDocument, MatrixFunction, build_matrix
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.model.loop_cost import LoopCost
from profiler.sass.code_changes import ChangeKind
from tests.documents.test_changes import _function
from tests.toolchain import needs_nvcc

_SOURCE = """
#ifndef STEPS
#define STEPS 1
#endif
template <int N> __global__ void sum(const float *x, float *y, int n) {
  float acc[N] = {};
  for (int i = threadIdx.x; i < n; i += N * blockDim.x)
#pragma unroll
    for (int k = 0; k < N; k++) acc[k] = acc[k] * x[i + k * blockDim.x] + 1.0f;
  float total = 0;
  for (int k = 0; k < N; k++) total += acc[k];
  y[threadIdx.x] = total;
}
template __global__ void sum<8 * STEPS>(const float *, float *, int);
"""
_TOOLKIT = Toolkit("13.0", Path("nvcc"), Path("ptxas"), "13.0.88")
_OTHER = Toolkit("13.5", Path("nvcc"), Path("ptxas"), "13.5.37")


def _loop(cycles: float | None, spills: int = 0) -> LoopCost:
    return LoopCost(1, 40, spills, cycles, "issue slots", 10.0, 10, 0, 80, ())


def _row(toolkit: Toolkit, loop: LoopCost | None, spills: int = 0, registers: int = 32) -> MatrixFunction:
    build = MatrixBuild(toolkit, "sm_90a", ())
    return MatrixFunction(build, _function("attend", registers=registers), loop, True, spills, None)


@pytest.mark.parametrize(
    ("rows", "cheapest"),
    [
        ([_row(_TOOLKIT, _loop(20.0)), _row(_OTHER, _loop(15.0, spills=2), spills=2)], 0),
        ([_row(_TOOLKIT, _loop(20.0)), _row(_OTHER, _loop(15.0), spills=2)], 1),
        ([_row(_TOOLKIT, _loop(None)), _row(_OTHER, _loop(90.0))], 1),
        ([_row(_TOOLKIT, None, registers=40), _row(_OTHER, None)], 1),
        ([_row(_TOOLKIT, _loop(20.0)), _row(_OTHER, _loop(20.0))], 0),
    ],
)
def test_the_cheapest_build_is_picked(rows: list[MatrixFunction], cheapest: int) -> None:
    document = MatrixDocument("a.cu", tuple(row.build for row in rows), tuple(rows))
    assert document.picked == (rows[cheapest],)
    marks = [row[-1] for row in document.rows()]
    assert marks == [number == cheapest for number in range(len(rows))]


@needs_nvcc
def test_compilers_and_definitions_are_combined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second toolkit of the same compiler with too few registers: its loop spills, the first is picked."""
    source = tmp_path / "sum.cu"
    source.write_text(_SOURCE)
    installed = find_toolkit("installed")
    assert installed.nvcc
    meagre = tmp_path / "meagre"
    (meagre / "bin").mkdir(parents=True)
    (meagre / "bin" / "ptxas").symlink_to(installed.ptxas)
    nvcc = meagre / "bin" / "nvcc"
    nvcc.write_text(f'#!/bin/sh\nexec "{installed.nvcc}" -maxrregcount=24 "$@"\n')
    nvcc.chmod(0o755)
    document = build_matrix(str(source), nvcc=f"installed,{meagre}", arch="sm_90a", define=["STEPS=1,4"])
    assert document.exit_code is Exit.PASS
    assert [one.build.defines for one in document.functions] == [("STEPS=1",)] * 2 + [("STEPS=4",)] * 2
    first, spilling = document.functions[2:]
    assert (first.name, first.change, first.spills, first.loop_spills) == ("sum<32>", None, 0, 0)
    assert spilling.change is ChangeKind.SPILLS
    assert spilling.loop is not None
    assert first.loop is not None
    assert spilling.loop_spills > 0
    assert spilling.loop.overhead is not None
    assert first.loop.overhead is not None
    assert spilling.loop.overhead > first.loop.overhead >= 1.0
    assert [(one.name, one.build.defines) for one in document.picked] == [
        ("sum<8>", ("STEPS=1",)),
        ("sum<32>", ("STEPS=4",)),
    ]
    arguments = ["matrix", str(source), "--nvcc", str(meagre), "--define", "STEPS=4", "--define", "NO=1"]
    assert main([*arguments, "--json"]) == Exit.PASS
    (build,) = json.loads(capsys.readouterr().out)["builds"]
    assert build["defines"] == ["STEPS=4", "NO=1"]
    assert main([*arguments, "--flag=-Dsum=", "--flag=-DSTEPS=bad"]) == Exit.UNJUDGED
    assert "no build of sum.cu compiles" in capsys.readouterr().err


@needs_nvcc
def test_a_ladder_of_register_limits_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same kernel with fewer and fewer registers: each limit is kept to, and the lowest one spills."""
    source = tmp_path / "sum.cu"
    source.write_text(_SOURCE)
    assert main(["matrix", str(source), "--define", "STEPS=4", "--maxrregcount", "0,40,24", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["functions"]
    assert [one["maxrregcount"] for one in found] == [None, 40, 24]
    free, limited, least = found
    assert free["registers"] > 40 >= limited["registers"] > 24 >= least["registers"]
    assert (free["spill_instructions"], least["spill_instructions"] > 0) == (0, True)
    assert main(["matrix", str(source), "--maxrregcount", "0,24"]) == 0
    assert "-maxrregcount=24" in capsys.readouterr().out


@needs_nvcc
def test_a_build_that_fails_leaves_the_others(tmp_path: Path) -> None:
    source = tmp_path / "sum.cu"
    source.write_text(f"{_SOURCE}\n#if STEPS == 2\n#error two are too many\n#endif\n")
    document = build_matrix(str(source), define=["STEPS=1,2"])
    assert document.exit_code is Exit.UNJUDGED
    (failed,) = document.failed
    assert failed.defines == ("STEPS=2",)
    assert "two are too many" in failed.error
    assert [one.name for one in document.functions] == ["sum<8>"]
    with pytest.raises(UnknownName, match="'softmax'"):
        build_matrix(str(source), kernel="softmax")


def test_a_toolkit_whose_wheels_lack_nvcc_takes_ptx_alone(tmp_path: Path) -> None:
    toolkit = Toolkit("12.9", None, Path("/bin/false"), "12.9.86")
    with pytest.raises(toolkits.BuildFailed, match="ptxas without nvcc"):
        toolkits.compile_cubin(toolkit, tmp_path / "a.cu", "sm_90", (), (), tmp_path / "a.cubin")


def test_a_release_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a pip that stands in for the real one: it makes what the wheels unpack to."""
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path))
    calls = []
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\necho 'release 12.9, V12.9.86'\n")
    ptxas.chmod(0o755)

    def install(command: list[str]) -> object:
        calls.append(command)
        target = Path(command[command.index("--target") + 1]) / "nvidia" / "cuda_nvcc" / "bin"
        target.mkdir(parents=True)
        shutil.copy(ptxas, target / "ptxas")
        return type("Done", (), {"returncode": 0, "stderr": ""})()

    with monkeypatch.context() as patched:
        patched.setattr(toolkits, "_pip", install)
        found = [find_toolkit("12.9") for _ in range(2)]
    assert found[0] == found[1]
    assert (found[0].version, found[0].nvcc) == ("12.9.86", None)
    assert [command[-1] for command in calls] == ["cuda-toolkit[nvcc,cccl,cudart]==12.9.*"]
    with monkeypatch.context() as patched:
        failed = type("Done", (), {"returncode": 1, "stderr": "ERROR: none of 99.9\n"})()
        patched.setattr(toolkits, "_pip", lambda _command: failed)
        with pytest.raises(CannotJudge, match=r"none of 99\.9"):
            find_toolkit("99.9")
    assert [path.name for path in (tmp_path / "toolkits").iterdir()] == ["12.9"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nvcc": "newest"}, "'newest' is no CUDA release"),
        ({"nvcc": ","}, "nothing is named with nvcc="),
        ({"arch": "90"}, "'90' is no architecture"),
        ({"define": ["2=3"]}, "'2=3' is no macro"),
        ({"maxrregcount": "64,many"}, "'many' is no number of registers"),
        ({"maxrregcount": "256"}, "'256' is no number of registers"),
    ],
)
def test_what_is_no_choice_is_said(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    source = tmp_path / "sum.cu"
    source.write_text(_SOURCE)
    with pytest.raises(UnknownName) as error:
        profiler.build_matrix(str(source), **options)
    assert words in str(error.value)


def test_a_source_is_cuda_or_ptx(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="does not exist"):
        build_matrix(str(tmp_path / "a.cu"))
    (tmp_path / "a.py").touch()
    with pytest.raises(UnknownName, match="neither CUDA"):
        build_matrix(str(tmp_path / "a.py"))
