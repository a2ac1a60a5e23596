"""`profiler sass`: machine code with its counts, or that of two sides aligned."""

from __future__ import annotations

import argparse
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.cli.build import add_catalog, arch, trusted_catalog
from profiler.cli.output import add_filters, add_json, add_pair, positive, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
The machine code (SASS) of A with the counts of each place: samples by stall reason, warp instructions
executed, shared-memory wavefronts beyond the ideal. With B both are aligned, function by function and
instruction by instruction. Offsets count from the function's start and code addresses are left out, so two
builds of one source show no difference. Instructions that differ only in register numbers are "renamed":
counted, and printed beside real differences. --hot N prints only the surroundings of the N hottest places.

A and B are report files (the longest launch, or --launch, --kernel), cubins, libraries, run ids or versions
that were measured. For a version that was not measured, or with --arch, it is the compiler's output: from
the newest run that keeps it, which needs no compiler, or built here if the sources have changed, or with
--build; version~RUN_ID takes it from that run. If the other side is a launch, the code for its GPU is used.
That is static evidence: nothing was run, so there are no samples and no counts. Where a report has no SASS
text (???), only counts per offset are shown."""


def add(commands: Commands) -> None:
    """Add `sass`."""
    command = commands.add_parser(
        "sass",
        help="machine code with counts per line, or two versions aligned",
        description=_DESCRIPTION,
        epilog="exit codes: 0 printed, different or not · 2 input that cannot be read · 3 no machine code, "
        "or a tool is missing",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("a", metavar="A", help="report, binary, run or version")
    command.add_argument("b", metavar="B", nargs="?", help="compared with A")
    shape = command.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--all", action="store_true", help="with B: print equal and renamed instructions too")
    command.add_argument("--launch", type=int, metavar="N", help="index of the launch in the report, from 0")
    command.add_argument("--b-launch", type=int, metavar="N", help="the launch of B (default: as --launch)")
    command.add_argument(
        "--arch",
        type=arch,
        metavar="ARCH",
        help="architecture in the binary, or to compile for (default: sm_90a)",
    )
    command.add_argument(
        "--build", action="store_true", help="for a version: build it here, even if a run keeps its code"
    )
    add_catalog(command)
    command.add_argument("--source", action="store_true", help="one row per source line, not per instruction")
    command.add_argument(
        "--hot",
        type=positive,
        metavar="N",
        help="only the N hottest places, hottest first; with B, their surroundings",
    )
    add_filters(command, "kernel", "workload", "gpu")
    add_pair(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one listing, or two aligned."""
    from profiler.cli.output import open_store
    from profiler.compare.resolve_code import CodeChoice
    from profiler.documents.sass import compare_code, show_code

    if arguments.trust:
        trusted_catalog(arguments)  # where code is built; code of a run or report is only read
    names = ("kernel", "launch", "b_launch", "arch", "workload", "gpu", "build", "catalog")
    choice = CodeChoice(**{name: getattr(arguments, name) for name in names}, pairs=tuple(arguments.pairs))
    opener = lru_cache(maxsize=1)(open_store)
    if arguments.b is None:
        options = {"by_line": arguments.source, "limit": arguments.hot}
        return print_document(show_code(arguments.a, choice, opener, **options), arguments)
    document = compare_code(arguments.a, arguments.b, choice, opener, limit=arguments.hot)
    return print_document(document, arguments)
