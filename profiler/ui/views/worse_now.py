"""What is worse now, a line a version and cause: the groups that Regressions and the gate count."""

from __future__ import annotations

from profiler.regressions.groups import WorseNow
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import regression_groups

ROWS_SHOWN = 4


def caption(worse: WorseNow) -> Html:
    """How much is worse, and where the same rows stand."""
    link = markup.link(addresses.regressions(worse.family), "Regressions")
    return markup.join((f"{worse.count}, the same as in", link, "and", markup.code("profiler gate")))


def table(worse: WorseNow) -> Html:
    """A line each for what is worse; what needs nobody's look ends the table."""
    if not worse.groups:
        rows = [Row(("nothing is worse",)), markup.closing_row(_not_counted(worse))]
        return markup.table("worse now", (Column("", wrap=True),), rows)
    closing: list[object] = []
    if len(worse.groups) > ROWS_SHOWN:
        words = f"{len(worse.groups) - ROWS_SHOWN} more"
        closing.append(markup.link(addresses.regressions(worse.family), words))
    closing.append(_not_counted(worse))
    groups = worse.groups[:ROWS_SHOWN]
    return regression_groups.lines(groups, worse.family, "worse now", closing, is_counted=True)


def _not_counted(worse: WorseNow) -> Html:
    counts = (
        (len(worse.acknowledged), "acknowledged"),
        (len(worse.slower_than_parent), "slower than the parent"),
        (len(worse.not_open), "known state, drift or environment"),
    )
    parts = [f"{number} {words}" for number, words in counts if number]
    words = (
        f"not counted: {', '.join(parts)}" if parts else "nothing acknowledged, no known states, no drifts"
    )
    return markup.muted(words)
