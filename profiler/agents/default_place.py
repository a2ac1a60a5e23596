"""Where a version is shown that was looked at in several places, and nobody said which: at the headline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.catalog.catalog import load_catalog
from profiler.catalog.problem import acceptance_workloads
from profiler.catalog.sources import load_problem
from profiler.compare.resolve_names import find_run, resolve_family_version
from profiler.errors import ProfilerError
from profiler.evidence.cell import Cell
from profiler.evidence.gpu_parts import DEFAULT_PART, find_part
from profiler.evidence.values import Evidence

if TYPE_CHECKING:
    from profiler.store.index import Store


@dataclass(frozen=True)
class ChosenPlace:
    """The place that is shown, and of how many."""

    place: Cell
    count: int
    headline: str

    @property
    def sentence(self) -> str:
        """What was chosen, and how to choose another."""
        where = " on ".join(filter(None, (self.place.workload, self.place.gpu)))
        return (
            f"Shown is {where} ({self.place.evidence}), the nearest to the headline {self.headline} of "
            f"{self.count} places: workload and gpu choose another."
        )


def choose_place(store: Store, name: str) -> ChosenPlace | None:
    """The place of a version nearest to its headline workload; None where there is one place, or no version.

    Measured before static before modelled: what was modelled was so on small workloads for a check.
    """
    if find_run(store, name):
        return None
    try:
        family, version = resolve_family_version(store, name)
        catalog = load_catalog()
        if catalog.family != family:
            return None
        headline = acceptance_workloads(load_problem(catalog), ["fp16"], (64, 128))[0]
    except (ProfilerError, IndexError):
        return None
    rows = store.results(family=family, version=version)
    places = list(
        dict.fromkeys(
            Cell(workload=row.workload or "", gpu=row.gpu or "", evidence=row.evidence) for row in rows
        )
    )
    if len(places) < 2:
        return None
    size = headline.sizes().get("head_dim")
    arch = find_part(DEFAULT_PART).arch

    def distance(place: Cell) -> tuple[int, bool, bool, bool]:
        kinds: Sequence[Evidence] = (Evidence.MEASURED, Evidence.STATIC, Evidence.MODELLED)
        is_near = place.workload in (headline.label, f"head dim {size}")
        has_size = bool(re.search(rf"x{size}\b", place.workload))
        return kinds.index(place.evidence), not is_near, not has_size, not place.gpu.startswith(arch)

    return ChosenPlace(min(places, key=distance), len(places), headline.label)
