"""How an import begins: the first report is being read before what stores reports is loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from profiler.bundles import bundle, location
from profiler.errors import ProfilerError
from profiler.reports.read import read_reports
from profiler.reports.reader_client import dismiss_reader
from profiler.store.find_files import find_files
from profiler.store.label_forms import LabelOption, label_rules
from profiler.store.new_reports import find_new_reports
from profiler.store.prefetch import Prefetch

if TYPE_CHECKING:
    from profiler.bundles.run import Facts
    from profiler.errors import UnreadableReport
    from profiler.evidence.launch import Report
    from profiler.store.git_files import CommittedFile
    from profiler.store.import_files import ImportSummary
    from profiler.store.index import Store
    from profiler.store.sync import Progress
    from profiler.timings.columns import TableColumns


def import_paths(
    paths: Iterable[Path | str],
    *,
    family: LabelOption = None,
    version: LabelOption = None,
    workload: LabelOption = None,
    data: str | None = None,
    relabel: bool = False,
    keep_folder: bool = True,
    reader_memory: int | None = None,
    keep_reader: bool = True,
    progress: Progress | None = None,
    store: Store | None = None,
    read_code: Callable[[Path], tuple[Facts, ...]] | None = None,
    columns: TableColumns | None = None,
    gpu: str | None = None,
    are_noise: bool = False,
    committed: Mapping[Path, CommittedFile] | None = None,
) -> ImportSummary:
    """Import reports, CSV files, files of times and bundles (folders or zips), also from folders of them.

    Each file is imported whole or refused, and a refused one does not stop the others. family, version and
    workload, in any form of label_forms, override the labels that a report's path suggests; a bundle has its
    own. relabel: whether reports that are there already get the labels of this import, in one decision, but
    for those that somebody decided. keep_folder: whether the runs say which folder their reports came from.
    reader_memory: bytes that reading a file may take, instead of a limit by its size. keep_reader: whether
    the reading process waits a while for more reports, as a process that stays wants.
    read_code: reads a file of machine code, which is then a run of static facts; without it such a file is
    refused. columns: which columns of tables have the times. gpu: where files of times were measured that do
    not say. are_noise: whether these files are sessions of one unchanged build. committed: where files are
    from that were written out of a repository's history. Raises ProfilerError for a label that cannot be
    used, and where the data folder cannot be written.
    """
    given_labels = {"family": family, "version": version, "workload": workload}
    labels = {kind: label_rules(kind, option) for kind, option in given_labels.items()}
    files = find_files((Path(path) for path in paths), are_tables=columns is not None and bool(columns.names))
    if are_noise and (files.reports or files.bundles or files.code or not files.timings):
        raise ProfilerError("--noise is for files of times alone: all are sessions of one unchanged build")
    root = location.open_root(data, for_runs=True)
    if files.total == len(files.refused):  # nothing is made for it, not even the data folder
        from profiler.store.import_files import Importer

        return Importer(root, labels, files, progress).summary()
    with contextlib.ExitStack() as stack:
        stack.enter_context(bundle.importing(root))
        # A process apart, and a thread that asks it, read ahead from the first file on that is new.
        to_read: SimpleQueue[Path | None] = SimpleQueue()
        reports = Prefetch(_read(iter(to_read.get, None), reader_memory, keep_reader))
        stack.enter_context(contextlib.closing(reports))
        try:
            new_reports = find_new_reports(root, files.reports, to_read.put)
        finally:
            to_read.put(None)
        # numpy and SQLAlchemy, whose modules take a third of a second
        from concurrent.futures import ThreadPoolExecutor

        from profiler.store import sync
        from profiler.store.import_files import SEAL_THREADS, Importer

        importer = Importer(
            root,
            labels,
            files,
            progress,
            keep_folder=keep_folder,
            reader_memory=reader_memory,
            committed=committed,
        )
        importer.note_known(new_reports)
        importer.seal_threads = stack.enter_context(ThreadPoolExecutor(SEAL_THREADS, "seal"))
        importer.store = stack.enter_context(sync.opened_store(root.url, store))
        importer.import_reports(new_reports.paths, reports)
        for path in files.bundles:
            importer.import_bundle(path)
        for path in files.code:
            importer.import_code(path, read_code)
        if are_noise:
            importer.import_noise(columns, gpu)
        for path in () if are_noise else files.timings:
            importer.import_timings(path, columns, gpu)
        importer.index_sealed()
        if relabel:
            importer.relabel_known()
        importer.store.prepare_series(sync.prepared_metrics())
    return importer.summary()


def import_history(repository: Path, patterns: Sequence[str], **options: Any) -> ImportSummary:
    """Import every version of the files that a git repository's history holds, oldest commit first.

    The commit is the version and its date that of a file which does not say when it was made; the name of a
    report is its workload. A version that a run holds already is not read again, so an import that ended in
    the middle goes on. options: those of import_paths. Raises ProfilerError also where there is no
    repository, or nothing in it fits a pattern.
    """
    from profiler.bundles.scratch import scratch_folder
    from profiler.store.git_files import committed_files, written
    from profiler.store.import_files import ImportSummary

    files = committed_files(repository, patterns)
    if not files:
        raise ProfilerError(f"{repository}: no commit has a file that fits {' or '.join(patterns)}")
    parts: list[ImportSummary] = []
    with scratch_folder() as folder:
        for batch in written(repository, files, folder):
            missing = [file for path, file in batch.items() if not path.exists()]
            paths = [path.parent for path in batch if path.exists()]
            summary = import_paths(paths, committed=batch, **options)
            words = "its content is not in this copy of the repository"
            lost = tuple((str(file.path), f"{file.short}:{file.path}: {words}") for file in missing)
            parts.append(replace(summary, refused=(*summary.refused, *lost)))
    return ImportSummary(
        imported=tuple(new for part in parts for new in part.imported),
        already=tuple(known for part in parts for known in part.already),
        refused=tuple(refusal for part in parts for refusal in part.refused),
        skipped=sum(part.skipped for part in parts),
        relabelled=tuple(change for part in parts for change in part.relabelled),
        warnings=tuple(warning for part in parts for warning in part.warnings),
        data=parts[0].data,
    )


def _read(
    paths: Iterator[Path], memory_bytes: int | None, keep_reader: bool
) -> Iterator[Report | UnreadableReport]:
    yield from read_reports(paths, memory_bytes=memory_bytes)
    if not keep_reader:
        dismiss_reader()
