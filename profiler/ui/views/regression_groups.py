"""What is worse now in groups: a row a version and cause; what does not count, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import formatting
from profiler.history.trend import LATENCY
from profiler.regressions.cause import Cause
from profiler.regressions.groups import RegressionGroup, WorseNow
from profiler.regressions.regression import Regression
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.data.part_names import mode_name
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import regression_list

GROUPS_SHOWN = 30
_COLUMNS = (
    Column("version", cut=1),
    Column("change"),
    Column("where", wide=True, wrap=True),
    Column("since", wide=True),
    Column("due to", wide=True),
    Column("evidence", wide=True),
    Column("why", wide=True, wrap=True),
)


def choose(worse: WorseNow, key: str) -> RegressionGroup | None:
    """The group that the address names, by its key or that of one of its rows, else the first that counts."""
    for group in (*worse.groups, *worse.acknowledged, *worse.slower_than_parent, *worse.not_open):
        if is_named(group, key):
            return group
    return worse.groups[0] if worse.groups else None


def is_named(group: RegressionGroup, key: str) -> bool:
    """Whether an address means this group, by its key or that of one of its rows."""
    return key in (group.key, *map(regression_list.key, group.regressions))


def in_words(group: RegressionGroup) -> str:
    """A group where there is no table: `flash/v2 latency +8.1 %`."""
    return " ".join(filter(None, (group.subject, group.metrics[0], group.size_words)))


def row_of(group: RegressionGroup, key: str) -> Regression:
    """The row of a group that the address names, else that which names the group."""
    return next((one for one in group.regressions if regression_list.key(one) == key), group.lead)


def table(
    groups: Sequence[RegressionGroup],
    causes: Sequence[Cause],
    selected: RegressionGroup | None,
    family: str | None,
) -> Html:
    """One row a group; its name selects it."""
    has_several_families = len({group.family for group in groups}) > 1
    rows = []
    for group, cause in zip(groups, causes, strict=True):
        rows.append(
            Row(
                (
                    markup.link(addresses.regressions(family, group.key), _name(group, has_several_families)),
                    _change(group),
                    group.where_words,
                    markup.tag("span", f"{group.since.created:%Y-%m-%d}", title=group.since.run_id),
                    group.due_to,
                    markup.join(markup.evidence_badge(kind.value) for kind in group.evidence),
                    _why(group, cause),
                ),
                selected=group is selected,
            )
        )
    return markup.table("what is worse now", _COLUMNS, rows)


def title(group: RegressionGroup) -> Html:
    """What the details are of."""
    return markup.join((markup.code(group.subject), f"{group.metrics[0]} {group.size_words}".strip()))


def caption(group: RegressionGroup) -> str:
    """How many rows and what else moved with the first metric."""
    rows = f"{len(group.regressions)} row{'s' * (len(group.regressions) != 1)}"
    others = f"; with it {', '.join(group.metrics[1:])}" if len(group.metrics) > 1 else ""
    return f"{rows} {group.where_words}{others}"


def lines(groups: Sequence[RegressionGroup], family: str | None) -> Html:
    """Groups that are not counted, a line each, without colour."""
    has_several_families = len({group.family for group in groups}) > 1
    columns = (
        Column("version", cut=1),
        Column("change"),
        Column("where", wide=True, wrap=True),
        Column("", wrap=True),
    )
    rows = [
        Row(
            (
                markup.link(addresses.regressions(family, group.key), _name(group, has_several_families)),
                markup.escaped(f"{group.metrics[0]} {group.size_words}".strip()),
                group.where_words,
                markup.muted(_beside(group)),
            )
        )
        for group in groups
    ]
    return markup.table("listed and not counted", columns, rows)


def acknowledged_line(group: RegressionGroup) -> Html:
    """What somebody let pass, until when, why and who."""
    acknowledgement = group.lead.acknowledged
    assert acknowledgement is not None, "a group is of acknowledged rows or of none"
    author = f"by {acknowledgement.who or 'somebody'}, {formatting.timestamp(acknowledgement.created)}"
    words = (
        markup.code(group.subject),
        f"{group.metrics[0]} {group.size_words}".strip(),
        group.where_words,
        markup.muted(f"{acknowledgement.until}: {acknowledgement.why}"),
        markup.muted(author),
    )
    return markup.paragraph(markup.join(words))


def row_words(regression: Regression) -> str:
    """One row of a group in words: `only latency on 2x8x2048x64, NVIDIA H100`."""
    series = regression.series
    mode = mode_name(series.mode) if series.concept == LATENCY else ""
    place = ", ".join(filter(None, (series.workload, series.gpu, mode)))
    return f"only {regression.what}" + (f" on {place}" if place else "")


def _name(group: RegressionGroup, with_family: bool) -> Html:
    if len(group.versions) > 1:
        return markup.escaped(group.subject if with_family else f"{len(group.versions)} versions")
    name = group.subject if with_family else group.versions[0]
    return markup.cut_name(name, group.subject)


def _change(group: RegressionGroup) -> Html:
    if group.lead.became_wrong:
        return markup.status_tag("wrong")
    return markup.verdict(Verdict.WORSE, f"{group.metrics[0]} {group.size_words}", group.lead.how_sure)


def _why(group: RegressionGroup, cause: Cause) -> Html:
    """What changed, what else moved with it, and whether it was let pass once."""
    if group.shared:
        return markup.escaped(group.shared.environment or "nothing known changed there")
    parts: list[object] = [markup.sentence(cause.words) if cause.words else ""]
    if len(group.metrics) > 1:
        parts.append(markup.muted(f"with it {', '.join(group.metrics[1:4])}"))
    lapsed = {one.lapsed.brief for one in group.regressions if one.lapsed}
    if lapsed:
        parts.append(markup.muted(f"acknowledgement {', '.join(sorted(lapsed))}"))
    return markup.join([part for part in parts if part], "; ")


def _beside(group: RegressionGroup) -> str:
    lead = group.lead
    if lead.slower_than_parent:
        return f"than {lead.held_against}"
    since = f"since {group.since.created:%Y-%m-%d}"
    return f"{group.due_to}, {since}" if group.due_to else since
