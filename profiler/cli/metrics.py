"""`profiler metrics`: what metrics.txt declares, the exact list for ncu, and whether its names exist."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, print_lines, print_table, say
from profiler.evidence import ARCHITECTURES, metric_table

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import MetricCheckDocument, MetricRequestDocument, MetricsDocument
    from profiler.evidence import DerivedForm, Metric
    from profiler.evidence.metric_table import Alternative

DESCRIPTION = """\
List what metrics.txt declares. With --chip, print the comma list for `ncu --metrics` alone on stdout, and
what collecting it costs on stderr. With --check, hold every name against NVIDIA's lists: exit 0 where all
exist, 2 where some do not, 3 where NVIDIA's library does not load."""


def add(commands: Commands) -> None:
    """Add `metrics`."""
    command = commands.add_parser(
        "metrics", help="list the metrics, print the list for ncu, check the names", description=DESCRIPTION
    )
    what = command.add_mutually_exclusive_group()
    chips = tuple(name for name, architecture in ARCHITECTURES.items() if architecture.ncu_chip)
    what.add_argument("--chip", choices=chips, metavar="sm_NN", help=f"one of {', '.join(chips)}")
    what.add_argument(
        "--check", nargs="?", const="", metavar="FILE", help="check the names in FILE (default: metrics.txt)"
    )
    command.add_argument(
        "--tier",
        choices=metric_table.TIERS,
        default="full",
        help="lean metrics only, or all (full, the default)",
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Do one of the three."""
    from profiler.documents import MetricsDocument, check_metrics, metrics_for_chip

    if arguments.check is not None:
        path = Path(arguments.check) if arguments.check else None
        return print_document(check_metrics(path), arguments, _print_check)
    table = metric_table.load_metrics()
    if arguments.chip:
        request = metrics_for_chip(table, arguments.chip, arguments.tier)
        return print_document(request, arguments, _print_request)
    return print_document(MetricsDocument(table, arguments.tier), arguments, _print_metrics)


def _print_check(document: MetricCheckDocument, _arguments: argparse.Namespace) -> None:
    for problem in document.problems:
        print(problem, file=sys.stderr)
    if not document.problems:
        print_lines(document.sentences)


def _print_request(document: MetricRequestDocument, _arguments: argparse.Namespace) -> None:
    """The comma list alone on standard output, so that it can be handed to ncu."""
    say(",".join(document.names))
    for sentence in document.sentences:
        print(sentence, file=sys.stderr)


def _print_metrics(document: MetricsDocument, _arguments: argparse.Namespace) -> None:
    rows, group = [], ""
    for metric in document.metrics:
        names = "\n".join((*map(_name_and_chips, metric.alternatives), *map(_form, metric.forms)))
        facts = (metric.unit, metric.better, _threshold(metric), metric.tier)
        shown_group = metric.group if metric.group != group else ""
        rows.append((shown_group, metric.concept, metric.label, *facts, names))
        group = metric.group
    rows += [("captured", "", "", "", "", "", "", name) for name in document.table.captured]
    print_table(("group", "concept", "label", "unit", "better", "threshold", "tier", "ncu metric"), rows)


def _name_and_chips(alternative: Alternative) -> str:
    chips = " ".join(chip for chip in ARCHITECTURES if chip in alternative.chips)
    return f"{alternative.name} @{chips}" if chips else alternative.name


def _form(form: DerivedForm) -> str:
    chips = " ".join(chip for chip in ARCHITECTURES if chip in form.chips)
    return f"{form.name} @{chips}" if chips else form.name


def _threshold(metric: Metric) -> str:
    if metric.threshold_pp is not None:
        return f"{metric.threshold_pp:g}pp"
    of_whole = f", {metric.whole_share * 100:g}% of {metric.whole}" if metric.whole else ""
    return f"{metric.threshold * 100:g}%{of_whole}"
