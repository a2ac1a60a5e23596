"""What the README shows works in a fresh clone: every command of it ends with exit code 0 there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.cli import GROUPS
from tests.forked import Forked

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BEFORE = "20250414T200414-example-gemm-ee5ce738-af04d546"
AFTER = "20250416T160138-example-gemm-17f278cb-f12e32f8"

# How each command of the README's table is called. Reports are called a.ncu-rep and b.ncu-rep there.
CALLS = {
    "decide acknowledge": "decide acknowledge --help",
    "data backup": "data backup kept.tar.gz",
    "decide baseline": "decide baseline list",
    "static --build-only": "static --build-only v2d_c",
    "check": "check v2d_c",
    "compare": "compare a.ncu-rep b.ncu-rep",
    "data delete": "data delete --help",
    "static --check": "static --check v2d_c",
    "explain": "explain a.ncu-rep b.ncu-rep",
    "data export": f"data export {AFTER} --out run.zip",
    "data forget": f"data forget {BEFORE}",
    "gate": "gate attention",
    "trend --steps": "trend --steps gpu__time_duration.sum",
    "import": "import a.ncu-rep b.ncu-rep",
    "data index": "data index",
    "insights": "insights v2d_c",
    "list metrics": "list metrics",
    "list noise": "list noise",
    "decide note": "decide note --help",
    "decide pair": "decide pair --help",
    "predict": "predict v2d_c",
    "data prune": "data prune --help",
    "regressions": "regressions",
    "data relabel": f"data relabel {AFTER} --version newer",
    "report": "report v2d_b v2d_c --out report.html",
    "data restore": "data restore --help",
    "roofline": "roofline c.ncu-rep",
    "list runs": "list runs",
    "sass": "sass v2d_b v2d_c",
    "show": "show a.ncu-rep",
    "static": "static v2d_c",
    "trend": "trend gpu__time_duration.sum",
    "data verify": "data verify",
    "list versions": "list versions",
    "list workloads": "list workloads",
}
LEFT_OUT = {
    "bisect": "runs a command of the user's in checkouts of a repository",
    "collect": "needs a GPU",
    "collect --noise": "needs a GPU",
    "doctor": "says what is missing here (3)",
    "judge": "needs a candidate",
    "changes": "needs two builds: tests/documents/test_changes.py",
    "pin": "needs a build: tests/gate/test_library_gate.py",
    "matrix": "needs a source: tests/documents/test_matrix.py",
    "init": "writes files: tests/documents/test_init.py",
    "search": "list runs until it is stopped",
    "dashboard": "a server: tests/browser",
    "mcp": "a server: tests/agents",
}
COMPILED = {"check", "predict", "static", "static --build-only", "static --check"}
GATES = ("gate", "gate attention", f"gate {AFTER} --baseline {BEFORE}")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, made_reports: Path) -> Path:
    """The files that git has, in a folder of their own, with three reports."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    shutil.copy(made_reports / "mistic/prof1.ncu-rep", folder / "a.ncu-rep")
    shutil.copy(made_reports / "mistic/prof2.ncu-rep", folder / "b.ncu-rep")
    shutil.copy(made_reports / "ncar/MW_Baseline.ncu-rep", folder / "c.ncu-rep")
    return folder


@pytest.fixture(scope="module")
def forked(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """What runs the clone's commands."""
    python = Forked(clone, tmp_path_factory.mktemp("output"))
    yield python
    python.close()


@pytest.fixture(scope="module")
def indexed(clone: Path, forked: Forked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clone's data after `make dashboard` has indexed them."""
    data = Path(shutil.copytree(clone / "data", tmp_path_factory.mktemp("indexed") / "data"))
    done = forked.run("data", "index", environment=variables(clone, data))
    assert done.returncode == 0, done.stdout + done.stderr
    return data


def variables(clone: Path, data: Path | None = None) -> dict[str, str]:
    """The environment that a command has in the clone."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("PROFILER_")}
    return kept | {"PYTHONPATH": str(clone)} | ({"PROFILER_DATA": str(data)} if data else {})


def run(clone: Path, call: str, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "profiler", *call.split()]
    environment = variables(clone, data)
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def test_every_command_of_the_readme_is_called_or_left_out_with_a_reason() -> None:
    table = README[README.index("| question | command |") :].partition("\n\n")[0]
    named = {word for cell in re.findall(r"`([^`]+)`", table) for word in [cell.split()[-1]]}
    called = {name for name in CALLS | LEFT_OUT if " --" not in name}
    assert named == {name.split()[0] for name in called}
    grouped = {f"{group} {name}" for group, names in GROUPS.items() for name in names}
    assert grouped == {name for name in called if " " in name}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_a_command_of_the_readme_passes_in_a_fresh_clone(
    clone: Path, forked: Forked, indexed: Path, name: str, tmp_path: Path
) -> None:
    """The gates below start as a shell starts them, and find no index."""
    data = Path(shutil.copytree(indexed, tmp_path / "data"))
    done = forked.run(*CALLS[name].split(), environment=variables(clone, data))
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stdout + done.stderr


@pytest.mark.compiler
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(COMPILED))
def test_a_command_that_compiles_passes_in_a_fresh_clone(clone: Path, name: str, tmp_path: Path) -> None:
    shutil.copytree(clone / "data", tmp_path / "data")
    done = run(clone, CALLS[name], tmp_path / "data")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("call", GATES)
def test_the_gate_passes_on_the_shipped_data_with_the_clones_own_folder(clone: Path, call: str) -> None:
    done = run(clone, call)
    assert done.returncode == 0, done.stdout + done.stderr
