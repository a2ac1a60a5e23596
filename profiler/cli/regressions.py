"""`profiler regressions`: what is worse now, since when, how sure, and whether it is acknowledged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, ask, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
What is worse now in the index, grouped by version and cause, as the dashboard and the gate count it.
Latency of calls and ncu durations are judged by the steps of their history, by the newest run against the
one before, and by the newest against the pinned baseline; compiler facts, modelled conflicts and counts
that repeat exactly, from one run of a version to the next. A version that is slower than its parent
(without a catalogue, than the version before) did not get worse: it is listed separately and not counted.

Results that were right and are wrong now come first, acknowledged ones last. A level that was there before
with the same machine code is a known state of the machine, and a slow drift is not a step: both are listed
last, with nothing to acknowledge. What changed between runs of one build, with equal machine code and
source, is "changed", due to the environment. A step that many series share on one run is one alarm, due to
the environment.

Launches are paired as by `profiler compare`. Another grid is another workload, unless a workload is
declared (`import --workload`), and is compared with the last run of its own size.

This command lists; `profiler gate` judges one change and makes it the exit code."""


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
    from profiler.documents.regressions import list_regressions

    document = ask(list_regressions, arguments)
    code = print_document(document, arguments)
    document.keep_causes()
    return code
