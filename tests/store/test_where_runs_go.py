"""Where new runs go: never into the program's own clone from elsewhere, and it is said where."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import profiler
from profiler.bundles.location import LocalRoot, open_root

CLONE = Path(profiler.__file__).resolve().parents[1]


def folder(*, for_runs: bool) -> Path:
    root = open_root(for_runs=for_runs)
    assert isinstance(root, LocalRoot)
    return root.folder


@pytest.fixture(autouse=True)
def no_data_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROFILER_DATA", "PROFILER_DB"):
        monkeypatch.delenv(name, raising=False)


def test_from_elsewhere_runs_go_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder(for_runs=True) == tmp_path / "data"
    assert folder(for_runs=False) == CLONE / "data"  # what a clone ships can be looked at from anywhere
    (tmp_path / "data").mkdir()
    assert folder(for_runs=False) == tmp_path / "data"


def test_within_the_clone_they_go_into_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLONE / "profiler")
    assert folder(for_runs=True) == folder(for_runs=False) == CLONE / "data"


def test_a_folder_that_is_named_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "named"))
    assert folder(for_runs=True) == tmp_path / "named"


@pytest.mark.slow
def test_import_says_where_it_put_them_and_the_same_index_has_them(
    made_reports: Path, tmp_path: Path
) -> None:
    shutil.copy(made_reports / "mistic/prof1.ncu-rep", tmp_path)
    before = {path.name for path in (CLONE / "data/runs").iterdir()}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "profiler", *command],
            cwd=tmp_path,
            env={"PYTHONPATH": str(CLONE), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert str(tmp_path / "data") in run("import", "prof1.ncu-rep").splitlines()[-1]
    assert {path.name for path in (CLONE / "data/runs").iterdir()} == before
    assert len(list((tmp_path / "data/runs").iterdir())) == 1
    assert "prof1" in run("list", "versions")
