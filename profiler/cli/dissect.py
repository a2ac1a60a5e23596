"""`profiler dissect`: what a person is told of the run that a lineage becomes with no GPU."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.build import add_arches, add_jobs, add_versions, progress
from profiler.cli.output import add_json, print_json, say
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.collect.without_gpu import Dissection

_DESCRIPTION = """\
Do `build`, `static` and `check` for all versions and keep what they find as one run: static facts of each
kernel function, modelled facts of each workload, the sources, and shared-memory traffic by source line. The
dashboard shows it at once. The run goes to the data (PROFILER_DATA, else data/), or with --out as a bundle
into a folder."""

_EPILOG = """\
exit codes: 0 all as expected and within budget · 1 a good version is not right or over its budget, or a
rejected one is not caught · 2 a version does not compile · 3 a tool is missing, and nothing was kept. A run
that is kept holds what is wrong as wrong."""


def add(commands: Commands) -> None:
    """Add `dissect`."""
    command = commands.add_parser(
        "dissect",
        help="static and modelled facts of the lineage as a run, with no GPU",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    add_arches(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="a folder for the bundle, such as data/runs")
    add_jobs(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Dissect, keep, tell."""
    from profiler.catalog import catalog
    from profiler.collect import without_gpu

    lineage = catalog.load_catalog(arguments.catalog)
    chosen = lineage.pick(arguments.versions)
    how = {"command_line": _command_line(arguments), "jobs": arguments.jobs, "progress": progress()}
    found = without_gpu.dissect(lineage, chosen, arguments.arch, **how)
    place, _ = without_gpu.keep(found, arguments.out)
    if arguments.json:
        print_json(document(found, place))
    else:
        tell(found, place)
    return judge(found)


def _command_line(arguments: argparse.Namespace) -> str:
    """What decides the content; not where it goes, which is a path of somebody's machine."""
    arch = ["--arch", ",".join(arguments.arch)] if arguments.arch else []
    return " ".join(["profiler", "dissect", *arguments.versions, *arch])


def document(found: Dissection, place: str) -> dict[str, object]:
    """What was kept and what stood out, for JSON."""
    return {
        "run_id": found.run.run_id,
        "place": place,
        "results": len(found.run.results),
        "failed": list(found.failed),
        "unexpected": list(found.unexpected),
        "over_budget": list(found.over_budget),
        "missing": list(found.missing),
    }


def tell(found: Dissection, place: str) -> None:
    """What was kept, and on stderr what stood out."""
    versions = len({result.version for result in found.run.results})
    say(f"{found.run.run_id}: {versions} versions, {len(found.run.results)} results, kept in {place}")
    for line in (*found.failed, *found.unexpected, *found.over_budget, *found.missing):
        print(f"profiler: {line}", file=sys.stderr)


def judge(found: Dissection) -> Exit:
    """The exit code of the worst that was found."""
    if found.failed:
        return Exit.UNUSABLE_INPUT
    if found.unexpected or found.over_budget:
        return Exit.REGRESSION
    return Exit.UNJUDGED if found.missing else Exit.PASS
