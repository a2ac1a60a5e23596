"""The file under --out while a collection runs: the run as it would be sealed now."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from profiler.bundles import bundle, zip_file
from profiler.collect import seal
from profiler.collect.collection import Collection
from profiler.collect.staging import JOBS

SHARE = 0.05  # of the wall time may go into writing
UNFINISHED_WORDS = (
    "unfinished: this file was written while the collection ran, which was then ended from outside; "
    "what had ended by then is here"
)


class Checkpoint:
    """Keeps a file up to date with a collection, as long as its body runs; who is killed leaves the last one.

    It is written between jobs, when nothing runs: compressing takes a CPU for a second, beside which
    nothing is to be timed. What cannot be written is tried again, and said once: a full disk must not end a
    measurement.
    """

    def __init__(self, collection: Collection, target: Path, share: float | None = None) -> None:
        self._collection, self._share = collection, SHARE if share is None else share
        self._target = zip_file.zip_path(target, collection.staging.run_id)
        self._begun = time.monotonic()
        self._last_s = self._total_s = 0.0  # seconds spent writing
        self._written: frozenset[tuple[str, int]] = frozenset()  # jobs that the file holds: see _ended_jobs
        self._complained = False

    def __enter__(self) -> Checkpoint:
        self._collection.between_jobs = self.update_if_cheap
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Bring the file up to date: it then holds the whole run, even if sealing is killed."""
        self._collection.between_jobs = lambda: None
        self.update()

    def update_if_cheap(self) -> None:
        """Update the file if that keeps within the share, assuming that it takes as long as the last time."""
        if self._total_s + self._last_s <= self._share * (time.monotonic() - self._begun):
            self.update()

    def update(self) -> bool:
        """Write the file if a job has ended since. Returns whether it holds everything that has ended."""
        begun, ended = time.monotonic(), self._ended_jobs()
        if ended == self._written:
            return True
        try:
            self._write()
        except Exception as error:  # whatever it is, measuring goes on
            if not self._complained:
                print(f"profiler: {self._target} is not kept up to date: {error!r}", file=sys.stderr)
            self._complained = True
            return False
        finally:
            self._last_s = time.monotonic() - begun
            self._total_s += self._last_s
        self._written = ended
        return True

    def _ended_jobs(self) -> frozenset[tuple[str, int]]:
        """The files of ended jobs and their times: in a resumed run a job may end a second time."""
        files = []
        for path in (self._collection.staging.folder / JOBS).glob("*.json"):
            with contextlib.suppress(OSError):
                files.append((path.name, path.stat().st_mtime_ns))
        return frozenset(files)

    def _write(self) -> None:
        run, sources = seal.make_run(self._collection, seal.ZIP_BYTES)
        degraded = [*run.provenance.get("degraded", ()), UNFINISHED_WORDS]
        provenance = {**run.provenance, "degraded": degraded, bundle.UNFINISHED: True}
        making = self._collection.staging.folder / f".{uuid.uuid4().hex}"
        try:
            zip_file.pack_files(replace(run, provenance=provenance), sources, making)
            _move(making, self._target)
        finally:
            making.unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    """Move a file so that the target is whole at any time, also to another file system."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        partial = target.with_name(f"{target.name}.part")
        try:
            shutil.copyfile(source, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


def keep_file(collection: Collection, target: Path | None) -> contextlib.AbstractContextManager[object]:
    """A Checkpoint; without a target a context that does nothing."""
    return Checkpoint(collection, target) if target else contextlib.nullcontext()
