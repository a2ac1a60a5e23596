"""The modelled times of a family's versions on Trends: no GPU ran them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.evidence import formatting
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.ui import controls, markup
from profiler.ui.charts import latency_track, small_multiples
from profiler.ui.charts.small_multiples import Axis, Panel, PanelLine, PanelPoint
from profiler.ui.charts.style import Figure
from profiler.ui.data import predictions
from profiler.ui.data.index import DataVersion
from profiler.ui.sections import draw
from profiler.ui.views.lineage_table import limiter_words

_GPU = "modelled GPU"


def are_stored(data_version: DataVersion, family: str) -> bool:
    """Whether a run of the family keeps modelled times."""
    return predictions.predictions(data_version, family) is not None


def check_address(data_version: DataVersion, family: str, filters: controls.Filters) -> None:
    """Say where the address asks for a GPU that no time is modelled for, on a view that shows none."""
    if "model_gpu" in st.query_params:
        stored = predictions.predictions(data_version, family)
        filters.check(_GPU, stored.gpus if stored else [], "model_gpu")


def show(
    data_version: DataVersion,
    family: str,
    names: Sequence[str],
    workload: str,
    filters: controls.Filters,
) -> None:
    """A chart of the newest run's modelled times on the workload, or its first; nothing without such a run.

    names: of the versions, in the order of the axis.
    """
    stored = predictions.predictions(data_version, family)
    if stored is None:
        return
    on = workload if workload in stored.workloads else stored.workloads[0]
    st.html(markup.section_head("Modelled time", f"{on}, from machine code run on the CPU; not measured"))
    with st.columns([1, 3])[0]:
        gpu = filters.select_if_several("modelled for", stored.gpus, "model_gpu", noun=_GPU)
    predicted = stored.on(on, gpu)
    shown = [predicted[name] for name in names if name in predicted]
    drawn, alt = _figure(shown, f"modelled time on {gpu}")
    draw.chart(drawn, alt=alt, key="modelled_times")
    st.html(_note(stored, shown))


def _figure(found: Sequence[StoredPrediction], title: str) -> tuple[Figure, str]:
    """A point a version with its range, a hatch where there is no model; and the same in words."""
    scale = formatting.scale_for("ns", max((p.high_ns or 0.0 for p in found), default=0.0))
    points, words = [], []
    for x, prediction in enumerate(found):
        likely, low, high = prediction.time_ns, prediction.low_ns, prediction.high_ns
        if likely is None or low is None or high is None:
            points.append(PanelPoint(float(x), None, hover=prediction.version, gap="no model"))
            continue
        label = latency_track.nanoseconds(likely)
        around = f"{label} ({latency_track.nanoseconds(low)} to {latency_track.nanoseconds(high)})"
        hover = f"{prediction.version}: {around}; {limiter_words(prediction)}"
        y, bottom, top = (ns / scale.divisor for ns in (likely, low, high))
        points.append(PanelPoint(float(x), y, hover, label, joined=False, low=bottom, high=top))
        words.append(f"{prediction.version} {around}")
    names = tuple(prediction.version for prediction in found)
    panel = Panel(title, scale.unit, (PanelLine("modelled", tuple(points)),))
    figure = small_multiples.figure([panel], Axis(names, span=(0.0, len(names) - 1.0)))
    return figure, f"{title}: {'; '.join(words)}"


def _note(stored: StoredPredictions, found: Sequence[StoredPrediction]) -> markup.Html:
    missing = [f"{p.version}: {p.no_model}" for p in found if p.time_ns is None]
    parts = [markup.join((markup.evidence_badge("modelled"), stored.note))]
    parts += [markup.backticks_as_code(f"no model of {'; '.join(missing)}")] if missing else []
    return markup.note(markup.join(parts, " · "))
