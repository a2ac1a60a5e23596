"""How regressions read on a terminal, and the same as JSON."""

from __future__ import annotations

from profiler.cli.output import print_table, say
from profiler.evidence import Evidence, formatting
from profiler.gate import Acknowledgement
from profiler.history import LATENCY
from profiler.regressions import CauseFinder, Coverage, Regression, RegressionReport, VersionRun
from profiler.statistics import Verdict

SCHEMA = 1
ROWS_SHOWN = 40
_HEAD = ("version", "metric", "verdict", "on", "since", "due to", "acknowledged")


def print_text(report: RegressionReport, causes: CauseFinder) -> None:
    """A row a regression, then for each why and how sure; what nobody could judge comes last."""
    coverage = report.coverage
    shown = report.regressions[:ROWS_SHOWN]
    if shown:
        _print_regressions(shown, causes)
    else:
        say("nothing is worse now" if coverage.series else "no run yet that could be held against another")
    if len(report.regressions) > len(shown):
        say(f"and {len(report.regressions) - len(shown)} more: --family, or --json for all")
    for unclear, count in coverage.unclear.items():
        command = f": `{unclear.command}`" if unclear.command else ""
        say(f"? {count} cannot be judged, {unclear.why}{command}")
    say(coverage.words)
    if report.open:
        command = report.open[0].command
        say(f"to acknowledge the first: {command}" if command else "")


def document(report: RegressionReport, causes: CauseFinder) -> dict[str, object]:
    """Changes are shares of the old level: 0.03 is 3 % more."""
    return {
        "schema": SCHEMA,
        "regressions": [_regression_document(regression, causes) for regression in report.regressions],
        "looked_at": _coverage_document(report.coverage),
    }


def _print_regressions(regressions: tuple[Regression, ...], causes: CauseFinder) -> None:
    found_causes = [causes.find(regression) for regression in regressions]
    pairs = list(zip(regressions, found_causes, strict=True))
    print_table(_HEAD, [_row(regression, cause.due_to) for regression, cause in pairs])
    for regression, cause in pairs:
        has_acknowledgement = regression.acknowledged or regression.lapsed
        acknowledged = f"acknowledged: {regression.passed_words}" if has_acknowledgement else ""
        words = "; ".join(filter(None, (regression.how_sure, cause.words, acknowledged)))
        say(f"  {regression.subject} {regression.label}: {words}")


def _row(regression: Regression, due_to: str) -> tuple[str, ...]:
    series = regression.series
    word = "⊘ wrong" if regression.became_wrong else Verdict.WORSE.label
    mode = series.mode if series.concept == LATENCY else ""
    place = ", ".join(filter(None, (series.workload, series.gpu, mode, series.evidence.value)))
    return (
        regression.subject,
        regression.label,
        f"{word} {regression.change}".strip(),
        place,
        regression.since,
        due_to,
        regression.passed,
    )


def _regression_document(regression: Regression, causes: CauseFinder) -> dict[str, object]:
    series, cause = regression.series, causes.find(regression)
    acknowledged, lapsed = regression.acknowledged, regression.lapsed
    return {
        **{name: text or None for name, text in series._asdict().items()},
        "evidence": series.evidence.value,
        "found_by": regression.kind,
        "before": _run_document(regression.before),
        "possible": [_run_document(run) for run in regression.possible],
        "now": _run_document(regression.now),
        "a": formatting.as_json(regression.a),
        "b": formatting.as_json(regression.b),
        "effect": regression.effect,
        "interval": regression.interval,
        "interval_kind": regression.interval_kind if regression.interval else None,
        "detectable": regression.detectable,
        "how_sure": regression.how_sure,
        "held_against": regression.held_against or None,
        "earlier_steps": regression.earlier_steps,
        "due_to": cause.due_to,
        "cause": cause.words or None,
        "environment": cause.environment or None,
        "acknowledged": acknowledged and _acknowledgement_document(acknowledged),
        "acknowledgement_ended": lapsed
        and {**_acknowledgement_document(lapsed.acknowledgement), "ended": lapsed.why},
        "command": regression.command or None,
    }


def _acknowledgement_document(acknowledgement: Acknowledgement) -> dict[str, str]:
    return {
        "id": acknowledgement.id,
        "until": acknowledgement.until,
        "who": acknowledgement.who,
        "why": acknowledgement.why,
    }


def _run_document(run: VersionRun) -> dict[str, str]:
    return {"run_id": run.run_id, "version": run.version, "created": run.created.isoformat()}


def _coverage_document(coverage: Coverage) -> dict[str, object]:
    return {
        "families": coverage.families,
        "series": {kind.value: coverage.series[kind] for kind in Evidence},
        "pairs": coverage.pairs,
        "cannot_be_judged": [
            {"why": unclear.why, "count": count, "command": unclear.command or None}
            for unclear, count in coverage.unclear.items()
        ],
    }
