"""At most six statements about a version: what is wrong, what limits it, what changed, what to try next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from profiler.advice import bottleneck, what_changed, without_gpu
from profiler.advice.rules import OF_THE_BUILD
from profiler.advice.statement import (
    CHANGE,
    CORRECTNESS,
    KINDS,
    LEVER,
    NO_DATA,
    UNKNOWN,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
    format_share,
)
from profiler.advice.subject import ComparedSide, Subject
from profiler.compare.comparison import Comparison
from profiler.compare.match_launches import kernel_filter, launch_labels
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.gpu_arch import chip_of, find_architecture
from profiler.evidence.launch import Launch, place_of_most_time
from profiler.evidence.library_kernels import is_library_launch, libraries_of, library_kernels_alone
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import NOT_COLLECTED, Evidence
from profiler.explain.explanation import explain, stall_metrics
from profiler.explain.roofline import collect_command
from profiler.history.lineage import REFUSALS

MAX_STATEMENTS = 6
NO_OWN_KERNEL = "no kernel of yours was captured"
SCHEMA = 1  # of the document
_MAX_QUESTIONS = 5  # that a statement names
_MAX_LEVERS = 3  # where there is more to say than finds room
_MAX_NAMES = 3  # of metrics in a command; for more it asks `profiler list metrics`
_OF_NO_GPU = ("static__", "modelled__")  # how the names of such metrics begin
_OF_THE_CHANGE = ("change", "split")  # questions that come first
_NEVER_MEASURED = "where its time goes (never measured on a GPU)"
_CORRECTNESS_LEVERS = {  # by how the kind of defect that the check found begins
    "race:global": "order the two there: threads by __syncthreads, blocks by __threadfence and an atomic",
    "race": "order the write and the read there: __syncthreads where the block meets, __syncwarp in a warp",
    "uninitialised": "write before reading: wait for the copy, or order the two with a barrier",
    "out-of-bounds": "hold the index inside the array there",
    "over-budget": "bring it under its budget: smaller tiles, fewer stages, fewer registers",
    "launch-refused": "bring it under what the GPU has: smaller tiles, fewer stages, smaller blocks",
}
_TO_COLLECT = {  # by state
    "not collected": "To collect:",
    "failed (NaN)": "Failed, to collect again:",
    "no data": "Without data, to collect again:",
}


@dataclass(frozen=True)
class Insights:
    """The answer: what was examined, and statements, those that concern most of the time first."""

    subject: Subject
    launch: str  # what was looked at of a measured version; "" where nothing was measured
    launch_why: str
    statements: tuple[Statement, ...]
    hidden: int  # statements beyond MAX_STATEMENTS
    examined: Launch | None = field(default=None, repr=False, compare=False)  # the launch itself

    def to_dict(self) -> dict[str, Any]:
        """The insights for JSON: numbers in base units, null with a state where there is none."""
        subject = self.subject
        side = subject.measured.side if subject.measured else None
        return {
            "schema": SCHEMA,
            "version": subject.label,
            "against": subject.baseline,
            "against_why": subject.baseline_why,
            "gpu": None if side is None else side.gpu_of(self.examined) if self.examined else side.gpu,
            "workload": side.workload if side else None,
            "launch": self.launch or None,
            "launch_why": self.launch_why or None,
            "correct": False if subject.wrong else True if subject.checked else None,
            "statements": [statement.to_dict() for statement in self.statements],
            "hidden": self.hidden,
        }


class ChosenLaunch(NamedTuple):
    """The launch of a side that is examined."""

    launch: Launch
    label: str  # range/kernel#n
    why: str  # it is this one


def find_insights(subject: Subject, table: MetricTable, kernel: str | None = None) -> Insights:
    """The statements about a version, ranked; wrong results get statements on correctness alone.

    Raises UnknownName where no launch matches `kernel`, CannotJudge where the version has no results at all.
    """
    if subject.wrong:
        return Insights(subject, "", "", (_wrong(subject, subject.wrong, table),), 0)
    if subject.waits_for:
        nothing = Statement("version", UNKNOWN, subject.waits_for, (), Evidence.MEASURED, NO_DATA)
        return Insights(subject, "", "", (nothing,), 0)
    measured = subject.measured
    if not measured and not subject.facts:
        raise CannotJudge(
            f"{subject.label}: neither measured nor examined: `profiler static --check` or `profiler collect`"
        )
    answers: list[Statement | OpenQuestion] = []
    label = why = ""
    launch = None
    libraries = library_kernels_alone(measured.side) if measured and kernel is None else ""
    if libraries:
        answers.append(_no_own_kernel(libraries))
    elif measured and measured.side.launches:
        launch, label, why = choose_launch(measured.side, table, kernel)
        answers += launch_statements(measured, launch, table)
    if measured and measured.comparison:
        answers += what_changed.latency_statements(measured.comparison)
    answers += without_gpu.fact_statements(subject.facts, table, subject.traffic)
    if not measured or not measured.side.launches:
        answers.append(_never_measured(subject, table))
    chip = chip_of(measured.side.capability_of(launch)) if measured and launch else None
    statements, hidden = rank_statements(answers, chip)
    return Insights(subject, label, why, statements, hidden, launch)


def choose_launch(side: Side, table: MetricTable, kernel: str | None) -> ChosenLaunch:
    """The longest launch of the kernel with most time, by ncu's duration, among those that match `kernel`.

    Without a `kernel` the launches that only prepare or stand for comparison are passed over (random numbers
    and fills of PyTorch, matrix products of cuBLAS), where there are others.
    """
    matches = kernel_filter(kernel)
    fitting = [
        (launch, label)
        for launch, label in zip(side.launches, launch_labels(side.launches), strict=True)
        if matches(launch)
    ]
    own = [entry for entry in fitting if not is_library_launch(entry[0])] if kernel is None else fitting
    candidates = own or fitting
    is_of_library = own and kernel is None
    passed_over = [launch for launch, _ in fitting if is_of_library and is_library_launch(launch)]
    if not candidates:
        present = brief_list(sorted({launch.base_name for launch in side.launches}))
        problem = f"no kernel matches {kernel!r}" if kernel else "no launch"
        raise UnknownName(f"{problem} in {side.label}; there are {present or 'none'}")
    durations = [
        LaunchMetrics(launch, table, chip_of(side.capability_of(launch)))["duration"]
        for launch, _ in candidates
    ]
    times = [duration.number for duration in durations if duration.valid]
    kernels = [launch.base_name for launch, _ in candidates]
    index = place_of_most_time(kernels, [one.number if one.valid else None for one in durations])
    launch, label = candidates[index]
    if len(candidates) == 1:
        why = "the only launch" if kernel is None else "the only launch that fits --kernel"
    elif not times:
        why = f"the first of {len(candidates)} launches: none has a duration"
    else:
        why = _why_chosen(index, kernels, [one.number if one.valid else None for one in durations])
        if without_time := len(candidates) - len(times):
            why += f"; {without_time} without a duration"
    if passed_over:
        why += f"; {len(passed_over)} of {libraries_of(passed_over)} passed over"
    return ChosenLaunch(launch, label, why)


def _why_chosen(index: int, kernels: Sequence[str], times: Sequence[float | None]) -> str:
    """Why a launch is the one that is examined: of several kernels the one with most time."""
    total = sum(time or 0.0 for time in times)
    own = [time or 0.0 for kernel, time in zip(kernels, times, strict=True) if kernel == kernels[index]]
    if len(own) == len(kernels) or len(own) == 1:
        share = f" ({format_share((times[index] or 0.0) / total)} of total time)" if total else ""
        return f"longest of {len(kernels)} launches{share}"
    share = f" ({format_share(sum(own) / total)} of the time of all {len(kernels)})" if total else ""
    return f"longest of {len(own)} launches of the kernel with most time{share}"


def launch_statements(
    compared: ComparedSide, launch: Launch, table: MetricTable
) -> tuple[Statement | OpenQuestion, ...]:
    """All that one launch's counters say, and all questions they leave open; not ranked, not cut."""
    side, comparison = compared.side, compared.comparison
    chip = chip_of(side.capability_of(launch))
    stalls = stall_metrics(table, chip)
    explanations = explain(comparison, table) if comparison else ()
    own = next((explanation for explanation in explanations if explanation.pair.holds(launch)), None)
    metrics = LaunchMetrics(launch, table, chip, own.pair.a if own else None)
    answers = [*bottleneck.find_bottlenecks(metrics, stalls)]
    if own:
        answers += what_changed.change_statements(own, metrics, stalls, explanations)
    elif comparison:
        answers.append(_unpaired(comparison, metrics["duration"]))
    return tuple(answers)


def rank_statements(
    answers: Iterable[Statement | OpenQuestion], chip: str | None = None
) -> tuple[tuple[Statement, ...], int]:
    """At most MAX_STATEMENTS, and how many were left out: by share of time, unknown ones last.

    An open main question has a statement of its own; the others share one. Advice that two statements give is
    said once, with the cause. In code without optimisation what the build makes comes after what the source
    makes. `chip` is that of the launch, for the command that collects what is missing.
    """
    answers = list(answers)
    statements = [answer for answer in answers if isinstance(answer, Statement)]
    questions = [answer for answer in answers if isinstance(answer, OpenQuestion)]
    levers_of_causes = {statement.lever for statement in statements if statement.kind != LEVER}
    answered = [
        statement
        for statement in statements
        if statement.kind != UNKNOWN
        and not (statement.kind == LEVER and statement.lever and statement.lever in levers_of_causes)
    ]
    unknown = [statement for statement in statements if statement.kind == UNKNOWN]
    unknown += [_unknown(question.id, [question], chip) for question in questions if question.main]
    if others := [question for question in questions if not question.main]:
        others.sort(key=lambda question: question.id not in _OF_THE_CHANGE)
        unknown.append(_unknown("others", others, chip))
    answered.sort(key=lambda statement: (-statement.rank, KINDS.index(statement.kind)))
    if any(statement.id in ("debug", "debug:local") for statement in answered):
        answered.sort(key=lambda one: (not one.id.startswith("debug"), one.id in OF_THE_BUILD))
    answered = _each_lever_once(answered)
    room = max(MAX_STATEMENTS - len(unknown), 0)
    # Where not all find room, further levers go before the causes of a change do.
    levers = [statement for statement in answered if statement.kind == LEVER]
    has_change = any(statement.kind == CHANGE for statement in answered)
    first = 1 if has_change else _MAX_LEVERS
    surplus = levers[first:][::-1][: max(len(answered) - room, 0)]
    shown = [statement for statement in answered if statement not in surplus]
    selected = (*shown[:room], *unknown)[:MAX_STATEMENTS]
    return selected, len(answered) + len(unknown) - len(selected)


def _each_lever_once(ranked: Sequence[Statement]) -> list[Statement]:
    """The statements without those of kind lever that ask for nothing else than an earlier one.

    The same lever, or for a rule's the same techniques: with less time at stake it tells nothing new to try.
    """
    kept: list[Statement] = []
    told: set[object] = set()
    for statement in ranked:
        asks = {one for one in (statement.lever, statement.techniques) if one}
        if statement.kind == LEVER and asks & told:
            continue
        kept.append(statement)
        told |= asks if statement.lever else set()
    return kept


def _unknown(name: str, questions: Sequence[OpenQuestion], chip: str | None) -> Statement:
    """A statement of open questions with what to collect; it has no lever."""
    invalid = tuple(
        {metric.name: metric for question in questions for metric in question.invalid_inputs}.values()
    )
    evidence = Evidence.MEASURED
    if invalid and all(metric.name.startswith("static__") for metric in invalid):
        evidence = Evidence.STATIC
    elif invalid and all(metric.name.startswith("modelled__") for metric in invalid):
        evidence = Evidence.MODELLED
    states = {metric.value.state for metric in invalid}
    by_state = _missing_by_state(invalid, chip)
    # States that collecting again cannot change (implausible, not on this GPU) belong to the question, unless
    # they come after one that it can.
    first = next((i for i, state in enumerate(by_state) if state in _TO_COLLECT), len(by_state))
    sentences = list(by_state.values())
    asked = list(dict.fromkeys(question.question for question in questions))
    more = len(asked) - _MAX_QUESTIONS
    joined = f"{'; '.join(asked[:_MAX_QUESTIONS])}{f'; and {more} more' if more > 0 else ''}."
    text = " ".join((joined, *sentences[:first]))
    to_collect = tuple(sentences[first:])
    return Statement(
        name,
        UNKNOWN,
        " ".join((f"Unknown: {text}", *to_collect)),
        invalid,
        evidence,
        NO_DATA if states <= {NOT_COLLECTED.state} else "no usable data",
        question=text.removesuffix("."),
        to_collect=to_collect,
    )


def _missing_by_state(invalid: Sequence[MetricInput], chip: str | None) -> dict[str, str]:
    """A sentence for each state of invalid inputs, with the command that collects them where one does."""
    sentences = {}
    for state in dict.fromkeys(metric.state for metric in invalid):
        metrics = [metric for metric in invalid if metric.state == state]
        # Several opcodes of a mix are one metric to collect.
        distinct = dict.fromkeys(metric.concept or metric.name.partition("[")[0] for metric in metrics)
        words = brief_list([*distinct])
        if state in _TO_COLLECT and (command := _collect_command(metrics, chip)):
            words += f": `{command}`"
        sentences[state] = f"{_TO_COLLECT.get(state, f'{state.capitalize()}:')} {words}."
    return sentences


def _collect_command(metrics: Sequence[MetricInput], chip: str | None) -> str:
    """The command that collects metrics of ncu: a few by name; "" for what no GPU measures."""
    names = list(dict.fromkeys(metric.name.partition("[")[0] for metric in metrics))
    if any(name.startswith(_OF_NO_GPU) for name in names):
        return ""
    if len(names) <= _MAX_NAMES:
        return f"ncu --metrics {','.join(names)} PROGRAM"
    return collect_command(chip)


def _no_own_kernel(libraries: str) -> Statement:
    question = f"which kernel to advise on: {NO_OWN_KERNEL}, only {libraries}; --kernel names one of these"
    text = f"Unknown: {question}."
    return Statement("time", UNKNOWN, text, (), Evidence.MEASURED, NO_DATA, question=question)


def _never_measured(subject: Subject, table: MetricTable) -> Statement:
    metric = table.by_concept.get("duration")
    name = metric.alternatives[0].name if metric else "duration"
    line = metric.line if metric else None
    duration = MetricInput(name, "duration", "ncu duration", NOT_COLLECTED, None, line)
    command = f"profiler collect {subject.label.rpartition('/')[2]}"
    if subject.in_no_catalog:
        architectures = (find_architecture(one.side.gpu) for one in subject.facts)
        command = collect_command(next((one.name for one in architectures if one), None))
    question = f"{_NEVER_MEASURED}. On a machine with a GPU: `{command}`."
    text = f"Unknown: {question}"
    return Statement("time", UNKNOWN, text, (duration,), Evidence.MEASURED, NO_DATA, question=question)


def _unpaired(comparison: Comparison, duration: MetricInput) -> Statement:
    if comparison.ambiguous:
        why = f"its launches are ambiguous: {comparison.ambiguous[0].why}"
    else:
        why = "no launch of the baseline answers to this one"
    question = f"what changed against {comparison.a.label}; {why}"
    text = f"Unknown: {question}."
    return Statement("change", UNKNOWN, text, (duration,), Evidence.MEASURED, "no pair", question=question)


def _wrong(subject: Subject, why: str, table: MetricTable) -> Statement:
    """What is wrong, with the largest error found; wrong results have no other statement."""
    modelled = [fact for fact in subject.facts if fact.side.evidence is Evidence.MODELLED]
    launches = [LaunchMetrics(without_gpu.main_launch(fact.side), table) for fact in modelled]
    errors = [
        (metrics["modelled_error"], metrics.named("modelled__findings", "schedules with findings"))
        for metrics in launches
    ]
    worst = max(errors, key=lambda pair: pair[0].number if pair[0].valid else -1.0, default=None)
    inputs: tuple[MetricInput, ...] = worst or ()
    is_refused = why.startswith(REFUSALS)
    if is_refused:
        inputs = inputs[-1:]  # there is no result whose error could be given
    lever = next((lever for kind, lever in _CORRECTNESS_LEVERS.items() if why.startswith(kind)), None)
    word = "Rejected" if is_refused else "Wrong"
    return Statement(
        CORRECTNESS,
        CORRECTNESS,
        f"{word}, so it has no speed and nothing else is reported: {why}.",
        inputs,
        Evidence.MODELLED if modelled else Evidence.STATIC if subject.facts else Evidence.MEASURED,
        "by the check on the CPU" if modelled else "by its last check",
        lever if all(metric.valid for metric in inputs) else None,
    )
