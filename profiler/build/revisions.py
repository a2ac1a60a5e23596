"""What a git repository's own build command makes at its revisions, in folders of their own."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from profiler.errors import BuildFailed, CannotJudge, UnknownName

_MOST_CHECKOUTS = 12  # at the same time
_LINES_SHOWN = 3  # of a build that failed, the last


class Commit(NamedTuple):
    """A commit of the repository of the working directory."""

    sha: str
    when: datetime  # when it was committed, UTC
    subject: str


def commits_between(good: str, bad: str) -> list[Commit]:
    """The commit `good` and all after it up to `bad`, oldest first, along the first parents of merges.

    Raises UnknownName for a revision that does not exist, CannotJudge where `good` is not before `bad` on
    that line, or there is no repository.
    """
    ends = [_commit(revision) for revision in (good, bad)]
    log = _require("log", "--first-parent", "--reverse", "--format=%H %ct %s", f"{ends[0]}..{ends[1]}")
    first = _require("log", "-1", "--format=%H %ct %s", ends[0])
    lines = [line.split(" ", 2) for line in (*first.splitlines(), *log.splitlines())]
    parents = _require("rev-list", "--first-parent", ends[1]).splitlines()
    if ends[0] not in parents:
        raise CannotJudge(f"{good} is not before {bad} along the first parents of its merges")
    return [
        Commit(sha, datetime.fromtimestamp(int(seconds), UTC), subject) for sha, seconds, subject in lines
    ]


class Checkouts:
    """Checkouts of commits in a folder of their own, each built once; the oldest go where there are many."""

    def __init__(self, folder: Path, build: str | None) -> None:
        self.folder = folder
        self.build = build
        self.made: dict[str, Path] = {}  # by sha, the one used last at the end

    def of(self, sha: str) -> Path:
        """The checkout of a commit, built. Raises BuildFailed where its build fails."""
        if sha in self.made:
            self.made[sha] = self.made.pop(sha)
            return self.made[sha]
        while len(self.made) >= _MOST_CHECKOUTS:
            self._remove(next(iter(self.made)))
        checkout = self.folder / sha
        _check_out(sha, checkout)
        self.made[sha] = checkout
        if self.build is not None:
            try:
                _build(sha[:12], self.build, checkout)
            except BuildFailed:
                self._remove(sha)
                raise
        return checkout

    def close(self) -> None:
        """Remove all checkouts."""
        for sha in list(self.made):
            self._remove(sha)

    def _remove(self, sha: str) -> None:
        checkout = self.made.pop(sha)
        _git("worktree", "remove", "--force", str(checkout))
        shutil.rmtree(checkout, ignore_errors=True)


def build_revision(revision: str, command: str, output: str, folder: Path, number: int) -> Path:
    """Run a shell command in a checkout of the revision, and keep what it made.

    The repository is that of the working directory, whose own files stay as they are. Submodules are checked
    out too. output: a file or folder below the checkout. folder: one that exists; the same for all revisions,
    since machine code may differ by the path of its source. number: tells apart what is kept of each.

    Raises UnknownName for a revision that does not exist, BuildFailed where the command fails or makes no
    output, CannotJudge where there is no git or no repository.
    """
    check_below(output)
    commit = _commit(revision)
    checkout = folder / "checkout"
    _check_out(commit, checkout)
    try:
        _build(revision, command, checkout)
        made = checkout / output
        if not made.exists():
            raise BuildFailed(f"{revision} was built, but the command made no {output}")
        kept = folder / str(number) / made.name
        kept.parent.mkdir()
        shutil.move(made, kept)
        return kept
    finally:
        _git("worktree", "remove", "--force", str(checkout))
        shutil.rmtree(checkout, ignore_errors=True)


def check_below(output: str) -> None:
    """Raise UnknownName for an output that is not below the checkout."""
    if ".." in Path(output).parts or Path(output).is_absolute():
        raise UnknownName(f"{output} is not below the repository", option="--output")


def _commit(revision: str) -> str:
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        _require("rev-parse", "--git-dir")
        raise UnknownName(f"this repository has no revision {revision!r}")
    return commit


def _check_out(commit: str, checkout: Path) -> None:
    _require("worktree", "add", "--quiet", "--detach", "--force", str(checkout), commit)
    if (checkout / ".gitmodules").is_file():
        _require("-C", str(checkout), "submodule", "update", "--init", "--recursive", "--quiet")


def _build(revision: str, command: str, checkout: Path) -> None:
    done = subprocess.run(
        command,
        shell=True,
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()][-_LINES_SHOWN:]
        raise BuildFailed(f"{revision} does not build (exit {done.returncode}): {' | '.join(lines)}")


def _require(*arguments: str) -> str:
    said = _git(*arguments, is_needed=True)
    if said is None:
        raise CannotJudge(f"git {arguments[0]} failed")
    return said


def _git(*arguments: str, is_needed: bool = False) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise CannotJudge(f"git cannot be run: {error}") from None
    if done.returncode:
        if is_needed:
            said = done.stderr.strip().splitlines() or [f"git {arguments[0]} failed"]
            raise CannotJudge(said[-1])
        return None
    return done.stdout.strip()
