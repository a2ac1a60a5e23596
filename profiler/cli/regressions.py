"""`profiler regressions`: what is worse now, since when, how sure, and whether somebody let it pass."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_document, print_table, say
from profiler.statistics import Verdict

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import RegressionsDocument
    from profiler.regressions import Regression

ROWS_SHOWN = 40
GROUPS_SHOWN = 12  # of each kind that is not counted
_HEAD = ("version", "metric", "kernel", "verdict", "on", "since", "due to", "acknowledged")

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
workload is declared (`import --workload`), and is held against the last run of its own size.

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
    code = print_document(document, arguments, print_text)
    document.keep_causes()
    return code


def print_text(document: RegressionsDocument, _arguments: argparse.Namespace) -> None:
    """A row a regression, then for each why and how sure; what nobody could judge comes last."""
    coverage, regressions = document.report.coverage, document.regressions
    say(document.headline if coverage.series else "no run yet that could be held against another")
    _print_groups(document)
    if regressions:
        say("")
        _print_regressions(document)
    if len(regressions) > ROWS_SHOWN:
        say(f"and {len(regressions) - ROWS_SHOWN} more: --family, or --json for all")
    for unclear, count in coverage.unclear.items():
        command = f": `{unclear.command}`" if unclear.command else ""
        say(f"? {count} cannot be judged, {unclear.why}{command}")
    say(coverage.words)
    if document.worse.count and (command := document.worse.groups[0].lead.command):
        say(f"to acknowledge the first: {command}")


def _print_groups(document: RegressionsDocument) -> None:
    """A line a group: what counts, then apart from it what does not."""
    worse, sign = document.worse, Verdict.WORSE.traits.sign
    for group in worse.groups:
        say(f"{sign} {group.shared.words if group.shared else group.words}")
    for title, groups in (
        ("acknowledged", worse.acknowledged),
        ("slower than its parent, which is no regression", worse.slower_than_parent),
        ("not open", worse.not_open),
    ):
        if groups:
            say(f"{title}:")
        for group in groups[:GROUPS_SHOWN]:
            say(f"  {group.words}")
        if len(groups) > GROUPS_SHOWN:
            say(f"  and {len(groups) - GROUPS_SHOWN} more: --json")


def _print_regressions(document: RegressionsDocument) -> None:
    from profiler.regressions import RegressionKind

    # A cause is found by reading bundles: only those of what is shown.
    regressions = document.regressions[:ROWS_SHOWN]
    causes = [document.causes.find(regression) for regression in regressions]
    pairs = list(zip(regressions, causes, strict=True))
    print_table(_HEAD, [_row(regression, cause.due_to) for regression, cause in pairs])
    # Exact counts of one launch, worse in the same runs, have one explanation.
    alike: dict[tuple[object, ...], list[tuple[Regression, str]]] = {}
    for regression, cause in pairs:
        has_acknowledgement = regression.acknowledged or regression.lapsed
        acknowledged = f"acknowledged: {regression.passed_words}" if has_acknowledgement else ""
        words = "; ".join(filter(None, (regression.how_sure, cause.words, acknowledged)))
        series = regression.series._replace(concept="")
        runs = (regression.before, regression.possible, regression.how_sure, acknowledged)
        is_exact = regression.kind is RegressionKind.EXACT
        alike.setdefault((series, *runs) if is_exact else (id(regression),), []).append((regression, words))
    for (regression, words), *others in alike.values():
        labels = [regression.label, *(other.label for other, _ in others)]
        launch = f" of {regression.launch}" if regression.launch else ""
        say(f"  {regression.subject} {', '.join(labels)}{launch}: {words}")


def _row(regression: Regression, due_to: str) -> tuple[str, ...]:
    from profiler.history import LATENCY

    series = regression.series
    mode = series.mode if series.concept == LATENCY else ""
    place = ", ".join(filter(None, (series.workload, series.gpu, mode, series.evidence.value)))
    return (
        regression.subject,
        regression.label,
        regression.launch,
        f"{regression.verdict_label} {regression.change}".strip(),
        place,
        regression.since,
        due_to,
        regression.passed,
    )
