"""The jobs of a collection in their order, how long they take, and which of them a time budget leaves out."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profiler.catalog.cases import flops_of
from profiler.collect import sample_schedule
from profiler.collect.settings import Selection, Settings
from profiler.errors import ProfilerError

# In this order for one workload: a wrong version is neither timed nor captured.
STAGES = ("check", "time", "lean", "full", "sanitize", "model")

# Estimates in seconds, not measurements: starting a process with torch, starting one under ncu, and what a
# replay pass costs beside the kernel. `Pace` corrects each by what the same stage took before.
START_S = {"check": 6.0, "time": 6.0, "lean": 12.0, "full": 15.0, "sanitize": 15.0, "model": 2.0}
BUILD_S = 30.0  # all versions side by side; a budget does not limit building, but includes it
PASS_S = 0.05
CALL_S = 0.002  # of a call that has not been timed
PREPARE_S = 0.3  # for a version before it is timed
FLOPS_PER_S = 2e12  # the mean of scalar and tensor core versions: larger workloads take longer
PASSES = {"lean": 9, "full": 40}  # where they cannot be counted
MODES = 2  # cold and warm
FEWEST_PROCESSES = 5  # t of 4 degrees of freedom is 4.6 for 99 %; of 2 it is 9.9
TIMING_SHARE, TIMING_S = 1 / 3, 600.0  # for starting the processes: of a budget, and without one
_BUDGET = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


@dataclass(frozen=True)
class Job:
    """One process: a stage for some versions on one workload."""

    stage: str
    workload: str  # its label
    versions: tuple[str, ...]
    block: int = 0  # number of the timing process, from 0
    seconds: float = 0.0  # estimate

    @property
    def key(self) -> str:
        """The job's name in the staging folder, the same whenever the run is resumed."""
        workload = re.sub(r"[^A-Za-z0-9]+", "_", self.workload)
        versions = self.versions[0] if len(self.versions) == 1 else f"{len(self.versions)}-versions"
        return f"{self.stage}-{workload}-{self.block}-{versions}"

    @property
    def words(self) -> str:
        """The job in words, for messages."""
        versions = self.versions[0] if len(self.versions) == 1 else f"{len(self.versions)} versions"
        return f"{self.stage} {versions} on {self.workload}"


def check_key(version: str, workload: str) -> str:
    """The key of the job that checks a version on a workload."""
    return Job("check", workload, (version,)).key


# ---------------------------------------------------------------- which jobs


def plan_run(settings: Settings, selection: Selection, passes: Mapping[str, int | None]) -> list[Job]:
    """All jobs of a run, the most valuable first. passes: replay passes by tier, where they are known."""
    takes = {label: selection.taking(label) for label in selection.workloads}
    if settings.pairs:
        return plan_aa_sessions(takes, pairs=settings.pairs, rounds=settings.rounds, samples=settings.samples)
    call_s = {
        (name, label): flops_of(selection.problem, workload) / FLOPS_PER_S
        for label, workload in selection.workloads.items()
        for name in takes[label]
    }
    return plan_jobs(
        takes,
        full=settings.full if settings.counters else (),
        full_on=settings.full_on,
        blocks=len(sample_schedule.blocks(settings.rounds, settings.processes)),
        rounds=settings.rounds,
        samples=settings.samples,
        passes=passes,
        sanitize=settings.sanitize,
        model=settings.model,
        call_s=call_s,
    )


def fresh_processes(settings: Settings, selection: Selection, budget_s: float | None = None) -> int:
    """How many processes the rounds are spread over: as many as there are rounds, if the time allows.

    Only processes are independent values, and starting one costs more than a round in it. Starting them and
    preparing versions takes TIMING_SHARE of a budget or, without one, TIMING_S; never fewer than FEWEST.
    """
    starts_s = sum(
        START_S["time"] + PREPARE_S * len(names)
        for label in selection.workloads
        if (names := selection.taking(label))
    )
    affordable = int((TIMING_SHARE * budget_s if budget_s else TIMING_S) / max(starts_s, 1.0))
    return min(settings.rounds, max(FEWEST_PROCESSES, affordable))


def plan_jobs(
    takes: Mapping[str, Sequence[str]],
    *,
    full: Sequence[str] = (),
    full_on: Sequence[str] = (),
    blocks: int = FEWEST_PROCESSES,
    rounds: int = sample_schedule.ROUNDS,
    samples: int = sample_schedule.SAMPLES,
    passes: Mapping[str, int | None] | None = None,
    sanitize: Sequence[str] = (),
    model: Sequence[str] = (),
    call_s: Mapping[tuple[str, str], float] | None = None,
) -> list[Job]:
    """The jobs of a collection. takes: by workload the versions that take it, both in order.

    The first workload is checked, timed and captured before the second is touched: a run that is cut short
    then has whole rows. Full captures, the sanitizer and the CPU model come last. call_s: seconds that a call
    takes, by version and workload.
    """
    known_call_s = call_s or {}
    pass_counts = {tier: (passes or {}).get(tier) or PASSES[tier] for tier in PASSES}

    def job(stage: str, label: str, names: Sequence[str], block: int = 0) -> Job:
        calls_s = sum(known_call_s.get((name, label), CALL_S) for name in names)
        if stage == "time":
            samples_taken = rounds / max(1, blocks) * samples * MODES
            seconds = START_S[stage] + calls_s * samples_taken + PREPARE_S * len(names)
        elif stage in pass_counts:
            seconds = START_S[stage] + pass_counts[stage] * (calls_s + PASS_S * len(names))
        else:
            seconds = START_S[stage] + calls_s * 10
        return Job(stage, label, tuple(names), block, seconds)

    planned = []
    for label, names in takes.items():
        if names:
            planned += [job("check", label, [name]) for name in names]
            planned += [job("time", label, names, block) for block in range(blocks)]
            planned.append(job("lean", label, names))
    for label, names in takes.items():
        if not full_on or label in full_on:
            planned += [job("full", label, [name]) for name in names if name in full]
    for label in list(takes)[:1]:
        planned += [job("sanitize", label, [name]) for name in sanitize if name in takes[label]]
    planned += [Job("model", "CPU", (name,), 0, START_S["model"] * 3) for name in model]
    return planned


def plan_aa_sessions(
    takes: Mapping[str, Sequence[str]],
    *,
    pairs: int,
    rounds: int = sample_schedule.ROUNDS,
    samples: int = sample_schedule.SAMPLES,
) -> list[Job]:
    """The jobs of a noise run: every check, then session by session the timing of each workload.

    So all workloads have equally many pairs whenever it is cut short. A session is one process.
    """
    measured = {label: tuple(names) for label, names in takes.items() if names}
    checks = [
        Job("check", label, (name,), 0, START_S["check"])
        for label, names in measured.items()
        for name in names
    ]
    start_s = START_S["time"] / max(1, len(measured))
    return checks + [
        Job("time", label, names, block, start_s + CALL_S * len(names) * rounds * samples * MODES)
        for block in range(2 * pairs)
        for label, names in measured.items()
    ]


# ---------------------------------------------------------------- how long they take


def parse_budget(text: str) -> float:
    """Seconds in `8m`, `90s`, `1h30m` or `480`. Raises ProfilerError."""
    match = _BUDGET.fullmatch(text.strip())
    if not match or not any(match.groups()):
        raise ProfilerError(f"--budget {text!r}: write 8m, 90s or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


@dataclass
class Pace:
    """The ratio of real to estimated times on this machine, stage by stage."""

    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, job: Job, seconds: float) -> None:
        """Note how long a job took."""
        if job.seconds > 0:
            self.ratios[job.stage].append(seconds / job.seconds)

    def seconds(self, job: Job) -> float:
        """Seconds that a job will likely take."""
        ratios = self.ratios.get(job.stage)
        return job.seconds * (statistics.median(ratios) if ratios else 1.0)

    def left(self, jobs: Iterable[Job], parallel: Mapping[str, int] | None = None) -> float:
        """Seconds that all jobs will likely take. parallel: how many of a stage run side by side."""
        return sum(self.seconds(job) / (parallel or {}).get(job.stage, 1) for job in jobs)


def next_batch(todo: Sequence[Job], parallel: Mapping[str, int]) -> list[Job]:
    """The next job, or several of one workload where the stage runs side by side."""
    first = todo[0]
    batch = []
    for job in todo[: parallel.get(first.stage, 1)]:
        if (job.stage, job.workload) != (first.stage, first.workload):
            break
        batch.append(job)
    return batch


def fits(job: Job, pace: Pace, spent_s: float, budget_s: float | None) -> bool:
    """Whether a job may begin within the budget. After a job that does not fit, a shorter one still may."""
    return budget_s is None or spent_s + pace.seconds(job) <= budget_s


def forecast(
    planned: Sequence[Job], parallel: Mapping[str, int], budget_s: float | None = None
) -> list[tuple[Job, float | None]]:
    """Each job with its estimated end, in seconds; None: the budget leaves it out.

    The clock starts when building does.
    """
    pace, spent_s, todo = Pace(), BUILD_S, list(planned)
    ended: list[tuple[Job, float | None]] = []
    while todo:
        batch = next_batch(todo, parallel)
        todo = todo[len(batch) :]
        fitting = [job for job in batch if fits(job, pace, spent_s, budget_s)]
        spent_s += max((pace.seconds(job) for job in fitting), default=0.0)
        ended += [(job, spent_s if job in fitting else None) for job in batch]
    return ended
