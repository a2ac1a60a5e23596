"""`profiler runs | versions | workloads`: what the index holds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_document, print_table, say
from profiler.evidence import formatting

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import RunsDocument, VersionsDocument, WorkloadsDocument

_UNKNOWN = "–"
RUNS_SHOWN = 200  # newest runs; --all lists the others


def add(commands: Commands) -> None:
    """Add the three commands."""
    runs = commands.add_parser("runs", help="list the runs of the index")
    runs.add_argument("--hidden", action="store_true", help="also runs that were forgotten")
    runs.add_argument("--all", action="store_true", help=f"also those before the newest {RUNS_SHOWN}")
    versions = commands.add_parser("versions", help="list the versions, in the order they first appeared")
    workloads = commands.add_parser("workloads", help="list the workloads")
    for command, handler in (
        (runs, runs_command),
        (versions, versions_command),
        (workloads, workloads_command),
    ):
        add_filters(command, "family")
        add_json(command)
        command.set_defaults(handler=handler)


def runs_command(arguments: argparse.Namespace) -> int:
    """List the runs, newest first."""
    from profiler.cli.output import open_store
    from profiler.documents import list_runs

    document = list_runs(open_store(), arguments.family, hidden=arguments.hidden)
    return print_document(document, arguments, print_runs)


def versions_command(arguments: argparse.Namespace) -> int:
    """List the versions of each family."""
    from profiler.cli.output import open_store
    from profiler.documents import list_versions

    return print_document(list_versions(open_store(), arguments.family), arguments, print_versions)


def workloads_command(arguments: argparse.Namespace) -> int:
    """List the workloads of each family."""
    from profiler.cli.output import open_store
    from profiler.documents import list_workloads

    return print_document(list_workloads(open_store(), arguments.family), arguments, print_workloads)


def print_runs(document: RunsDocument, arguments: argparse.Namespace) -> None:
    """Print the runs as a table, and what is to be mended about their families."""
    from profiler.documents import mix_sentences

    header = ("run", "family/version", "workload", "made", "GPU", "ncu", "launches", "")
    rows = [
        (
            run.run_id,
            f"{run.family or _several(run.families)}/{run.version or _several(run.versions)}",
            run.workload or _several(run.workloads),
            formatting.timestamp(run.created),
            ", ".join(run.gpu_names) or "unknown",
            run.ncu_version or "unknown",
            str(run.launches),
            "forgotten" if run.hidden else "",
        )
        for run in (document.runs if arguments.all else document.runs[:RUNS_SHOWN])
    ]
    _print(header, rows, right=(6,), truncated=document.is_truncated and arguments.all)
    if earlier := len(document.runs) - len(rows):
        more = "at least " if document.is_truncated else ""
        say(f"and {more}{earlier:,} earlier: --all, --family, or --json for all")
    for mix in document.mixes:
        for sentence in mix_sentences(mix):
            say(sentence)


def print_versions(document: VersionsDocument, _arguments: argparse.Namespace) -> None:
    """Print the versions as a table."""
    rows = [
        (
            version.family,
            version.version,
            formatting.timestamp(version.first_created),
            formatting.timestamp(version.last_created),
            str(version.runs),
            ", ".join(version.workloads) or _UNKNOWN,
            ", ".join(version.gpus) or "unknown",
        )
        for version in document.versions
    ]
    header = ("family", "version", "first made", "last made", "runs", "workloads", "GPUs")
    _print(header, rows, right=(4,), truncated=document.is_truncated)


def print_workloads(document: WorkloadsDocument, _arguments: argparse.Namespace) -> None:
    """Print the workloads as a table."""
    rows = [
        (
            workload.family,
            workload.workload or _UNKNOWN,
            str(workload.versions),
            ", ".join(workload.gpus) or "unknown",
        )
        for workload in document.workloads
    ]
    header = ("family", "workload", "versions", "GPUs")
    _print(header, rows, right=(2,), truncated=document.is_truncated)


def _several(names: Sequence[str]) -> str:
    return f"{len(names)} of them" if len(names) > 1 else next(iter(names), _UNKNOWN)


def _print(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int], truncated: bool
) -> None:
    from profiler.documents.listing import EMPTY

    if not rows:
        say(EMPTY)
        return
    print_table(header, rows, right=right)
    if truncated:
        say(f"only the first {len(rows)}: narrow it with --family")
