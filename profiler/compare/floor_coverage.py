"""Which timed calls have a noise floor of their own build, which lack one, and what would make it."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from profiler.bundles import NOISE, Root, Run, list_runs, load_run
from profiler.compare.latency import noise_command
from profiler.compare.noise_floor import FloorKey, StoredFloor, floors_of_runs
from profiler.errors import ProfilerError
from profiler.statistics import MIN_FLOOR_PAIRS, typical_ns
from profiler.store import WORKLOAD_CLASSES, workload_class


@dataclass(frozen=True)
class MissingFloor:
    """Calls of one length on one GPU that were timed, in modes that have no floor."""

    gpu: str  # "" where nobody says
    workload_class: str
    modes: tuple[str, ...]
    pairs: int  # A/A pairs there are, the fewest of the modes
    command: str  # that collects what lacks

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "gpu": self.gpu or None,
            "class": self.workload_class,
            "modes": list(self.modes),
            "pairs": self.pairs,
            "command": self.command,
        }


def floors_in(root: Root) -> list[StoredFloor]:
    """The floors out of the noise runs of a folder, without an index; what cannot be read is left out."""
    runs = []
    for name in list_runs(root):
        if f"-{NOISE}-" in name:
            with contextlib.suppress(ProfilerError):
                runs.append(load_run(root, name))
    return floors_of_runs(runs)


def missing_floors(
    floors: Sequence[StoredFloor], timed: Mapping[FloorKey, tuple[str, str]]
) -> list[MissingFloor]:
    """The GPUs and classes in which calls were timed and some mode has no floor.

    timed: by key a version and a workload that were timed there.
    """
    pairs = {floor.key: floor.floor.pairs for floor in floors}
    modes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for gpu, mode, length in timed:
        if pairs.get((gpu, mode, length), 0) < MIN_FLOOR_PAIRS:
            modes[gpu, length].append(mode)
    missing = []
    for (gpu, length), lacking in sorted(modes.items(), key=lambda item: _order(*item[0])):
        version, workload = timed[gpu, lacking[0], length]
        missing.append(
            MissingFloor(
                gpu,
                length,
                tuple(lacking),
                min(pairs.get((gpu, mode, length), 0) for mode in lacking),
                noise_command(version.rpartition("/")[2], workload),
            )
        )
    return missing


def calls_without_floor(run: Run, floors: Collection[StoredFloor]) -> str:
    """For which calls of a run no floor says how far equal builds lie apart; empty where all have one."""
    gpu, keys = run.provenance.get("gpu") or "", {floor.key for floor in floors if floor.judges}
    by_version: dict[str, dict[str, str]] = defaultdict(dict)  # version -> class -> workload
    for result in run.results:
        for samples in result.samples:
            length = workload_class(float(typical_ns(samples.ns)))
            if result.workload and (gpu, samples.mode, length) not in keys:
                by_version[result.version].setdefault(length, result.workload)
    if not by_version:
        return ""
    # One version whose workloads together are of the most classes: one command makes the most floors.
    widest = max(by_version, key=lambda name: len(by_version[name]))
    without = {length for classes in by_version.values() for length in classes}
    lengths = ", ".join(length for length in WORKLOAD_CLASSES if length in without)
    command = noise_command(widest, ",".join(dict.fromkeys(by_version[widest].values())))
    return f"no A/A floor for {lengths} calls here, so this run and another stay unclear: {command}"


def _order(gpu: str, length: str) -> tuple[str, int]:
    return gpu, WORKLOAD_CLASSES.index(length)
