"""Finds timed calls that lack a noise floor, and the command that would measure it."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from profiler.bundles.bundle import list_runs, load_run
from profiler.bundles.location import Root
from profiler.bundles.run import NOISE, Run
from profiler.compare.latency import noise_command
from profiler.compare.noise_floor import FloorKey, StoredFloor, find_floor, floors_of_runs
from profiler.errors import ProfilerError
from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS, shorter_ns
from profiler.store.rows import WORKLOAD_CLASSES, workload_class


@dataclass(frozen=True)
class MissingFloor:
    """Timed calls of one workload class on one GPU, in modes without a floor."""

    gpu: str  # "" if unknown
    workload_class: str
    modes: tuple[str, ...]
    pairs: int  # how many A/A pairs there are in the mode with the fewest
    command: str  # a command that measures the missing pairs


def floors_in(root: Root) -> list[StoredFloor]:
    """The floors of a folder's noise runs, without an index; runs that cannot be read are left out."""
    runs = []
    for name in list_runs(root):
        if f"-{NOISE}-" in name:  # only noise runs are worth reading, and their ids say what they are
            with contextlib.suppress(ProfilerError):
                runs.append(load_run(root, name))
    return floors_of_runs(runs)


def missing_floors(
    floors: Sequence[StoredFloor], timed: Mapping[FloorKey, tuple[str, str]]
) -> list[MissingFloor]:
    """The GPUs and workload classes in which calls were timed, but a mode has no floor.

    `timed` has one version and workload for each key (see `noise_floor.timed_keys`).
    """
    pairs: dict[FloorKey, int] = defaultdict(int)  # by any driver
    for floor in floors:
        key = floor.key._replace(driver="")
        pairs[key] = max(pairs[key], floor.floor.pairs)
    modes: dict[tuple[str, str, str], list[FloorKey]] = defaultdict(list)
    for key in timed:
        if pairs[key._replace(driver="")] < MIN_FLOOR_PAIRS:
            modes[key.gpu, key.workload_class, key.family].append(key)
    missing = []
    for (gpu, length, _), lacking in sorted(modes.items(), key=lambda item: _order(*item[0])):
        version, workload = timed[lacking[0]]
        missing.append(
            MissingFloor(
                gpu,
                length,
                tuple(key.mode for key in lacking),
                min(pairs[key._replace(driver="")] for key in lacking),
                noise_command(version.rpartition("/")[2], workload, lacking[0].mode),
            )
        )
    return missing


def calls_without_floor(run: Run, floors: Collection[StoredFloor]) -> str:
    """A sentence on the calls of a run that have no noise floor, with a command; "" where all have one."""
    gpu, driver = (run.provenance.get(name) or "" for name in ("gpu", "driver"))
    judging = {floor.key: floor.floor for floor in floors if floor.judges}
    by_version: dict[str, dict[str, str]] = defaultdict(dict)  # version -> class -> workload
    mode = ""
    for result in run.results:
        for samples in result.samples:
            length = workload_class(shorter_ns(samples.ns, samples.ns))
            floor = find_floor(judging, FloorKey(gpu, samples.mode, length, result.family, driver))
            if result.workload and (floor is None or floor.differs_in):
                by_version[result.version].setdefault(length, result.workload)
                mode = mode or samples.mode
    if not by_version:
        return ""
    # The version with workloads of most classes, so that one command measures as many floors as possible.
    widest = max(by_version, key=lambda name: len(by_version[name]))
    without = {length for classes in by_version.values() for length in classes}
    lengths = ", ".join(length for length in WORKLOAD_CLASSES if length in without)
    command = noise_command(widest, ",".join(dict.fromkeys(by_version[widest].values())), mode)
    return f"no A/A floor for {lengths} calls here, so this run and another stay unclear: {command}"


def _order(gpu: str, length: str, family: str) -> tuple[str, int, str]:
    return gpu, WORKLOAD_CLASSES.index(length), family
