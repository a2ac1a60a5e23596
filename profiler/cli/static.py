"""`profiler static`: facts of versions and files of code; their libraries, or a run for the dashboard."""

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
    build,
    print_failures,
    print_not_built,
    progress,
    trusted_catalog,
)
from profiler.cli.dissect import dissect
from profiler.cli.output import add_json, print_document, write_bytes
from profiler.documents.declared import SHARED
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents.code_files import CodeFilesDocument
    from profiler.documents.static import StaticDocument

_DESCRIPTION = """\
Facts about each kernel function from the compiler and the machine code, without a GPU: registers, spills,
stack, shared memory, opcodes (static counts, unreachable code excluded) and
theoretical occupancy. Block size and dynamic shared memory are not in the binary; they are taken from the
launch that the CPU check sees. Each version is judged against its own budget. In --json some opcodes
include others: MUFU includes MUFU.EX2, LDG and STG their .128, LDSM its .T; do not add them up. In place of
versions it takes files of machine code: cubins, libraries, reports, or a folder of cubins such as Triton's
cache. What a file does not say is "not known".

--check also runs `profiler check` and keeps the results of both as one run: static facts of each kernel
function, modelled facts of each workload, the sources, and shared-memory traffic by source line. The
dashboard shows the run at once. It goes into the data folder (PROFILER_DATA, else data/), or with --out as a
bundle into another folder.

--build-only compiles with nvcc, each version to its own shared library, several at once, and prints no facts.
nvcc is taken from $CUDA_HOME, the PATH, or the wheels of the extra `build`. A library that exists (same
source, headers, flags and compiler) is not built again. Libraries are kept in $PROFILER_BUILD, by default
build/ of a checkout, or the user's cache where pip installed the package."""

_EPILOG = """\
exit codes: 0 all within budget · 1 a good version is over its budget, with --check also: is wrong, or a
rejected one is not caught · 2 a version does not compile · 3 a tool is missing (nvcc, cuobjdump, nvdisasm,
g++), a fact that has a budget is not known, or there is nothing to build; with --check nothing was kept.
A run that is kept records what is wrong as wrong."""

# What takes which option: the facts that are printed, their libraries alone, or the run that is kept.
_OF_FILES = ("kernel", "block", "shared", "carveout")
_TAKEN_BY = {
    **dict.fromkeys(("lines", "swizzle", "sarif", *_OF_FILES), ""),
    "out": "check",
    "stage": "build_only",
}
_CODE_FILES = (".cubin", ".ncu-rep", ".ncu-repz", ".so", ".fatbin", ".o", ".ptx")


def add(commands: Commands) -> None:
    """Add `static`."""
    command = commands.add_parser(
        "static",
        help="registers, spills, opcodes, occupancy, without a GPU",
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
        help="also run the machine code: live registers, excess sectors and bank conflicts by source line; "
        "for files, whatever their size, by following addresses",
    )
    command.add_argument("--kernel", metavar="PATTERN", help=f"of files: {SHARED['kernel']}")
    command.add_argument(
        "--block",
        metavar="X[,Y[,Z]]",
        help="of files: threads per block (default: what the code, or Triton, states)",
    )
    command.add_argument(
        "--shared", type=int, metavar="BYTES", help="of files: dynamic shared memory per block"
    )
    command.add_argument(
        "--carveout",
        type=int,
        metavar="KB",
        help="of files: an SM's shared memory is set to so much, as by "
        "cudaFuncAttributePreferredSharedMemoryCarveout (default: all of it)",
    )
    command.add_argument(
        "--swizzle",
        action="store_true",
        help="find the smallest XOR swizzle without bank conflicts; for files the pad too",
    )
    command.add_argument(
        "--sarif", type=Path, metavar="FILE", help="write what is wrong as SARIF 2.1.0, for code scanning"
    )
    command.add_argument("--check", action="store_true", help="check on the CPU too, and keep both as a run")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="with --check: a folder for the bundle, such as data/runs"
    )
    command.add_argument(
        "--build-only", action="store_true", help="compile to shared libraries, without facts"
    )
    command.add_argument(
        "--stage",
        metavar="STAGE",
        help="with --build-only: only this stage (attention: QK, SOFTMAX or PV)",
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Build, take apart, print, judge; or build alone, or keep a run."""
    _refuse_options(arguments)
    if arguments.build_only:
        return build(arguments)
    if arguments.check:
        return dissect(arguments)
    if paths := _paths(arguments.versions):
        return _run_files(paths, arguments)
    if given := next((name for name in _OF_FILES if getattr(arguments, name) is not None), None):
        raise ProfilerError(f"--{given} is for files of machine code, not for versions")
    from profiler.documents.static import examine_versions

    trusted_catalog(arguments)
    options = {"catalog": arguments.catalog, "arches": arguments.arch, "jobs": arguments.jobs}
    options |= {"with_lines": arguments.lines or bool(arguments.sarif), "with_swizzle": arguments.swizzle}
    document = examine_versions(arguments.versions, **options, progress=progress())
    _write_sarif(document, arguments)
    print_document(document, arguments, everything=arguments.lines)
    print_failures(document.failures)
    if not document.examined:
        print_not_built(document.not_built)
    elif not document.failures:
        for words in document.missing:
            print(f"profiler: {words}", file=sys.stderr)
    return document.exit_code


def _refuse_options(arguments: argparse.Namespace) -> None:
    """Raise ProfilerError for an option that does not go with what is asked for."""
    if arguments.check and arguments.build_only:
        raise ProfilerError("--build-only does not go with --check")
    mode = "check" if arguments.check else "build_only" if arguments.build_only else ""
    for option, needed in _TAKEN_BY.items():
        if getattr(arguments, option) not in (None, False) and needed != mode:
            flag = f"--{(needed or mode).replace('_', '-')}"
            raise ProfilerError(f"--{option} {'needs' if needed else 'does not go with'} {flag}")


def _paths(names: Sequence[str]) -> list[Path]:
    """The names as paths, where the first is one: a file of code, a report, or a folder with a separator."""
    if not names:
        return []
    first = Path(names[0])
    if not (
        first.suffix in _CODE_FILES or os.sep in names[0] or names[0] == "." or _is_folder_of_code(first)
    ):
        from profiler.build.code_images import is_code  # here: versions need none of it

        if not (first.is_file() and is_code(names[0])):
            return []
    return [Path(name) for name in names]


def _is_folder_of_code(path: Path) -> bool:
    return path.is_dir() and any(file.suffix in _CODE_FILES for file in path.rglob("*"))


def _run_files(paths: Sequence[Path], arguments: argparse.Namespace) -> int:
    """What files of machine code say of themselves."""
    from profiler.documents.code_files import AskedLaunch, examine_files
    from profiler.model.dimensions import parse_dimensions

    block = parse_dimensions(arguments.block) if arguments.block else None
    asked = AskedLaunch(block, arguments.shared, arguments.carveout)
    document = examine_files(
        paths,
        arches=arguments.arch,
        with_lines=arguments.lines,
        with_swizzle=arguments.swizzle,
        asked=asked,
        kernel=arguments.kernel,
    )
    _write_sarif(document, arguments)
    return print_document(document, arguments, everything=arguments.lines)


def _write_sarif(document: StaticDocument | CodeFilesDocument, arguments: argparse.Namespace) -> None:
    if arguments.sarif:
        from profiler.documents.sarif import sarif_log

        log = json.dumps(sarif_log(document), indent=1) + "\n"
        write_bytes(log.encode(), arguments.sarif, "--sarif")
