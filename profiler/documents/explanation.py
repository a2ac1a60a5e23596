"""Why B takes another time than A: the causes of each pair of launches, and the answer as a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import KernelPair, check_asked
from profiler.documents.blocks import Block, Fold, Heading, Line, Name, Notes, Table
from profiler.documents.comparison import labels_of, latency_dict, predict_command, resolve_pairs
from profiler.documents.comparison_blocks import note_blocks, side_blocks, time_blocks
from profiler.documents.comparison_text import PAIRS_SHOWN, unmatched, warnings
from profiler.documents.document import Document
from profiler.documents.gate import GateDocument
from profiler.errors import Exit
from profiler.evidence import formatting
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.explain.explanation import (
    Explanation,
    count_launches,
    counters_to_collect,
    describe_depth,
    explain,
)
from profiler.explain.roofline import collect_command
from profiler.explain.sentence import NO_CHANGE, format_change, format_side, split_notes
from profiler.explain.time_identity import NO_SPLIT, largest_step_us, waterfall_steps
from profiler.explain.what_moved import CounterMove
from profiler.gate.report import gate_comparisons
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.documents.asking import Subject

NO_COUNTERS = "no counters of these launches on both sides: nothing to explain the latency by"
CAUSES_HEAD = ("cause", "change", "% of A")
UNCERTAIN = " ?"  # after a term that may be noise
COLLECT_HEAD = ("what", "ncu metric", "why it is missing")


@dataclass(frozen=True, repr=False)
class ExplanationDocument(Document):
    """A comparison of measured sides, and why each pair of launches differs in time."""

    comparison: Comparison
    table: MetricTable
    top: int | None = None  # how many pairs were asked for; None: all, in Markdown PAIRS_SHOWN
    gate: GateDocument | None = None  # where it was asked for

    columns = (
        "kernel",
        "verdict",
        "a_us",
        "b_us",
        "delta_us",
        "cause",
        "us",
        "share_of_a_pct",
        "is_cause",
        "sentence",
    )

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """An explanation a pair that was asked for, longest first."""
        return self.shown()[1]

    @property
    def verdict(self) -> Verdict:
        """The verdict on B, the same as a comparison gives; missing where no launch has a partner."""
        return self.comparison.verdict

    @property
    def sentence(self) -> str:
        """Why the pair that takes longest differs."""
        return self.sentences[0]

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence a pair, longest first."""
        explanations = self.explanations
        if not explanations:
            return (f"{NO_COUNTERS[:1].upper()}{NO_COUNTERS[1:]}.",)
        return tuple(f"{explanation.kernel}: {explanation.sentence}" for explanation in explanations)

    @property
    def title(self) -> str:
        """Both sides."""
        return f"Why {self.comparison.b.label} differs from {self.comparison.a.label}"

    @property
    def exit_code(self) -> Exit:
        """The gate's where it was asked for."""
        return self.gate.exit_code if self.gate else Exit.PASS

    def shown(self, most: int | None = None) -> tuple[Comparison, tuple[Explanation, ...]]:
        """As many pairs as were asked for, else the `most` that take longest, and why each differs."""
        comparison = self.comparison.top(self.top or most)
        return comparison, explain(comparison, self.table)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a term of each pair, times in microseconds; a pair without a split is one row without cause.

        The last term of a split is the residue, which makes the sum exact.
        """
        rows = []
        for explanation in self.explanations:
            times = (explanation.a_us, explanation.b_us, explanation.delta_us)
            head = (explanation.kernel, explanation.verdict.value, *times)
            rows += [(*head, *term, explanation.sentence) for term in _terms(explanation)]
        return rows

    def _content(self) -> dict[str, object]:
        """Times are in microseconds, null where there is none.

        Wherever both sides have a time, terms and residue add up to delta_us.
        """
        comparison, explanations = self.shown()
        document = {
            "comparable": comparison.comparable,
            "a": comparison.a.label,
            "b": comparison.b.label,
            "warnings": warnings(comparison),
            "latency": [latency_dict(latency) for latency in comparison.latency],
            "launches": [_explanation_dict(explanation) for explanation in explanations],
            "hidden_launches": comparison.hidden_pairs,
            "unmatched": unmatched(comparison),
        }
        return {**document, "gate": self.gate.to_dict()} if self.gate else document

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """Times and verdicts, then a sentence a pair that moved with its causes folded; the gate last.

        With `everything` the pairs whose verdict is unclear are split too.
        """
        comparison, explanations = self.shown(PAIRS_SHOWN)
        a, b = Name(comparison.a.label), Name(comparison.b.label)
        yield Heading(("Why ", b, " differs from ", a), 1)
        yield from side_blocks(comparison)
        yield from time_blocks(comparison)
        if comparison.latency and not comparison.pairs:
            yield Line(NO_COUNTERS)
        yield Notes(without_causes(explanations, everything=everything))
        yield from note_blocks(comparison)
        yield from cause_blocks(explained(explanations, everything=everything))
        asked = without_counters(explanations, everything=everything)
        if lacking := counters_to_collect(asked):
            yield Line(collect_heading(asked))
            yield Table(COLLECT_HEAD, list(map(astuple, lacking)))
        if self.gate:
            yield from self.gate.blocks()


@dataclass(frozen=True, repr=False)
class UnmeasuredDocument(Document):
    """Two versions that no GPU measured: there is no time to explain."""

    a: str  # names as they were given
    b: str
    kinds: tuple[str, ...]  # of evidence that there is
    is_gated: bool = False  # a gate cannot judge them
    predict: str = ""  # the command that has their modelled times; "" where there are none

    columns = ("a", "b", "reason")
    gate = None
    verdict = Verdict.MISSING

    @property
    def title(self) -> str:
        """Both names."""
        return f"Why {self.b} differs from {self.a}"

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        return f"{' and '.join(self.kinds)} evidence has no duration: there is no time to split"

    @property
    def sentence(self) -> str:
        """Why there is no answer, and which command has one."""
        modelled = f"; `{self.predict}` has modelled times" if self.predict else ""
        return f"{self.reason}. `profiler compare {self.a} {self.b}` shows what differs{modelled}"

    @property
    def sentences(self) -> Sequence[str]:
        """The one sentence."""
        return (self.sentence,)

    @property
    def exit_code(self) -> Exit:
        """Nobody can judge without a time."""
        return Exit.UNJUDGED if self.is_gated else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """One row: both names and the reason."""
        return [(self.a, self.b, self.reason)]

    def _content(self) -> dict[str, object]:
        """An explanation without launches."""
        return {"a": self.a, "b": self.b, "launches": [], "reason": self.reason}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The sentence alone."""
        yield Line(self.sentence)


def explain_names(
    a: Subject,
    b: Subject,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    across: Collection[str] = (),
    top: int | None = None,
    pairs: Sequence[KernelPair] = (),
    guess: bool = True,
    with_gate: bool = False,
    data: str | None = None,
) -> ExplanationDocument | UnmeasuredDocument:
    """Why `b` takes another time than `a`, which are sides or names as `compare_names` takes them.

    `pairs`, `guess` and `with_gate` are as for `compare_names`. Raises as that does.
    """
    sides, are_facts = resolve_pairs(a, b, store_opener, workload, gpu, None, data)
    check_asked(pairs, sides)
    names = labels_of(sides, a, b)
    if are_facts or sides[0][0].evidence is not Evidence.MEASURED:
        kinds = dict.fromkeys(side.evidence.value for side, _ in sides)
        predict = predict_command(*sides[0], store_opener, data)
        return UnmeasuredDocument(*names, tuple(kinds), with_gate, predict)
    judge = Judge.of_data(table, store_opener, data, pairs=pairs, guess=guess, across=across, kernel=kernel)
    comparison = judge.sides(*sides[0])
    if not with_gate:
        return ExplanationDocument(comparison, table, top)
    root = location.open_root(data)
    gate = gate_comparisons(*names, [comparison], store_opener, root, table, across=across)
    return ExplanationDocument(comparison, table, top, GateDocument(gate))


def explain_comparison(
    comparison: Comparison, table: MetricTable
) -> ExplanationDocument | UnmeasuredDocument:
    """Why the sides of a comparison take different times."""
    a, b = comparison.a, comparison.b
    if a.evidence is Evidence.MEASURED:
        return ExplanationDocument(comparison, table)
    return UnmeasuredDocument(a.label, b.label, (a.evidence.value,))


def explained(explanations: Sequence[Explanation], *, everything: bool) -> list[Explanation]:
    """The pairs that moved; with `everything` those that may have as well."""
    return [
        explanation
        for explanation in explanations
        if explanation.verdict.traits.moved or (everything and explanation.verdict is Verdict.UNCLEAR)
    ]


def without_causes(explanations: Sequence[Explanation], *, everything: bool) -> list[str]:
    """A line for the pairs that are unchanged, and one for those that are unclear and not shown."""
    lines = []
    same = sum(explanation.verdict is Verdict.SAME for explanation in explanations)
    if same:
        lines.append(f"{Verdict.SAME.label}: {count_launches(same)} unchanged: not split")
    unclear = sum(
        explanation.verdict is Verdict.UNCLEAR and explanation.split is not None
        for explanation in explanations
    )
    if unclear and not everything:
        number = "1 unclear launch" if unclear == 1 else f"{unclear} unclear launches"
        lines.append(f"{Verdict.UNCLEAR.label}: {number} not split; use --all")
    return lines


def cause_blocks(explanations: Iterable[Explanation]) -> Iterator[Block]:
    """A sentence a pair, with its causes folded."""
    for explanation in explanations:
        yield Heading(Name(explanation.kernel))
        yield Line(explanation.sentence)
        if split := explanation.split:
            rows = cause_rows(explanation)
            notes = list(split_notes(split, bool(explanation.causes)))
            if any(UNCERTAIN in change for _, change, _ in rows):
                notes.append(f"{UNCERTAIN.strip()} marks terms that may be noise")
            yield Fold(f"{len(rows) - 2} causes", [Table(CAUSES_HEAD, rows, right=(1, 2)), Notes(notes)])


def cause_rows(explanation: Explanation) -> list[tuple[str, str, str]]:
    """From A's time through the causes to B's, the causes in one unit, under CAUSES_HEAD."""
    a_us, b_us = explanation.a_us, explanation.b_us
    if explanation.split is None or a_us is None or b_us is None:
        return []
    largest = max(a_us, b_us)
    steps = waterfall_steps(a_us, explanation.split)
    causes = []
    for step in steps:
        change = format_change(step.us, largest_step_us(steps))
        # What is nothing beside the largest step may be much of an A that is far shorter than B.
        share = 0.0 if change == NO_CHANGE else 100 * step.us / a_us
        is_noise = change != NO_CHANGE and explanation.split.is_noise(step.us)
        causes.append((step.words, f"{change}{UNCERTAIN * is_noise}", formatting.percent_change(share)))
    change = formatting.percent_change(100 * (explanation.delta_us or 0) / a_us)
    return [
        ("A", format_side(a_us, largest), ""),
        *causes,
        ("B", format_side(b_us, largest), change),
    ]


def without_counters(explanations: Iterable[Explanation], *, everything: bool) -> list[Explanation]:
    """The pairs that lack counters for the full split and are shown: neither unchanged nor left out."""
    shown = (one for one in explanations if one.verdict is not Verdict.SAME)
    return [one for one in shown if one.missing and (everything or one.verdict is not Verdict.UNCLEAR)]


def collect_heading(explanations: Sequence[Explanation]) -> str:
    """What is missing for which pairs, and the command that collects it, above the counters themselves."""
    chips = {explanation.chip for explanation in explanations}
    command = collect_command(chips.pop() if len(chips) == 1 else None)
    return f"{describe_depth(explanations)}; to collect: `{command}`:"


def _terms(explanation: Explanation) -> list[tuple[object, ...]]:
    """Cause, microseconds, share of A's time, and whether it is a cause; the residue last."""
    split, a_us = explanation.split, explanation.a_us
    if split is None or a_us is None:
        return [(None, None, None, None)]
    terms = [(term.cause, term.us) for term in split.terms]
    return [
        (cause, us, 100 * us / a_us, bool(explanation.causes) and cause != "residue")
        for cause, us in [*terms, ("residue", split.residue_us)]
    ]


def _explanation_dict(explanation: Explanation) -> dict[str, object]:
    split, pair = explanation.split, explanation.pair
    return {
        "kernel": pair.b.base_name,
        "part": explanation.kernel,
        "paired_by": pair.paired_by.value,
        "a_us": explanation.a_us,
        "b_us": explanation.b_us,
        "delta_us": explanation.delta_us,
        "verdict": explanation.verdict.value,
        "reason": explanation.reason,
        "sentence": explanation.sentence,
        "depth": split.depth if split else NO_SPLIT,
        "terms": [{"cause": term.cause, "us": term.us} for term in split.terms] if split else [],
        "terms_are_causes": bool(explanation.causes),
        # without terms the residue is all of the change
        "residue_us": split.residue_us if split else explanation.delta_us,
        "residue_flagged": split.flagged if split else "",
        "stall_ratio": {"a": split.stall_ratio_a, "b": split.stall_ratio_b} if split else None,
        "stall_skew_us": split.stall_skew_us if split else 0.0,
        "reasons_flagged": split.reasons_flagged if split else "",
        "clock_from_time": split.clock_from_time if split else False,
        "stand_ins": [asdict(stand_in) for stand_in in split.stand_ins] if split else [],
        "also_moved": [_move_dict(move) for move in explanation.moved.counters] if explanation.moved else [],
        "also_moved_opcodes": (
            [asdict(opcode) for opcode in explanation.moved.opcodes] if explanation.moved else []
        ),
        "missing": [
            {
                "concept": counter.concept,
                "label": counter.label,
                "metrics": counter.names,
                "line": counter.line or None,
                "why": counter.why,
            }
            for counter in explanation.missing
        ],
    }


def _move_dict(move: CounterMove) -> dict[str, object]:
    change = move.change
    return {
        "concept": change.concept,
        "label": change.label,
        "metric": change.metric,
        "unit": change.unit,
        "a": change.a.number,
        "b": change.b.number,
        "change_pct": change.change_pct,  # of a; null from 0
        "thresholds": move.thresholds,  # how many thresholds it moved; null where a side is 0
    }
