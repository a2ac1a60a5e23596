"""`profiler regressions`: what is worse now, since when, how sure, and whether somebody let it pass."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
What is worse now in the index. The latency of calls and ncu durations: by the steps of their history, by the
newest run against the one before, and by the newest against the baseline (the pinned one, else the parent,
else the version before). Compiler facts, modelled conflicts and counts that repeat exactly: between the runs
of one version. What was right and is wrong now comes first, what is acknowledged last.

This lists; `profiler gate` judges one change and makes it the exit code."""


def add(commands: Commands) -> None:
    """Add `regressions`."""
    command = commands.add_parser(
        "regressions",
        help="what is worse now, since when, how sure, and why",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_filters(command, "family")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Find what is worse, ask why, and print it."""
    from profiler.bundles import location
    from profiler.cli import output, regression_text
    from profiler.compare import NoiseModel
    from profiler.evidence import metric_table
    from profiler.regressions import CauseFinder, load_regressions

    root, store, table = location.open_root(), output.open_store(), metric_table.load_metrics()
    noise = NoiseModel.of_store(lambda: store)
    report = load_regressions(root, store, table, noise, arguments.family)
    causes = CauseFinder(store, root, table, noise)
    if arguments.json:
        print_json(regression_text.document(report, causes))
    else:
        regression_text.print_text(report, causes)
    return 0
