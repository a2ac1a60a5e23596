"""What changed between two binaries, as every face of the answer says it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import profiler
from profiler.agents.toolset import declared_tool
from profiler.build.code_images import FunctionBytes
from profiler.build.toolchain import require_tool
from profiler.build.toolkits import compile_cubin, find_toolkit
from profiler.cli import main
from profiler.documents.changes import ChangesDocument, code_changes
from profiler.errors import Exit, ProfilerError, UnknownName
from profiler.sass.binary_functions import BinaryFunction, FunctionPair
from profiler.sass.code_changes import ChangeKind, CodeChanges, CountChange, FunctionChange
from tests.conftest import ROOT
from tests.toolchain import needs_sass


def _function(name: str, arch: str = "sm_90a", registers: int = 32) -> BinaryFunction:
    return BinaryFunction(
        "", arch, name, True, registers, 0, 0, None, FunctionBytes(bytes(32), (16,), 0, 0, None)
    )


def _change(kind: ChangeKind, name: str, arch: str = "sm_90a", *counts: CountChange) -> FunctionChange:
    return FunctionChange(FunctionPair(_function(name, arch), _function(name, arch, 40)), (kind,), counts)


_SPILLS = _change(ChangeKind.SPILLS, "attend", "sm_90a", CountChange(ChangeKind.SPILLS, "STL", 2, 0, 9))
_CHANGES = CodeChanges(
    "old.so",
    "new.so",
    (
        _SPILLS,
        _change(ChangeKind.REORDERED, "copy", "sm_100"),
        _change(ChangeKind.REORDERED, "copy", "sm_90"),
        _change(ChangeKind.RESCHEDULED, "softmax"),
        _change(ChangeKind.SAME, "add"),
    ),
)


def test_functions_of_one_name_and_kind_are_one_row_and_the_worst_stands_first() -> None:
    (text,) = [ChangesDocument(_CHANGES).to_markdown()]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("|")[1].strip() for row in rows] == ["`attend`", "`copy`", "`softmax`"]
    assert "| 2 | sm_90, sm_100 | 32 → 40 |" in rows[1]
    assert "| 2 | 1 | sm_90a | 32 → 40 | 2 | STL 0 → 9 |" in rows[0]


def test_every_kind_is_explained_in_the_documentation() -> None:
    table = (Path(__file__).parents[2] / "docs" / "static.md").read_text()
    kinds = CodeChanges("a", "b", tuple(_change(kind, kind.value) for kind in ChangeKind))
    rows = [line.split(" | 1 | ") for line in ChangesDocument(kinds).to_markdown().splitlines()]
    listed = [row for row in rows if row[1:] and row[0].removeprefix("| ") in list(ChangeKind)]
    assert len(listed) == len(ChangeKind)
    assert not [row for row in listed if " | ".join(row) not in table]


@pytest.mark.parametrize(
    ("kinds", "allowed", "code"),
    [
        ((), ChangeKind.SAME, Exit.PASS),
        ((ChangeKind.RENAMED,), ChangeKind.SAME, Exit.REGRESSION),
        ((ChangeKind.RENAMED, ChangeKind.REGISTERS), ChangeKind.REGISTERS, Exit.PASS),
        ((ChangeKind.REORDERED,), ChangeKind.REGISTERS, Exit.REGRESSION),
        ((ChangeKind.REORDERED,), ChangeKind.REORDERED, Exit.PASS),
        ((ChangeKind.NOT_READ,), ChangeKind.RESOURCES, Exit.UNJUDGED),
        ((ChangeKind.NOT_READ, ChangeKind.GONE), ChangeKind.RESOURCES, Exit.REGRESSION),
    ],
)
def test_what_is_allowed_passes_and_what_was_not_read_never_does(
    kinds: tuple[ChangeKind, ...], allowed: ChangeKind, code: Exit
) -> None:
    changes = CodeChanges("a", "b", tuple(_change(kind, kind.value) for kind in (*kinds, ChangeKind.SAME)))
    assert ChangesDocument(changes, allowed).exit_code is code


def test_json_has_every_change_with_its_counts() -> None:
    whole = json.loads(json.dumps(ChangesDocument(_CHANGES, ChangeKind.REORDERED).to_dict()))
    assert whole["functions"] == 5
    assert whole["kinds"] == {"spills": 1, "reordered": 2, "rescheduled": 1, "same": 1}
    assert [(one["function"], one["is_allowed"]) for one in whole["changes"]] == [
        ("attend", False),
        ("copy", True),
        ("copy", True),
        ("softmax", True),
    ]
    first = whole["changes"][0]
    assert first["counts"] == [{"kind": "spills", "what": "STL", "depth": 2, "old": 0, "new": 9}]
    assert (first["old"]["registers"], first["new"]["registers"], first["depth"]) == (32, 40, 2)


def test_a_file_that_is_not_there_and_a_report_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnknownName, match=r"none\.so does not exist"):
        profiler.code_changes(str(tmp_path / "none.so"), str(tmp_path))
    assert main(["changes", str(tmp_path), str(tmp_path)]) == 2
    assert "holds no file of machine code" in capsys.readouterr().err


_SUMS = """
__global__ void sum(const float *x, float *y, int n) {
  float total = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += FACTOR * x[i] * x[i];
  y[threadIdx.x] = total;
}
__global__ void same(float *y) { y[threadIdx.x] = 1; }
"""


@needs_sass
def test_the_code_of_what_changed_is_aligned_with_its_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sums.cu").write_text(_SUMS)
    toolkit = find_toolkit("installed")
    for name, factor in (("old", "1.5f"), ("new", "x[i + 1] * x[i + 2]")):
        output = tmp_path / f"{name}.cubin"
        compile_cubin(toolkit, tmp_path / "sums.cu", "sm_80", (f"FACTOR={factor}",), (), output)
    command = ["changes", str(tmp_path / "old.cubin"), str(tmp_path / "new.cubin"), "--code", "3"]
    assert main(command) == Exit.REGRESSION
    shown = capsys.readouterr().out
    assert "sum, sm_80: " in shown
    assert "same, sm_80" not in shown
    in_loops = [line for line in shown.splitlines() if "│" in line and line.startswith(("+", "-"))]
    assert any("LDG.E" in line for line in in_loops if line.startswith("+"))
    assert main([*command, "--json"]) == Exit.REGRESSION
    (code,) = json.loads(capsys.readouterr().out)["code"]
    old, new = code["hot_loop"]["old"], code["hot_loop"]["new"]
    assert new["cycles"] > old["cycles"] > 0
    assert (old["depth"], old["spill_instructions"]) == (1, 0)
    assert {row["new"]["depth"] for row in code["differing"] if row["new"]} >= {0, 1}


@needs_sass
def test_stored_times_of_the_kernels_that_changed_are_listed(
    tmp_path: Path, ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", ncar[0]]) == 0
    (family, kernel), *_ = profiler.open_store().kernels()
    toolkit = find_toolkit("installed")
    for side, factor in (("old", 1), ("new", 2)):
        source = tmp_path / f"{side}.cu"
        source.write_text(f'extern "C" __global__ void {kernel}(int *x) {{ *x = {factor}; }}')
        compile_cubin(toolkit, source, "sm_80", (), (), tmp_path / f"{side}.cubin")
    command = ["changes", str(tmp_path / "old.cubin"), str(tmp_path / "new.cubin"), "--results", "--json"]
    capsys.readouterr()
    assert main(command) == Exit.REGRESSION
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["kernel"], result["family"], result["version"]) == (kernel, family, "MW_DivToMult")
    rows = profiler.open_store().results(kernel=kernel)
    assert result["time"]["value"] == max(row.duration_ns.number or 0 for row in rows) > 0


def test_versions_and_reports_are_compared_by_the_text_of_their_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ncar: tuple[str, str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(ROOT / "data"))
    assert main(["changes", "v2c_v4", "v2c_v5", "--arch", "sm_90a", "--json"]) == Exit.REGRESSION
    document = json.loads(capsys.readouterr().out)
    assert {change["function"].count("v2c_v5") for change in document["changes"]} == {1}
    assert len(document["notes"]) == 3
    assert main(["changes", "v2c_v5", "v2c_v5", "--arch", "sm_90a"]) == Exit.PASS
    assert main(["changes", *ncar]) == Exit.UNJUDGED
    assert "no SASS text" in capsys.readouterr().err
    assert main(["changes", "v2c_v5", "nonsense"]) == Exit.UNUSABLE_INPUT
    assert main(["changes", "v2c_v4", "v2c_v5", "--code", "1"]) == Exit.UNUSABLE_INPUT
    assert "profiler sass v2c_v4 v2c_v5" in capsys.readouterr().err


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits of a kernel: the second adds another factor."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, value in (("NAME", "A"), ("EMAIL", "a@example.com")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    subprocess.run(["git", "init", "-q"], check=True)
    for factor in ("2.5f", "3.5f"):
        source = f"__global__ void scale(float *x) {{ x[threadIdx.x] *= {factor}; }}\n"
        (folder / "scale.cu").write_text(source)
        subprocess.run(["git", "add", "."], check=True)
        subprocess.run(["git", "commit", "-qm", factor], check=True)
    (folder / "scale.cu").write_text("not committed\n")
    return folder


@needs_sass
def test_two_revisions_are_built_elsewhere_and_compared(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nvcc = require_tool("nvcc").path
    options = ["--build", f"mkdir out && {nvcc} -cubin -arch=sm_90a -o out/scale.cubin scale.cu"]
    options += ["--output", "out/scale.cubin", "--json"]
    assert main(["changes", "HEAD~1", "HEAD", *options]) == Exit.REGRESSION
    found = json.loads(capsys.readouterr().out)
    assert (found["old"], found["new"], found["kinds"]) == ("HEAD~1", "HEAD", {"constants": 1})
    assert main(["changes", "HEAD", "HEAD", *options]) == Exit.PASS
    assert (repository / "scale.cu").read_text() == "not committed\n"
    assert not (repository / "out").exists()
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "build", "output", "words"),
    [
        ("HEAD~9", "true", "a.cubin", "no revision 'HEAD~9'"),
        ("--upload-pack=x", "true", "a.cubin", "no revision '--upload-pack=x'"),
        ("HEAD", "echo no rule; exit 4", "a.cubin", r"exit 4\): no rule"),
        ("HEAD", "true", "a.cubin", "made no a.cubin"),
        ("HEAD", "true", "../a.cubin", "not below the repository"),
        ("HEAD", "true", None, "belong together"),
    ],
)
def test_a_revision_that_cannot_be_built_is_said(
    repository: Path, old: str, build: str, output: str | None, words: str
) -> None:
    with pytest.raises(ProfilerError, match=words):
        code_changes(old, "HEAD", build=build, output=output)
    assert sorted(path.name for path in repository.iterdir()) == [".git", "scale.cu"]


def test_no_tool_for_language_models_starts_a_build() -> None:
    tool = declared_tool("changes")
    assert {argument.name for argument in tool.arguments} & {"old", "allow"} == {"old", "allow"}
    assert not {argument.name for argument in tool.arguments} & {"build", "output"}
