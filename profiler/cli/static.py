"""`profiler static`: how static facts are printed, and what a broken budget means for the exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.build import (
    add_arches,
    add_jobs,
    add_versions,
    print_failures,
    print_not_built,
    progress,
    trusted_catalog,
)
from profiler.cli.output import add_json, print_document, print_table, write_bytes

if TYPE_CHECKING:
    from profiler.build import FunctionResources
    from profiler.cli.output import Commands
    from profiler.documents import CodeFilesDocument, FunctionLines, StaticDocument

_DESCRIPTION = """\
What the compiler and the machine code say of each kernel function, with no GPU: registers, spills, stack,
shared memory, opcodes (sites, not executions; what never executes left out) and theoretical occupancy.
Block size and dynamic shared memory are not in the binary: they are those of the launch that the CPU check
sees. Each version is judged against its own budget. In --json the opcodes have parts beside the whole: MUFU
counts MUFU.EX2 too, LDG and STG their .128, LDSM its .T; do not add them up.
In place of versions it takes files of machine code: cubins, libraries, reports, or a folder of cubins such as
Triton's cache. What such a file does not say is not known."""

_EPILOG = """\
exit codes: 0 all within budget · 1 a good version is over its budget · 2 a version does not compile ·
3 a tool is missing (nvcc, cuobjdump, nvdisasm, g++), a fact that has a budget is not known, or nothing to
build"""

_OPCODES = ("HMMA", "FFMA", "MUFU.EX2", "LDSM", "LDGSTS", "LDS", "STS", "SHFL", "BAR")
_UNKNOWN = "not known"
_LONGEST_NAME = 40
_CODE_FILES = (".cubin", ".ncu-rep", ".ncu-repz", ".so", ".fatbin", ".o", ".ptx")
_LOCAL = ("LDL", "STL")


def add(commands: Commands) -> None:
    """Add `static`."""
    command = commands.add_parser(
        "static",
        help="registers, spills, opcodes, occupancy, with no GPU",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    add_arches(command)
    add_jobs(command)
    command.add_argument(
        "--lines",
        action="store_true",
        help="run the machine code too: live registers, excess sectors and bank conflicts by source line; of "
        "files live registers alone, however large they are",
    )
    command.add_argument(
        "--swizzle", action="store_true", help="find the smallest XOR swizzle without bank conflicts"
    )
    command.add_argument(
        "--sarif", type=Path, metavar="FILE", help="write what is wrong as SARIF 2.1.0, for code scanning"
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Build, take apart, print, judge."""
    from profiler.documents import examine_versions

    if paths := _paths(arguments.versions):
        return _run_files(paths, arguments)
    trusted_catalog(arguments)
    options = {"catalog": arguments.catalog, "arches": arguments.arch, "jobs": arguments.jobs}
    options |= {"with_lines": arguments.lines or bool(arguments.sarif), "with_swizzle": arguments.swizzle}
    document = examine_versions(arguments.versions, **options, progress=progress())
    _write_sarif(document, arguments)
    print_document(document, arguments, print_text)
    print_failures(document.failures)
    if not document.examined:
        print_not_built(document.not_built)
    elif not document.failures:
        for words in document.missing:
            print(f"profiler: {words}", file=sys.stderr)
    return document.exit_code


def _paths(names: Sequence[str]) -> list[Path]:
    """The names as paths, where the first is one: a file of code, a report, or a folder with a separator."""
    if not names:
        return []
    first = Path(names[0])
    if not (
        first.suffix in _CODE_FILES or os.sep in names[0] or names[0] == "." or _is_folder_of_code(first)
    ):
        return []
    return [Path(name) for name in names]


def _is_folder_of_code(path: Path) -> bool:
    return path.is_dir() and any(file.suffix in _CODE_FILES for file in path.rglob("*"))


def _run_files(paths: Sequence[Path], arguments: argparse.Namespace) -> int:
    """What files of machine code say of themselves."""
    from profiler.documents import examine_files

    document = examine_files(paths, arches=arguments.arch, with_lines=arguments.lines)
    _write_sarif(document, arguments)
    if arguments.swizzle:
        print(
            "profiler: --swizzle: a file of code says nothing of its launch: name a version", file=sys.stderr
        )
    return print_document(document, arguments, print_files)


def _write_sarif(document: StaticDocument | CodeFilesDocument, arguments: argparse.Namespace) -> None:
    if arguments.sarif:
        from profiler.documents import sarif_log

        log = json.dumps(sarif_log(document), indent=1) + "\n"
        write_bytes(log.encode(), arguments.sarif, "--sarif")


def print_files(document: CodeFilesDocument, arguments: argparse.Namespace) -> None:
    """A row a function, what one more block asks for, and what is not known."""
    header = (
        "file",
        "function",
        "arch",
        "regs",
        "live",
        "stack",
        "LDL/STL",
        "shared",
        "threads",
        "occupancy",
    )
    rows = [
        [
            function.file,
            function.function if len(function.function) <= _LONGEST_NAME else function.name,
            function.arch or _UNKNOWN,
            _known(function.registers),
            _known(function.live_registers),
            _known(function.stack_bytes),
            _known(function.local_accesses),
            _known(function.shared_bytes),
            _known(function.threads),
            _UNKNOWN if function.occupancy is None else f"{function.occupancy.pct:.1f} %",
        ]
        for function in document.functions
    ]
    print_table(
        (*header, "highest"),
        [[*row, f.live_words] for row, f in zip(rows, document.functions, strict=True)],
        right=range(3, 10),
    )
    for sentence in document.sentences:
        print(sentence)
    if arguments.lines:
        for function in document.functions:
            if function.live and function.live.by_line:
                print(f"\n{function.file} {function.name}: live registers by source line")
                for (file, line), count in sorted(function.live.by_line.items()):
                    print(f"  {count:4} {Path(file).name}:{line}")


def _known(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def print_text(document: StaticDocument, arguments: argparse.Namespace) -> None:
    """A row a function and architecture; local loads and stores only where there are any."""
    if not document.examined:
        return
    functions = document.functions
    codes = [function.code for function in functions if function.code]
    has_local = any(code.classes[opcode] for code in codes for opcode in _LOCAL)
    opcodes = (*_OPCODES, *(_LOCAL if has_local else ()))
    header = ("version", "arch", "d", "regs", "spill", "stack", "shared", "occupancy", "limited by")
    numbers = (2, 3, 4, 5, 6, 7, *range(9, 9 + len(opcodes)))
    rows = [_row(function, opcodes) for function in functions]
    print_table((*header, *opcodes, "over budget"), rows, right=numbers)
    if document.near_blocks:
        print()
    for function, following in document.near_blocks:
        label = "" if function.head_dim is None else f" d={function.head_dim}"
        print(f"{function.version.id}{label} {function.arch}: {following.words}")
    for lines in document.lines:
        _print_lines(lines, arguments)


def _print_lines(function: FunctionLines, arguments: argparse.Namespace) -> None:
    """The lines that have an access, or the most live registers; and the swizzle."""
    from profiler.documents.code_lines import swizzle_words

    label = "" if function.head_dim is None else f" d={function.head_dim}"
    print(f"\n{function.version}{label} {function.arch}: {function.live.words}", end="")
    print(f"; not run: {function.not_run}" if function.not_run else f"; run on {_label(function)}")
    if function.swizzle:
        print(f"swizzle: {swizzle_words(function.swizzle)}")
    if not arguments.lines:
        return
    most = function.live.highest_line
    shown = [x for x in function.lines if x.sectors or x.wavefronts or (x.file, x.line) == most]
    rows = [
        [
            line.place,
            str(line.live_registers),
            *map(_known, (line.sectors, line.excess_sectors, line.wavefronts, line.conflicts)),
        ]
        for line in shown
    ]
    header = ("line", "live regs", "sectors", "excess", "wavefronts", "conflicts")
    print_table(header, rows, right=range(1, 6))


def _label(function: FunctionLines) -> str:
    return function.workload.label if function.workload else _UNKNOWN


def _row(function: FunctionResources, opcodes: Sequence[str]) -> list[str]:
    usage, occupancy, code = function.usage, function.occupancy, function.code
    shared = function.most_shared_bytes
    name = function.version.id if function.role == "main" else f"{function.version.id} {function.role}"
    return [
        name if function.version.state == "good" else f"{name} ({function.version.state})",
        function.arch,
        "any" if function.head_dim is None else str(function.head_dim),
        str(usage.registers),
        str(usage.spill_bytes),
        str(usage.stack_bytes),
        "unknown" if shared is None else f"{shared / 1024:.1f} KB",
        "unknown" if occupancy is None else f"{occupancy.pct:.1f} %",
        "" if occupancy is None else ", ".join(occupancy.limiters),
        *("?" if code is None else str(code.classes[opcode]) for opcode in opcodes),
        "; ".join((*function.over_budget, *function.unjudged)),
    ]
