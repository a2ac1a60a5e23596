"""A lineage in short, for the overview: what is best, what is worse, what is wrong, what is not measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.history.best_versions import BestVersion
from profiler.history.lineage import BASELINE, GOOD, PLANNED, Lineage, VersionStatus
from profiler.model.stored_predictions import StoredPredictions
from profiler.regressions.groups import WorseNow
from profiler.statistics.facts import OVER_BUDGET, excess_over_budget
from profiler.statistics.verdict import Verdict
from profiler.store.rows import RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row, Tile
from profiler.ui.views.best_versions import short_gpu

NAMED = 3  # versions that a tile's sentence names
_GPUS_NAMED = 2  # in the first tile
_TileContent = tuple[object, str, object]  # value, unit, sentence


def context(lineage: Lineage, runs: Sequence[RunInfo]) -> Html:
    """How much there is of it and how new it is, with the ways to the whole."""
    own = [status for status in lineage.statuses if status.state not in (BASELINE, PLANNED)]
    words: list[object] = [f"{len(own)} versions"]
    of_family = [run for run in runs if _is_of(run, lineage.family)]
    measured = [run for run in of_family if Evidence.MEASURED in run.evidence]
    if measured:
        newest = max(measured, key=lambda run: run.created)
        words.append(f"newest measured {formatting.timestamp(newest.created)}")
        environment = (("driver", newest.driver), ("CUDA", newest.cuda))
        words += [f"{name} {text}" for name, text in environment if text]
    words.append(f"catalogue of {formatting.timestamp(lineage.snapshot.created)}")
    words.append(markup.link(markup.href("runs", {"family": lineage.family}), _count(len(of_family), "run")))
    words.append(markup.link(markup.href("lineage", {"family": lineage.family}), "lineage"))
    words.append(markup.link(addresses.trends(lineage.family), "trends"))
    return markup.join(words, " · ")


def tiles(
    lineage: Lineage,
    best_versions: Sequence[BestVersion],
    worse: WorseNow | None,
    predicted: StoredPredictions | None = None,
) -> Html:
    """What is best, worse, wrong and not measured: a count, a sentence and a way on each.

    `worse` is None where nobody knows yet. predicted: these times name the best version where none was timed.
    """
    return markup.tiles(
        (
            Tile("Best correct", *_best(lineage, best_versions, predicted)),
            Tile("Worse now", *_worse(lineage, worse)),
            Tile("Wrong", *_wrong(lineage)),
            Tile("Not measured", *_not_measured(lineage, best_versions)),
        )
    )


def wrong(lineage: Lineage) -> Html:
    """The versions without a speed, each with why."""
    rows = [
        Row(
            (
                _link(status, lineage),
                markup.status_tag(status.state),
                markup.tag("span", status.reason, "m"),
            )
        )
        for status in lineage.statuses
        if status.is_wrong
    ]
    if not rows:
        return markup.note("none")
    return markup.table("wrong", (Column(""), Column(""), Column("", wrap=True)), rows)


def wrong_folded(lineage: Lineage) -> Html:
    """The versions without a speed behind one line."""
    count = sum(status.is_wrong for status in lineage.statuses)
    return markup.fold(f"{_count(count, 'version')} wrong or rejected, each with why", [wrong(lineage)])


def measuring_command(lineage: Lineage) -> str:
    """The one command that measures what no GPU has run; "" where there is no such version."""
    unmeasured = unmeasured_versions(lineage)
    if not unmeasured:
        return ""
    correct = sum(status.state == GOOD for status in lineage.statuses)
    # Without names the command measures the whole lineage.
    names = [status.version.id for status in unmeasured] if len(unmeasured) < correct else []
    return " ".join(["profiler collect", *names])


def measuring_words(lineage: Lineage) -> Html:
    """What that command does, beside it."""
    unmeasured = unmeasured_versions(lineage)
    return markup.paragraph(
        markup.join(
            (
                markup.tag("b", "To measure, on a machine with a GPU"),
                markup.muted(
                    f"checks, times and captures {_count(len(unmeasured), 'version')} beside the baselines; "
                    "can be resumed; then profiler import the bundle that it names"
                ),
            )
        )
    )


def unmeasured_versions(lineage: Lineage) -> list[VersionStatus]:
    """The correct versions that no GPU has run, in the catalogue's order."""
    return [
        status
        for status in lineage.statuses
        if status.state == GOOD and Evidence.MEASURED not in status.evidence
    ]


def _is_of(run: RunInfo, family: str) -> bool:
    return family in (run.families or (run.family,))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


def _best(
    lineage: Lineage, best_versions: Sequence[BestVersion], predicted: StoredPredictions | None
) -> _TileContent:
    """The fastest version on each GPU's first workload; where none was timed, the fastest by the model."""
    timed = [best for best in best_versions if best.status and best.latency]
    if not timed:
        return _best_untimed(lineage, predicted)
    first_of_gpu: dict[str, BestVersion] = {}
    for best in timed:
        first_of_gpu.setdefault(best.gpu, best)
    shown = list(first_of_gpu.values())[:_GPUS_NAMED]
    names = markup.join((_best_of_gpu(best) for best in shown), "")
    ahead = sum(best.speedup is not None and best.speedup > 1 for best in timed)
    with_baseline = sum(best.speedup is not None for best in timed)
    parts = [f"{len(timed)} of {len(best_versions)} cells"]
    if with_baseline:
        parts.append(f"{ahead} ahead of baselines")
    multiples = sorted(best.times_bound for best in timed if best.times_bound)
    if multiples:
        low, high = (f"{formatting.TIMES}{formatting.digits(end)}" for end in (multiples[0], multiples[-1]))
        parts.append(f"{low} to {high} the lower bound")
    return names, "", " · ".join(parts)


def _best_untimed(lineage: Lineage, predicted: StoredPredictions | None) -> _TileContent:
    """Of the correct versions that the model cannot tell from the fastest, the one with most ancestors.

    Without modelled times it is the one with most ancestors of all.
    """
    correct = lineage.correct_deepest_first
    if not correct:
        return markup.code("none"), "", "no version is correct on the CPU"
    fastest = predicted.fastest([status.version.id for status in correct]) if predicted else []
    best, words = (
        correct[0],
        [markup.escaped(f"most ancestors of {len(correct)} correct on the CPU; not timed")],
    )
    if fastest:
        first, *close = fastest
        best = lineage.by_id[first.version]
        time = markup.value(Value(first.time_ns, "ns"))
        words = [markup.join((time, f"modelled, {first.gpu}, {first.workload}"))]
        if close:
            names = _names([lineage.by_id[prediction.version] for prediction in close])
            words.append(markup.join((names, "too close to tell")))
        deeper = correct[: correct.index(best)]
        if deeper:
            words.append(markup.join(("no model of", _names(deeper))))
    ancestor = best.correct_ancestor
    if ancestor is not None:
        a, b = (f"{lineage.family}/{name}" for name in (ancestor.id, best.version.id))
        diff = addresses.Diff(a, b, evidence=Evidence.STATIC.value)
        words.append(markup.link(diff.href, f"diff with {ancestor.id}"))
    return markup.code(best.version.id), "", markup.join(words, " · ")


def _best_of_gpu(best: BestVersion) -> Html:
    assert best.status is not None
    assert best.latency is not None
    gpu = short_gpu(best.gpu).split()[0]
    latency = markup.value(Value(best.latency.ns, "ns"))
    name = markup.code(best.status.version.id, f"{best.gpu}, {best.workload}")
    return markup.tag("span", markup.join((name, markup.tag("small", markup.join((gpu, latency)))), ""), "of")


def _worse(lineage: Lineage, worse: WorseNow | None) -> _TileContent:
    """What counts as worse, as Regressions and the gate count it, and what is over its budget."""
    over = [status for status in lineage.statuses if status.state == GOOD and _is_over_budget(status)]
    budget: object = "no correct version is over its budget"
    if over:
        budget = markup.join((f"{len(over)} over budget:", _names(over)))
    if worse is None:
        return markup.state("looking …"), "", markup.muted("at every version's newest results")
    if not lineage.timed_cells and not worse.count:
        return markup.state("not measured"), "", markup.join(("static:", budget))
    unit = f"on {_count(len(worse.rows), 'row')}" if worse.count else "as far as is known"
    link = markup.link(addresses.regressions(lineage.family), "since when, and why")
    parts: list[object] = [link]
    if worse.acknowledged:
        parts.append(f"{len(worse.acknowledged)} acknowledged")
    if over:
        parts.append(budget)
    return markup.verdict_count(Verdict.WORSE, worse.count), unit, markup.join(parts, " · ")


def _wrong(lineage: Lineage) -> _TileContent:
    wrong_versions = [status for status in lineage.statuses if status.is_wrong]
    own = [status for status in lineage.statuses if status.state not in (BASELINE, PLANNED)]
    reasons = markup.link(markup.href("lineage", {"family": lineage.family}), "reasons")
    names = markup.join((_names(wrong_versions), reasons), " · ")
    sentence = names if wrong_versions else markup.muted("none")
    return f"⊘ {len(wrong_versions)}", f"of {_count(len(own), 'version')}", sentence


def _not_measured(lineage: Lineage, best_versions: Sequence[BestVersion]) -> _TileContent:
    unmeasured = unmeasured_versions(lineage)
    correct = sum(status.state == GOOD for status in lineage.statuses)
    planned = sum(status.state == PLANNED for status in lineage.statuses)
    empty_cells = sum(best.status is None for best in best_versions)
    parts: Iterable[object] = (
        _names(unmeasured) if 0 < len(unmeasured) < correct else "",
        _count(empty_cells, "empty cell") if empty_cells else "",
        f"{planned} more planned" if planned else "",
    )
    sentence = markup.join(parts, " · ") or markup.muted("every correct version was timed")
    return f"– {len(unmeasured)}", f"of {_count(correct, 'correct version')}", sentence


def _is_over_budget(status: VersionStatus) -> bool:
    return any(excess_over_budget(launch.values.value(OVER_BUDGET).text) for launch in status.static.values())


def _names(statuses: Sequence[VersionStatus]) -> Html:
    if not statuses:
        return markup.muted("none")
    names = markup.join((markup.code(status.version.id) for status in statuses[:NAMED]), ", ")
    more = f"and {len(statuses) - NAMED} more" if len(statuses) > NAMED else ""
    return markup.join((names, more))


def _link(status: VersionStatus, lineage: Lineage) -> Html:
    """The version, as a way to its diff with the nearest correct ancestor."""
    name = markup.code(status.version.id)
    ancestor = status.correct_ancestor
    if ancestor is None or not status.evidence:
        return name
    view = addresses.Diff(f"{lineage.family}/{ancestor.id}", f"{lineage.family}/{status.version.id}")
    return markup.link(view.href, name, title=f"diff with {ancestor.id}")
