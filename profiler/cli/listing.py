"""`profiler runs | versions | workloads`: what the index holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add the three commands."""
    runs = commands.add_parser("runs", help="list the runs of the index")
    runs.add_argument("--hidden", action="store_true", help="also list hidden (forgotten) runs")
    runs.add_argument("--all", action="store_true", help="every run, not only the newest")
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
    from profiler.documents.listing import list_runs

    document = list_runs(open_store(), arguments.family, hidden=arguments.hidden)
    return print_document(document, arguments)


def versions_command(arguments: argparse.Namespace) -> int:
    """List the versions of each family."""
    from profiler.cli.output import open_store
    from profiler.documents.listing import list_versions

    return print_document(list_versions(open_store(), arguments.family), arguments)


def workloads_command(arguments: argparse.Namespace) -> int:
    """List the workloads of each family."""
    from profiler.cli.output import open_store
    from profiler.documents.listing import list_workloads

    return print_document(list_workloads(open_store(), arguments.family), arguments)
