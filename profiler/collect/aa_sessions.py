"""A/A pairs: sessions of one build, each in a fresh process, and which two of them form a pair."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from profiler.bundles.run import Samples
from profiler.collect import check_and_time
from profiler.collect.gpu.messages import LATENCY, LatencyRequest, TimingRequest
from profiler.collect.jobs import JobContext
from profiler.collect.outcomes import NoResults, TimeOutcome
from profiler.collect.plan import Job

T = TypeVar("T")


class AASessions:
    """The timing jobs of a noise run: those of one session run in one process, workload after workload.

    Starting a process takes longer than timing in it; and so the sessions of one workload, with the others'
    between them, lie as far apart as the collection is long.
    """

    def __init__(self, context: JobContext, planned: Sequence[Job]) -> None:
        self._context, self._planned = context, planned
        self._ready: dict[str, TimeOutcome] = {}  # outcomes of jobs whose turn is yet to come

    def has(self, job: Job) -> bool:
        """Whether the job was timed in the session of an earlier job."""
        return job.key in self._ready

    def outcome(self, job: Job) -> TimeOutcome | NoResults:
        """The job's outcome; the first job of a session times the whole session."""
        if job.key not in self._ready:
            self._ready |= self._run_session(job)
        return self._ready.pop(job.key) if job.key in self._ready else self._context.skip(job)

    def _run_session(self, job: Job) -> dict[str, TimeOutcome]:
        """The outcomes of the session's jobs, by key; a job without a right version has none."""
        begun, ended = time.monotonic(), self._context.staging.outcomes()
        jobs = [
            other
            for other in self._planned
            if (other.stage, other.block) == (job.stage, job.block) and other.key not in ended
        ]
        requests = {other: check_and_time.timing_request(self._context, other) for other in jobs}
        timings = {other: timing for other, timing in requests.items() if timing.versions}
        outcomes = self._time(job, timings) if timings else {}
        share_s = round((time.monotonic() - begun) / len(jobs), 3)
        for outcome in outcomes.values():
            outcome["wall_s"] = share_s
        return outcomes

    def _time(self, job: Job, timings: dict[Job, TimingRequest]) -> dict[str, TimeOutcome]:
        by_label = {
            other.workload: replace(timing, max_seconds=(timing.max_seconds or 0.0) / len(timings))
            for other, timing in timings.items()
        }
        request = LatencyRequest(by_label, self._context.setup)
        folder = self._context.folder(job, "session")
        timed = self._context.run_program(LATENCY, request, folder, job).get("timings", {})
        outcomes = {}
        for other, timing in timings.items():
            if other.workload in timed:
                names = [version.id for version in timing.versions]
                outcome = check_and_time.outcome_of(other, timed[other.workload], names)
            else:  # the process died: time each workload alone, and each version alone where that dies too
                outcome = check_and_time.time_versions(self._context, other, timing)
            if "states" in outcome:
                # Every sample has its clock already, and these states would be the larger part of the run.
                outcome["states"] = {**outcome["states"], "during": []}
            outcomes[other.key] = outcome
        return outcomes


def in_pairs(sessions: Sequence[T]) -> list[T]:
    """The sessions, given in time order, so that the first and second are a pair, the third and fourth, ….

    The two of a pair lie half the collection apart: two runs never follow each other at once, and a GPU that
    warms up or drifts between them is a part of what a floor must hold. An odd last session has no partner.
    """
    half = len(sessions) // 2
    pairs = zip(sessions[:half], sessions[half : 2 * half], strict=True)
    return [*(session for pair in pairs for session in pair), *sessions[2 * half :]]


def paired_samples(timed: Iterable[TimeOutcome], name: str) -> list[Samples]:
    """The samples of a version on one workload, mode by mode, the sessions of each mode in pairs."""
    by_mode: dict[str, list[Samples]] = {}
    for outcome in sorted(timed, key=lambda outcome: outcome["block"]):
        result = outcome["results"].get(name)
        for block in result["samples"] if result else ():
            clocks, ns = tuple(block["clocks_mhz"]), tuple(block["ns"])
            if ns:
                samples = Samples(
                    block["mode"],
                    ns,
                    tuple(block["rounds"]),
                    clocks if len(clocks) == len(ns) else (),
                    tuple(block["throttled"]),
                    (outcome["block"],) * len(ns),
                )
                by_mode.setdefault(samples.mode, []).append(samples)
    return [samples for sessions in by_mode.values() for samples in in_pairs(sessions)]
