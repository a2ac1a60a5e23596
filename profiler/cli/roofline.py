"""`profiler roofline`: where launches stand under the roofs of their GPU, and what that lacks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, ask, note_forgotten, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The roofs of the GPU at each launch's own clocks (fp64, fp32, fp16, tensor cores by type; L1, L2, DRAM), how
much of each the launch reached, and its arithmetic intensity at each level, all from the report's own
metrics; what a report lacks is listed with its state. NAME is a report file, a run or a version. Exit code 3
if no launch has a point."""


def add(commands: Commands) -> None:
    """Add `roofline`."""
    command = commands.add_parser(
        "roofline", help="launches under the rooflines of their GPU", description=_DESCRIPTION
    )
    command.add_argument("name", metavar="NAME", help="a report file, a run id, family/version, or a version")
    add_filters(command, "workload", "gpu", "kernel", "top")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the roofline of every launch asked for."""
    from profiler.documents.roofline import rooflines_of_name

    document = ask(rooflines_of_name, arguments)
    note_forgotten(arguments, arguments.name)
    return print_document(document, arguments)
