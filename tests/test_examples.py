"""Every script of examples/ runs in a clone, and prints something."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.catalog.problem import check_output
from profiler.catalog.sources import load_object, load_problem
from profiler.cli import main
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
COMPILES = "09_check_on_the_cpu"
MARKED = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.compiler("g++")] * (path.stem == COMPILES))
    for path in EXAMPLES
]


@pytest.fixture(autouse=True)
def clone(tmp_path: Path, committed_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed data and their index, in a folder that may be written into."""
    shutil.copytree(committed_data, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFILER_DATA", raising=False)
    monkeypatch.delenv("PROFILER_DB", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(ROOT / "examples")


def test_there_are_ten_and_each_says_what_it_shows() -> None:
    assert [path.stem[:2] for path in EXAMPLES] == [f"{number:02}" for number in range(1, 11)]
    for path in EXAMPLES:
        assert path.read_text("utf-8").startswith('"""')


@pytest.mark.slow
@pytest.mark.parametrize("path", MARKED)
def test_an_example_runs_and_prints(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert len(out.splitlines()) >= 2
    assert "Traceback" not in out


@pytest.mark.slow  # imports torch
def test_the_family_of_python_callables_solves_its_own_problem() -> None:
    torch = pytest.importorskip("torch")
    catalog = load_catalog(ROOT / "examples" / "softmax")
    problem = load_problem(catalog)
    for version in catalog.versions:
        function = load_object(catalog, version.callable or "")
        for workload in problem.check_workloads("fp32", version.head_dims):
            case = problem.case(workload, seed=1)
            output = function(*map(torch.from_numpy, case.operands)).numpy()
            assert check_output(output, case.reference, case.tolerance).wrong == 0
            assert check_output(2 * output, case.reference, case.tolerance).wrong > 0


@pytest.mark.slow
def test_the_family_of_python_callables_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--catalog", str(ROOT / "examples" / "softmax"), "--dry-run"]) == 0
    assert "check  1024x1024      2 " in capsys.readouterr().out
