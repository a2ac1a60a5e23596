"""`profiler sass`: machine code with its counts, or that of two sides aligned."""

from __future__ import annotations

import argparse
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.cli.build import add_catalog, arch, trusted_catalog
from profiler.cli.output import add_filters, add_json, add_pair, positive, print_document, print_table, say
from profiler.evidence import formatting

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import CodeDocument
    from profiler.sass import HotSpot

_WAITING_FOR = "waiting for"
_COUNTS = ("samples", _WAITING_FOR, "executed", "excess wavefronts")

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
    command.add_argument("b", metavar="B", nargs="?", help="held against A")
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
    from profiler.cli.aligned_code import print_diff
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
        return print_document(show_code(arguments.a, choice, opener, **options), arguments, print_places)
    document = compare_code(arguments.a, arguments.b, choice, opener, limit=arguments.hot)
    return print_document(document, arguments, print_diff)


def print_places(document: CodeDocument, _arguments: argparse.Namespace) -> None:
    """A row a place, with the counts that the report has."""
    listing = document.listing
    say(f"{listing.label}: {len(listing.lines)} instructions in {len(listing.functions)} function(s)")
    if len(listing.functions) > 1:
        for number, name in enumerate(listing.functions, 1):
            say(f"  {f'[{number}]' if number > 1 else '   '} {name}")
    for sentence in document.sentences[1:]:  # the first says how much there is, as the line above
        say(sentence)
    counts = [
        (_count(spot.samples), _main_reason(spot), _count(spot.executed), _count(spot.excess))
        for spot in document.places
    ]
    # What a report does not count has no column.
    counted = [index for index in range(len(_COUNTS)) if any(row[index] for row in counts)]
    rows = [
        (spot.location.words, *(row[index] for index in counted), (spot.text or "???").strip())
        for spot, row in zip(document.places, counts, strict=True)
    ]
    header = ("at", *(_COUNTS[index] for index in counted), "code")
    numbers = [column for column, name in enumerate(header) if name in _COUNTS and name != _WAITING_FOR]
    print_table(header, rows, right=numbers)
    if document.hidden:
        say(f"and {document.hidden} more places: all without --hot")


def _main_reason(spot: HotSpot) -> str:
    if not spot.reasons:
        return ""
    reason = max(spot.reasons, key=lambda name: spot.reasons[name])
    return f"{reason} {100 * spot.reasons[reason] / (spot.samples or 1):.0f} %"


def _count(number: float | None) -> str:
    return "" if number is None else formatting.digits(round(number))
