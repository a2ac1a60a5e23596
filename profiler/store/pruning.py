"""`prune`: the reports of old runs are dropped, and all that an import read from them stays."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from profiler.bundles import backup, bundle, decisions, location
from profiler.bundles.dropped import (
    DROPPED_FILE,
    DroppedReports,
    dump_dropped,
    load_dropped,
    values_file,
    values_path,
)
from profiler.bundles.location import PARTIAL_FILE, LocalRoot, Root
from profiler.bundles.run import Run
from profiler.errors import BadBundle, ProfilerError
from profiler.store import cache_room, report_cache, report_values, run_rows
from profiler.store.readable_index import open_store
from profiler.store.sync import Progress


@dataclass(frozen=True)
class PrunedRun:
    """A run whose reports can be dropped, or were."""

    run_id: str
    family: str | None
    report_bytes: int
    values_bytes: int | None = None  # of the numbers that stay; None: not dropped yet


@dataclass(frozen=True)
class PruneSummary:
    """What a pruning did, or would do."""

    runs: tuple[PrunedRun, ...]
    refused: tuple[tuple[str, str], ...] = ()  # run id, message: its reports stay


def plan_pruning(
    older_days: float, *, family: str | None = None, data: str | None = None, now: datetime | None = None
) -> PruneSummary:
    """The runs made more than so many days ago that have reports from ncu, oldest first; CSVs stay."""
    root = location.open_root(data)
    until = (now or datetime.now(UTC)) - timedelta(days=older_days)
    # Where the index cannot be written, as on the full disk that this is to free, it is asked as it is.
    with contextlib.closing(open_store(data)) as store:
        families = {run.run_id: run.family for run in store.runs(family, hidden=True) if run.created < until}
        if family is not None and family not in store.families():
            raise ProfilerError(f"no family {family} in the index: `profiler list versions` lists all")
    runs, refused = [], []
    for run_id in sorted(families):
        try:
            run = bundle.load_run(root, run_id)
            if any(not report.path.lower().endswith(".csv") for report in run.reports):
                dropped = load_dropped(root, run)
                size_bytes = sum(report.size_bytes for report in run.reports)
                if dropped is None:
                    runs.append(PrunedRun(run_id, families[run_id], size_bytes))
                else:
                    _remove_reports(root, run)  # what a killed pruning left
        except BadBundle as error:
            refused.append((run_id, str(error)))
    return PruneSummary(tuple(runs), tuple(refused))


def prune_runs(
    older_days: float,
    *,
    family: str | None = None,
    why: str = "",
    who: str | None = None,
    data: str | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> PruneSummary:
    """Drop the reports of the runs that plan_pruning names, each after its numbers could be read again.

    A run whose report is damaged keeps it. Killed, it is finished by another one. On a full disk the cache
    gives back the room for the numbers.
    """
    location.check_writable(root := location.open_root(data))
    plan = plan_pruning(older_days, family=family, data=data, now=now)
    pruned, refused = [], list(plan.refused)
    for number, planned in enumerate(plan.runs, 1):
        try:
            values_bytes = _prune(root, planned.run_id, why, decisions.process_user() if who is None else who)
            pruned.append(PrunedRun(planned.run_id, planned.family, planned.report_bytes, values_bytes))
        except BadBundle as error:
            refused.append((planned.run_id, str(error)))
        except OSError as error:
            raise location.data_unusable(root, error) from error
        if progress is not None:
            progress(number, len(plan.runs), planned.run_id)
    return PruneSummary(tuple(pruned), tuple(refused))


def _prune(root: Root, run_id: str, why: str, who: str) -> int:
    """Drop the reports of a run; the size of the numbers that stay. Raises BadBundle."""
    run = bundle.load_run(root, run_id)
    for report in run.reports:
        if (message := backup.damage(root, run_id, report)) is not None:
            raise BadBundle(f"run {run_id} keeps its reports: {message}")
    ((_, reports),) = report_values.load_reports(root, [run])
    if isinstance(reports, ProfilerError):
        raise BadBundle(f"run {run_id} keeps its reports: {reports}") from reports
    folder = f"{bundle.RUNS_FOLDER}/{run_id}"
    contents = {file.sha256: report_cache.pack_report(reports[file.sha256]) for file in run.reports}
    read_again = {digest: report_cache.unpack_report(content) for digest, content in contents.items()}
    known = {digest: report for digest, report in read_again.items() if report is not None}
    # The index must not notice: its rows are the same, to the last bit.
    if repr(run_rows.make_rows((run, known, None))) != repr(run_rows.make_rows((run, reports, None))):
        raise BadBundle(f"run {run_id} keeps its reports: their numbers alone would give different answers")
    _remove_partial_files(root, folder)

    def write(path: str, content: bytes) -> None:
        cache_room.with_room(root, contents, lambda: root.write(f"{folder}/{path}", content))

    values = []
    for file in run.reports:
        content = contents[file.sha256]
        write(values_path(file), content)
        values.append(values_file(file, sha256(content).hexdigest(), len(content)))
    bundle.flush_folder(root, f"{folder}/{values_path(run.reports[0]).rpartition('/')[0]}")
    dropped = DroppedReports(datetime.now(UTC), who, why, tuple(values))
    write(DROPPED_FILE, dump_dropped(dropped))  # from here on they count as dropped
    bundle.flush_folder(root, folder)
    _remove_reports(root, run)
    report_values.forget_reports(root, [file.sha256 for file in run.reports])
    return sum(file.size_bytes for file in values)


def _remove_partial_files(root: Root, folder: str) -> None:
    """Remove what a killed pruning had begun to write into a bundle's folder."""
    if isinstance(root, LocalRoot):
        for path in (root.folder / folder).rglob(f"{PARTIAL_FILE}*"):
            path.unlink(missing_ok=True)


def _remove_reports(root: Root, run: Run) -> None:
    for report in run.reports:
        with contextlib.suppress(FileNotFoundError):
            root.remove(f"{bundle.RUNS_FOLDER}/{run.run_id}/{report.path}")
