"""How noise floors read: those that are there, and the calls that lack one, with what makes it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from profiler.bundles import Run
from profiler.cli.output import print_table
from profiler.compare import StoredFloor, noise_command
from profiler.compare.noise_floor import FloorKey
from profiler.statistics import MIN_FLOOR_PAIRS, share_text, typical_ns
from profiler.store import WORKLOAD_CLASSES, workload_class

HEAD = ("GPU", "mode", "calls", "A/A pairs", "floor", "detectable", "of")


def print_floors(found: Sequence[StoredFloor]) -> None:
    """A row a floor; one of few pairs says how many it needs."""
    print_table(HEAD, [_row(one) for one in found], right=(3, 4, 5))


def _row(one: StoredFloor) -> tuple[str, ...]:
    pairs = str(one.floor.pairs) if one.judges else f"{one.floor.pairs} of {MIN_FLOOR_PAIRS}"
    sizes = ("–", "–")
    if one.judges:
        sizes = (f"±{share_text(math.expm1(one.floor.limit))}", share_text(one.floor.detectable()))
    of = f"{', '.join(one.versions)} on {', '.join(one.workloads) or 'no workload named'}"
    return (one.gpu or "unknown GPU", one.mode, one.workload_class, pairs, *sizes, of)


def document(one: StoredFloor) -> dict[str, object]:
    """A floor as JSON; limit and detectable are shares of a latency, null where there are too few pairs."""
    return {
        "gpu": one.gpu or None,
        "mode": one.mode,
        "class": one.workload_class,
        "pairs": one.floor.pairs,
        "needed": MIN_FLOOR_PAIRS,
        "limit": math.expm1(one.floor.limit) if one.judges else None,
        "detectable": one.floor.detectable() if one.judges else None,
        "versions": one.versions,
        "workloads": one.workloads,
        "runs": one.runs,
        "until": one.until.isoformat(),
    }


def missing(found: Sequence[StoredFloor], timed: Mapping[FloorKey, tuple[str, str]]) -> list[dict[str, Any]]:
    """The GPUs and classes in which calls were timed and some mode has no floor, each with what makes it."""
    there = {one.key: one.floor.pairs for one in found}
    modes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for gpu, mode, length in timed:
        if there.get((gpu, mode, length), 0) < MIN_FLOOR_PAIRS:
            modes[gpu, length].append(mode)
    lacking: list[dict[str, Any]] = []
    for (gpu, length), some in sorted(modes.items(), key=lambda one: _in_order(*one[0])):
        version, workload = timed[gpu, some[0], length]
        lacking.append(
            {
                "gpu": gpu or None,
                "class": length,
                "modes": some,
                "pairs": min(there.get((gpu, mode, length), 0) for mode in some),
                "command": noise_command(version.rpartition("/")[2], workload),
            }
        )
    return lacking


def lacking(run: Run, floors: Collection[StoredFloor]) -> str:
    """For which calls of a run no floor says how far equal builds lie apart; empty where all have one."""
    gpu, there = run.provenance.get("gpu") or "", {one.key for one in floors if one.judges}
    by_version: dict[str, dict[str, str]] = defaultdict(dict)  # version -> class -> workload
    for result in run.results:
        for one in result.samples:
            length = workload_class(float(typical_ns(one.ns)))
            if result.workload and (gpu, one.mode, length) not in there:
                by_version[result.version].setdefault(length, result.workload)
    if not by_version:
        return ""
    most = max(by_version, key=lambda name: len(by_version[name]))
    every = {length for known in by_version.values() for length in known}
    lengths = ", ".join(length for length in WORKLOAD_CLASSES if length in every)
    command = noise_command(most, ",".join(dict.fromkeys(by_version[most].values())))
    return f"no A/A floor for {lengths} calls here, so this run and another stay unclear: {command}"


def _in_order(gpu: str, length: str) -> tuple[str, int]:
    return gpu, WORKLOAD_CLASSES.index(length)
