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
The machine code (SASS) of A with what was counted per place: samples by what the warps waited for, warp
instructions executed, shared-memory wavefronts over the ideal. With B both are aligned, function by function
and instruction by instruction: offsets count from the function's start and addresses of code are left out,
so that two builds of one source differ in nothing. Instructions that differ in the numbers of registers
alone are renamed: counted, and printed beside what differs. With --hot N it is what lies around the N
hottest places that is printed.

A and B are report files (the longest launch, or --launch, --kernel), cubins, libraries, run ids or versions
that were measured. Of a version that was not, or with --arch, it is what the compiler made of it: as the
newest run keeps it, which needs no compiler, or built here where the sources have changed since, or with
--build; version~RUN_ID is what that run keeps. Beside a launch it is the code for the GPU of that launch,
where there is some. That is static evidence: nothing was run, so there are no samples and no counts. Where a
report prints ??? for its machine code, the counts still stand at their places."""


def add(commands: Commands) -> None:
    """Add `sass`."""
    command = commands.add_parser(
        "sass",
        help="machine code with its counts per line, or two aligned",
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
    command.add_argument(
        "--launch", type=int, metavar="N", help="the launch, by its place in the report from 0"
    )
    command.add_argument("--b-launch", type=int, metavar="N", help="the launch of B (default: as --launch)")
    command.add_argument(
        "--arch", type=arch, metavar="ARCH", help="of a binary with several, or compiled for (sm_90a)"
    )
    command.add_argument(
        "--build", action="store_true", help="of a version: built here, whatever a run keeps of it"
    )
    add_catalog(command)
    command.add_argument("--source", action="store_true", help="one row a source line, not an instruction")
    command.add_argument(
        "--hot",
        type=positive,
        metavar="N",
        help="only the N hottest places, hottest first; with B what lies around them",
    )
    add_filters(command, "kernel", "workload", "gpu")
    add_pair(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one listing, or two aligned."""
    from profiler.cli.output import open_store
    from profiler.compare.resolve_code import CodeChoice
    from profiler.documents import compare_code, show_code

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
