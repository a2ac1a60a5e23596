"""What becomes of the paths given to an import: found, read, sealed and indexed, each whole or refused."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profiler import bundle, bundle_zip, decisions, extraction, report
from profiler.errors import BadBundle, ProfilerError, UnreadableReport
from profiler.extraction import Ahead
from profiler.location import Root
from profiler.run import IMPORT, Capture, Labels, Result, Run
from profiler.run_file import RUN_FILE
from profiler.sync import Progress
from profiler.values import Report, spread

if TYPE_CHECKING:
    from profiler.store import Store

_AT_ONCE = 50  # runs that go into the index in one transaction


@dataclass(frozen=True)
class Imported:
    """A report or bundle that is new here."""

    path: str
    run_id: str
    family: str
    version: str
    launches: int


@dataclass(frozen=True)
class Already:
    """A report or bundle that was here before."""

    path: str
    run_id: str  # which holds it
    hidden: bool = False  # it was forgotten: `profiler forget --undo` brings it back


@dataclass(frozen=True)
class ImportSummary:
    """What became of the paths given to an import."""

    imported: tuple[Imported, ...] = ()
    already: tuple[Already, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # path, message
    skipped: int = 0  # files met in folders that are neither report nor bundle


@dataclass
class Intake:
    """What was found. Files that are neither report nor bundle are refused if named, and counted if met."""

    reports: list[Path] = field(default_factory=list)
    bundles: list[Path] = field(default_factory=list)  # folders and zips
    refused: list[tuple[str, str]] = field(default_factory=list)  # path, message
    skipped: int = 0

    @property
    def total(self) -> int:
        """How many files and bundles there are to import or refuse."""
        return len(self.reports) + len(self.bundles) + len(self.refused)


def find(paths: Iterable[Path]) -> Intake:
    """Look at every path; folders are searched in the order of their names, hidden ones left out."""
    found = Intake()
    for path in dict.fromkeys(paths):
        if path.is_dir():
            _search(path, found)
        elif not path.exists():
            found.refused.append((str(path), f"{path}: no such file or folder"))
        elif not _take(path, found):
            message = f"{path}: neither a report (.ncu-rep, or CSV from ncu) nor a bundle (folder or zip)"
            found.refused.append((str(path), message))
    found.reports = list(dict.fromkeys(found.reports))
    found.bundles = list(dict.fromkeys(found.bundles))
    return found


def labels_of(path: Path, family: str | None, version: str | None) -> tuple[str, str]:
    """Family and version of a report: what was given, else its folder's name and its own without suffix."""
    return family or path.absolute().parent.name or "imported", version or path.stem


def check_label(kind: str, text: str | None) -> str | None:
    """A family, version or workload as it may be called; ProfilerError for what nobody could type again."""
    if text is None:
        return None
    text = text.strip()
    if any(not character.isprintable() for character in text) or len(text) > 200:
        raise ProfilerError(f"a {kind} has at most 200 characters, all printable, not {text[:40]!r}…")
    if kind != "workload" and not text:
        raise ProfilerError(f"a {kind} needs a name: leave --{kind} out, or give it one")
    if kind == "family" and "/" in text:
        raise ProfilerError(f"{text}: a family's name holds no '/', which stands between family and version")
    return text


def _search(folder: Path, found: Intake) -> None:
    for place, folders, files in os.walk(folder):
        if RUN_FILE in files:
            found.bundles.append(Path(place))
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not _take(Path(place, name), found):
                found.skipped += 1


def _take(path: Path, found: Intake) -> bool:
    if report.is_report(path):
        found.reports.append(path)
    elif path.suffix.lower() == ".zip" and bundle_zip.is_packed(path):
        found.bundles.append(path)
    else:
        return False
    return True


class Importer:
    """One import while it runs."""

    store: Store

    def __init__(
        self, where: Root, labels: Sequence[str | None], found: Intake, progress: Progress | None
    ) -> None:
        self.where = where
        self.family, self.version, self.workload = labels
        self.found = found
        self.progress = progress
        self.decided = decisions.labels(decisions.load(where))
        self.imported: list[Imported] = []
        self.already: list[Already] = []
        self.refused: list[tuple[str, str]] = []
        self.waiting: list[tuple[Run, extraction.Reports, Labels | None]] = []
        self.new: dict[str, list[Path]] = {}  # sha256 -> the files with this content
        for path, message in found.refused:
            self._refuse(Path(path), message)
        self._sort_out()

    def take_reports(self, reading: Ahead[Report | UnreadableReport]) -> None:
        """Seal a run for every report that was read, and index the runs whenever the reader is not ahead."""
        held = self.store.holding(self.new)
        for paths, read in zip(self.new.values(), reading, strict=True):
            try:
                if isinstance(read, UnreadableReport):
                    raise read
                self._take_report(paths, read, held.get(read.sha256))
            except (ProfilerError, OSError) as error:
                for path in paths:
                    self._refuse(path, str(error))
            if not reading.waiting or len(self.waiting) >= _AT_ONCE:
                self.flush()

    def take_bundle(self, path: Path) -> None:
        """Seal a run from another place, after all its reports were read."""
        try:
            with tempfile.TemporaryDirectory(prefix="profiler-") as scratch:
                folder = path
                if not path.is_dir():
                    bundle_zip.unpack(path, folder := Path(scratch))
                run = bundle.load_folder(folder)
                self._take_run(path, run, {file.path: folder / file.path for file in run.contents})
        except (ProfilerError, OSError) as error:
            self._refuse(path, str(error))

    def flush(self) -> None:
        """Index the runs that were sealed."""
        if self.waiting:
            bundle.settle(self.where)
            self.store.add_many(self.waiting)
            self.waiting = []

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
                self._refuse(path, f"{path}: cannot be read ({error.strerror})")
                continue
            holder = bundle.holder(self.where, there, digest)
            if holder is None:
                self.new.setdefault(digest, []).append(path)
            else:
                self._note_already(path, holder)

    def _take_report(self, paths: Sequence[Path], read: Report, holder: str | None) -> None:
        run = self._new_run(paths[0], read)
        if holder is None:
            holder = bundle.seal_import(self.where, run, {run.reports[0].path: paths[0]})
        if holder is None:
            extraction.keep(self.where, read)
            self._note_imported(paths[0], run, {read.sha256: read})
            holder, paths = run.run_id, paths[1:]
        for path in paths:
            self._note_already(path, holder)

    def _take_run(self, path: Path, run: Run, sources: dict[str, Path]) -> None:
        files = [sources[file.path] for file in run.reports]
        reports: extraction.Reports = {}
        for file, read in zip(run.reports, report.read(files) if files else (), strict=True):
            if isinstance(read, UnreadableReport):
                raise read
            if read.sha256 != file.sha256:
                raise BadBundle(f"{path}: {file.path} is not the report that its {RUN_FILE} names")
            reports[file.sha256] = read
        held = self.store.holding(reports) if run.kind == IMPORT else {}
        holder = next(iter(held.values()), None) or bundle.seal_import(self.where, run, sources)
        if holder is not None:
            self._note_already(path, holder)
            return
        for read in reports.values():
            extraction.keep(self.where, read)
        self._note_imported(path, run, reports)

    def _new_run(self, path: Path, read: Report) -> Run:
        family, version = labels_of(path, self.family, self.version)
        created = read.session.created
        if created is None:
            created = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
        return Run(
            run_id=bundle.run_id(created, family, version, read.sha256),
            kind=IMPORT,
            created=created,
            provenance={"created_from": "file time" if read.session.created is None else "session"},
            results=(Result(family, version, self.workload or None, captures=(Capture(read.sha256),)),),
            reports=(bundle.report_entry(path.name, read.sha256, read.size_bytes),),
        )

    def _note_imported(self, path: Path, run: Run, reports: extraction.Reports) -> None:
        self.waiting.append((run, reports, self.decided.get(run.run_id)))
        launches = sum(len(read.launches) for read in reports.values())
        families = dict.fromkeys(result.family for result in run.results)
        versions = dict.fromkeys(result.version for result in run.results)
        self.imported.append(
            Imported(str(path), run.run_id, spread(list(families)), spread(list(versions)), launches)
        )
        self._tell(path)

    def _note_already(self, path: Path, run_id: str) -> None:
        self.already.append(Already(str(path), run_id, self.decided.get(run_id, Labels()).hidden))
        self._tell(path)

    def _refuse(self, path: Path, message: str) -> None:
        self.refused.append((str(path), message))
        self._tell(path)

    def _tell(self, path: Path) -> None:
        if self.progress is not None:
            done = len(self.imported) + len(self.already) + len(self.refused)
            self.progress(done, self.found.total, path.name)
