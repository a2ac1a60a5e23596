"""`profiler trend`: a metric over versions, a row a kernel, a column a version, with its gaps and breaks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, ask, positive, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
One metric over the versions of each kernel, on each workload and GPU. CONCEPT is a concept of metrics.txt
or an exact ncu name. Signs before a value: | it must not be joined to the one on its left (the driver, ncu
version, counter or unit changed), ~ it is derived from other counters, ⊘ the version is wrong. · means that
the kernel did not run; other gaps show their state. Versions without a value, and kernels that only one
version has, are counted below the table; --all lists them. Versions come in the order of the catalogue that
the family's newest run keeps, else in the order in which they first appeared."""


def add(commands: Commands) -> None:
    """Add `trend`."""
    trend = commands.add_parser("trend", help="print one metric over the versions", description=_DESCRIPTION)
    trend.add_argument("concept", metavar="CONCEPT", help="a concept such as duration, or an exact ncu name")
    add_filters(trend, "family", "workload", "gpu", "kernel")
    add_evidence(trend)
    trend.add_argument(
        "--over",
        choices=("versions", "time"),
        default="versions",
        help="versions, or time for every run (default: versions)",
    )
    trend.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu"),
        default=[],
        help="do not break the line where this changes",
    )
    trend.add_argument(
        "--last", type=positive, default=8, metavar="N", help="only the newest N versions (default: 8)"
    )
    trend.add_argument(
        "--all",
        action="store_true",
        help="also list versions without a value and kernels of only one version",
    )
    add_json(trend)
    trend.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one metric over versions or runs."""
    from profiler.documents.trend import load_trend

    return print_document(ask(load_trend, arguments), arguments)
