"""What stands behind the causes of a pair, as markup: opcodes, lines that moved, conflicts, tensor work."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.compare import PairComparison
from profiler.evidence import NOT_COLLECTED, Launch, Value, formatting
from profiler.explain import BankConflicts, OpcodeClassChange, drilldown
from profiler.sass import HotSpot, HotSpotChange, Listing, hotspots
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import code_listing

WAITING, SHARED = "waiting", "shared memory"
VIEWS = ("closed", "work", WAITING, SHARED, "tensor cores")
READS_CODE = (WAITING, SHARED)  # views that need the instructions, which takes seconds the first time
MOVERS_SHOWN = 20
LINES_SHOWN = 12
OPCODES_NAMED = 6
NO_CODE = (
    "a side has no instructions; a report has them with --set full or --section SourceCounters, a CSV never"
)
NO_OPCODES = "opcode mix: not collected (sass__inst_executed_per_opcode)"
_WRAPPED = Column("opcodes", wrap=True)
_SIDES = (Column("A", right=True), Column("B", right=True), Column("change", right=True))


def links(code: Sequence[tuple[str, str] | None]) -> Html:
    """The way to the code of both launches, where their runs keep the reports."""
    a, b = code
    if a is None or b is None:
        return markup.muted("no report of both launches is kept: no code")
    return markup.link(addresses.Code(*a, *b, view="sass").href, "code of both side by side ›")


def machine_code(a: str, b: str, arch: str | None = None) -> Html:
    """What stands where no run keeps the code of both: the command that builds it."""
    command = code_listing.by_compiler(a, b, arch=arch)
    return markup.note(
        markup.state(
            markup.backticks_as_code(f"Not kept for both; instruction beside instruction: `{command}`")
        )
    )


def section(view: str, pair: PairComparison, code: Sequence[Listing]) -> list[Html]:
    """The chosen view; nothing while it is closed."""
    if view == "work":
        return work(pair)
    if view == "tensor cores":
        return tensor_cores(pair)
    if view in READS_CODE and (len(code) < 2 or not all(one.lines for one in code)):
        return [markup.note(markup.state(NO_CODE))]
    if view == WAITING:
        return waiting(pair, *code)
    return shared_memory(pair, *code) if view == SHARED else []


def work(pair: PairComparison) -> list[Html]:
    """Executed instructions by opcode class, largest change first, with the opcodes that came and went."""
    changes = drilldown.opcode_class_changes(pair.a.opcodes, pair.b.opcodes)
    if not changes:
        return [markup.note(markup.state(NO_OPCODES))]
    largest = max(abs(one.b - one.a) for one in changes) or 1.0
    rows = [_class_row(one, largest) for one in changes]
    total = [sum(getattr(one, side) for one in changes) for side in "ab"]
    rows.append(Row((markup.tag("b", "all"), "", *_numbers(*total), "", "")))
    columns = (Column("class"), Column("", wide=True), *_SIDES, Column("", wide=True), _WRAPPED)
    caption = "warp instructions executed, by opcode class, largest change first"
    return [
        markup.section_head("Work", caption),
        markup.table("instructions executed by class", columns, rows),
    ]


def waiting(pair: PairComparison, a: Listing, b: Listing) -> list[Html]:
    """The places whose waiting samples moved, by reason, most first."""
    scale = hotspots.sample_scale(pair.a.values, pair.b.values)
    moved = hotspots.hot_spot_changes(a, b, scale or 1.0)
    by = "source lines" if a.has_sources and b.has_sources else "instructions as aligned: no line info"
    found = [markup.section_head("Waiting", f"samples of waiting warps by place, largest move first; {by}")]
    notes = [_scale_words(scale), *_dropped(pair)]
    found += [markup.note(words) for words in notes if words]
    if not moved:
        words = "No waiting sample moved." if _sampled(a, b) else markup.state("a report holds no samples")
        return [*found, markup.note(words)]
    largest = max(abs(one.moved) for one in moved) or 1.0
    rows = [_mover_row(one, largest) for one in moved[:MOVERS_SHOWN]]
    if rest := moved[MOVERS_SHOWN:]:
        told = f"{len(rest)} more places moved less, together"
        parts = (told, _signed(sum(one.moved for one in rest)), "· profiler sass A B --json has all")
        rows.append(markup.closing_row(markup.muted(markup.join(parts))))
    columns = (
        Column("in A", cut=1),
        Column("in B", wide=True),
        Column("code", cut=2),
        *_SIDES,
        Column("", wide=True),
        Column("by reason", wrap=True),
    )
    return [*found, markup.table("where the waiting moved", columns, rows)]


def shared_memory(pair: PairComparison, a: Listing, b: Listing) -> list[Html]:
    """The hardware's conflicts: what the access pattern explains, and arbitration; then the lines."""
    sides = [drilldown.bank_conflicts(launch) for launch in (pair.a, pair.b)]
    rows = [
        _value_row(
            "bank conflicts, by the hardware", drilldown.CONFLICTS, sides[0].counted, sides[1].counted
        ),
        _value_row("excess wavefronts, by instruction", drilldown.EXCESS, sides[0].excess, sides[1].excess),
        _value_row("arbitration residue", _RESIDUE, _residue(sides[0]), _residue(sides[1])),
        _value_row("ideal wavefronts", drilldown.IDEAL, sides[0].ideal, sides[1].ideal),
    ]
    found = [
        markup.section_head(
            "Shared memory", "what the access pattern costs, beside what the hardware counted"
        ),
        markup.table("wavefronts", (Column("wavefronts"), *_SIDES), rows),
        markup.note(_RESIDUE + "."),
    ]
    lines = [[hot for hot in hotspots.spots_by_line(one) if hot.excess] for one in (a, b)]
    for side, hots, listing in zip("AB", lines, (a, b), strict=True):
        if hotspots.EXCESS not in listing.counts:
            found.append(markup.note(markup.state(f"{side}: excess by instruction: not collected")))
        elif not hots:
            found.append(markup.note(f"{side}: no line has a wavefront over the ideal."))
        else:
            found.append(markup.section_head(f"Lines of {side}", "excess wavefronts, most first"))
            found.append(_excess_table(side, hots))
    return found


def tensor_cores(pair: PairComparison) -> list[Html]:
    """The tensor pipe beside the counter of matrix work alone, where the chip has it, and the opcodes."""
    a, b = drilldown.tensor_pipe(pair.a), drilldown.tensor_pipe(pair.b)
    executed = (a.instructions, b.instructions)
    rows = [
        _value_row("tensor pipe busy, HFMA2.MMA too", a.pipe_name, a.pipe, b.pipe),
        _value_row("busy with matrix work alone", a.matrix_name or _NO_MATRIX, a.matrix, b.matrix),
        _value_row("matrix instructions executed", "opcode mix", *map(_executed, executed)),
        _value_row("HFMA2 executed", "opcode mix", _executed(a.half), _executed(b.half)),
    ]
    words = [f"{a.words}."] if a.words == b.words else [f"A: {a.words}.", f"B: {b.words}."]
    notes = [*words, *([] if a.matrix_name or b.matrix_name else [f"{_NO_MATRIX}."])]
    return [
        markup.section_head("Tensor cores", "the pipe's counter held against the opcodes"),
        markup.table("tensor cores", (Column("tensor"), *_SIDES), rows),
        *map(markup.note, notes),
    ]


_RESIDUE = (
    "Arbitration residue: conflicts that the hardware counted and no address pattern explains. Requests lost "
    "arbitration for the data stage; no other layout of the data removes them"
)
_NO_MATRIX = "No counter of matrix work alone here (sm_90 has one): the opcode mix decides"


def _class_row(one: OpcodeClassChange, largest: float) -> Row:
    kind = "tensor" if one.matrix else "scalar or data movement"
    told = []
    for words, opcodes in (("added", one.added), ("vanished", one.vanished)):
        names = list(opcodes)
        if names:
            more = f"and {len(names) - OPCODES_NAMED} more" if len(names) > OPCODES_NAMED else ""
            shown = markup.join((markup.code(name) for name in names[:OPCODES_NAMED]), ", ")
            told.append(markup.join((markup.muted(words), shown, more)))
    bar = markup.change_bar((one.b - one.a) / largest)
    return Row((one.name, markup.muted(kind), *_numbers(one.a, one.b), bar, markup.join(told, " · ")))


def _mover_row(one: HotSpotChange, largest: float) -> Row:
    reasons = [
        markup.join((markup.code(name), _signed(count))) for name, count in list(one.by_reason.items())[:3]
    ]
    if one.noise:
        reasons.append(markup.muted("within counting noise"))
    a, b = (place.words if place else "–" for place in (one.location_a, one.location_b))
    text = _code(one.text)
    return Row(
        (
            markup.cut_name(a, a),
            markup.code(b) if a != b else markup.muted("same"),
            text,
            _count(one.a),
            _count(one.b),
            _signed(one.moved),
            markup.change_bar(one.moved / largest),
            markup.join(reasons, " · "),
        )
    )


def _code(text: str | None) -> Html:
    """A line of code; a place of which the report holds only the counts says so."""
    if not text:
        return markup.state("no text in the report")
    return markup.tag("span", markup.code(text.strip()), title=text.strip())


def _excess_table(side: str, hots: Sequence[HotSpot]) -> Html:
    order = sorted(hots, key=lambda hot: -(hot.excess or 0))
    rows = []
    for hot in order[:LINES_SHOWN]:
        code = _code(hot.text)
        counts = map(_count, (hot.excess, hot.wavefronts, hot.ideal))
        rows.append(Row((markup.code(hot.location.words), code, *counts)))
    if len(order) > LINES_SHOWN:
        rest = _text(sum(hot.excess or 0 for hot in order[LINES_SHOWN:]))
        rows.append(
            markup.closing_row(markup.muted(f"{len(order) - LINES_SHOWN} more lines, together {rest}"))
        )
    heads = (Column(name, right=True) for name in ("excess", "wavefronts", "ideal"))
    return markup.table(
        f"lines of {side} over the ideal", (Column("at"), Column("code", cut=3), *heads), rows
    )


def _value_row(label: str, hint: str, a: Value, b: Value) -> Row:
    a, b = (value._replace(unit="%" if value.unit == "%" else "") for value in (a, b))
    change = formatting.change(a, b) if a.number is not None and b.number is not None else ""
    return Row((markup.tag("span", label, title=hint), markup.value(a), markup.value(b), change))


def _residue(side: BankConflicts) -> Value:
    """What no access pattern explains; the state of what is missing where a number is."""
    if side.residue is None:
        return side.counted if side.counted.number is None else side.excess
    return Value(side.residue)


def _executed(number: float | None) -> Value:
    return NOT_COLLECTED if number is None else Value(number)


def _numbers(a: float, b: float) -> tuple[Html, Html, Html]:
    return _count(a), _count(b), _signed(b - a)


def _count(number: float | None) -> Html:
    return markup.muted("–") if number is None else markup.value(Value(round(number)))


def _text(number: float) -> str:
    return str(formatting.quantity(Value(round(number))))


def _signed(number: float) -> Html:
    """A difference with its sign; ±0 where it rounds to none."""
    if not round(number):
        return markup.escaped("±0")
    return markup.join(("+" if number > 0 else formatting.MINUS, _count(abs(number))), "")


def _sampled(*code: Listing) -> bool:
    return all(hotspots.SAMPLES in one.counts for one in code)


def _scale_words(scale: float | None) -> str:
    if scale is None:
        return "A report does not say its sampling interval: samples stand as they were counted."
    if scale == 1.0:
        return ""
    return f"The two were sampled at different intervals: each sample of B counts {formatting.digits(scale)}."


def _dropped(pair: PairComparison) -> list[str]:
    """A line for each side whose sampler lost bytes: its samples are too few."""
    lost = [(side, _lost(launch)) for side, launch in (("A", pair.a), ("B", pair.b))]
    return [
        f"{side}: the sampler dropped {_text(count)} bytes: too few samples." for side, count in lost if count
    ]


def _lost(launch: Launch) -> float:
    return launch.values.number(hotspots.DROPPED) or 0.0
