"""How regressions read on a terminal, and the same as JSON."""

from __future__ import annotations

from profiler.cli.output import print_table, say
from profiler.evidence import Evidence, formatting
from profiler.gate import Acknowledgement
from profiler.history import LATENCY
from profiler.regressions import CauseFinder, Coverage, Regression, RegressionReport, VersionRun
from profiler.statistics import Verdict

SCHEMA = 1
SHOWN = 40
_HEAD = ("version", "metric", "verdict", "on", "since", "due to", "acknowledged")


def print_text(found: RegressionReport, causes: CauseFinder) -> None:
    """A row a regression, then for each why and how sure; what could not be told comes last."""
    shown = found.regressions[:SHOWN]
    told = [causes.find(one) for one in shown]
    if shown:
        rows = [_row(one, cause.due_to) for one, cause in zip(shown, told, strict=True)]
        print_table(_HEAD, rows)
        for one, cause in zip(shown, told, strict=True):
            passed = f"acknowledged: {one.passed_words}" if one.acknowledged or one.lapsed else ""
            words = "; ".join(filter(None, (one.how_sure, cause.words, passed)))
            say(f"  {one.subject} {one.label}: {words}")
    else:
        say(
            "nothing is worse now"
            if found.coverage.series
            else "no run yet that could be held against another"
        )
    if len(found.regressions) > len(shown):
        say(f"and {len(found.regressions) - len(shown)} more: --family, or --json for all")
    for unclear, count in found.coverage.unclear.items():
        command = f": `{unclear.command}`" if unclear.command else ""
        say(f"? {count} cannot be judged, {unclear.why}{command}")
    say(found.coverage.words)
    if found.open:
        say(f"to acknowledge the first: {found.open[0].command}" if found.open[0].command else "")


def document(found: RegressionReport, causes: CauseFinder) -> dict[str, object]:
    """Changes are shares of the old level: 0.03 is 3 % more."""
    return {
        "schema": SCHEMA,
        "regressions": [_json(one, causes) for one in found.regressions],
        "looked_at": _looked(found.coverage),
    }


def _row(one: Regression, due_to: str) -> tuple[str, ...]:
    word = "⊘ wrong" if one.became_wrong else Verdict.WORSE.label
    mode = one.series.mode if one.series.concept == LATENCY else ""
    place = (one.series.workload, one.series.gpu, mode, one.series.evidence.value)
    where = ", ".join(filter(None, place))
    return one.subject, one.label, f"{word} {one.change}".strip(), where, one.since, due_to, one.passed


def _json(one: Regression, causes: CauseFinder) -> dict[str, object]:
    place, cause = one.series, causes.find(one)
    return {
        **{name: text or None for name, text in place._asdict().items()},
        "evidence": place.evidence.value,
        "found_by": one.kind,
        "before": _spot(one.before),
        "possible": [_spot(spot) for spot in one.possible],
        "now": _spot(one.now),
        "a": formatting.as_json(one.a),
        "b": formatting.as_json(one.b),
        "effect": one.effect,
        "interval": one.interval,
        "interval_kind": one.interval_kind if one.interval else None,
        "detectable": one.detectable,
        "how_sure": one.how_sure,
        "held_against": one.held_against or None,
        "earlier_steps": one.earlier_steps,
        "due_to": cause.due_to,
        "cause": cause.words or None,
        "environment": cause.environment or None,
        "acknowledged": one.acknowledged and _acknowledged(one.acknowledged),
        "acknowledgement_ended": one.lapsed and {**_acknowledged(one.lapsed.of), "ended": one.lapsed.why},
        "command": one.command or None,
    }


def _acknowledged(one: Acknowledgement) -> dict[str, str]:
    return {"id": one.id, "until": one.until, "who": one.who, "why": one.why}


def _spot(spot: VersionRun) -> dict[str, str]:
    return {"run_id": spot.run_id, "version": spot.version, "created": spot.created.isoformat()}


def _looked(looked: Coverage) -> dict[str, object]:
    return {
        "families": looked.families,
        "series": {kind.value: looked.series[kind] for kind in Evidence},
        "pairs": looked.pairs,
        "cannot_be_judged": [
            {"why": one.why, "count": count, "command": one.command or None}
            for one, count in looked.unclear.items()
        ],
    }
