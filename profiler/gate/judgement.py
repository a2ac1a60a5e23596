"""The gate: every contest judged as one table, what somebody let pass, and everything said once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from profiler.compare import UNKNOWN_NOISE, Comparison, NoiseModel, compare
from profiler.evidence import Evidence, MetricTable, Side
from profiler.gate.acknowledgement import Acknowledgement, find_acknowledgement
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Check, Finding, Outcome, Verdicts
from profiler.gate.rules import PairRules
from profiler.statistics import Verdict, many

NAMED = 4  # workloads that one line names


def judge(
    contests: Sequence[ComparisonPair],
    table: MetricTable,
    *,
    on: Collection[str] = (),
    across: Collection[str] = frozenset(),
    noise: NoiseModel = UNKNOWN_NOISE,
    let_pass: Sequence[Acknowledgement] = (),
) -> Verdicts:
    """Hold every subject against its baseline; `on` names what is judged besides time and exact counts."""
    held = [
        compare(one.a, one.b, table, across=across, noise=noise) if one.a and one.b else None
        for one in contests
    ]
    return judge_comparisons(contests, held, table, on=on, let_pass=let_pass)


def judge_comparisons(
    contests: Sequence[ComparisonPair],
    held: Sequence[Comparison | None],
    table: MetricTable,
    *,
    on: Collection[str] = (),
    let_pass: Sequence[Acknowledgement] = (),
) -> Verdicts:
    """Judge what was compared already: a comparison a contest, None where a side is not there."""
    findings: list[Finding] = []
    compared = 0
    for contest, comparison in zip(contests, _together(held), strict=True):
        bench = PairRules(contest, table, frozenset(on))
        if comparison is None:
            findings += _let_pass(list(bench.alone()), contest, contest.b, let_pass)
            continue
        found = list(bench.findings(comparison))
        if contest.itself:
            outcome = Outcome.NOTED if contest.noted else Outcome.UNJUDGED
            told = bench.finding(Check.COMPARABILITY, outcome, Verdict.NOT_COMPARABLE, contest.why)
            found = [one for one in found if one.outcome is not Outcome.PASSED] + [told]
        compared += any(one.check is not Check.COMPARABILITY for one in found)
        findings += _let_pass(found, contest, comparison.b, let_pass)
    findings += _not_told(contests, held, table, on)
    return Verdicts(tuple(_once(findings)), compared)


def _not_told(
    contests: Sequence[ComparisonPair],
    held: Sequence[Comparison | None],
    table: MetricTable,
    on: Collection[str],
) -> Iterator[Finding]:
    """Concepts that were asked for and of which nothing was compared: a finding a subject and concept."""
    told: dict[str, set[str]] = {}
    for contest, comparison in zip(contests, held, strict=True):
        if comparison is not None and not contest.rejected:
            there = told.setdefault(contest.subject, set())
            there |= {change.concept for pair in comparison.pairs for change in pair.metrics}
    for subject, there in told.items():
        for concept in sorted({*on} - there):
            kind = table.by_concept[concept].evidence
            words = f"{concept} was asked for, and nothing {kind} that could carry it was compared"
            yield Finding(
                Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, subject, "", words, concept=concept
            )


def _let_pass(
    found: Sequence[Finding], contest: ComparisonPair, side: Side | None, let_pass: Sequence[Acknowledgement]
) -> list[Finding]:
    """The findings on a side, those that somebody acknowledged as such."""
    return [one if side is None else _acknowledged(one, contest, side, let_pass) for one in found]


def _acknowledged(
    finding: Finding, contest: ComparisonPair, side: Side, let_pass: Sequence[Acknowledgement]
) -> Finding:
    """A regression that somebody let pass, as such, and one whose acknowledgement has ended, with its end.

    Nobody can let pass what is wrong: it has no speed, and no fact of it counts.
    """
    if finding.outcome is not Outcome.FAILED or finding.check is Check.CORRECTNESS:
        return finding
    if side.family is None or side.version is None:
        return finding
    one = find_acknowledgement(
        let_pass,
        family=side.family,
        version=side.version,
        workload=contest.workload,
        gpu=contest.gpu,
        concept=finding.concept,
        made=contest.made,
        effect=finding.effect,
    )
    if one is None:
        return finding
    outcome = Outcome.ACKNOWLEDGED if isinstance(one, Acknowledgement) else finding.outcome
    return replace(finding, outcome=outcome, acknowledged=one.words)


def _together(held: Sequence[Comparison | None]) -> list[Comparison | None]:
    """The comparisons, their latencies judged as one table: many of them cry wolf no more often than one."""
    decisions = [one.decision for each in held if each for one in each.latency]
    judged = iter(many.judge_together(decisions))
    return [
        each and replace(each, latency=tuple(replace(one, decision=next(judged)) for one in each.latency))
        for each in held
    ]


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """What is said of a version in the same words in many places is said once, with all of them."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for index, one in enumerate(findings):
        alike = one.check is Check.CORRECTNESS or one.outcome is Outcome.NOTED
        everywhere = alike or not one.baseline or one.evidence == Evidence.STATIC
        words = (one.check, one.outcome, one.subject, one.baseline, one.kernel, one.line)
        groups.setdefault(words if everywhere else (*words, index), []).append(one)
    return [_joined(several) for several in groups.values()]


def _joined(several: Sequence[Finding]) -> Finding:
    first = several[0]
    if len(several) == 1:
        return first
    workloads, gpus, kinds = (
        list(dict.fromkeys(getattr(one, name) for one in several)) for name in ("workload", "gpu", "evidence")
    )
    return replace(
        first,
        workload=", ".join(filter(None, workloads))
        if len(workloads) <= NAMED
        else f"{len(workloads)} workloads",
        gpu=", ".join(filter(None, gpus)) if len(kinds) == 1 else "",
        evidence=", ".join(kinds),
    )
