"""The check of versions on the CPU as blocks: a row a version, and what stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profiler.documents.blocks import Block, Findings, Heading, Item, Line, Name, Table
from profiler.emulator import facts
from profiler.emulator.c_signature import UnfitCase
from profiler.emulator.cpu_check import CheckRun, VersionCheck
from profiler.emulator.failure import describe_failure
from profiler.errors import BuildFailed

_FINDINGS_SHOWN = 12  # of a version
_NAMES_SHOWN = 4  # of versions, beside lines that they share
_HEAD = ("version", "state", "outcome", "runs", "max error", "wavefronts", "conflicts", "found")
_OUTCOMES = {
    ("good", True): "passed",
    ("good", False): "NOT RIGHT",
    ("rejected", True): "caught",
    ("rejected", False): "NOT CAUGHT",
}


def check_blocks(
    title: str, checks: Sequence[VersionCheck], catalog: Path | None, *, everything: bool
) -> Iterator[Block]:
    """A row a version; below, what stands against those that are not as expected."""
    yield Heading(title, 1)
    yield Table(_HEAD, [_row(check) for check in checks], right=(3, 4, 5, 6))
    for check in checks:
        if not check.as_expected and (check.runs or check.error or check.contract):
            yield Heading(facts.summary_line(check))
            yield Findings(_items(check, catalog, None if everything else _FINDINGS_SHOWN))
        elif check.not_run:
            yield Heading(facts.summary_line(check))
    yield Line(f"modelled on the CPU{_traffic_of(checks)}")
    for words, versions in _unseen(checks).items():
        yield Line(f"compiled only for the GPU, so not checked here: {words} ({named(versions)})")


def named(versions: Sequence[str]) -> str:
    """The versions, or how many where they are many."""
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


def _row(check: VersionCheck) -> tuple[str, ...]:
    if not check.runs:
        why = _why_no_runs(check)
        return (Name(check.version), check.state, why, "", "", "", "", "")
    first = check.runs[0]
    return (
        Name(check.version),
        check.state,
        _outcome(check),
        str(len(check.runs)),
        _largest_error(check.runs),
        str(first.shared_wavefronts),
        str(first.bank_conflicts),
        _found(check),
    )


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
    failed_runs = [run for run in check.runs if not run.passed]
    if failed_runs:
        return describe_failure(min(failed_runs, key=lambda run: (run.flops, run.seed)).result)
    if broken := facts.contract_defects(check.contract, check.runs):
        return f"contract: {broken[0].text}"
    if check.error:
        return str(check.error).splitlines()[0]
    return _rounding(facts.largest_input_error(check.runs))


def _why_no_runs(check: VersionCheck) -> str:
    if isinstance(check.error, BuildFailed):
        return "does not compile"
    if check.error:
        return "cannot be called" if isinstance(check.error, UnfitCase) else "not judged"
    if check.contract is None:
        return "no workload"
    return _OUTCOMES[check.state, check.as_expected]


def _rounding(input_error: float | None) -> str:
    return "" if input_error is None else f"the 8-bit codes only: error {input_error:.2g}, not counted"


def _items(check: VersionCheck, catalog: Path | None, most: int | None) -> list[Item]:
    """The command that makes a run again, with the kind, place and text of each finding of that run."""
    by_command: dict[str, list[str]] = {}
    for finding in facts.findings(check)[:most]:
        where = f" at {finding.place.file}:{finding.place.line}" if finding.place else ""
        command = facts.replay_command(check.version, finding, catalog)
        by_command.setdefault(command, []).append(f"{finding.kind}{where}: {finding.text}")
    return [Item(Name(command), lines) for command, lines in by_command.items()]
