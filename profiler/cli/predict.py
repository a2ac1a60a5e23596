"""`profiler predict`: modelled times of versions and reports, and what changes would do."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from profiler.cli.build import add_jobs, add_versions, arch, progress, trusted_catalog
from profiler.cli.output import add_json, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents.prediction import GivenLaunch

_DESCRIPTION = """\
How long a version would take on a GPU that you do not have: its machine code is run on the CPU for counts and
addresses, and one SM is simulated cycle by cycle. For report files, the launches of the report from their own
counts, beside the measured time. Every time is modelled, with the range that held eight of ten public
launches; a difference is unclear under 15 %, or where its range includes 1. Atomics, wgmma, TMA and clusters
have no model yet."""

_EPILOG = """\
examples:
  profiler predict                              # every good version on the acceptance workloads, on an H100
  profiler predict v2d_c --gpu L4 --set WARPS=8 # would 128-row tiles help there?
  profiler predict v2d_b --against v2d_a --workload 1x8x512x64
  profiler predict report.ncu-rep               # what the model says about measured launches
  profiler predict add.cubin --grid 1024 --block 256 --arg f32[262144] --arg f32[262144] --arg i32=262144

exit codes: 0 something was predicted · 2 a name is unknown · 3 nothing could be predicted, or nvcc or g++
is missing"""


def add(commands: Commands) -> None:
    """Add `predict`."""
    command = commands.add_parser(
        "predict",
        help="modelled time without a GPU: how fast, what limits it, what would help",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    command.add_argument(
        "--against", metavar="VERSION", help="compare with this version (default: the parent of each)"
    )
    command.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="LABEL",
        help="only this workload (repeatable; default: the acceptance workloads)",
    )
    command.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="GPU",
        help="H100-SXM (default), A100-80GB, L4 … (repeatable)",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        dest="macros",
        metavar="NAME=VALUE",
        help="build with another value of a macro of the source, and compare with the version as it is",
    )
    command.add_argument(
        "--what-if",
        action="store_true",
        help="also predict, for every row: no bank conflicts, half the shared-memory wavefronts, one more "
        "block per SM (always done for one version)",
    )
    code = command.add_argument_group("the launch of a file of machine code (cubin, library)")
    code.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks of the grid")
    code.add_argument(
        "--block",
        metavar="X[,Y[,Z]]",
        help="threads per block (default: what the code states; needed if it states none)",
    )
    code.add_argument(
        "--arg",
        action="append",
        default=[],
        dest="arguments",
        metavar="TYPE[N]|TYPE=VALUE",
        help="an argument, in order: f16[4096] an array, i32[2]=7,9 an array with these values, i32=512 a "
        "scalar",
    )
    code.add_argument("--shared", type=int, metavar="BYTES", help="dynamic shared memory per block")
    code.add_argument("--kernel", metavar="NAME", help="the kernel, if the file has several")
    code.add_argument("--arch", type=arch, metavar="SM", help="the architecture, if the file has several")
    add_jobs(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Predict, print."""
    from profiler.documents.prediction import predict_names

    trusted_catalog(arguments)
    with _stopped_by_sigterm():
        document = predict_names(
            arguments.versions,
            launch=_given_launch(arguments),
            catalog=arguments.catalog,
            against=arguments.against,
            workloads=arguments.workload,
            gpus=arguments.gpu,
            macros=arguments.macros,
            with_what_ifs=arguments.what_if,
            jobs=arguments.jobs,
            progress=progress(),
        )
    return print_document(document, arguments)


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM, which `timeout` and CI send, does what Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _given_launch(arguments: argparse.Namespace) -> GivenLaunch | None:
    """The launch of a file of machine code, where one was given. Raises UnknownName for a part of one."""
    from profiler.documents.prediction import GivenLaunch
    from profiler.errors import UnknownName

    if arguments.grid is None:
        others = ("block", "arguments", "shared", "kernel", "arch")
        if any(getattr(arguments, name) not in (None, []) for name in others):
            raise UnknownName("a launch needs --grid, and goes with a file of machine code only")
        return None
    if arguments.shared is not None and arguments.shared < 0:
        raise UnknownName(f"--shared {arguments.shared} is not a number of bytes")
    return GivenLaunch(
        arguments.grid,
        arguments.block,
        tuple(arguments.arguments),
        arguments.shared,
        arguments.kernel,
        arguments.arch,
    )
