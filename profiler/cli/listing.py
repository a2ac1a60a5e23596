"""`profiler runs | versions | workloads`: what the index holds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, print_table, say
from profiler.evidence import formatting

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.store import RunInfo, VersionInfo, WorkloadInfo

EMPTY = "nothing yet: `profiler import PATH` takes reports, folders and bundles"
_NOBODY_SAID = "–"


def add(commands: Commands) -> None:
    """Add the three commands."""
    runs = commands.add_parser("runs", help="list the runs of the index")
    runs.add_argument("--hidden", action="store_true", help="also runs that were forgotten")
    versions = commands.add_parser("versions", help="list the versions, in the order they first appeared")
    workloads = commands.add_parser("workloads", help="list the workloads")
    for command, handler in ((runs, list_runs), (versions, list_versions), (workloads, list_workloads)):
        add_filters(command, "family")
        add_json(command)
        command.set_defaults(handler=handler)


def list_runs(arguments: argparse.Namespace) -> int:
    """List the runs, newest first."""
    from profiler.cli import output

    store = output.open_store()
    runs = store.runs(arguments.family, hidden=arguments.hidden)
    if not runs:
        output.check_family(store, arguments.family)
    if arguments.json:
        print_json({"runs": [run_document(run) for run in runs]})
    else:
        print_runs(runs)
    return 0


def list_versions(arguments: argparse.Namespace) -> int:
    """List the versions of each family."""
    from profiler.cli import output

    store = output.open_store()
    output.check_family(store, arguments.family)
    versions = store.versions(arguments.family)
    if arguments.json:
        print_json({"versions": [version_document(version) for version in versions]})
    else:
        print_versions(versions)
    return 0


def list_workloads(arguments: argparse.Namespace) -> int:
    """List the workloads of each family."""
    from profiler.cli import output

    store = output.open_store()
    output.check_family(store, arguments.family)
    workloads = store.workloads(arguments.family)
    if arguments.json:
        print_json({"workloads": [workload_document(workload) for workload in workloads]})
    else:
        print_workloads(workloads)
    return 0


def run_document(run: RunInfo) -> dict[str, object]:
    """A run for JSON."""
    return {
        "run_id": run.run_id,
        "family": run.family,
        "version": run.version,
        "workload": run.workload,
        "families": run.families,
        "versions": run.versions,
        "workloads": run.workloads,
        "kind": run.kind,
        "created": run.created.isoformat(),
        "gpu": run.gpu,
        "compute_capability": run.compute_capability,
        "driver": run.driver,
        "ncu_version": run.ncu_version,
        "cuda": run.cuda,
        "command_line": run.command_line,
        "clock_control": run.clock_control,
        "cache_control": run.cache_control,
        "launches": run.launches,
        "evidence": sorted(run.evidence),
        "hidden": run.hidden,
        "reports": [
            {"name": file.name, "sha256": file.sha256, "size_bytes": file.size_bytes, "path": file.path}
            for file in run.reports
        ],
    }


def version_document(version: VersionInfo) -> dict[str, object]:
    """A version for JSON."""
    return {
        "family": version.family,
        "version": version.version,
        "first_created": version.first_created.isoformat(),
        "last_created": version.last_created.isoformat(),
        "runs": version.runs,
        "gpus": version.gpus,
        "workloads": version.workloads,
    }


def workload_document(workload: WorkloadInfo) -> dict[str, object]:
    """A workload for JSON."""
    return {
        "family": workload.family,
        "workload": workload.workload,
        "versions": workload.versions,
        "gpus": workload.gpus,
    }


def print_runs(runs: Sequence[RunInfo]) -> None:
    """Print the runs as a table."""
    header = ("run", "family/version", "workload", "made", "GPU", "ncu", "launches", "")
    rows = [
        (
            run.run_id,
            f"{run.family or _several(run.families)}/{run.version or _several(run.versions)}",
            run.workload or _several(run.workloads),
            formatting.timestamp(run.created),
            run.gpu or "unknown",
            run.ncu_version or "unknown",
            str(run.launches),
            "forgotten" if run.hidden else "",
        )
        for run in runs
    ]
    _print(header, rows, right=(6,), truncated=getattr(runs, "truncated", False))


def print_versions(versions: Sequence[VersionInfo]) -> None:
    """Print the versions as a table."""
    rows = [
        (
            version.family,
            version.version,
            formatting.timestamp(version.first_created),
            formatting.timestamp(version.last_created),
            str(version.runs),
            ", ".join(version.workloads) or _NOBODY_SAID,
            ", ".join(version.gpus) or "unknown",
        )
        for version in versions
    ]
    header = ("family", "version", "first made", "last made", "runs", "workloads", "GPUs")
    _print(header, rows, right=(4,), truncated=getattr(versions, "truncated", False))


def print_workloads(workloads: Sequence[WorkloadInfo]) -> None:
    """Print the workloads as a table."""
    rows = [
        (
            workload.family,
            workload.workload or _NOBODY_SAID,
            str(workload.versions),
            ", ".join(workload.gpus) or "unknown",
        )
        for workload in workloads
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
