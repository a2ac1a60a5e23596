"""What differs between two sides: two names to sides, pairs and verdicts, and the answer as a document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare.comparability import OWN_KERNELS
from profiler.compare.comparison import Comparison, check_concepts
from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import KernelPair, check_asked
from profiler.compare.latency import LatencyComparison
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.compare.repeated_numbers import split_repeats
from profiler.compare.resolve_names import NothingShared, find_fact_pairs, refuse_unused_filters, resolve_all
from profiler.compare.timed_files import are_timed_files, timed_pairs
from profiler.compare.workload_change import WorkloadChange
from profiler.documents.asking import Subject, names_among, side_of
from profiler.documents.blocks import Block, Fold, Heading, Line, Name, Notes, Table
from profiler.documents.comparison_blocks import note_blocks, side_blocks, time_blocks, times_blocks
from profiler.documents.comparison_text import (
    PAIRS_SHOWN,
    change_numbers,
    derivations,
    head_names,
    repeated,
    tally,
    warnings,
)
from profiler.documents.document import Document
from profiler.documents.facts_comparison import facts_blocks
from profiler.errors import CannotJudge, Exit
from profiler.evidence import formatting
from profiler.evidence.cell import CellFilter
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Latency, Side
from profiler.evidence.values import NCU_DURATION, Evidence, State, Value
from profiler.gate.finding import Outcome
from profiler.history.without_results import versions_without_results_explained
from profiler.model.stored_predictions import find_predictions
from profiler.statistics.verdict import Verdict, heaviest

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.documents.gate import GateDocument

_METRICS_HEAD = ("group", "metric", "A", "B", "change", "verdict")
_DETAILED = 5  # pairs whose counters are listed unasked
_NAMED = 10  # missing metrics that a line names


@dataclass(frozen=True, repr=False)
class ComparisonDocument(Document):
    """Two sides compared.

    Facts of two versions: one comparison for each evidence, workload and architecture that both have.
    """

    comparisons: tuple[Comparison, ...]
    top: int | None = None  # how many pairs were asked for; None: all, in Markdown PAIRS_SHOWN
    gate: GateDocument | None = None  # where it was asked for
    predict: str = ""  # of two versions that nobody measured: the command that has their modelled times

    columns = (
        "workload",
        "gpu",
        "evidence",
        "kernel",
        "group",
        "concept",
        "metric",
        "unit",
        "a",
        "b",
        "change_pct",
        "verdict",
        "reason",
    )

    @property
    def comparison(self) -> Comparison:
        """The comparison; of several the first."""
        return self.comparisons[0]

    @property
    def is_measured(self) -> bool:
        """Whether a GPU measured the sides; else they are static or modelled facts."""
        return self.comparison.a.evidence is Evidence.MEASURED

    @property
    def verdict(self) -> Verdict:
        """The heaviest of the verdicts that decide: of the timed calls, else of durations, else of facts.

        Of facts it is worse where the rules of `profiler gate` fail.

        Worse is heavier than not comparable, unclear, better, changed and same, in this order. Durations
        weigh by their time (see Comparison.verdict).
        """
        return heaviest(comparison.verdict for comparison in self.comparisons)

    @property
    def sentence(self) -> str:
        """The verdict, what it is taken from and how many there are of each."""
        what, verdicts = self._deciding()
        counts = f"{what} {tally(verdicts)}" if verdicts else tally(verdicts)
        return f"{self.verdict.label}: {counts}{self._uncompared()}{self._why_failed()}"

    def _why_failed(self) -> str:
        """What the gate fails by where the verdict does not, such as an exact count; else empty."""
        if not self.gate or self.gate.exit_code is not Exit.REGRESSION or self.verdict.traits.fails:
            return ""
        first, *others = self.gate.report.verdicts.of(Outcome.FAILED)
        more = f" and {len(others)} more" if others else ""
        return f"; the gate fails by {first.line.partition(', worse:')[0]}{more}"

    def _uncompared(self) -> str:
        """That the kernel with most time is in no pair, where durations decide."""
        if not self.is_measured or self.comparison.timed_verdicts or not self.comparison.uncompared:
            return ""
        kernels = (
            f"{name} ({share:.0%} of {side}'s time)" for side, name, share in self.comparison.uncompared
        )
        return f"; not compared: {', '.join(kernels)}"

    @property
    def sentences(self) -> Sequence[str]:
        """The verdict, and what makes the sides not comparable."""
        blocked = dict.fromkeys(
            difference.words for comparison in self.comparisons for difference in comparison.blocked_by
        )
        return (self.sentence, *([f"Not comparable: {'; '.join(blocked)}"] if blocked else []))

    @property
    def exit_code(self) -> Exit:
        """The gate's where it was asked for; unjudged where a side has only kernels of libraries."""
        if self.gate:
            return self.gate.exit_code
        blocked = (difference for comparison in self.comparisons for difference in comparison.blocked_by)
        return Exit.UNJUDGED if any(of.field == OWN_KERNELS for of in blocked) else Exit.PASS

    @property
    def title(self) -> str:
        """Both sides."""
        return f"{self.comparison.a.label} → {self.comparison.b.label}"

    def shown(self, most: int | None = None) -> tuple[Comparison, ...]:
        """The comparisons with as many pairs as were asked for, else the `most` that take longest."""
        return tuple(comparison.top(self.top or most) for comparison in self.comparisons)

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each mode of timed calls, then one for each metric of each pair.

        Numbers are in base units; a change is in % of A.
        """
        rows = []
        for comparison in self.shown():
            side = comparison.a
            kind = side.evidence.value
            rows += [(side.workload, side.gpu, kind, *_latency_row(one)) for one in comparison.latency]
            rows += [
                (side.workload, side.gpu_of(pair.a), kind, pair.kernel, *_metric_row(change))
                for pair in comparison.pairs
                for change in pair.metrics
            ]
        return rows

    def _content(self) -> dict[str, object]:
        """The dictionary of the comparison; where there are several, under `comparisons` a list of them.

        Numbers are in base units, null with `a_state` or `b_state` where there is none.
        """
        documents = [_comparison_dict(comparison) for comparison in self.shown()]
        whole: dict[str, object] = documents[0] if len(documents) == 1 else {"comparisons": documents}
        return {**whole, "gate": self.gate.to_dict()} if self.gate else whole

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """Verdicts on top, the counters that moved below; with `everything` every metric; the gate last."""
        shown = self.shown(PAIRS_SHOWN)
        a, b = map(Name, head_names(self.comparison))
        yield Heading((a, " → ", b, f": {self.sentence}"), 1)
        if self.predict:
            yield Line(self.predict, label="modelled times")
        if not self.is_measured:
            yield from facts_blocks(shown, everything=everything)
        elif len(shown) > 1:
            yield from times_blocks(shown, everything=everything)
        else:
            yield from _measured_blocks(shown[0], everything)
        if self.gate:
            yield from self.gate.blocks()

    def _deciding(self) -> tuple[str, list[Verdict]]:
        """What decides, and its verdicts."""
        comparison = self.comparison
        if not self.is_measured:
            pairs = (pair for compared in self.comparisons for pair in compared.pairs)
            return "facts", [verdict for pair in pairs for verdict in pair.verdicts]
        if timed := [verdict for compared in self.comparisons for verdict in compared.timed_verdicts]:
            return "latency", timed
        return "kernel durations", _duration_verdicts(comparison)


def compare_names(
    a: Subject,
    b: Subject,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
    kernel: str | None = None,
    across: Collection[str] = (),
    top: int | None = None,
    pairs: Sequence[KernelPair] = (),
    guess: bool = True,
    with_gate: bool = False,
    on: Sequence[str] = (),
    data: str | None = None,
) -> ComparisonDocument:
    """Compare two sides, or what two names stand for: report files, runs or versions.

    Two versions that were not both measured are compared by their facts, on every workload and architecture
    that both have. `with_gate` adds what `profiler gate B --baseline A` answers of these sides, with `on`
    judged too. `pairs` are kernels of A and B that are one under two names; without `guess` no such
    pair is proposed. The index is opened only for names that need it. Raises UnknownName, UnreadableReport,
    NothingShared, and CannotJudge for a version without results and, with a gate, where nothing is shared.
    """
    check_concepts(table, on)
    try:
        sides, every_cell = resolve_pairs(a, b, store_opener, workload, gpu, evidence, data)
    except NothingShared as error:
        if with_gate:
            raise CannotJudge(str(error)) from None
        raise
    check_asked(pairs, sides)
    judge = Judge.of_data(table, store_opener, data, pairs=pairs, guess=guess, across=across, kernel=kernel)
    comparisons = tuple(judge.sides(side_a, side_b) for side_a, side_b in sides)
    predict = predict_command(*sides[0], store_opener, data) if every_cell else ""
    if not with_gate:
        return ComparisonDocument(comparisons, top, predict=predict)
    cells = None
    if every_cell and not kernel:  # what only A has is then missed in B
        cells = CellFilter(workload, gpu, [evidence] if evidence else [])
    root = location.open_root(data)
    from profiler.documents.gate import GateDocument  # here: few comparisons fail a build
    from profiler.gate.report import gate_comparisons

    gate = gate_comparisons(
        *labels_of(sides, a, b),
        comparisons,
        store_opener,
        root,
        table,
        cells=cells,
        on=on,
        across=across,
        pairing=judge.pairing,
    )
    return ComparisonDocument(comparisons, top, GateDocument(gate), predict)


def resolve_pairs(
    a: Subject,
    b: Subject,
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
    data: str | None = None,
) -> tuple[list[tuple[Side, Side]], bool]:
    """The pairs of sides to compare for two subjects, and whether these are all the facts that both share.

    That is one pair, except where facts of two versions are compared: then a pair for each evidence, workload
    and architecture that both have; and of two files of times: one for each problem size. Raises
    NothingShared where there is none, and as `resolve_all` does.
    """
    names = names_among((a, b))
    if len(names) == 2 and are_timed_files(names):
        if evidence not in (None, Evidence.MEASURED):
            raise NothingShared(f"{names[0]} has times, which are measured: it has nothing {evidence}")
        return timed_pairs(names[0], names[1], workload, gpu), False
    refuse_unused_filters(names, workload)
    if len(names) < 2:
        sides = tuple(side_of(subject, store_opener, workload, gpu, data) for subject in (a, b))
        if evidence and any(side.evidence is not evidence for side in sides):
            labels = " and ".join(f"{side.label} is {side.evidence}" for side in sides)
            raise NothingShared(f"not both sides are {evidence}: {labels}")
        return [(sides[0], sides[1])], False
    with versions_without_results_explained(names, store_opener, data):
        if pairs := find_fact_pairs((names[0], names[1]), store_opener, workload, gpu, evidence):
            return pairs, True
        side_a, side_b = resolve_all(names, store_opener, workload, gpu, evidence)
    return [(side_a, side_b)], False


def labels_of(sides: Sequence[tuple[Side, Side]], a: Subject, b: Subject) -> tuple[str, str]:
    """What two subjects are called: the names as they were given, else the labels of the sides."""
    side_a, side_b = sides[0]
    return a if isinstance(a, str) else side_a.label, b if isinstance(b, str) else side_b.label


def predict_command(a: Side, b: Side, store_opener: StoreOpener, data: str | None) -> str:
    """The command that has the modelled times of two versions; "" where no run keeps those of both."""
    if a.family is None or a.family != b.family or a.version is None or b.version in (None, a.version):
        return ""
    stored = find_predictions(location.open_root(data), store_opener(), a.family)
    timed = {one.version for one in stored.predictions if one.time_ns is not None} if stored else set()
    if not {a.version, b.version} <= timed:
        return ""
    return shlex.join(["profiler", "predict", str(b.version), "--against", a.version])


def latency_dict(latency: LatencyComparison) -> dict[str, object]:
    """A mode's timed calls for JSON. Changes are shares of A: 0.03 is 3 % more.

    `command` would settle what is unclear, `floor_command` collects the A/A pairs of a floor.
    """
    decision = latency.decision
    return {
        "mode": latency.mode,
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "a": _samples_dict(latency.a, latency.a_ns),
        "b": _samples_dict(latency.b, latency.b_ns),
        "effect": decision.effect,
        "interval": decision.interval,
        "gate_interval": decision.gate_interval,
        "detectable": decision.detectable,
        "p": decision.p,
        "rounds": decision.rounds,
        "rounds_needed": decision.rounds_needed,
        "processes": decision.processes or None,
        "process_sd": decision.process_sd,
        "gate_note": decision.gate_note or None,
        "fails_gate": decision.fails_gate,
        "warnings": decision.warnings,
        "command": latency.settle or None,
        "floor": latency.floor and {"pairs": latency.floor.pairs, "limit": math.expm1(latency.floor.limit)},
        "floor_command": latency.floor_command or None,
    }


def _comparison_dict(comparison: Comparison) -> dict[str, object]:
    return {
        "comparable": comparison.comparable,
        "a": _side_dict(comparison.a),
        "b": _side_dict(comparison.b),
        "differences": [
            {"field": d.field, "a": d.a, "b": d.b, "kind": d.kind, "blocks": d.blocks}
            for d in comparison.differences
        ],
        "same": dict(comparison.same),
        "warnings": warnings(comparison),
        "latency": [latency_dict(latency) for latency in comparison.latency],
        "launches": [_pair_dict(comparison, pair) for pair in comparison.pairs],
        "hidden_launches": comparison.hidden_pairs,
        "only_in_a": _launch_dicts(comparison, comparison.only_in_a),
        "only_in_b": _launch_dicts(comparison, comparison.only_in_b),
        "ambiguous": [
            {
                "kernel": group.base_name,
                "why": group.why,
                "a": _launch_dicts(comparison, group.a),
                "b": _launch_dicts(comparison, group.b),
            }
            for group in comparison.ambiguous
        ],
    }


def _side_dict(side: Side) -> dict[str, object]:
    session = side.session
    return {
        "label": side.label,
        "family": side.family,
        "version": side.version,
        "run_id": side.run_id,
        "launch_run_id": side.launch_run_id,
        "gpu": side.gpu,
        "gpus": list(side.gpus),
        "compute_capability": side.compute_capability,
        "workload": side.workload,
        "wrong": side.wrong,
        "dtype": side.dtype,
        "evidence": side.evidence.value,
        "ncu_version": session.ncu_version,
        "driver": session.driver,
        "cuda": session.cuda,
        "created": session.created.isoformat() if session.created else None,
        "clock_control": session.clock_control,
        "cache_control": session.cache_control,
        "replay_mode": session.replay_mode,
    }


def _launch_dicts(comparison: Comparison, launches: Iterable[Launch]) -> list[dict[str, object]]:
    return [
        {
            "kernel": launch.base_name,
            "part": comparison.label(launch),
            "demangled": launch.demangled,
            "duration": formatting.as_json(launch.values.value(NCU_DURATION)),
            "grid": launch.grid,
            "block": launch.block,
            "nvtx": launch.nvtx,
        }
        for launch in launches
    ]


def _samples_dict(latency: Latency | None, level_ns: float | None) -> dict[str, object] | None:
    if latency is None:
        return None
    return {
        "run_id": latency.run_id,
        "samples": len(latency.ns),
        "latency_ns": level_ns,
        "build": latency.build,
    }


def _pair_dict(comparison: Comparison, pair: PairComparison) -> dict[str, object]:
    return {
        "kernel": pair.b.base_name,
        "part": pair.kernel,
        "paired_by": pair.paired_by.value,
        "verdict": pair.verdict.value,
        "differs": pair.differs,
        "workload_change": pair.workload_change and _workload_change_dict(pair.workload_change),
        "grid": pair.b.grid,
        "block": pair.b.block,
        "gpu_a": comparison.a.gpu_of(pair.a),
        "gpu_b": comparison.b.gpu_of(pair.b),
        "a": _paired_launch_dict(pair.a),
        "b": _paired_launch_dict(pair.b),
        "launches": [len(side) for side in pair.launches],
        "metrics": [_change_dict(change) for change in pair.metrics],
        "opcodes": [{"opcode": o.opcode, "a": o.a, "b": o.b} for o in pair.opcodes],
    }


def _paired_launch_dict(launch: Launch) -> dict[str, object]:
    return {
        "kernel": launch.base_name,
        "ordinal": launch.ordinal,
        "grid": launch.grid,
        "block": launch.block,
        "nvtx": launch.nvtx,
    }


def _workload_change_dict(change: WorkloadChange) -> dict[str, str]:
    """Why the pair has no verdict on speed, and whether its code is known to be the same."""
    return {
        "verdict": change.verdict.value,
        "reason": change.reason,
        "code": change.code.word,
        "code_reason": change.code.why,
    }


def _change_dict(change: MetricChange) -> dict[str, object]:
    document: dict[str, object] = {
        "concept": change.concept,
        "label": change.label,
        "group": change.group,
        "metric": change.metric,
        "unit": change.unit,
        "a": change.a.number,
        "b": change.b.number,
        "change_pct": change.change_pct,
        "verdict": change.verdict.value,
        "reason": change.reason,
        "unreplicated": change.unreplicated,
    }
    if change.sampled is not None:
        document["interval"] = change.sampled
    elif change.noise_share is not None:
        document |= {"interval": change.interval, "detectable": change.noise_share}
    if change.p is not None:
        document["p"] = change.p
    if change.judged_by:
        document["judged_by"] = change.judged_by
    return document | _state_dict("a", change.a) | _state_dict("b", change.b)


def _state_dict(side: str, value: Value) -> dict[str, object]:
    if value.state is not State.PRESENT:
        return {f"{side}_state": value.state.words}
    return {f"{side}_{key}": words for key, words in formatting.derivation_json(value).items()}


def _latency_row(latency: LatencyComparison) -> tuple[object, ...]:
    """The columns from `kernel` on: calls are of no kernel, and their metric is the mode."""
    effect = latency.decision.effect
    change_pct = None if effect is None else 100 * effect
    numbers = (latency.a_ns, latency.b_ns, change_pct)
    return (
        None,
        "latency",
        "latency",
        latency.mode,
        "ns",
        *numbers,
        latency.verdict.value,
        latency.decision.reason,
    )


def _metric_row(change: MetricChange) -> tuple[object, ...]:
    numbers = (change.a.number, change.b.number, change.change_pct)
    return (
        change.group,
        change.concept,
        change.metric,
        change.unit,
        *numbers,
        change.verdict.value,
        change.reason,
    )


def _measured_blocks(comparison: Comparison, everything: bool) -> Iterator[Block]:
    yield from side_blocks(comparison)
    yield from time_blocks(comparison)
    yield from note_blocks(comparison)
    pairs = comparison.pairs if everything else _pairs_that_moved(comparison.pairs)
    said: set[str] = set()  # what several launches lack alike is said below the first
    for pair in pairs if everything else pairs[:_DETAILED]:
        missing = () if everything else _missing_lines(pair)
        lines = [line for line in missing if line not in said]
        said.update(lines)
        rows, notes = _metric_rows(pair, everything)
        what = "every metric" if everything else "what moved"
        yield Heading((Name(pair.kernel), f": {what}, largest change first within a group"))
        if rows:
            table = Table(_METRICS_HEAD, rows, right=(2, 3, 4))
            yield Fold(f"{len(rows)} metrics", [table, Notes([*notes, *lines])])
        else:
            yield Notes(["nothing beyond its threshold", *lines])
    if not everything and len(pairs) > _DETAILED:
        more = len(pairs) - _DETAILED
        yield Line(f"and the counters of {more} more that moved: --all, or --kernel PATTERN")
    elif comparison.pairs and not pairs:
        yield Line("no duration is better or worse; the counters: --all, or --kernel PATTERN")


def _pairs_that_moved(pairs: Sequence[PairComparison]) -> Sequence[PairComparison]:
    return pairs if len(pairs) == 1 else [pair for pair in pairs if pair.verdict.traits.moved]


def _metric_rows(pair: PairComparison, everything: bool) -> tuple[list[tuple[str, ...]], list[str]]:
    """The metrics of a pair by group, largest change first, and how derived numbers were computed."""
    changes = (change for change in pair.metrics if not change.verdict.traits.quiet)
    shown, repeats = (list(pair.metrics), []) if everything else split_repeats(changes)
    groups = list(dict.fromkeys(change.group for change in shown))
    shown.sort(key=lambda change: (groups.index(change.group), -_size(change)))
    rows: list[tuple[str, ...]] = []
    last = None
    for change in shown:
        group = "" if change.group == last else change.group
        rows.append((group, change.label, *change_numbers(change), change.verdict.label))
        last = change.group
    return rows, [*derivations(shown), *repeated(repeats)]


def _missing_lines(pair: PairComparison) -> list[str]:
    """The metrics of which a side has no number, a line for each reason; of both sides only how many.

    What this GPU does not have is left out: no report has it.
    """
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for change in pair.metrics:
        is_on_neither = change.a.number is None and change.b.number is None
        is_unavailable = change.a.state is change.b.state is State.NOT_AVAILABLE
        if change.verdict is Verdict.MISSING and not is_unavailable:
            by_reason.setdefault((change.reason, is_on_neither), []).append(change.label)
    lines = []
    for (reason, is_on_neither), labels in by_reason.items():
        left = len(labels) - _NAMED
        more = f" and {left} more: --all lists them" if left > 0 else ""
        count = f"{len(labels)} metric{'s' * (len(labels) > 1)}; --all lists them"
        lines.append(f"– {reason}: {count if is_on_neither else ', '.join(labels[:_NAMED]) + more}")
    return lines


def _size(change: MetricChange) -> float:
    """The size of a change as it is shown: points for percentages, else per cent."""
    if change.a.number is None or change.b.number is None:
        return -1.0
    if change.unit == "%":
        return abs(change.b.number - change.a.number)
    return math.inf if change.change_pct is None else abs(change.change_pct)


def _duration_verdicts(comparison: Comparison) -> list[Verdict]:
    return [*(pair.verdict for pair in comparison.pairs), *comparison.hidden_verdicts]
