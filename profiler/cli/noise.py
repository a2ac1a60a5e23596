"""`profiler noise`: A/A pairs, by which runs of different days are judged: collecting and listing them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.build import add_catalog, trusted_catalog
from profiler.cli.collect import INTERRUPTED, split_list
from profiler.cli.output import add_json, positive, print_document
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.catalog.catalog import Catalog
    from profiler.cli.output import Commands
    from profiler.collect.collection import Collection, Listener
    from profiler.collect.settings import Settings

_DESCRIPTION = """\
How far do two runs of the same build lie apart on this GPU? Each pair is two sessions of the version, each in
a fresh process, as far apart in time as the collection allows. With 20 pairs or more, two runs from different
days can be judged; without them, compare and gate call such runs unclear. With 50, smaller changes show. A
floor holds for one GPU, driver, mode (timer, cache, clocks), kernel family and length of call: short (under
100 µs), medium, long (1 ms and more). Pairs of several noise runs add up. Process sd is the standard
deviation from session to session.

With the default of three workloads, 50 pairs take 100 processes and about ten minutes. After Ctrl-C or a
kill, --resume does what is missing, and --seal keeps the pairs collected so far."""

_EPILOG = """\
exit codes: 0 pairs were collected, or listed · 1 a version is wrong, or failed · 2 wrong arguments ·
3 nothing could be measured: no GPU · 130 interrupted"""


def add(commands: Commands) -> None:
    """Add `noise`."""
    command = commands.add_parser(
        "noise",
        help="collect A/A pairs on this machine's GPU, or list the noise floors",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("versions", nargs="*", metavar="VERSION", help="correct versions to measure")
    add_catalog(command)
    command.add_argument(
        "--workloads",
        metavar="LIST",
        help="labels, comma-separated (default: the headline, one of middle size and the largest)",
    )
    command.add_argument(
        "--pairs", type=positive, default=50, metavar="N", help="A/A pairs per workload (default: 50)"
    )
    command.add_argument(
        "--rounds", type=positive, default=25, metavar="N", help="rounds per session (default: 25)"
    )
    command.add_argument(
        "--samples", type=positive, default=4, metavar="N", help="samples per round (default: 4)"
    )
    command.add_argument(
        "--budget", metavar="TIME", help="time limit, such as 8m; all workloads get equally many pairs"
    )
    command.add_argument("--resume", metavar="RUN", help="continue an unfinished run, or the `last`")
    command.add_argument(
        "--seal", action="store_true", help="with --resume: keep the pairs so far, measure nothing"
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE.zip",
        help="also write one file of at most 12 MB, updated during the run",
    )
    command.add_argument("--list", action="store_true", help="list the floors, and those that are missing")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """List; or measure, seal, print."""
    from profiler.cli.collecting import TerminalListener, print_sealed
    from profiler.cli.output import open_store
    from profiler.collect.measurement import CollectionLimits, local_root, measure
    from profiler.documents.noise import floors_of_run, list_noise_floors

    if arguments.list:
        return print_document(list_noise_floors(open_store()), arguments)
    limits, root = CollectionLimits.parse(arguments.budget, arguments.out), local_root()
    collection = _open(arguments, TerminalListener("noise", arguments))
    sealed = measure(collection, root, limits, seal_only=arguments.seal)
    if sealed is None:
        return INTERRUPTED
    print_sealed(sealed, arguments.json)
    return print_document(floors_of_run(sealed.run), arguments)


def _open(arguments: argparse.Namespace, listener: Listener) -> Collection:
    from profiler.collect.measurement import begin_collection, local_root, resume_collection

    if not (arguments.versions or arguments.resume):
        raise ProfilerError("which version? `profiler noise VERSION`, or `profiler noise --list`")
    if arguments.resume:
        return resume_collection(
            local_root(), arguments.resume, listener, seal_only=arguments.seal, need_gpu=True
        )
    if arguments.seal:
        raise ProfilerError("--seal needs --resume RUN: a run that begins now has nothing to keep")
    catalog = trusted_catalog(arguments)
    return begin_collection(local_root(), catalog, _settings(arguments, catalog), listener)


def _settings(arguments: argparse.Namespace, catalog: Catalog) -> Settings:
    from profiler.collect.settings import noise_settings, publishable_command_line

    workloads = split_list(arguments.workloads or "")
    return replace(
        noise_settings(catalog, arguments.versions, workloads=workloads, pairs=arguments.pairs),
        rounds=arguments.rounds,
        samples=arguments.samples,
        command_line=publishable_command_line(["profiler", *sys.argv[1:]]),
    )
