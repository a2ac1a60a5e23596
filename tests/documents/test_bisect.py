"""`bisect` ends with the commit that changed a time, in a real repository, and leaves that as it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import profiler
from profiler.documents.bisect import BisectDocument
from profiler.errors import CannotJudge, Exit, ProfilerError, UnknownName
from tests.reportfiles import machine_code
from tests.store.test_git_files import Repository

# Times vary by up to 1 % by how often they were taken, and one in seven is 20 % off.
RUN = """
import pathlib, sys
number = pathlib.Path(sys.argv[1])
count = int(number.read_text() or 0) if number.exists() else 0
number.write_text(str(count + 1))
time = float(pathlib.Path("speed").read_text().split()[0])
noise = (count * 7919 % 101 - 50) / 5000
print("latency:", time * (1 + noise) * (1.2 if count % 7 == 3 else 1), "us")
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path / "r")
    monkeypatch.chdir(made.folder)
    return made


def bisect(repository: Repository, tmp_path: Path, **options: object) -> BisectDocument:
    command = f"{sys.executable} run.py {tmp_path / 'count'}"
    options = {"run": command, **options}
    return profiler.bisect_time(repository.commits[0], repository.commits[-1], **options)


def test_the_commit_is_found_and_the_repository_is_as_it_was(repository: Repository, tmp_path: Path) -> None:
    for number in range(20):
        repository.commit(speed=f"{105 if number >= 13 else 100} {number}", **{"run.py": RUN})
    found = bisect(repository, tmp_path)
    assert found.found is not None
    assert found.found.sha == repository.commits[13]
    assert found.exit_code is Exit.PASS
    assert found.step == pytest.approx(0.05, abs=0.02)
    content = json.loads(json.dumps(found.to_dict()))
    assert content["commit"] == repository.commits[13]
    assert content["runs"] == sum(row["runs"] for row in content["tried"])
    assert len(repository.git("worktree", "list").splitlines()) == 1
    assert repository.git("status", "--porcelain") == ""


def test_without_a_change_it_cannot_tell(repository: Repository, tmp_path: Path) -> None:
    for number in range(4):
        repository.commit(speed=f"100 {number}", **{"run.py": RUN})
    unknown = bisect(repository, tmp_path)
    assert (unknown.found, unknown.exit_code) == (None, Exit.UNJUDGED)


def test_a_commit_that_does_not_build_is_passed_over(repository: Repository, tmp_path: Path) -> None:
    for number in range(9):
        build = "false" if number == 4 else "true"
        repository.commit(speed=f"{110 if number >= 5 else 100} {number}", build=build, **{"run.py": RUN})
    found = bisect(repository, tmp_path, build="sh build")
    assert found.found is not None
    assert found.found.sha == repository.commits[5]
    assert [commit.sha for commit in found.possible] == [repository.commits[4]]


def test_commits_of_equal_machine_code_need_no_run(repository: Repository, tmp_path: Path) -> None:
    cubins = {name: tmp_path / f"{name}.cubin" for name in ("v1", "edited")}
    for name, path in cubins.items():
        path.write_bytes(machine_code.cubin(name))
    for number in range(12):
        code = cubins["edited" if number >= 9 else "v1"]
        speed = 110 if number >= 9 else 100
        repository.commit(speed=f"{speed} {number}", build=f"cp {code} lib.cubin", **{"run.py": RUN})
    found = bisect(repository, tmp_path, build="sh build", output="lib.cubin")
    assert found.found is not None
    assert found.found.sha == repository.commits[9]
    assert found.same_code == 10  # all but the first and the one with the step
    assert {one.commit.sha for one in found.tried} <= {
        repository.commits[place] for place in (0, *range(6, 12))
    }


def test_ends_of_equal_machine_code_are_hardly_run(repository: Repository, tmp_path: Path) -> None:
    code = tmp_path / "v1.cubin"
    code.write_bytes(machine_code.cubin("v1"))
    for number in range(5):
        repository.commit(speed=f"100 {number}", build=f"cp {code} lib.cubin", **{"run.py": RUN})
    unknown = bisect(repository, tmp_path, build="sh build", output="lib.cubin")
    assert (unknown.found, unknown.exit_code, unknown.same_code) == (None, Exit.UNJUDGED, 4)
    assert unknown.runs <= 1
    assert unknown.to_dict()["step"] is None  # the other end was not run


def test_what_cannot_be_bisected_says_why(repository: Repository, tmp_path: Path) -> None:
    repository.commit(speed="100", **{"run.py": RUN})
    with pytest.raises(CannotJudge, match="one commit"):
        bisect(repository, tmp_path)
    repository.commit(speed="110 1", **{"run.py": RUN})
    with pytest.raises(ProfilerError, match=r"--run|run="):
        bisect(repository, tmp_path, run=None)
    with pytest.raises(UnknownName, match="nowhere"):
        profiler.bisect_time("nowhere", "HEAD", run="true")
    with pytest.raises(CannotJudge, match="before"):
        profiler.bisect_time("HEAD", "HEAD~1", run="true")
    with pytest.raises(CannotJudge, match="exit 3"):
        bisect(repository, tmp_path, run="exit 3")
    with pytest.raises(ProfilerError, match="last line"):
        bisect(repository, tmp_path, run="echo fast")
