"""How runs, versions and workloads are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import print_table, say
from profiler.evidence import formatting

if TYPE_CHECKING:
    from profiler.store import RunInfo, VersionInfo, WorkloadInfo

EMPTY = "nothing yet: `profiler import PATH` takes reports, folders and bundles"
_NOBODY_SAID = "–"


def run(one: RunInfo) -> dict[str, object]:
    """A run for JSON."""
    return {
        "run_id": one.run_id,
        "family": one.family,
        "version": one.version,
        "workload": one.workload,
        "families": one.families,
        "versions": one.versions,
        "workloads": one.workloads,
        "kind": one.kind,
        "created": one.created.isoformat(),
        "gpu": one.gpu,
        "compute_capability": one.compute_capability,
        "driver": one.driver,
        "ncu_version": one.ncu_version,
        "cuda": one.cuda,
        "command_line": one.command_line,
        "clock_control": one.clock_control,
        "cache_control": one.cache_control,
        "launches": one.launches,
        "evidence": sorted(one.evidence),
        "hidden": one.hidden,
        "reports": [
            {"name": file.name, "sha256": file.sha256, "size_bytes": file.size_bytes, "path": file.path}
            for file in one.reports
        ],
    }


def version(one: VersionInfo) -> dict[str, object]:
    """A version for JSON."""
    return {
        "family": one.family,
        "version": one.version,
        "first_created": one.first_created.isoformat(),
        "last_created": one.last_created.isoformat(),
        "runs": one.runs,
        "gpus": one.gpus,
        "workloads": one.workloads,
    }


def workload(one: WorkloadInfo) -> dict[str, object]:
    """A workload for JSON."""
    return {"family": one.family, "workload": one.workload, "versions": one.versions, "gpus": one.gpus}


def print_runs(runs: Sequence[RunInfo]) -> None:
    """Print the runs as a table."""
    header = ("run", "family/version", "workload", "made", "GPU", "ncu", "launches", "")
    rows = [
        (
            one.run_id,
            f"{one.family or _several(one.families)}/{one.version or _several(one.versions)}",
            one.workload or _several(one.workloads),
            formatting.timestamp(one.created),
            one.gpu or "unknown",
            one.ncu_version or "unknown",
            str(one.launches),
            "forgotten" if one.hidden else "",
        )
        for one in runs
    ]
    _print(header, rows, right=(6,), truncated=getattr(runs, "truncated", False))


def print_versions(versions: Sequence[VersionInfo]) -> None:
    """Print the versions as a table."""
    rows = [
        (
            one.family,
            one.version,
            formatting.timestamp(one.first_created),
            formatting.timestamp(one.last_created),
            str(one.runs),
            ", ".join(one.workloads) or _NOBODY_SAID,
            ", ".join(one.gpus) or "unknown",
        )
        for one in versions
    ]
    header = ("family", "version", "first made", "last made", "runs", "workloads", "GPUs")
    _print(header, rows, right=(4,), truncated=getattr(versions, "truncated", False))


def print_workloads(workloads: Sequence[WorkloadInfo]) -> None:
    """Print the workloads as a table."""
    rows = [
        (one.family, one.workload or _NOBODY_SAID, str(one.versions), ", ".join(one.gpus) or "unknown")
        for one in workloads
    ]
    header = ("family", "workload", "versions", "GPUs")
    _print(header, rows, right=(2,), truncated=getattr(workloads, "truncated", False))


def _several(names: Sequence[str]) -> str:
    return f"{len(names)} of them" if len(names) > 1 else next(iter(names), _NOBODY_SAID)


def _print(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int], truncated: bool
) -> None:
    if not rows:
        say(EMPTY)
        return
    print_table(header, rows, right=right)
    if truncated:
        say(f"only the first {len(rows)}: narrow it with --family")
