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
from profiler.ui.markup import Column, Html
from profiler.ui.views import regression_list

GROUPS_SHOWN = 30


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
    return f"{group.subject} {_change_words(group)}"


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
    cause_of = {group.key: cause for group, cause in zip(groups, causes, strict=True)}
    columns = (
        Column("version", cut=1, cell=lambda group: _link(group, family, has_several_families)),
        Column("change", cell=_change),
        Column("where", wide=True, wrap=True, cell=lambda group: group.where_words),
        Column("since", wide=True, cell=_since),
        Column("due to", wide=True, cell=lambda group: group.due_to),
        Column("evidence", wide=True, cell=_evidence),
        Column("why", wide=True, wrap=True, cell=lambda group: _why(group, cause_of[group.key])),
    )
    rows = markup.rows_of(columns, groups, lambda group: group is selected)
    return markup.table("what is worse now", columns, rows)


def title(group: RegressionGroup) -> Html:
    """What the details are of."""
    return markup.join((markup.code(group.subject), _change_words(group)))


def caption(group: RegressionGroup) -> str:
    """How many rows and what else moved with the first metric."""
    rows = f"{len(group.regressions)} row{'s' * (len(group.regressions) != 1)}"
    others = f"; with it {', '.join(group.metrics[1:])}" if len(group.metrics) > 1 else ""
    return f"{rows} {group.where_words}{others}"


def lines(
    groups: Sequence[RegressionGroup],
    family: str | None,
    name: str = "listed and not counted",
    closing: Sequence[object] = (),
    *,
    is_counted: bool = False,
) -> Html:
    """A line a group, those that are not counted without colour; `closing` is what ends the table."""
    has_several_families = len({group.family for group in groups}) > 1
    columns = (
        Column("version", cut=1, cell=lambda group: _link(group, family, has_several_families)),
        Column("change", cell=_change if is_counted else _change_words),
        Column("where", wide=True, wrap=True, cell=lambda group: group.where_words),
        Column("", wrap=True, cell=lambda group: markup.muted(_beside(group))),
    )
    rows = [*markup.rows_of(columns, groups), *map(markup.closing_row, closing)]
    return markup.table(name, columns, rows)


def acknowledged_line(group: RegressionGroup) -> Html:
    """What somebody let pass, until when, why and who."""
    acknowledgement = group.lead.acknowledged
    assert acknowledgement is not None, "a group is of acknowledged rows or of none"
    author = f"by {acknowledgement.who or 'somebody'}, {formatting.timestamp(acknowledgement.created)}"
    words = (
        markup.code(group.subject),
        _change_words(group),
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


def _link(group: RegressionGroup, family: str | None, with_family: bool) -> Html:
    return markup.link(addresses.regressions(family, group.key), _name(group, with_family))


def _since(group: RegressionGroup) -> Html:
    return markup.tag("span", f"{group.since.created:%Y-%m-%d}", title=group.since.run_id)


def _evidence(group: RegressionGroup) -> Html:
    return markup.join(markup.evidence_badge(kind.value) for kind in group.evidence)


def _change_words(group: RegressionGroup) -> str:
    """The first metric and by how much it moved."""
    return f"{group.metrics[0]} {group.size_words}".strip()


def _name(group: RegressionGroup, with_family: bool) -> Html:
    if len(group.versions) > 1:
        return markup.escaped(group.subject if with_family else f"{len(group.versions)} versions")
    name = group.subject if with_family else group.versions[0]
    return markup.cut_name(name, group.subject)


def _change(group: RegressionGroup) -> Html:
    if group.lead.became_wrong:
        return markup.status_tag("wrong")
    return markup.verdict(Verdict.WORSE, _change_words(group), group.lead.how_sure)


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
    return f"due to {group.due_to}, {since}" if group.due_to else since
