"""Runs with timed calls that tests make: seeded rounds of a simulated GPU, and A/A pairs for a floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, NOISE, Facts, Result, Run, Samples
from profiler.evidence.values import Evidence, Value

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WARM, COLD = "events; cache warm; clock none", "events; cache cold; clock none"
GPU, WORKLOAD, FAMILY = "NVIDIA H100", "2x8x2048x64", "flash"
HERE = {"gpu": GPU, "compute_capability": "9.0", "driver": "570.1", "cuda": "13.0", "nvcc": "13.0.88"}


def rounds(
    levels: Mapping[str, float],
    seed: int,
    *,
    count: int = 25,
    each: int = 4,
    mode: str = WARM,
    throttled: Sequence[int] = (),
) -> dict[str, Samples]:
    """Alternating rounds of several versions by their level in ns.

    Both sides of a round share a state that wanders by 2 %, each sample jitters by 0.4 % and one in fifty is
    far out; `throttled` names rounds that a throttled GPU made 15 % slower.
    """
    rng = np.random.default_rng(seed)
    state = 1 + 0.02 * np.cumsum(rng.normal(0, 0.3, count)) / np.sqrt(count)
    slow = np.isin(np.arange(count), list(throttled))
    numbers = np.repeat(np.arange(count), each)
    found = {}
    for version, level in levels.items():
        jitter = np.exp(rng.normal(0, 0.004, count * each)) * np.where(
            rng.random(count * each) < 0.02, 1.06, 1
        )
        ns = level * np.repeat(state * np.where(slow, 1.15, 1.0), each) * jitter
        places = tuple(np.flatnonzero(np.repeat(slow, each)).tolist())
        found[version] = Samples(mode, tuple(ns.tolist()), tuple(numbers.tolist()), (), places)
    return found


def static(sass: str, values: Mapping[str, float] | None = None) -> Facts:
    """The hash of the machine code, and what else the compiler says."""
    told = {"static__sass_sha256": Value(None, text=sass)}
    told |= {name: Value(number) for name, number in (values or {}).items()}
    return Facts(Evidence.STATIC, "main", told, target="sm_90a")


def run(
    levels: Mapping[str, float],
    day: float,
    *,
    seed: int | None = None,
    modes: Sequence[str] = (WARM,),
    sass: Mapping[str, str] | None = None,
    facts: Mapping[str, Mapping[str, float]] | None = None,
    told: Mapping[str, Any] | None = None,
    throttled: Sequence[int] = (),
    family: str = FAMILY,
    workload: str = WORKLOAD,
) -> Run:
    """One collection of the versions at their levels in ns, made `day` days after START."""
    seed = round(day * 97) if seed is None else seed
    timed = [
        rounds(levels, seed + 1000 * place, mode=mode, throttled=throttled)
        for place, mode in enumerate(modes)
    ]
    results = tuple(
        Result(
            family,
            version,
            workload,
            {"dtype": "fp16"},
            source_sha256=(sass or {}).get(version, version),
            samples=tuple(by_version[version] for by_version in timed),
            facts=(static((sass or {}).get(version, version), (facts or {}).get(version)),),
        )
        for version in levels
    )
    created = START + timedelta(days=day)
    name = f"{created:%Y%m%dT%H%M%S}-{family}-{'-'.join(levels)[:60]}"
    return Run(name, COLLECT, created, {**HERE, **(told or {})}, results)


def noise(level: float, sd: float, *, pairs: int = 50, seed: int = 7, mode: str = WARM) -> Run:
    """Sessions of one build, two after two: their log-ratios have a standard deviation of `sd`."""
    rng = np.random.default_rng(seed)
    sessions = []
    for at in np.exp(rng.normal(0, sd / np.sqrt(2), 2 * pairs)):
        (samples,) = rounds({"x": level * at}, int(at * 1e9) % 99991, mode=mode, each=2, count=10).values()
        sessions.append(samples)
    result = Result(FAMILY, "v1", WORKLOAD, {"dtype": "fp16"}, source_sha256="v1", samples=tuple(sessions))
    created = START - timedelta(days=1)
    return Run(f"{created:%Y%m%dT%H%M%S}-noise", COLLECT, created, {**HERE, "purpose": NOISE}, (result,))


def seal(folder: Path, *runs: Run) -> Path:
    """Put runs into a data folder."""
    root = location.open_root(str(folder))
    for one in runs:
        with bundle.importing(root):
            assert bundle.seal(root, one, {})
    return folder
