"""`profiler static --check`: the run that a lineage becomes without a GPU."""

from __future__ import annotations

import argparse

from profiler.cli.build import progress, trusted_catalog
from profiler.cli.output import prepare_answers, print_document


def dissect(arguments: argparse.Namespace) -> int:
    """Dissect, keep, print."""
    from profiler.collect.without_gpu import dissect as dissect_versions
    from profiler.collect.without_gpu import keep_dissection
    from profiler.documents.collection import DissectionDocument

    catalog = trusted_catalog(arguments)
    versions, line = catalog.pick(arguments.versions), _command_line(arguments)
    how = {"command_line": line, "jobs": arguments.jobs, "progress": progress()}
    dissection = dissect_versions(catalog, versions, arguments.arch, **how)
    place, _ = keep_dissection(dissection, arguments.out)
    code = print_document(DissectionDocument(dissection, place), arguments)
    if arguments.out is None:
        prepare_answers()
    return code


def _command_line(arguments: argparse.Namespace) -> str:
    """What decides the content; not where it goes, which is a path of somebody's machine."""
    arch = ["--arch", ",".join(arguments.arch)] if arguments.arch else []
    return " ".join(["profiler", "static", "--check", *arguments.versions, *arch])
