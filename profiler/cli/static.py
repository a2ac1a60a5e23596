"""`profiler static`: how static facts are printed, and what a broken budget means for the exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
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
from profiler.cli.output import add_json, print_document, print_table

if TYPE_CHECKING:
    from profiler.build import FunctionResources
    from profiler.cli.output import Commands
    from profiler.documents import StaticDocument

_DESCRIPTION = """\
What the compiler and the machine code say of each kernel function, with no GPU: registers, spills, stack,
shared memory, opcodes (sites, not executions; what never executes left out) and theoretical occupancy.
Block size and dynamic shared memory are not in the binary: they are those of the launch that the CPU check
sees. Each version is judged against its own budget. In --json the opcodes have parts beside the whole: MUFU
counts MUFU.EX2 too, LDG and STG their .128, LDSM its .T; do not add them up."""

_EPILOG = """\
exit codes: 0 all within budget · 1 a good version is over its budget · 2 a version does not compile ·
3 a tool is missing (nvcc, cuobjdump, nvdisasm, g++), a fact that has a budget is not known, or nothing to
build"""

_OPCODES = ("HMMA", "FFMA", "MUFU.EX2", "LDSM", "LDGSTS", "LDS", "STS", "SHFL", "BAR")
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
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Build, take apart, print, judge."""
    from profiler.documents import examine_versions

    trusted_catalog(arguments)
    options = {"catalog": arguments.catalog, "arches": arguments.arch, "jobs": arguments.jobs}
    document = examine_versions(arguments.versions, **options, progress=progress())
    print_document(document, arguments, print_text)
    print_failures(document.failures)
    if not document.examined:
        print_not_built(document.not_built)
    elif not document.failures:
        for words in document.missing:
            print(f"profiler: {words}", file=sys.stderr)
    return document.exit_code


def print_text(document: StaticDocument, _arguments: argparse.Namespace) -> None:
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
