"""How NVIDIA's rule results read on a page: one launch's, ranked, and what became of them in a pair."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from profiler.compare import PairComparison
from profiler.evidence import Rule
from profiler.reports import rule_changes
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

_UNBROKEN = 24  # letters that a phone has room for
_NONE = "The report holds no rule results: it was collected without `--apply-rules` or sections."
_COLUMNS = (
    Column("kind", wide=True),
    Column("rule", wrap=True),
    Column("what it says", wrap=True),
    Column("est. speed-up", right=True),
)
_WORDS = {
    rule_changes.NEW: "new in B",
    rule_changes.GONE: "gone from A",
    rule_changes.CHANGED: "changed",
    rule_changes.SAME: "the same in both",
}


def ranked(rules: Sequence[Rule], report: str | None = None) -> Html:
    """NVIDIA's rules in their own words, largest estimated speed-up first, global before local.

    `report` is the file's name: all that is not here stands in it, and the command that opens it below.
    """
    shown = rule_changes.rank_rules(rules)
    none = markup.note(markup.backticks_as_code(_NONE))
    body = markup.table("rules", _COLUMNS, [_row(rule) for rule in shown]) if shown else none
    notes = []
    if shown and all(rule.speedup_pct is None for rule in shown):
        notes.append("No estimates: the ncu that made this report gave none.")
    elif shown:
        notes.append("NVIDIA's estimates. Global: of the whole launch; local: of the part the rule looks at.")
    below = [markup.note(note) for note in notes]
    return markup.join((body, *below, opening(report)), "")


def opening(report: str | None) -> Html:
    """How to go on in Nsight Compute with the file that the page offers for download; "" for a CSV."""
    if report is None or report.endswith(".csv"):
        return Html("")
    command = markup.code(f"ncu-ui {shlex.quote(report)}")
    return markup.note(markup.join(("In Nsight Compute, after the download:", command)))


def changed(pair: PairComparison) -> Html:
    """Which rule results are new, gone or changed from A to B; what stayed is counted."""
    found = rule_changes.compare_rules(pair.a.rules, pair.b.rules)
    sides = [name for name, launch in (("A", pair.a), ("B", pair.b)) if not launch.rules]
    if sides:
        return markup.note(f"No rule results in {' or '.join(sides)}: nothing to hold against each other.")
    rows: list[Row] = []
    for state, words in _WORDS.items():
        group = [change for change in found if change.state == state]
        if not group:
            continue
        if state == rule_changes.SAME:
            rows.append(markup.closing_row(f"{len(group)} {words}: {_named(group)}"))
            continue
        rows.append(markup.group_row(words))
        rows += [_row(change.rule, change) for change in group]
    return markup.table("rules of A and B", _COLUMNS, rows)


def caption(pair: PairComparison) -> str:
    """How many are new, gone and changed, beside the section's title."""
    states = [change.state for change in rule_changes.compare_rules(pair.a.rules, pair.b.rules)]
    counted = (
        (states.count(state), state) for state in (rule_changes.NEW, rule_changes.GONE, rule_changes.CHANGED)
    )
    told = ", ".join(f"{number} {word}" for number, word in counted if number)
    return f"in their own words; {told or 'none new, gone or changed'}"


def _row(rule: Rule, change: rule_changes.RuleChange | None = None) -> Row:
    name = rule_changes.rule_title(rule)
    # A long message beside it would squeeze it to a word a line.
    title = [markup.tag("b", name, "nw" * (len(name) <= _UNBROKEN)), markup.muted(rule.section)]
    if change and change.why:
        title.append(markup.muted(f"({change.why})"))
    estimate: object = "–"
    if rule.speedup_pct is not None:
        estimate = markup.join((f"{rule.speedup_pct:.1f} %", markup.muted(rule.speedup_scope or "")))
    return Row(
        (markup.muted(rule.kind), markup.join(title), rule_changes.plain_message(rule.message), estimate)
    )


def _named(group: Sequence[rule_changes.RuleChange]) -> str:
    return ", ".join(dict.fromkeys(rule_changes.rule_title(change.rule) for change in group))
