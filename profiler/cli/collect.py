"""`profiler collect`: how a measurement is asked for, what it tells meanwhile, and what it leaves."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import NOISE
from profiler.cli.build import add_versions
from profiler.cli.output import add_json, positive, print_json, print_table, say
from profiler.errors import CannotJudge, Exit, ProfilerError, UnknownName

if TYPE_CHECKING:
    from profiler.bundles import LocalRoot, Run
    from profiler.catalog import Catalog, Problem, Version
    from profiler.cli.output import Commands
    from profiler.collect.collection import Collection
    from profiler.collect.settings import Settings
    from profiler.compare import StoredFloor

NAMED = 8  # jobs in a line
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
_DESCRIPTION = """\
Measure versions on this machine's GPU: is each right, how long does a call take, and what do Nsight's
counters say of it. Every job runs in a process of its own and is kept as soon as it has ended: after Ctrl-C
or a kill, --resume does what is missing, and --seal keeps the run as it is. Without ncu or the permission to
read counters latency is still measured; without a GPU the static and modelled facts are still collected."""

_EPILOG = """\
exit codes: 0 all that was asked for, or what machine and budget allow, and it says what is left out ·
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
        "where a version takes it)",
    )
    command.add_argument(
        "--against",
        metavar="LIST",
        default="",
        help="further versions to measure beside them, such as sdpa,sdpa_flash",
    )
    command.add_argument(
        "--rounds", type=positive, default=25, metavar="N", help="alternating rounds (default: 25)"
    )
    command.add_argument(
        "--samples", type=positive, default=4, metavar="N", help="samples a round (default: 4)"
    )
    command.add_argument(
        "--processes",
        type=positive,
        default=3,
        metavar="N",
        help="fresh processes for the rounds (default: 3)",
    )
    command.add_argument(
        "--budget", metavar="TIME", help="such as 8m: most valuable first, the rest is named"
    )
    command.add_argument(
        "--full", metavar="LIST", default="", help="versions to capture in full, on the first workload"
    )
    command.add_argument(
        "--sanitize", metavar="LIST", default="", help="versions to run under compute-sanitizer; all"
    )
    command.add_argument("--no-counters", action="store_true", help="latency alone")
    command.add_argument("--no-model", action="store_true", help="leave out the check on the CPU")
    command.add_argument("--clock-control", choices=("none", "base", "boost"), default="none", help="of ncu")
    command.add_argument("--cache-control", choices=("none", "all"), default="none", help="of ncu")
    command.add_argument("--keep-session", action="store_true", help="reports keep host, user and paths")
    command.add_argument("--resume", metavar="RUN", help="go on with an unfinished run, or with the `last`")
    command.add_argument(
        "--seal", action="store_true", help="with --resume: keep the run as it is, measure nothing"
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE.zip",
        help="also as one file of at most 12 MB, kept up to date meanwhile",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="say what would run and about how long; needs no GPU"
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, seal, tell."""
    begun, root, budget = time.monotonic(), local_root(), budget_s(arguments)
    if arguments.dry_run:
        return _foretell(arguments, root, budget)
    sealed = measure(_collection(arguments, root), root, Budget(budget, begun), arguments, "collect")
    return 130 if sealed is None else _tell(sealed, arguments.json, _floors(root))


def _foretell(arguments: argparse.Namespace, root: LocalRoot, budget: float | None) -> Exit:
    """--dry-run: nothing is built, run or written."""
    from profiler.bundles import bundle
    from profiler.catalog import catalog
    from profiler.cli import forecast
    from profiler.collect import collection as collect_collection
    from profiler.collect import machine as collect_machine
    from profiler.collect.staging import Staging

    if arguments.resume:
        raise ProfilerError("--dry-run plans a run that begins now: leave out --resume")
    lineage = catalog.load_catalog(arguments.catalog)
    settings = _settings(arguments, lineage)
    nowhere = Staging(root.folder / bundle.STAGING_FOLDER / "dry-run")
    machine = collect_machine.look(settings.counters)
    forecast.show(collect_collection.Collection(nowhere, lineage, settings, machine), budget, arguments.json)
    return Exit.PASS


def budget_s(arguments: argparse.Namespace) -> float | None:
    """The seconds of --budget; whether it can be read, and --out be written, is known before a run begins."""
    from profiler.collect import plan

    if arguments.out and not arguments.out.resolve().parent.is_dir():
        raise ProfilerError(f"--out {arguments.out}: there is no folder {arguments.out.resolve().parent}")
    return plan.parse_budget(arguments.budget) if arguments.budget else None


class Budget(NamedTuple):
    """What --budget allows."""

    seconds: float | None
    begun: float  # monotonic: when the command was given, which is before it has looked at the machine


def measure(
    collection: Collection, root: LocalRoot, budget: Budget, arguments: argparse.Namespace, command: str
) -> Run | None:
    """Work the collection off unless it is only to be sealed, seal it, write --out; None: interrupted.

    While it runs --out holds what has ended so far: who is killed with all that runs keeps that.
    """
    from profiler.bundles import bundle, zip_file
    from profiler.cli import failures
    from profiler.collect import checkpoint, seal

    with contextlib.closing(collection.staging), ended_as_interrupted():
        try:
            if not arguments.seal:
                _announce(collection, arguments.json)
                with checkpoint.kept(collection, arguments.out):
                    collection.run_jobs(budget.seconds, time.monotonic() - budget.begun)
                failures.show(collection)
        except KeyboardInterrupt:
            name = collection.staging.run_id
            say(f"\ninterrupted; go on: profiler {command} --resume {name}, or keep it as it is: … --seal")
            if arguments.out:
                say(f"{arguments.out} holds what had ended")
            return None
        for kind in _ENDINGS:  # all is measured: the seconds that are left are better than none of them
            signal.signal(kind, signal.SIG_IGN)
        run_id = seal.seal(root, collection, zip_bytes=seal.ZIP_BYTES if arguments.out else None)
        sealed = bundle.load_run(root, run_id)
        if arguments.out:
            written = zip_file.pack(root, run_id, arguments.out)
            print(f"written: {written}", file=sys.stderr if arguments.json else sys.stdout)
    return sealed


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """`kill`, `timeout` and a closed terminal end a collection as Ctrl-C does: nothing runs on.

    Once: `timeout` signals its program and then the program's group, and the second must not end the ending.
    """

    def interrupt(_number: int, _frame: object) -> None:
        for kind in _ENDINGS:
            signal.signal(kind, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [signal.signal(kind, interrupt) for kind in _ENDINGS]
    try:
        yield
    finally:
        for kind, handler in zip(_ENDINGS, before, strict=True):
            signal.signal(kind, handler)


def _collection(arguments: argparse.Namespace, root: LocalRoot) -> Collection:
    from profiler.catalog import catalog
    from profiler.collect import collection as collect_collection
    from profiler.collect import machine as collect_machine
    from profiler.collect import run_inputs

    if arguments.resume:
        staging, lineage, settings = run_inputs.resume(root, arguments.resume, sealing=arguments.seal)
    elif arguments.seal:
        raise ProfilerError("--seal needs --resume RUN: a run that begins now has nothing to keep")
    else:
        lineage = catalog.load_catalog(arguments.catalog)
        settings = _settings(arguments, lineage)
        staging = run_inputs.begin(root, lineage, settings)
    machine = (
        collect_machine.Machine(None, None) if arguments.seal else collect_machine.look(settings.counters)
    )
    return collect_collection.Collection(staging, lineage, settings, machine, progress)


def _settings(arguments: argparse.Namespace, lineage: Catalog) -> Settings:
    from profiler.catalog import sources
    from profiler.collect import settings as collect_settings

    names = [*arguments.versions, *_list(arguments.against)] if arguments.versions else []
    chosen = [one for one in lineage.pick(names) if one.state != "planned"]
    if not chosen:
        raise CannotJudge(f"nothing to measure: {lineage.why_none_built(names)}")
    known = {one.id for one in chosen}
    problem: Problem = sources.load_problem(lineage)
    sizes = workloads(arguments.workloads, lineage, chosen)
    first = problem.workload(**sizes[0]).label
    asked = [] if arguments.sanitize == "all" else _list(arguments.sanitize)
    sanitize = known if arguments.sanitize == "all" else _among("--sanitize", asked, known, lineage)
    return collect_settings.Settings(
        versions=tuple(one.id for one in chosen),
        workloads=tuple(sizes),
        rounds=arguments.rounds,
        samples=arguments.samples,
        processes=arguments.processes,
        clock_control=arguments.clock_control,
        cache_control=arguments.cache_control,
        full=_among("--full", _list(arguments.full), known, lineage),
        full_on=(first,),
        sanitize=tuple(one.id for one in chosen if one.id in sanitize and one.buildable),
        model=() if arguments.no_model else tuple(one.id for one in chosen if one.buildable),
        counters=not arguments.no_counters,
        keep_session=arguments.keep_session,
        command_line=collect_settings.command_line(["profiler", *sys.argv[1:]]),
    )


def _among(option: str, names: list[str], known: set[str], lineage: Catalog) -> tuple[str, ...]:
    """The names that an option lists, all of them measured; an unknown one is an UnknownName."""
    lineage.pick(names)
    if others := [name for name in names if name not in known]:
        raise ProfilerError(f"{option} {others[0]}: it is not measured; name it among the versions too")
    return tuple(names)


def workloads(text: str | None, lineage: Catalog, chosen: Sequence[Version]) -> list[dict[str, object]]:
    """The acceptance workloads in every dtype that a version takes, the headline first in each."""
    from profiler.catalog import load_problem
    from profiler.catalog.problem import acceptance_workloads

    dtypes = list(dict.fromkeys(dtype for one in chosen for dtype in one.dtypes))
    head_dims = sorted({size for one in lineage.versions for size in one.head_dims})
    acceptance = acceptance_workloads(load_problem(lineage), dtypes, head_dims)
    known = {one.label: one for one in acceptance}
    wanted = _list(text) if text else list(known)
    for label in wanted:
        if label not in known:
            raise UnknownName(f"no workload {label}: there are {', '.join(known)}")
    return [dict(known[label].sizes()) for label in wanted]


def local_root() -> LocalRoot:
    """Where bundles are made. Raises ProfilerError for a root that is no folder."""
    from profiler.bundles import location

    root = location.open_root()
    if not isinstance(root, location.LocalRoot):
        raise ProfilerError(f"PROFILER_DATA={root.url}: collect into a folder, then import the bundle there")
    return root


def _announce(collection: Collection, as_json: bool) -> None:
    counted = {tier: collection.context.passes(tier) for tier in ("lean", "full")}
    known = ", ".join(f"{tier} {count or 'unknown'}" for tier, count in counted.items())
    gpu = (collection.machine.gpu or {}).get("name") or "no GPU"
    passes = f"; replay passes a launch: {known}" if collection.settings.counters else ""
    print(
        f"{collection.staging.run_id} on {gpu}: {len(collection.planned)} jobs{passes}",
        file=sys.stderr if as_json else sys.stdout,
    )
    for words in collection.machine.missing:
        print(f"profiler: {words}", file=sys.stderr)


def progress(done: int, total: int, what: str, left_s: float | None) -> None:
    """One line, written over while a terminal looks on."""
    left = "" if not left_s else f", about {int(left_s // 60)}:{int(left_s % 60):02d} left"
    end = "\n" if done == total or not sys.stderr.isatty() else "\r"
    print(
        f"[{done}/{total}] {what}{left}\033[K" if end == "\r" else f"[{done}/{total}] {what}{left}",
        end=end,
        file=sys.stderr,
        flush=True,
    )


def _floors(root: LocalRoot) -> list[StoredFloor]:
    """The noise floors out of the noise runs in the folder: a GPU machine has no index."""
    from profiler.bundles import bundle
    from profiler.compare import noise_floor

    runs = []
    for name in bundle.list_runs(root):
        if f"-{NOISE}-" in name:
            with contextlib.suppress(ProfilerError):
                runs.append(bundle.load_run(root, name))
    return noise_floor.floors_of_runs(runs)


def _tell(run: Run, as_json: bool, floors: Sequence[StoredFloor]) -> Exit:
    from profiler.cli import floor_text
    from profiler.collect.provenance import overhead as overhead_of

    cells = [one for one in run.results if one.workload and not one.workload.startswith("head dim")]
    overhead = overhead_of(run.provenance)
    expected = {one.version for one in cells if _expected(one.check)}
    measured = [
        one for one in cells if one.samples or one.captures or (one.check or {}).get("evidence") == "measured"
    ]
    if as_json:
        print_json(
            {
                "run": run.run_id,
                "cells": [
                    {
                        "version": one.version,
                        "workload": one.workload,
                        "status": one.status,
                        "reason": one.reason,
                    }
                    for one in cells
                ],
                "degraded": run.provenance.get("degraded", []),
                "left_out": run.provenance.get("left_out", []),
                "wall_s": run.provenance.get("wall_s"),
                "processes_s": run.provenance.get("processes_s", {}),
                "without_floor": floor_text.lacking(run, floors) or None,
                **dict(zip(("of_processes", "of_timing_and_ncu"), overhead or (None, None), strict=True)),
            }
        )
    else:
        rows = [(one.version, one.workload or "", one.status, one.reason or "") for one in cells]
        print_table(("version", "workload", "", "why"), rows)
        for words in run.provenance.get("degraded", ()):
            say(f"degraded: {words}")
        for words in left_out(run.provenance.get("left_out", ())):
            say(f"left out: {words}")
        if words := floor_text.lacking(run, floors):
            say(words)
        say(f"\n{took(run)}")
        say(f"sealed as {run.run_id}")
    if not measured:
        return Exit.UNJUDGED
    bad = [one for one in cells if one.status in ("wrong", "failed") and one.version not in expected]
    return Exit.REGRESSION if bad else Exit.PASS


def left_out(lines: Sequence[str]) -> list[str]:
    """The jobs that were left out, a line a reason; --json names all of many."""
    by_reason: dict[str, list[str]] = {}
    for line in lines:
        job, _, reason = line.partition(": ")
        by_reason.setdefault(reason, []).append(job)
    return [
        f"{reason}: {', '.join(jobs[:NAMED])}"
        + (f" and {len(jobs) - NAMED} more (--json names them)" if len(jobs) > NAMED else "")
        for reason, jobs in by_reason.items()
    ]


def took(run: Run) -> str:
    """How long a collection took, and how much of that its processes did not need."""
    from profiler.collect.provenance import overhead

    wall, stages = run.provenance.get("wall_s"), run.provenance.get("processes_s") or {}
    if not wall:
        return "nothing was run"
    each = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in stages.items())
    words = f"took {wall:.1f} s"
    several = run.provenance.get("sessions", 1)
    words += f" in {several} sessions" if several > 1 else ""
    if each:
        words += f"; its processes {sum(stages.values()):.1f} s ({each})"
    if ratios := overhead(run.provenance):
        words += f"; that is {ratios[0]:.2f} × all of them, {ratios[1]:.2f} × timing and ncu alone"
    return words


def _expected(check: object) -> bool:
    return isinstance(check, dict) and check.get("state") in ("rejected", "baseline")


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
