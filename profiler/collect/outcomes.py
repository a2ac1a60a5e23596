"""What a job that has ended brought, and what a session says of itself: documents of the staging folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypeAlias, TypedDict

from profiler.collect.gpu.messages import CheckResult, GpuStates, VersionTiming
from profiler.collect.gpu.typed_json import BadJson, parse
from profiler.collect.machine import MachineFacts
from profiler.collect.plan import Job

Json = dict[str, Any]
ENDED = ("done", "wrong", "failed", "skipped")

# ---------------------------------------------------------------- what every stage brings


class Ending(TypedDict):
    """How something ended: a job, or a version within one."""

    status: str  # one of ENDED; of a version in a capture also unlaunched
    reason: str | None


class Envelope(TypedDict):
    """Which job it was."""

    stage: str
    workload: str
    versions: list[str]
    block: int
    wall_s: NotRequired[float]  # of the job alone, where it ran in one process with others


def envelope(job: Job) -> Envelope:
    """The job, for its outcome."""
    return {
        "stage": job.stage,
        "workload": job.workload,
        "versions": list(job.versions),
        "block": job.block,
    }


# ---------------------------------------------------------------- by stage


class CheckOutcome(Envelope, Ending):
    """Of a check: one version against the reference."""

    results: dict[str, CheckResult]


class TimeOutcome(Envelope, Ending):
    """Of one block of rounds."""

    results: dict[str, VersionTiming]
    launch_ns: NotRequired[dict[str, float | None]]
    states: NotRequired[GpuStates]
    device: NotRequired[Json | None]
    cold_sets: NotRequired[int]


class VersionCounters(Ending):
    """Which launches of which report are a version's."""

    told: NotRequired[bool]  # the profiled program itself said why there are none
    ordinals: NotRequired[list[int]]
    parts: NotRequired[list[str]]
    report: NotRequired[str]  # sha256


class ReportEntry(TypedDict):
    """A report that is kept."""

    sha256: str
    size: int
    path: str  # in the staging folder's reports
    tier: str
    workload: str
    versions: list[str]
    metrics: int  # how many were asked for
    found_by: str  # how ncu found the launches


class CounterOutcome(Envelope, Ending):
    """Of a capture under ncu, lean or full."""

    results: dict[str, VersionCounters]
    reports: NotRequired[list[ReportEntry]]
    passes: NotRequired[int | None]
    refused: NotRequired[list[str]]  # metrics that this ncu does not take
    unfinished: NotRequired[list[str]]  # versions that the time budget cut off: a resumed run does them


class ToolFinding(TypedDict):
    """What one tool of compute-sanitizer says."""

    found: int | None  # None: it gave no answer
    summary: str


class SanitizerOutcome(Envelope, Ending):
    """Of every tool of compute-sanitizer on one version."""

    results: dict[str, dict[str, ToolFinding]]  # by version and tool


class ModelOutcome(Envelope, Ending):
    """Of the check of one version on the CPU."""

    facts: list[Json]  # results as run.json has them


class StaticOutcome(Ending):
    """Of the build of one version, which is no job."""

    stage: str  # static
    facts: list[Json]  # results as run.json has them


class NoResults(Envelope, Ending):
    """Of a job that failed or was skipped before any of its versions was looked at."""

    results: dict[str, Any]


class FactsOutcome(Ending):
    """A StaticOutcome or a ModelOutcome as it is read; without facts it failed or was skipped."""

    stage: str
    facts: NotRequired[list[Json]]
    versions: NotRequired[list[str]]
    wall_s: NotRequired[float]


JobOutcome: TypeAlias = (
    CheckOutcome | TimeOutcome | CounterOutcome | SanitizerOutcome | ModelOutcome | NoResults
)
# As it is read; one of no results is then of its stage, with none.
Outcome: TypeAlias = CheckOutcome | TimeOutcome | CounterOutcome | SanitizerOutcome | FactsOutcome


def version_ending(outcome: Outcome, name: str) -> Ending:
    """How a job ended for one version: what it says of that one, else what it says of all."""
    content: Mapping[str, Any] = outcome
    # Of a version the sanitizer says what each tool found; how that is judged it says of the job.
    own: Ending | None = None
    if outcome["stage"] != "sanitize":
        own = content.get("results", {}).get(name)
    return own or {"status": outcome["status"], "reason": outcome["reason"]}


@dataclass
class Outcomes:
    """What has ended so far: by stage, and there by job key."""

    checks: dict[str, CheckOutcome] = field(default_factory=dict)
    timings: dict[str, TimeOutcome] = field(default_factory=dict)
    captures: dict[str, CounterOutcome] = field(default_factory=dict)
    sanitized: dict[str, SanitizerOutcome] = field(default_factory=dict)
    facts: dict[str, FactsOutcome] = field(default_factory=dict)

    def add(self, key: str, content: object) -> None:
        """One that was read. Raises BadJson where it is no outcome."""
        stage = content.get("stage") if isinstance(content, dict) else None
        if stage == "check":
            self.checks[key] = parse(CheckOutcome, content)
        elif stage == "time":
            self.timings[key] = parse(TimeOutcome, content)
        elif stage in ("lean", "full"):
            self.captures[key] = parse(CounterOutcome, content)
        elif stage == "sanitize":
            self.sanitized[key] = parse(SanitizerOutcome, content)
        elif stage in ("static", "model"):
            self.facts[key] = parse(FactsOutcome, content)
        else:
            raise BadJson(f"{key} is of no stage that there is: {stage!r}")

    def update(self, others: Outcomes) -> None:
        """Those of another collection too."""
        self.checks |= others.checks
        self.timings |= others.timings
        self.captures |= others.captures
        self.sanitized |= others.sanitized
        self.facts |= others.facts

    def items(self) -> Iterator[tuple[str, Outcome]]:
        """Every job that has ended, and its outcome; in the order of their keys."""
        everything: dict[str, Outcome] = {
            **self.checks,
            **self.timings,
            **self.captures,
            **self.sanitized,
            **self.facts,
        }
        yield from sorted(everything.items(), key=lambda item: item[0])

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> Outcome | None:
        """The outcome of a job; None: it has not ended."""
        return (
            self.checks.get(key)
            or self.timings.get(key)
            or self.captures.get(key)
            or self.sanitized.get(key)
            or self.facts.get(key)
        )


# ---------------------------------------------------------------- sessions


class SessionNote(TypedDict):
    """What one session says of itself: one process that worked on the run."""

    wall_s: NotRequired[float]
    processes_s: NotRequired[dict[str, float]]  # by stage
    machine: NotRequired[MachineFacts]
    missing: NotRequired[list[str]]  # why something is left out, a sentence each
    left_out: NotRequired[dict[str, str]]  # job key -> why
