"""The newest correct versions of a lineage, one row each: what was timed, and what is known without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from profiler.catalog.version import Claim
from profiler.evidence import formatting
from profiler.evidence.opcodes import TENSOR_OPCODES
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.history.lineage import Lineage, VersionStatus
from profiler.history.speedups import Speedup
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track
from profiler.ui.markup import Column, Html
from profiler.ui.views import lineage_table
from profiler.ui.views.best_versions import short_gpu, since_parent
from profiler.ui.views.lineage_table import FactChoice

SHOWN_MEASURED = 3  # rows where something was timed; else every correct version, for no other table has them
_UNITS_OF_HEADS = ("register/thread", "inst")  # units that the columns' heads say


def caption(lineage: Lineage, choice: FactChoice, predicted: StoredPredictions | None = None) -> Html:
    """Which workload and GPU the columns of each kind of evidence are of."""
    parts = []
    if choice.gpu:
        words = f"{choice.workload} on {short_gpu(choice.gpu)}"
        parts.append(markup.join((markup.evidence_badge("measured"), words)))
    elif claim := _claim(lineage.statuses[0]):
        parts.append(markup.escaped(f"claimed: by {claim.source} for {short_gpu(claim.gpu)}, not checked"))
    if choice.arch:
        words = f"registers to occupancy: {choice.arch}, {choice.size}"
        parts.append(markup.join((markup.evidence_badge("static"), words)))
    if choice.on_cpu:
        facts = "conflicts" if choice.gpu else "conflicts, max error"
        words = f"{facts}: {choice.modelled_on} on the CPU"
        if predicted is not None and not choice.gpu:
            words = f"time: {predicted.workloads[0]} on {predicted.gpus[0]}, log; {words}"
        parts.append(markup.join((markup.evidence_badge("modelled"), words)))
    return markup.join(parts, " · ")


def table(
    lineage: Lineage,
    choice: FactChoice,
    speedups: Mapping[str, Speedup],
    predicted: StoredPredictions | None = None,
) -> Html:
    """One row a version, the newest first; where nothing was timed all correct ones, with modelled times."""
    statuses = lineage.newest_correct_first
    is_timed = bool(choice.gpu)
    shown = statuses[:SHOWN_MEASURED] if is_timed else statuses
    times: Mapping[str, StoredPrediction] = {}
    if predicted is not None and predicted.predictions and not is_timed:
        times = predicted.on(predicted.workloads[0], predicted.gpus[0])
    columns = [
        Column("version", cell=lambda status: _version(lineage, status, with_idea=is_timed)),
        *(_timed_columns(choice, speedups) if is_timed else _untimed_columns(times)),
        _column("registers", lambda status: choice.static(status, "registers"), wide=False),
        _column("instructions", lambda status: choice.static(status, "instructions")),
        _column("tensor sites", lambda status: _tensor_sites(status, choice)),
        _column("spills", lambda status: choice.static(status, "spill_bytes")),
        _column("occupancy", lambda status: choice.static(status, "occupancy_pct")),
        _column("conflicts", lambda status: choice.modelled(status, "bank_conflicts"), wide=bool(times)),
    ]
    if not is_timed:
        columns.append(_column("max error", lambda status: choice.modelled(status, "max_abs_error")))
    rows = markup.rows_of(columns, shown)
    if len(shown) < len(statuses):
        all_versions = markup.link(markup.href("lineage", {"family": lineage.family}), "Lineage")
        more = f"{len(statuses) - len(shown)} more correct versions:"
        rows.append(markup.closing_row(markup.join((markup.muted(more), all_versions))))
    return markup.table("newest versions", columns, rows)


def _timed_columns(choice: FactChoice, speedups: Mapping[str, Speedup]) -> list[Column]:
    def latency(status: VersionStatus) -> Html:
        own = status.latencies.get((choice.workload, choice.gpu))
        return markup.value(Value(own.ns, "ns")) if own else markup.state("not measured")

    def change(status: VersionStatus) -> Html:
        speedup, parent = speedups.get(status.version.id), status.correct_ancestor
        return since_parent(speedup, parent.id) if speedup and parent else markup.muted("–")

    return [Column("latency", right=True, cell=latency), Column("since its parent", cell=change)]


def _untimed_columns(times: Mapping[str, StoredPrediction]) -> list[Column]:
    """The idea, the modelled time with its place among the others, and what the owner claims or aims at."""
    scale = latency_track.scale_of(own.time_ns or 0.0 for own in times.values())

    def time(status: VersionStatus) -> Html:
        own = times.get(status.version.id)
        return lineage_table.modelled_time(own) if own else markup.muted("–")

    def track(status: VersionStatus) -> Html:
        own = times.get(status.version.id)
        if scale is None or own is None or not own.time_ns:
            return Html("")
        return latency_track.track(scale, own.time_ns, None, None, lineage_table.range_words(own))

    def idea(status: VersionStatus) -> Html:
        return markup.tag("span", status.version.technique, "m", status.version.technique)

    columns = [Column("idea", cut=2, wide=True, cell=idea)]
    if scale is not None:
        columns += [Column("modelled time", right=True, cell=time), Column("", wide=True, cell=track)]
    return [*columns, Column("claimed", right=True, cell=_claimed)]


def _column(head: str, value: Callable[[VersionStatus], Value | None], *, wide: bool = True) -> Column:
    """A column of a fact; `value` gives it of a version."""
    return Column(head, right=True, wide=wide, cell=lambda status: _number(value(status)))


def _version(lineage: Lineage, status: VersionStatus, *, with_idea: bool) -> Html:
    """The version, the way to the diff with its parent; its idea under the pointer where no column has it."""
    parent, version = status.correct_ancestor, markup.code(status.version.id)
    if parent is not None and status.evidence:
        view = addresses.Diff(f"{lineage.family}/{parent.id}", f"{lineage.family}/{status.version.id}")
        version = markup.link(view.href, version, f"diff with {parent.id}")
    return markup.tag("span", version, title=status.version.technique) if with_idea else version


def _tensor_sites(status: VersionStatus, choice: FactChoice) -> Value | None:
    """Places in the code that multiply matrices, by any opcode; None where none is known."""
    sites = [choice.static(status, f"opcode_{opcode}") for opcode in TENSOR_OPCODES]
    numbers = [value.number for value in sites if value is not None and value.number is not None]
    return Value(sum(numbers), "inst") if numbers else None


def _claim(status: VersionStatus) -> Claim | None:
    """What the owner says that a version takes, else what he aims at."""
    claims = [claim for claim in status.version.claims if claim.fact == "latency"]
    return min(claims, key=lambda claim: claim.kind == "goal", default=None)


def _claimed(status: VersionStatus) -> Html:
    claim = _claim(status)
    if claim is None:
        return markup.muted("–")
    about = ", ".join(filter(None, (claim.workload, claim.gpu, claim.source, claim.note)))
    words = f"{lineage_table.claimed_range(claim)}{' goal' * (claim.kind == 'goal')}"
    return markup.tag("span", markup.muted(words), "claim", f"{about}; not checked")


def _number(value: Value | None) -> Html:
    if value is None or value == NOT_COLLECTED:
        return markup.muted("–")
    if value.unit in _UNITS_OF_HEADS and value.number is not None:
        return markup.quantity(*formatting.quantity(Value(value.number)))
    return markup.value(value)
