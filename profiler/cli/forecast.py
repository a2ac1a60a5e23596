"""How the plan of a collection is shown before anything runs: jobs, their estimates, what a budget cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from profiler.collect.collection import Collection
    from profiler.collect.plan import Job


def show(collection: Collection, budget: float | None, as_json: bool) -> None:
    """Print it. The estimates are guesses: a collection corrects them as it runs."""
    from profiler.collect import plan

    found = plan.forecast(collection.planned, collection.parallel, budget)
    if as_json:
        print_json(
            {
                "gpu": (collection.machine.gpu or {}).get("name"),
                "evidence": "estimate",
                "build_s": plan.BUILD_S,
                "budget_s": budget,
                "jobs": [
                    {
                        "stage": job.stage,
                        "workload": job.workload,
                        "versions": list(job.versions),
                        "seconds": round(job.seconds, 1),
                        "ended_s": None if ended is None else round(ended, 1),
                    }
                    for job, ended in found
                ],
            }
        )
        return
    gpu = (collection.machine.gpu or {}).get(
        "name"
    ) or "no GPU here: the plan is that of a GPU it all runs on"
    say(f"{gpu}; checks side by side: {collection.parallel['check']}; estimates, corrected as it runs")
    rows = [("build", f"{_versions(collection)} versions", "", "", f"{plan.BUILD_S:.0f}")]
    for jobs in _alike(found):
        ended = [at for _, at in jobs if at is not None]
        first = jobs[0][0]
        done = "" if len(ended) == len(jobs) else f"{len(jobs) - len(ended)} left out"
        rows.append(
            (first.stage, first.workload, str(len(jobs)), done, f"{max(ended):.0f}" if ended else "–")
        )
    print_table(("stage", "workload", "jobs", "budget", "ended after s"), rows, right=(2, 4))
    last = max((at for _, at in found if at is not None), default=plan.BUILD_S)
    cut = sum(at is None for _, at in found)
    left = f"; {cut} of {len(found)} jobs are left out by --budget {budget:g} s" if budget and cut else ""
    say(f"\nabout {last / 60:.1f} min{left}")


def _versions(collection: Collection) -> int:
    return sum(one.buildable for one in collection.context.versions.values())


def _alike(found: Sequence[tuple[Job, float | None]]) -> list[list[tuple[Job, float | None]]]:
    """Jobs in a row that are of one stage and workload."""
    groups: list[list[tuple[Job, float | None]]] = []
    for one in found:
        before = groups[-1][0][0] if groups else None
        if before and (before.stage, before.workload) == (one[0].stage, one[0].workload):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups
