"""The lineage as a table whose first column is its graph: a row of fixed height a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profiler.catalog import Claim, Version
from profiler.evidence import Evidence, Launch, State, Value, formatting
from profiler.history import Lineage, Speedup, VersionLatency, VersionStatus
from profiler.history.lineage import BASELINE, GOOD, PLANNED
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track, lineage_graph
from profiler.ui.markup import Column, Html, Row

_KINDS = (Evidence.STATIC, Evidence.MODELLED, Evidence.MEASURED)
_NANOSECONDS = "ns"


class Choice:
    """Which facts of each version the table shows: architecture and size, workload on the CPU, GPU."""

    def __init__(self, arch: str = "", size: str = "", workload: str = "", gpu: str = "") -> None:
        self.arch, self.size, self.workload, self.gpu = arch, size, workload, gpu

    def static(self, one: VersionStatus) -> Launch | None:
        """The compiler's facts of a version."""
        return one.static.get((self.arch, self.size))

    def modelled(self, one: VersionStatus) -> Launch | None:
        """What the CPU saw of a version."""
        return one.modelled.get(self.workload)

    def attained(self, one: VersionStatus | None) -> VersionLatency | None:
        """The median latency of a version that has a speed, and its floor."""
        return None if one is None or one.is_wrong else one.latencies.get((self.workload, self.gpu))

    def latency(self, one: VersionStatus | None) -> float | None:
        """The median latency of a version, of one that has a speed."""
        own = self.attained(one)
        return own.ns if own else None


def context(lineage: Lineage) -> Html:
    """Which run the catalogue comes from, and how the versions stand."""
    counts = (
        (sum(one.state == GOOD for one in lineage.statuses), "correct"),
        (len(lineage.wrong), "wrong or rejected"),
        (sum(one.state == PLANNED for one in lineage.statuses), "planned"),
    )
    words = " · ".join(f"{count} {word}" for count, word in counts if count)
    run = markup.link(addresses.run(lineage.snapshot.run_id), "run", title=lineage.snapshot.run_id)
    made = f"catalogue of {formatting.timestamp(lineage.snapshot.created)},"
    return markup.join((f"{words} · {made}", run))


def caption(lineage: Lineage, choice: Choice) -> Html:
    """What stands where, and of what the numbers are."""
    best = lineage.best(choice.workload, choice.gpu)
    measured = best is not None and choice.latency(best) is not None
    thick = "the best version" if measured else "the furthest correct version, for nothing was measured yet"
    wide = f"thick line: path to {thick}"
    parts = []
    if choice.arch:
        words = f"{choice.arch}, {choice.size}: one kernel, from its machine code"
        parts.append(markup.join((markup.evidence_badge("static"), words)))
    if any(choice.modelled(one) for one in lineage.statuses):
        words = f"{choice.workload}: run on the CPU, conflicts by the model of the banks"
        parts.append(markup.join((markup.evidence_badge("modelled"), words)))
    modes = dict.fromkeys(own.mode for one in lineage.statuses if (own := choice.attained(one)))
    if modes:
        words = f"{choice.workload} on {choice.gpu}: median latency, {', '.join(modes)}"
        parts.append(markup.join((markup.evidence_badge("measured"), words)))
    parts.append(markup.escaped(wide))
    return markup.note(markup.join(parts, " · "))


def table(lineage: Lineage, choice: Choice, speed_ups: Mapping[str, Speedup] | None = None) -> Html:
    """Every version, parents before children; baselines and what the catalogue does not name last."""
    shown = [one for one in lineage.statuses if one.state != BASELINE]
    best = lineage.best(choice.workload, choice.gpu)
    scale = _scale(lineage, choice)
    path = lineage.ancestry(best)
    place = {one.version.id: index for index, one in enumerate(shown)}
    nodes = [_node(one, place, path) for one in shown]
    rows = [
        Row((picture, *_cells(one, lineage, choice, scale, speed_ups or {})))
        for one, picture in zip(shown, lineage_graph.row_pictures(nodes), strict=True)
    ]
    baselines = [one for one in lineage.statuses if one.state == BASELINE]
    if baselines:
        rows.append(
            markup.group_row(
                markup.join(
                    ("Baselines", markup.tag("span", "kernels of others, for the same problem", "cap"))
                )
            )
        )
        rows += [Row((Html(""), *_cells(one, lineage, choice, scale, speed_ups or {}))) for one in baselines]
    if lineage.uncatalogued:
        names = ", ".join(lineage.uncatalogued)
        rows.append(
            markup.closing_row(markup.muted(f"not in the catalogue, and so in no place here: {names}"))
        )
    gpus = " and ".join(
        dict.fromkeys(
            claim.gpu for one in lineage.statuses for claim in one.version.claims if claim.kind != "goal"
        )
    )
    sources = ", ".join(
        dict.fromkeys(claim.source for one in lineage.statuses for claim in one.version.claims)
    )
    claimed = markup.tag(
        "span",
        f"claimed, {_short_gpu(gpus)}" if gpus else "claimed",
        title=f"history, not measured here: {sources}",
    )
    columns: tuple[Column, ...] = (
        Column(""),
        Column("↳ idea (edge) and version", cut=2),
        Column("state", cut=1),
        Column("registers", right=True),
        Column("spills", right=True, wide=True),
        Column("occupancy", right=True, wide=True),
        Column("conflicts", right=True),
        Column("max error", right=True, wide=True),
        Column("latency", right=True, wide=True),
        *((Column(_track_head(lineage, choice), wide=True),) if scale else ()),
        Column(claimed, right=True, wide=True),
        Column("diff with", wide=True),
        Column("evidence", wide=True),
    )
    return Html(markup.table("lineage", columns, rows).replace('class="k k-box"', 'class="k k-box lin"', 1))


def _node(one: VersionStatus, place: dict[str, int], path: frozenset[str]) -> lineage_graph.Node:
    look = "wrong" if one.is_wrong else "planned" if one.state == PLANNED else "good"
    on_path = one.version.id in path
    if look == "good" and on_path:
        look = "best"
    parent = one.version.parent
    return lineage_graph.Node(None if parent is None else place[parent], look, on_path)


def _cells(
    one: VersionStatus,
    lineage: Lineage,
    choice: Choice,
    scale: latency_track.Scale | None,
    speed_ups: Mapping[str, Speedup],
) -> tuple[object, ...]:
    static, modelled = choice.static(one), choice.modelled(one)
    return (
        _name(one.version),
        _state(one, static),
        _number(static, "static__registers", bare=True),
        _number(static, "static__spill_bytes"),
        _number(static, "static__occupancy_pct", hint="static__limiter"),
        _number(modelled, "modelled__bank_conflicts"),
        _number(modelled, "modelled__max_abs_error"),
        _latency(one, choice),
        *((_track(one, lineage, choice, scale),) if scale else ()),
        _claimed(one.version, choice),
        _against(one, lineage, choice, speed_ups.get(one.version.id)),
        markup.join(markup.evidence_badge(kind, kind in one.evidence) for kind in _KINDS),
    )


def _name(version: Version) -> Html:
    idea = version.technique if version.parent is None else f"↳ {version.technique}"
    lines = (markup.tag("span", idea, "m", idea), markup.cut_name(version.id, " ".join(version.flags)))
    return _two(*lines)


def _state(one: VersionStatus, static: Launch | None) -> Html:
    if one.state == BASELINE:
        return markup.muted("baseline")
    if one.state == PLANNED:
        return _two(markup.muted("planned"), markup.tag("span", one.reason, "m", one.reason))
    words = [one.reason] if one.reason else []
    words += [one.note] if one.note else []
    budget = static.values.value("static__over_budget").text if static else None
    if one.state == GOOD and budget not in (None, "nothing"):
        words.append(f"over its budget: {budget}")
    reason = "; ".join(words)
    head = markup.status_tag(one.state) if one.is_wrong else markup.muted(one.state)
    return _two(head, markup.tag("span", reason, "m", reason)) if reason else head


def _number(launch: Launch | None, name: str, *, bare: bool = False, hint: str = "") -> Html:
    if launch is None:
        return markup.muted("–")
    value = launch.values.value(name)
    if value.state is not State.PRESENT:
        return markup.state(value.state.words)
    shown = markup.value(value._replace(unit="") if bare else value)
    words = launch.values.value(hint).text if hint else None
    return markup.tag("span", shown, title=f"limited by {words}") if words else shown


def _latency(one: VersionStatus, choice: Choice) -> Html:
    """A measured median and its gap; what is wrong has none, and what nobody measured says so."""
    own = choice.attained(one)
    if own is not None:
        median = markup.tag("span", markup.value(Value(own.ns, _NANOSECONDS)), title=own.mode)
        if own.times_bound is None:
            return median
        return _two(
            median, markup.join((latency_track.times_bound(own), markup.tag("span", "of floor", "u")))
        )
    if one.is_wrong:
        return markup.muted("–")
    return markup.state("not measured")


def _scale(lineage: Lineage, choice: Choice) -> latency_track.Scale | None:
    """The one line that all latencies lie on, from the lowest floor; None where no run computed a floor."""
    known = [own for one in lineage.statuses if (own := choice.attained(one))]
    floors = [own.bound_ns for own in known if own.bound_ns]
    return latency_track.scale_of([*floors, *(own.ns for own in known)]) if floors else None


def _track_head(lineage: Lineage, choice: Choice) -> Html:
    """What the marks are: the floor, and the best baseline where one was timed."""
    floors = [own.bound_ns for one in lineage.statuses if (own := choice.attained(one)) and own.bound_ns]
    words = [f"┃ floor {latency_track.nanoseconds(min(floors))}"]
    base = lineage.best_baseline(choice.workload, choice.gpu)
    if base is not None:
        best_ns = base.latencies[choice.workload, choice.gpu].ns
        words.append(f"▾ {base.version.id} {latency_track.nanoseconds(best_ns)}")
    return markup.escaped(" ".join([*words, "log"]))


def _track(one: VersionStatus, lineage: Lineage, choice: Choice, scale: latency_track.Scale) -> Html:
    own, base = choice.attained(one), lineage.best_baseline(choice.workload, choice.gpu)
    if own is None:
        return Html("")
    beside = None if base is None or base is one else base.latencies[choice.workload, choice.gpu].ns
    words = f"{latency_track.nanoseconds(own.ns)}; {latency_track.bound_words(own)}"
    return latency_track.track(scale, own.ns, own.bound_ns, beside, words)


def _claimed(version: Version, choice: Choice) -> Html:
    """What others say it took, on the workload that most of them speak of."""
    claims = [claim for claim in version.claims if claim.fact == "latency"]
    if not claims:
        return markup.muted("–")
    first = claims[0]
    every = "; ".join(f"{claim.fact} {_range(claim)}{_about(claim)}" for claim in version.claims)
    words: list[object] = [markup.muted(_range(first))]
    small = "goal" if first.kind == "goal" else first.workload or "workload not said"
    return markup.tag("span", _two(markup.join(words), markup.tag("span", small, "u")), title=every)


def _range(claim: Claim) -> str:
    low = str(formatting.quantity(Value(claim.value, claim.unit)))
    if claim.high is None:
        return low
    scale = formatting.scale_for(claim.unit, claim.high)
    first = formatting.quantity(Value(claim.value, claim.unit), scale).number
    return f"{first}–{formatting.quantity(Value(claim.high, claim.unit), scale)}"


def _about(claim: Claim) -> str:
    parts = (claim.workload, claim.gpu, claim.source, "goal" if claim.kind == "goal" else "", claim.note)
    return f" ({', '.join(part for part in parts if part)})"


def _against(one: VersionStatus, lineage: Lineage, choice: Choice, timed: Speedup | None) -> Html:
    """The way to the diff with the nearest correct ancestor, and how much faster it is, with the verdict."""
    if one.correct_ancestor is None:
        return markup.muted("first" if one.state != BASELINE else "–")
    if not one.evidence:
        return markup.muted("–")
    family = lineage.snapshot.catalog.family
    kind = Evidence.STATIC if one.static else sorted(one.evidence)[0]
    view = addresses.Diff(
        f"{family}/{one.correct_ancestor.id}",
        f"{family}/{one.version.id}",
        choice.size if kind is Evidence.STATIC else choice.workload,
        choice.arch if kind is Evidence.STATIC else None,
        evidence=kind.value,
    )
    if timed is not None:
        view = replace(view, workload=timed.workload, gpu=choice.gpu, evidence=Evidence.MEASURED.value)
    link = markup.link(view.href, markup.code(one.correct_ancestor.id))
    before, now = choice.latency(lineage.by_id[one.correct_ancestor.id]), choice.latency(one)
    hint = ""
    small: str = f"{formatting.TIMES}{formatting.digits(before / now)}" if before and now else ""
    if timed is not None:
        small, hint = _speed_up(timed), timed.compared.decision.reason
    if one.correct_ancestor.id != one.version.parent:
        parent = lineage.by_id[one.version.parent or ""]
        hint = f"its parent {parent.version.id} is {parent.state}"
        small = markup.join((small, f"parent {parent.state}"))
    return _two(link, markup.tag("span", small, "u", hint)) if small else link


def _speed_up(timed: Speedup) -> Html:
    """The verdict and the speed-up with its interval; it is of the rounds of one run, or of the floor."""
    words = markup.verdict(timed.compared.verdict, f"{formatting.TIMES}{formatting.digits(timed.times)}")
    if timed.interval is None:
        return words
    low, high = (formatting.digits(end) for end in timed.interval)
    return markup.join((words, f"({low}–{high})"))


def _short_gpu(name: str) -> str:
    return name.removeprefix("NVIDIA ")


def _two(first: object, second: object) -> Html:
    """Two lines of one cell, both cut where they would not fit."""
    return Html(f'<span class="two">{markup.escaped(first)}<br>{markup.escaped(second)}</span>')
