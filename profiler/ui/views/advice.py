"""What to try next: the statements of `profiler insights` that call for something."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.advice.statement import CHANGE, NO_ACTION, UNKNOWN, MetricInput, Statement
from profiler.evidence import formatting
from profiler.explain.roofline import collect_command
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

CAPTION_OF_PAIR = "for B, and what suggests it; hover over it for the numbers"
CAPTION_OF_LAUNCH = "and what suggests it; hover over it for the numbers"
_NUMBERS_NAMED = 8  # of a statement, under the pointer; `profiler insights --json` has them all


def table(
    statements: Sequence[Statement],
    chip: str | None = None,
    *,
    is_measured_elsewhere: bool = False,
    with_changes: bool = False,
) -> Html:
    """One row per thing to try with what suggests it, the largest share of time first; then open questions.

    What changed is not repeated where Why says it, as it does unless asked for `with_changes`. `chip`
    ("sm_90") names what to collect on it; what is measured elsewhere is not advised to be measured.
    """
    levers = {statement.lever for statement in statements if statement.kind != CHANGE}
    actionable = [
        statement
        for statement in statements
        if statement.kind != UNKNOWN
        and (with_changes or statement.kind != CHANGE or (statement.lever and statement.lever not in levers))
    ]
    has_shares = any(statement.share for statement in actionable)
    rows = [_row(group, has_share_column=has_shares) for group in _by_lever(actionable)]
    left_out = {"time"} if is_measured_elsewhere else set()
    left_out |= set() if with_changes else {"change"}
    questions = [
        statement for statement in statements if statement.kind == UNKNOWN and statement.id not in left_out
    ]
    if questions:
        rows.append(markup.closing_row(_open_questions(questions, chip)))
    if not rows:
        return markup.note("Nothing stands out in these numbers.")
    has_levers = any(statement.lever for statement in actionable)
    columns = (Column("try" if has_levers else "", wrap=True), Column("of its time", right=True))
    return markup.table("what next", columns if has_shares else columns[:1], rows)


def _by_lever(statements: Sequence[Statement]) -> list[list[Statement]]:
    """The statements grouped by what they ask for, each group where its first statement stood."""
    groups: dict[str, list[Statement]] = {}
    for statement in statements:
        groups.setdefault(statement.lever or statement.text, []).append(statement)
    return list(groups.values())


def _row(group: Sequence[Statement], *, has_share_column: bool) -> Row:
    first = group[0]
    lines = [
        markup.tag("span", markup.backticks_as_code(statement.text), "m", numbers(statement))
        for statement in group
    ]
    if first.lever:
        lines.insert(0, markup.tag("b", f"→ {first.lever}"))
    elif first.kind == NO_ACTION:
        lines.insert(0, markup.tag("b", "nothing to do"))
    words = markup.join(lines, "<br>")
    if not has_share_column:
        return Row((words,))
    share = max(statement.share or 0.0 for statement in group)
    return Row((words, markup.quantity(f"{100 * share:.0f}", "%") if share else markup.muted("–")))


def _open_questions(statements: Sequence[Statement], chip: str | None) -> Html:
    """What stays open, and what would tell: the lines of metrics.txt under the pointer."""
    questions = markup.join((_question(statement) for statement in statements), "; ")
    to_collect = " ".join(line for statement in statements for line in statement.to_collect)
    parts: list[object] = [markup.state("unknown:"), markup.join((questions, "." * bool(to_collect)), "")]
    if to_collect and chip:  # one command collects it all on such a chip: the lines are its hint
        parts += [markup.muted("Collect:"), markup.code(collect_command(chip), title=to_collect)]
    elif to_collect:
        parts.append(markup.muted(to_collect))
    return markup.join(parts)


def _question(statement: Statement) -> Html:
    return markup.backticks_as_code(statement.question or statement.text)


def numbers(statement: Statement) -> str:
    """The numbers that a statement rests on, and how far it can be believed."""
    numbers = [f"{metric.label}: {_number(metric)}" for metric in statement.inputs[:_NUMBERS_NAMED]]
    more = len(statement.inputs) - _NUMBERS_NAMED
    numbers += [f"and {more} more"] if more > 0 else []
    return "; ".join((*numbers, statement.confidence))


def _number(metric: MetricInput) -> str:
    if not metric.valid:
        return metric.state
    if metric.baseline is not None and metric.baseline.number is not None:
        return formatting.from_to(metric.baseline, metric.value)
    return str(formatting.quantity(metric.value))
