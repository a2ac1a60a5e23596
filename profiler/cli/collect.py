"""`profiler collect`: how a measurement is asked for, and what is said of the run that it leaves."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.build import INTERRUPTED, add_versions, split_list, trusted_catalog
from profiler.cli.output import add_json, positive, print_document
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.catalog.catalog import Catalog
    from profiler.cli.output import Commands
    from profiler.collect.collection import Collection, Listener
    from profiler.collect.settings import Settings

# Options that A/A pairs do not take.
_NOT_FOR_NOISE = (
    *("against", "processes", "full", "sanitize", "no_counters", "no_model", "keep_session", "dry_run"),
    *("clock_control", "cache_control"),
)
_DESCRIPTION = """\
Measure versions on this machine's GPU: correctness, latency of a call, and Nsight's counters. Every job runs
in its own process and is kept as soon as it ends: after Ctrl-C or a kill, --resume does what is missing, and
--seal keeps the run as it is. Without ncu, or without permission to read counters, latency is still measured;
without a GPU the static and modelled facts are still collected.

--noise collects A/A pairs instead: how far do two runs of the same build lie apart on this GPU? Each pair is
two sessions of the version, each in a fresh process, as far apart in time as the collection allows. With 20
pairs or more, two runs from different days can be judged; without them, compare and gate call such runs
unclear. With 50, smaller changes show. A floor holds for one GPU, driver, mode (timer, cache, clocks), kernel
family and length of call: short (under 100 µs), medium, long (1 ms and more). Pairs of several noise runs add
up; `profiler list noise` lists the floors. Process sd is the standard deviation from session to session. With
the default of three workloads, 50 pairs take 100 processes and about ten minutes."""

_EPILOG = """\
exit codes: 0 everything that was asked for, or that machine and budget allow (what was left out is listed) ·
1 a good version is wrong, or its cell failed · 2 wrong arguments · 3 nothing could be measured ·
130 interrupted"""


def add(commands: Commands) -> None:
    """Add `collect`."""
    command = commands.add_parser(
        "collect",
        help="measure versions on this machine's GPU, resumable",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    command.add_argument(
        "--workloads",
        metavar="LIST",
        help="labels, comma-separated: 1x8x512x64, 2x8x2048x64 causal (default: all five, and in fp8 "
        "where a version takes it; with --noise the headline, one of middle size and the largest)",
    )
    command.add_argument(
        "--against",
        metavar="LIST",
        default="",
        help="further versions to measure in the same rounds, such as sdpa,sdpa_flash",
    )
    command.add_argument(
        "--rounds", type=positive, default=25, metavar="N", help="alternating rounds (default: 25)"
    )
    command.add_argument(
        "--samples", type=positive, default=4, metavar="N", help="samples per round (default: 4)"
    )
    command.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="processes for the rounds (default: one per round, fewer if time is short, at least 5)",
    )
    command.add_argument(
        "--budget",
        metavar="TIME",
        help="time limit, such as 8m: most valuable first, the rest is listed; with --noise all "
        "workloads get equally many pairs",
    )
    command.add_argument(
        "--full", metavar="LIST", default="", help="versions to capture in full, on the first workload"
    )
    command.add_argument(
        "--sanitize", metavar="LIST", default="", help="versions to run under compute-sanitizer, or all"
    )
    command.add_argument("--no-counters", action="store_true", help="measure latency only")
    command.add_argument("--no-model", action="store_true", help="leave out the check on the CPU")
    command.add_argument("--clock-control", choices=("none", "base", "boost"), default="none", help="of ncu")
    command.add_argument("--cache-control", choices=("none", "all"), default="none", help="of ncu")
    command.add_argument(
        "--keep-session", action="store_true", help="keep host name, user and paths in reports"
    )
    command.add_argument("--noise", action="store_true", help="collect A/A pairs of correct versions instead")
    command.add_argument(
        "--pairs", type=positive, metavar="N", help="with --noise: A/A pairs per workload (default: 50)"
    )
    command.add_argument("--resume", metavar="RUN", help="continue an unfinished run, or the `last`")
    command.add_argument(
        "--seal", action="store_true", help="with --resume: keep the run as it is, measure nothing"
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE.zip",
        help="also write one file of at most 12 MB, updated during the run",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="print what would run and about how long; needs no GPU"
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, seal, print; or collect A/A pairs, or print what would be done."""
    if arguments.noise:
        return _run_noise(arguments)
    if arguments.pairs:
        raise ProfilerError("--pairs needs --noise")
    from profiler.cli.collecting import TerminalListener, print_sealed
    from profiler.collect.measurement import CollectionLimits, local_root, measure
    from profiler.collect.summary import RunSummary
    from profiler.compare.floor_coverage import calls_without_floor, floors_in
    from profiler.documents.collection import CollectionDocument

    limits, root = CollectionLimits.parse(arguments.budget, arguments.out), local_root()
    if arguments.dry_run:
        return _forecast(arguments, limits.budget_s)
    collection = _open(arguments, TerminalListener("collect", arguments), limits.budget_s)
    sealed = measure(collection, root, limits, seal_only=arguments.seal)
    if sealed is None:
        return INTERRUPTED
    print_sealed(sealed, arguments.json)
    without_floor = calls_without_floor(sealed.run, floors_in(root))
    document = CollectionDocument(RunSummary(sealed.run), without_floor)
    return print_document(document, arguments)


def _run_noise(arguments: argparse.Namespace) -> int:
    from profiler.cli.noise import collect_pairs

    for option in _NOT_FOR_NOISE:
        if getattr(arguments, option) not in (None, False, "", "none"):
            raise ProfilerError(f"--{option.replace('_', '-')} does not go with --noise")
    return collect_pairs(arguments)


def _open(arguments: argparse.Namespace, listener: Listener, budget_s: float | None) -> Collection:
    from profiler.collect.measurement import begin_collection, local_root, resume_collection

    if arguments.resume:
        return resume_collection(local_root(), arguments.resume, listener, seal_only=arguments.seal)
    if arguments.seal:
        raise ProfilerError("--seal needs --resume RUN: a new run has nothing to keep")
    catalog = trusted_catalog(arguments)
    return begin_collection(local_root(), catalog, _settings(arguments, catalog, budget_s), listener)


def _settings(arguments: argparse.Namespace, catalog: Catalog, budget_s: float | None) -> Settings:
    from profiler.collect.plan import fresh_processes
    from profiler.collect.settings import collection_settings, publishable_command_line

    settings = collection_settings(
        catalog,
        arguments.versions,
        against=split_list(arguments.against),
        workloads=split_list(arguments.workloads or ""),
        full=split_list(arguments.full),
        sanitize=split_list(arguments.sanitize),
        model=not arguments.no_model,
    )
    settings = replace(
        settings,
        rounds=arguments.rounds,
        samples=arguments.samples,
        clock_control=arguments.clock_control,
        cache_control=arguments.cache_control,
        counters=not arguments.no_counters,
        keep_session=arguments.keep_session,
        command_line=publishable_command_line(["profiler", *sys.argv[1:]]),
    )
    processes = arguments.processes or fresh_processes(settings, settings.select(catalog), budget_s)
    return replace(settings, processes=processes)


def _forecast(arguments: argparse.Namespace, budget_s: float | None) -> Exit:
    """--dry-run: nothing is built, run or written."""
    from profiler.collect.forecast import forecast_run
    from profiler.collect.machine import detect_machine
    from profiler.documents.collection import ForecastDocument

    if arguments.resume:
        raise ProfilerError("--dry-run plans a new run: leave out --resume")
    catalog = trusted_catalog(arguments)
    settings = _settings(arguments, catalog, budget_s)
    forecast = forecast_run(catalog, settings, detect_machine(settings.counters), budget_s)
    return print_document(ForecastDocument(forecast), arguments)
