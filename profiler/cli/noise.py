"""`profiler noise`: A/A pairs, by which runs of different days are judged: collecting and listing them."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, positive, print_json, print_table, say
from profiler.errors import CannotJudge, Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.bundles import LocalRoot, Run
    from profiler.catalog import Catalog
    from profiler.cli.output import Commands
    from profiler.collect.collection import Collection
    from profiler.collect.settings import Settings

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
    """List; or measure, seal, tell."""
    from profiler.cli import collect

    if arguments.list:
        return _list(arguments.json)
    begun, root, budget = (
        time.monotonic(),
        collect.local_root(),
        collect.budget_s(arguments),
    )
    collection = _collection(arguments, root)
    sealed = collect.measure(collection, root, collect.Budget(budget, begun), arguments, "noise")
    return 130 if sealed is None else _tell(sealed, arguments.json)


def _list(as_json: bool) -> int:
    from profiler.cli import floor_text, output
    from profiler.compare import noise_floor

    store = output.open_store()
    found, timed = noise_floor.stored_floors(store), noise_floor.timed_keys(store)
    lacking = floor_text.missing(found, timed)
    if as_json:
        print_json({"floors": [floor_text.document(one) for one in found], "missing": lacking})
        return Exit.PASS
    if found:
        floor_text.print_floors(found)
    else:
        say("no A/A pairs here" + ("" if timed else ", and no timed calls: `profiler collect` times them"))
    for one in lacking:
        modes = " and ".join(one["modes"])
        say(f"missing: {one['class']} calls on {one['gpu'] or 'unknown GPU'} ({modes}): {one['command']}")
    return Exit.PASS


def _collection(arguments: argparse.Namespace, root: LocalRoot) -> Collection:
    from profiler.catalog import catalog
    from profiler.cli.collect import progress
    from profiler.collect import collection as collect_collection
    from profiler.collect import machine as collect_machine
    from profiler.collect import run_inputs

    if not (arguments.versions or arguments.resume):
        raise ProfilerError("which version? `profiler noise VERSION`, or `profiler noise --list`")
    if arguments.seal and not arguments.resume:
        raise ProfilerError("--seal needs --resume RUN: a run that begins now has nothing to keep")
    if not arguments.resume:
        lineage = catalog.load_catalog(arguments.catalog)
        settings = _settings(arguments, lineage)
    machine = collect_machine.Machine(None, None) if arguments.seal else collect_machine.look(counters=False)
    if machine.gpu is None and not arguments.seal:
        raise CannotJudge(
            "no GPU here, where A/A pairs are collected: `profiler noise --list` says what lacks"
        )
    if arguments.resume:
        staging, lineage, settings = run_inputs.resume(root, arguments.resume, sealing=arguments.seal)
    else:
        staging = run_inputs.begin(root, lineage, settings)
    return collect_collection.Collection(staging, lineage, settings, machine, progress)


def _settings(arguments: argparse.Namespace, lineage: Catalog) -> Settings:
    from profiler.catalog import sources
    from profiler.cli.collect import workloads
    from profiler.collect import settings as collect_settings

    chosen = lineage.pick(arguments.versions)
    if planned := [one.id for one in chosen if one.state == "planned"]:
        raise CannotJudge(lineage.why_none_built(planned))
    if wrong := [one.id for one in chosen if one.state == "rejected"]:
        raise ProfilerError(f"{', '.join(wrong)}: only a correct version has a latency, and so a floor")
    sizes = workloads(arguments.workloads, lineage, chosen)
    if not arguments.workloads:
        problem = sources.load_object(lineage, lineage.problem)
        sizes = [one for one in sizes if one.get("dtype") == sizes[0].get("dtype")]
        by_size = sorted(sizes, key=lambda one: problem.flops(problem.workload(**one)))
        sizes = [one for one in sizes if one in (sizes[0], by_size[len(sizes) // 2], by_size[-1])]
    return collect_settings.Settings(
        versions=tuple(one.id for one in chosen),
        workloads=tuple(sizes),
        rounds=arguments.rounds,
        samples=arguments.samples,
        processes=1,
        counters=False,
        command_line=collect_settings.command_line(["profiler", *sys.argv[1:]]),
        pairs=arguments.pairs,
    )


def _tell(run: Run, as_json: bool) -> Exit:
    from profiler.cli import collect, floor_text
    from profiler.compare import noise_floor

    found = noise_floor.floors_of_runs([run])
    cells = [one for one in run.results if one.check or one.samples or one.reason]
    left_out = run.provenance.get("left_out", ())
    if as_json:
        print_json(
            {"run": run.run_id, "floors": [floor_text.document(one) for one in found], "left_out": left_out}
        )
    else:
        floor_text.print_floors(found)
        bad = [(one.version, one.workload or "", one.status, one.reason or "") for one in cells if one.reason]
        if bad:
            print_table(("version", "workload", "", "why"), bad)
        for words in collect.left_out(left_out):
            say(f"left out: {words}")
        say(f"\n{collect.took(run)}\nsealed as {run.run_id}")
    if any(one.status in ("wrong", "failed") for one in cells):
        return Exit.REGRESSION
    return Exit.PASS if found else Exit.UNJUDGED
