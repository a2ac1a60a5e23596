"""Why a pair differs in time: the sentence, what a deeper split needs, and the causes as a waterfall."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from profiler.documents.blocks import Table
from profiler.documents.explanation import COLLECT_HEAD
from profiler.explain.explanation import Explanation, counters_to_collect
from profiler.explain.sentence import format_change, format_side, split_notes
from profiler.explain.time_identity import RESIDUE, TimeSplit, WaterfallStep, largest_step_us, waterfall_steps
from profiler.statistics.verdict import Verdict
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import answer as blocks
from profiler.ui.views.drilldown import Drill, view_of_step

CAPTION = "ncu duration split by cause; measured; a name leads to what is behind it"


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
    """Which counters a deeper split needs; empty where nothing is missing or nothing changed."""
    lacking = counters_to_collect([explanation])
    if not lacking or explanation.verdict is Verdict.SAME:
        return Html("")
    depth = "no split" if explanation.split is None else "only a coarser split"
    words = f"{depth} from what these reports carry. Collect:"
    rows = [(counter.label, f"`{counter.names}`", counter.why) for counter in lacking]
    table = blocks.table(Table(COLLECT_HEAD, rows, wide=(2,)), "counters to collect")
    return markup.join((markup.note(markup.state(words)), table), "")


def waterfall(
    explanation: Explanation, opened: Drill = ("", ""), address: Callable[[Drill], str] = lambda _drill: ""
) -> Html:
    """A row a bar in one unit: A, the causes, B; A and B alone without a split; "" without both times.

    `address` is where the name of a cause leads: to what is behind it, which is marked where it is `opened`.
    """
    a_us, b_us, split = explanation.a_us, explanation.b_us, explanation.split
    if a_us is None or b_us is None:
        return Html("")
    largest, steps = max(a_us, b_us), waterfall_steps(a_us, split) if split else ()
    ends = [*accumulate((step.us for step in steps), initial=a_us)]
    farthest = max(*ends, b_us) or 1.0

    def bar(start_us: float, end_us: float, css: str) -> Html:
        left, width = 100 * min(start_us, end_us) / farthest, 100 * abs(end_us - start_us) / farthest
        style = f"left:{left:.2f}%;width:max(1px,{width:.2f}%)"
        return Html(f'<span class="fall"><i class="{css}" style="{style}"></i></span>')

    def side(label: str, us: float, css: str) -> Row:
        return Row((markup.tag("b", label), bar(0.0, us, css), markup.tag("b", format_side(us, largest))))

    rows = [side("A", a_us, "")]
    for step, start_us, end_us in zip(steps, ends, ends[1:], strict=False):
        text = format_change(step.us, largest, largest_step_us(steps))
        role = _role(step, text, is_cause=split is not None and _is_cause(step, explanation, split))
        drill = view_of_step(step)
        name = markup.link(address(drill), step.words, "what is behind it") if drill else step.words
        value = markup.tag("span", text, f"v {role}") if role in ("better", "worse") else markup.muted(text)
        rows.append(Row((name, bar(start_us, end_us, role), value), selected=drill == opened))
    rows.append(side("B", b_us, "ink"))
    return markup.table("time by cause", (Column(""), Column(""), Column("", right=True)), rows, "bars")


def _is_cause(step: WaterfallStep, explanation: Explanation, split: TimeSplit) -> bool:
    """Whether the verdict says that the time moved, and no flag doubts the step."""
    if not explanation.causes or split.flagged:
        return False
    return not (split.reasons_flagged and step.is_stall)


def _role(step: WaterfallStep, text: str, *, is_cause: bool) -> str:
    """Better takes time away, worse adds it, the residue is hatched; what is not judged, or ±0, is grey."""
    if step.label == RESIDUE:
        return "residue"
    if not is_cause or text == "±0":
        return ""
    return "better" if step.us < 0 else "worse"
