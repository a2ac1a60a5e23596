"""A repository's committed files become a history: each version once, dated, from a bare clone too."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from profiler.bundles import bundle, location
from profiler.bundles.run import Run
from profiler.errors import ProfilerError
from profiler.store import git_files
from profiler.store.begin_import import import_history
from tests.store.test_measurement_copies import LAUNCHES, raw_csv
from tests.store.test_timed_runs import night


class Repository:
    """A repository in a temporary folder, whose commits are a day apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []
        folder.mkdir()
        self.git("init", "--quiet")
        self.git("remote", "add", "origin", "https://example.org/team/kernels.git")

    def git(self, *arguments: str) -> str:
        day = f"2026-02-{len(self.commits) + 1:02d}T12:00:00Z"
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
        environment = {
            "GIT_COMMITTER_DATE": day,
            "GIT_AUTHOR_DATE": day,
            "PATH": "/usr/bin:/bin",
            "HOME": "/",
        }
        return subprocess.run(
            command, cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, **files: str) -> str:
        """Commit files; their names have `__` for a slash."""
        for name, content in files.items():
            path = self.folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")
        self.commits.append(self.git("rev-parse", "HEAD"))
        return self.commits[-1]


def undated(number: int, factor: float = 1.0) -> str:
    """A night of benchmarks that says neither date nor commit."""
    content = night(number, factor)
    del content["datetime"], content["commit_info"]
    return json.dumps(content)


def runs_in(data: Path) -> list[Run]:
    root = location.open_root(str(data))
    loaded = [bundle.load_run(root, name) for name in bundle.list_runs(root)]
    return sorted(loaded, key=lambda run: run.created)


def test_each_version_of_a_file_is_a_run_of_its_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    for number in range(3):
        repository.commit(bench__out=undated(number))
        repository.git("mv", "bench/out", "bench/out.json") if number == 0 else None
        repository.commit(**{"bench__out.json": undated(number), "bench__other.txt": "x"})
    data = tmp_path / "data"
    summary = import_history(repository.folder, ["bench/**/*.json"], data=str(data))
    assert (len(summary.imported), summary.refused) == (3, ())
    runs = runs_in(data)
    assert [run.provenance["git_commit"] for run in runs] == repository.commits[1::2]
    assert [run.results[0].version for run in runs] == [commit[:12] for commit in repository.commits[1::2]]
    assert [run.created for run in runs] == [datetime(2026, 2, day, 12, tzinfo=UTC) for day in (2, 4, 6)]
    assert {run.provenance["git_path"] for run in runs} == {"bench/out.json"}


def test_an_import_goes_on_where_it_was_and_a_bare_clone_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "r")
    for number in range(5):
        repository.commit(**{"b.json": undated(number)})
    monkeypatch.setattr(git_files, "_AT_ONCE", (2, 1 << 30))
    half, whole = tmp_path / "half", tmp_path / "whole"
    with pytest.MonkeyPatch.context() as stopped:
        files = git_files.committed_files(repository.folder, ["*.json"])
        stopped.setattr(git_files, "committed_files", lambda *_: files[:3])
        import_history(repository.folder, ["*.json"], data=str(half))
    rest = import_history(repository.folder, ["*.json"], data=str(half))
    assert (len(rest.imported), len(rest.already)) == (2, 3)
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    again = import_history(tmp_path / "bare.git", ["*.json"], data=str(half))
    assert (len(again.imported), len(again.already)) == (0, 5)
    import_history(repository.folder, ["*.json"], data=str(whole))
    assert [run.run_id for run in runs_in(half)] == [run.run_id for run in runs_in(whole)]


def test_reports_of_one_commit_are_told_apart_by_their_names(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    first = raw_csv(tmp_path / "1.csv").read_text("utf-8")
    second = raw_csv(tmp_path / "2.csv", LAUNCHES[::-1]).read_text("utf-8")
    repository.commit(**{"softmax__a.csv": first, "softmax__b.csv": second})
    data = tmp_path / "data"
    import_history(repository.folder, ["**/*.csv"], data=str(data))
    assert {(run.results[0].family, run.results[0].workload) for run in runs_in(data)} == {
        ("softmax", "a"),
        ("softmax", "b"),
    }


def test_labels_may_name_the_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    commit = repository.commit(**{"b.json": undated(0)})
    data = tmp_path / "data"
    import_history(repository.folder, ["*.json"], data=str(data), version="{stem} at {commit}")
    assert runs_in(data)[0].results[0].version == f"b at {commit[:12]}"


def test_what_is_no_repository_or_fits_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match="git"):
        import_history(tmp_path, ["*.json"], data=str(tmp_path / "data"))
    repository = Repository(tmp_path / "r")
    repository.commit(a="x")
    with pytest.raises(ProfilerError, match="no commit has a file"):
        import_history(repository.folder, ["*.json"], data=str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()
