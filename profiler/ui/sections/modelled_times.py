"""The modelled times of a family's versions on Trends: no GPU ran them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.ui import controls, markup
from profiler.ui.charts import latency_track, modelled_times, style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.modelled_times import ModelledTime
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
    shown = [name for name in names if name in predicted]
    drawn, alt = _figure(shown, [predicted[name] for name in shown], f"modelled time on {gpu}")
    draw.chart(drawn, alt=alt, key="modelled_times")
    st.html(_note(stored, [predicted[name] for name in shown]))


def _figure(names: Sequence[str], found: Sequence[StoredPrediction], title: str) -> tuple[style.Figure, str]:
    """The chart, and its content in words for who cannot see it."""
    scale = formatting.scale_for("ns", max((p.high_ns or 0.0 for p in found), default=0.0))
    times: list[ModelledTime | None] = []
    words = []
    for prediction in found:
        likely, low, high = prediction.time_ns, prediction.low_ns, prediction.high_ns
        if likely is None or low is None or high is None:
            times.append(None)
            continue
        label = str(formatting.quantity(Value(likely, "ns")))
        around = f"{latency_track.nanoseconds(low)} to {latency_track.nanoseconds(high)}"
        limited = limiter_words(prediction)
        hover = f"<b>{plotly_text(prediction.version)}</b><br>{label} ({around})<br>{plotly_text(limited)}"
        by_unit = (ns / scale.divisor for ns in (likely, low, high))
        times.append(ModelledTime(label, hover, *by_unit))
        words.append(f"{prediction.version} {label} ({around})")
    return modelled_times.figure(names, times, scale.unit, title), f"{title}: {'; '.join(words)}"


def _note(stored: StoredPredictions, found: Sequence[StoredPrediction]) -> markup.Html:
    missing = [f"{p.version}: {p.no_model}" for p in found if p.time_ns is None]
    parts = [markup.join((markup.evidence_badge("modelled"), stored.note))]
    parts += [markup.backticks_as_code(f"no model of {'; '.join(missing)}")] if missing else []
    return markup.note(markup.join(parts, " · "))
