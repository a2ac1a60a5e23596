"""`profiler noise`: A/A pairs, by which runs of different days are judged: collecting and listing them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.collect import INTERRUPTED, split_list
from profiler.cli.output import add_json, positive, print_json, print_table, say
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.bundles import Run
    from profiler.catalog import Catalog
    from profiler.cli.output import Commands
    from profiler.collect import Collection, Listener, Settings

_DESCRIPTION = """\
How far do two runs of one and the same build lie apart on this GPU? Each pair is two sessions of the version,
a fresh process each, as far apart in time as the collection allows. From 20 pairs on, two runs of different
days are judged by them; without, compare and gate call such runs unclear. A floor holds for one GPU, mode
(timer, cache, clocks) and length of call: short (under 100 µs), medium, long (1 ms and more). Pairs of
several noise runs add up.

With the default of three workloads, 20 pairs take 40 processes and a few minutes. After Ctrl-C or a kill,
--resume does what is missing, and --seal keeps the pairs there are."""

_EPILOG = """\
exit codes: 0 pairs were collected, or listed · 1 a version is wrong, or failed · 2 wrong arguments ·
3 nothing could be measured: no GPU · 130 interrupted"""


def add(commands: Commands) -> None:
    """Add `noise`."""
    command = commands.add_parser(
        "noise",
        help="collect A/A pairs on this machine's GPU, or list the noise floors there are",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("versions", nargs="*", metavar="VERSION", help="correct versions to measure")
    command.add_argument(
        "--catalog", type=Path, metavar="PATH", help="a catalog.toml or its folder (default: kernels/)"
    )
    command.add_argument(
        "--workloads",
        metavar="LIST",
        help="labels, comma-separated (default: the headline, one of middle size and the largest)",
    )
    command.add_argument(
        "--pairs", type=positive, default=20, metavar="N", help="A/A pairs a workload (default: 20)"
    )
    command.add_argument(
        "--rounds", type=positive, default=25, metavar="N", help="rounds a session (default: 25)"
    )
    command.add_argument(
        "--samples", type=positive, default=4, metavar="N", help="samples a round (default: 4)"
    )
    command.add_argument("--budget", metavar="TIME", help="such as 8m: all workloads get equally many pairs")
    command.add_argument("--resume", metavar="RUN", help="go on with an unfinished run, or with the `last`")
    command.add_argument(
        "--seal", action="store_true", help="with --resume: keep the pairs there are, measure nothing"
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE.zip",
        help="also as one file of at most 12 MB, kept up to date meanwhile",
    )
    command.add_argument("--list", action="store_true", help="the floors there are, and those that lack")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """List; or measure, seal, print."""
    from profiler.cli.collecting import TerminalListener, print_sealed
    from profiler.collect import Limits, local_root, measure

    if arguments.list:
        return _print_floors(arguments.json)
    limits, root = Limits.parse(arguments.budget, arguments.out), local_root()
    collection = _open(arguments, TerminalListener("noise", arguments))
    sealed = measure(collection, root, limits, seal_only=arguments.seal)
    if sealed is None:
        return INTERRUPTED
    print_sealed(sealed, arguments.json)
    return _print_run(sealed.run, arguments.json)


def _print_floors(as_json: bool) -> int:
    from profiler.cli import floor_text, output
    from profiler.compare import stored_floors
    from profiler.compare.floor_coverage import missing_floors
    from profiler.compare.noise_floor import timed_keys

    store = output.open_store()
    floors, timed = stored_floors(store), timed_keys(store)
    missing = missing_floors(floors, timed)
    if as_json:
        documents = [floor_text.to_dict(floor) for floor in floors]
        print_json({"floors": documents, "missing": [calls.to_dict() for calls in missing]})
        return Exit.PASS
    if floors:
        floor_text.print_floors(floors)
    else:
        say("no A/A pairs here" + ("" if timed else ", and no timed calls: `profiler collect` times them"))
    for calls in missing:
        modes, gpu = " and ".join(calls.modes), calls.gpu or "unknown GPU"
        say(f"missing: {calls.workload_class} calls on {gpu} ({modes}): {calls.command}")
    return Exit.PASS


def _open(arguments: argparse.Namespace, listener: Listener) -> Collection:
    from profiler.catalog import load_catalog
    from profiler.collect import begin_collection, local_root, resume_collection

    if not (arguments.versions or arguments.resume):
        raise ProfilerError("which version? `profiler noise VERSION`, or `profiler noise --list`")
    if arguments.resume:
        return resume_collection(
            local_root(), arguments.resume, listener, seal_only=arguments.seal, need_gpu=True
        )
    if arguments.seal:
        raise ProfilerError("--seal needs --resume RUN: a run that begins now has nothing to keep")
    catalog = load_catalog(arguments.catalog)
    return begin_collection(local_root(), catalog, _settings(arguments, catalog), listener)


def _settings(arguments: argparse.Namespace, catalog: Catalog) -> Settings:
    from profiler.collect import noise_settings, publishable_command_line

    workloads = split_list(arguments.workloads or "")
    return replace(
        noise_settings(catalog, arguments.versions, workloads=workloads, pairs=arguments.pairs),
        rounds=arguments.rounds,
        samples=arguments.samples,
        command_line=publishable_command_line(["profiler", *sys.argv[1:]]),
    )


def _print_run(run: Run, as_json: bool) -> Exit:
    from profiler.cli import floor_text
    from profiler.cli.collecting import grouped_by_reason, time_taken
    from profiler.collect import RunSummary
    from profiler.compare import floors_of_runs

    floors, left_out = floors_of_runs([run]), run.provenance.get("left_out", ())
    if as_json:
        documents = [floor_text.to_dict(floor) for floor in floors]
        print_json({"run": run.run_id, "floors": documents, "left_out": left_out})
    else:
        floor_text.print_floors(floors)
        rows = [
            (result.version, result.workload or "", result.status, result.reason)
            for result in run.results
            if result.reason
        ]
        if rows:
            print_table(("version", "workload", "", "why"), rows)
        for words in grouped_by_reason(left_out):
            say(f"left out: {words}")
        say(f"\n{time_taken(run)}\nsealed as {run.run_id}")
    return RunSummary(run).noise_exit_code(has_floor=bool(floors))
