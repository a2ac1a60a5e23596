"""`profiler trend`: a metric over versions, a row a kernel, a column a version, with its gaps and breaks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_evidence,
    add_filters,
    add_json,
    evidence_of,
    positive,
    print_document,
    print_table,
    say,
)
from profiler.evidence import Evidence, formatting

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import TrendDocument, TrendTable
    from profiler.history import TrendPoint

_DESCRIPTION = """\
One metric over the versions of each kernel, on each workload and GPU. CONCEPT is a concept of metrics.txt or
an exact ncu name. A | stands before a value that must not be joined to the one on its left (the driver, ncu
version, counter or unit changed), a ~ before one that is derived from other counters; a state where there is
no number, · where the kernel did not run, ⊘ before the value of a version that is wrong. Versions without a
value, and kernels with a number in one version alone, are counted below the table; --all lists them. Versions
come in the order of the catalogue that the family's newest run keeps, else in the order in which they first
appeared."""


def add(commands: Commands) -> None:
    """Add `trend`."""
    trend = commands.add_parser("trend", help="print one metric over the versions", description=_DESCRIPTION)
    trend.add_argument("concept", metavar="CONCEPT", help="a concept such as duration, or an exact ncu name")
    add_filters(trend, "family", "workload", "gpu", "kernel")
    add_evidence(trend)
    trend.add_argument("--over", choices=("versions", "time"), default="versions", help="time: every run")
    trend.add_argument(
        "--across", action="append", choices=("driver", "ncu"), default=[], help="no break where this changes"
    )
    trend.add_argument(
        "--last", type=positive, default=8, metavar="N", help="the newest N versions (default 8)"
    )
    trend.add_argument(
        "--all", action="store_true", help="also versions without a value and kernels of one version alone"
    )
    add_json(trend)
    trend.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one metric over versions or runs."""
    from profiler.cli.output import open_store
    from profiler.documents import load_trend
    from profiler.evidence import load_metrics

    names = ("family", "workload", "gpu", "kernel", "over", "across")
    filters = {name: getattr(arguments, name) for name in names} | {"evidence": evidence_of(arguments)}
    store = open_store()
    document = load_trend(arguments.concept, load_metrics(), store, **filters)
    return print_document(document, arguments, print_text)


def print_text(document: TrendDocument, arguments: argparse.Namespace) -> None:
    """Print one table for each family, workload, GPU and mode; the last columns of it."""
    from profiler.documents import trend_tables

    for table in trend_tables(document.trends, arguments.last, every=arguments.all):
        first = table.first
        gpu = first.gpu or ("" if first.evidence is Evidence.MODELLED else "GPU unknown")
        where = ", ".join(filter(None, (first.workload, gpu, first.evidence, first.mode)))
        unit = f", {first.unit}" if formatting.is_long_unit(first.unit) else ""
        say(f"{first.family}: {first.label}{unit} ({where})")
        if table.trends:
            header = ["kernel", *(first.points[position].version for position in table.columns)]
            print_table(header, _rows(table), right=range(1, len(header)))
        if table.earlier:
            say(f"  and {table.earlier} earlier: --last N")
        for sentence in table.left_out:
            say(f"  {sentence}")
        if table.left_out:
            say("  --all shows every version and kernel")
        points = [trend.points[position] for trend in table.trends for position in table.columns]
        for words in dict.fromkeys(point.breaks for point in points if point.breaks):
            say(f"  | {words}")
        derivations = (point.value.derivation for point in points)
        for words in dict.fromkeys(derivation.words for derivation in derivations if derivation):
            say(f"  ~ {words}")
        say()


def _rows(table: TrendTable) -> list[list[str]]:
    rows = []
    parts = {trend.part for trend in table.trends}
    for trend in table.trends:
        points = [trend.points[position] for position in table.columns]
        numbers = [abs(point.value.number) for point in points if point.value.number is not None]
        scale = formatting.scale_for(trend.unit, max(numbers)) if numbers else None
        if scale and formatting.is_long_unit(trend.unit):  # it stands in the table's head
            scale = formatting.Scale(scale.divisor, scale.unit.removesuffix(trend.unit).strip())
        # a kernel that is launched once needs no #0
        alone = trend.part.endswith("#0") and f"{trend.part[:-1]}1" not in parts
        name = trend.part.removesuffix("#0") if alone else trend.part
        rows.append([f"{name}{trend.also}", *(_cell(point, trend.unit, scale) for point in points)])
    return rows


def _cell(point: TrendPoint, unit: str, scale: formatting.Scale | None) -> str:
    from profiler.history.trend import ABSENT

    if point.gap == ABSENT:
        return "·"
    text = str(formatting.quantity(point.value, scale if point.value.unit == unit else None))
    if point.wrong:
        return f"⊘ {text}"
    text = f"~ {text}" if point.value.derivation else text
    return f"| {text}" if point.breaks else text
