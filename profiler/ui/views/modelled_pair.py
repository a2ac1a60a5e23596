"""The modelled times of two versions: on every workload and GPU, and what the model says they differ by."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.documents.blocks import Hinted, Number, Phrase, Table
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.explain.sentence import NO_CHANGE, format_change
from profiler.explain.time_identity import RESIDUE, TimeIdentity, largest_step_us, split_time, waterfall_steps
from profiler.model.error_table import load_errors
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions, predicted_ratio
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import answer

CAPTION = "modelled from the machine code, not measured"
_CAUSES_SHOWN = 6


def pairs(stored: StoredPredictions, a: str, b: str) -> list[tuple[StoredPrediction, StoredPrediction]]:
    """Where both versions have a modelled time, in the order of the file."""
    found = []
    for prediction in stored.predictions:
        if prediction.version == b and prediction.time_ns:
            other = stored.of(a, prediction.workload, prediction.gpu)
            if other is not None and other.time_ns:
                found.append((other, prediction))
    return found


def table(shown: list[tuple[StoredPrediction, StoredPrediction]]) -> Html:
    """A row a workload and GPU: both times, their ratio with its range, and what limits B."""
    errors = load_errors()
    rows: list[Sequence[Phrase]] = []
    for a, b in shown:
        assert a.time_ns
        assert b.time_ns
        ratio = predicted_ratio(b.time_ns, a.time_ns, a.version, errors)
        span = f"eight of ten pairs: {ratio.low:.2f} to {ratio.high:.2f}"
        words = Hinted(f"{ratio.ratio:.2f} {formatting.TIMES}", span)
        times = (Number(Value(side.time_ns, "ns")) for side in (a, b))
        rows.append((b.workload, b.gpu, *times, words, ratio.word, b.limiter))
    head = ("workload", "GPU", "A", "B", "B / A", "", "limits B")
    return answer.table(Table(head, rows, right=(2, 3, 4), wide=(6,)), "modelled times")


def causes(a: StoredPrediction, b: StoredPrediction) -> Html:
    """What the modelled times differ by, largest first; nothing where the run keeps no factors."""
    if not a.factors or not b.factors:
        return Html("")
    before, after = (TimeIdentity(**side.factors, stalls_whole=True) for side in (a, b))
    assert before.time_us
    assert after.time_us
    split = split_time(before, after)
    steps = [step for step in waterfall_steps(before.time_us, split) if step.kind != RESIDUE]
    longest, largest = max(before.time_us, after.time_us), largest_step_us(steps)
    steps.sort(key=lambda step: -abs(step.us))
    rows = [
        Row((markup.code(step.words) if step.is_stall else step.words, words))
        for step in steps[:_CAUSES_SHOWN]
        if (words := format_change(step.us, longest, largest)) != NO_CHANGE
    ]
    caption = f"modelled: {b.workload} on {b.gpu}"
    head = markup.section_head("Modelled difference", caption)
    return markup.join(
        (head, markup.table("modelled causes", (Column("cause"), Column("adds", right=True)), rows)), ""
    )
