"""What the model says of a version's launches that nobody measured: times, use of the pipes, warp states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from profiler.documents.blocks import Hinted, Number, Table
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.explain.launch_numbers import LaunchNumber
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.ui.markup import Html
from profiler.ui.views import answer, launch_bars
from profiler.ui.views.lineage_table import limiter_words

_HEAD_DIM = "head dim "
_LEAST_PERCENT = 0.1
_STATES_SHOWN = 8
_SOURCE_NAME = re.compile(r"_Z(\d+)")


def predictions_of(
    stored: StoredPredictions,
    version: str,
    arch: str,
    static_workload: str,
    role: str = "",
    roles: Mapping[str, str] | None = None,
) -> list[StoredPrediction]:
    """The predictions of a version's code for an architecture: of its function for that head dimension.

    Of a version with several kernels, whose `roles` its catalogue names by function, only those workloads
    whose longest launch is of the kernel with that `role`.
    """
    found = [p for p in stored.predictions if (p.version, p.arch) == (version, arch) and p.time_ns]
    if roles:
        found = [p for p in found if not p.function or roles.get(_unmangled(p.function)) == role]
    if not static_workload.startswith(_HEAD_DIM):
        return found
    size = static_workload.removeprefix(_HEAD_DIM)
    return [p for p in found if p.workload.split()[0].rpartition("x")[2] == size]


def _unmangled(function: str) -> str:
    """The name of a function outside of namespaces. Source: Itanium C++ ABI, 5.1.2, `<source-name>`."""
    encoded = _SOURCE_NAME.match(function)
    return function if encoded is None else function[encoded.end() :][: int(encoded[1])]


def times(found: Sequence[StoredPrediction]) -> Html:
    """A row a workload and GPU: the time, its range, and what limits it."""
    head = ("workload", "GPU", "time", "eight of ten within", "limited by")
    rows = [
        (p.workload, p.gpu, Number(Value(p.time_ns, "ns")), _range(p), Hinted(p.limiter, limiter_words(p)))
        for p in found
    ]
    return answer.table(Table(head, rows, right=(2,), wide=(4,)), "modelled times")


def _range(prediction: StoredPrediction) -> str:
    low, high = (formatting.quantity(Value(ns, "ns")) for ns in (prediction.low_ns, prediction.high_ns))
    return f"{low} to {high}"


def utilisation(prediction: StoredPrediction) -> Html:
    """How busy the busiest resources are, in % of what each can do."""
    return launch_bars.bars("modelled utilisation", _percents(prediction.utilisation), 100.0)


def warp_states(prediction: StoredPrediction) -> Html:
    """What warps spend their time on, in %."""
    return launch_bars.bars("modelled warp states", _percents(prediction.stalls)[:_STATES_SHOWN])


def _percents(shares: Mapping[str, float]) -> list[LaunchNumber]:
    """The shares that show, largest first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [
        LaunchNumber(name, "by the cycle simulation", Value(round(100 * share, 1), "%"))
        for name, share in ordered
        if 100 * share >= _LEAST_PERCENT
    ]
