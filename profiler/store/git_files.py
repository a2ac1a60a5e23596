"""The files that a git repository's history holds: each version of a file, with its commit and date."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from profiler.errors import ProfilerError
from profiler.store.folder_families import folder_in_repository

_AT_ONCE = 64, 256 << 20  # files and bytes that lie on disk at the same time
_LARGEST = 2 << 30  # bytes of a file
# Nothing that a foreign repository configures may run, and nothing is fetched.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}


class CommittedFile(NamedTuple):
    """One version of a file in a repository."""

    commit: str
    when: datetime  # when it was committed, UTC
    path: PurePosixPath  # in the repository
    blob: str
    folder: str  # as folder_of gives it for a clone

    @property
    def short(self) -> str:
        """The first digits of the commit, as people name it."""
        return self.commit[:12]


def committed_files(repository: Path, patterns: Sequence[str]) -> list[CommittedFile]:
    """Every version of the files that fit a pattern, oldest commit first; equal contents once.

    repository: a clone or a bare one. patterns: as the shell has them, `**` for any folders. Raises
    ProfilerError where there is no repository, or no git.
    """
    folder = folder_in_repository(_output(repository, "rev-parse", "--absolute-git-dir").strip())
    log = _output(
        repository,
        *("log", "--reverse", "--topo-order", "--raw", "--no-abbrev", "--no-renames", "-m", "-z"),
        *("--diff-filter=AMT", "--format=%x01%H %ct", "HEAD", "--"),
        *(f":(top,glob){pattern}" for pattern in patterns),
    )
    found: dict[tuple[str, PurePosixPath], CommittedFile] = {}
    for commit in log.split("\x01")[1:]:
        head, *fields = commit.replace("\n", "\0").split("\0")
        name, seconds = head.split(" ")
        fields = [field for field in fields if field]
        for raw, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, _ = raw.split(" ")
            if mode.startswith("100"):  # no link, no submodule
                where = PurePosixPath(path)
                below = folder if where.parent == PurePosixPath() else f"{folder}/{where.parent}"
                when = datetime.fromtimestamp(int(seconds), UTC)
                found.setdefault((blob, where), CommittedFile(name, when, where, blob, below))
    return list({file.blob: file for file in reversed(found.values())}.values())[::-1]


def written(
    repository: Path, files: Sequence[CommittedFile], folder: Path
) -> Iterator[dict[Path, CommittedFile]]:
    """Write the files below a folder, some at once; those before are removed. A file has its commit's time.

    One whose content is not in the repository, as in a partial clone, is left out: nothing is at its path.
    """
    with subprocess.Popen(
        _command(repository, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | _ENVIRONMENT,
    ) as contents:
        assert contents.stdin is not None
        assert contents.stdout is not None
        batch: dict[Path, CommittedFile] = {}
        size = 0
        for number, file in enumerate(files):
            path = folder / str(number) / file.path.name
            path.parent.mkdir()
            contents.stdin.write(f"{file.blob}\n".encode())
            contents.stdin.flush()
            size += _write_content(contents.stdout, path)
            if path.exists():
                os.utime(path, (file.when.timestamp(), file.when.timestamp()))
            batch[path] = file
            if len(batch) >= _AT_ONCE[0] or size >= _AT_ONCE[1] or number == len(files) - 1:
                yield batch
                for done in batch:
                    done.unlink(missing_ok=True)
                batch, size = {}, 0


def _write_content(stream: IO[bytes], path: Path) -> int:
    """Write what `git cat-file --batch` answers next; how many bytes. Nothing for a blob that is missing."""
    head = stream.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        return 0
    size = left = int(head[2])
    with path.open("wb") if size <= _LARGEST else open(os.devnull, "wb") as file:
        while left:
            block = stream.read(min(left, 1 << 20))
            if not block:
                raise ProfilerError(f"git ended while it printed {path.name}")
            file.write(block)
            left -= len(block)
    stream.read(1)  # the line end after the content
    return size


def _command(repository: Path, *arguments: str) -> list[str]:
    return ["git", *_SAFE, "-C", str(repository), *arguments]


def _output(repository: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            _command(repository, *arguments),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | _ENVIRONMENT,
        )
    except OSError as error:
        raise ProfilerError(f"git cannot be run: {error}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
        raise ProfilerError(f"{repository}: {said[-1].removeprefix('fatal: ')}")
    return done.stdout.decode("utf-8", errors="surrogateescape")
