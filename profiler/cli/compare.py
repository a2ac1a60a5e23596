"""`profiler compare`: what differs between two versions, runs or plain report files, or many and one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_across,
    add_evidence,
    add_filters,
    add_json,
    add_metrics,
    add_pairing,
    ask,
    destination,
    note_forgotten,
    print_document,
    write_document,
)
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents.document import Document

_SUFFIXES = (".csv", ".parquet", ".md", ".json")
_FOR_TWO_NAMES = {"--top": "top", "--fail": "fail", "--all": "all"}  # options that a table does not take

_OPTIONS_OF_LAUNCHES = {
    "workload": "workload",
    "across": "across",
    "pairs": "pair",
}  # and how each is written

_DESCRIPTION = """\
Compare B with A: latency of calls by mode, counters launch by launch. A and B are report files (no data
folder is read then), run ids, family/version, or a version whose name is unique, looked up in this order.
version~RUN_ID is a version as one run has it.

Latencies of versions that one run timed in alternating rounds are judged by comparing them round by round;
latencies of two runs by the noise floor of the GPU. Without a noise floor they are unclear.

Kernels of the same name pair; kernels that cannot be paired are listed. Kernels with different names pair
where --pair or `profiler decide pair` says so. Where it is safe a pair is proposed, as for gemm_v6 and
gemm_v7, and marked as a proposal; --no-guess refuses it. ncu's duration is measured under the profiler and is
not latency: a launch under 50 µs that moved is unclear, not worse. Without a declared workload or pair, a
changed grid with the same code is another workload, and not comparable.

If the two versions were not both measured, their static and their modelled facts are compared, each kind
separately, on every workload and architecture that both have; --evidence, --workload and --gpu select. A
version with wrong results gets no time and no verdict: it is shown as wrong.

Two builds of machine code (cubins, libraries, wheels, folders of these) are compared function by function, as
`profiler changes` does; --gpu is then an architecture.

Three or more names, or --against BASE: a table of all of them against BASE, by default the first. It has the
time on every workload and GPU, then counters and facts (--metrics), all judged as one table. A run
contributes all its versions. Versions that are wrong or were not measured come last, with the reason, or the
command that measures them."""

_EPILOG = """\
exit codes: 0; 2 if an input cannot be read or used; 3 for a version without results, or if a side has only
kernels of libraries. With --fail, the answer of `profiler gate B
--baseline A` for these two sides, with the reason and what would settle it: 0 nothing got worse · 1
something did (one launch per side is enough) · 3 could not judge: unclear, missing, not comparable, or
nothing was compared. Time decides, then exact counts and facts; a noisy counter decides only if --on names
it, and is unclear there without A/A pairs. --top does not change the exit code."""


def add(commands: Commands) -> None:
    """Add `compare`."""
    compare = commands.add_parser(
        "compare",
        help="what differs between two versions, runs or report files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument(
        "names", nargs="+", metavar="NAME", help="A (the baseline) and B; or more, for a table"
    )
    compare.add_argument("--against", metavar="BASE", help="make a table of all names against this one")
    add_metrics(compare, "which counters and facts the table has")
    compare.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="also write this file: .csv, .parquet, .md or .json (repeatable); CSV and Parquet "
        "have one row per number, with its state, verdict and interval",
    )
    shape = compare.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument(
        "--all", action="store_true", help="print every metric of every pair, not only what moved"
    )
    add_filters(compare, "kernel", "top", "workload", "gpu")
    add_evidence(compare)
    add_across(compare)
    add_pairing(compare)
    compare.add_argument(
        "--fail", action="store_true", help="judge as `profiler gate` does, and make the result the exit code"
    )
    compare.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="CONCEPT",
        help="with --fail: also judge this concept (repeatable)",
    )
    compare.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, write, and with --fail judge."""
    from profiler.build.code_images import is_code
    from profiler.documents.comparison import compare_names

    if arguments.on and not arguments.fail:
        raise ProfilerError("--on selects what --fail judges: add --fail, or leave --on out")
    files = [destination(name, _SUFFIXES) for name in arguments.out]
    if arguments.against is not None or len(arguments.names) > 2:
        return _run_table(arguments, files)
    if len(arguments.names) < 2:
        raise ProfilerError("compare needs two names: add one, or --against BASE")
    if arguments.metrics:
        raise ProfilerError("--metrics needs three or more names, or --against BASE")
    a, b = arguments.names
    if is_code(a) and is_code(b):
        return _run_code(arguments, files)
    document = ask(compare_names, arguments, a=a, b=b, with_gate=arguments.fail)
    if not arguments.fail:
        note_forgotten(arguments, a, b)
    _write(document, files)
    return print_document(document, arguments)


def _run_code(arguments: argparse.Namespace, files: Sequence[Path]) -> int:
    """Compare two builds of machine code: what changed in which function; with --fail as a gate judges."""
    from profiler.documents.changes import code_changes
    from profiler.documents.gate import gate_versions

    a, b = arguments.names
    if unused := [name for name in _OPTIONS_OF_LAUNCHES if getattr(arguments, name)]:
        raise ProfilerError(f"--{_OPTIONS_OF_LAUNCHES[unused[0]]} does not go with machine code")
    document: Document
    if arguments.fail:
        document = ask(gate_versions, arguments, names=[b], baseline=a)
    else:
        document = ask(code_changes, arguments, old=a, new=b, arch=arguments.gpu)
    _write(document, files)
    code = print_document(document, arguments)
    return code if arguments.fail or code is not Exit.REGRESSION else Exit.PASS


def _run_table(arguments: argparse.Namespace, files: Sequence[Path]) -> int:
    """Compare many with one."""
    from profiler.documents.version_table_cells import compare_many

    for option, name in _FOR_TWO_NAMES.items():
        if getattr(arguments, name):
            raise ProfilerError(
                f"{option} works only with two names: `profiler gate NAME… --baseline BASE` judges many"
                if option == "--fail"
                else f"{option} works only with two names; a table takes --metrics, --workload and --kernel"
            )
    document = ask(compare_many, arguments)
    note_forgotten(arguments, *arguments.names, arguments.against)
    _write(document, files)
    return print_document(document, arguments)


def _write(document: Document, files: Sequence[Path]) -> None:
    for path in files:
        write_document(document, path)
