"""The gate's rules for one pair: correctness first, then latencies, counters, facts, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from profiler.compare import latency_words
from profiler.compare.clock_drift import HEADLINE
from profiler.compare.comparability import CORRECTNESS, OWN_KERNELS
from profiler.compare.comparison import Comparison
from profiler.compare.latency import LatencyComparison
from profiler.compare.metric_verdict import decide_inexact, is_exact
from profiler.compare.pair_comparison import MetricChange, PairComparison, facts_of
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence, State, Value
from profiler.explain.explanation import explain
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Check, Finding, Outcome
from profiler.statistics.counters import MIN_COUNTER_PAIRS
from profiler.statistics.decision import Interval
from profiler.statistics.facts import (
    BUDGET_LABEL,
    OVER_BUDGET,
    WATCHED_FACTS,
    excess_over_budget,
    judge_facts,
)
from profiler.statistics.verdict import Verdict

NAMED = 4  # how many metrics one line names
_EXPECTED = "expected failure, caught (rejected in the catalogue)"


@dataclass(frozen=True)
class PairRules:
    """Judges one pair; every rule yields findings."""

    pair: ComparisonPair
    table: MetricTable
    on: frozenset[str]  # concepts that are judged besides time and exact counts

    def without_comparison(self) -> Iterator[Finding]:
        """The findings where a side is missing or gave no result.

        Whether results are right and within the budget can be said without a baseline.
        """
        pair, side = self.pair, self.pair.b
        if pair.rejected_in_run:  # nobody asked for this version by name, so it is only checked
            yield self._rejected_finding((side and side.wrong) or (pair.why if pair.gave_no_result else ""))
        elif pair.gave_no_result:
            yield self._wrong(pair.why)
        elif side and side.wrong:
            yield self._wrong(f"wrong: {side.wrong}")
        else:
            for over in dict.fromkeys(map(_over_budget, side.launches if side else ())):
                if over:
                    line = f"over its budget: {over}"
                    yield self._finding(Check.BUDGET, Outcome.FAILED, Verdict.WORSE, line)
            outcome = Outcome.NOTED if pair.noted else Outcome.UNJUDGED
            yield self._finding(
                Check.MISSING, outcome, Verdict.MISSING, pair.why, next_command=pair.next_command
            )

    def of_comparison(self, comparison: Comparison) -> Iterator[Finding]:
        """The findings of a comparison. Correctness comes first: wrong results have no speed to judge."""
        wrong, baseline_wrong = comparison.b.wrong, comparison.a.wrong
        if self.pair.rejected_in_run:
            yield self._rejected_finding(wrong)
            return
        if wrong and not baseline_wrong:
            yield self._wrong(f"wrong: {wrong}")
            return
        if wrong and self.pair.rejected:
            line = f"{_EXPECTED}, as in its baseline: {wrong}"
            finding = self._finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.NOT_COMPARABLE, line)
            yield replace(finding, is_expected=True)
            return
        if wrong:
            yield self._wrong(f"wrong, as its baseline is: {wrong}")
            return
        # A baseline with wrong results has no speed, but its budget and facts can still be compared.
        if baseline_wrong:
            line = (
                f"correct, but the baseline is wrong ({baseline_wrong}), so there is no time to compare with"
            )
            yield self._finding(Check.CORRECTNESS, Outcome.PASSED, Verdict.BETTER, line)
        if blocks := [item.words for item in comparison.blocked_by if item.field != CORRECTNESS]:
            line = f"not comparable: {'; '.join(blocks)}"
            if any(item.field == OWN_KERNELS for item in comparison.blocked_by):
                line += "; --kernel names one of these, --pair A=B two names of one kernel"
            yield self._finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.NOT_COMPARABLE, line)
            return
        # A property that neither side says is no sign of a difference; one that a single side says may be.
        if doubts := [item.words for item in comparison.unknown if (item.a is None) != (item.b is None)]:
            line = f"not known to match: {'; '.join(doubts)}"
            yield self._finding(Check.COMPARABILITY, Outcome.NOTED, Verdict.UNCLEAR, line)
        timed = [latency for latency in comparison.latency if latency.a and latency.b]
        yield from self._unmatched_launches(comparison, bool(timed))
        causes = {explanation.kernel: explanation.sentence for explanation in explain(comparison, self.table)}
        if not baseline_wrong:
            yield from self._latencies(comparison.latency, timed)
        for launches in comparison.pairs:
            if change := launches.workload_change:
                line = f"{change.verdict.words}: {change.reason}"
                is_unclear = change.verdict is Verdict.UNCLEAR  # compared, if without an answer
                check = Check.REGRESSION if is_unclear else Check.COMPARABILITY
                finding = self._finding(check, Outcome.UNJUDGED, change.verdict, line)
                yield replace(finding, kernel=launches.kernel)
                continue
            for finding in self._launch_pair(
                launches, comparison.a.evidence, bool(baseline_wrong), bool(timed)
            ):
                cause = _cause_of(finding, causes[launches.kernel])
                has_weight = finding.check is Check.REGRESSION and finding.outcome is not Outcome.PASSED
                # What cannot change the verdict on all has no weight, unless it was asked for.
                if has_weight and finding.concept not in self.on and comparison.is_outweighed(launches):
                    finding = replace(finding, outcome=Outcome.NOTED)
                if not launches.paired_by.decides:  # what _how_paired says decides
                    outcome = Outcome.NOTED if finding.check is not Check.COMPARABILITY else finding.outcome
                    finding = replace(finding, outcome=outcome)
                yield replace(finding, kernel=launches.kernel, cause=cause)

    def same_results(self, why: str) -> Finding:
        """The finding that both sides are the same results."""
        outcome = Outcome.NOTED if self.pair.noted else Outcome.UNJUDGED
        return self._finding(Check.COMPARABILITY, outcome, Verdict.NOT_COMPARABLE, why)

    def _finding(
        self,
        check: Check,
        outcome: Outcome,
        verdict: Verdict,
        line: str,
        *,
        concept: str = "",
        effect: float | None = None,
        interval: Interval | None = None,
        interval_name: str = "interval",
        detectable: float | None = None,
        next_command: str = "",
    ) -> Finding:
        pair = self.pair
        return Finding(
            check,
            outcome,
            verdict,
            pair.subject,
            pair.baseline,
            line,
            pair.workload,
            pair.gpu,
            pair.evidence,
            concept=concept,
            effect=effect,
            interval=interval,
            interval_name=interval_name,
            detectable=detectable,
            next_command=next_command,
            diff_names=pair.diff_names,
            is_without_baseline=check is Check.MISSING and pair.is_without_baseline,
        )

    def _wrong(self, line: str) -> Finding:
        return self._finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, line)

    def _rejected_finding(self, wrong: str | None) -> Finding:
        """The finding of a rejected version: it fails only if the check missed what is wrong."""
        if not wrong and self.pair.b is not None and self.pair.evidence == Evidence.MODELLED:
            return self._wrong(
                "expected failure, not caught (rejected in the catalogue): the check found nothing wrong"
            )
        line = (
            f"{_EXPECTED}: {wrong}"
            if wrong
            else "rejected in the catalogue; its results were not checked here"
        )
        finding = self._finding(Check.COMPARABILITY, Outcome.NOTED, Verdict.NOT_COMPARABLE, line)
        return replace(finding, is_expected=True)

    def _unmatched_launches(self, comparison: Comparison, timed: bool) -> Iterator[Finding]:
        """Findings of launches without a partner. A new one takes time, which only timed calls include."""
        for words, is_one in _by_kernel(comparison, comparison.only_in_a):
            are, them = ("is", "it") if is_one else ("are", "them")
            line = f"{words} {are} missing: only the baseline has {them}"
            yield self._finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, line)
        # Without timed calls nobody knows what a new launch costs.
        untimed = comparison.b.evidence is Evidence.MEASURED and not timed
        for words, is_one in _by_kernel(comparison, comparison.only_in_b):
            are, them = ("is", "it") if is_one else ("are", "them")
            line = f"{words} {are} new: the baseline does not have {them}"
            outcome = Outcome.UNJUDGED if untimed else Outcome.NOTED
            command = self.pair.rerun_command if untimed else ""
            yield self._finding(Check.MISSING, outcome, Verdict.MISSING, line, next_command=command)
        for group in comparison.ambiguous:
            line = f"{group.base_name} is ambiguous: {group.why}"
            yield self._finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.UNCLEAR, line)

    def _latencies(
        self, latencies: Sequence[LatencyComparison], timed: Sequence[LatencyComparison]
    ) -> Iterator[Finding]:
        """A finding for each mode. A gate fails by an interval of its own, stricter than the verdict."""
        for latency in latencies:
            if latency.a is None:
                continue  # timed for the first time: it cannot have got worse
            decision = latency.decision
            outcome = _outcome(decision.verdict)
            # A slower call fails only by the gate's interval; slower by the verdict alone is not decided.
            if decision.fails_gate:
                outcome = Outcome.FAILED
            elif outcome is Outcome.FAILED:
                outcome = Outcome.UNJUDGED
            a, b = (
                str(formatting.quantity(Value(ns, "ns"))) if ns is not None else State.NOT_COLLECTED.words
                for ns in (latency.a_ns, latency.b_ns)
            )
            why = f"; {decision.gate_note}" if decision.gate_note else ""
            may_tell = outcome is Outcome.UNJUDGED and decision.rerun_tells
            rerun = self.pair.rerun_command if may_tell else ""
            yield self._finding(
                Check.REGRESSION if latency in timed else Check.MISSING,
                outcome,
                decision.verdict,
                f"latency ({latency.mode}): {a} → {b}, {decision.verdict.words}: {decision.reason}{why}",
                concept="latency",
                effect=decision.effect,
                interval=decision.gate_interval or decision.interval,
                interval_name=latency_words.gate_interval_name(decision),
                detectable=decision.detectable,
                next_command=latency.settle or rerun,
            )

    def _launch_pair(
        self, launches: PairComparison, evidence: Evidence, baseline_wrong: bool, timed: bool
    ) -> Iterator[Finding]:
        if evidence is not Evidence.MEASURED:
            yield from self._facts(launches, baseline_wrong)
        elif not baseline_wrong:
            yield from self._counters(launches, timed)
        yield from self._lost_metrics(launches)
        yield from self._how_paired(launches)

    def _how_paired(self, launches: PairComparison) -> Iterator[Finding]:
        """How launches of different names came to be a pair.

        That nothing else was left, or that one launcher ran both, is too little to pass or to fail by.
        """
        line = f"{launches.kernel}: {launches.paired_by.words}"
        if not launches.paired_by.decides:
            line += f"; judged where --pair {launches.a.base_name}={launches.b.base_name} declares it"
            yield self._finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.UNCLEAR, line)
        elif launches.paired_by.words:
            yield self._finding(Check.COMPARABILITY, Outcome.NOTED, Verdict.CHANGED, line)

    def _facts(self, launches: PairComparison, baseline_wrong: bool) -> Iterator[Finding]:
        """Findings by the rules on facts, then by metrics.txt; a fact is reported once."""
        decision = judge_facts(facts_of(launches.a), facts_of(launches.b))  # also beside a wrong baseline
        over_budget, reported = _over_budget(launches.b), set()
        for failure in decision.failures:
            check = Check.BUDGET if failure.name == OVER_BUDGET else Check.FACTS
            reported.add(failure.name)
            concepts = (change.concept for change in launches.metrics if change.metric == failure.name)
            yield self._finding(
                check,
                Outcome.FAILED,
                Verdict.WORSE,
                failure.words,
                concept=next(concepts, ""),
                effect=failure.effect,
            )
        # The rules report only changes, but a version over its budget fails also if its baseline was.
        if over_budget and OVER_BUDGET not in reported:
            line = f"over its budget, as the baseline is: {over_budget}"
            yield self._finding(Check.BUDGET, Outcome.FAILED, Verdict.WORSE, line)
        for label in decision.missing:
            baseline_has = "says it" if label == BUDGET_LABEL else "has a number"
            line = f"{label}: not known, but the baseline {baseline_has}"
            yield self._finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, line)
        judged = [change for change in launches.metrics if change.judged and change.metric not in reported]
        worse = [change for change in judged if change.verdict is Verdict.WORSE]
        if not baseline_wrong:
            for change in worse:
                yield self._metric_finding(Check.FACTS, Outcome.FAILED, change)
        if not decision.failures and not over_budget and not worse:
            count = len([change for change in judged if change.b.number is not None])
            changed = len(decision.changes)
            line = f"{count} judged facts and {len(WATCHED_FACTS)} rules: nothing worse" + (
                f"; {changed} facts differ" if changed else "; every fact is equal"
            )
            verdict = Verdict.CHANGED if changed else Verdict.SAME
            yield self._finding(Check.FACTS, Outcome.PASSED, verdict, line)

    def _counters(self, launches: PairComparison, timed: bool) -> Iterator[Finding]:
        """Findings of counters: the time decides, and exact counts where it does not.

        Counters that vary from run to run fail only where asked for. Where calls were timed, ncu's duration
        is such a counter.
        """
        headline = launches.headline
        if timed and headline is not None:
            asked_for = headline.concept in self.on
            if headline.verdict is Verdict.WORSE or asked_for:
                outcome = _outcome(headline.verdict) if asked_for else Outcome.NOTED
                yield self._metric_finding(Check.REGRESSION, outcome, headline)
        elif headline is None:
            line = f"{self.table.path} declares no {HEADLINE}, by which a gate decides"
            yield self._finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, line)
        elif (headline.a.number, headline.b.number) != (None, None) or not headline.verdict.traits.decided:
            yield self._metric_finding(Check.REGRESSION, _outcome(headline.verdict), headline)
        # Timed calls decide where there are any; more instructions in no more time are no regression. Where
        # the time is unclear or missing, as of a short launch, exact counts are the best that is known.
        traits = launches.verdict.traits
        time_decides = timed or (traits.decided and not traits.fails)
        for change in launches.metrics:
            if change is headline or not change.judged:
                continue
            asked_for = change.concept in self.on
            derived = bool(change.derivation)  # from counters of several replay passes
            metric = self.table.by_concept[change.concept]
            exact = not derived and is_exact(metric, change.unit)
            if asked_for and not exact:
                change = self._judge_without_noise(change)
            if asked_for and not change.verdict.traits.fails and change.verdict is not Verdict.CHANGED:
                yield self._metric_finding(Check.REGRESSION, _outcome(change.verdict), change)
            elif change.verdict is Verdict.WORSE:
                # Fewer threads an instruction are more work only where there are more instructions.
                weighs = asked_for or (exact and metric.better == "lower" and not time_decides)
                yield self._metric_finding(
                    Check.REGRESSION, Outcome.FAILED if weighs else Outcome.NOTED, change
                )

    def _judge_without_noise(self, change: MetricChange) -> MetricChange:
        """The change of a counter that varies from run to run: unclear where its noise is unknown."""
        a, b = change.a.number, change.b.number
        moved = change.verdict.traits.moved and change.p is None
        if not moved or a is None or b is None:
            return change
        decision = decide_inexact(self.table.by_concept[change.concept], a, b, None)
        way_out = (
            "collect both again"
            if self.pair.rerun_command
            else f"import reports with {2 * MIN_COUNTER_PAIRS} launches of it"
        )
        return replace(change, verdict=decision.verdict, reason=f"{decision.reason}: {way_out}")

    def _lost_metrics(self, launches: PairComparison) -> Iterator[Finding]:
        """Findings of judged metrics that only the baseline has as numbers: one for each state."""
        by_state: dict[State, list[MetricChange]] = {}
        for change in launches.metrics:
            # These have findings of their own, with or without a number.
            reported_already = change is launches.headline or change.concept in self.on
            if change.metric in WATCHED_FACTS or not change.judged or reported_already:
                continue
            if change.a.number is not None and change.b.number is None:
                by_state.setdefault(change.b.state, []).append(change)
        for state, changes in by_state.items():
            names = [change.concept for change in changes]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            line = f"{', '.join(names[:NAMED])}{more}: {state.words}, but the baseline has a number"
            concept = names[0] if len(names) == 1 else ""
            yield self._finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, line, concept=concept)

    def _metric_finding(self, check: Check, outcome: Outcome, change: MetricChange) -> Finding:
        """The finding of one metric: both values, the change, and the reason for the verdict."""
        a, b = (str(formatting.quantity(value)) for value in (change.a, change.b))
        size = formatting.change(change.a, change.b)
        line = f"{change.label}: {a} → {b}" + (f" ({size})" if size else "")
        if change.verdict is not Verdict.SAME or change.judged_by:
            line += f", {change.verdict.words}: {change.reason}"
        return self._finding(
            check,
            outcome,
            change.verdict,
            line,
            concept=change.concept,
            effect=None if change.change_pct is None else change.change_pct / 100,
            interval=change.interval,
            detectable=change.noise_share,
            next_command=self.pair.rerun_command if outcome is Outcome.UNJUDGED else "",
        )


def _by_kernel(comparison: Comparison, launches: Iterable[Launch]) -> Iterator[tuple[str, bool]]:
    """Launches in words, and whether it is one: `kernel spmv`; those of one kernel together, counted."""
    by_kernel: dict[str, list[Launch]] = {}
    for launch in launches:
        by_kernel.setdefault(launch.base_name, []).append(launch)
    for kernel, of_kernel in by_kernel.items():
        is_one = len(of_kernel) == 1
        one = f"kernel {comparison.label(of_kernel[0])}"
        yield one if is_one else f"{len(of_kernel)} launches of kernel {kernel}", is_one


def _outcome(verdict: Verdict) -> Outcome:
    if verdict.traits.fails:
        return Outcome.FAILED
    return Outcome.PASSED if verdict.traits.decided else Outcome.UNJUDGED


def _cause_of(finding: Finding, sentence: str) -> str:
    """Why the time got worse; "" for other findings."""
    return sentence if finding.concept == HEADLINE and finding.verdict is Verdict.WORSE else ""


def _over_budget(launch: Launch) -> str:
    """The part of its budget that a version exceeds; "" where it has none or is within."""
    return excess_over_budget(launch.values.value(OVER_BUDGET).text)
