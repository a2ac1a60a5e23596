"""What a collection does in which order, how long it takes, and what a time budget leaves out."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profiler.errors import ProfilerError

# In this order for one workload: nothing is timed or captured that is wrong.
STAGES = ("check", "time", "lean", "full", "sanitize", "model")

# Seconds before anything is known of this machine, guesses and no measurements: starting a process with
# torch, starting one under ncu, and what a replay pass costs beside the kernel. `Pace` corrects each by what
# the same stage took before.
START_S = {"check": 6.0, "time": 6.0, "lean": 12.0, "full": 15.0, "sanitize": 15.0, "model": 2.0}
BUILD_S = 30.0  # all versions side by side; not bounded by a budget, but counted against it
PASS_S = 0.05
CALL_S = 0.002  # of a call nobody has timed
FLOPS = 2e12  # a second, as the mean of scalar and tensor core versions: larger workloads take longer
PASSES = {"lean": 9, "full": 40}  # where nobody can count them
_BUDGET = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


@dataclass(frozen=True)
class Job:
    """One process: a stage for some versions on one workload."""

    stage: str
    workload: str  # its label
    versions: tuple[str, ...]
    block: int = 0  # of the timing's fresh processes, from 0
    seconds: float = 0.0  # estimate

    @property
    def key(self) -> str:
        """Its name in the staging folder, the same in every run of the same plan."""
        plain = re.sub(r"[^A-Za-z0-9]+", "_", self.workload)
        who = self.versions[0] if len(self.versions) == 1 else f"{len(self.versions)}-versions"
        return f"{self.stage}-{plain}-{self.block}-{who}"

    @property
    def words(self) -> str:
        """The job for a person."""
        who = self.versions[0] if len(self.versions) == 1 else f"{len(self.versions)} versions"
        return f"{self.stage} {who} on {self.workload}"


@dataclass
class Pace:
    """How much longer or shorter this machine takes than the estimates say, stage by stage."""

    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, job: Job, seconds: float) -> None:
        """A job has taken so long."""
        if job.seconds > 0:
            self.ratios[job.stage].append(seconds / job.seconds)

    def seconds(self, job: Job) -> float:
        """What a job will likely take."""
        seen = self.ratios.get(job.stage)
        return job.seconds * (statistics.median(seen) if seen else 1.0)

    def left(self, jobs: Iterable[Job], workers: Mapping[str, int] | None = None) -> float:
        """What all of them will likely take; workers: how many run side by side."""
        at_once = workers or {}
        return sum(self.seconds(job) / at_once.get(job.stage, 1) for job in jobs)


def parse_budget(text: str) -> float:
    """Seconds in `8m`, `90s`, `1h30m` or `480`. Raises ProfilerError."""
    match = _BUDGET.fullmatch(text.strip())
    if not match or not any(match.groups()):
        raise ProfilerError(f"--budget {text!r}: write 8m, 90s or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def plan_jobs(
    versions: Sequence[str],
    workloads: Sequence[str],
    *,
    takes: Mapping[str, Sequence[str]],
    full: Sequence[str] = (),
    full_on: Sequence[str] = (),
    blocks: int = 3,
    rounds: int = 25,
    samples: int = 4,
    modes: int = 2,
    passes: Mapping[str, int | None] | None = None,
    sanitize: Sequence[str] = (),
    model: Sequence[str] = (),
    call_s: Mapping[tuple[str, str], float] | None = None,
) -> list[Job]:
    """All jobs, the most valuable first. takes: the versions of each workload.

    The first workload is checked, timed and captured before the second is touched: a run that is cut short
    then has whole rows. Full captures, the sanitizer and the CPU model come last.
    """
    known = call_s or {}
    count = {stage: (passes or {}).get(stage) or PASSES[stage] for stage in PASSES}

    def work(stage: str, label: str, names: Sequence[str]) -> float:
        one = sum(known.get((name, label), CALL_S) for name in names)
        if stage == "time":
            return START_S[stage] + one * rounds / max(1, blocks) * samples * modes + 0.3 * len(names)
        if stage in count:
            return START_S[stage] + count[stage] * (one + PASS_S * len(names))
        return START_S[stage] + one * 10

    planned = []
    for label in workloads:
        names = [name for name in versions if name in takes[label]]
        if not names:
            continue
        planned += [Job("check", label, (name,), 0, work("check", label, (name,))) for name in names]
        seconds = work("time", label, names)
        planned += [Job("time", label, tuple(names), block, seconds) for block in range(blocks)]
        planned.append(Job("lean", label, tuple(names), 0, work("lean", label, names)))
    for label in workloads:
        names = [name for name in versions if name in full and name in takes[label]]
        if names and (not full_on or label in full_on):
            planned += [Job("full", label, (name,), 0, work("full", label, (name,))) for name in names]
    if workloads:
        first = workloads[0]
        planned += [
            Job("sanitize", first, (name,), 0, work("sanitize", first, (name,)))
            for name in sanitize
            if name in takes[first]
        ]
    planned += [Job("model", "CPU", (name,), 0, START_S["model"] * 3) for name in model]
    return planned


def plan_aa_sessions(
    versions: Sequence[str],
    workloads: Sequence[str],
    *,
    takes: Mapping[str, Sequence[str]],
    pairs: int,
    rounds: int = 25,
    samples: int = 4,
    modes: int = 2,
) -> list[Job]:
    """The jobs of a noise run: every check, then session by session the timing of each workload.

    So all workloads have equally many pairs whenever it is cut short. A session is one process.
    """
    names = {label: tuple(name for name in versions if name in takes[label]) for label in workloads}
    there = [label for label in workloads if names[label]]
    checks = [Job("check", label, (name,), 0, START_S["check"]) for label in there for name in names[label]]
    start = START_S["time"] / max(1, len(there))
    return checks + [
        Job("time", label, names[label], block, start + CALL_S * len(names[label]) * rounds * samples * modes)
        for block in range(2 * pairs)
        for label in there
    ]


def next_batch(todo: Sequence[Job], at_once: Mapping[str, int]) -> list[Job]:
    """The next job; of a stage of which several run side by side, several on one workload."""
    first = todo[0]
    alike = []
    for job in todo[: at_once.get(first.stage, 1)]:
        if (job.stage, job.workload) != (first.stage, first.workload):
            break
        alike.append(job)
    return alike


def forecast(
    planned: Sequence[Job], at_once: Mapping[str, int], budget: float | None = None
) -> list[tuple[Job, float | None]]:
    """Each job with the second at which it would have ended by the estimates; None: the budget leaves it out.

    The clock starts when building does.
    """
    pace, spent, found, todo = Pace(), BUILD_S, [], list(planned)
    while todo:
        batch = next_batch(todo, at_once)
        todo = todo[len(batch) :]
        fitting = [job for job in batch if fits(job, pace, spent, budget)]
        spent += max((pace.seconds(job) for job in fitting), default=0.0)
        found += [(job, spent if job in fitting else None) for job in batch]
    return found


def fits(job: Job, pace: Pace, spent_s: float, budget: float | None) -> bool:
    """Whether a job may still begin. One that does not fit does not stop a shorter one after it."""
    return budget is None or spent_s + pace.seconds(job) <= budget
