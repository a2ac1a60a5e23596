"""`profiler regressions`: what is worse now, since when, how sure, and whether it is acknowledged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
What is worse now in the index, in groups of one version and one cause, as dashboard and gate count it. The
latency of calls and ncu durations: by the steps of their history, by the newest run against the one before,
and by the newest against the pinned baseline. Compiler facts, modelled conflicts and counts that repeat
exactly: between the runs of one version. A version that is slower than its parent (without a catalogue the
version before) did not get worse: it is listed apart and not counted.

What was right and is wrong now comes first, what is acknowledged last.
A level that was there before with the same machine code is back in a known state of the machine, and a slow
drift is no step: both are listed last, and nothing to acknowledge. What moved between runs of one build, with
equal machine code and source, is "changed", due to the environment. What many series share on one run is one
alarm, due to the environment.

Launches are paired as `profiler compare` pairs them. One of another grid is another workload, unless a
workload is declared (`import --workload`), and is compared with the last run of its own size.

This lists; `profiler gate` judges one change and makes it the exit code."""


def add(commands: Commands) -> None:
    """Add `regressions`."""
    command = commands.add_parser(
        "regressions",
        help="what is worse now, since when, how sure, and why",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_filters(command, "family")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Find what is worse, ask why, and print it."""
    from profiler.cli.output import open_store
    from profiler.documents import list_regressions
    from profiler.evidence import load_metrics

    store = open_store()
    document = list_regressions(load_metrics(), store, family=arguments.family)
    code = print_document(document, arguments)
    document.keep_causes()
    return code
