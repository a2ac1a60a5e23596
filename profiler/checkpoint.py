"""What lies under --out while a collection runs: the run as it would be sealed now, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from profiler import assembly, bundle, bundle_zip
from profiler.collect import Collection
from profiler.staging import JOBS

EVERY_S = 5.0  # at most so often, and at most a twentieth of the time
_SHARE = 20
TOLD = (
    "unfinished: this file was written while the collection ran, which was then ended from outside; "
    "what had ended by then is here"
)


class Checkpoint:
    """Keeps a file up to date with a collection, as long as its body runs; who is killed leaves the last one.

    What cannot be written is tried again, and said once: a full disk must not end a measurement.
    """

    def __init__(self, collection: Collection, target: Path, every_s: float | None = None) -> None:
        self._collection, self._every_s = collection, EVERY_S if every_s is None else every_s
        self._target = bundle_zip.place(target, collection.staging.run_id)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="checkpoint", daemon=True)
        self._ended: frozenset[str] = frozenset()  # jobs that the file holds
        self._complained = False

    def __enter__(self) -> Checkpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """After an interruption the file is brought up to date; else the sealed run takes its place."""
        self._over.set()
        self._thread.join()
        if kind is not None:
            self.update()

    def update(self) -> bool:
        """Write the file if a job has ended since; whether it holds all that has ended."""
        ended = self._jobs()
        if ended == self._ended:
            return True
        try:
            self._write()
        except Exception as error:  # whatever it is, what is measured goes on
            if not self._complained:
                print(f"profiler: {self._target} is not kept up to date: {error!r}", file=sys.stderr)
            self._complained = True
            return False
        self._ended = ended
        return True

    def _watch(self) -> None:
        pause = self._every_s
        while not self._over.wait(pause):
            begun = time.monotonic()
            self.update()
            pause = max(self._every_s, _SHARE * (time.monotonic() - begun))

    def _jobs(self) -> frozenset[str]:
        return frozenset(path.name for path in (self._collection.staging.folder / JOBS).glob("*.json"))

    def _write(self) -> None:
        run, sources = assembly.assemble(self._collection, assembly.ZIP_BYTES)
        told = [*run.provenance.get("degraded", ()), TOLD]
        so_far = replace(run, provenance={**run.provenance, "degraded": told, bundle.UNFINISHED: True})
        making = self._collection.staging.folder / f".{uuid.uuid4().hex}"
        try:
            bundle_zip.write(so_far, sources, making)
            _move(making, self._target)
        finally:
            making.unlink(missing_ok=True)


def _move(made: Path, target: Path) -> None:
    """To its place, whole or not at all, on another file system too; there one file may be left over."""
    try:
        made.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        partial = target.with_name(f"{target.name}.part")
        shutil.copyfile(made, partial)
        partial.replace(target)


def kept(collection: Collection, target: Path | None) -> contextlib.AbstractContextManager[object]:
    """A Checkpoint, or nothing where there is no file to keep."""
    return Checkpoint(collection, target) if target else contextlib.nullcontext()
