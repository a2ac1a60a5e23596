"""`profiler history`: since when a metric is what it is, and what else changed there."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, evidence_of, print_json

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The steps of a metric in the history of each kernel: where the level changed, by how much, in which runs that
can have been, and what else differed there: driver, ncu, CUDA, GPU, clocks, flags, and whether the machine
code did. A step with the same machine code is due to the environment.

CONCEPT is a concept of metrics.txt, an exact ncu name, or latency (the medians of timed calls). Runs come in
the order in which they were made. Where runs hold several versions each version has a history of its own, and
the newest run of each makes one over versions, in the catalogue's order.

A step needs 8 points, 2 of them after it. What the last point alone does is for `profiler compare` to say."""


def add(commands: Commands) -> None:
    """Add `history`."""
    history = commands.add_parser(
        "history",
        help="since when a metric is what it is",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    history.add_argument("concept", metavar="CONCEPT", help="a concept, latency, or an exact ncu name")
    history.add_argument("--version", metavar="VERSION", help="only this version, over its runs")
    add_filters(history, "family", "workload", "gpu", "kernel")
    add_evidence(history)
    add_json(history)
    history.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Find the steps and print them."""
    from profiler.bundles import location
    from profiler.cli import output, stepping
    from profiler.evidence import metric_table
    from profiler.history import change_points, lineage

    filters = {name: getattr(arguments, name) for name in ("family", "workload", "gpu", "kernel", "version")}
    store, root = output.open_store(), location.open_root()
    stands = lineage.load_lineages(root, store, arguments.family)
    filters |= {"orders": {family: one.order for family, one in stands.items()}}
    filters |= {"wrong": {family: one.wrong for family, one in stands.items()}}
    evidence = evidence_of(arguments)
    found = change_points.find_change_points(
        store, root, metric_table.load_metrics(), arguments.concept, evidence=evidence, **filters
    )
    stepping.check(found, arguments.concept)
    if arguments.json:
        print_json(stepping.document(arguments.concept, found))
    else:
        stepping.print_histories(found)
    return 0
