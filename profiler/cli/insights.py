"""`profiler insights`: at most six statements about a version, each with the numbers that it rests on."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, open_store, print_document, print_lines, say

if TYPE_CHECKING:
    from profiler.advice import Insights, MetricInput, Statement
    from profiler.cli.output import Commands
    from profiler.documents import InsightsDocument

_WIDTH = 110  # of a line of text
_METRICS_SHOWN = 6  # of a statement in words; --json has them all

_DESCRIPTION = """\
At most six statements about VERSION (a report file, run id, family/version or version): what limits it, what
changed against the baseline, and the lever each points to, largest share of its time first. Every statement
names its metrics, their values, the baseline's values, the evidence, and whether every input was valid. What
the data do not carry is said to be unknown, with the lines of metrics.txt to collect; a counter that is
missing never becomes advice. A version whose results are wrong gets the correctness alone.

Of several launches the longest is looked at that is not PyTorch's random numbers or fill or a matrix product
of cuBLAS: --kernel names another. The baseline is the nearest correct ancestor in the lineage's catalogue
unless --against names one; a report file has none of its own. Each lever says in how many known steps of
optimisation it helped, and what would refute it (docs/insights.md)."""

_EPILOG = """\
exit codes: 0 · 2 an input cannot be read or used · 3 nothing is known of the version."""


def add(commands: Commands) -> None:
    """Add `insights`."""
    command = commands.add_parser(
        "insights",
        help="what limits a version, what changed, and what to try next",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("version", metavar="VERSION", help="what to look at")
    command.add_argument("--against", metavar="BASELINE", help="what to hold it against")
    shape = command.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    add_filters(command, "kernel", "workload", "gpu")
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Look, and print."""
    from profiler.documents import insights_of_name
    from profiler.evidence import load_metrics

    options = {name: getattr(arguments, name) for name in ("against", "workload", "gpu", "kernel")}
    document = insights_of_name(arguments.version, load_metrics(), open_store, **options)
    return print_document(document, arguments, print_text)


def print_text(document: InsightsDocument, _: argparse.Namespace) -> None:
    """Print the statements, each with its lever and its numbers."""
    from profiler.documents.insights import kind_words, share_words

    insights = document.insights
    print_lines(_head(insights))
    for number, statement in enumerate(insights.statements, 1):
        say(f"\n{number}. {kind_words(statement)}{share_words(statement)}, {statement.evidence}")
        _print_wrapped(statement.text)
        if statement.lever:
            _print_wrapped(f"→ {statement.lever}")
        if numbers := _numbers(statement):
            _print_wrapped(numbers)
        _print_wrapped(f"({statement.confidence})")
    if insights.hidden:
        say(f"\nand {insights.hidden} more that concern less")


def _head(insights: Insights) -> list[str]:
    """The version and where it ran, its baseline, and the launch that was looked at."""
    subject = insights.subject
    side = subject.measured.side if subject.measured else None
    place = ", ".join(filter(None, (*side.gpus, side.workload))) if side else ""
    lines = [
        f"{subject.label}{f'  ({place})' if place else ''}",
        f"against {subject.baseline}: {subject.baseline_why}" if subject.baseline else subject.baseline_why,
        f"{insights.launch}: {insights.launch_why}" if insights.launch else "",
    ]
    return [line for line in lines if line]


def _numbers(statement: Statement) -> str:
    from profiler.advice.statement import UNKNOWN

    if statement.kind == UNKNOWN:
        return ""
    more = len(statement.inputs) - _METRICS_SHOWN
    shown = [
        f"{metric.concept or metric.name} {_from_to(metric)}" for metric in statement.inputs[:_METRICS_SHOWN]
    ]
    return "; ".join((*shown, *([f"and {more} more: --json"] if more > 0 else [])))


def _from_to(metric: MetricInput) -> str:
    """The metric's number, from the baseline's where that has one; its state where it has no valid one."""
    from profiler.evidence import formatting

    if not metric.valid:
        return metric.state
    if metric.baseline is None or metric.baseline.number is None:
        return metric.text
    return formatting.from_to(metric.baseline, metric.value)


def _print_wrapped(text: str) -> None:
    print_lines(
        textwrap.wrap(text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
    )
