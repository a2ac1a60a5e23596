"""The outcomes of jobs and the notes of sessions: the JSON documents of the staging folder."""

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
    """How a job ended, or a version within it."""

    status: str  # one of ENDED; of a version in a capture also unlaunched
    reason: str | None


class Envelope(TypedDict):
    """The job of an outcome."""

    stage: str
    workload: str
    versions: list[str]
    block: int
    wall_s: NotRequired[float]  # the job's share, where it ran in one process with others


def envelope(job: Job) -> Envelope:
    """The part of an outcome that names its job."""
    return {
        "stage": job.stage,
        "workload": job.workload,
        "versions": list(job.versions),
        "block": job.block,
    }


# ---------------------------------------------------------------- by stage


class CheckOutcome(Envelope, Ending):
    """Outcome of a check of one version against the reference."""

    results: dict[str, CheckResult]


class TimeOutcome(Envelope, Ending):
    """Outcome of timing one block of rounds."""

    results: dict[str, VersionTiming]
    launch_ns: NotRequired[dict[str, float | None]]
    states: NotRequired[GpuStates]
    device: NotRequired[Json | None]
    cold_sets: NotRequired[int]


class VersionCounters(Ending):
    """The launches of a version, and the report that holds them."""

    told: NotRequired[bool]  # whether the reason is the profiled program's own
    ordinals: NotRequired[list[int]]
    parts: NotRequired[list[str]]
    report: NotRequired[str]  # sha256


class ReportEntry(TypedDict):
    """A report in the staging folder."""

    sha256: str
    size: int
    path: str  # in the staging folder's reports
    tier: str
    workload: str
    versions: list[str]
    metrics: int  # how many were requested
    found_by: str  # how ncu found the launches


class CounterOutcome(Envelope, Ending):
    """Outcome of a capture under ncu, lean or full."""

    results: dict[str, VersionCounters]
    reports: NotRequired[list[ReportEntry]]
    passes: NotRequired[int | None]
    refused: NotRequired[list[str]]  # metrics that this ncu does not take
    unfinished: NotRequired[list[str]]  # versions that the time budget cut off: a resumed run does them


class ToolFinding(TypedDict):
    """The answer of one tool of compute-sanitizer."""

    found: int | None  # how many findings; None: no answer
    summary: str


class SanitizerOutcome(Envelope, Ending):
    """Outcome of running the tools of compute-sanitizer on one version."""

    results: dict[str, dict[str, ToolFinding]]  # by version and tool


class ModelOutcome(Envelope, Ending):
    """Outcome of the check of one version on the CPU."""

    facts: list[Json]  # results as run.json has them


class StaticOutcome(Ending):
    """Outcome of building one version, which is not a job."""

    stage: str  # static
    facts: list[Json]  # results as run.json has them


class NoResults(Envelope, Ending):
    """Outcome of a job that failed or was skipped before it tried any of its versions."""

    results: dict[str, Any]


class FactsOutcome(Ending):
    """A StaticOutcome or ModelOutcome as read from disk; without facts it failed or was skipped."""

    stage: str
    facts: NotRequired[list[Json]]
    versions: NotRequired[list[str]]
    wall_s: NotRequired[float]


JobOutcome: TypeAlias = (
    CheckOutcome | TimeOutcome | CounterOutcome | SanitizerOutcome | ModelOutcome | NoResults
)
# As read from disk, where NoResults is an outcome of its stage without results.
Outcome: TypeAlias = CheckOutcome | TimeOutcome | CounterOutcome | SanitizerOutcome | FactsOutcome


def version_ending(outcome: Outcome, name: str) -> Ending:
    """How a job ended for one version: the version's own ending, else that of the whole job."""
    content: Mapping[str, Any] = outcome
    # The sanitizer's results are findings by tool, not endings: the ending is the job's.
    own: Ending | None = None
    if outcome["stage"] != "sanitize":
        own = content.get("results", {}).get(name)
    return own or {"status": outcome["status"], "reason": outcome["reason"]}


@dataclass
class Outcomes:
    """The outcomes so far, by stage and job key."""

    checks: dict[str, CheckOutcome] = field(default_factory=dict)
    timings: dict[str, TimeOutcome] = field(default_factory=dict)
    captures: dict[str, CounterOutcome] = field(default_factory=dict)
    sanitized: dict[str, SanitizerOutcome] = field(default_factory=dict)
    facts: dict[str, FactsOutcome] = field(default_factory=dict)

    def add(self, key: str, content: object) -> None:
        """Add an outcome that was read from disk. Raises BadJson where it is none."""
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
        """Add the outcomes of another one."""
        self.checks |= others.checks
        self.timings |= others.timings
        self.captures |= others.captures
        self.sanitized |= others.sanitized
        self.facts |= others.facts

    def items(self) -> Iterator[tuple[str, Outcome]]:
        """The keys and outcomes of all ended jobs, in the order of the keys."""
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
    """What a session (one process that worked on the run) notes about itself."""

    wall_s: NotRequired[float]
    processes_s: NotRequired[dict[str, float]]  # by stage
    machine: NotRequired[MachineFacts]
    missing: NotRequired[list[str]]  # sentences: what is left out, and why
    left_out: NotRequired[dict[str, str]]  # job key -> why
