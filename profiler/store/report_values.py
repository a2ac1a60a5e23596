"""Where the values of a sealed run's reports come from: the cache beside the bundles, else the reader."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from profiler.bundles import Root, Run, bundle
from profiler.errors import BadBundle, ProfilerError, UnreadableReport
from profiler.evidence import Report, launch, values
from profiler.reports import csv_export, file_format, read, reader_process
from profiler.store import packing

_ITEMS_AHEAD = 4
_RUNS_AT_ONCE = 32  # reports of so many runs are read by one process, and fetched at once from afar

Reports = dict[str, Report]  # by sha256
T = TypeVar("T")


def read_reports(where: Root, runs: Sequence[Run]) -> Iterator[tuple[Run, Reports | ProfilerError]]:
    """The runs in order, each with all its reports, or with the reason why one of them cannot be read."""
    for start in range(0, len(runs), _RUNS_AT_ONCE):
        yield from _read(where, runs[start : start + _RUNS_AT_ONCE])


def save_report(where: Root, held: Report) -> None:
    """Keep what was read, so that a rebuild need not read it again. Not being able to is no error."""
    with contextlib.suppress(OSError):
        packing.save_report(_path(where, held.sha256), held)


def _read(where: Root, runs: Sequence[Run]) -> Iterator[tuple[Run, Reports | ProfilerError]]:
    found: dict[str, Report | ProfilerError] = {}
    missing: dict[str, str] = {}
    for run in runs:
        for file in run.reports:
            cached = packing.load_report(_path(where, file.sha256))
            if cached is not None and cached.sha256 == file.sha256:
                found[file.sha256] = cached
            else:
                missing.setdefault(file.sha256, f"{bundle.RUNS_FOLDER}/{run.run_id}/{file.path}")
    with contextlib.ExitStack() as fetched:
        local: dict[str, Path] = {}
        for digest, path in missing.items():
            try:
                local[digest] = fetched.enter_context(where.open_local(path))
            except OSError as error:
                found[digest] = BadBundle(f"{where.url}/{path} is not there or cannot be read ({error})")
        for digest, held in zip(local, read.read_reports(local.values()) if local else (), strict=True):
            if isinstance(held, UnreadableReport):
                found[digest] = held
            elif held.sha256 != digest:
                found[digest] = BadBundle(f"{where.url}/{missing[digest]} was changed after it was sealed")
            else:
                found[digest] = held
                save_report(where, held)
    for run in runs:
        reports, refused = {}, None
        for file in run.reports:
            one = found[file.sha256]
            if isinstance(one, ProfilerError):
                refused = refused or one
            else:
                reports[file.sha256] = one
        yield run, refused or reports


def _path(where: Root, digest: str) -> Path:
    return packing.cache_path(where.cache(), digest, _reader_version())


@cache
def _reader_version() -> str:
    """Changes with every module that takes part in reading: nobody has to remember to raise a number."""
    digest = sha256()
    for module in (file_format, csv_export, packing, reader_process, read, launch, values):
        digest.update(Path(module.__file__ or "").read_bytes())
    return digest.hexdigest()[:8]


class Prefetch(Iterator[T]):
    """Items of a slow iterator, fetched by a thread while the caller is busy with earlier ones."""

    def __init__(self, items: Iterator[T]) -> None:
        self._queue: queue.Queue[tuple[bool, Any]] = queue.Queue(_ITEMS_AHEAD)
        self._closed = False
        self._thread = threading.Thread(target=self._run, args=(items,), daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> bool:
        """Whether the next item is there already."""
        return not self._queue.empty()

    def close(self) -> None:
        """Fetch no more items."""
        self._closed = True
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=0.05)

    def __next__(self) -> T:
        is_item, content = self._queue.get()
        if is_item:
            return content  # type: ignore[no-any-return]
        raise content

    def _run(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                self._queue.put((True, item))
                if self._closed:
                    break
            self._queue.put((False, StopIteration()))
        except BaseException as error:
            self._queue.put((False, error))
