"""Loads the reports of sealed runs: from the cache beside the bundles, else by reading the report files."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from profiler.bundles import bundle
from profiler.bundles.dropped import load_dropped
from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.bundles.run_json import brief_error
from profiler.errors import BadBundle, ProfilerError, UnreadableReport
from profiler.evidence.launch import Report
from profiler.reports.read import read_reports
from profiler.store import report_cache
from profiler.store.packing import Packed

_RUNS_AT_ONCE = 32  # whose reports one reader process reads, and which are fetched together from afar

ReportsBySha256 = dict[str, Report]


def load_reports(root: Root, runs: Sequence[Run]) -> Iterator[tuple[Run, ReportsBySha256 | ProfilerError]]:
    """The runs in order, each with all its reports, or with the error that says why one cannot be read."""
    for start in range(0, len(runs), _RUNS_AT_ONCE):
        yield from _load_reports(root, runs[start : start + _RUNS_AT_ONCE])


def cache_report(root: Root, report: Report, packed: Sequence[Packed] | None = None) -> None:
    """Write a report's values to the cache, which spares a rebuild the reading; a failed write is ignored.

    packed: its launches, where they were packed already.
    """
    with contextlib.suppress(OSError):
        report_cache.write_report(_cache_path(root, report.sha256), report, packed)


def forget_reports(root: Root, digests: Collection[str]) -> None:
    """Remove what the cache holds of these reports."""
    for folder in ("values", "detail"):
        for digest in digests:
            for path in (root.cache() / folder).glob(f"{digest}-*"):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)


def _load_reports(root: Root, runs: Sequence[Run]) -> Iterator[tuple[Run, ReportsBySha256 | ProfilerError]]:
    loaded: dict[str, Report | ProfilerError] = {}  # by sha256
    missing: dict[str, str] = {}  # sha256 -> path below the root
    owners: dict[str, Run] = {}  # by sha256, of the missing ones
    for run in runs:
        for file in run.reports:
            cached = report_cache.read_report(_cache_path(root, file.sha256))
            if cached is not None and cached.sha256 == file.sha256:
                loaded[file.sha256] = cached
            else:
                owners[file.sha256] = run
                missing[file.sha256] = f"{bundle.RUNS_FOLDER}/{run.run_id}/{file.path}"
    with contextlib.ExitStack() as local_files:
        local: dict[str, Path] = {}
        for digest, path in missing.items():
            try:
                local[digest] = local_files.enter_context(root.open_local(path))
            except FileNotFoundError as error:
                loaded[digest] = _kept_values(root, owners[digest], digest) or BadBundle(
                    f"{root.url}/{path} is not there ({error})"
                )
            except OSError as error:
                loaded[digest] = BadBundle(f"{root.url}/{path} cannot be read ({error})")
        for digest, report in zip(local, read_reports(local.values()) if local else (), strict=True):
            if isinstance(report, UnreadableReport):
                loaded[digest] = report
            elif report.sha256 != digest:
                loaded[digest] = BadBundle(f"{root.url}/{missing[digest]} was changed after it was sealed")
            else:
                loaded[digest] = report
                cache_report(root, report)
    for run in runs:
        run_reports: ReportsBySha256 = {}
        refusal: ProfilerError | None = None
        for file in run.reports:
            content = loaded[file.sha256]
            if isinstance(content, ProfilerError):
                refusal = refusal or content
            else:
                run_reports[file.sha256] = content
        yield run, refusal or run_reports


def _kept_values(root: Root, run: Run, digest: str) -> Report | ProfilerError | None:
    """The numbers of a report that was dropped; None where it was not."""
    try:
        dropped = load_dropped(root, run)
        if dropped is None:
            return None
        file = next(file for file in dropped.values if file.name == digest)
        content = bundle.read_content(root, run.run_id, file)
        report = report_cache.unpack_report(content)
    except BadBundle as error:
        return error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return BadBundle(f"run {run.run_id}: {file.path} cannot be read ({brief_error(error)})")
    if report is None or report.sha256 != digest:
        return BadBundle(f"run {run.run_id}: {file.path} holds no numbers of the report {digest[:12]}")
    return report


def _cache_path(root: Root, digest: str) -> Path:
    return report_cache.cache_path(root.cache(), digest, _reader_version())


@cache
def _reader_version() -> str:
    """A digest of all modules that take part in reading: a change of any of them makes the cache stale."""
    store = Path(__file__).parent
    modules = [store / "packing.py", store / "report_cache.py"]
    for room in ("evidence", "reports"):
        modules += sorted((store.parent / room).glob("*.py"))
    digest = sha256()
    for path in modules:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
