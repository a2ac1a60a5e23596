"""What a collection would do before anything runs: its jobs, their estimates, what a budget leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.catalog.catalog import Catalog
from profiler.collect import check_and_time, plan
from profiler.collect.machine import Machine
from profiler.collect.plan import BUILD_S, Job
from profiler.collect.settings import Settings


@dataclass(frozen=True)
class Forecast:
    """The plan of a collection. The estimates are guesses: a collection corrects them as it runs."""

    gpu: str | None  # its name; None: there is none here, and the plan is for a GPU that runs every version
    budget_s: float | None
    builds: int  # versions to be built
    parallel_checks: int
    jobs: tuple[tuple[Job, float | None], ...]  # and the second at which each has ended; None: left out

    @property
    def seconds(self) -> float:
        """When the last job has ended."""
        return max((ended for _, ended in self.jobs if ended is not None), default=BUILD_S)

    @property
    def left_out(self) -> int:
        """How many jobs the budget leaves out."""
        return sum(ended is None for _, ended in self.jobs)

    def groups(self) -> list[list[tuple[Job, float | None]]]:
        """The jobs, grouped where consecutive ones are of one stage and workload."""
        groups: list[list[tuple[Job, float | None]]] = []
        for job, ended in self.jobs:
            before = groups[-1][0][0] if groups else None
            if before and (before.stage, before.workload) == (job.stage, job.workload):
                groups[-1].append((job, ended))
            else:
                groups.append([(job, ended)])
        return groups


def forecast_run(
    catalog: Catalog, settings: Settings, machine: Machine, budget_s: float | None = None
) -> Forecast:
    """What a run with these settings would do on this machine; nothing is built, run or written."""
    selection = settings.select(catalog)
    planned = plan.plan_run(settings, selection, machine.passes)
    parallel = check_and_time.parallel_jobs(machine.gpu)
    return Forecast(
        gpu=machine.gpu.name if machine.gpu else None,
        budget_s=budget_s,
        builds=sum(version.buildable for version in selection.versions.values()),
        parallel_checks=parallel["check"],
        jobs=tuple(plan.forecast(planned, parallel, budget_s)),
    )
