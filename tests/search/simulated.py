"""A judge for tests: the modelled facts of v2d.cu's macros as they once came out, and candidates of any time.

python -m tests.search.simulated kills FOLDER      # workers that are killed; see test_worker.py
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from profiler.bundles.location import LocalRoot
from profiler.evidence.values import Evidence
from profiler.judge.judgement import CandidateJudgement, StageResult, StageState, WorkloadTime
from profiler.judge.manifest import read_manifest
from profiler.search.begin import new_search
from profiler.search.evaluation import Progress, Screening
from profiler.search.journal import Journal
from profiler.search.named_generator import load_generator
from profiler.search.record import SearchRecord
from profiler.search.worker import Worker, WorkerLimits

LANDSCAPE = Path(__file__).resolve().parent.parent.parent / "bench" / "search_landscape.json"
WORKLOAD = "2x8x2048x64"
GPU = "H100-SXM"
BUDGET = 99 << 10  # bytes of shared memory, as the versions have it
LAST_EVENT = 200  # of a worker that is killed; a candidate takes about 80, a start 45


@cache
def landscape() -> dict[str, dict[str, Any]]:
    """What was modelled of each combination of macros, by the combination."""
    rows = json.loads(LANDSCAPE.read_text("utf-8"))["rows"]
    return {macro_key(row["macros"]): row for row in rows}


def macro_key(macros: Mapping[str, str]) -> str:
    """A combination of macros as one word."""
    return " ".join(f"{name}={macros[name]}" for name in sorted(macros))


class LandscapeJudge:
    """Judges by the landscape in no time. What does not compile or fit is refused, as it was."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self._pause_s = pause_s

    def _row(self, folder: Path) -> dict[str, Any] | None:
        flags = read_manifest(folder / "candidate.toml").flags
        return landscape().get(macro_key(dict(flag[2:].split("=") for flag in flags)))

    def screen(self, folder: Path) -> Screening:
        time.sleep(self._pause_s)
        row = self._row(folder)
        if row is None:
            return Screening(failed="nobody knows this combination")
        if row["failed"] or row["time"] is None:
            return Screening(row["code_id"], None, row["facts"], row["failed"])
        return Screening(row["code_id"], modelled(row["time"]["likely_ns"], row["time"]), row["facts"])

    def judge(self, folder: Path, rival: Path | None, progress: Progress) -> CandidateJudgement:
        time.sleep(self._pause_s)
        row = self._row(folder)
        assert row is not None
        assert row["time"] is not None
        found = judged(folder.name, row["code_id"], (modelled(row["time"]["likely_ns"], row["time"]),))
        if row["facts"]["shared_bytes"] <= BUDGET:
            return found
        reason = f"shared bytes {row['facts']['shared_bytes']} over {BUDGET}"
        stages = (
            StageResult("compile", StageState.PASSED, 0.0),
            StageResult("budget", StageState.FAILED, 0.0),
        )
        return replace(found, valid=False, reason=f"budget: {reason}", stages=stages, times=())


def modelled(
    ns: float | None, row: Mapping[str, Any] | None = None, workload: str = WORKLOAD
) -> WorkloadTime:
    """A modelled time, with the other fields of a row where there is one."""
    row = row or {}
    low, high = (None, None) if ns is None else (ns / 1.5, ns * 1.5)
    return WorkloadTime(
        workload,
        Evidence.MODELLED,
        ns,
        row.get("low_ns", low),
        row.get("high_ns", high),
        row.get("floor_ns", 1000.0),
        str(row.get("limiter", "")),
    )


def judged(name: str, code_id: str, times: tuple[WorkloadTime, ...], **changes: Any) -> CandidateJudgement:
    """A judgement of a candidate that is right."""
    stages = (StageResult("compile", StageState.PASSED, 0.0), StageResult("unseen", StageState.PASSED, 0.0))
    found = CandidateJudgement(name, name, "attention", GPU, code_id, True, "", stages, times)
    return replace(found, **changes)


def code_of(text: str) -> str:
    """A hash that stands for machine code."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_search(folder: Path, *, seed: int = 1, generator: str = "flags", **options: Any) -> Journal:
    """A new search from v2d_a on one workload, in a data folder."""
    root = LocalRoot(folder)
    return new_search(
        root, "attention", generator, version="v2d_a", workloads=[WORKLOAD], seed=seed, **options
    )


def run_search(journal: Journal, total: int, judge: Any = None, generator: Any = None) -> str:
    """Work on a search until it has that many candidates beside its seed."""
    worker = Worker(journal, judge or LandscapeJudge(), generator or load_generator("flags", 10))
    return worker.run(WorkerLimits(total=total))


def summary(journal: Journal) -> dict[str, Any]:
    """What a search amounts to, without times of day and what its parts took."""
    archive = Journal(journal.folder).archive()

    def without_clock(record: SearchRecord) -> SearchRecord:
        return replace(record, order=0, created="", seconds={})

    return {
        "records": [without_clock(record) for record in sorted(archive.records, key=lambda r: r.number)],
        "elites": [record.name for record in archive.elites],
        "changes": archive.changes,
    }


def kill_workers(journal: Journal, total: int, kills: int, seed: int) -> int:
    """Workers, one at a time, each ended by SIGKILL at one of the things that it does; how many were.

    Not at moments of time: a fast machine would be through with all candidates before the kills are.
    """
    rng, met = random.Random(seed), 0
    while met < kills and len(Journal(journal.folder).records()) <= total:
        kill_at = rng.randrange(1, LAST_EVENT)
        pid = os.fork()
        if pid == 0:
            try:
                _end_at_event(kill_at)
                run_search(Journal(journal.folder), total, LandscapeJudge(0.004))
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        met += os.WIFSIGNALED(status)
    return met


def _end_at_event(kill_at: int) -> None:
    """Kill this process at its nth access to files, or nap."""
    events = 0

    def count(event: str, _: tuple[Any, ...]) -> None:
        nonlocal events
        events += event.startswith(("open", "os.", "time.sleep"))
        if events == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def work_together(journal: Journal, total: int, workers: int) -> None:
    """Several workers at a time."""
    pids = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            try:
                run_search(Journal(journal.folder), total, LandscapeJudge(0.004))
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


if __name__ == "__main__":  # a process without threads, which may be forked
    place = Journal(Path(sys.argv[2]))
    if sys.argv[1] == "kills":
        print(kill_workers(place, int(sys.argv[3]), int(sys.argv[4]), 1))
    else:
        work_together(place, int(sys.argv[3]), int(sys.argv[4]))
