"""What a git repository's own build command makes at a revision, in a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from profiler.errors import BuildFailed, CannotJudge, UnknownName

_LINES_SHOWN = 3  # of a build that failed, the last


def build_revision(revision: str, command: str, output: str, folder: Path, number: int) -> Path:
    """Run a shell command in a checkout of the revision, and keep what it made.

    The repository is that of the working directory, whose own files stay as they are. Submodules are checked
    out too. output: a file or folder below the checkout. folder: one that exists; the same for all revisions,
    since machine code may differ by the path of its source. number: tells apart what is kept of each.

    Raises UnknownName for a revision that does not exist, BuildFailed where the command fails or makes no
    output, CannotJudge where there is no git or no repository.
    """
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    checkout = folder / "checkout"
    if ".." in Path(output).parts or Path(output).is_absolute():
        raise UnknownName(f"{output} is not below the repository", option="--output")
    if commit is None:
        _require("rev-parse", "--git-dir")
        raise UnknownName(f"this repository has no revision {revision!r}")
    _require("worktree", "add", "--quiet", "--detach", "--force", str(checkout), commit)
    try:
        if (checkout / ".gitmodules").is_file():
            _require("-C", str(checkout), "submodule", "update", "--init", "--recursive", "--quiet")
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


def _require(*arguments: str) -> None:
    if _git(*arguments, is_needed=True) is None:
        raise CannotJudge(f"git {arguments[0]} failed")


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
