"""Judges all pairs of a gate by the rules, applies acknowledgements, and merges repeated findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge, judge_comparisons_together
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.gate.acknowledgement import Acknowledgement, find_acknowledgement
from profiler.gate.comparison_pairs import THIS_WORKLOAD, ComparisonPair
from profiler.gate.finding import Check, Finding, Outcome, Verdicts
from profiler.gate.rules import PairRules
from profiler.statistics.verdict import Verdict

NAMED = 4  # how many workloads one line names
_OF_TWO_MEASUREMENTS = (Check.REGRESSION, Check.MISSING, Check.COMPARABILITY)


def judge(
    pairs: Sequence[ComparisonPair],
    table: MetricTable,
    *,
    on: Collection[str] = (),
    across: Collection[str] = frozenset(),
    noise: NoiseModel = UNKNOWN_NOISE,
    pairing: Pairing = NO_PAIRS,
    acknowledged: Sequence[Acknowledgement] = (),
    kernel: str | None = None,
) -> Verdicts:
    """Compare every pair and judge it.

    `on` names concepts that are judged besides time and exact counts, `across` what may differ, `kernel`
    which launches are compared (see compare).
    """
    same_judge = Judge(table, noise, pairing, across, kernel)
    comparisons = same_judge.all_sides((pair.a, pair.b) for pair in pairs)
    return judge_comparisons(pairs, comparisons, table, on=on, acknowledged=acknowledged)


def judge_comparisons(
    pairs: Sequence[ComparisonPair],
    comparisons: Sequence[Comparison | None],
    table: MetricTable,
    *,
    on: Collection[str] = (),
    acknowledged: Sequence[Acknowledgement] = (),
) -> Verdicts:
    """Judge pairs that were compared already; a comparison is None where a side is missing."""
    findings: list[Finding] = []
    compared = 0
    # The counters by which the gate may fail: time, and what was asked for.
    together = judge_comparisons_together(comparisons, {HEADLINE, *on})
    for pair, comparison in zip(pairs, together, strict=True):
        rules = PairRules(pair, table, frozenset(on))
        if comparison is None:
            own, side = list(rules.without_comparison()), pair.b
        else:
            own, side = list(rules.of_comparison(comparison)), comparison.b
            same = comparison.one_measurement
            if pair.same_results or same:  # that equal results are equal is no reason to pass or to fail
                own = [finding for finding in own if finding.outcome is not Outcome.PASSED]
                if same:  # and what an export rounds or leaves out is neither worse nor missing
                    own = [finding for finding in own if finding.check not in _OF_TWO_MEASUREMENTS]
                own.append(rules.same_results(pair.why or (same.words if same else "")))
            # A pair with nothing but remarks on comparability was not compared.
            compared += any(finding.check is not Check.COMPARABILITY for finding in own)
        findings += [_with_acknowledgement(finding, pair, side, acknowledged) for finding in own]
    findings += _find_uncompared_concepts(pairs, comparisons, table, on)
    return Verdicts(tuple(_merge_findings(findings)), compared)


def _with_acknowledgement(
    finding: Finding, pair: ComparisonPair, side: Side | None, acknowledged: Sequence[Acknowledgement]
) -> Finding:
    """The finding with the acknowledgement that lets it pass, or that did and has ended.

    Wrong results cannot be acknowledged: they have no speed, and none of their facts count.
    """
    if finding.outcome is not Outcome.FAILED or finding.check is Check.CORRECTNESS:
        return finding
    if side is None or side.family is None or side.version is None:  # a report file has no version
        return finding
    acknowledgement = find_acknowledgement(
        acknowledged,
        family=side.family,
        version=side.version,
        workload=pair.workload,
        gpu=pair.gpu,
        concept=finding.concept,
        created=pair.created,
        effect=finding.effect,
    )
    if acknowledgement is None:
        return finding
    counts = isinstance(acknowledgement, Acknowledgement)
    outcome = Outcome.ACKNOWLEDGED if counts else finding.outcome
    return replace(finding, outcome=outcome, acknowledged=acknowledgement.words)


def _find_uncompared_concepts(
    pairs: Sequence[ComparisonPair],
    comparisons: Sequence[Comparison | None],
    table: MetricTable,
    on: Collection[str],
) -> Iterator[Finding]:
    """A finding for each subject and concept in `on` of which nothing was compared."""
    compared: dict[str, set[str]] = {}
    for pair, comparison in zip(pairs, comparisons, strict=True):
        if comparison is not None and not pair.rejected_in_run:
            concepts = compared.setdefault(pair.subject, set())
            concepts |= {change.concept for launches in comparison.pairs for change in launches.metrics}
    # Silence about a concept that was asked for would read as a pass.
    for subject, concepts in compared.items():
        for concept in sorted({*on} - concepts):
            kind = table.by_concept[concept].evidence
            line = f"--on {concept}: no {kind} results were compared, so there is no {concept} to judge"
            yield Finding(
                Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, subject, "", line, concept=concept
            )


def _merge_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with those that say the same of one version in several places merged into one.

    Only what does not depend on the place is merged. A regression stays a finding of each place.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for index, finding in enumerate(findings):
        is_of_version = finding.check is Check.CORRECTNESS or finding.outcome is Outcome.NOTED
        # Static facts depend on the architecture alone: each workload of it repeats them.
        everywhere = is_of_version or not finding.baseline or finding.evidence == Evidence.STATIC
        key = (
            finding.check,
            finding.outcome,
            finding.subject,
            finding.baseline,
            finding.kernel,
            finding.line,
        )
        groups.setdefault(key if everywhere else (*key, index), []).append(finding)
    return [_merge_group(group) for group in groups.values()]


def _merge_group(group: Sequence[Finding]) -> Finding:
    """One finding for a group of equal ones, with all their places."""
    first = group[0]
    if len(group) == 1:
        return first
    workloads = list(dict.fromkeys(finding.workload for finding in group))
    gpus = list(dict.fromkeys(finding.gpu for finding in group))
    kinds = list(dict.fromkeys(finding.evidence for finding in group))
    many_workloads = len(workloads) > NAMED
    line = first.line.replace(THIS_WORKLOAD, f"these {len(workloads)} workloads")
    return replace(
        first,
        line=line if len(workloads) > 1 else first.line,
        workload=f"{len(workloads)} workloads" if many_workloads else ", ".join(filter(None, workloads)),
        gpu=", ".join(filter(None, gpus)) if len(kinds) == 1 else "",
        evidence=", ".join(kinds),
    )
