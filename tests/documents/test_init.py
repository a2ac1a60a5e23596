"""`profiler init`: the files that other commands ask for, which these commands then take."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import profiler
from profiler.catalog.catalog import load_catalog
from profiler.cli import main
from profiler.errors import Exit
from profiler.judge.manifest import read_manifest
from tests.gate.test_library_gate import build_library
from tests.toolchain import needs_sass

ROOT = Path(__file__).resolve().parent.parent.parent
_ATTENTION = """
// __global__ void not_this(int x) {}
template <int HD, bool CAUSAL, typename T>
__global__ void __launch_bounds__(256, 2) attend(
    const T *__restrict__ Q, const T *K, const T *V, T *out, int N, float sm_scale, int stride) {
  out[0] = Q[0];
}
"""
_TRITON = """
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, o, n, B: tl.constexpr):
    pass

def add(x, y):
    add_kernel[(1,)](x, y, x, 3, B=4)

def other():
    return 1
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_attention_in_cuda_gets_a_manifest_with_the_names_of_the_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("attend.cu").write_text(_ATTENTION)
    assert main(["check", "attend.cu"]) == Exit.UNUSABLE_INPUT
    assert "`profiler init` writes what `judge` and `check` ask for" in capsys.readouterr().err
    assert main(["judge", ".", "--json"]) != Exit.PASS
    assert "`profiler init` writes one" in capsys.readouterr().out
    assert main(["init", "--json"]) == Exit.PASS
    (row,) = json.loads(capsys.readouterr().out)["files"]
    assert (row["file"], row["state"], row["next"]) == ("candidate.toml", "written", "profiler judge .")
    (launch,) = read_manifest(Path("candidate.toml")).launches
    assert launch.kernel == "attend<{head_dim}, {causal}, float>"
    assert launch.arguments == ("q", "k", "v", "o", "len_q", "scale", "stride")
    assert launch.block == (256,)
    assert "other names than stride" in Path("candidate.toml").read_text()


@pytest.mark.slow
def test_other_kernels_get_a_catalogue_and_a_problem_to_fill_in(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("my sums")
    folder.mkdir()
    (folder / "sum.cu").write_text('extern "C" __global__ void sum(const float *x, float *out, int n) { }')
    assert main(["init", "--folder", "my sums"]) == Exit.PASS
    assert sorted(path.name for path in folder.iterdir()) == [
        "candidate.toml",
        "catalog.toml",
        "my_sums_problem.py",
        "sum.cu",
    ]
    assert load_catalog(folder).family == "my_sums"
    assert 'arguments = ("x", "out", "n",)' in (folder / "my_sums_problem.py").read_text()
    capsys.readouterr()
    assert main(["judge", "my sums", "--catalog", "my sums", "--trust", "--no-gpu"]) == Exit.REGRESSION
    assert re.search(r"my_sums_problem\.py:\d+: case\(\) of n1024 fails", capsys.readouterr().out)


def test_a_problem_that_is_not_filled_in_is_one_line_of_the_next_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("add.py").write_text(_TRITON)
    assert main(["init"]) == Exit.PASS
    capsys.readouterr()
    assert main(["collect", "--catalog", "catalog.toml", "--trust", "--dry-run"]) == Exit.UNUSABLE_INPUT
    assert "NotImplementedError" in capsys.readouterr().err


def test_functions_that_launch_triton_are_versions() -> None:
    Path("add.py").write_text(_TRITON)
    Path("broken.py").write_text(f"{_TRITON}\n(")
    Path(".venv").mkdir()
    Path(".venv/more.py").write_text(_TRITON)
    family = Path.cwd().name
    document = profiler.init()
    assert [state for _, state, _, _ in document.rows()] == ["written", "written"]
    versions = tomllib.loads(Path("catalog.toml").read_text())["version"]
    assert [(one["id"], one["callable"]) for one in versions] == [("add", "add.py:add")]
    assert load_catalog(Path("catalog.toml")).family == re.sub(r"\W+", "_", family).lower()


@needs_sass
def test_a_library_gets_a_lock_and_ten_lines_of_ci_and_what_is_there_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("build").mkdir()
    built = build_library(tmp_path, blocks=1)
    built.rename("build/libattention.so")
    Path("k.cu").unlink()
    Path("host.so").write_bytes(b"\x7fELF")  # without machine code
    assert main(["init"]) == Exit.PASS
    (documented,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/static.md").read_text(), re.S)
    workflow = Path(".github/workflows/kernels.yml")
    assert workflow.read_text() == documented
    assert main(["gate", "build/libattention.so"]) == Exit.PASS
    workflow.write_text("mine\n")
    lock = Path("kernels.lock").read_text()
    assert [state for _, state, _, _ in profiler.init().rows()] == ["kept", "kept"]
    assert (workflow.read_text(), Path("kernels.lock").read_text()) == ("mine\n", lock)


def test_reports_need_no_file_and_an_empty_folder_has_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == Exit.UNJUDGED
    assert "holds no kernel" in capsys.readouterr().err
    assert main(["init", "--folder", "none"]) == Exit.UNUSABLE_INPUT
    Path("a.ncu-rep").write_bytes(b"NVR")
    assert main(["init"]) == Exit.PASS
    assert "1 report needs no file: `profiler import .`" in capsys.readouterr().out
    assert [path.name for path in Path().iterdir()] == ["a.ncu-rep"]
