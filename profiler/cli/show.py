"""`profiler show`: the numbers of each launch of a report, run or version."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_filters,
    add_json,
    ask,
    note_forgotten,
    print_document,
)

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The metrics of every launch in a report file, run or version, by group; metrics without a number come last,
with the reason. A file is read directly, without a store. With --all --json the numbers are in base units
under their exact ncu names.

--sections shows one launch, by default the longest, in the sections of Nsight Compute: a summary, speed of
light, memory hierarchy, warp states, instruction mix, occupancy, hot source lines, rules, and what was not
collected with the command that collects it. --against shows a launch of the same kernel beside it."""


def add(commands: Commands) -> None:
    """Add `show`."""
    show = commands.add_parser("show", help="print the metrics of each launch", description=_DESCRIPTION)
    show.add_argument(
        "name", metavar="REPORT_OR_VERSION", help="a report file, run id, family/version or version"
    )
    show.add_argument(
        "--all", action="store_true", help="every metric of the report, not only those of metrics.txt"
    )
    show.add_argument("--sections", action="store_true", help="one launch, section by section")
    show.add_argument(
        "--against", metavar="BASELINE", help="with --sections: what to compare the launch with"
    )
    add_filters(show, "kernel", "top", "workload", "gpu")
    shape = show.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="with --sections: Markdown for a pull request")
    show.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the launches of one report, run or version, or one of them by its sections."""
    from profiler.documents.launches import launches_of_name
    from profiler.errors import UnknownName

    if arguments.sections:
        return _run_sections(arguments)
    for option in ("against", "markdown"):
        if getattr(arguments, option):
            raise UnknownName(f"--{option} needs --sections")
    document = ask(launches_of_name, arguments, every_metric=arguments.all)
    note_forgotten(arguments, arguments.name)
    return print_document(document, arguments)


def _run_sections(arguments: argparse.Namespace) -> int:
    from profiler.documents.launch import launch_of_name
    from profiler.errors import UnknownName

    for option in ("all", "top"):
        if getattr(arguments, option):
            raise UnknownName(f"--{option} does not go with --sections")
    document = ask(launch_of_name, arguments)
    note_forgotten(arguments, arguments.name, arguments.against)
    return print_document(document, arguments)
