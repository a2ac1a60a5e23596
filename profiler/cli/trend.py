"""`profiler trend`: a metric over versions, a row a kernel, a column a version, with its gaps and breaks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
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
    from profiler.documents import TrendDocument
    from profiler.history import Trend, TrendPoint

_DESCRIPTION = """\
One metric over the versions of each kernel, on each workload and GPU. CONCEPT is a concept of metrics.txt or
an exact ncu name. A | stands before a value that must not be joined to the one on its left (the driver, ncu
version, counter or unit changed), a ~ before one that is derived from other counters; a state where there is
no number, · where the kernel did not run, ⊘ before the value of a version that is wrong. Versions come in
the order of the catalogue that the family's newest run keeps, else in the order in which they first
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
    last = arguments.last
    for table in _tables(document.trends):
        first = table[0]
        gpu = first.gpu or ("" if first.evidence is Evidence.MODELLED else "GPU unknown")
        where = ", ".join(filter(None, (first.workload, gpu, first.evidence, first.mode)))
        unit = f", {first.unit}" if formatting.is_long_unit(first.unit) else ""
        say(f"{first.family}: {first.label}{unit} ({where})")
        columns = first.points[-last:]
        header = ["kernel", *(point.version for point in columns)]
        print_table(header, _rows(table, last), right=range(1, len(header)))
        if len(first.points) > len(columns):
            say(f"  and {len(first.points) - len(columns)} earlier: --last N")
        points = [point for trend in table for point in trend.points[-last:]]
        for words in dict.fromkeys(point.breaks for point in points if point.breaks):
            say(f"  | {words}")
        derivations = (point.value.derivation for point in points)
        for words in dict.fromkeys(derivation.words for derivation in derivations if derivation):
            say(f"  ~ {words}")
        say()


def _tables(trends: Sequence[Trend]) -> Iterator[list[Trend]]:
    """Trends that share their columns."""
    for _, group in groupby(trends, key=_place):
        yield list(group)


def _place(trend: Trend) -> tuple[object, ...]:
    return trend.family, trend.workload, trend.gpu, trend.evidence, trend.mode


def _rows(trends: Sequence[Trend], last: int) -> list[list[str]]:
    rows = []
    parts = {trend.part for trend in trends}
    for trend in trends:
        points = trend.points[-last:]
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
