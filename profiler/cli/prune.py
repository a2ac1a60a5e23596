"""`profiler prune`: the reports of old runs dropped, their numbers kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, positive, print_document, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `prune`."""
    command = commands.add_parser(
        "prune",
        help="drop the reports of old runs and keep their numbers",
        description="Drop the .ncu-rep of runs made more than DAYS days ago, and keep all that an import "
        "reads from them: every scalar metric, rule and attribute. Tables, comparisons, trends and gates "
        "answer as before; views per instruction, source and timelines say who dropped the report and "
        "when. Without --yes it says how many bytes that would free.",
    )
    command.add_argument(
        "--older", type=positive, required=True, metavar="DAYS", help="age of the run in days"
    )
    command.add_argument("--family", metavar="FAMILY", help="only runs of this family")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with the run")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="only print what would be dropped (the default)")
    what.add_argument("--yes", action="store_true", help="do it")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Say what would be dropped, or drop it; a line a family."""
    from profiler.documents.prune import prune_reports

    options = {"family": arguments.family, "why": arguments.why, "do_it": arguments.yes}
    with progress_bar() as progress:
        document = prune_reports(arguments.older, **options, progress=progress)
    return print_document(document, arguments)
