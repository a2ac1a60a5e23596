"""Two launches compared: the change of each metric with its verdict, and of the opcodes executed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.match_launches import PairedBy
from profiler.compare.metric_verdict import Judgement, noise_interval
from profiler.compare.workload_change import WorkloadChange
from profiler.evidence.launch import Launch
from profiler.evidence.values import Value
from profiler.statistics.decision import MIN_SAMPLES, Interval
from profiler.statistics.facts import Fact, FactFailure, FactsDecision
from profiler.statistics.verdict import Verdict, heaviest


@dataclass(frozen=True)
class MetricChange:
    """One metric on both sides of a pair, with its verdict."""

    concept: str
    label: str  # marked where a number is derived or a stand-in
    metric: str  # the ncu name or derivation that both were read by; A's where they differ
    group: str
    unit: str
    a: Value
    b: Value
    change_pct: float | None  # of a; None where a side has no number, or a is 0 and b is not
    verdict: Verdict
    reason: str
    unreplicated: bool  # better or worse by one launch per side, without learned noise
    judged: bool = True  # whether metrics.txt says which direction is better
    noise_share: float | None = None  # share of a that a change must exceed, from A/A pairs; None: not known
    p: float | None = None  # the chance that equal builds differ as much, from A/A pairs; None: not known
    judged_by: str = (
        ""  # the concept that decides where another does: cycles or a clock, where it alone moved
    )
    # Of several launches per side, as shares of a; None where they did not judge.
    sampled: Interval | None = None

    @property
    def interval(self) -> Interval | None:
        """The change give or take noise, learned or of the launches, as shares of a; None without either."""
        return self.sampled or noise_interval(self.change_pct, self.noise_share)

    @property
    def judgement(self) -> Judgement:
        """The verdict with what it rests on."""
        return Judgement(self.verdict, self.reason, self.change_pct, self.noise_share, self.p, self.sampled)

    @property
    def derivation(self) -> str:
        """How the numbers were computed that a report does not carry as they are; "" where both do."""
        derivations = (value.derivation for value in (self.a, self.b))
        return "; ".join(dict.fromkeys(derived.words for derived in derivations if derived))


@dataclass(frozen=True)
class OpcodeChange:
    """Executed warp instructions of one opcode. 0 means none: an opcode mix lists all opcodes that ran."""

    opcode: str
    a: float
    b: float


def facts_of(launch: Launch) -> dict[str, Fact]:
    """Every fact as a number or a text; None where it is neither."""
    return {
        name: value.text if value.number is None else float(value.number)
        for name, value in launch.values.items()
    }


@dataclass(frozen=True)
class PairComparison:
    """Two matched launches, compared metric by metric."""

    a: Launch
    b: Launch
    labels: tuple[str, ...]  # range/kernel#n of A's launch; where the kernels' names differ also of B's
    metrics: tuple[MetricChange, ...]  # in the order of metrics.txt
    opcodes: tuple[OpcodeChange, ...]  # largest change first; empty where a side has no opcode mix
    differs: tuple[str, ...]  # those of template, grid, block and NVTX range that differ
    paired_by: PairedBy = PairedBy.NAME
    workload_change: WorkloadChange | None = None  # why the two did other work, or may have; None: compared
    samples: tuple[tuple[Launch, ...], tuple[Launch, ...]] | None = None  # of A and of B; None: one per side
    facts: FactsDecision | None = None  # what the rules say of static or modelled facts; None: measured

    @property
    def launches(self) -> tuple[tuple[Launch, ...], tuple[Launch, ...]]:
        """All launches of A and of B that the pair stands for."""
        return self.samples or ((self.a,), (self.b,))

    @property
    def is_sampled(self) -> bool:
        """Whether a side has launches enough to show how far they lie apart."""
        return max(map(len, self.launches)) >= MIN_SAMPLES

    def holds(self, launch: Launch | None) -> bool:
        """Whether the pair stands for this launch, of either side."""
        return any(launch is other for side in self.launches for other in side)

    @property
    def kernel(self) -> str:
        """A's label; both, `a#0 → b#0`, where the names differ, so that no table shows one for the other."""
        return " → ".join(self.labels)

    @property
    def headline(self) -> MetricChange | None:
        """The change of ncu's duration; None where metrics.txt has no such concept."""
        return next((change for change in self.metrics if change.concept == HEADLINE), None)

    def doubted(self, change: WorkloadChange) -> PairComparison:
        """The pair where both sides may have done other work: whatever moved is unclear, for that reason."""
        metrics = tuple(
            replace(one, verdict=Verdict.UNCLEAR, reason=change.reason) if one.verdict.traits.moved else one
            for one in self.metrics
        )
        return replace(self, metrics=metrics, workload_change=change)

    def undecided(self, reason: str) -> PairComparison:
        """The pair whose duration may have moved by noise alone: unclear, for that reason."""
        metrics = tuple(
            replace(one, verdict=Verdict.UNCLEAR, reason=reason, unreplicated=False)
            if one.concept == HEADLINE and one.verdict.traits.moved
            else one
            for one in self.metrics
        )
        return replace(self, metrics=metrics)

    @property
    def failures_without_metric(self) -> tuple[FactFailure, ...]:
        """The failures of rules that no metric shows: of the budget, which is a text."""
        shown = {change.metric for change in self.metrics}
        return tuple(of for of in (self.facts.failures if self.facts else ()) if of.name not in shown)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the verdict follows from: the duration's, or those of all facts that a side has."""
        if self.facts is None:
            return (self.headline.verdict if self.headline else Verdict.MISSING,)
        known = (change for change in self.metrics if (change.a.number, change.b.number) != (None, None))
        return (*(change.verdict for change in known), *(Verdict.WORSE for _ in self.failures_without_metric))

    @property
    def verdict(self) -> Verdict:
        """The verdict of the duration, MISSING without one; of facts the heaviest, worse as a gate says."""
        return heaviest(self.verdicts)
