"""`profiler show`: the numbers of each launch of a report, run or version."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The metrics of every launch in a report file, run or version, by group; what has no number is named last, with
the reason. A file is read as it is, without a store. With --all --json the numbers are in base units under
their exact ncu names."""


def add(commands: Commands) -> None:
    """Add `show`."""
    show = commands.add_parser("show", help="print the metrics of each launch", description=_DESCRIPTION)
    show.add_argument(
        "name", metavar="REPORT_OR_VERSION", help="a report file, run id, family/version or version"
    )
    show.add_argument(
        "--all", action="store_true", help="every metric of the report, not those of metrics.txt"
    )
    add_filters(show, "kernel", "top", "workload", "gpu")
    add_json(show)
    show.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the launches of one report, run or version."""
    from profiler.cli import output, showing
    from profiler.compare import resolve_names
    from profiler.evidence import metric_table
    from profiler.history.without_results import versions_without_results_explained

    table = metric_table.load_metrics()
    with versions_without_results_explained((arguments.name,), output.open_store):
        side = resolve_names.resolve(arguments.name, output.open_store, arguments.workload, arguments.gpu)
    output.note_forgotten((arguments.name,), output.open_store)
    chosen = showing.choose(side, arguments.kernel, arguments.top)
    if arguments.json:
        print_json(showing.document(chosen, table, everything=arguments.all))
    else:
        showing.print_launches(chosen, table, everything=arguments.all)
    return 0
