"""A version that is planned: every command says so in one line, and none takes it for a typing error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiler.cli import main
from tests.toolchain import needs_nvcc, needs_sass

WHY = "needs a Hopper GPU: only a measurement says"


@pytest.fixture(autouse=True)
def _clone(tmp_path: Path, committed_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(committed_data, tmp_path / "data")
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "build"))
    monkeypatch.delenv("PROFILER_DB", raising=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "show v2h",
        "roofline v2h",
        "roofline attention/v2h",
        "compare v2d_b v2h",
        "compare v2h v2d_b",
        "explain v2d_b v2h",
        "gate v2h --baseline v2d_b",
        "gate v2d_b --baseline v2h",
        "sass v2h",
        "sass v2d_b v2h",
        "insights v2d_b --against v2h",
        pytest.param("static --build-only v2h", marks=needs_nvcc),
        pytest.param("static v2h", marks=needs_sass),
        "check v2h",
        "static --check v2h",
        "collect v2h",
        "collect v2h --dry-run",
        "collect --noise v2h",
    ],
)
def test_it_is_said_in_one_line_and_exits_3(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 3
    out, err = capsys.readouterr()
    says_it_too = command in ("static --build-only v2h", "static v2h")  # in their answer
    assert WHY in out if says_it_too else out == ""
    (line,) = err.splitlines()
    assert line.startswith("profiler: ")
    assert "v2h is " in line
    assert "planned" in line
    assert WHY in line


@pytest.mark.slow
def test_a_name_that_nobody_knows_stays_a_typing_error(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show v2_e", "roofline v2_e", "gate v2_e --baseline v2d_b"):
        assert main(command.split()) == 2
        assert "neither a file nor a run or version" in capsys.readouterr().err
