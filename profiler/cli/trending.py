"""How a metric over versions is printed: a row a kernel, a column a version, with its gaps and breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from profiler.cli.output import print_table, say
from profiler.errors import CannotJudge
from profiler.evidence import Evidence, formatting
from profiler.history import Trend, TrendPoint
from profiler.history.trend import ABSENT


def document(one: Trend) -> dict[str, object]:
    """A series for JSON, numbers in base units."""
    return {
        "concept": one.concept,
        "label": one.label,
        "family": one.family,
        "workload": one.workload,
        "gpu": one.gpu,
        "evidence": one.evidence.value,
        "mode": one.mode,
        "part": one.part,
        "kernel": one.base_name,
        "unit": one.unit,
        "points": [_point(point) for point in one.points],
    }


def check(series: Sequence[Trend], name: str) -> None:
    """Refuse a history of nothing: no launch that was asked about carries the metric."""
    if not series:
        raise CannotJudge(
            f"no launch asked about carries {name}: import reports that hold it (`profiler import PATH`)"
        )


def print_trends(series: Sequence[Trend], last: int) -> None:
    """Print one table for each family, workload, GPU and mode; `last` columns of it."""
    for rows in _tables(series):
        first = rows[0]
        where = ", ".join(
            filter(None, (first.workload, first.gpu or _unnamed(first), first.evidence, first.mode))
        )
        unit = f", {first.unit}" if formatting.is_long_unit(first.unit) else ""
        say(f"{first.family}: {first.label}{unit} ({where})")
        moments = first.points[-last:]
        header = ["kernel", *(point.version for point in moments)]
        print_table(header, _rows(rows, last), right=range(1, len(header)))
        if len(first.points) > len(moments):
            say(f"  and {len(first.points) - len(moments)} earlier: --last N")
        for line in dict.fromkeys(p.breaks for row in rows for p in row.points[-last:] if p.breaks):
            say(f"  | {line}")
        say()


def _tables(series: Sequence[Trend]) -> Iterator[list[Trend]]:
    """Series that share their columns."""
    for _, rows in groupby(
        series, key=lambda one: (one.family, one.workload, one.gpu, one.evidence, one.mode)
    ):
        yield list(rows)


def _rows(series: Sequence[Trend], last: int) -> list[list[str]]:
    found = []
    parts = {one.part for one in series}
    for one in series:
        numbers = [abs(p.value.number) for p in one.points[-last:] if p.value.number is not None]
        scale = formatting.scale_for(one.unit, max(numbers)) if numbers else None
        if scale and formatting.is_long_unit(one.unit):  # it stands in the table's head
            scale = formatting.Scale(scale.divisor, scale.unit.removesuffix(one.unit).strip())
        # a kernel that is launched once needs no #0
        alone = one.part.endswith("#0") and f"{one.part[:-1]}1" not in parts
        name = one.part.removesuffix("#0") if alone else one.part
        found.append([name, *(_cell(point, one, scale) for point in one.points[-last:])])
    return found


def _unnamed(one: Trend) -> str:
    return "" if one.evidence is Evidence.MODELLED else "GPU unknown"


def _cell(point: TrendPoint, one: Trend, scale: formatting.Scale | None) -> str:
    if point.gap == ABSENT:
        return "·"
    same = point.value.unit == one.unit
    text = str(formatting.quantity(point.value, scale if same else None))
    if point.wrong:
        return f"⊘ {text}"
    return f"| {text}" if point.breaks else text


def _point(point: TrendPoint) -> dict[str, object]:
    return {
        "run_id": point.run_id,
        "version": point.version,
        "created": point.created.isoformat(),
        "metric": point.metric or None,
        **(formatting.as_json(point.value) if point.gap != ABSENT else {"state": ABSENT}),
        "grid": point.grid,
        "block": point.block,
        "breaks": point.breaks or None,
        "wrong": point.wrong,
    }
