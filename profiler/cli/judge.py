"""`profiler judge`: whether a candidate is right, what it costs, and whether it is better than another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Check an untrusted kernel: is it correct, and how fast? It is a folder with candidate.toml and CUDA C++, PTX
or a cubin, or a version of the catalogue. Its host code never runs. It is compiled in isolation, its binary
is scanned, and its machine code is run on the CPU, on random shapes and inputs and on blocks of the
acceptance shapes; then its time is modelled. What cannot be determined is unknown, and never passes."""

_EPILOG = """\
examples:
  profiler judge my_kernel/                     is it correct, and how long would it take on an H100
  profiler judge my_kernel/ --against v2d_b     and is it faster, by more than the model's error
  profiler judge my_kernel/ --json --seed 7     the same shapes and inputs again

a candidate.toml of a kernel attend<64> and attend<128>:
  family = "attention"
  sources = ["attend.cu"]                       # left out: the only .cu, .ptx or .cubin
  takes = { head_dim = [64, 128] }              # left out: every head_dim
  kernel = "attend<{head_dim}>"                 # of several launches a [[launch]] each, from here on
  grid = ["ceil_div(len_q, 64)", "heads", "batch"]
  block = 128
  shared_bytes = "2 * 64 * head_dim * 2"        # dynamic
  arguments = ["q", "k", "v", "o", "len_q", "len_kv", "scale", "causal"]

exit codes: 0 valid · 1 not valid, or worse · 2 a name is unknown · 3 unknown, or no isolation here"""


def add(commands: Commands) -> None:
    """Add `judge`."""
    command = commands.add_parser(
        "judge",
        help="check an untrusted kernel: correct, how fast, faster than another?",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("candidate", metavar="CANDIDATE", help="a folder with candidate.toml, or a version")
    command.add_argument(
        "--against", metavar="ELITE", help="another candidate or version, which it should beat"
    )
    command.add_argument("--catalog", type=Path, metavar="FILE", help="another catalog.toml")
    command.add_argument("--gpu", metavar="GPU", help="H100-SXM (default), A100-80GB, L4 …")
    command.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="LABEL",
        help="only this workload (repeatable; default: the acceptance workloads)",
    )
    command.add_argument(
        "--seed", type=int, metavar="N", help="seed of the shapes and inputs (default: random)"
    )
    command.add_argument(
        "--trust", action="store_true", help="run without isolation: only for code that you wrote"
    )
    command.add_argument(
        "--no-gpu", action="store_true", help="model the time even if this machine has the GPU"
    )
    command.add_argument(
        "--keep", type=Path, metavar="DIR", help="write machine code, listing and resources to this folder"
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge, print."""
    from profiler.documents.judgement import judge_name
    from profiler.evidence.gpu_parts import DEFAULT_PART

    document = judge_name(
        arguments.candidate,
        arguments.against,
        catalog=arguments.catalog,
        gpu=arguments.gpu or DEFAULT_PART,
        workloads=arguments.workload,
        seed=arguments.seed,
        trust=arguments.trust,
        measured=not arguments.no_gpu,
        keep=arguments.keep,
        progress=_progress,
    )
    return print_document(document, arguments)


def _progress(stage: str, what: str) -> None:
    """A line on stderr for each stage as it ends."""
    from profiler.cli.output import printable

    print(f"{stage}: {printable(what)[:160]}", file=sys.stderr, flush=True)
