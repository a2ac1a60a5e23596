"""`profiler check`: how the check of versions on the CPU is asked for and told."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.build import add_jobs, add_versions, progress
from profiler.cli.output import add_json, positive, print_json, print_table, say
from profiler.errors import CannotJudge, Exit, UnknownName

if TYPE_CHECKING:
    from profiler.catalog import Catalog, Problem, Version
    from profiler.cli.output import Commands
    from profiler.emulator import VersionCheck

_SHOWN = 12  # findings of a version

_DESCRIPTION = """\
Run each version on the CPU, thread by thread, with no GPU and no CUDA toolkit: its numbers against the
float64 reference under several schedules, and races, missing waits, uninitialised and out-of-bounds
accesses, divergent barriers and exceeded budgets, with file and line. A good version must pass everywhere;
a rejected one must be caught, by the kind and at the line that its catalogue entry and its source name.
What it says is modelled: the schedules are seeded, and shared-memory wavefronts and bank conflicts come
from a model of the banks. Where addresses depend on the data (the look-up of fp8 codes), so do conflicts:
compare equal seeds."""

_EPILOG = """\
exit codes: 0 all as expected · 1 a good version is not right, or a rejected one is not caught · 2 a version
does not compile · 3 g++ 12 or addr2line is missing, or the problem has no workload for a version"""


def add(commands: Commands) -> None:
    """Add `check`."""
    command = commands.add_parser(
        "check",
        help="run versions on the CPU: right, free of races, and the wrong ones caught",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    command.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help="schedules (default: 3 for good, 10 for rejected versions)",
    )
    command.add_argument(
        "--stage", metavar="STAGE", help="one stage alone of the good versions (attention: QK, SOFTMAX or PV)"
    )
    add_jobs(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, print, judge."""
    from profiler.catalog import catalog, sources
    from profiler.emulator import cpu_check

    lineage = catalog.load_catalog(arguments.catalog)
    problem: Problem = sources.load_problem(lineage)
    chosen, stages = choose(lineage, problem, arguments.versions, arguments.stage)
    for words in sources.inconsistencies(lineage):
        print(f"profiler: warning: {words}", file=sys.stderr)
    seeds = range(arguments.seeds) if arguments.seeds else None
    how = {"jobs": arguments.jobs, "progress": progress()}
    checked = list(cpu_check.check_versions(chosen, problem, seeds=seeds, stages=stages, **how))
    if arguments.json:
        print_json(document(checked))
    else:
        print_checked(checked)
    return judge(checked)


def choose(
    lineage: Catalog, problem: Problem, names: Sequence[str], stage: str | None
) -> tuple[list[Version], tuple[str, ...]]:
    """The versions to check and their stages; for one stage the good versions that can be built for it."""
    from profiler.catalog.problem import ALL_STAGES

    chosen = [version for version in lineage.pick(names) if version.buildable]
    if not chosen:
        raise CannotJudge(f"nothing to check: {lineage.why_none_built(names)}")
    if stage is None:
        return chosen, (ALL_STAGES,)
    if stage not in problem.stages:
        raise UnknownName(
            f"{lineage.family} has no stage {stage}: it has {', '.join(problem.stages) or 'none'}"
        )
    able = [version for version in chosen if version.state == "good" and stage in version.stages]
    if not able:
        raise CannotJudge(f"nothing to check: none of these versions of {lineage.path} has a source for it")
    return able, (stage,)


def document(checked: Sequence[VersionCheck]) -> dict[str, object]:
    """The cells for JSON, and the versions that do not compile."""
    return {
        "cells": [cell.as_json() for one in checked for cell in one.runs],
        "failed": [{"version": one.version, "error": str(one.error)} for one in checked if one.error],
    }


def print_checked(checked: Sequence[VersionCheck]) -> None:
    """A row a version; below, what stands against those that are not as expected."""
    from profiler.emulator import facts

    header = ("version", "state", "outcome", "runs", "max error", "wavefronts", "conflicts", "found")
    print_table(header, [_row(one) for one in checked], right=(3, 4, 5, 6))
    for one in checked:
        if not one.as_expected and (one.runs or one.error):
            say(f"\n{facts.summary_line(one)}")
            for line in _findings(one):
                say(f"  {line}")
    say("\nmodelled on the CPU: wavefronts and conflicts of the first workload and schedule (seed 0)")


def judge(checked: Sequence[VersionCheck]) -> Exit:
    """The exit code; a compiler's message goes to stderr whole."""
    failed = [one for one in checked if one.error]
    for one in failed:
        print(f"profiler: {one.error}", file=sys.stderr)
    if failed:
        return Exit.UNUSABLE_INPUT
    if not all(one.as_expected for one in checked if one.runs):
        return Exit.REGRESSION
    idle = [one.version for one in checked if not one.runs]
    for version in idle:
        print(f"profiler: {version}: its problem has no workload to check it on", file=sys.stderr)
    return Exit.UNJUDGED if idle else Exit.PASS


def _row(one: VersionCheck) -> list[str]:
    from profiler.emulator import facts

    if not one.runs:
        why = "does not compile" if one.error else "no workload"
        return [one.version, one.state, why, "", "", "", "", ""]
    errors = [cell.max_abs_error for cell in one.runs]
    worst = max((error for error in errors if error is not None), default=None)
    first = one.runs[0]
    seen = next((cell for cell in one.runs if not cell.passed), None)
    words = {
        ("good", True): "passed",
        ("good", False): "NOT RIGHT",
        ("rejected", True): "caught",
        ("rejected", False): "NOT CAUGHT",
    }
    return [
        one.version,
        one.state,
        words[one.state, one.as_expected],
        str(len(one.runs)),
        "not finite" if None in errors or worst is None else f"{worst:.2g}",
        str(first.shared_wavefronts),
        str(first.bank_conflicts),
        facts.describe_failure(seen) if seen else _apart(facts.largest_input_error(one.runs)),
    ]


def _apart(input_error: float | None) -> str:
    return "" if input_error is None else f"the 8-bit codes alone: error {input_error:.2g}, not counted"


def _findings(one: VersionCheck) -> list[str]:
    """Kind, place and text of what was found, each once."""
    found: dict[str, None] = {}
    for cell in one.runs:
        for finding in cell.defects:
            where = f"{finding.source.file}:{finding.source.line}" if finding.source else "no line"
            found.setdefault(f"{finding.kind} at {where}: {finding.text}")
    return list(found)[:_SHOWN]
