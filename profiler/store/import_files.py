"""`import`: files that are read are sealed as runs and indexed, each of them whole or refused."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle, decisions, location, zip_file
from profiler.bundles.location import Root
from profiler.bundles.run import (
    COLLECT,
    FAMILY_GIVEN,
    FOLDER,
    IMPORT,
    Capture,
    Facts,
    Json,
    Labels,
    Result,
    Run,
)
from profiler.bundles.run_json import RUN_FILE, brief_error
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BadBundle, ProfilerError, UnreadableReport
from profiler.evidence.launch import Report
from profiler.evidence.naming import brief_list
from profiler.evidence.one_measurement import agreeing_digits, key_launch
from profiler.evidence.values import NCU_DURATION
from profiler.reports.read import read_reports
from profiler.store import report_values, run_decisions, sync
from profiler.store.find_files import FoundFiles
from profiler.store.folder_families import family_labels, folder_of
from profiler.store.git_files import CommittedFile
from profiler.store.label_forms import LabelRules, ReportPath, label_of_name, report_stem
from profiler.store.new_reports import NewReports
from profiler.store.packing import PACKED, Packed
from profiler.store.prefetch import Prefetch
from profiler.store.rows import IndexNotWritable, WriteConflict
from profiler.store.sync import Progress
from profiler.store.timed_runs import noise_runs, part_digest, runs_of_file, timed_runs, timings_digest
from profiler.timings.columns import TableColumns
from profiler.timings.read import read_timings

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.run_rows import RunRows

# What follows the name of a report in the names of its exports.
_FORM_WORDS = re.compile(
    r"(?:[._-](?:ncu-rep|nsight-cuprof-report|csv|txt|raw|details?|instances?|values?|metrics?|base|scaled))+$"
)
SEAL_THREADS = 4
_AT_ONCE = 50  # runs that go into the index in one transaction
_PREPARE_EVERY = 1000  # runs: series are prepared several times during a long import


@dataclass(frozen=True)
class Imported:
    """A report or bundle that is new here."""

    path: str
    run_id: str
    family: str
    version: str
    launches: int
    kernels: int = 0  # of a file of machine code
    calls: int = 0  # timed calls, of a file of times


@dataclass(frozen=True)
class AlreadyImported:
    """A report or bundle that was here before."""

    path: str
    run_id: str  # which holds it
    hidden: bool = False  # the run was forgotten: `profiler data forget --undo` brings it back
    other_labels: tuple[tuple[str, str], ...] = ()  # (kind, label) that were given and are not the run's
    from_other_file: bool = False  # which holds the same launches: an export, or its report


@dataclass(frozen=True)
class ImportSummary:
    """What an import did with each file."""

    imported: tuple[Imported, ...] = ()
    already: tuple[AlreadyImported, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # path, message
    skipped: int = 0  # files in folders that are neither report nor bundle
    relabelled: tuple[tuple[str, str, str], ...] = ()  # run id, and the family and version that it has now
    warnings: tuple[tuple[str, str], ...] = ()  # path, message: imported, and perhaps not as it was written
    data: str = ""  # the folder or URL that took them


def version_of(report: Path) -> str:
    """The version of a report: its file's stem. `profile.out.ncu-rep` stays so beside `profile.ncu-rep`."""

    def lies_beside(stem: str) -> bool:
        return any((report.parent / f"{stem}{suffix}").exists() for suffix in {report.suffix, ".ncu-rep"})

    return label_of_name(report_stem(report.name, lies_beside), "unnamed")


def _file_time(path: Path) -> datetime:
    seconds = int(path.stat().st_mtime)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ProfilerError(
            f"{path} does not say when it was made, and the file's time ({seconds}) is none: touch it"
        ) from error


def _export_key(path: Path) -> tuple[Path, str]:
    """Folder and name of a file without the words for its form: a report and its exports have one."""
    return path.parent, _FORM_WORDS.sub("", path.name)


def _printable(path: Path | str) -> str:
    """A path as text that can be printed and stored: on Linux a path is bytes, which may not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")


@dataclass(frozen=True)
class _Sealing:
    """A report whose run is being sealed by a thread."""

    paths: Sequence[Path]  # its copies
    report: Report
    run: Run
    rows: RunRows
    done: Future[str | None]  # as of bundle.seal_import


class Importer:
    """A running import: what happened to each path so far, and the sealed runs that are not indexed yet."""

    store: Store
    seal_threads: ThreadPoolExecutor  # they wait for the disk, each for one run

    def __init__(
        self,
        root: Root,
        labels: Mapping[str, LabelRules],
        files: FoundFiles,
        progress: Progress | None,
        *,
        keep_folder: bool = True,
        reader_memory: int | None = None,
        committed: Mapping[Path, CommittedFile] | None = None,
    ) -> None:
        self.root = root
        self.labels = labels  # what was given for family, version and workload
        self.files = files
        self.progress = progress
        self.keep_folder = keep_folder
        self.reader_memory = reader_memory
        self.committed = committed or {}  # of files that were written from the history of a repository
        self.folders: dict[Path, str] = {}  # as folder_of gives them
        self.families: dict[str, str] = {}  # by folder, of the reports that are new
        self.known: dict[str, Path] = {}  # by run id, of the reports that were there before
        self.relabelled: list[tuple[str, str, str]] = []
        self.decided = decisions.load_labels(root)
        self.imported: list[Imported] = []
        self.already: list[AlreadyImported] = []
        self.refused: list[tuple[str, str]] = []
        self.warnings: list[tuple[str, str]] = []
        self.sealing: deque[_Sealing] = deque()
        self.sealed: list[RunRows] = []  # not indexed yet
        # Of the launches of these, by kernel: ns, and when their report says that it was made.
        self.unindexed: dict[str, list[tuple[float, datetime | None]]] = {}
        self.exported: dict[tuple[Path, str], tuple[str, Report]] = {}  # the newest run, by _export_key
        self.name_counts: Counter[tuple[Path, str]] = Counter()  # of new files, by _export_key
        self.unprepared = 0  # runs indexed since series were prepared
        self.timed_runs: dict[str, str] | None = None  # see _runs_of_times, once asked for
        self.timed_counts: dict[str, int] = {}  # how many runs a file of times became, by its digest
        for path, message in files.refused:
            self._refuse(Path(path), message)

    def note_known(self, new_reports: NewReports) -> None:
        """Note what became of the report files that are not read: in a run already, or not to be read."""
        for path in self.files.reports:
            if path in new_reports.refused:
                self._refuse(path, new_reports.refused[path])
            elif (run_id := new_reports.known.get(path)) is not None:
                self.known.setdefault(run_id, path)
                self._note_already(path, run_id, self._other_labels(path, run_id))
        self.name_counts.update(_export_key(paths[0]) for paths in new_reports.paths.values())

    def import_reports(
        self, new_reports: Mapping[str, Sequence[Path]], reports: Prefetch[Report | UnreadableReport]
    ) -> None:
        """Seal a run for every report as it is read; index the runs while the next report is being read."""
        self.families = self._folder_families(paths[0] for paths in new_reports.values())
        # A report that no import holds may still be part of a collected run.
        indexed = self.store.runs_with_reports(list(new_reports))
        for paths, report in zip(new_reports.values(), reports, strict=True):
            try:
                if isinstance(report, UnreadableReport):
                    raise report
                self._import_report(paths, report, indexed.get(report.sha256))
            except Exception as error:  # whatever is wrong with this file, the others are imported
                self._refuse_all(paths, error)
            if len(self.sealed) + len(self.sealing) >= _AT_ONCE:
                self.index_sealed()
            elif not reports.has_next:
                self.index_sealed(wait=False)
        self._settle()

    def import_bundle(self, path: Path) -> None:
        """Seal the run of a bundle from another place, after all its reports could be read."""
        try:
            with scratch_folder() as scratch:
                folder = path if path.is_dir() else scratch
                run = bundle.load_run_folder(path) if path.is_dir() else zip_file.unpack(path, folder)
                bundle.check_arriving(run, str(path))
                bundle.refuse_special_files(folder, run)
                self._import_run(path, run, {file.path: folder / file.path for file in run.contents})
        except Exception as error:  # whatever is wrong with this bundle, the others are imported
            self._refuse(path, self._refusal_message(path, error))
        if len(self.sealed) >= _AT_ONCE:
            self.index_sealed()

    def import_code(self, path: Path, read_code: Callable[[Path], tuple[Facts, ...]] | None) -> None:
        """Seal a run with the static facts of a file of machine code."""
        try:
            if read_code is None:
                raise ProfilerError("a file of machine code, of which nothing is stored here")
            given = self._given_labels(path)
            family, version = given["family"] or label_of_name(path.stem, "imported"), given["version"]
            if version is None:
                raise ProfilerError(f"{path} is machine code: say which build it is with --version")
            digest, _ = bundle.hash_file(path)
            created = _file_time(path)
            result = Result(family, version, facts=read_code(path))
            run = Run(
                run_id=bundle.imported_run_id(created, family, version, digest),
                kind=COLLECT,
                created=created,
                provenance={"created_from": "file time", "library": path.name, "library_sha256": digest},
                results=(result,),
            )
            self._import_run(path, run, {})
        except Exception as error:  # whatever is wrong with this file, the others are imported
            self._refuse(path, self._refusal_message(path, error))

    def import_timings(self, path: Path, columns: TableColumns | None, gpu: str | None) -> None:
        """Seal the runs in a file of times that another tool wrote."""
        try:
            digest, _ = bundle.hash_file(path)
            if (run_id := self._run_of_file(digest)) is not None:
                self._note_already(path, run_id)
                return
            self._seal_timed(path, self._timed_runs(path, digest, columns, gpu, version_of(path)))
        except Exception as error:  # whatever is wrong with this file, the others are imported
            self._refuse(path, self._refusal_message(path, error))
        if len(self.sealed) >= _AT_ONCE:
            self.index_sealed()

    def import_noise(self, columns: TableColumns | None, gpu: str | None) -> None:
        """Seal the files of times as sessions of one unchanged build, which show how far such lie apart."""
        runs: list[Run] = []
        for path in self.files.timings:
            try:
                digest, _ = bundle.hash_file(path)
                stem = version_of(self.files.timings[0])
                runs += self._timed_runs(path, digest, columns, gpu, stem)
            except Exception as error:  # whatever is wrong with this file, the others are sessions too
                self._refuse(path, self._refusal_message(path, error))
        if runs:
            self._seal_timed(self.files.timings[0], noise_runs(runs))

    def _timed_runs(
        self, path: Path, digest: str, columns: TableColumns | None, gpu: str | None, stem: str
    ) -> list[Run]:
        given = self._given_labels(path)
        of_commit = self._of_commit(path)
        files = read_timings(path, columns)
        timed = list(timed_runs(files, digest, stem, _file_time(path), given, gpu, of_commit))
        name = self._named(path)
        self.warnings += [(name, f"{name}: {words}") for _, warnings in timed for words in warnings]
        return [run for run, _ in timed]

    def _seal_timed(self, path: Path, runs: Sequence[Run]) -> None:
        """Seal runs of times, unless they are here: a file is noted once."""
        held = [self._runs_of_times().get(timings_digest(run.provenance) or "") for run in runs]
        for run, run_id in zip(runs, held, strict=True):
            if run_id is None:
                self._import_run(path, run, {})
        if runs and all(held):
            self._note_already(path, str(held[0]))

    def _runs_of_times(self) -> dict[str, str]:
        """The runs that were made of files of times before this import, by the digests of these."""
        if self.timed_runs is None:
            provenances = self.store.provenances(bundle.list_runs(self.root))
            self.timed_runs = {}
            for run_id, provenance in provenances.items():
                if digest := timings_digest(provenance):
                    self.timed_runs[digest] = run_id
                    self.timed_counts[digest] = runs_of_file(provenance)
        return self.timed_runs

    def _run_of_file(self, digest: str) -> str | None:
        """The first run of a file of times of which all are here; None else: then it has to be read."""
        known = self._runs_of_times()
        parts = (part_digest(digest, number) for number in range(self.timed_counts.get(digest, 1)))
        return known[digest] if all(part in known for part in parts) else None

    def index_sealed(self, *, wait: bool = True) -> None:
        """Put the runs sealed since the last call into the index, in one transaction.

        wait: also those that are being sealed, once they are.
        """
        self._settle(wait=wait)
        if self.sealed:
            try:
                self._index_sealed()
            except IndexNotWritable as error:
                run_ids = [rows.run["run_id"] for rows in self.sealed]
                what = f"run {run_ids[0]} is" if len(run_ids) == 1 else f"{len(run_ids)} runs are"
                raise IndexNotWritable(
                    f"{what} sealed, so nothing is lost, but not in the index: `profiler data index` adds "
                    f"what it lacks once it can be written: {error}"
                ) from error
            self.unprepared += len(self.sealed)
            self.sealed = []
            self.unindexed = {}
            for sealing in self.sealing:
                self._note_launches(sealing.report)
        if self.unprepared >= _PREPARE_EVERY:  # otherwise a page opened meanwhile would read all payloads
            self.store.prepare_series(sync.prepared_metrics())
            self.unprepared = 0

    def _index_sealed(self) -> None:
        try:
            bundle.flush_runs(self.root)
        except OSError as error:
            raise location.data_unusable(self.root, error) from error
        try:
            self.store.add_many(self.sealed, decided=self.decided)
        except WriteConflict:
            # These rows follow older decisions: the sync makes them again, from the sealed bundles.
            sync.sync_store(self.root, self.store)
            self.decided = decisions.load_labels(self.root)

    def relabel_known(self) -> None:
        """Give the reports that were there before the labels that this import would give them."""
        changes = {}
        runs = {
            run_id: run for run_id in self.known if (run := self.store.run(run_id)) and run.kind == IMPORT
        }
        families = self._folder_families(self.known[run_id] for run_id in runs)
        for run_id, run in runs.items():
            path = self.known[run_id]
            labels, folder = self._given_labels(path), self._folder_of(path)
            decided = self.decided.labels.get(run_id, Labels())
            # What somebody named stays, and a copy elsewhere says nothing about where the report came from.
            if run.provenance.get(FOLDER) in (None, folder):
                if labels["family"] is None and not (decided.family or run.provenance.get(FAMILY_GIVEN)):
                    labels["family"] = label_of_name(families[folder], "imported")
                if labels["version"] is None and not decided.version:
                    labels["version"] = version_of(path)
            current = {"family": run.family, "version": run.version, "workload": run.workload or ""}
            values = {k: text for k, text in labels.items() if text is not None and text != current[k]}
            if values:
                changes[run_id] = values
        labels_now = run_decisions.relabel_runs(self.root, self.store, changes)
        self.relabelled = [
            (run_id, labels.family or "", labels.version or "") for run_id, labels in labels_now.items()
        ]
        self.already = [replace(item, other_labels=()) for item in self.already]

    def summary(self) -> ImportSummary:
        """What happened to all files, once the import is done."""
        return ImportSummary(
            tuple(self.imported),
            tuple(self.already),
            tuple(self.refused),
            self.files.skipped,
            tuple(self.relabelled),
            tuple(self.warnings),
            self.root.url,
        )

    def _import_report(self, paths: Sequence[Path], report: Report, run_id: str | None) -> None:
        """Have a report sealed as a run of its own, unless the run `run_id` holds it; `paths`: its copies."""
        run = self._new_run(paths[0], report)
        from_other_file = False
        if run_id is None:
            run_id = self._run_of_exports(paths[0], report) or self._run_of_measurement(report)
            from_other_file = run_id is not None
        if run_id is not None:
            self._note_copies(paths, run_id, from_other_file=from_other_file)
            return
        rows = self.store.make_rows(run, {report.sha256: report}, self.decided.labels.get(run.run_id))
        done = self.seal_threads.submit(bundle.seal_import, self.root, run, {run.reports[0].path: paths[0]})
        self.sealing.append(_Sealing(paths, report, run, rows, done))
        self._note_launches(report)

    def _settle(self, *, wait: bool = True) -> None:
        """Note what became of the runs that were being sealed, in the order of the reports.

        wait: until all are sealed, instead of taking those that come before the first that is not.
        """
        while self.sealing and (wait or self.sealing[0].done.done()):
            sealing = self.sealing.popleft()
            try:
                self._note_sealed(sealing, sealing.done.result())
            except Exception as error:
                self._refuse_all(sealing.paths, error)

    def _note_sealed(self, sealing: _Sealing, run_id: str | None) -> None:
        """Note that a run was sealed, or that the run `run_id` was found to hold its report."""
        paths, report, run = sealing.paths, sealing.report, sealing.run
        if run_id is None:
            # Of a report of its own a run has each launch once, in their order.
            packed = [Packed(*(row[part] for part in PACKED)) for row in sealing.rows.payloads]
            report_values.cache_report(self.root, report, packed)
            self._note_imported(paths[0], run, sealing.rows)
            if self.name_counts[_export_key(paths[0])] > 1:
                self.exported[_export_key(paths[0])] = run.run_id, report
            self._warn(paths[0], report)
            run_id, paths = run.run_id, paths[1:]
        self._note_copies(paths, run_id)

    def _note_copies(self, paths: Sequence[Path], run_id: str, *, from_other_file: bool = False) -> None:
        for path in paths:
            labels = self._other_labels(path, run_id)
            self._note_already(path, run_id, labels, from_other_file=from_other_file)

    def _import_run(self, path: Path, run: Run, sources: Mapping[str, Path]) -> None:
        """Seal a bundle's run, unless it is here; `sources` has the local file of each path inside it."""
        files = [sources[file.path] for file in run.reports]
        reports: report_values.ReportsBySha256 = {}
        read = read_reports(files, memory_bytes=self.reader_memory) if files else ()
        for file, report in zip(run.reports, read, strict=True):
            if isinstance(report, UnreadableReport):
                raise report
            if report.sha256 != file.sha256:
                raise BadBundle(f"{path}: {file.path} is not the report that its {RUN_FILE} names")
            reports[file.sha256] = report
        # Before it is sealed: a run that the index cannot take is refused whole.
        rows = self.store.make_rows(run, reports, self.decided.labels.get(run.run_id))
        indexed = self.store.runs_with_reports(reports) if run.kind == IMPORT else {}
        held = next(iter(indexed.values()), None)
        if held is None and run.kind == IMPORT and len(reports) == 1:
            held = self._run_of_measurement(next(iter(reports.values())))
        run_id = held or bundle.seal_import(self.root, run, sources)
        if run_id is not None:
            self._note_already(path, run_id)
            return
        for report in reports.values():
            report_values.cache_report(self.root, report)
            self._note_launches(report)
            self._warn(path, report)
        self._note_imported(path, run, rows)

    def _run_of_exports(self, path: Path, report: Report) -> str | None:
        """The run of a file of this import that lies beside it under its name, and contradicts it in nothing.

        So a page of few digits is known by its name: adamw.details.csv beside adamw.ncu-rep.
        """
        if self.name_counts[_export_key(path)] > 1:
            self._settle()  # that file may be sealed right now
        run_id, other = self.exported.get(_export_key(path), ("", None))
        if other is None or len(other.launches) != len(report.launches):
            return None
        pairs = zip(report.launches, other.launches, strict=True)
        return None if any(agreeing_digits(*pair) is None for pair in pairs) else run_id

    def _run_of_measurement(self, report: Report) -> str | None:
        """The run that holds these launches already, from another file; None where there is none."""
        key, made = key_launch(report), report.session.created
        if key and any(
            abs(key[1] - ns) <= 0.01 * ns and (None in (created, made) or created == made)
            for ns, created in self.unindexed.get(key[0], ())
        ):
            self.index_sealed()
        return self.store.run_of_measurement(report)

    def _note_launches(self, report: Report) -> None:
        """Keep what copies of a report would be looked for by until it is in the index."""
        for launch in report.launches:
            if (ns := launch.values.number(NCU_DURATION)) is not None:
                self.unindexed.setdefault(launch.base_name, []).append((ns, report.session.created))

    def _new_run(self, path: Path, report: Report) -> Run:
        """The run that an imported report becomes."""
        folder, given = self._folder_of(path), self._given_labels(path)
        family = given["family"] or label_of_name(self.families[folder], "imported")
        version = given["version"] or version_of(path)
        created = report.session.created
        if created is None:
            created = _file_time(path)
        captures = (Capture(report.sha256),)
        return Run(
            run_id=bundle.imported_run_id(created, family, version, report.sha256),
            kind=IMPORT,
            created=created,
            provenance={
                "created_from": "file time" if report.session.created is None else "session",
                **({FAMILY_GIVEN: True} if given["family"] else {}),
                **({FOLDER: folder} if folder else {}),
                **self._of_commit(path),
            },
            results=(Result(family, version, given["workload"] or None, captures=captures),),
            reports=(bundle.imported_report_file(path.name, report.sha256, report.size_bytes),),
        )

    def _of_commit(self, path: Path) -> dict[str, Json]:
        """What the provenance of a run says of the commit that its file is from."""
        file = self.committed.get(path)
        return {"git_commit": file.commit, "git_path": str(file.path)} if file else {}

    def _named(self, path: Path) -> str:
        """The file as messages name it: of a repository's history by its commit and path there."""
        file = self.committed.get(path)
        return _printable(f"{file.short}:{file.path}" if file else path)

    def _note_imported(self, path: Path, run: Run, rows: RunRows) -> None:
        self.sealed.append(rows)
        families = dict.fromkeys(result.family for result in run.results)
        versions = dict.fromkeys(result.version for result in run.results)
        self.imported.append(
            Imported(
                self._named(path),
                run.run_id,
                brief_list(list(families)),
                brief_list(list(versions)),
                rows.run["launches"],
                sum(len(result.facts) for result in run.results) if not run.reports else 0,
                sum(len(block.ns) for result in run.results for block in result.samples),
            )
        )
        self._report_progress(path)

    def _note_already(
        self,
        path: Path,
        run_id: str,
        other_labels: tuple[tuple[str, str], ...] = (),
        *,
        from_other_file: bool = False,
    ) -> None:
        hidden = self.decided.labels.get(run_id, Labels()).hidden
        self.already.append(AlreadyImported(self._named(path), run_id, hidden, other_labels, from_other_file))
        self._report_progress(path)

    def _folder_of(self, path: Path) -> str:
        """Where a report lies; "" where its folder is only a place of passage."""
        if file := self.committed.get(path):
            return file.folder
        if not self.keep_folder:
            return ""
        if path.parent not in self.folders:
            self.folders[path.parent] = folder_of(path)
        return self.folders[path.parent]

    def _given_labels(self, path: Path) -> dict[str, str | None]:
        """Family, version and workload of a report as they were given; None where nothing fits it."""
        file = self.committed.get(path)
        report_path = ReportPath(version_of(path), self._folder_of(path), file.short if file else "")
        given = {kind: rules.label(report_path) for kind, rules in self.labels.items()}
        if file and given["version"] is None:
            given["version"] = file.short
            if path not in self.files.timings and given["workload"] is None:
                given["workload"] = report_path.stem  # of several reports of a commit
        return given

    def _folder_families(self, reports: Iterable[Path]) -> dict[str, str]:
        """The family, by folder, of the reports for which none was given.

        Of all folders of the import together: a family must not depend on which report is read first.
        """
        folders = []
        for path in reports:
            with contextlib.suppress(ProfilerError):  # said when it is this report's turn
                if self._given_labels(path)["family"] is None:
                    folders.append(self._folder_of(path))
        return family_labels(folders, self.store.import_folders()) if folders else {}

    def _other_labels(self, path: Path, run_id: str) -> tuple[tuple[str, str], ...]:
        """The given labels of a report that differ from those that its run has now."""
        given: dict[str, str] = {}
        with contextlib.suppress(ProfilerError):  # such a label changes no run
            given = {kind: text for kind, text in self._given_labels(path).items() if text is not None}
        if not given:
            return ()
        current = decisions.effective_labels(bundle.load_run(self.root, run_id), self.decided.labels)
        return tuple((kind, text) for kind, text in given.items() if text != (getattr(current, kind) or ""))

    def _warn(self, path: Path, report: Report) -> None:
        """Note what looks as if an imported report had changed since it was written."""
        name = self._named(path)
        self.warnings += [(name, f"{name}: imported, but {doubt}") for doubt in report.warnings]

    def _refuse(self, path: Path, message: str) -> None:
        message = message.replace(str(path), self._named(path))
        self.refused.append((self._named(path), message.encode(errors="replace").decode()))
        self._report_progress(path)

    def _refuse_all(self, paths: Sequence[Path], error: Exception) -> None:
        """Refuse copies of one file, of which the first was read: each is refused under its own name."""
        message = self._refusal_message(paths[0], error)
        reason = message.removeprefix(f"{paths[0]}: ")
        for path in paths:
            self._refuse(path, message if reason == message else f"{path}: {reason}")

    def _refusal_message(self, path: Path, error: Exception) -> str:
        if isinstance(error, ProfilerError):
            return str(error) if str(path) in str(error) else f"{path}: {error}"
        if isinstance(error, OSError):
            named = f" ({error.filename})" if error.filename else ""
            return f"{path}: cannot be taken into {self.root.url}: {error.strerror or error}{named}"
        return f"{path}: cannot be imported ({brief_error(error)})"

    def _report_progress(self, path: Path) -> None:
        if self.progress is not None:
            done = len(self.imported) + len(self.already) + len(self.refused)
            self.progress(done, self.files.total, path.name)
