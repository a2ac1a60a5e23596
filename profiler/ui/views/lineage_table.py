"""The lineage as a table whose first column is its graph: one row of fixed height per version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profiler.catalog.version import Claim, Version
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.values import Evidence, State, Value
from profiler.history.lineage import BASELINE, GOOD, PLANNED, Lineage, VersionStatus
from profiler.history.speedups import Speedup
from profiler.history.version_latency import VersionLatency
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.statistics.facts import excess_over_budget
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track, lineage_graph
from profiler.ui.markup import Column, Html, Row

_EVIDENCE = (Evidence.STATIC, Evidence.MODELLED, Evidence.MEASURED)


@dataclass(frozen=True)
class FactChoice:
    """Which facts of each version a table shows; "" for none."""

    arch: str = ""
    size: str = ""  # of the static facts: `head dim 64`
    workload: str = ""  # that was timed
    gpu: str = ""
    on_cpu: str = ""  # the workload of the facts of the CPU; "": the one that was timed

    @staticmethod
    def of_most(lineage: Lineage) -> FactChoice:
        """Those that most versions have."""
        gpu, workload = lineage.first_timed_cell or ("", "")
        return FactChoice(
            lineage.architectures[-1] if lineage.architectures else "",
            next(iter(lineage.static_workloads), ""),
            workload,
            gpu,
            next(iter(lineage.modelled_workloads), ""),
        )

    @property
    def modelled_on(self) -> str:
        """The workload of the facts of the CPU."""
        return self.on_cpu or self.workload

    def static(self, status: VersionStatus, fact: str) -> Value | None:
        """A fact of the compiler; None of a version that it did not see."""
        return _value(status.static.get((self.arch, self.size)), f"static__{fact}")

    def modelled(self, status: VersionStatus, fact: str) -> Value | None:
        """What the CPU saw of a version; None of one that it did not run."""
        return _value(status.modelled.get(self.modelled_on), f"modelled__{fact}")

    def latency(self, status: VersionStatus | None) -> VersionLatency | None:
        """The median latency of a version that has a speed, and its lower bound."""
        if status is None or status.is_wrong:
            return None
        return status.latencies.get((self.workload, self.gpu))

    def latencies(self, lineage: Lineage) -> list[VersionLatency]:
        """Those of all versions that have one."""
        return [latency for status in lineage.statuses if (latency := self.latency(status))]


def context(lineage: Lineage) -> Html:
    """Which run the catalogue comes from, and how the versions stand."""
    counts = (
        (sum(status.state == GOOD for status in lineage.statuses), "correct"),
        (len(lineage.wrong), "wrong or rejected"),
        (sum(status.state == PLANNED for status in lineage.statuses), "planned"),
    )
    words = " · ".join(f"{count} {word}" for count, word in counts if count)
    snapshot = lineage.snapshot
    run = markup.link(addresses.run(snapshot.run_id), "run", title=snapshot.run_id)
    return markup.join((f"{words} · catalogue of {formatting.timestamp(snapshot.created)},", run))


def caption(lineage: Lineage, choice: FactChoice) -> Html:
    """Which kernel, workload and GPU the numbers of each kind of evidence belong to."""
    parts = []
    if choice.arch:
        words = f"{choice.arch}, {choice.size}: one kernel, from its machine code"
        parts.append(markup.join((markup.evidence_badge("static"), words)))
    if any(choice.modelled_on in status.modelled for status in lineage.statuses):
        words = f"{choice.modelled_on}: run on the CPU, conflicts by the model of the banks"
        parts.append(markup.join((markup.evidence_badge("modelled"), words)))
    modes = dict.fromkeys(latency.mode for latency in choice.latencies(lineage))
    if modes:
        words = f"{choice.workload} on {choice.gpu}: median latency, {', '.join(modes)}"
        parts.append(markup.join((markup.evidence_badge("measured"), words)))
    best = lineage.best(choice.workload, choice.gpu)
    target = "the correct version with the most ancestors, as nothing was measured yet"
    if choice.latency(best) is not None:
        target = "the best version"
    parts.append(markup.escaped(f"thick line: path to {target}"))
    return markup.note(markup.join(parts, " · "))


def modelled_caption(stored: StoredPredictions, workload: str, gpu: str) -> Html:
    """What the modelled times are of, and what their ranges mean."""
    words = f"time of {workload} on {gpu}, from the machine code run on the CPU. {stored.note}"
    return markup.note(markup.join((markup.evidence_badge("modelled"), words)))


def table(
    lineage: Lineage,
    choice: FactChoice,
    speedups: Mapping[str, Speedup] | None = None,
    predicted: Mapping[str, StoredPrediction] | None = None,
    *,
    is_measured_too: bool = False,
) -> Html:
    """Every version, parents before children; baselines and what the catalogue does not name last.

    predicted: modelled times by version, of one workload and GPU; a column where there are any.
    is_measured_too: these are the workload and GPU that the latencies are of, which they are held against.
    """
    scale = _scale(choice.latencies(lineage))
    # Beside modelled times a column that says "not measured" in each row takes the room of the ideas.
    is_timed = bool(choice.latencies(lineage)) or not predicted

    def cells(status: VersionStatus) -> tuple[object, ...]:
        speedup = (speedups or {}).get(status.version.id)
        latency = choice.latency(status) if is_measured_too else None
        times = [_modelled_time(status, predicted, latency)] if predicted else []
        times += [_latency(status, choice)] if is_timed else []
        own = (predicted or {}).get(status.version.id)
        return _cells(status, lineage, choice, scale, speedup, times, own)

    own = [status for status in lineage.statuses if status.state != BASELINE]
    pictures = lineage_graph.row_pictures(_nodes(own, lineage, choice))
    rows = [Row((picture, *cells(status))) for status, picture in zip(own, pictures, strict=True)]
    baselines = [status for status in lineage.statuses if status.state == BASELINE]
    if baselines:
        hint = markup.tag("span", "external baselines for the same problem", "cap")
        rows.append(markup.group_row(markup.join(("Baselines", hint))))
        rows += [Row((Html(""), *cells(status))) for status in baselines]
    if lineage.uncatalogued:
        words = f"not in the catalogue, so not shown here: {', '.join(lineage.uncatalogued)}"
        rows.append(markup.closing_row(markup.muted(words)))
    columns = (
        Column(""),
        Column("↳ idea (edge) and version", cut=2),
        Column("latency, diff", phone=True),
        Column("state", cut=1, wide=True),
        Column("registers", right=True, wide=True),
        Column("spills", right=True, wide=True),
        Column("occupancy", right=True, wide=True),
        Column("conflicts", right=True, wide=True),
        Column("max error", right=True, wide=True),
        *((Column("modelled time", right=True, wide=True),) if predicted else ()),
        *((Column("latency", right=True, wide=True),) if is_timed else ()),
        *((Column(_track_head(lineage, choice), wide=True),) if scale else ()),
        Column(_claimed_head(lineage), right=True, wide=True),
        Column("diff with", wide=True),
        Column("evidence", wide=True),
    )
    return markup.tickable(markup.table("lineage", columns, rows, css="lin" if is_timed else "lin ideas"))


def _nodes(
    statuses: Sequence[VersionStatus], lineage: Lineage, choice: FactChoice
) -> list[lineage_graph.VersionNode]:
    """The versions as nodes of the graph, in the table's order."""
    index_of = {status.version.id: index for index, status in enumerate(statuses)}
    # Drawn thick: which steps led to the version that one would use.
    path_to_best = lineage.ancestry(lineage.best(choice.workload, choice.gpu))
    nodes = []
    for status in statuses:
        on_path = status.version.id in path_to_best
        look = "best" if on_path else "good"
        if status.is_wrong:
            look = "wrong"
        elif status.state == PLANNED:
            look = "planned"
        parent = status.version.parent
        nodes.append(lineage_graph.VersionNode(None if parent is None else index_of[parent], look, on_path))
    return nodes


def _cells(
    status: VersionStatus,
    lineage: Lineage,
    choice: FactChoice,
    scale: latency_track.TrackScale | None,
    speedup: Speedup | None,
    times: Sequence[Html],
    predicted: StoredPrediction | None,
) -> tuple[object, ...]:
    against = _against(status, lineage, choice, speedup)
    return (
        _name(status.version, f"{lineage.family}/{status.version.id}"),
        _two_lines(_short_state(status, choice, predicted), against.line),
        _state(status, choice.static(status, "over_budget")),
        _fact(choice.static(status, "registers"), without_unit=True),
        _fact(choice.static(status, "spill_bytes")),
        _fact(choice.static(status, "occupancy_pct"), choice.static(status, "limiter")),
        _fact(choice.modelled(status, "bank_conflicts")),
        _fact(choice.modelled(status, "max_abs_error")),
        *times,
        *((_track(status, lineage, choice, scale),) if scale else ()),
        _claimed(status.version),
        against.cell,
        markup.join(markup.evidence_badge(kind, kind in status.evidence) for kind in _EVIDENCE),
    )


def _name(version: Version, full_name: str) -> Html:
    idea = version.technique if version.parent is None else f"↳ {version.technique}"
    name = markup.cut_name(version.id, " ".join(version.flags))
    named = markup.join((markup.tick(full_name, version.id), name))
    return _two_lines(markup.tag("span", idea, "m", idea), named)


def _state(status: VersionStatus, over_budget: Value | None) -> Html:
    if status.state == BASELINE:
        return markup.muted("baseline")
    if status.state == PLANNED:
        return _two_lines(markup.muted("planned"), markup.tag("span", status.reason, "m", status.reason))
    words = [text for text in (status.reason, status.note) if text]
    excess = excess_over_budget(over_budget.text) if over_budget else ""
    # A budget is of no interest while a version is wrong.
    if status.state == GOOD and excess:
        words.append(f"over its budget: {excess}")
    reason = "; ".join(words)
    state = markup.status_tag(status.state) if status.is_wrong else markup.muted(status.state)
    return _two_lines(state, markup.tag("span", reason, "m", reason)) if reason else state


def _short_state(status: VersionStatus, choice: FactChoice, predicted: StoredPrediction | None) -> Html:
    """The latency, else the modelled time, or why there is neither, in one line."""
    if status.is_wrong:
        return markup.status_tag(status.state)
    latency = choice.latency(status)
    if latency is not None:
        return markup.value(Value(latency.ns, "ns"))
    if predicted is not None:
        return _short_modelled_time(predicted)
    return markup.muted(status.state) if status.state == PLANNED else markup.state("not measured")


def _value(launch: Launch | None, name: str) -> Value | None:
    return launch.values.value(name) if launch is not None else None


def _fact(value: Value | None, limiter: Value | None = None, *, without_unit: bool = False) -> Html:
    """A fact, with what limits it under the pointer."""
    if value is None:
        return markup.muted("–")
    if value.state is not State.PRESENT:
        return markup.state(value.state.words)
    number = markup.value(value._replace(unit="") if without_unit else value)
    limit = limiter.text if limiter else None
    return markup.tag("span", number, title=f"limited by {limit}") if limit else number


def _modelled_time(
    status: VersionStatus, predicted: Mapping[str, StoredPrediction], measured: VersionLatency | None
) -> Html:
    """The modelled time, and below it what it is of the measured one, else of the nearest ancestor's."""
    own = predicted.get(status.version.id)
    if own is None:
        return markup.muted("–")
    if own.time_ns is None:
        return modelled_time(own)
    number = markup.value(Value(own.time_ns, "ns"))
    title = range_words(own)
    if measured is not None and own.low_ns and own.high_ns:
        inside = own.low_ns <= measured.ns <= own.high_ns
        title += (
            f"; measured {latency_track.nanoseconds(measured.ns)}, {'in' if inside else 'outside'} the range"
        )
        ratio = f"{own.time_ns / measured.ns:.2f} {formatting.TIMES} measured"
        return markup.tag("span", _two_lines(number, markup.tag("span", ratio, "u")), title=title)
    ancestor = predicted.get(status.correct_ancestor.id) if status.correct_ancestor else None
    if ancestor is None or not ancestor.time_ns:
        return modelled_time(own)
    ratio = f"{own.time_ns / ancestor.time_ns:.2f} {formatting.TIMES} {ancestor.version}"
    return markup.tag("span", _two_lines(number, markup.tag("span", ratio, "u")), title=title)


def modelled_time(prediction: StoredPrediction) -> Html:
    """The modelled time, or that there is no model, with the range or the reason under the pointer."""
    if prediction.time_ns is None:
        return markup.tag("span", markup.state("no model"), title=prediction.no_model)
    return markup.tag("span", markup.value(Value(prediction.time_ns, "ns")), title=range_words(prediction))


def range_words(prediction: StoredPrediction) -> str:
    """Between what a modelled time lies, and what limits it."""
    low, high = (latency_track.nanoseconds(ns or 0.0) for ns in (prediction.low_ns, prediction.high_ns))
    return f"modelled, not measured: {low} to {high}; {limiter_words(prediction)}"


def _short_modelled_time(prediction: StoredPrediction) -> Html:
    """The modelled time and that it is one, or that there is no model."""
    words = markup.tag("span", "modelled", "u") if prediction.time_ns is not None else ""
    return markup.join((modelled_time(prediction), words))


def limiter_words(prediction: StoredPrediction) -> str:
    """What limits a launch, by the model."""
    if prediction.limiter not in prediction.utilisation:
        name, share = max(prediction.utilisation.items(), key=lambda item: item[1], default=("", 0.0))
        return f"{prediction.limiter}, busiest: {name} {100 * share:.0f} %"
    return (
        f"limited by {prediction.limiter}: {100 * prediction.limiter_saves:.0f} % less time if it were free"
    )


def _latency(status: VersionStatus, choice: FactChoice) -> Html:
    """The measured median and its bound; a dash for what is wrong, a state for what was not measured."""
    latency = choice.latency(status)
    if latency is None:
        return markup.muted("–") if status.is_wrong else markup.state("not measured")
    median = markup.tag("span", markup.value(Value(latency.ns, "ns")), title=latency.mode)
    if latency.times_bound is None:
        return median
    times = markup.join((latency_track.times_bound(latency), markup.tag("span", "lower bound", "u")))
    return _two_lines(median, times)


def _scale(latencies: Sequence[VersionLatency]) -> latency_track.TrackScale | None:
    """The one line that all latencies lie on, from the lowest bound; None where no run computed a bound."""
    bounds = [latency.bound_ns for latency in latencies if latency.bound_ns]
    return latency_track.scale_of([*bounds, *(latency.ns for latency in latencies)]) if bounds else None


def _track_head(lineage: Lineage, choice: FactChoice) -> Html:
    """What the marks are: the lower bound, and the best baseline where one was timed."""
    bounds = [latency.bound_ns for latency in choice.latencies(lineage) if latency.bound_ns]
    words = [f"┃ lower bound {latency_track.nanoseconds(min(bounds))}"]
    baseline = lineage.best_baseline(choice.workload, choice.gpu)
    if baseline is not None:
        ns = baseline.latencies[choice.workload, choice.gpu].ns
        words.append(f"▾ {baseline.version.id} {latency_track.nanoseconds(ns)}")
    return markup.escaped(" ".join([*words, "log"]))


def _track(
    status: VersionStatus, lineage: Lineage, choice: FactChoice, scale: latency_track.TrackScale
) -> Html:
    latency = choice.latency(status)
    if latency is None:
        return Html("")
    baseline = lineage.best_baseline(choice.workload, choice.gpu)
    baseline_ns = None
    if baseline is not None and baseline is not status:
        baseline_ns = baseline.latencies[choice.workload, choice.gpu].ns
    title = f"{latency_track.nanoseconds(latency.ns)}; {latency_track.bound_words(latency)}"
    return latency_track.track(scale, latency.ns, latency.bound_ns, baseline_ns, title)


def _claimed_head(lineage: Lineage) -> Html:
    """On which GPUs others timed, and where they say so."""
    claims = [claim for status in lineage.statuses for claim in status.version.claims]
    gpus = " and ".join(dict.fromkeys(claim.gpu for claim in claims if claim.kind != "goal"))
    sources = ", ".join(dict.fromkeys(claim.source for claim in claims))
    words = f"claimed, {gpus.removeprefix('NVIDIA ')}" if gpus else "claimed"
    return markup.tag("span", words, title=f"history, not measured here: {sources}")


def _claimed(version: Version) -> Html:
    """What others say it took, on the workload that most of them speak of."""
    latency = next((claim for claim in version.claims if claim.fact == "latency"), None)
    if latency is None:
        return markup.muted("–")
    workload = "goal" if latency.kind == "goal" else latency.workload or "workload not said"
    lines = _two_lines(markup.muted(claimed_range(latency)), markup.tag("span", workload, "u"))
    every_claim = "; ".join(
        f"{claim.fact} {claimed_range(claim)} ({_about_claim(claim)})" for claim in version.claims
    )
    return markup.tag("span", lines, title=every_claim)


def claimed_range(claim: Claim) -> str:
    """`6.9 µs`, or `6.9–7.2 µs`, both in the unit of the higher."""
    low = Value(claim.value, claim.unit)
    if claim.high is None:
        return str(formatting.quantity(low))
    scale = formatting.scale_for(claim.unit, claim.high)
    high = formatting.quantity(Value(claim.high, claim.unit), scale)
    return f"{formatting.quantity(low, scale).number}–{high}"


def _about_claim(claim: Claim) -> str:
    kind = "goal" if claim.kind == "goal" else ""
    return ", ".join(filter(None, (claim.workload, claim.gpu, claim.source, kind, claim.note)))


@dataclass(frozen=True)
class _Against:
    """How a version stands to the nearest correct ancestor, with the way to their diff."""

    cell: Html  # the ancestor, and the verdict and speed-up below it
    line: Html  # one line for a phone: the verdict and speed-up, else the ancestor


def _against(
    status: VersionStatus, lineage: Lineage, choice: FactChoice, speedup: Speedup | None
) -> _Against:
    ancestor = status.correct_ancestor
    if ancestor is None or not status.evidence:
        is_first = ancestor is None and status.state != BASELINE
        dash = markup.muted("first" if is_first else "–")
        return _Against(dash, dash if is_first else Html(""))
    address = _diff(status, ancestor, lineage, choice, speedup).href
    link = markup.link(address, markup.code(ancestor.id))
    words: Html | str = ""
    hint = ""
    before, latency = choice.latency(lineage.by_id[ancestor.id]), choice.latency(status)
    if speedup is not None:
        words, hint = _judged_speedup(speedup), speedup.compared.decision.reason
    elif before and latency:
        words = f"{formatting.TIMES}{formatting.digits(before.ns / latency.ns)}"
    short = _verdict_and_times(speedup) if speedup else words
    line = markup.link(address, short or f"diff {ancestor.id}")
    # Nothing is compared with a wrong version: the reader is told why the row skips its parent.
    if ancestor.id != status.version.parent:
        parent = lineage.by_id[status.version.parent or ""]
        skipped = f"its parent {parent.version.id} is {parent.state}"
        hint = f"{hint}; {skipped}" if hint else skipped
        words = words or f"parent {parent.state}"
    cell = _two_lines(link, markup.tag("span", words, "u", hint)) if words else link
    return _Against(cell, line)


def _diff(
    status: VersionStatus, ancestor: Version, lineage: Lineage, choice: FactChoice, speedup: Speedup | None
) -> addresses.Diff:
    """The diff of a version with its ancestor: of their calls where both were timed, else of their facts."""
    view = addresses.Diff(f"{lineage.family}/{ancestor.id}", f"{lineage.family}/{status.version.id}")
    if speedup is not None:
        measured = Evidence.MEASURED.value
        return replace(view, workload=speedup.workload, gpu=choice.gpu, evidence=measured)
    evidence = Evidence.STATIC if status.static else sorted(status.evidence)[0]
    if evidence is Evidence.STATIC:
        return replace(view, workload=choice.size, gpu=choice.arch, evidence=evidence.value)
    return replace(view, workload=choice.workload, evidence=evidence.value)


def _judged_speedup(speedup: Speedup) -> Html:
    """The verdict and the speed-up with its interval; it is of the rounds of one run, or of the floor."""
    words = _verdict_and_times(speedup)
    if speedup.interval is None:
        return words
    low, high = (formatting.digits(end) for end in speedup.interval)
    return markup.join((words, f"({low}–{high})"))


def _verdict_and_times(speedup: Speedup) -> Html:
    return markup.verdict(speedup.compared.verdict, f"{formatting.TIMES}{formatting.digits(speedup.times)}")


def _two_lines(first: object, second: object) -> Html:
    """Two lines of one cell, both cut where they would not fit: the graph needs rows of one height."""
    return Html(f'<span class="two">{markup.escaped(first)}<br>{markup.escaped(second)}</span>')
