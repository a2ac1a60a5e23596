"""What changed between two runs of a series besides the metric: the machine, the tools, and the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles.run import Json, Run
from profiler.compare.same_code import CHANGED, SAME, UNKNOWN, CodeChange, code_change
from profiler.evidence.values import Evidence

if TYPE_CHECKING:
    from profiler.store.rows import RunInfo

_CLOCK_TOLERANCE = 0.01  # share of the SM clock: smaller differences are not reported
_COMPILER_FIELDS = ("CUDA", "nvcc", "compile flags")  # all that static and modelled facts can depend on
_FIELDS = {  # what runs may say, and whether to mention that neither end of a step says it
    "driver": True,
    "ncu": False,
    "CUDA": True,
    "nvcc": False,
    "torch": False,
    "GPU UUID": True,
    "host": False,
    "clock control": True,
    "cache control": False,
    "compile flags": False,
    "SM clock, MHz": True,
}


class EnvironmentChange(NamedTuple):
    """A property whose value changed from one run to a later one."""

    field: str
    before: str
    after: str
    run_id: str  # the first run with the new value


@dataclass(frozen=True)
class RunChanges:
    """What changed between the last run before a step and the first run that is surely after it."""

    environment: tuple[EnvironmentChange, ...]
    unknown: tuple[str, ...]  # properties that neither of the two runs says
    code: CodeChange

    @property
    def cause(self) -> str:
        """What can have caused the step: "environment", "code", "code or environment", or "unknown".

        One build that takes longer although nothing of the machine is known to differ has no known cause.
        """
        if self.code.is_same_build:
            return "environment" if self.environment else UNKNOWN
        if self.code.word == SAME:  # other source may launch equal machine code otherwise
            return "code or environment"
        if self.code.word == CHANGED:
            return "code or environment" if self.environment else "code"
        return UNKNOWN


def run_changes(
    runs: Sequence[RunInfo],
    before: tuple[Run | None, str],
    after: tuple[Run | None, str],
    part: str,
    evidence: Evidence,
) -> RunChanges:
    """What changed over `runs`, sorted by time, from the last before the step to the first after it.

    `before` and `after` are the bundles of the first and last of them (None: unreadable), each with the
    version that the series has there. `part` and `evidence` are those of the series.
    """
    on_gpu = evidence is Evidence.MEASURED
    fields_by_run = [_environment(run) for run in runs]
    ends = (fields_by_run[0], fields_by_run[-1]) if fields_by_run else ()
    unknown = tuple(
        field
        for field, matters in _FIELDS.items()
        if matters and on_gpu and all(field not in fields for fields in ends)
    )
    capability = runs[-1].compute_capability if runs else None
    return RunChanges(
        environment_changes(runs, evidence), unknown, code_change(before, after, part, capability)
    )


def environment_changes(runs: Sequence[RunInfo], evidence: Evidence) -> tuple[EnvironmentChange, ...]:
    """What is recorded to have changed of the machine and its tools over `runs`, sorted by time."""
    fields_by_run = [_environment(run) for run in runs]
    changes = []
    for field in _FIELDS if evidence is Evidence.MEASURED else _COMPILER_FIELDS:
        last: str | None = None
        for run, fields in zip(runs, fields_by_run, strict=True):
            now = fields.get(field)
            if now is None:  # a run that does not say it is skipped
                continue
            if last is not None and _differs(field, last, now):
                changes.append(EnvironmentChange(field, last, now, run.run_id))
            last = now
    return tuple(changes)


def _environment(run: RunInfo) -> dict[str, str]:
    """The fields that a run says, as text."""
    provenance: Mapping[str, Json] = run.provenance
    flags = provenance.get("compile_flags")
    clock = _sm_clock(provenance.get("states"))
    fields = {
        "driver": run.driver,
        "ncu": run.ncu_version,
        "CUDA": run.cuda,
        "nvcc": provenance.get("nvcc"),
        "torch": provenance.get("torch"),
        "GPU UUID": provenance.get("gpu_uuid"),
        "host": run.host,
        "clock control": run.clock_control,
        "cache control": run.cache_control,
        "compile flags": " ".join(map(str, flags)) if isinstance(flags, list) else None,
        "SM clock, MHz": None if clock is None else f"{clock:.0f}",
    }
    return {field: str(text) for field, text in fields.items() if text}


def _sm_clock(states: Json) -> float | None:
    """The median SM clock while the run's calls were timed, MHz."""
    clocks = [
        moment["sm_mhz"]
        for state in (states if isinstance(states, list) else [])
        for moment in (state.get("during") or [])
        if moment.get("sm_mhz") is not None
    ]
    return float(median(clocks)) if clocks else None


def _differs(field: str, a: str, b: str) -> bool:
    if field.startswith("SM clock"):
        return abs(float(b) - float(a)) > _CLOCK_TOLERANCE * float(a)
    return a != b
