"""What is worse now, a line a version and cause: the groups that Regressions and the gate count."""

from __future__ import annotations

from profiler.regressions.groups import RegressionGroup, WorseNow
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row

ROWS_SHOWN = 4


def caption(worse: WorseNow) -> Html:
    """How much is worse, and where the same rows stand."""
    link = markup.link(addresses.regressions(worse.family), "Regressions")
    return markup.join((f"{worse.count}, the same as in", link, "and", markup.code("profiler gate")))


def table(worse: WorseNow) -> Html:
    """A line each for what is worse, with its cause below; what needs nobody's look ends the table."""
    rows: list[Row] = []
    for group in worse.groups[:ROWS_SHOWN]:
        rows.append(_row(group))
        rows.append(markup.closing_row(_cause(group)))
    if len(worse.groups) > ROWS_SHOWN:
        link = markup.link(addresses.regressions(worse.family), f"{len(worse.groups) - ROWS_SHOWN} more")
        rows.append(markup.closing_row(link))
    rows.append(markup.closing_row(_not_counted(worse)))
    if not worse.groups:
        return markup.table("worse now", (Column("", wrap=True),), [Row(("nothing is worse",)), *rows])
    columns = (
        Column("version", cut=2),
        Column("change"),
        Column("cells", right=True, wide=True),
        Column("since", wide=True),
        Column("", right=True),
    )
    return markup.table("worse now", columns, rows, css="worse-now")


def _row(group: RegressionGroup) -> Row:
    lead = group.lead
    name = lead.series.version if len(group.versions) == 1 else f"{len(group.versions)} versions"
    change = markup.tag("span", Html(f"{lead.verdict_label} {group.size_words}".strip()), "v worse nw")
    address = addresses.regressions(group.family, group.key)
    return Row(
        (
            markup.link(address, markup.cut_name(name, ", ".join(group.versions))),
            change,
            str(group.cells),
            f"{group.since.created:%m-%d}",
            markup.link(address, "why, acknowledge"),
        )
    )


def _cause(group: RegressionGroup) -> Html:
    cause = f"due to {group.due_to}" if group.due_to else "cause not known"
    since = f"since {group.since.created:%Y-%m-%d}"
    return markup.muted(f"{group.metrics[0]} {group.where_words}, {since}; {cause}")


def _not_counted(worse: WorseNow) -> Html:
    counts = (
        (len(worse.acknowledged), "acknowledged"),
        (len(worse.slower_than_parent), "slower than the parent"),
        (len(worse.not_open), "known state, drift or environment"),
    )
    parts = [f"{number} {words}" for number, words in counts if number]
    words = f"not counted: {', '.join(parts)}" if parts else "nothing else is acknowledged or doubtful"
    return markup.muted(words)
