"""What one contest found: its correctness first, then latencies, counters and facts, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from profiler.compare import (
    CORRECTNESS,
    HEADLINE,
    Comparison,
    LatencyComparison,
    MetricChange,
    PairComparison,
)
from profiler.compare.metric_verdict import decide_inexact, is_exact
from profiler.evidence import Evidence, Launch, MetricTable, State, Value, formatting
from profiler.explain import explain
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Check, Finding, Outcome
from profiler.statistics import Verdict, counters, facts

NAMED = 4  # metrics that one line names


@dataclass(frozen=True)
class PairRules:
    """What every finding of one contest shares."""

    contest: ComparisonPair
    table: MetricTable
    on: frozenset[str]

    def finding(self, check: Check, outcome: Outcome, verdict: Verdict, line: str) -> Finding:
        contest = self.contest
        return Finding(
            check,
            outcome,
            verdict,
            contest.subject,
            contest.baseline,
            line,
            contest.workload,
            contest.gpu,
            contest.evidence,
            shown=contest.shown,
        )

    def alone(self) -> Iterator[Finding]:
        """What stands in the place of a comparison where a side is missing, or broke.

        Whether a version is right, and within its budget, takes no baseline to say.
        """
        contest, side = self.contest, self.contest.b
        if contest.rejected:
            yield self._rejected((side and side.wrong) or (contest.why if contest.broken else ""))
        elif contest.broken:
            yield self.finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, contest.why)
        elif side and side.wrong:
            yield self.finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, f"wrong: {side.wrong}")
        else:
            for over in dict.fromkeys(map(_over_budget, side.launches if side else ())):
                if over:
                    words = f"over its budget: {over}"
                    yield self.finding(Check.BUDGET, Outcome.FAILED, Verdict.WORSE, words)
            outcome = Outcome.NOTED if contest.noted else Outcome.UNJUDGED
            found = self.finding(Check.MISSING, outcome, Verdict.MISSING, contest.why)
            yield replace(found, next_command=contest.next_command)

    def _rejected(self, wrong: str | None) -> Finding:
        """Of a version that its catalogue rejects: as it has to be, unless the check lets it through."""
        contest = self.contest
        if not wrong and contest.b is not None and contest.evidence == Evidence.MODELLED:
            words = "rejected by its catalogue, and not caught: the check found nothing wrong"
            return self.finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, words)
        words = f"rejected by its catalogue, and not judged: {wrong or 'nothing wrong was found'}"
        return self.finding(Check.COMPARABILITY, Outcome.NOTED, Verdict.NOT_COMPARABLE, words)

    def findings(self, comparison: Comparison) -> Iterator[Finding]:
        """Correctness first: what is wrong has no speed, and nothing else is asked of it."""
        wrong, before = comparison.b.wrong, comparison.a.wrong
        if self.contest.rejected:
            yield self._rejected(wrong)
            return
        if wrong and not before:
            yield self.finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, f"wrong: {wrong}")
            return
        if wrong and self.contest.on_purpose:
            words = f"wrong, as its catalogue and its baseline say, and not judged: {wrong}"
            yield self.finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.NOT_COMPARABLE, words)
            return
        if wrong:
            words = f"wrong, as its baseline is: {wrong}"
            yield self.finding(Check.CORRECTNESS, Outcome.FAILED, Verdict.WORSE, words)
            return
        if before:
            words = f"right, where the baseline is wrong ({before}): no speed to hold it against"
            yield self.finding(Check.CORRECTNESS, Outcome.PASSED, Verdict.BETTER, words)
        blocks = [item.words for item in comparison.blocked_by if item.field != CORRECTNESS]
        if blocks:
            words = f"not comparable: {'; '.join(blocks)}"
            yield self.finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.NOT_COMPARABLE, words)
            return
        if doubts := [item.words for item in comparison.unknown if (item.a is None) != (item.b is None)]:
            words = f"not known to match: {'; '.join(doubts)}"
            yield self.finding(Check.COMPARABILITY, Outcome.NOTED, Verdict.UNCLEAR, words)
        timed = [one for one in comparison.latency if one.a and one.b]
        yield from self._unmatched(comparison, bool(timed))
        causes = {one.kernel: one.sentence for one in explain(comparison, self.table)}
        if not before:
            yield from self._latencies(comparison.latency, timed)
        for pair in comparison.pairs:
            own = list(self._pair(pair, comparison.a.evidence, bool(before), bool(timed)))
            yield from (
                replace(one, kernel=pair.kernel, cause=_cause(one, causes[pair.kernel])) for one in own
            )

    def _unmatched(self, comparison: Comparison, timed: bool) -> Iterator[Finding]:
        """Launches without a partner: one more makes the call longer, which only a timed call would show."""
        for launch in comparison.only_in_a:
            words = f"{comparison.label(launch)} is not there any more: the baseline has it"
            yield self.finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, words)
        untimed = comparison.b.evidence is Evidence.MEASURED and not timed
        for launch in comparison.only_in_b:
            words = f"{comparison.label(launch)} is new: the baseline has no such launch"
            outcome = Outcome.UNJUDGED if untimed else Outcome.NOTED
            found = self.finding(Check.MISSING, outcome, Verdict.MISSING, words)
            yield replace(found, next_command=self.contest.again if untimed else "")
        for group in comparison.ambiguous:
            words = f"{group.base_name} is ambiguous: {group.why}"
            yield self.finding(Check.COMPARABILITY, Outcome.UNJUDGED, Verdict.UNCLEAR, words)

    def _latencies(
        self, every: Sequence[LatencyComparison], timed: Sequence[LatencyComparison]
    ) -> Iterator[Finding]:
        """The latency of each mode; worse, but not by the gate's own interval, is unclear to it."""
        for one in every:
            if one.a is None:
                continue  # newly timed: nothing to lose
            decision = one.decision
            outcome = _outcome(decision.verdict)
            if outcome is Outcome.FAILED and not decision.fails_gate:
                outcome = Outcome.UNJUDGED
            elif decision.fails_gate:
                outcome = Outcome.FAILED
            a, b = (
                str(formatting.quantity(Value(level, "ns")))
                if level is not None
                else State.NOT_COLLECTED.words
                for level in (one.a_ns, one.b_ns)
            )
            words = (
                f"latency ({one.mode}): {a} → {b}, {decision.verdict.replace('_', ' ')}: {decision.reason}"
            )
            check = Check.REGRESSION if one in timed else Check.MISSING
            yield replace(
                self.finding(check, outcome, decision.verdict, words),
                concept="latency",
                effect=decision.effect,
                interval=decision.gate_interval or decision.interval,
                detectable=decision.detectable,
                next_command=one.settle or (self.contest.again if outcome is Outcome.UNJUDGED else ""),
            )

    def _pair(
        self, pair: PairComparison, evidence: Evidence, was_wrong: bool, timed: bool
    ) -> Iterator[Finding]:
        if evidence is not Evidence.MEASURED:
            yield from self._facts(pair, was_wrong)
        elif not was_wrong:
            yield from self._counters(pair, timed)
        yield from self._lost(pair)

    def _facts(self, pair: PairComparison, was_wrong: bool) -> Iterator[Finding]:
        """The rules on facts, then every judged fact; a fact that both would name is told once."""
        decided = facts.judge_facts(_facts_of(pair.a), _facts_of(pair.b))
        over, told = _over_budget(pair.b), set()
        for failure in decided.failures:
            check = Check.BUDGET if failure.name == facts.OVER_BUDGET else Check.FACTS
            told.add(failure.name)
            found = self.finding(check, Outcome.FAILED, Verdict.WORSE, failure.words)
            concept = next((c.concept for c in pair.metrics if c.metric == failure.name), "")
            yield replace(found, concept=concept, effect=failure.effect)
        if over and facts.OVER_BUDGET not in told:
            words = f"over its budget, as the baseline is: {over}"
            yield self.finding(Check.BUDGET, Outcome.FAILED, Verdict.WORSE, words)
        for label in decided.missing:
            has = "says it" if label == facts.BUDGET_LABEL else "has a number"
            words = f"{label}: not known, where the baseline {has}"
            yield self.finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, words)
        judged = [change for change in pair.metrics if change.judged and change.metric not in told]
        for change in judged:
            if change.verdict is Verdict.WORSE and not was_wrong:
                yield self._moved(Check.FACTS, Outcome.FAILED, change)
        if not decided.failures and not over and all(c.verdict is not Verdict.WORSE for c in judged):
            count = len([change for change in judged if change.b.number is not None])
            changed = len(decided.changes)
            words = f"{count} judged facts and {len(facts.WATCHED_FACTS)} rules: nothing worse" + (
                f"; {changed} facts differ" if changed else "; every fact is equal"
            )
            verdict = Verdict.CHANGED if changed else Verdict.SAME
            yield self.finding(Check.FACTS, Outcome.PASSED, verdict, words)

    def _counters(self, pair: PairComparison, timed: bool) -> Iterator[Finding]:
        """Time decides; exact counts weigh unless the time is better, what wobbles only where asked for.

        Where the calls were timed, ncu's duration is one more counter that wobbles.
        """
        headline = pair.headline
        if timed and headline is not None:
            if headline.verdict is Verdict.WORSE or headline.concept in self.on:
                asked_for = headline.concept in self.on
                outcome = _outcome(headline.verdict) if asked_for else Outcome.NOTED
                yield self._moved(Check.REGRESSION, outcome, headline)
        elif headline is None:
            words = f"{self.table.path} declares no {HEADLINE}, by which a gate decides"
            yield self.finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, words)
        elif (headline.a.number, headline.b.number) != (None, None) or not headline.verdict.traits.decided:
            yield self._moved(Check.REGRESSION, _outcome(headline.verdict), headline)
        faster = timed or pair.verdict is Verdict.BETTER
        for change in pair.metrics:
            if change is headline or not change.judged:
                continue
            asked = change.concept in self.on
            exact = is_exact(self.table.by_concept[change.concept], change.unit)
            if asked and not exact:
                change = self._surely(change)
            if asked and not change.verdict.traits.fails and change.verdict is not Verdict.CHANGED:
                yield self._moved(Check.REGRESSION, _outcome(change.verdict), change)
            elif change.verdict is Verdict.WORSE:
                weighs = asked or (exact and not faster)
                yield self._moved(Check.REGRESSION, Outcome.FAILED if weighs else Outcome.NOTED, change)

    def _surely(self, change: MetricChange) -> MetricChange:
        """A counter that wobbles, and of which no A/A pairs say how far, is unclear where it moved."""
        a, b = change.a.number, change.b.number
        moved = change.verdict.traits.moved and change.noise_share is None
        if not (moved and a and b is not None):
            return change
        decision = decide_inexact(self.table.by_concept[change.concept], a, b, None)
        way_out = (
            "collect both again"
            if self.contest.again
            else f"import reports with {2 * counters.MIN_COUNTER_PAIRS} launches of it"
        )
        return replace(change, verdict=decision.verdict, reason=f"{decision.reason}: {way_out}")

    def _lost(self, pair: PairComparison) -> Iterator[Finding]:
        """Judged metrics that the baseline has as numbers and the subject has not: one line a state."""
        by_state: dict[State, list[MetricChange]] = {}
        for change in pair.metrics:
            of_time = change is pair.headline or change.concept in self.on
            if change.metric in facts.WATCHED_FACTS or not change.judged:
                continue
            if not of_time and change.a.number is not None and change.b.number is None:
                by_state.setdefault(change.b.state, []).append(change)
        for state, changes in by_state.items():
            names = [change.concept for change in changes]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            words = f"{', '.join(names[:NAMED])}{more}: {state.words}, where the baseline has a number"
            found = self.finding(Check.MISSING, Outcome.UNJUDGED, Verdict.MISSING, words)
            yield replace(found, concept=names[0] if len(names) == 1 else "")

    def _moved(self, check: Check, outcome: Outcome, change: MetricChange) -> Finding:
        a, b = (str(formatting.quantity(value)) for value in (change.a, change.b))
        size = formatting.change(change.a, change.b)
        words = f"{change.label}: {a} → {b}" + (f" ({size})" if size else "")
        if change.verdict is not Verdict.SAME:
            words += f", {change.verdict.words}: {change.reason}"
        found = self.finding(check, outcome, change.verdict, words)
        effect = None if change.change_pct is None else change.change_pct / 100
        command = self.contest.again if outcome is Outcome.UNJUDGED else ""
        return replace(
            found,
            concept=change.concept,
            effect=effect,
            interval=change.interval,
            detectable=change.noise_share,
            next_command=command,
        )


def _outcome(verdict: Verdict) -> Outcome:
    if verdict.traits.fails:
        return Outcome.FAILED
    return Outcome.PASSED if verdict.traits.decided else Outcome.UNJUDGED


def _cause(finding: Finding, sentence: str) -> str:
    """Why the time got worse; nothing else has a cause."""
    return sentence if finding.concept == HEADLINE and finding.verdict is Verdict.WORSE else ""


def _facts_of(launch: Launch) -> dict[str, facts.Fact]:
    """Every fact as a number or a text; None where it has neither."""
    found: dict[str, facts.Fact] = {}
    for name, value in launch.values.items():
        found[name] = value.text if value.number is None else float(value.number)
    return found


def _over_budget(launch: Launch) -> str:
    text = launch.values.value(facts.OVER_BUDGET).text
    return "" if text is None or text == facts.WITHIN_BUDGET else text
