"""Sealing: the jobs that have ended become one run, with as many reports as fit into its file."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import COLLECT, ReportFile, Run
from profiler.bundles.run_json import dump_run
from profiler.collect import bundle_files
from profiler.collect.cell_results import results_of
from profiler.collect.collection import Collection
from profiler.collect.outcomes import Outcomes, ReportEntry
from profiler.collect.provenance import make_provenance
from profiler.collect.staging import REPORTS, Staging

ZIP_BYTES = 12 << 20  # of the file that `--out` writes
_ENTRY_BYTES = 400  # at most, of a zip for each file beside its content


def seal(root: Root, collection: Collection, *, zip_bytes: int | None = None) -> str:
    """Make the run of what has ended, seal it, and remove the staging folder. Returns the run's id.

    zip_bytes: reports, full ones first and of those the last, are left out until the bundle's zip fits.
    Raises BadBundle where a part of the run lies in its place.
    """
    staging = collection.staging
    bundle.refuse_partial_import(root, staging.run_id)
    if staging.run_id not in bundle.list_runs(root):
        run, sources = make_run(collection, zip_bytes)
        if isinstance(root, LocalRoot):
            (root.folder / bundle.STAGING_FOLDER).mkdir(parents=True, exist_ok=True)
        bundle.seal(root, run, sources)
    staging.remove()
    return staging.run_id


def make_run(collection: Collection, zip_bytes: int | None = None) -> tuple[Run, dict[str, Path]]:
    """The run, and for every file of it the path of its content."""
    collection.staging.forget_damaged()
    outcomes = collection.staging.outcomes()
    entries = [entry for outcome in outcomes.captures.values() for entry in outcome.get("reports", ())]
    entries.sort(key=lambda entry: entry["tier"] != "lean")
    dropped: list[str] = []
    while True:
        run, sources = _run_with(collection, outcomes, entries, dropped)
        if zip_bytes is None or not entries or _zipped_bytes(run, sources) <= zip_bytes:
            return run, sources
        dropped.append(_report_name(entries.pop()))


def _run_with(
    collection: Collection, outcomes: Outcomes, entries: Sequence[ReportEntry], dropped: Sequence[str]
) -> tuple[Run, dict[str, Path]]:
    """The run with these reports, and the path of every file's content."""
    staging = collection.staging
    reports = _report_files(staging, entries)
    sources = {report.path: path for report, path in reports.values()} | staging.sources
    run = Run(
        run_id=staging.run_id,
        kind=COLLECT,
        created=collection.inputs.created,
        provenance=make_provenance(collection, outcomes, dropped),
        results=tuple(results_of(collection, outcomes, reports)),
        reports=tuple(report for report, _ in reports.values()),
        files=tuple(
            bundle_files.attachment(name, path.read_bytes()) for name, path in staging.sources.items()
        ),
    )
    return run, sources


def _report_files(staging: Staging, entries: Sequence[ReportEntry]) -> dict[str, tuple[ReportFile, Path]]:
    """The reports to keep, by sha256, each with the path of its content."""
    return {
        entry["sha256"]: (
            bundle.imported_report_file(_report_name(entry), entry["sha256"], entry["size"]),
            staging.folder / REPORTS / entry["path"],
        )
        for entry in entries
    }


def _report_name(entry: ReportEntry) -> str:
    """The report's name in the bundle; the digits stand before what may be cut from a long name."""
    versions = entry["versions"]
    who = versions[0] if len(versions) == 1 else f"{len(versions)}-versions"
    name = f"{entry['tier']}-{entry['workload']}-{entry['sha256'][:8]}-{who}.ncu-rep"
    return name.replace(" ", "-")


def _zipped_bytes(run: Run, sources: Mapping[str, Path]) -> int:
    """An upper bound of the size of the bundle's zip."""
    sizes = [len(zlib.compress(dump_run(run)))]
    for path in sources.values():
        stat = path.stat()
        sizes.append(_compressed_bytes(path, stat.st_size, stat.st_mtime_ns))
    return sum(size + _ENTRY_BYTES for size in sizes)


@lru_cache(maxsize=1 << 12)  # called for every checkpoint, and for every report that is left out
def _compressed_bytes(path: Path, _size: int, _changed_ns: int) -> int:
    return len(zlib.compress(path.read_bytes()))
