"""The results of NVIDIA's rules: one launch's, ranked, and what became of them in a pair."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from profiler.compare.pair_comparison import PairComparison
from profiler.evidence.launch import RuleResult
from profiler.reports import rule_changes
from profiler.reports.rule_changes import RuleChange, compare_rules, plain_message, rank_rules, rule_title
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

_UNBROKEN_LETTERS = 24  # of a rule's name: a phone has no room for more
_NO_RULES = "The report holds no rule results: it was collected without `--apply-rules` or sections."
_COLUMNS = (
    Column("kind", wide=True),
    Column("rule", wrap=True),
    Column("what it says", wrap=True),
    Column("est. speed-up", right=True),
)
_WORDS = {  # by the state of a change, in the order of the table
    rule_changes.NEW: "new in B",
    rule_changes.GONE: "gone from A",
    rule_changes.CHANGED: "changed",
    rule_changes.SAME: "the same in both",
}


def ranked(
    rules: Sequence[RuleResult], report: str | None = None, links: Mapping[RuleResult, Html] | None = None
) -> Html:
    """NVIDIA's rules in their own words, largest estimated speed-up first, global before local.

    `report` is the file's name: all that is not here stands in it, and the command that opens it below.
    `links` lead to the code that a rule is about.
    """
    ranking, links = rank_rules(rules), links or {}
    if not ranking:
        no_rules = markup.note(markup.backticks_as_code(_NO_RULES))
        return markup.join((no_rules, how_to_open(report)), "")
    note = "NVIDIA's estimates. Global: of the whole launch; local: of the part the rule looks at."
    if all(rule.speedup_pct is None for rule in ranking):
        note = "No estimates: the ncu that made this report gave none."
    table = markup.table("rules", _COLUMNS, [_row(rule, link=links.get(rule)) for rule in ranking])
    return markup.join((table, markup.note(note), how_to_open(report)), "")


def how_to_open(report: str | None) -> Html:
    """How to go on in Nsight Compute with the file that the page offers for download; "" for a CSV."""
    if report is None or report.endswith(".csv"):
        return Html("")
    command = markup.code(f"ncu-ui {shlex.quote(report)}")
    return markup.note(markup.join(("In Nsight Compute, after the download:", command)))


def changed(pair: PairComparison) -> Html:
    """Which rule results are new, gone or changed from A to B; what stayed is counted."""
    changes = compare_rules(pair.a.rules, pair.b.rules)
    without = [label for label, launch in (("A", pair.a), ("B", pair.b)) if not launch.rules]
    if without:
        return markup.note(f"No rule results in {' or '.join(without)}: nothing to compare.")
    rows: list[Row] = []
    for state, words in _WORDS.items():
        group = [change for change in changes if change.state == state]
        if not group:
            continue
        if state == rule_changes.SAME:
            titles = dict.fromkeys(rule_title(change.rule) for change in group)
            rows.append(markup.closing_row(f"{len(group)} {words}: {', '.join(titles)}"))
            continue
        rows.append(markup.group_row(words))
        rows += [_row(change.rule, change) for change in group]
    return markup.table("rules of A and B", _COLUMNS, rows)


def caption(pair: PairComparison) -> str:
    """How many are new, gone and changed, beside the section's title."""
    states = [change.state for change in compare_rules(pair.a.rules, pair.b.rules)]
    moved = (rule_changes.NEW, rule_changes.GONE, rule_changes.CHANGED)
    counts = ", ".join(f"{states.count(state)} {state}" for state in moved if state in states)
    return f"in their own words; {counts or 'none new, gone or changed'}"


def _row(rule: RuleResult, change: RuleChange | None = None, link: Html | None = None) -> Row:
    name = rule_title(rule)
    # A long message beside it would squeeze a name to a word a line.
    title = [markup.tag("b", name, "nw" * (len(name) <= _UNBROKEN_LETTERS)), markup.muted(rule.section)]
    if change and change.why:
        title.append(markup.muted(f"({change.why})"))
    estimate: object = "–"
    if rule.speedup_pct is not None:
        estimate = markup.join((f"{rule.speedup_pct:.1f} %", markup.muted(rule.speedup_scope or "")))
    says = markup.escaped(plain_message(rule.message))
    if link:
        says = markup.join((says, markup.join(("in the code:", link))), " · ")
    return Row((markup.muted(rule.kind), markup.join(title), says, estimate))
