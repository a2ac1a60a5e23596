"""At most six statements about a version: what is wrong, what limits it, what changed, what to pull next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from profiler.advice import bottleneck, what_changed, without_gpu
from profiler.advice.statement import (
    CORRECTNESS,
    KINDS,
    LEVER,
    UNKNOWN,
    LaunchInputs,
    MetricInput,
    OpenQuestion,
    Statement,
    listed,
)
from profiler.advice.subject import ComparedSide, Subject
from profiler.compare import Comparison, kernel_filter, launch_labels
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import NOT_COLLECTED, Evidence, Launch, MetricTable, Side, brief_list, chip_of
from profiler.explain import Explanation, explain
from profiler.explain.explanation import stall_metrics

MOST = 6
SCHEMA = 1
_NEVER_MEASURED = "what its time goes into: no counters of it from a GPU are here"
_WAYS_OUT = {  # what a wrong result asks for, by how the kind that the check found begins
    "race": "order the write and the read there: __syncthreads where the block meets, __syncwarp in a warp",
    "uninitialised": "write before reading: wait for the copy, or order the two with a barrier",
    "out-of-bounds": "hold the index inside the array there",
    "over-budget": "bring it under its budget: smaller tiles, fewer stages, fewer registers",
    "launch-refused": "bring it under what the GPU has: smaller tiles, fewer stages, smaller blocks",
}
_ASKS = {"not collected": "To collect:", "failed (NaN)": "Failed, to collect again:"}
_REFUSED = ("over-budget", "launch-refused")  # rejected before a number could be wrong


@dataclass(frozen=True)
class Insights:
    """The answer: what was looked at, and the statements, what concerns most of the time first."""

    subject: Subject
    launch: str  # what was looked at of a measured version; "" where nothing was measured
    why_launch: str
    statements: tuple[Statement, ...]
    hidden: int  # statements beyond MOST

    def to_dict(self) -> dict[str, Any]:
        """The insights for JSON: numbers in base units, null with a state where there is none."""
        subject, side = self.subject, self._side
        return {
            "schema": SCHEMA,
            "version": subject.label,
            "against": subject.baseline,
            "against_why": subject.baseline_why,
            "gpu": side.gpu if side else None,
            "workload": side.workload if side else None,
            "launch": self.launch or None,
            "launch_why": self.why_launch or None,
            "correct": False if subject.wrong else True if subject.checked else None,
            "statements": [one.to_dict() for one in self.statements],
            "hidden": self.hidden,
        }

    @property
    def _side(self) -> Side | None:
        return self.subject.measured.side if self.subject.measured else None


def find_insights(subject: Subject, table: MetricTable, kernel: str | None = None) -> Insights:
    """The statements about a version, ranked; a wrong one gets those on its correctness alone.

    Raises UnknownName where no launch fits `kernel`, CannotJudge where there is nothing at all.
    """
    if subject.wrong:
        return Insights(subject, "", "", tuple(_correctness(subject, table)), 0)
    if subject.waits_for:
        nothing = Statement("version", UNKNOWN, subject.waits_for, (), Evidence.MEASURED, "no data")
        return Insights(subject, "", "", (nothing,), 0)
    found: list[Statement | OpenQuestion] = []
    name = why = ""
    if subject.measured:
        if subject.measured.side.launches:
            launch, name, why = choose_launch(subject.measured.side, table, kernel)
            found += launch_statements(subject.measured, launch, table)
        if subject.measured.comparison:
            found += what_changed.latency_statements(subject.measured.comparison)
    elif not subject.facts:
        raise CannotJudge(
            f"{subject.label}: neither measured nor examined: `profiler dissect` or `profiler collect`"
        )
    found += without_gpu.fact_statements(subject.facts, table, subject.traffic)
    if not subject.measured or not subject.measured.side.launches:
        found.append(_never(subject, table))
    kept, hidden = rank_statements(found)
    return Insights(subject, name, why, kept, hidden)


def choose_launch(side: Side, table: MetricTable, kernel: str | None) -> tuple[Launch, str, str]:
    """The longest launch by ncu's duration among those asked for, its label, and why it is the one."""
    wanted = kernel_filter(kernel)
    named = [
        (launch, label)
        for launch, label in zip(side.launches, launch_labels(side.launches), strict=True)
        if wanted(launch)
    ]
    if not named:
        there = brief_list(sorted({launch.base_name for launch in side.launches}))
        asked = f"no kernel matches {kernel!r}" if kernel else "no launch"
        raise UnknownName(f"{asked} in {side.label}; there are {there or 'none'}")
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    times = [LaunchInputs(launch, table, chip)["duration"] for launch, _ in named]
    known = [one.number for one in times if one.valid]
    place = max(range(len(named)), key=lambda at: times[at].number if times[at].valid else -1.0)
    launch, label = named[place]
    if len(named) == 1:
        return launch, label, "the only launch" if kernel is None else "the only launch that fits --kernel"
    if not known:
        return launch, label, f"the first of {len(named)} launches: none has a duration"
    why = f"the longest of {len(named)} launches"
    if sum(known):
        why += f", {times[place].number / sum(known):.0%} of their time".replace("%", " %")
    lost = len(named) - len(known)
    return launch, label, why + (f"; {lost} without a duration" if lost else "")


def launch_statements(
    cell: ComparedSide, launch: Launch, table: MetricTable
) -> tuple[Statement | OpenQuestion, ...]:
    """Everything that one launch's counters say, and everything they leave open; not ranked, not cut."""
    side = cell.side
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    stalls = stall_metrics(table, chip)
    told: Sequence[Explanation] = explain(cell.comparison, table) if cell.comparison else ()
    own = next((one for one in told if one.pair.b is launch), None)
    reading = LaunchInputs(launch, table, chip, own.pair.a if own else None)
    found = [*bottleneck.find_bottlenecks(reading, stalls)]
    if own:
        found += what_changed.change_statements(own, reading, stalls, told)
    elif cell.comparison:
        found.append(_unpaired(cell.comparison, reading["duration"]))
    return tuple(found)


def rank_statements(found: Iterable[Statement | OpenQuestion]) -> tuple[tuple[Statement, ...], int]:
    """At most MOST statements: by the share of time concerned, what is unknown last, and how many fell away.

    A main question that is open has a statement of its own; the others share one. Advice that two statements
    give stands once, with the cause.
    """
    found = list(found)
    said = [one for one in found if isinstance(one, Statement)]
    gaps = [one for one in found if isinstance(one, OpenQuestion)]
    causes = {one.lever for one in said if one.kind != LEVER and one.lever}
    known = [one for one in said if one.kind != UNKNOWN and not (one.kind == LEVER and one.lever in causes)]
    open_ = [one for one in said if one.kind == UNKNOWN]
    open_ += [_unknown(gap.id, gap.asks, [gap]) for gap in gaps if gap.main]
    rest = [gap for gap in gaps if not gap.main]
    if rest:
        open_.append(_unknown("others", "; ".join(dict.fromkeys(gap.asks for gap in rest)), rest))
    known.sort(key=lambda one: (-one.rank, KINDS.index(one.kind)))
    room = max(MOST - len(open_), 0)
    kept = (*known[:room], *open_)[:MOST]
    return kept, len(known) + len(open_) - len(kept)


def _unknown(name: str, asks: str, gaps: Sequence[OpenQuestion]) -> Statement:
    """A question that stays open, with what to collect; nothing follows from it."""
    bad = tuple({one.name: one for gap in gaps for one in gap.bad}.values())
    kinds = {one.value.state for one in bad}
    text = " ".join((f"Unknown: {asks}.", *_wanted(bad)))
    evidence = Evidence.MEASURED
    if bad and all(one.name.startswith("static__") for one in bad):
        evidence = Evidence.STATIC
    elif bad and all(one.name.startswith("modelled__") for one in bad):
        evidence = Evidence.MODELLED
    sure = "no data" if kinds <= {NOT_COLLECTED.state} else "no usable data"
    return Statement(name, UNKNOWN, text, bad, evidence, sure)


def _wanted(bad: Sequence[MetricInput]) -> Iterator[str]:
    """What to collect, by why it is not there: the lines of metrics.txt, and ncu's name where none has it."""
    for state in dict.fromkeys(one.state for one in bad):
        of = [one for one in bad if one.state == state]
        lines = listed([one.line for one in of if one.line is not None])
        names = [one.concept or one.name.partition("[")[0] for one in of]
        where = f"metrics.txt:{lines} " if lines else ""
        told = f"({brief_list(names)})" if where else brief_list(names)
        yield f"{_ASKS.get(state, f'{state.capitalize()}:')} {where}{told}."


def _never(subject: Subject, table: MetricTable) -> Statement:
    metric = table.by_concept.get("duration")
    name = metric.alternatives[0].name if metric else "duration"
    missing = MetricInput(
        name, "duration", "ncu duration", NOT_COLLECTED, None, metric.line if metric else None
    )
    version = subject.label.rpartition("/")[2]
    text = f"Unknown: {_NEVER_MEASURED}. On a machine with a GPU: `profiler collect {version}`."
    return Statement("time", UNKNOWN, text, (missing,), Evidence.MEASURED, "no data")


def _unpaired(comparison: Comparison, duration: MetricInput) -> Statement:
    group = next((one for one in comparison.ambiguous), None)
    why = (
        f"its launches are ambiguous: {group.why}"
        if group
        else "no launch of the baseline answers to this one"
    )
    text = f"Unknown: what changed against {comparison.a.label}; {why}."
    return Statement("change", UNKNOWN, text, (duration,), Evidence.MEASURED, "no pair")


def _correctness(subject: Subject, table: MetricTable) -> Iterable[Statement]:
    """What is wrong, with the largest error that was seen; a wrong version has no other statement."""
    assert subject.wrong is not None
    cells = [cell for cell in subject.facts if cell.side.evidence is Evidence.MODELLED]
    readings = [LaunchInputs(without_gpu.main_launch(cell.side), table) for cell in cells]
    errors = [
        (reading["modelled_error"], reading.named("modelled__findings", "schedules with findings"))
        for reading in readings
    ]
    worst = max(errors, key=lambda pair: pair[0].number if pair[0].valid else -1.0, default=())
    inputs = tuple(worst)[-1:] if subject.wrong.startswith(_REFUSED) else tuple(worst)  # no number came out
    lever = next((way for kind, way in _WAYS_OUT.items() if subject.wrong.startswith(kind)), None)
    word = "Rejected" if subject.wrong.startswith(_REFUSED) else "Wrong"
    text = f"{word}, so it has no speed and nothing else is said: {subject.wrong}."
    evidence = Evidence.MODELLED if cells else Evidence.STATIC if subject.facts else Evidence.MEASURED
    sure = "by the check on the CPU" if cells else "by its last check"
    valid = all(one.valid for one in inputs)
    yield Statement(CORRECTNESS, CORRECTNESS, text, inputs, evidence, sure, lever if valid else None)
