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
    parser = commands.add_parser(
        "regressions",
        help="what is worse now, since when, how sure, and why",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_filters(parser, "family")
    add_json(parser)
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Find what is worse, ask why, and print it."""
    from profiler.bundles import decisions, location
    from profiler.cli import output, regression_text
    from profiler.compare import NoiseModel
    from profiler.evidence import metric_table
    from profiler.gate import acknowledgement
    from profiler.history import baselines, lineage
    from profiler.regressions import CauseFinder, find_regressions

    store, root, table = output.open_store(), location.open_root(), metric_table.load_metrics()
    noise = NoiseModel.of_store(lambda: store)
    records = decisions.load_decisions(root)
    found = find_regressions(
        store,
        table,
        family=arguments.family,
        lineages=lineage.load_lineages(root, store, arguments.family),
        noise=noise,
        acknowledged=acknowledgement.list_acknowledgements(records),
        pins=baselines.list_pins(records),
    )
    causes = CauseFinder(store, root, table, noise)
    if arguments.json:
        print_json(regression_text.document(found, causes))
    else:
        regression_text.print_text(found, causes)
    return 0
