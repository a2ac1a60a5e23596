"""The newest correct versions of a lineage, one row each: what was timed, and what is known without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiler.catalog.version import Claim
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.opcodes import TENSOR_OPCODES
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.history.lineage import Lineage, VersionStatus
from profiler.history.speedups import Speedup
from profiler.model.stored_predictions import StoredPredictions
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import lineage_table
from profiler.ui.views.best_versions import short_gpu, since_parent

SHOWN_MEASURED = 3  # rows where something was timed; else every correct version, for no other table has them

_UNITS_OF_HEADS = ("register/thread", "inst")  # units that the columns' heads say


@dataclass(frozen=True)
class Places:
    """Which workload, GPU and architecture the numbers of each kind of evidence are of; "" for none."""

    arch: str
    size: str  # of static facts
    modelled: str
    gpu: str
    workload: str  # timed

    @staticmethod
    def of(lineage: Lineage) -> Places:
        """Those of most versions."""
        gpu, workload = lineage.first_timed_cell or ("", "")
        return Places(
            lineage.architectures[-1] if lineage.architectures else "",
            next(iter(lineage.static_workloads), ""),
            next(iter(lineage.modelled_workloads), ""),
            gpu,
            workload,
        )

    def static(self, status: VersionStatus, name: str) -> Value:
        """A fact of the compiler; NOT_COLLECTED where there is none."""
        return _value(status.static.get((self.arch, self.size)), f"static__{name}")

    def tensor_sites(self, status: VersionStatus) -> Value:
        """Places in the code that multiply matrices, by any opcode; NOT_COLLECTED where none is known."""
        sites = [self.static(status, f"opcode_{opcode}") for opcode in TENSOR_OPCODES]
        numbers = [value.number for value in sites if value.number is not None]
        return Value(sum(numbers), "inst") if numbers else sites[0]

    def of_model(self, status: VersionStatus, name: str) -> Value:
        """A fact of the run on the CPU; NOT_COLLECTED where there is none."""
        return _value(status.modelled.get(self.modelled), f"modelled__{name}")


def caption(lineage: Lineage, places: Places) -> Html:
    """Which workload and GPU the columns of each kind of evidence are of."""
    parts = []
    if places.workload:
        words = f"{places.workload} on {short_gpu(places.gpu)}"
        parts.append(markup.join((markup.evidence_badge("measured"), words)))
    elif claim := claimed_latency(lineage.statuses[0]):
        parts.append(markup.escaped(f"claimed: by {claim.source} for {short_gpu(claim.gpu)}, not checked"))
    if places.arch:
        words = f"registers to occupancy: {places.arch}, {places.size}"
        parts.append(markup.join((markup.evidence_badge("static"), words)))
    if places.modelled:
        facts = "conflicts" if places.workload else "conflicts, max error"
        words = f"{facts}: {places.modelled} on the CPU"
        parts.append(markup.join((markup.evidence_badge("modelled"), words)))
    return markup.join(parts, " · ")


def table(
    lineage: Lineage,
    places: Places,
    speedups: Mapping[str, Speedup],
    predicted: StoredPredictions | None = None,
) -> Html:
    """One row a version, the newest first; where nothing was timed, all correct ones.

    predicted: where nothing was timed, a phone has these times in the table, for it has no room for a chart.
    """
    statuses = lineage.newest_correct_first
    shown = statuses[:SHOWN_MEASURED] if places.workload else statuses
    timed = bool(places.workload)
    modelled = None
    if predicted is not None and predicted.predictions and not timed:
        modelled = predicted.on(predicted.workloads[0], predicted.gpus[0])
    columns = (
        Column("version"),
        *(() if timed else (Column("idea", cut=2, wide=True),)),
        *((Column("latency", right=True), Column("since its parent")) if timed else ()),
        *((Column("time", right=True, phone=True),) if modelled is not None else ()),
        *(() if timed else (Column("claimed", right=True),)),
        Column("registers", right=True),
        Column("instructions", right=True, wide=True),
        Column("tensor sites", right=True, wide=True),
        Column("spills", right=True, wide=True),
        Column("occupancy", right=True, wide=True),
        Column("conflicts", right=True, wide=modelled is not None),
        *(() if timed else (Column("max error", right=True, wide=True),)),
    )
    rows = []
    for status in shown:
        number = None
        if modelled is not None:
            own = modelled.get(status.version.id)
            number = lineage_table.short_modelled_time(own) if own else markup.muted("–")
        rows.append(_row(lineage, status, places, speedups.get(status.version.id), timed, number))
    if len(shown) < len(statuses):
        all_versions = markup.link(markup.href("lineage", {"family": lineage.family}), "Lineage")
        more = f"{len(statuses) - len(shown)} more correct versions:"
        rows.append(markup.closing_row(markup.join((markup.muted(more), all_versions))))
    return markup.table("newest versions", columns, rows)


def claimed_latency(status: VersionStatus, workload: str = "") -> Claim | None:
    """What the owner says that a version takes: on that workload, else on the first that he names."""
    claims = [claim for claim in status.version.claims if claim.fact == "latency" and claim.kind != "goal"]
    return next((claim for claim in claims if claim.workload == workload), claims[0] if claims else None)


def _row(
    lineage: Lineage,
    status: VersionStatus,
    places: Places,
    speedup: Speedup | None,
    timed: bool,
    modelled: Html | None,
) -> Row:
    name = f"{lineage.family}/{status.version.id}"
    parent = status.correct_ancestor
    version = markup.code(status.version.id)
    if parent is not None and status.evidence:
        address = addresses.Diff(f"{lineage.family}/{parent.id}", name).href
        version = markup.link(address, version, f"diff with {parent.id}")
    idea = status.version.technique
    cells: list[object] = [markup.tag("span", version, title=idea) if timed else version]
    if timed:
        latency = status.latencies.get((places.workload, places.gpu))
        number = markup.value(Value(latency.ns, "ns")) if latency else markup.state("not measured")
        change: object = markup.muted("–")
        if speedup is not None and parent is not None:
            change = since_parent(speedup, parent.id)
        cells += [number, change]
    else:
        times = [] if modelled is None else [modelled]
        cells += [markup.tag("span", idea, "m", idea), *times, _claim(status)]
    error = () if timed else (_number(places.of_model(status, "max_abs_error")),)
    return Row(
        (
            *cells,
            _number(places.static(status, "registers")),
            _number(places.static(status, "instructions")),
            _number(places.tensor_sites(status)),
            _number(places.static(status, "spill_bytes")),
            _number(places.static(status, "occupancy_pct")),
            _number(places.of_model(status, "bank_conflicts")),
            *error,
        )
    )


def _claim(status: VersionStatus) -> Html:
    claim = claimed_latency(status)
    if claim is None:
        return markup.muted("–")
    about = ", ".join(filter(None, (claim.workload, claim.gpu, claim.source, claim.note)))
    number = str(formatting.quantity(Value(claim.value, claim.unit)))
    return markup.tag("span", markup.muted(number), "claim", f"{about}; not checked")


def _number(value: Value) -> Html:
    if value == NOT_COLLECTED:
        return markup.muted("–")
    if value.unit in _UNITS_OF_HEADS and value.number is not None:
        return markup.quantity(*formatting.quantity(Value(value.number)))
    return markup.value(value)


def _value(launch: Launch | None, name: str) -> Value:
    return launch.values.value(name) if launch is not None else NOT_COLLECTED
