"""`profiler report`: versions as one HTML file for a mail or a pull request."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_evidence,
    add_filters,
    add_json,
    add_metrics,
    add_pairing,
    ask,
    destination,
    note_forgotten,
    print_json,
    say,
    write_bytes,
)

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
One HTML file with the table of `profiler compare A B C`, the times over the runs, and diffs with the
baseline: no scripts, no other files, no network; light or dark by the reader's settings. A name is a
version, a run id (all its versions) or a report file. Without --diff the three that moved most are
explained."""


def add(commands: Commands) -> None:
    """Add `report`."""
    command = commands.add_parser(
        "report",
        help="versions as one HTML file, for an email or a pull request",
        description=_DESCRIPTION,
    )
    command.add_argument("names", nargs="+", metavar="VERSION", help="versions, runs or reports")
    command.add_argument("--out", metavar="FILE.html", default="report.html", help="the file (report.html)")
    command.add_argument("--against", metavar="BASE", help="the baseline (default: the first name)")
    add_metrics(command, "which counters and facts to show beside the times")
    command.add_argument(
        "--diff",
        action="append",
        metavar="VERSION",
        help="explain this one against the baseline (repeatable)",
    )
    add_filters(command, "workload", "gpu", "kernel")
    add_evidence(command)
    add_pairing(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the report and write it; with --json print what it holds instead."""
    from profiler.documents.version_report import report_versions

    path = destination(arguments.out, (".html", ".htm"))
    document = ask(report_versions, arguments, diffs=arguments.diff)
    note_forgotten(arguments, *arguments.names, arguments.against)
    if arguments.json:
        print_json(document.to_dict())
        return document.exit_code
    content = document.to_html().encode("utf-8", "backslashreplace")
    write_bytes(content, path)
    say(f"{path}: {document.title}, {len(content) / 1e3:,.0f} kB")
    say(f"  {document.table.headline}")
    return document.exit_code
