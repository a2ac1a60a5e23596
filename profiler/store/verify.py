"""`verify`: every bundle against its hashes, the decisions, and the index against both."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.bundles import backup, bundle, decisions, location
from profiler.bundles.dropped import DROPPED_FILE, load_dropped, stored_files
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import Run
from profiler.bundles.run_json import RUN_FILE
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BadBundle, ProfilerError
from profiler.store import sync
from profiler.store.index import Store
from profiler.store.row_digests import RowDigests
from profiler.store.sync import Progress


@dataclass(frozen=True)
class Fault:
    """Something that is not as it should be."""

    subject: str  # a run id, the id of a decision, or "index"
    message: str
    path: str | None = None  # of a file inside the run's bundle


@dataclass(frozen=True)
class Verification:
    """What was looked at, and what is wrong there."""

    runs: int
    files: int
    size_bytes: int
    decisions: int
    index_compared: bool
    findings: tuple[Fault, ...]


def verify_data(
    *, quick: bool = False, data: str | None = None, progress: Progress | None = None
) -> Verification:
    """Hold every file of every bundle against its sha256, and the index against one made anew.

    quick: not the index. Nothing is mended; raises ProfilerError only where the data cannot be reached.
    """
    root = location.open_root(data)
    findings: list[Fault] = []
    files = size_bytes = 0
    run_ids = bundle.list_runs(root)
    for number, run_id in enumerate(run_ids, 1):
        try:
            run = bundle.load_run(root, run_id)
            dropped = load_dropped(root, run)
        except BadBundle as error:
            findings.append(Fault(run_id, str(error)))
            continue
        named = stored_files(run, dropped)
        for file in named:
            if (message := backup.damage(root, run_id, file)) is not None:
                findings.append(Fault(run_id, message, file.path))
            files, size_bytes = files + 1, size_bytes + file.size_bytes
        findings += _unnamed_files(root, run, {file.path for file in named})
        if progress is not None:
            progress(number, len(run_ids), run_id)
    findings += _folders_without_runs(root, run_ids)
    decision_ids, folder = decisions.decision_ids(root), f"{root.url}/{decisions.FOLDER}"
    for name in decision_ids:
        try:
            content = decisions.read_content(root, name)
            record = decisions.parse_record(folder, name, content)
            if (message := decisions.ahead_words(record.order)) is not None:
                findings.append(Fault(name, f"{folder}/{name}.json {message}, else remove the file"))
        except BadBundle as error:
            findings.append(Fault(name, str(error)))
    if not quick:
        findings += _compare_index(root, data, {finding.subject for finding in findings})
    return Verification(len(run_ids), files, size_bytes, len(decision_ids), not quick, tuple(findings))


def _unnamed_files(root: Root, run: Run, named: set[str]) -> Iterator[Fault]:
    """The files in a bundle's folder that it does not name; hidden ones are the system's."""
    if not isinstance(root, LocalRoot):
        return
    top = root.folder / bundle.RUNS_FOLDER / run.run_id
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = Path(folder, name).relative_to(top).as_posix()
            if path not in named and path not in (RUN_FILE, DROPPED_FILE) and not name.startswith("."):
                yield Fault(run.run_id, f"{path} is in its folder, and {RUN_FILE} does not name it", path)


def _folders_without_runs(root: Root, run_ids: list[str]) -> Iterator[Fault]:
    if isinstance(root, LocalRoot) and (root.folder / bundle.RUNS_FOLDER).is_dir():
        for path in sorted((root.folder / bundle.RUNS_FOLDER).iterdir()):
            if path.is_dir() and path.name not in run_ids and not path.name.startswith("."):
                yield Fault(path.name, f"{path} holds no {RUN_FILE}: it is no run")


def _compare_index(root: Root, data: str | None, damaged: set[str]) -> Iterator[Fault]:
    """What the index has otherwise than one that is made from the bundles now."""
    try:
        with (
            sync.opened_store(data, None) as store,
            scratch_folder() as scratch,
        ):
            with Store.open(scratch / "index.db", root.url) as fresh:
                sync.sync_store(root, fresh)
                for run_id, message in fresh.refused():
                    if run_id not in damaged:
                        yield Fault(run_id, message)
                expected = fresh.row_digests()
            yield from _differences(store.row_digests(), expected)
    except ProfilerError as error:
        yield Fault("index", str(error))


def _differences(index: RowDigests, expected: RowDigests) -> Iterator[Fault]:
    way_out = "`profiler data index --rebuild` makes it again"
    for run_id in sorted(index.runs.keys() | expected.runs.keys()):
        if run_id not in index.runs:
            yield Fault("index", f"lacks run {run_id}: {way_out}")
        elif run_id not in expected.runs:
            yield Fault("index", f"has run {run_id}, of which there is no bundle: {way_out}")
        elif index.runs[run_id] != expected.runs[run_id]:
            yield Fault("index", f"has other rows of run {run_id} than its bundle gives: {way_out}")
    shared = Counter(
        table for (table, key), digest in expected.shared.items() if index.shared.get((table, key)) != digest
    )
    for table, count in shared.items():
        yield Fault("index", f"has {count} other rows in its table {table} than the bundles give: {way_out}")
    if index.orphans:
        yield Fault("index", f"has {index.orphans} rows of runs that it does not list: {way_out}")
