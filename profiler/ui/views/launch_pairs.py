"""A comparison as markup: which sides, whether they may be compared, the verdict, every pair."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from profiler.compare import CORRECTNESS, Comparison, MetricChange, PairComparison
from profiler.evidence import NCU_DURATION, Evidence, Launch, formatting
from profiler.statistics import Verdict
from profiler.store import VersionInfo
from profiler.ui import addresses, markup
from profiler.ui.charts import duration_ticks, style
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import metric_changes

TOO_FEW = (
    "Nothing to compare yet. Import two reports:",
    "Only one version so far: there is nothing to hold it against. Import another:",
)
PLACES = {Evidence.MEASURED: "GPU", Evidence.STATIC: "architecture", Evidence.MODELLED: "model"}
FACTS = {
    Evidence.STATIC: "static: from the compiler and the machine code, exact",
    Evidence.MODELLED: "modelled: a run on the CPU, conflicts by the model of the banks",
}
OPCODES = {
    Evidence.MEASURED: "warp instructions, largest change first",
    Evidence.STATIC: "static: places in the code, not how often they run; largest change first",
}
SHOWN_FACTS = ("static_registers", "static_shared", "static_occupancy", "modelled_error")  # on every place
ELSEWHERE = "what is judged and the chief facts, wherever both were examined"
PAIRS_SHOWN = 25  # the longest; a filter reaches the others
_DURATIONS = (
    Column("A", right=True),
    Column("B", right=True),
    Column("change", right=True),
    Column("verdict"),
)


def head(
    view: addresses.Diff,
    versions: Sequence[VersionInfo],
    comparison: Comparison | None,
    pair: PairComparison | None,
) -> Html:
    """The title that says which side is which, once for the whole page, and where the reader is."""
    left, right = (markup.muted(markup.code(side)) for side in "AB")
    a, b = (_titled(name) for name in (view.a, view.b))
    title = markup.join((left, a, "→", right, b))
    families = {addresses.parts(name)[0].rpartition("/")[0] for name in (view.a, view.b)} - {""}
    context: list[object] = [" and ".join(sorted(families))]
    if pair:
        context.append(pair.kernel)
    if comparison:
        sides = metric_changes.sides(comparison)
        gpus = [side.gpu or ("" if side.evidence is Evidence.MODELLED else "unknown GPU") for side in sides]
        context += [
            " and ".join(dict.fromkeys(filter(None, gpus))),
            markup.evidence_badge(sides[0].evidence.value),
        ]
    words = markup.join(context, " · ")
    return markup.page_head(title, markup.join((words, view.links(versions))))


def tab(view: addresses.Diff) -> str:
    """The two sides in few words, for the browser's tab."""
    a, b = (addresses.parts(name)[0].rpartition("/")[2] for name in (view.a, view.b))
    return f"{a} → {b}"


def _titled(name: str) -> Html:
    """A side without its family; of a version as one run has it, when that was."""
    version, run_id = addresses.parts(name)
    shown = markup.code(version.rpartition("/")[2])
    return (
        markup.join((shown, markup.tag("small", run_id.partition("-")[0], "m", run_id))) if run_id else shown
    )


def comparable(comparison: Comparison) -> Html:
    """The grey strip: whether the two may be compared, what is the same, what differs, what nobody knows."""
    unknown = comparison.unknown
    head = "Comparable: yes" if comparison.comparable else "Comparable: no"
    if comparison.comparable and unknown:
        head += f", with {len(unknown)} unknown" + ("s" if len(unknown) > 1 else "")
    both = [item.field for item in unknown if item.a is None and item.b is None]
    parts: list[object] = [head]
    for item in comparison.blocked_by:
        correct = item.field != CORRECTNESS
        parts.append(
            markup.tag("b", f"≠ {item.words}" if correct else "what is wrong has no speed and no verdict")
        )
    if comparison.same:
        parts.append(markup.muted("same: " + ", ".join(name for name, _ in comparison.same)))
    free = [item.words for item in comparison.differences if item.kind != "unknown" and not item.blocks]
    parts += [markup.muted(words) for words in free]
    if both:
        parts.append(f"? neither side says: {', '.join(both)}")
    parts += [f"? {item.words}" for item in unknown if item.field not in both]
    return markup.grey_strip(parts)


def standing(comparison: Comparison) -> list[Html]:
    """A line for each side whose results are wrong: it has no speed."""
    return [
        markup.note(
            markup.join(
                (
                    markup.status_tag("wrong"),
                    markup.tag("b", f"{name} {(side.version or side.label)}:"),
                    side.wrong,
                )
            )
        )
        for name, side in (("A", comparison.a), ("B", comparison.b))
        if side.wrong
    ]


def tally(comparison: Comparison, pair: PairComparison | None) -> Html:
    """The verdicts on facts, which have no duration to decide for all: how many are better and worse."""
    if pair is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), "no kernel of A has a partner in B")
    if not comparison.comparable:
        wrong = comparison.a.wrong or comparison.b.wrong
        shown = markup.status_tag("wrong") if wrong else markup.verdict(Verdict.NOT_COMPARABLE)
        return markup.big_verdict((shown,), "no verdict; the numbers are below")
    words = [change for change in pair.metrics if change.judged]
    found: list[object] = []
    names = []
    for word in (verdict for verdict in Verdict if verdict.traits.moved):
        labels = [change.label for change in words if change.verdict is word]
        if labels:
            found.append(markup.verdict(word, str(len(labels)) if len(labels) > 1 else ""))
            names += labels
    if not found:
        changed = sum(change.verdict is Verdict.CHANGED for change in pair.metrics)
        if changed:
            caption = f"{changed} facts that nobody judges; nothing judged moved"
            return markup.big_verdict((markup.verdict(Verdict.CHANGED),), caption)
        return markup.big_verdict((markup.verdict(Verdict.SAME),), "nothing moved")
    return markup.big_verdict(found, ", ".join(names))


def judged(comparisons: Mapping[tuple[str, str], Comparison], view: addresses.Diff) -> Html:
    """The judged metrics that are anywhere above 0, and the chief facts: a row a place, a column a metric."""
    pairs = {place: (one, choose(one, view.launch)) for place, one in comparisons.items()}
    concepts: dict[str, str] = {}
    for _, pair in pairs.values():
        for change in pair.metrics if pair else ():
            if change.concept in SHOWN_FACTS or (change.judged and (change.a.number or change.b.number)):
                concepts.setdefault(change.concept, change.label)
    rows = []
    for (workload, gpu), (_, pair) in pairs.items():
        if pair is None:
            continue
        by_concept = {change.concept: change for change in pair.metrics}
        address = replace(view, workload=workload, gpu=gpu, launch=None).href
        cells = [_moved(by_concept[concept]) for concept in concepts]
        here = (workload, gpu) == (view.workload, view.gpu)
        words = " · ".join(filter(None, (workload, gpu)))
        rows.append(Row((markup.link(address, words), *cells), selected=here))
    columns = (Column("workload"), *(Column(label) for label in concepts.values()))
    return markup.table("the same pair elsewhere", columns, rows)


def _moved(change: MetricChange) -> Html:
    a, b = (
        metric_changes.short(v._replace(unit="") if formatting.is_long_unit(v.unit) else v)
        for v in (change.a, change.b)
    )
    if change.a == change.b:
        return markup.join((a, markup.verdict(change.verdict)))
    return markup.join((a, markup.muted("→"), b, markup.verdict(change.verdict, reason=change.reason)))


def verdict(pair: PairComparison | None) -> Html:
    """The one big verdict, of ncu's duration, with how sure it is."""
    if pair is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), "no launch of A has a partner in B")
    change = pair.headline
    if change is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), "metrics.txt declares no duration")
    sure = "unreplicated: one launch a side" if change.unreplicated else change.reason
    return markup.big_verdict((markup.verdict(change.verdict), formatting.change(change.a, change.b)), sure)


def second_verdict(comparison: Comparison, pair: PairComparison | None) -> Html:
    """The verdict of ncu's duration where that of the calls stands above it."""
    change = pair.headline if pair else None
    if change is None:
        return markup.note(unpaired(comparison))
    word = markup.verdict(change.verdict, formatting.change(change.a, change.b), change.reason)
    sure = "unreplicated: one launch a side" if change.unreplicated else change.reason
    return markup.paragraph(markup.join((word, markup.muted(sure))))


def unpaired(comparison: Comparison) -> Html:
    """Why there is no pair of launches: none has a partner, or nobody profiled a side."""
    lacking = [
        (name, side)
        for name, side in (("A", comparison.a), ("B", comparison.b))
        if not side.launches and side.evidence is Evidence.MEASURED
    ]
    if not lacking:
        return markup.escaped("No launch of A has a partner in B.")
    names = " and ".join(name for name, _ in lacking)
    versions = list(dict.fromkeys(side.version for _, side in lacking if side.version))
    words = ["profiler", "collect", *versions, "--full", ",".join(versions)] if versions else []
    return markup.join(
        (f"no counters of {names}{': ' if words else '.'}", markup.code(shlex.join(words)) if words else "")
    )


def duration_chart(pair: PairComparison | None) -> style.Figure | None:
    """Both durations in one unit; None where a side has none."""
    change = pair.headline if pair else None
    if change is None or change.a.number is None or change.b.number is None:
        return None
    scale = formatting.scale_for(change.a.unit, max(change.a.number, change.b.number))
    sides = [
        (name, value.number / scale.divisor, str(formatting.quantity(value, scale)))
        for name, value in (("A", change.a), ("B", change.b))
        if value.number is not None
    ]
    return duration_ticks.figure(sides, f"ncu duration, {scale.unit}")


def alt(pair: PairComparison | None) -> str:
    """The duration chart in words."""
    change = pair.headline if pair else None
    return (
        f"ncu duration: A {formatting.quantity(change.a)}, B {formatting.quantity(change.b)}"
        if change
        else ""
    )


def launches(comparison: Comparison, chosen: PairComparison | None, view: addresses.Diff) -> Html:
    """Every pair, longest first, then every launch without a partner; none is dropped in silence."""
    rows = []
    for pair in comparison.pairs:
        change = pair.headline
        a, b = (launch.values.value(NCU_DURATION) for launch in (pair.a, pair.b))
        address = replace(view, launch=pair.kernel).href
        name = markup.link(address, markup.cut_name(pair.kernel), title=pair.a.demangled)
        word = markup.verdict(pair.verdict, reason=change.reason if change else "")
        cells = (name, metric_changes.short(a), metric_changes.short(b), formatting.change(a, b), word)
        rows.append(Row(cells, selected=chosen is not None and pair.kernel == chosen.kernel))
    for side, alone in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        rows += [_alone(comparison.label(launch), launch, side) for launch in alone]
    for group in comparison.ambiguous:
        words = markup.tag("span", markup.verdict(Verdict.UNCLEAR, "ambiguous"), title=group.why)
        counts = (f"{len(group.a)} launches", f"{len(group.b)} launches")
        rows.append(Row((markup.cut_name(group.base_name), *counts, "", words)))
    return markup.table("all launches of both", (Column("kernel", cut=3), *_DURATIONS), rows)


def elsewhere(comparisons: Mapping[tuple[str, str], Comparison], view: addresses.Diff) -> Html:
    """The same pair on every workload and GPU, the chosen launch where it ran, else the longest."""
    rows = []
    several = len({gpu for _, gpu in comparisons}) > 1
    for (workload, gpu), comparison in comparisons.items():
        pair = choose(comparison, view.launch)
        if pair is None:
            continue
        a, b = (launch.values.value(NCU_DURATION) for launch in (pair.a, pair.b))
        address = replace(view, workload=workload, gpu=gpu, launch=pair.kernel).href
        words = (workload or "no workload named") + (f" · {gpu or 'unknown GPU'}" if several else "")
        word = markup.verdict(pair.verdict, reason=pair.headline.reason if pair.headline else "")
        values = (metric_changes.short(a), metric_changes.short(b), formatting.change(a, b))
        here = (workload, gpu) == (view.workload, view.gpu)
        rows.append(Row((markup.link(address, words, title=pair.kernel), *values, word), selected=here))
    return markup.table("the same pair elsewhere", (Column("workload", cut=3), *_DURATIONS), rows)


def launches_caption(comparison: Comparison) -> str:
    """How many launches found their partner."""
    matched = len(comparison.pairs) + comparison.hidden_pairs
    text = f"matched {matched} of {len(comparison.a.launches)} in A and {len(comparison.b.launches)} in B"
    return text + (f"; the {len(comparison.pairs)} longest shown" if comparison.hidden_pairs else "")


def launches_notes(comparison: Comparison) -> list[Html]:
    """Why some verdicts are unclear and some launches have no partner, each reason once."""
    reasons = [
        f"{pair.verdict.words}: {pair.headline.reason}"
        for pair in comparison.pairs
        if pair.headline and not pair.verdict.traits.decided and pair.headline.reason
        if pair.verdict is not Verdict.NOT_COMPARABLE  # its reason stands above the pairs
    ]
    reasons += [f"{group.base_name}: ambiguous, {group.why}" for group in comparison.ambiguous]
    return [markup.note(reason) for reason in dict.fromkeys(reasons)]


def choose(comparison: Comparison, kernel: str | None) -> PairComparison | None:
    """The pair that the address names; else the longest with a duration on both sides; else any."""
    pairs = sorted(comparison.pairs, key=lambda pair: duration_chart(pair) is None)
    named = (pair for pair in pairs if pair.kernel == kernel)
    return next(named, pairs[0] if pairs else None)


def _alone(label: str, launch: Launch, side: str) -> Row:
    duration = metric_changes.short(launch.values.value(NCU_DURATION))
    cells = (duration, "–") if side == "A" else ("–", duration)
    return Row((markup.code(label, title=launch.demangled), *cells, "", markup.muted(f"only in {side}")))
