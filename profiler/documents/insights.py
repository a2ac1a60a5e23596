"""What to try next with a version: at most six statements, as a document."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.advice import subject as advised
from profiler.advice.insights import Insights, find_insights
from profiler.advice.places import with_places
from profiler.advice.statement import NO_DATA, UNKNOWN, MetricInput, Statement, format_share
from profiler.advice.subject import load_subject
from profiler.compare.judged import Judge
from profiler.compare.noise_model import NoiseModel
from profiler.compare.resolve_code import open_report_of_launch
from profiler.compare.resolve_names import refuse_unused_filters
from profiler.documents.asking import Subject, names_among, side_of
from profiler.documents.blocks import Block, Findings, Fold, Heading, Item, Line, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import CannotJudge
from profiler.evidence import formatting
from profiler.evidence.library_kernels import library_kernels_alone
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.reports.instances import LaunchDetail
from profiler.reports.read import launch_detail

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

_OF_LEVERS = ("helped ", "in no known ", "refuted ")  # how what is told of a lever alone begins
_METRICS_SHOWN = 6  # of a statement; a page folds all of them below


@dataclass(frozen=True, repr=False)
class InsightsDocument(Document):
    """The statements about a version, each with the numbers that it rests on."""

    insights: Insights

    columns = (
        *("kind", "statement", "lever", "share_of_time", "saves_at_most"),
        *("evidence", "confidence", "valid"),
    )

    @property
    def title(self) -> str:
        """The version, and its baseline where it has one."""
        subject = self.insights.subject
        return f"{subject.label} against {subject.baseline}" if subject.baseline else subject.label

    @property
    def sentences(self) -> Sequence[str]:
        """The statements, what concerns most of the time first."""
        return [statement.text for statement in self.insights.statements]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements with their inputs."""
        return self.insights.statements

    def rows(self) -> list[tuple[object, ...]]:
        """A row a statement; shares of the launch's time, what it concerns and a bound, are from 0 to 1."""
        return [
            (
                statement.kind,
                statement.text,
                statement.lever,
                statement.share,
                statement.saves_at_most,
                statement.evidence.value,
                statement.confidence,
                statement.valid,
            )
            for statement in self.insights.statements
        ]

    def _content(self) -> dict[str, object]:
        """Numbers are in base units, null with a state where there is none."""
        return self.insights.to_dict()

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """Where it ran, against what and which launch; then each statement with its lever and its numbers."""
        insights, subject = self.insights, self.insights.subject
        baseline = (" against ", Name(subject.baseline)) if subject.baseline else ()
        yield Heading((Name(subject.label), *baseline), 1)
        if side := subject.measured and subject.measured.side:
            place = ", ".join(filter(None, (*side.gpus, side.workload)))
            yield from [Line(place)] if place else []
        if subject.baseline:
            yield Line(("against ", Name(subject.baseline), f": {subject.baseline_why}"))
        elif subject.baseline_why:
            yield Line(f"{subject.baseline_why[:1].upper()}{subject.baseline_why[1:]}.")
        if insights.launch:
            yield Line((Name(insights.launch), f": {insights.launch_why}"))
        shared = _shared_reservations(insights.statements)
        yield Findings([_item(*numbered, shared) for numbered in enumerate(insights.statements, 1)])
        yield Notes([f"{_numbers_words(numbers)}: {words}" for words, numbers in shared.items()])
        if insights.hidden:
            yield Line(f"left out: {insights.hidden} smaller")
        rows = [
            (str(number), Name(metric.name), *_value_and_baseline(metric))
            for number, statement in enumerate(insights.statements, 1)
            for metric in statement.inputs
            if statement.kind != UNKNOWN
        ]
        if rows:
            table = Table(("#", "metric", "value", "baseline"), rows, right=(2, 3))
            yield Fold("the numbers they rest on", [table], "every number: --json")


def insights_of_name(
    name: Subject,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    against: Subject | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    data: str | None = None,
) -> InsightsDocument:
    """What limits a version, what changed, and what to try next.

    At most six statements, ordered by the share of time they affect. Every statement names its metrics,
    their values, the baseline's values, the evidence, and whether every input was valid. What the data cannot
    tell is reported as unknown, with the command that collects it; a missing counter never becomes
    advice. For a version whose results are wrong, only that is reported.

    Of several launches the longest is examined, leaving out kernels of libraries; --kernel chooses another.
    The baseline is the nearest correct ancestor in the lineage's catalogue unless one is named; a report file
    has none. Each lever says in how many recorded optimisation steps it helped, and what would refute it.
    The command's exit code is 3 if nothing is known about the version.

    Arguments:
        against: the baseline

    Raises UnknownName, UnreadableReport, and CannotJudge where nothing is known of it.

        profiler.insights("b.ncu-rep", against="a.ncu-rep").to_frame()[["kind", "statement", "lever"]]
    """
    refuse_unused_filters(names_among((name, against)), workload)
    if isinstance(name, str) and isinstance(against, str | None):
        place = {"workload": workload, "gpu": gpu}
        subject = load_subject(name, store_opener, table, against=against, data=data, **place)
    else:
        side = side_of(name, store_opener, workload, gpu, data)
        other = None if against is None else side_of(against, store_opener, workload, gpu, data)
        name = side.label
        subject = _subject_of(side, other, Judge(table, NoiseModel.of_store(store_opener, data)))
    _refuse_libraries_alone(subject, kernel)
    insights = find_insights(subject, table, kernel)
    return InsightsDocument(_with_places(insights, name, store_opener))


def _subject_of(side: Side, against: Side | None, judge: Judge) -> advised.Subject:
    """A measured side as what is looked at, beside another where one is given."""
    return advised.Subject(
        side.label,
        advised.ComparedSide(side, judge.sides(against, side) if against else None),
        wrong=side.wrong,
        baseline=against.label if against else None,
        baseline_why="asked for" if against else "no baseline was given",
    )


def _refuse_libraries_alone(subject: advised.Subject, kernel: str | None) -> None:
    """Raise CannotJudge where only kernels of libraries were captured, and none was asked for."""
    if subject.measured is None or kernel is not None or subject.wrong:
        return
    if libraries := library_kernels_alone(subject.measured.side):
        raise CannotJudge(
            f"{subject.label}: no kernel of yours was captured, only {libraries}; --kernel names one of these"
        )


def _with_places(insights: Insights, name: str, store_opener: StoreOpener) -> Insights:
    """The insights with lines and instructions, where the report of the launch is there and has them."""
    measured, launch = insights.subject.measured, insights.examined
    if measured is None or launch is None:
        return insights
    side = measured.side
    if side.launch_run_id is None and side.report_path is None:
        return insights

    def open_detail() -> LaunchDetail | None:
        with open_report_of_launch(side, str(side.report_path or name), launch, store_opener) as path:
            if path.suffix.lower() == ".csv":
                return None
            detail = launch_detail(path, launch.ordinal)
            # Another file may stand under the name by now.
            return detail if side.report_sha256 in (None, detail.sha256) else None

    return with_places(insights, open_detail)


def kind_words(statement: Statement) -> str:
    """`stall levers`: the kind of a statement as it is written."""
    return statement.kind.replace("_", " ")


def head_words(statement: Statement) -> str:
    """`lever, saves at most 25 % of the time, measured`; `not measured` of what has no data."""
    if _is_unmeasured(statement):
        return "not measured"
    return f"{kind_words(statement)}{share_words(statement)}, {statement.evidence}"


def _is_unmeasured(statement: Statement) -> bool:
    """Whether it says only that nothing was measured."""
    is_measured = statement.evidence is Evidence.MEASURED
    return statement.kind == UNKNOWN and is_measured and statement.confidence == NO_DATA


def share_words(statement: Statement) -> str:
    """`, concerns 42 % of the cycles between two issues`; "" where no time is known.

    Where there is a bound of what the lever saves, that alone: `, saves at most 25 % of the time`.
    """
    if statement.saves_at_most is not None:
        return f", saves at most {format_share(statement.saves_at_most)} of the time"
    if not statement.share:
        return ""
    verb = "at" if statement.share_of.startswith("peak") else "concerns"
    return f", {verb} {format_share(statement.share)} of {statement.share_of or 'the time'}"


def _item(number: int, statement: Statement, shared: Collection[str]) -> Item:
    """A statement: what it concerns, what it says, the lever, the first of its numbers, how sure it is.

    The reservations that it shares with others are said below all of them.
    """
    own = [words for words in _reservations(statement) if words not in shared]
    lines = [
        statement.text,
        f"→ {statement.lever}" if statement.lever else "",
        _numbers(statement),
        f"({'; '.join(own)})" if own else "",
    ]
    return Item(f"{number}. {head_words(statement)}", [line for line in lines if line])


def _reservations(statement: Statement) -> list[str]:
    """How sure it is, clause by clause; nothing where its head says that there are no data."""
    return [] if _is_unmeasured(statement) else statement.confidence.split("; ")


def _shared_reservations(statements: Sequence[Statement]) -> dict[str, list[int]]:
    """Reservations of several statements, with the statements' numbers; not how their levers fared."""
    numbers: dict[str, list[int]] = {}
    for number, statement in enumerate(statements, 1):
        for words in _reservations(statement):
            if not words.startswith(_OF_LEVERS):
                numbers.setdefault(words, []).append(number)
    return {words: of for words, of in numbers.items() if len(of) > 1}


def _numbers_words(numbers: Sequence[int]) -> str:
    """`statements 1 to 3`, `statement 4`."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"statements {numbers[0]} to {numbers[-1]}"
    *others, last = map(str, numbers)
    return f"statements {', '.join(others)} and {last}" if others else f"statement {last}"


def _numbers(statement: Statement) -> str:
    if statement.kind == UNKNOWN:
        return ""
    more = len(statement.inputs) - _METRICS_SHOWN
    shown = [
        f"{metric.concept or metric.name} {_from_to(metric)}" for metric in statement.inputs[:_METRICS_SHOWN]
    ]
    return "; ".join((*shown, *([f"and {more} more"] if more > 0 else [])))


def _from_to(metric: MetricInput) -> str:
    """The metric's number, from the baseline's where that has one; its state where it has no valid one."""
    if not metric.valid:
        return metric.state
    if metric.baseline is None or metric.baseline.number is None:
        return metric.text
    return formatting.from_to(metric.baseline, metric.value)


def _value_and_baseline(metric: MetricInput) -> tuple[str, str]:
    baseline = "–" if metric.baseline is None else str(formatting.quantity(metric.baseline))
    return metric.text if metric.valid else metric.state, baseline
