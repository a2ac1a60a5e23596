"""How A/A pairs come about: sessions of one build, a fresh process each, and which two of them are a pair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from profiler.bundles import Samples
from profiler.collect import check_and_time
from profiler.collect.jobs import JobContext, Json
from profiler.collect.plan import Job

T = TypeVar("T")


class AASessions:
    """The timing jobs of a noise run: those of one session run in one process, workload after workload.

    Starting a process takes longer than timing in it; and so the sessions of one workload, with the others'
    between them, lie as far apart as the collection is long.
    """

    def __init__(self, context: JobContext, planned: Sequence[Job]) -> None:
        self._context, self._planned = context, planned
        self._ahead: dict[str, Json] = {}  # outcomes of jobs whose turn is yet to come

    def has(self, job: Job) -> bool:
        """Whether the job's outcome is there already."""
        return job.key in self._ahead

    def outcome(self, job: Job) -> Json:
        """The job's outcome, and with it those of the same session that have not ended."""
        if job.key not in self._ahead:
            self._ahead |= self._session(job)
        return self._ahead.pop(job.key) if job.key in self._ahead else self._context.nobody(job)

    def _session(self, job: Job) -> dict[str, Json]:
        begun, ended = time.monotonic(), self._context.staging.outcomes()
        wanted = [one for one in self._planned if _alike(one, job) and one.key not in ended]
        asked = {one: check_and_time.timing_request(self._context, one) for one in wanted}
        todo = {one: found for one, found in asked.items() if found[0]}
        outcomes = self._timed(job, todo) if todo else {}
        share = (time.monotonic() - begun) / len(wanted)
        return {key: {**outcome, "wall_s": round(share, 3)} for key, outcome in outcomes.items()}

    def _timed(self, job: Job, todo: dict[Job, tuple[list[str], Json]]) -> dict[str, Json]:
        parts = {
            one.workload: {**request, "max_seconds": request["max_seconds"] / len(todo)}
            for one, (_, request) in todo.items()
        }
        folder = self._context.folder(job, "session")
        result = self._context.stage("latencies", {"parts": parts}, folder, job)
        outcomes = {}
        for one, (names, request) in todo.items():
            part = result.get("parts", {}).get(one.workload)
            if part is not None:
                own = part.get("versions") or {name: check_and_time.untimed(part) for name in names}
                outcomes[one.key] = {**check_and_time.stage_facts(part), "results": own}
            else:  # the process died: each workload by itself, and each version where that dies too
                outcomes[one.key] = check_and_time.time_versions(self._context, one, names, request)
            if states := outcomes[one.key].get("states"):
                states["during"] = []  # the clock stands with every sample; this would be the larger part
        return outcomes


def _alike(one: Job, job: Job) -> bool:
    return (one.stage, one.block) == (job.stage, job.block)


def in_pairs(sessions: Sequence[T]) -> list[T]:
    """The sessions, given in time order, so that the first and second are a pair, the third and fourth, ….

    The two of a pair lie half the collection apart: two runs never follow each other at once, and a GPU that
    warms up or drifts between them is a part of what a floor must hold. An odd last one has nobody.
    """
    half = len(sessions) // 2
    paired = [one for pair in zip(sessions[:half], sessions[half : 2 * half], strict=True) for one in pair]
    return [*paired, *sessions[2 * half :]]


def samples(timed: Sequence[Json], name: str) -> list[Samples]:
    """The sessions of a version on one workload, mode by mode, each mode's in pairs."""
    by_mode: dict[str, list[Samples]] = {}
    for outcome in sorted(timed, key=lambda one: one["block"]):
        for block in outcome["results"].get(name, {}).get("samples", ()):
            clocks, ns = tuple(block["clocks_mhz"]), tuple(block["ns"])
            if ns:
                found = Samples(
                    block["mode"],
                    ns,
                    tuple(block["rounds"]),
                    clocks if len(clocks) == len(ns) else (),
                    tuple(block["throttled"]),
                )
                by_mode.setdefault(found.mode, []).append(found)
    return [one for sessions in by_mode.values() for one in in_pairs(sessions)]
