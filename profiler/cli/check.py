"""`profiler check`: the check of versions on the CPU."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from profiler.cli.build import add_jobs, add_versions, progress, trusted_catalog
from profiler.cli.output import add_json, positive, print_document
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Run each version on the CPU, thread by thread, with no GPU and no CUDA toolkit: its numbers against the
float64 reference under several schedules, and races, missing waits, uninitialised and out-of-bounds
accesses, divergent barriers and exceeded budgets and launch bounds, with file and line. A good version must
pass everywhere and keep the contract of its family (invalid calls must be rejected; repeated calls must be
bit-identical). A rejected version must be caught: by the kind that its catalogue entry names, at the line
that its source marks.
Each finding is reported on the smallest workload that shows it, with the command that repeats the run. Lines
that are compiled only for the GPU are listed: this check does not see them.
The results are modelled: the schedules are seeded, and shared-memory wavefronts and bank conflicts come from
a model of the banks. Where addresses depend on the data (the look-up of fp8 codes), so do conflicts: compare
equal seeds."""

_EPILOG = """\
exit codes: 0 all as expected · 1 a good version is wrong, or a rejected one is not caught · 2 a version does
not compile, its function has other parameters than the problem passes, or the problem's own code fails ·
3 g++ 12 or addr2line is missing, or the problem has no workload for a version"""


def add(commands: Commands) -> None:
    """Add `check`."""
    command = commands.add_parser(
        "check",
        help="run versions on the CPU: are they correct and free of races",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    command.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help="number of schedules (default: 3 for good, 10 for rejected versions)",
    )
    command.add_argument(
        "--workload", metavar="LABEL", help="only this workload, for example '1x2x128x64 causal'"
    )
    command.add_argument(
        "--seed", type=seed_number, metavar="N", help="only the schedule with this number, from 0"
    )
    command.add_argument(
        "--landing",
        choices=("late", "rows", "at-once", "all"),
        help="when TMA and wgmma take effect: when nothing else can run, row by row, where they are issued, "
        "or each schedule with all three (default: by the seed). Code without either runs once",
    )
    command.add_argument(
        "--contract",
        action="store_true",
        help="only the calls that the contract says must be refused: each is a call on the smallest workload "
        "(or that of --workload) with one thing made invalid",
    )
    command.add_argument(
        "--stage", metavar="STAGE", help="only this stage of the good versions (attention: QK, SOFTMAX or PV)"
    )
    add_jobs(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, print, judge."""
    from profiler.documents.check import check_names
    from profiler.documents.check_blocks import named

    trusted_catalog(arguments)
    names = ("catalog", "stage", "seeds", "workload", "seed", "landing", "contract", "jobs")
    options = {name: getattr(arguments, name) for name in names}
    document = check_names(arguments.versions, progress=progress(), warn=_warn, **options)
    code = print_document(document, arguments)
    errors: dict[str, list[str]] = {}  # a compiler's message goes to stderr whole, one of the problem once
    for check in document.failed:
        errors.setdefault(str(check.error), []).append(check.version)
    for error, versions in errors.items():
        print(f"profiler: {named(versions)}: {error}", file=sys.stderr)
    if code in (Exit.PASS, Exit.UNJUDGED):
        for version in document.idle:
            print(f"profiler: {version}: its problem has no workload to check it on", file=sys.stderr)
    return code


def seed_number(text: str) -> int:
    """The number of a schedule, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0")
    return int(text)


def _warn(words: str) -> None:
    print(f"profiler: warning: {words}", file=sys.stderr)
