"""The provenance of a collected run: machine, settings, time, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profiler.build import lower_bounds
from profiler.bundles.run import NOISE
from profiler.collect.collection import Collection
from profiler.collect.outcomes import FactsOutcome, Outcomes, SessionNote, TimeOutcome
from profiler.collect.run_inputs import measured_on
from profiler.package import VERSION
from profiler.reports import redact

Json = dict[str, Any]


def make_provenance(collection: Collection, outcomes: Outcomes, dropped: Sequence[str]) -> Json:
    """The provenance of the run made of these outcomes. dropped: names of reports that did not fit."""
    settings, inputs = collection.settings, collection.inputs
    sessions = collection.staging.sessions() or [collection.session_note()]
    machine = measured_on(sessions) or collection.machine.facts()
    gpu = machine.get("gpu") or {}
    timed = [outcome for outcome in outcomes.timings.values() if outcome.get("states")]
    launch_ns = _least_launch_ns(timed)
    known: Json = {
        "created_from": "clock",
        "purpose": NOISE if settings.pairs else None,
        "command_line": settings.command_line,
        "profiler": VERSION,
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
            "order": "random in each round",
        },
        "states": [outcome["states"] for outcome in timed],
        "device": gpu or None,
        "degraded": [*last_session(collection).get("missing", ()), *_not_modelled(outcomes.facts.values())],
        "left_out": _left_out(collection, outcomes, dropped),
        "sessions": len(sessions),
        "wall_s": round(sum(session.get("wall_s") or 0.0 for session in sessions), 1) or None,
        "processes_s": _processes_s(sessions),
        "launch_ns": launch_ns,
        "floors": {
            label: lower_bounds.bounds_by_timer(
                collection.context.selection.problem, workload, gpu, launch_ns
            )
            for label, workload in collection.context.selection.workloads.items()
        }
        if gpu
        else None,
        **inputs.git,
    }
    provenance = {name: value for name, value in known.items() if value not in (None, [], {}, "")}
    if settings.keep_session:
        return {**provenance, "host": machine.get("host")}
    return {name: hide_private(value) for name, value in provenance.items()}


def last_session(collection: Collection) -> SessionNote:
    """The note of the last session that measured: of this process, unless it only seals."""
    before = collection.staging.sessions()
    if collection.left_out or not before:
        return collection.session_note()
    return before[-1]


def why_left_out(collection: Collection, key: str) -> str:
    """Why a job has not ended."""
    return last_session(collection).get("left_out", {}).get(key, "not done: the run was sealed before")


def _left_out(collection: Collection, outcomes: Outcomes, dropped: Sequence[str]) -> list[str]:
    """The jobs that have not ended and the reports that did not fit, each with its reason."""
    jobs = {
        f"{job.words}: {why_left_out(collection, job.key)}"
        for job in collection.planned
        if job.key not in outcomes
    }
    return sorted(jobs | {f"{name}: more than fits into the file" for name in dropped})


def _processes_s(sessions: Iterable[SessionNote]) -> dict[str, float]:
    """Seconds that processes of each stage took in all sessions."""
    total: dict[str, float] = {}
    for session in sessions:
        for stage, seconds in session.get("processes_s", {}).items():
            total[stage] = round(total.get(stage, 0.0) + seconds, 3)
    return total


def _not_modelled(outcomes: Iterable[FactsOutcome]) -> list[str]:
    """Why versions have no modelled facts although the CPU check was tried: a sentence per reason."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome["stage"] == "model" and outcome["status"] in ("failed", "skipped"):
            reason = str(outcome["reason"] or "no reason was given")
            names.setdefault(reason, []).extend(outcome.get("versions", ()))
    return [f"no CPU model of {', '.join(versions)}: {reason}" for reason, versions in names.items()]


def _least_launch_ns(timed: Iterable[TimeOutcome]) -> dict[str, float]:
    """The time of an empty launch by each timer, the least of all processes."""
    least: dict[str, float] = {}
    for outcome in timed:
        for clock, ns in outcome.get("launch_ns", {}).items():
            if ns:
                least[clock] = min(float(ns), least.get(clock, float("inf")))
    return least


def hide_private(value: Any) -> Any:
    """The value without what identifies this machine or its user, at any depth."""
    if isinstance(value, str):
        for word in sorted(redact.private_words(), key=len, reverse=True):
            value = value.replace(word, "…")
        return value
    if isinstance(value, dict):
        return {key: hide_private(item) for key, item in value.items()}
    return [hide_private(item) for item in value] if isinstance(value, list) else value


def overhead(provenance: Mapping[str, Any]) -> tuple[float, float] | None:
    """The wall time as a multiple of the time of all processes, and of timing and ncu alone.

    None where nothing was timed or captured, or the run does not say.
    """
    wall_s, processes_s = provenance.get("wall_s"), provenance.get("processes_s") or {}
    bare_s = sum(processes_s.get(stage, 0.0) for stage in ("time", "lean", "full"))
    return (wall_s / sum(processes_s.values()), wall_s / bare_s) if wall_s and bare_s else None
