"""Which places the Compare page shows, the addresses of its other views, and its files to take away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from profiler.documents.version_table import VersionTableDocument
from profiler.evidence.cell import Cell
from profiler.evidence.naming import natural_key
from profiler.evidence.values import Evidence
from profiler.ui import addresses, controls
from profiler.ui.data.version_tables import by_evidence

_UNNAMED = "–"  # stands in the address for what no report says


@dataclass(frozen=True)
class PlaceChoice:
    """The places of a table: every workload on one GPU, facts of one architecture, one modelled workload.

    Where nothing was measured modelled times on one GPU stand first.
    """

    measured: tuple[Cell, ...] = ()
    static: tuple[Cell, ...] = ()
    modelled: tuple[Cell, ...] = ()
    modelled_times: tuple[Cell, ...] = ()

    @property
    def places(self) -> tuple[Cell, ...]:
        """All of them, measured first."""
        return (*self.measured, *self.modelled_times, *self.static, *self.modelled)


def choose(places: dict[Cell, int], filters: controls.Filters) -> PlaceChoice:
    """The GPU: that on which most of the versions were measured first."""
    measured = by_evidence(places, Evidence.MEASURED)
    gpus = list(dict.fromkeys(place.gpu or _UNNAMED for place in measured))
    gpu = filters.select_if_several("GPU", gpus, "gpu")
    natural = [place for place in places if place in measured]
    return PlaceChoice(tuple(place for place in natural if (place.gpu or _UNNAMED) == gpu))


def choose_facts(places: dict[Cell, int], choice: PlaceChoice, filters: controls.Filters) -> PlaceChoice:
    """The GPU of modelled times, the architecture and size of static facts, the workload of modelled ones."""
    times = [place for place in places if place.is_modelled_time]
    none = ["none"] if choice.measured else []
    modelled_gpu = filters.select_if_several(
        "modelled for",
        [*none, *dict.fromkeys(place.gpu for place in times)],
        "model_gpu",
        noun="modelled GPU",
    )
    static = by_evidence(places, Evidence.STATIC)
    architectures = sorted({place.gpu for place in static}, key=natural_key, reverse=True)
    arch = filters.select_if_several("architecture", architectures, "arch")
    sizes = list(dict.fromkeys(place.workload for place in static if place.gpu == arch))
    size = filters.select_if_several("static facts of", sizes, "size")
    of_model = [place for place in by_evidence(places, Evidence.MODELLED) if not place.is_modelled_time]
    workloads = [place.workload for place in of_model]
    modelled = filters.select_if_several("modelled on", workloads, "modelled", noun="modelled workload")
    return replace(
        choice,
        static=tuple(place for place in static if (place.gpu, place.workload) == (arch, size)),
        modelled=tuple(place for place in of_model if place.workload == modelled),
        modelled_times=tuple(place for place in times if place.gpu == modelled_gpu),
    )


def address(names: Sequence[str], against: str, **choices: str) -> str:
    """This view with other choices; whatever else its address says stays."""
    whole = {**st.query_params.to_dict(), **choices}
    rest = {name: text for name, text in whole.items() if name not in ("versions", "against")}
    return addresses.compare(names, against, **rest)


def show_downloads(table: VersionTableDocument, report: Callable[[], str]) -> None:
    """The table as files, one click each."""
    name = f"compare-{table.baseline.short_name}".replace(" ", "-")
    with st.container(horizontal=True, gap="small", key="compare_files"):
        st.download_button("CSV", partial(table.to_csv), f"{name}.csv", "text/csv", on_click="ignore")
        st.download_button("Parquet", partial(table.to_parquet), f"{name}.parquet", on_click="ignore")
        st.download_button("Markdown", partial(table.to_markdown), f"{name}.md", on_click="ignore")
        st.download_button("report.html", report, f"{name}.html", "text/html", on_click="ignore")
