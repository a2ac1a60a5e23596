"""`profiler static`: how static facts are printed, and what a broken budget means for the exit code."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from profiler.cli.build import (
    add_arches,
    add_jobs,
    add_versions,
    left_out,
    progress,
    tell_failures,
    tell_left_out,
)
from profiler.cli.output import add_json, print_json, print_table
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.build import FailedBuild, FunctionResources, VersionResources
    from profiler.cli.output import Commands

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

_SHOWN = ("HMMA", "FFMA", "MUFU.EX2", "LDSM", "LDGSTS", "LDS", "STS", "SHFL", "BAR")
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
    from profiler.build import FailedBuild, VersionResources, version_resources
    from profiler.catalog import catalog
    from profiler.emulator import cpu_check

    lineage = catalog.load_catalog(arguments.catalog)
    chosen = lineage.pick(arguments.versions)
    examined = list(
        version_resources(
            lineage,
            chosen,
            arguments.arch,
            launch_configs=cpu_check.launch_configs,
            progress=progress(),
            jobs=arguments.jobs,
        )
    )
    found = [one for one in examined if isinstance(one, VersionResources)]
    failed = [one for one in examined if isinstance(one, FailedBuild)]
    if arguments.json:
        print_json(document(found, failed))
    elif examined:
        print_functions(found)
    if not examined:
        return tell_left_out(left_out(chosen, arguments.arch))
    return tell_failures(failed) or _judge(found)


def document(found: list[VersionResources], failed: list[FailedBuild]) -> dict[str, object]:
    """The functions for JSON, and the versions that do not compile."""
    return {
        "versions": [function.as_json() for function in _all(found)],
        "failed": [{"version": one.version, "error": one.error} for one in failed],
    }


def print_functions(found: list[VersionResources]) -> None:
    """A row a function and architecture; local loads and stores only where there are any."""
    header = ("version", "arch", "d", "regs", "spill", "stack", "shared", "occupancy", "limited by")
    local = any(function.code and function.code.classes[name] for name in _LOCAL for function in _all(found))
    shown = (*_SHOWN, *(_LOCAL if local else ()))
    rows = [_row(function, shown) for function in _all(found)]
    print_table((*header, *shown, "over budget"), rows, right=(2, 3, 4, 5, 6, 7, *range(9, 9 + len(shown))))


def _all(found: list[VersionResources]) -> list[FunctionResources]:
    return [function for one in found for function in one.functions]


def _row(function: FunctionResources, shown: tuple[str, ...]) -> list[str]:
    resources, fits, code = function.usage, function.occupancy, function.code
    shared = function.most_shared_bytes
    name = function.version.id if function.role == "main" else f"{function.version.id} {function.role}"
    return [
        name if function.version.state == "good" else f"{name} ({function.version.state})",
        function.arch,
        "any" if function.head_dim is None else str(function.head_dim),
        str(resources.registers),
        str(resources.spill_bytes),
        str(resources.stack_bytes),
        "unknown" if shared is None else f"{shared / 1024:.1f} KB",
        "unknown" if fits is None else f"{fits.pct:.1f} %",
        "" if fits is None else ", ".join(fits.limiters),
        *("?" if code is None else str(code.classes[one]) for one in shown),
        "; ".join((*function.over_budget, *function.unjudged)),
    ]


def _judge(found: list[VersionResources]) -> Exit:
    for words in dict.fromkeys(words for one in found for words in one.missing):
        print(f"profiler: {words}", file=sys.stderr)
    good = [function for function in _all(found) if function.version.state == "good"]
    if any(function.over_budget for function in good):
        return Exit.REGRESSION
    unknown = any(one.missing for one in found) or any(function.unjudged for function in good)
    return Exit.UNJUDGED if unknown else Exit.PASS
