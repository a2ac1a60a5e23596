"""Why a pair differs in time: the sentence, what a deeper split needs, and the causes as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.evidence import formatting
from profiler.explain.explanation import Explanation, counters_to_collect
from profiler.explain.sentence import format_change, format_side, split_notes
from profiler.explain.time_identity import RESIDUE, TimeSplit, WaterfallStep, largest_step_us, waterfall_steps
from profiler.statistics.verdict import Verdict
from profiler.ui import markup
from profiler.ui.charts import waterfall as waterfall_chart
from profiler.ui.charts.style import Figure
from profiler.ui.charts.waterfall import Bar
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views.drilldown import Drill, view_of_step

CAPTION = "ncu duration split by cause; measured; a click on a bar opens what is behind it"
_COUNTER_COLUMNS = (
    Column("metrics.txt"),
    Column("metric", wrap=True, wide=True),
    Column("ncu metric", wrap=True),
    Column("missing", wide=True),
)


def answer(explanation: Explanation) -> Html:
    """The one sentence, and what a reader should know before believing it."""
    parts = explanation.sentence_parts
    others = (markup.muted(markup.sentence(part)) for part in parts.others)
    lines = [markup.paragraph(markup.join((markup.sentence(parts.answer), *others)))]
    if explanation.split:
        lines += [
            markup.note(markup.sentence(note))
            for note in split_notes(explanation.split, bool(explanation.causes))
        ]
    return markup.join(lines, "")


def missing_counters(explanation: Explanation) -> Html:
    """Which lines of metrics.txt a deeper split needs; empty where nothing is missing or nothing changed."""
    rows = [
        Row((counter.lines, counter.label, markup.code(counter.names), markup.muted(counter.why)))
        for counter in counters_to_collect([explanation])
    ]
    if not rows or explanation.verdict is Verdict.SAME:
        return Html("")
    depth = "no split" if explanation.split is None else "only a coarser split"
    words = f"{depth} from what these reports carry. Collect:"
    table = markup.table("counters to collect", _COUNTER_COLUMNS, rows)
    return markup.join((markup.note(markup.state(words)), table), "")


def waterfall(explanation: Explanation, opened: Drill = ("", "")) -> Figure | None:
    """The split as bars in one unit: A, the causes, B; None where there is none.

    A bar's custom data is the view of the drill-down that it opens and the stall reason there.
    """
    split, a_us, b_us = explanation.split, explanation.a_us, explanation.b_us
    if split is None or a_us is None or b_us is None:
        return None
    return waterfall_chart.figure(list(_bars(explanation, split, (a_us, b_us), opened)))


def _bars(
    explanation: Explanation, split: TimeSplit, times_us: tuple[float, float], opened: Drill
) -> Iterator[Bar]:
    a_us, b_us = times_us
    largest = max(a_us, b_us)
    divisor = formatting.scale_for("us", largest).divisor
    steps = waterfall_steps(a_us, split)
    yield Bar("A", 0.0, a_us / divisor, format_side(a_us, largest), "muted", strong=True)
    reached_us = a_us
    for step in steps:
        text = format_change(step.us, largest, largest_step_us(steps))
        role = _role(step, text, is_cause=_is_cause(step, explanation, split))
        drill = view_of_step(step)
        is_open = drill is not None and drill == opened
        start, length = reached_us / divisor, step.us / divisor
        yield Bar(step.label, start, length, text, role, opens=drill or (), selected=is_open)
        reached_us += step.us
    yield Bar("B", 0.0, b_us / divisor, format_side(b_us, largest), "ink", strong=True)


def _is_cause(step: WaterfallStep, explanation: Explanation, split: TimeSplit) -> bool:
    """Whether the verdict says that the time moved, and no flag doubts the step."""
    if not explanation.causes or split.flagged:
        return False
    return not (split.reasons_flagged and step.is_stall)


def _role(step: WaterfallStep, text: str, *, is_cause: bool) -> str:
    """Better takes time away, worse adds it; what was not judged, or rounds to nothing, is grey."""
    if step.label == RESIDUE:
        return ""  # hatched
    if not is_cause or text == "±0":
        return "neutral"
    return "better" if step.us < 0 else "worse"
