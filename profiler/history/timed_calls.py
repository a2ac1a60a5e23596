"""What a version's calls took, in the mode that all are compared in, beside the floor of its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler.store import LaunchInfo

# The beginnings of modes, the one that says most of real use first. Others come after them.
_PREFERRED = ("events; cache warm", "events; cache cold", "graph replay", "events")


@dataclass(frozen=True)
class Attained:
    """The median latency of one version on one workload and GPU."""

    ns: float
    mode: str  # events; cache warm; clock none
    run_id: str
    floor_ns: float | None = None  # None: its run computed none, as an imported one
    binding: str | None = None  # which floor that is: launch, arithmetic, exponential, memory, wave

    @property
    def gap(self) -> float | None:
        """How many times the floor it takes; None without one."""
        return self.ns / self.floor_ns if self.floor_ns else None


def attained(
    rows: Iterable[LaunchInfo], provenance: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str, str], Attained]:
    """By version, workload and GPU. provenance: of the runs, by id.

    On one workload and GPU all are of one mode, so that no cold call is compared with a warm one; of several
    runs in it the newest counts.
    """
    timed = [row for row in rows if row.kind == "latency" and row.median_ns is not None]
    modes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in timed:
        modes[row.workload or "", row.gpu or ""].add(row.mode)
    chosen = {place: min(there, key=_rank) for place, there in modes.items()}
    found: dict[tuple[str, str, str], Attained] = {}
    for row in sorted(timed, key=lambda one: one.created):
        place = row.workload or "", row.gpu or ""
        if row.mode == chosen[place] and row.median_ns is not None:
            floor_ns, binding = floor_of(provenance.get(row.run_id, {}), place[0], row.mode)
            found[row.version, *place] = Attained(row.median_ns, row.mode, row.run_id, floor_ns, binding)
    return found


def floor_of(provenance: Mapping[str, Any], workload: str, mode: str) -> tuple[float | None, str | None]:
    """The floor of a workload for calls timed in a mode, in ns, and which it is; (None, None): unknown."""
    known = (provenance.get("floors") or {}).get(workload) or {}
    of_timer = (known.get("by_timer") or {}).get(mode.partition(";")[0]) or known
    return of_timer.get("floor_ns"), of_timer.get("binding")


def _rank(mode: str) -> tuple[int, str]:
    return next((at for at, one in enumerate(_PREFERRED) if mode.startswith(one)), len(_PREFERRED)), mode
