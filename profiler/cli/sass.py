"""`profiler sass`: machine code with its counts, or that of two sides aligned."""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, positive, print_json
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands

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
    from profiler.cli import output, sass_text
    from profiler.compare.resolve_code import CodeChoice, resolve_code, sample_scale
    from profiler.sass import alignment, hotspots

    choice = CodeChoice(
        kernel=arguments.kernel,
        launch=arguments.launch,
        b_launch=arguments.b_launch,
        arch=arguments.arch,
        workload=arguments.workload,
        gpu=arguments.gpu,
        build=arguments.build,
        catalog=arguments.catalog,
    )
    names = [name for name in (arguments.a, arguments.b) if name is not None]
    codes = resolve_code(names, choice, lru_cache(maxsize=1)(output.open_store))
    if len(codes) == 1:
        places = (hotspots.spots_by_line if arguments.source else hotspots.spots_by_instruction)(
            codes[0].listing
        )
        shown = hotspots.hottest(places, arguments.hot) if arguments.hot else list(places)
        if arguments.json:
            print_json(sass_text.hot_document(codes[0], shown))
        else:
            sass_text.print_hot(codes[0], shown, len(places) - len(shown))
        return Exit.PASS
    a, b = (code.listing for code in codes)
    aligned, moved = alignment.align(a, b), hotspots.hot_spot_changes(a, b, sample_scale(codes))
    if arguments.json:
        print_json(sass_text.diff_document(codes, aligned, moved))
    else:
        sass_text.print_diff(codes, aligned, moved, everything=arguments.all)
    return Exit.PASS
