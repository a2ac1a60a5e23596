"""`profiler sass`: machine code with its counts, or that of two sides aligned."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, positive, print_document, print_table, say
from profiler.evidence import formatting

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import CodeComparisonDocument, CodeDocument
    from profiler.sass import AlignedRow, HotSpot, HotSpotChange, Listing

_CONTEXT = 3  # equal rows printed around each difference
_MOVED = 10  # places printed that moved
_WAITING_FOR = "waiting for"
_COUNTS = ("samples", _WAITING_FOR, "executed", "excess wavefronts")
_SIGNS = {"equal": " ", "changed": "~", "only A": "-", "only B": "+", "unread": "?"}  # by a row's kind

_DESCRIPTION = """\
The machine code (SASS) of A with what was counted per place: samples by what the warps waited for, warp
instructions executed, shared-memory wavefronts over the ideal. With B both are aligned, function by function
and instruction by instruction: offsets count from the function's start and addresses of code are left out,
so that two builds of one source differ in nothing.

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
    shape.add_argument("--all", action="store_true", help="with B: print equal instructions too")
    command.add_argument(
        "--launch", type=int, metavar="N", help="the launch, by its place in the report from 0"
    )
    command.add_argument("--b-launch", type=int, metavar="N", help="the launch of B (default: as --launch)")
    command.add_argument("--arch", metavar="ARCH", help="of a binary with several, or compiled for (sm_90a)")
    command.add_argument(
        "--build", action="store_true", help="of a version: built here, whatever a run keeps of it"
    )
    command.add_argument(
        "--catalog", type=Path, metavar="PATH", help="a catalog.toml or its folder, for versions"
    )
    command.add_argument("--source", action="store_true", help="one row a source line, not an instruction")
    command.add_argument("--hot", type=positive, metavar="N", help="only the N hottest places, hottest first")
    add_filters(command, "kernel", "workload", "gpu")
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one listing, or two aligned."""
    from profiler.cli.output import open_store
    from profiler.compare.resolve_code import CodeChoice
    from profiler.documents import compare_code, show_code

    names = ("kernel", "launch", "b_launch", "arch", "workload", "gpu", "build", "catalog")
    choice = CodeChoice(**{name: getattr(arguments, name) for name in names})
    opener = lru_cache(maxsize=1)(open_store)
    if arguments.b is None:
        options = {"by_line": arguments.source, "limit": arguments.hot}
        return print_document(show_code(arguments.a, choice, opener, **options), arguments, print_places)
    return print_document(compare_code(arguments.a, arguments.b, choice, opener), arguments, print_diff)


def print_places(document: CodeDocument, _arguments: argparse.Namespace) -> None:
    """A row a place, with the counts that the report has."""
    from profiler.documents.sass import NO_TEXT

    listing = document.listing
    say(f"{listing.label}: {len(listing.lines)} instructions in {len(listing.functions)} function(s)")
    if len(listing.functions) > 1:
        for number, name in enumerate(listing.functions, 1):
            say(f"  {f'[{number}]' if number > 1 else '   '} {name}")
    if document.code.origin.words:
        say(document.code.origin.words)
    if not listing.has_text:
        say(NO_TEXT)
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


def print_diff(document: CodeComparisonDocument, arguments: argparse.Namespace) -> None:
    """The rows that differ with some around them, as a unified diff; then what moved."""
    from profiler.documents.sass import NO_TEXT

    for side, code in (("A", document.a), ("B", document.b)):
        say(": ".join(filter(None, (f"{side} {code.listing.label}", code.origin.words))))
    if document.compilers_differ:
        say(document.compilers_differ)
    if not document.has_text:
        say(NO_TEXT)
    say(document.summary)
    a, b = document.a.listing, document.b.listing
    for pair in document.aligned.functions:
        rows = pair.rows if arguments.all else tuple(_near_differences(pair.rows))
        if rows:
            name_a = "none" if pair.a is None else a.functions[pair.a]
            name_b = "none" if pair.b is None else b.functions[pair.b]
            say(f"\n{' → '.join(dict.fromkeys((name_a, name_b)))}  (paired by {pair.by})")
        for row in rows:
            say("  ⋯" if row is None else "\n".join(_unified(row, a, b)))
    if document.moved:
        _print_moved(document.moved)


def _print_moved(changes: Sequence[HotSpotChange]) -> None:
    say("\nwaiting samples that moved")
    rows = [
        (
            change.location_a.words if change.location_a else "–",
            change.location_b.words if change.location_b else "–",
            _count(change.a),
            _count(change.b),
            _reasons(change) + (" (counting noise)" if change.is_counting_noise else ""),
            (change.text or "???").strip(),
        )
        for change in changes[:_MOVED]
    ]
    print_table(("A at", "B at", "A", "B", "by reason", "code"), rows, right=(2, 3))
    if len(changes) > _MOVED:
        say(f"and {len(changes) - _MOVED} more places: --json has all")


def _near_differences(rows: Sequence[AlignedRow]) -> Iterator[AlignedRow | None]:
    """The rows near a difference; None for each stretch left out."""
    from profiler.sass.alignment import EQUAL, UNREAD

    near = {
        neighbour
        for index, row in enumerate(rows)
        if row.kind not in (EQUAL, UNREAD)
        for neighbour in range(index - _CONTEXT, index + _CONTEXT + 1)
    }
    last = -1
    for index in sorted(index for index in near if 0 <= index < len(rows)):
        if index > last + 1:
            yield None
        yield rows[index]
        last = index


def _unified(row: AlignedRow, a: Listing, b: Listing) -> Iterator[str]:
    from profiler.sass.alignment import CHANGED

    text_a = None if row.a is None else _line(a, row.a)
    text_b = None if row.b is None else _line(b, row.b)
    if row.kind == CHANGED:
        yield f"- {text_a}"
        yield f"+ {text_b}"
    else:
        yield f"{_SIGNS[row.kind]} {text_a or text_b}"


def _line(listing: Listing, index: int) -> str:
    line = listing.lines[index]
    where = f"{PurePath(line.source[0]).name}:{line.source[1]}" if line.source else ""
    return f"{line.offset:#06x}  {line.text or f'??? {where}'.rstrip()}"


def _main_reason(spot: HotSpot) -> str:
    if not spot.reasons:
        return ""
    reason = max(spot.reasons, key=lambda name: spot.reasons[name])
    return f"{reason} {100 * spot.reasons[reason] / (spot.samples or 1):.0f} %"


def _reasons(change: HotSpotChange) -> str:
    largest = list(change.by_reason.items())[:2]
    return ", ".join(
        f"{reason} {'+' if count > 0 else formatting.MINUS}{_count(abs(count))}" for reason, count in largest
    )


def _count(number: float | None) -> str:
    return "" if number is None else formatting.digits(round(number))
