"""`profiler dissect`: how the run that a lineage becomes with no GPU is asked for and printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.build import add_arches, add_jobs, add_versions, progress, trusted_catalog
from profiler.cli.output import add_json, prepare_answers, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Run `build`, `static` and `check` for all versions and keep the results as one run: static facts of each
kernel function, modelled facts of each workload, the sources, and shared-memory traffic by source line. The
dashboard shows the run at once. It goes into the data folder (PROFILER_DATA, else data/), or with --out as
a bundle into another folder."""

_EPILOG = """\
exit codes: 0 all as expected and within budget · 1 a good version is wrong or over its budget, or a rejected
one is not caught · 2 a version does not compile · 3 a tool is missing, and nothing was kept. A run that is
kept records what is wrong as wrong."""


def add(commands: Commands) -> None:
    """Add `dissect`."""
    command = commands.add_parser(
        "dissect",
        help="store static and modelled facts of the lineage as a run, without a GPU",
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
    """Dissect, keep, print."""
    from profiler.collect.without_gpu import dissect, keep_dissection
    from profiler.documents.collection import DissectionDocument

    catalog = trusted_catalog(arguments)
    versions, line = catalog.pick(arguments.versions), _command_line(arguments)
    how = {"command_line": line, "jobs": arguments.jobs, "progress": progress()}
    dissection = dissect(catalog, versions, arguments.arch, **how)
    place, _ = keep_dissection(dissection, arguments.out)
    code = print_document(DissectionDocument(dissection, place), arguments)
    if arguments.out is None:
        prepare_answers()
    return code


def _command_line(arguments: argparse.Namespace) -> str:
    """What decides the content; not where it goes, which is a path of somebody's machine."""
    arch = ["--arch", ",".join(arguments.arch)] if arguments.arch else []
    return " ".join(["profiler", "dissect", *arguments.versions, *arch])
