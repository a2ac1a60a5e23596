"""`profiler history`: since when a metric is what it is, and what else changed there."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, ask, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The steps of a metric in the history of each kernel: where the level changed, by how much, in which runs the
change can lie, and what else differed there: driver, ncu, CUDA, GPU, clocks, flags, and whether the machine
code changed. A step with the same machine code and source is "changed", due to the environment.

CONCEPT is a concept of metrics.txt, an exact ncu name, or latency (the medians of timed calls). Runs are
ordered by when they were made. Where runs hold several versions, each version has its own history, and the
newest runs form one over versions, in the catalogue's order.

A level that was there before is "back in a known state", and one that was left for an older one "did not
last": with the same machine code these are states of the machine, and not judged. A slow drift is not a step.

A step needs 8 points, 2 of them after it. A change in only the last point is judged by `profiler compare`."""


def add(commands: Commands) -> None:
    """Add `history`."""
    history = commands.add_parser(
        "history",
        help="when a metric changed, and what else changed then",
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
    from profiler.documents.history import find_history

    return print_document(ask(find_history, arguments), arguments)
