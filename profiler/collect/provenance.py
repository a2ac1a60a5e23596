"""What a run says of how it was made: machine, settings, time, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from profiler import __version__
from profiler.build import lower_bounds
from profiler.bundles import NOISE
from profiler.collect import run_inputs
from profiler.collect.collection import Collection
from profiler.reports import redact

Json = dict[str, Any]


def provenance_of(collection: Collection, ended: Mapping[str, Json], dropped: Sequence[str]) -> Json:
    settings, plan = collection.settings, collection.staging.plan
    sessions, last = collection.staging.sessions() or [collection.session_note()], last_session(collection)
    machine = run_inputs.measured_on(sessions) or collection.machine.facts()
    gpu = machine.get("gpu") or {}
    timed = [one for one in ended.values() if one["stage"] == "time" and one.get("states")]
    launch = _launch_ns(timed)
    took: dict[str, float] = {}
    for one in sessions:
        for stage, seconds in (one.get("processes_s") or {}).items():
            took[stage] = round(took.get(stage, 0.0) + seconds, 3)
    known: Json = {
        "created_from": "clock",
        "purpose": NOISE if settings.pairs else None,
        "command_line": settings.command_line,
        "profiler": __version__,
        "python": machine.get("python"),
        "torch": machine.get("torch"),
        "gpu": gpu.get("name"),
        "gpu_uuid": gpu.get("uuid"),
        "compute_capability": gpu.get("compute_capability"),
        "driver": gpu.get("driver"),
        "cuda": gpu.get("cuda"),
        "ncu_version": machine.get("ncu_version"),
        "nvcc": machine.get("nvcc"),
        "clock_control": settings.clock_control,
        "cache_control": settings.cache_control,
        "compile_flags": list(collection.catalog.compile_flags),
        "settings": {
            "rounds": settings.rounds,
            "samples": settings.samples,
            **({"pairs": settings.pairs} if settings.pairs else {"processes": settings.processes}),
            "seed": settings.seed,
        },
        "states": [one["states"] for one in timed],
        "device": gpu or None,
        "degraded": [*(last.get("missing") or ()), *_not_modelled(ended)],
        "left_out": sorted(
            {
                f"{job.words}: {reason_left_out(collection, job.key)}"
                for job in collection.planned
                if job.key not in ended
            }
            | {f"{name}: more than fits into the file" for name in dropped}
        ),
        "sessions": len(sessions),
        "wall_s": round(sum(one.get("wall_s") or 0.0 for one in sessions), 1) or None,
        "processes_s": took,
        "launch_ns": launch,
        "floors": {
            label: lower_bounds.bounds_by_timer(collection.context.problem, workload, gpu, launch)
            for label, workload in collection.context.workloads.items()
        }
        if gpu
        else None,
        **plan.get("git", {}),
    }
    kept = {name: value for name, value in known.items() if value not in (None, [], {}, "")}
    if settings.keep_session:
        return {**kept, "host": machine.get("host")}
    return {name: hide_private(value) for name, value in kept.items()}


def reason_left_out(collection: Collection, key: str) -> str:
    left_out: Mapping[str, str] = last_session(collection)["left_out"]
    return left_out.get(key, "not done: the run was sealed before")


def last_session(collection: Collection) -> Json:
    """What the last session says: of this process, or, where it only seals, of the one that measured."""
    before = collection.staging.sessions()
    if collection.left_out or not before:
        return collection.session_note()
    return before[-1]


def _not_modelled(ended: Mapping[str, Json]) -> list[str]:
    """Why versions have no facts of the CPU's model although it was tried, a sentence a reason."""
    names: dict[str, list[str]] = {}
    for one in ended.values():
        if one["stage"] == "model" and one["status"] in ("failed", "skipped"):
            names.setdefault(str(one.get("reason") or "no reason was given"), []).extend(one["versions"])
    return [f"no CPU model of {', '.join(of)}: {reason}" for reason, of in names.items()]


def _launch_ns(timed: Sequence[Json]) -> Json:
    """What an empty launch took by each clock, the least of all processes."""
    found: dict[str, float] = {}
    for one in timed:
        for clock, ns in (one.get("launch_ns") or {}).items():
            if ns:
                found[clock] = min(float(ns), found.get(clock, float("inf")))
    return found


def hide_private(value: Any) -> Any:
    """The value without what names this machine or its user, at any depth."""
    if isinstance(value, str):
        for word in sorted(redact.private_words(), key=len, reverse=True):
            value = value.replace(word, "…")
        return value
    if isinstance(value, dict):
        return {key: hide_private(one) for key, one in value.items()}
    return [hide_private(one) for one in value] if isinstance(value, list) else value


def overhead(provenance: Mapping[str, Any]) -> tuple[float, float] | None:
    """The wall time as a multiple of all processes that the collection needed, and of timing and ncu alone.

    None where nothing was timed or captured, or the run does not say.
    """
    wall, took = provenance.get("wall_s"), provenance.get("processes_s") or {}
    bare = sum(took.get(stage, 0.0) for stage in ("time", "lean", "full"))
    return (wall / sum(took.values()), wall / bare) if wall and bare else None
