"""`profiler check`: how the check of versions on the CPU is asked for and told."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from profiler.cli.build import add_jobs, add_versions, progress, trusted_catalog
from profiler.cli.output import add_json, positive, print_document, print_lines, print_table, say
from profiler.errors import BuildFailed, Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profiler.cli.output import Commands
    from profiler.documents import CheckDocument
    from profiler.emulator import CheckRun, VersionCheck

_FINDINGS_SHOWN = 12  # of a version
_NAMES_SHOWN = 4  # of versions, beside lines that they share
_OUTCOMES = {
    ("good", True): "passed",
    ("good", False): "NOT RIGHT",
    ("rejected", True): "caught",
    ("rejected", False): "NOT CAUGHT",
}

_DESCRIPTION = """\
Run each version on the CPU, thread by thread, with no GPU and no CUDA toolkit: its numbers against the
float64 reference under several schedules, and races, missing waits, uninitialised and out-of-bounds
accesses, divergent barriers and exceeded budgets and launch bounds, with file and line. A good version must
pass everywhere and keep the contract of its family (what it must refuse; an equal second call gives equal
bits); a rejected one must be caught, by the kind and at the line that its catalogue entry and its source
name.
Each finding is told on the smallest workload that shows it, with the command that makes that run again.
Lines that are compiled for the GPU alone are named: nothing here sees them.
What it says is modelled: the schedules are seeded, and shared-memory wavefronts and bank conflicts come
from a model of the banks. Where addresses depend on the data (the look-up of fp8 codes), so do conflicts:
compare equal seeds."""

_EPILOG = """\
exit codes: 0 all as expected · 1 a good version is not right, or a rejected one is not caught · 2 a version
does not compile, its function does not take what the problem's case passes, or the problem's own code fails
· 3 g++ 12 or addr2line is missing, or the problem has no workload for a version"""


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
        "--workload", metavar="LABEL", help="one workload alone: `--workload '1x2x128x64 causal'`"
    )
    command.add_argument(
        "--seed", type=seed_number, metavar="N", help="one schedule alone, by its number from 0"
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
        help="the calls of the contract alone, what must be refused: they change a call on the smallest "
        "workload, or on that of --workload",
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

    trusted_catalog(arguments)
    names = ("catalog", "stage", "seeds", "workload", "seed", "landing", "contract", "jobs")
    options = {name: getattr(arguments, name) for name in names}
    document = check_names(arguments.versions, progress=progress(), warn=_warn, **options)
    code = print_document(document, arguments, print_text)
    errors: dict[str, list[str]] = {}  # a compiler's message goes to stderr whole, one of the problem once
    for check in document.failed:
        errors.setdefault(str(check.error), []).append(check.version)
    for error, versions in errors.items():
        print(f"profiler: {_named(versions)}: {error}", file=sys.stderr)
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


def print_text(document: CheckDocument, _: argparse.Namespace) -> None:
    """A row a version; below, what stands against those that are not as expected."""
    from profiler.emulator import facts

    header = ("version", "state", "outcome", "runs", "max error", "wavefronts", "conflicts", "found")
    print_table(header, [_row(check) for check in document.checks], right=(3, 4, 5, 6))
    for check in document.checks:
        if not check.as_expected and (check.runs or check.error or check.contract):
            say(f"\n{facts.summary_line(check)}")
            print_lines(_findings(check, document), "  ")
        elif check.not_run:
            say(f"\n{facts.summary_line(check)}")
    say(f"\nmodelled on the CPU{_traffic_of(document.checks)}")
    for words, versions in _unseen(document.checks).items():
        say(f"compiled for the GPU alone, so not checked here: {words} ({_named(versions)})")


def _named(versions: Sequence[str]) -> str:
    return ", ".join(versions) if len(versions) <= _NAMES_SHOWN else f"{len(versions)} versions"


def _traffic_of(checks: Sequence[VersionCheck]) -> str:
    """Of which runs the table has the wavefronts and conflicts: the first of each version."""
    first_runs = [check.runs[0] for check in checks if check.runs]
    labels = sorted({run.workload.label for run in first_runs})
    seeds = sorted({run.seed for run in first_runs})
    if not first_runs:
        return ""
    where = labels[0] if len(labels) == 1 else "each version's first workload"
    return f": wavefronts and conflicts on {where}, seed {' or '.join(map(str, seeds))}"


def _unseen(checks: Sequence[VersionCheck]) -> dict[str, list[str]]:
    """The versions by what no check on the CPU sees of their sources."""
    versions: dict[str, list[str]] = {}
    for check in checks:
        for lines in check.gpu_only:
            versions.setdefault(lines.words, []).append(check.version)
    return versions


def _row(check: VersionCheck) -> list[str]:
    if not check.runs:
        why = _why_no_runs(check)
        return [check.version, check.state, why, "", "", "", "", ""]
    first = check.runs[0]
    return [
        check.version,
        check.state,
        _outcome(check),
        str(len(check.runs)),
        _largest_error(check.runs),
        str(first.shared_wavefronts),
        str(first.bank_conflicts),
        _found(check),
    ]


def _outcome(check: VersionCheck) -> str:
    if check.error and all(run.as_expected is not False for run in check.runs):
        return "not judged"  # the runs that the error left say nothing against it
    return _OUTCOMES[check.state, check.as_expected]


def _largest_error(runs: Sequence[CheckRun]) -> str:
    """Of the runs that came back with 0; a dash where none did."""
    errors = [run.max_abs_error for run in runs if run.result.returned == 0]
    if not errors:
        return "–"
    finite = [error for error in errors if error is not None]
    return f"{max(finite):.2g}" if len(finite) == len(errors) else "not finite"


def _found(check: VersionCheck) -> str:
    """The defect of the smallest run that failed, else what breaks the contract, or the error."""
    from profiler.emulator import facts
    from profiler.emulator.failure import describe_failure

    failed_runs = [run for run in check.runs if not run.passed]
    if failed_runs:
        return describe_failure(min(failed_runs, key=lambda run: (run.flops, run.seed)).result)
    if broken := facts.contract_defects(check.contract, check.runs):
        return f"contract: {broken[0].text}"
    if check.error:
        return str(check.error).splitlines()[0]
    return _rounding(facts.largest_input_error(check.runs))


def _why_no_runs(check: VersionCheck) -> str:
    from profiler.emulator.c_signature import UnfitCase

    if isinstance(check.error, BuildFailed):
        return "does not compile"
    if check.error:
        return "cannot be called" if isinstance(check.error, UnfitCase) else "not judged"
    if check.contract is None:
        return "no workload"
    return _OUTCOMES[check.state, check.as_expected]


def _rounding(input_error: float | None) -> str:
    return "" if input_error is None else f"the 8-bit codes alone: error {input_error:.2g}, not counted"


def _findings(check: VersionCheck, document: CheckDocument) -> list[str]:
    """Kind, place and text of each finding; below those of one run, the command that makes it again."""
    from profiler.emulator import facts

    by_command: dict[str, list[str]] = {}
    for finding in facts.findings(check)[:_FINDINGS_SHOWN]:
        where = f" at {finding.place.file}:{finding.place.line}" if finding.place else ""
        command = facts.replay_command(check.version, finding, document.catalog)
        by_command.setdefault(command, []).append(f"{finding.kind}{where}: {finding.text}")
    return [line for command, lines in by_command.items() for line in (*lines, f"    {command}")]
