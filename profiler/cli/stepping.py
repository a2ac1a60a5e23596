"""How the steps of a history are printed: a row a step, and in one line what has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from profiler.cli.output import print_table, say
from profiler.errors import CannotJudge
from profiler.history import LATENCY, History, Step, TrendPoint
from profiler.history.change_points import VERSIONS
from profiler.history.step_words import (
    LAST_POINT,
    code_words,
    environment_words,
    level_words,
    moment,
    size_words,
    where_words,
)


def document(concept: str, found: Sequence[History]) -> dict[str, object]:
    """The histories for JSON, numbers in base units, sizes as fractions; null where a level was 0."""
    return {"concept": concept, "note": LAST_POINT, "series": [_history(one) for one in found]}


def check(found: Sequence[History], name: str) -> None:
    """Refuse a history of nothing."""
    if not found:
        way = "`profiler collect` measures it" if name == LATENCY else "`profiler import PATH` takes reports"
        raise CannotJudge(f"nothing asked about carries {name}: {way}")


def print_histories(found: Sequence[History]) -> None:
    """Print one table for each family, workload, GPU and mode."""
    for place, several in _tables(found):
        say(place)
        rows = [_row(one, change) for one in several for change in one.steps]
        if rows:
            header = ("kernel", "verdict", "size (95 %)", "level", "since", "can lie in", "machine code")
            print_table((*header, "environment", "due to"), rows)
        still = [_name(one) for one in several if not one.steps and not one.not_judged]
        if still:
            say(f"  no step: {', '.join(still)}")
        for words, few in _by_reason(several):
            say(f"  not judged, {words}: {', '.join(few)}")
        if pair := next((one.last_pair for one in several if one.last_pair), None):
            names = [_side(point, several[0], pair[0].version == pair[1].version) for point in pair]
            say(f"  {LAST_POINT}: profiler compare {names[0]} {names[1]}")
        say()


def _tables(found: Sequence[History]) -> Iterator[tuple[str, list[History]]]:
    for place, several in groupby(found, key=_place):
        yield place, list(several)


def _place(one: History) -> str:
    series = one.series
    where = ", ".join(filter(None, (series.workload, series.gpu or "", series.evidence, series.mode)))
    over = "over versions" if one.over == VERSIONS else "over runs"
    of = f" of {one.version}" if one.version else ""
    return f"{series.family}: {series.label}{of} {over} ({where})"


def _by_reason(several: Sequence[History]) -> Iterator[tuple[str, list[str]]]:
    short = [one for one in several if one.not_judged]
    for words in dict.fromkeys(one.not_judged for one in short):
        yield words, [_name(one) for one in short if one.not_judged == words]


def _name(one: History) -> str:
    return one.series.part.removesuffix("#0")


def _row(one: History, change: Step) -> tuple[str, ...]:
    return (
        _name(one),
        change.verdict.label,
        size_words(change),
        level_words(change),
        moment(change.likeliest),
        where_words(change),
        code_words(change),
        environment_words(change),
        change.circumstances.cause,
    )


def _side(point: TrendPoint, one: History, same_version: bool) -> str:
    return point.run_id if same_version else f"{one.series.family}/{point.version}"


def _history(one: History) -> dict[str, object]:
    series = one.series
    return {
        "family": series.family,
        "workload": series.workload,
        "gpu": series.gpu,
        "evidence": series.evidence.value,
        "mode": series.mode,
        "part": series.part,
        "kernel": series.base_name,
        "unit": series.unit,
        "over": one.over,
        "version": one.version,
        "points": sum(point.on_line for point in series.points),
        "not_judged": one.not_judged or None,
        "changes": [_change(change) for change in one.steps],
        "last_pair": None if one.last_pair is None else [_at(point) for point in one.last_pair],
    }


def _change(change: Step) -> dict[str, object]:
    step, told = change.change_point, change.circumstances
    return {
        "verdict": change.verdict.value,
        "reason": change.reason,
        "direction": "up" if step.direction > 0 else "down",
        "t": step.t,
        "before": step.before,
        "after": step.after,
        "size": _finite(step.size),
        "size_interval": [_finite(step.size_low), _finite(step.size_high)],
        "difference": step.difference,
        "difference_interval": [step.difference_low, step.difference_high],
        "last_before": _at(change.before),
        "likeliest": _at(change.likeliest),
        "possible": [_at(point) for point in change.possible],
        "environment": [one._asdict() for one in told.environment],
        "environment_unknown": told.unknown,
        "code": told.code._asdict(),
        "cause": told.cause,
    }


def _at(point: TrendPoint) -> dict[str, object]:
    return {"run_id": point.run_id, "version": point.version, "created": point.created.isoformat()}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
