"""What becomes of the paths given to an import: found, read, sealed and indexed, each whole or refused."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import (
    IMPORT,
    Capture,
    Labels,
    Result,
    Root,
    Run,
    bundle,
    check_label,
    decisions,
    location,
    zip_file,
)
from profiler.bundles.run import MAX_LABEL_LENGTH
from profiler.bundles.run_json import RUN_FILE, brief_error
from profiler.errors import BadBundle, ProfilerError, UnreadableReport
from profiler.evidence import Report, brief_list
from profiler.reports import read as reports_read
from profiler.store import report_values, sync
from profiler.store.report_values import Prefetch
from profiler.store.rows import WriteConflict
from profiler.store.sync import Progress

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.run_rows import RunRows

_AT_ONCE = 50  # runs that go into the index in one transaction
_PREPARED_EVERY = 1000  # runs of a long import


@dataclass(frozen=True)
class Imported:
    """A report or bundle that is new here."""

    path: str
    run_id: str
    family: str
    version: str
    launches: int


@dataclass(frozen=True)
class AlreadyImported:
    """A report or bundle that was here before."""

    path: str
    run_id: str  # which holds it
    hidden: bool = False  # it was forgotten: `profiler forget --undo` brings it back
    wanted: tuple[tuple[str, str], ...] = ()  # the labels given that are not the run's: "family", "x"


@dataclass(frozen=True)
class ImportSummary:
    """What became of the paths given to an import."""

    imported: tuple[Imported, ...] = ()
    already: tuple[AlreadyImported, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # path, message
    skipped: int = 0  # files met in folders that are neither report nor bundle


@dataclass
class FoundFiles:
    """What was found. Files that are neither report nor bundle are refused if named, and counted if met."""

    reports: list[Path] = field(default_factory=list)
    bundles: list[Path] = field(default_factory=list)  # folders and zips
    refused: list[tuple[str, str]] = field(default_factory=list)  # path, message
    skipped: int = 0

    @property
    def total(self) -> int:
        """How many files and bundles there are to import or refuse."""
        return len(self.reports) + len(self.bundles) + len(self.refused)


def import_paths(
    paths: Iterable[Path | str],
    *,
    family: str | None = None,
    version: str | None = None,
    workload: str | None = None,
    data: str | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
) -> ImportSummary:
    """Take in reports, CSVs, bundles (folders or zips) and whatever of these lies in folders.

    Each file is taken whole or refused, and a refused one does not stop the others. family, version and
    workload override what the paths of reports suggest; a bundle says its own.
    """
    given = {"family": family, "version": version, "workload": workload}
    labels = [check_label(kind, text) for kind, text in given.items()]
    found = find([Path(path) for path in paths])
    where = location.open_root(data)
    with bundle.importing(where):
        importer = Importer(where, labels, found, progress)
        # The first report is being read, in a process apart, while the database layer is imported here.
        reads = reports_read.read_reports([files[0] for files in importer.new.values()])
        prefetch = Prefetch(reads)
        with contextlib.closing(prefetch) as reading, sync.opened_store(data, store) as importer.store:
            importer.take_reports(reading)
            for path in found.bundles:
                importer.take_bundle(path)
            importer.flush()
            importer.store.prepare_series(sync.prepared_metrics())
    return importer.summary()


def find(paths: Iterable[Path]) -> FoundFiles:
    """Look at every path; folders are searched in the order of their names, hidden ones left out."""
    found = FoundFiles()
    for path in dict.fromkeys(paths):
        try:
            if path.is_dir():
                _search(path, found)
            elif not path.exists():
                found.refused.append((str(path), f"{path}: no such file or folder"))
            elif not _take(path, found):
                message = f"{path}: neither a report (.ncu-rep, or CSV from ncu) nor a bundle (folder or zip)"
                if path.suffix.lower() == ".zip" and path.is_file() and not zipfile.is_zipfile(path):
                    message = f"{path}: no zip, or one that was cut short: copy it again"
                elif path.is_file() and zipfile.is_zipfile(path):
                    message = f"{path}: a zip without {RUN_FILE}, so no bundle: unpack it, import the folder"
                found.refused.append((str(path), message))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            found.refused.append((str(path), _unreadable(path, error)))
    found.reports = list(dict.fromkeys(found.reports))
    found.bundles = list(dict.fromkeys(found.bundles))
    return found


def labels_of(path: Path, family: str | None, version: str | None) -> tuple[str, str]:
    """Family and version of a report: what was given, else its folder's name and its own without suffix."""
    return family or _label(path.absolute().parent.name, "imported"), version or _label(path.stem, "unnamed")


def _label(name: str, otherwise: str) -> str:
    """A label from the name of a file or folder, which may hold anything but a slash."""
    text = "".join(character if character.isprintable() else "_" for character in _shown(name))
    return text[:MAX_LABEL_LENGTH].strip() or otherwise


def _shown(path: Path | str) -> str:
    """A path as it can be printed and written: its bytes may be no text."""
    return os.fsencode(path).decode(errors="replace")


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    return f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})"


def _search(folder: Path, found: FoundFiles) -> None:
    def refuse(error: OSError) -> None:
        found.refused.append((str(error.filename), _unreadable(error.filename, error)))

    for place, folders, files in os.walk(folder, onerror=refuse):
        if RUN_FILE in files:
            found.bundles.append(Path(place))
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            try:
                if not _take(Path(place, name), found):
                    found.skipped += 1
            except OSError as error:
                found.refused.append((str(Path(place, name)), _unreadable(Path(place, name), error)))


def _take(path: Path, found: FoundFiles) -> bool:
    if reports_read.is_report(path):
        found.reports.append(path)
    elif path.suffix.lower() == ".zip" and zip_file.is_bundle_zip(path):
        found.bundles.append(path)
    else:
        return False
    return True


class Importer:
    """One import while it runs."""

    store: Store

    def __init__(
        self, where: Root, labels: Sequence[str | None], found: FoundFiles, progress: Progress | None
    ) -> None:
        self.where = where
        self.family, self.version, self.workload = labels
        self.found = found
        self.progress = progress
        self.decided = decisions.load_labels(where)
        self.imported: list[Imported] = []
        self.already: list[AlreadyImported] = []
        self.refused: list[tuple[str, str]] = []
        self.waiting: list[RunRows] = []
        self.unprepared = 0  # runs since series were prepared
        self.new: dict[str, list[Path]] = {}  # sha256 -> the files with this content
        for path, message in found.refused:
            self._refuse(Path(path), message)
        self._sort_out()

    def take_reports(self, reading: Prefetch[Report | UnreadableReport]) -> None:
        """Seal a run for every report that was read, and index the runs whenever the reader is not ahead."""
        held = self.store.runs_with_reports(self.new)
        for paths, read in zip(self.new.values(), reading, strict=True):
            try:
                if isinstance(read, UnreadableReport):
                    raise read
                self._take_report(paths, read, held.get(read.sha256))
            except Exception as error:  # whatever it is about this file, the others go on
                for path in paths:
                    self._refuse(path, self._reason(path, error))
            if not reading.waiting or len(self.waiting) >= _AT_ONCE:
                self.flush()

    def take_bundle(self, path: Path) -> None:
        """Seal a run from another place, after all its reports were read."""
        try:
            with tempfile.TemporaryDirectory(prefix="profiler-") as scratch:
                folder = path
                if not path.is_dir():
                    zip_file.unpack(path, folder := Path(scratch))
                run = bundle.load_run_folder(folder)
                self._take_run(path, run, {file.path: folder / file.path for file in run.contents})
        except Exception as error:  # as above
            self._refuse(path, self._reason(path, error))
        if len(self.waiting) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Index the runs that were sealed."""
        if self.waiting:
            try:
                bundle.flush_runs(self.where)
            except OSError as error:
                raise location.data_unusable(self.where, error) from error
            try:
                self.store.add_many(self.waiting, decided=self.decided)
            except WriteConflict:  # rows by what was decided before: they are sealed, and made anew
                sync.sync_store(self.where, self.store)
                self.decided = decisions.load_labels(self.where)
            self.unprepared += len(self.waiting)
            self.waiting = []
        if self.unprepared >= _PREPARED_EVERY:  # who reads meanwhile need not gather all that is new
            self.store.prepare_series(sync.prepared_metrics())
            self.unprepared = 0

    def summary(self) -> ImportSummary:
        """What became of everything."""
        return ImportSummary(
            tuple(self.imported), tuple(self.already), tuple(self.refused), self.found.skipped
        )

    def _sort_out(self) -> None:
        """Leave out the reports that an import of before holds; one content is read once."""
        there = bundle.imports_by_digest(bundle.list_runs(self.where))
        for path in self.found.reports:
            try:
                digest = bundle.hash_file(path)[0]
            except OSError as error:
                self._refuse(path, _unreadable(path, error))
                continue
            holder = bundle.find_import(self.where, there, digest)
            if holder is None:
                self.new.setdefault(digest, []).append(path)
            else:
                self._note_already(path, holder, given=True)

    def _take_report(self, paths: Sequence[Path], read: Report, holder: str | None) -> None:
        run = self._new_run(paths[0], read)
        if holder is None:
            rows = self.store.rows_of(run, {read.sha256: read}, self.decided.labels.get(run.run_id))
            holder = bundle.seal_import(self.where, run, {run.reports[0].path: paths[0]})
            if holder is None:
                report_values.save_report(self.where, read)
                self._note_imported(paths[0], run, rows)
                holder, paths = run.run_id, paths[1:]
        for path in paths:
            self._note_already(path, holder, given=True)

    def _take_run(self, path: Path, run: Run, sources: dict[str, Path]) -> None:
        files = [sources[file.path] for file in run.reports]
        reports: report_values.Reports = {}
        for file, read in zip(run.reports, reports_read.read_reports(files) if files else (), strict=True):
            if isinstance(read, UnreadableReport):
                raise read
            if read.sha256 != file.sha256:
                raise BadBundle(f"{path}: {file.path} is not the report that its {RUN_FILE} names")
            reports[file.sha256] = read
        # Before it is sealed: a run that the index cannot take is refused whole.
        rows = self.store.rows_of(run, reports, self.decided.labels.get(run.run_id))
        held = self.store.runs_with_reports(reports) if run.kind == IMPORT else {}
        holder = next(iter(held.values()), None) or bundle.seal_import(self.where, run, sources)
        if holder is not None:
            self._note_already(path, holder)
            return
        for read in reports.values():
            report_values.save_report(self.where, read)
        self._note_imported(path, run, rows)

    def _new_run(self, path: Path, read: Report) -> Run:
        family, version = labels_of(path, self.family, self.version)
        created = read.session.created
        if created is None:
            seconds = int(path.stat().st_mtime)
            try:
                created = datetime.fromtimestamp(seconds, UTC)
            except (ValueError, OverflowError, OSError) as error:
                raise ProfilerError(
                    f"{path} does not say when it was made, and the file's time ({seconds}) is none: touch it"
                ) from error
        return Run(
            run_id=bundle.imported_run_id(created, family, version, read.sha256),
            kind=IMPORT,
            created=created,
            provenance={"created_from": "file time" if read.session.created is None else "session"},
            results=(Result(family, version, self.workload or None, captures=(Capture(read.sha256),)),),
            reports=(bundle.imported_report_file(path.name, read.sha256, read.size_bytes),),
        )

    def _note_imported(self, path: Path, run: Run, rows: RunRows) -> None:
        self.waiting.append(rows)
        families = dict.fromkeys(result.family for result in run.results)
        versions = dict.fromkeys(result.version for result in run.results)
        self.imported.append(
            Imported(
                _shown(path),
                run.run_id,
                brief_list(list(families)),
                brief_list(list(versions)),
                rows.run["launches"],
            )
        )
        self._tell(path)

    def _note_already(self, path: Path, run_id: str, *, given: bool = False) -> None:
        """With `given`: labels were given to this file, and are not what the run that holds it is called."""
        wanted = self._wanted(run_id) if given else ()
        hidden = self.decided.labels.get(run_id, Labels()).hidden
        self.already.append(AlreadyImported(_shown(path), run_id, hidden, wanted))
        self._tell(path)

    def _wanted(self, run_id: str) -> tuple[tuple[str, str], ...]:
        asked = {"family": self.family, "version": self.version, "workload": self.workload}
        if not any(text is not None for text in asked.values()):
            return ()
        labels = decisions.effective_labels(bundle.load_run(self.where, run_id), self.decided.labels)
        return tuple(
            (kind, text)
            for kind, text in asked.items()
            if text is not None and text != (getattr(labels, kind) or "")
        )

    def _refuse(self, path: Path, message: str) -> None:
        self.refused.append((_shown(path), message.encode(errors="replace").decode()))
        self._tell(path)

    def _reason(self, path: Path, error: Exception) -> str:
        if isinstance(error, ProfilerError):
            return str(error) if str(path) in str(error) else f"{path}: {error}"
        if isinstance(error, OSError):
            named = f" ({error.filename})" if error.filename else ""
            return f"{path}: cannot be taken into {self.where.url}: {error.strerror or error}{named}"
        return f"{path}: cannot be imported ({brief_error(error)})"

    def _tell(self, path: Path) -> None:
        if self.progress is not None:
            done = len(self.imported) + len(self.already) + len(self.refused)
            self.progress(done, self.found.total, path.name)
