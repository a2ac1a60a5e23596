"""How the jobs that have ended become one run: a result a cell, what was left out, and its files."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from profiler.bundles import COLLECT, Attachment, LocalRoot, ReportFile, Root, Run, bundle
from profiler.bundles.run_json import dump_run
from profiler.collect import bundle_files
from profiler.collect.cell_results import results_of
from profiler.collect.collection import Collection
from profiler.collect.provenance import provenance_of
from profiler.collect.staging import REPORTS, Staging

Json = dict[str, Any]
ZIP_BYTES = 12 << 20  # of the file that `--out` writes
_ENTRY_BYTES = 400  # that a zip takes for a file beside its content, at most


def seal(root: Root, collection: Collection, *, zip_bytes: int | None = None) -> str:
    """Make the run of what has ended and keep it for good; the staging folder goes. The run's id. Raises
    BadBundle where a part of it lies in its place.

    zip_bytes: reports, full ones first and of those the last, are left out until the bundle's zip fits.
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
    """The run and, for every file in it, where its content lies now."""
    collection.staging.drop_damaged()
    ended = collection.staging.outcomes()
    told = sorted(
        [report for outcome in ended.values() for report in outcome.get("reports", ())],
        key=lambda report: report["tier"] != "lean",
    )
    dropped: list[str] = []
    while True:
        kept = _reports(collection.staging, told)
        run, sources = _made(collection, ended, kept, dropped)
        if zip_bytes is None or not told or _packed(run, sources) <= zip_bytes:
            return run, sources
        dropped.append(_report_name(told.pop()))


def _made(
    collection: Collection,
    ended: Mapping[str, Json],
    kept: Mapping[str, tuple[ReportFile, Path]],
    dropped: Sequence[str],
) -> tuple[Run, dict[str, Path]]:
    staging = collection.staging
    sources = {report.path: place for report, place in kept.values()} | staging.sources
    files: list[Attachment] = [
        bundle_files.attachment(path, place.read_bytes()) for path, place in staging.sources.items()
    ]
    run = Run(
        run_id=staging.run_id,
        kind=COLLECT,
        created=datetime.fromisoformat(staging.plan["created"]),
        provenance=provenance_of(collection, ended, dropped),
        results=tuple(results_of(collection, ended, kept)),
        reports=tuple(report for report, _ in kept.values()),
        files=tuple(files),
    )
    return run, sources


def _packed(run: Run, sources: Mapping[str, Path]) -> int:
    """What the bundle's zip takes, at most."""
    packed = [len(zlib.compress(dump_run(run))), *(_packed_file(*_seen(place)) for place in sources.values())]
    return sum(size + _ENTRY_BYTES for size in packed)


def _seen(place: Path) -> tuple[Path, int, int]:
    found = place.stat()
    return place, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1 << 12)  # asked again for every checkpoint, and for every report that is left out
def _packed_file(place: Path, _size: int, _changed_ns: int) -> int:
    return len(zlib.compress(place.read_bytes()))


def _reports(staging: Staging, told: Sequence[Json]) -> dict[str, tuple[ReportFile, Path]]:
    """The reports to keep, by sha256."""
    return {
        report["sha256"]: (
            bundle.imported_report_file(_report_name(report), report["sha256"], report["size"]),
            staging.folder / REPORTS / report["path"],
        )
        for report in told
    }


def _report_name(report: Json) -> str:
    """The digits stand where a name that is cut keeps them."""
    who = report["versions"][0] if len(report["versions"]) == 1 else f"{len(report['versions'])}-versions"
    name = f"{report['tier']}-{report['workload']}-{report['sha256'][:8]}-{who}.ncu-rep"
    return name.replace(" ", "-")
