"""What stands behind the causes of a pair: opcodes, lines whose samples moved, conflicts, tensor work."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.compare.pair_comparison import PairComparison
from profiler.documents.blocks import Gap, Link, Name, Number, Phrase, Table
from profiler.documents.code_blocks import moved_table
from profiler.evidence import formatting
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.explain import drilldown
from profiler.explain.drilldown import BankConflicts, OpcodeClassChange
from profiler.explain.explanation import Explanation
from profiler.explain.sentence import format_change
from profiler.explain.time_identity import RESIDUE, WaterfallStep, largest_step_us, waterfall_steps
from profiler.explain.time_identity import WAITING as WAITING_CAUSE
from profiler.explain.time_identity import WORK as WORK_CAUSE
from profiler.sass import hotspots
from profiler.sass.hotspots import HotSpot, HotSpotChange
from profiler.sass.listing import Listing
from profiler.ui import addresses, markup
from profiler.ui.addresses import LaunchKey
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import answer, metric_changes

Drill = tuple[str, str]  # a view, and a stall reason or ""
WORK, WAITING, SHARED, TENSOR = "work", "waiting", "shared memory", "tensor cores"
COUNTERS = "counters"  # that the causes beside work and waiting were computed from
CLOSED = "closed"
VIEWS = (CLOSED, WORK, WAITING, COUNTERS, SHARED, TENSOR)
VIEWS_OF_CODE = (WAITING, SHARED)  # they need the instructions, which takes seconds the first time
HOTTEST_SHOWN = 3
HOTTEST_CAPTION = "where most warps of B wait: share of all samples of waiting warps"
CHANGES_SHOWN = 20
LINES_SHOWN = 12
OPCODES_NAMED = 6
NO_CODE = (
    "a side has no instructions; a report has them with --set full or --section SourceCounters, a CSV never"
)
_NO_OPCODES = "opcode mix: not collected (sass__inst_executed_per_opcode)"
_RESIDUE = (
    "Arbitration residue: conflicts that the hardware counted and no address pattern explains. Requests lost "
    "arbitration for the data stage; no other layout of the data removes them"
)
_NO_MATRIX_COUNTER = "This GPU has no counter for matrix work alone (sm_90 does), so the opcode mix decides"
_SIDES = (Column("A", right=True), Column("B", right=True), Column("change", right=True))


def code_link(keys: Sequence[LaunchKey | None]) -> Html:
    """The way to the code of both launches, where their runs keep the reports."""
    a, b = keys
    if a is None or b is None:
        return markup.muted("no report of both launches is kept: no code")
    return markup.link(addresses.LaunchCode(*a, *b, view="sass").href, "code of both side by side ›")


def view_of_step(step: WaterfallStep) -> Drill | None:
    """What stands behind a step of the waterfall: a view, and for a stall its reason; None behind none."""
    if step.kind == RESIDUE:
        return None
    if step.kind == WORK_CAUSE:
        return WORK, ""
    return (WAITING, step.reason) if step.kind == WAITING_CAUSE else (COUNTERS, "")


def reasons(explanation: Explanation | None) -> dict[str, str]:
    """The stall reasons that the time was split by, the largest first, each with the time that it adds."""
    split = explanation.split if explanation else None
    if explanation is None or split is None or explanation.a_us is None or explanation.b_us is None:
        return {}
    steps = waterfall_steps(explanation.a_us, split)
    largest, step_us = max(explanation.a_us, explanation.b_us), largest_step_us(steps)
    stalls = sorted((step for step in steps if step.reason), key=lambda step: -abs(step.us))
    return {step.reason: f"{step.reason} {format_change(step.us, largest, step_us)}" for step in stalls}


def parts(
    view: str,
    pair: PairComparison,
    listings: Sequence[Listing],
    changes: Sequence[HotSpotChange] = (),
    reason: str = "",
    explanation: Explanation | None = None,
) -> list[Html]:
    """The chosen view; nothing while it is closed.

    Only VIEWS_OF_CODE need the listings of both sides, and waiting the changes between them.
    """
    if view == COUNTERS:
        return counters(pair, explanation)
    if view == WORK:
        return work(pair)
    if view == TENSOR:
        return tensor_cores(pair)
    if view not in VIEWS_OF_CODE:
        return []
    if len(listings) < 2 or not all(listing.lines for listing in listings):
        return [markup.note(markup.state(NO_CODE))]
    if view == WAITING:
        return waiting(pair, listings, changes, reason)
    return shared_memory(pair, *listings)


def counters(pair: PairComparison, explanation: Explanation | None) -> list[Html]:
    """The counters that the split was computed from, those of waiting left out: they have a view."""
    inputs = explanation.split.inputs if explanation and explanation.split else ()
    changes = [change for change in pair.metrics if change.concept in inputs]
    caption = "what parallelism, balance and clock were computed from: T = I·L / (W·S·a·f)"
    head = markup.section_head("Counters", caption)
    if not changes:
        return [head, markup.note(markup.state("no split, so no counters behind it"))]
    return [head, metric_changes.rows_of(changes)]


def hottest(pairs: Sequence[HotSpotChange], keys: Sequence[LaunchKey]) -> Html:
    """The places where most warps of B waited, each with the same place of A and the way to its code."""
    hot = hotspots.hottest_pairs(pairs, HOTTEST_SHOWN)
    if not hot:
        return markup.note(markup.state("no samples by instruction on both sides"))
    whole_a, whole_b = (sum(getattr(place, side) or 0.0 for place in pairs) for side in "ab")
    rows: list[Sequence[Phrase]] = []
    for place in hot:
        location = place.location_b or place.location_a
        address = addresses.LaunchCode(*keys[1 if place.location_b else 0], view="hottest")
        at = Link(location.words, address.at(find=location.words)) if location else "–"
        text = f"`{place.text.strip()}`" if place.text and "`" not in place.text else place.text
        shares = _share(place.a, whole_a), _share(place.b, whole_b)
        rows.append((at, text or Gap("no text in the report"), *shares, Name(place.reason)))
    head = ("at", "code", "of A", "of B", "waits for")
    return answer.table(Table(head, rows, right=(2, 3)), "hottest lines")


def work(pair: PairComparison) -> list[Html]:
    """Executed instructions by opcode class, largest change first, with the opcodes that came and went."""
    changes = drilldown.opcode_class_changes(pair.a.opcodes, pair.b.opcodes)
    if not changes:
        return [markup.note(markup.state(_NO_OPCODES))]
    largest = max(abs(change.b - change.a) for change in changes) or 1.0
    rows = [_class_row(change, largest) for change in changes]
    all_a, all_b = sum(change.a for change in changes), sum(change.b for change in changes)
    rows.append(Row((markup.tag("b", "all"), "", *_counts_and_change(all_a, all_b), "", "")))
    columns = (
        Column("class"),
        Column("", wide=True),
        *_SIDES,
        Column("", wide=True),
        Column("opcodes", wrap=True),
    )
    caption = "warp instructions executed, by opcode class, largest change first"
    return [
        markup.section_head("Work", caption),
        markup.table("instructions executed by class", columns, rows),
    ]


def waiting(
    pair: PairComparison, listings: Sequence[Listing], changes: Sequence[HotSpotChange], reason: str = ""
) -> list[Html]:
    """The lines or instructions whose samples of waiting warps moved, the largest move first.

    With a reason, the samples that waited for it alone.
    """
    scale = hotspots.sample_scale(pair.a.values, pair.b.values)
    has_sources = all(listing.has_sources for listing in listings)
    by = "source lines" if has_sources else "instructions as aligned: no line info"
    title = markup.join(("Waiting for", markup.code(reason))) if reason else "Waiting"
    head = markup.section_head(title, f"samples of waiting warps by place, largest move first; {by}")
    notes = [markup.note(words) for words in (_scale_words(scale), *_dropped_samples(pair)) if words]
    if reason:
        changes = hotspots.changes_of_reason(changes, reason)
    if not changes:
        has_samples = all(hotspots.SAMPLES in listing.counts for listing in listings)
        what = f"No sample that waited for {reason} moved." if reason else "No waiting sample moved."
        words = what if has_samples else markup.state("a report holds no samples")
        return [head, *notes, markup.note(words)]
    table = answer.table(moved_table(changes[:CHANGES_SHOWN], reason), "where the waiting moved")
    if rest := changes[CHANGES_SHOWN:]:
        words = f"{len(rest)} more places moved less, together"
        together = _signed(sum(change.change for change in rest))
        notes.append(markup.note(markup.join((words, together, "· profiler sass A B --json has all"))))
    return [head, *notes, table]


def shared_memory(pair: PairComparison, a: Listing, b: Listing) -> list[Html]:
    """Bank conflicts as counted, the part that access patterns explain, the rest; then the lines."""
    conflicts_a, conflicts_b = (drilldown.bank_conflicts(launch) for launch in (pair.a, pair.b))
    rows = [
        _value_row(
            "bank conflicts, by the hardware", drilldown.CONFLICTS, conflicts_a.counted, conflicts_b.counted
        ),
        _value_row(
            "excess wavefronts, by instruction", drilldown.EXCESS, conflicts_a.excess, conflicts_b.excess
        ),
        _value_row("arbitration residue", _RESIDUE, _residue(conflicts_a), _residue(conflicts_b)),
        _value_row("ideal wavefronts", drilldown.IDEAL, conflicts_a.ideal, conflicts_b.ideal),
    ]
    caption = "what the access pattern costs, next to what the hardware counted"
    blocks = [
        markup.section_head("Shared memory", caption),
        markup.table("wavefronts", (Column("wavefronts"), *_SIDES), rows),
        markup.note(f"{_RESIDUE}."),
    ]
    for label, listing in (("A", a), ("B", b)):
        spots = [spot for spot in hotspots.spots_by_line(listing) if spot.excess]
        if hotspots.EXCESS not in listing.counts:
            blocks.append(markup.note(markup.state(f"{label}: excess by instruction: not collected")))
        elif not spots:
            blocks.append(markup.note(f"{label}: no line has a wavefront over the ideal."))
        else:
            blocks.append(markup.section_head(f"Lines of {label}", "excess wavefronts, most first"))
            blocks.append(_excess_table(label, spots))
    return blocks


def tensor_cores(pair: PairComparison) -> list[Html]:
    """The tensor pipe beside the counter of matrix work alone, where the chip has it, and the opcodes."""
    a, b = drilldown.tensor_pipe(pair.a), drilldown.tensor_pipe(pair.b)
    executed = (_executed(a.instructions), _executed(b.instructions))
    matrix_hint = a.matrix_name or _NO_MATRIX_COUNTER
    rows = [
        _value_row("tensor pipe busy, HFMA2.MMA too", a.pipe_name, a.pipe, b.pipe),
        _value_row("busy with matrix work only", matrix_hint, a.matrix, b.matrix),
        _value_row("matrix instructions executed", "opcode mix", *executed),
        _value_row("HFMA2 executed", "opcode mix", _executed(a.half), _executed(b.half)),
    ]
    notes = [f"{a.words}."] if a.words == b.words else [f"A: {a.words}.", f"B: {b.words}."]
    if not a.matrix_name and not b.matrix_name:
        notes.append(f"{_NO_MATRIX_COUNTER}.")
    return [
        markup.section_head("Tensor cores", "the pipe's counter compared with the opcodes"),
        markup.table("tensor cores", (Column("tensor"), *_SIDES), rows),
        *map(markup.note, notes),
    ]


def _class_row(change: OpcodeClassChange, largest: float) -> Row:
    kind = "tensor" if change.matrix else "scalar or data movement"
    lists = []
    for words, opcodes in (("added", change.added), ("vanished", change.vanished)):
        names = list(opcodes)
        if names:
            more = f"and {len(names) - OPCODES_NAMED} more" if len(names) > OPCODES_NAMED else ""
            codes = markup.join((markup.code(name) for name in names[:OPCODES_NAMED]), ", ")
            lists.append(markup.join((markup.muted(words), codes, more)))
    return Row(
        (
            change.name,
            markup.muted(kind),
            *_counts_and_change(change.a, change.b),
            markup.change_bar((change.b - change.a) / largest),
            markup.join(lists, " · "),
        )
    )


def _share(samples: float | None, whole: float) -> Number | str:
    """A share of all samples of a side; a dash where the side has no such place."""
    return "–" if samples is None or not whole else Number(Value(100 * samples / whole, "%"))


def _code(text: str | None) -> Html:
    """A line of code, or that the report holds only its counts."""
    if not text:
        return markup.state("no text in the report")
    return markup.tag("span", markup.code(text.strip()), title=text.strip())


def _excess_table(label: str, spots: Sequence[HotSpot]) -> Html:
    order = sorted(spots, key=lambda spot: -(spot.excess or 0))
    rows = []
    for spot in order[:LINES_SHOWN]:
        counts = map(_count, (spot.excess, spot.wavefronts, spot.ideal))
        rows.append(Row((markup.code(spot.location.words), _code(spot.text), *counts)))
    if rest := order[LINES_SHOWN:]:
        together = _text(sum(spot.excess or 0 for spot in rest))
        rows.append(markup.closing_row(markup.muted(f"{len(rest)} more lines, together {together}")))
    counts_columns = (Column(head, right=True) for head in ("excess", "wavefronts", "ideal"))
    columns = (Column("at"), Column("code", wrap=True), *counts_columns)
    return markup.table(f"lines of {label} over the ideal", columns, rows)


def _value_row(label: str, hint: str, a: Value, b: Value) -> Row:
    a, b = (value._replace(unit="%" if value.unit == "%" else "") for value in (a, b))
    change = formatting.change(a, b) if a.number is not None and b.number is not None else ""
    return Row((markup.tag("span", label, title=hint), markup.value(a), markup.value(b), change))


def _residue(conflicts: BankConflicts) -> Value:
    """What no access pattern explains; the state of what is missing where a number is."""
    if conflicts.residue is None:
        return conflicts.counted if conflicts.counted.number is None else conflicts.excess
    return Value(conflicts.residue)


def _executed(number: float | None) -> Value:
    return NOT_COLLECTED if number is None else Value(number)


def _counts_and_change(a: float, b: float) -> tuple[Html, Html, Html]:
    return _count(a), _count(b), _signed(b - a)


def _count(number: float | None) -> Html:
    return markup.muted("–") if number is None else markup.value(Value(round(number)))


def _text(number: float) -> str:
    return str(formatting.quantity(Value(round(number))))


def _signed(number: float) -> Html:
    """A difference with its sign; ±0 where it rounds to none."""
    if not round(number):
        return markup.escaped("±0")
    size = markup.quantity(*formatting.quantity(Value(round(abs(number)))))
    return markup.join(("+" if number > 0 else formatting.MINUS, size), "")


def _scale_words(scale: float | None) -> str:
    if scale is None:
        return "A report does not say its sampling interval: samples stand as they were counted."
    if scale == 1.0:
        return ""
    return f"The two were sampled at different intervals: each sample of B counts {formatting.digits(scale)}."


def _dropped_samples(pair: PairComparison) -> list[str]:
    """A line for each side whose sampler lost bytes: its samples are too few."""
    dropped = [
        (label, launch.values.number(hotspots.DROPPED) or 0.0)
        for label, launch in (("A", pair.a), ("B", pair.b))
    ]
    return [
        f"{label}: the sampler dropped {_text(size)} bytes: too few samples."
        for label, size in dropped
        if size
    ]
