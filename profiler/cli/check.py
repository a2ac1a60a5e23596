"""`profiler check`: how the check of versions on the CPU is asked for and told."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from profiler.cli.build import add_jobs, add_versions, progress
from profiler.cli.output import add_json, positive, print_document, print_lines, print_table, say
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import CheckDocument
    from profiler.emulator import VersionCheck

_DEFECTS_SHOWN = 12  # of a version
_OUTCOMES = {
    ("good", True): "passed",
    ("good", False): "NOT RIGHT",
    ("rejected", True): "caught",
    ("rejected", False): "NOT CAUGHT",
}

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
    from profiler.documents import check_names

    options = {name: getattr(arguments, name) for name in ("catalog", "stage", "seeds", "jobs")}
    document = check_names(arguments.versions, progress=progress(), warn=_warn, **options)
    code = print_document(document, arguments, print_text)
    for check in document.failed:  # a compiler's message goes to stderr whole
        print(f"profiler: {check.error}", file=sys.stderr)
    if code in (Exit.PASS, Exit.UNJUDGED):
        for version in document.idle:
            print(f"profiler: {version}: its problem has no workload to check it on", file=sys.stderr)
    return code


def _warn(words: str) -> None:
    print(f"profiler: warning: {words}", file=sys.stderr)


def print_text(document: CheckDocument, _: argparse.Namespace) -> None:
    """A row a version; below, what stands against those that are not as expected."""
    from profiler.emulator import facts

    header = ("version", "state", "outcome", "runs", "max error", "wavefronts", "conflicts", "found")
    print_table(header, [_row(check) for check in document.checks], right=(3, 4, 5, 6))
    for check in document.checks:
        if not check.as_expected and (check.runs or check.error):
            say(f"\n{facts.summary_line(check)}")
            print_lines(_defects(check), "  ")
    say("\nmodelled on the CPU: wavefronts and conflicts of the first workload and schedule (seed 0)")


def _row(check: VersionCheck) -> list[str]:
    from profiler.emulator import facts

    if not check.runs:
        why = "does not compile" if check.error else "no workload"
        return [check.version, check.state, why, "", "", "", "", ""]
    errors = [run.max_abs_error for run in check.runs]
    worst = max((error for error in errors if error is not None), default=None)
    first = check.runs[0]
    failed_run = next((run for run in check.runs if not run.passed), None)
    return [
        check.version,
        check.state,
        _OUTCOMES[check.state, check.as_expected],
        str(len(check.runs)),
        "not finite" if None in errors or worst is None else f"{worst:.2g}",
        str(first.shared_wavefronts),
        str(first.bank_conflicts),
        facts.describe_failure(failed_run)
        if failed_run
        else _rounding(facts.largest_input_error(check.runs)),
    ]


def _rounding(input_error: float | None) -> str:
    return "" if input_error is None else f"the 8-bit codes alone: error {input_error:.2g}, not counted"


def _defects(check: VersionCheck) -> list[str]:
    """Kind, place and text of what the runs showed, each once."""
    lines: dict[str, None] = {}
    for run in check.runs:
        for defect in run.defects:
            where = f"{defect.source.file}:{defect.source.line}" if defect.source else "no line"
            lines.setdefault(f"{defect.kind} at {where}: {defect.text}")
    return list(lines)[:_DEFECTS_SHOWN]
