"""How the forecast of a collection is printed: jobs, their estimates, what a budget cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.cli.output import print_table, say

if TYPE_CHECKING:
    from profiler.collect import Forecast


def print_forecast(forecast: Forecast) -> None:
    """A row a stage and workload, and when all of it has ended."""
    from profiler.collect.plan import BUILD_S

    gpu = forecast.gpu or "no GPU here: the plan is that of a GPU it all runs on"
    say(f"{gpu}; checks side by side: {forecast.parallel_checks}; estimates, corrected as it runs")
    rows = [("build", f"{forecast.builds} versions", "", "", f"{BUILD_S:.0f}")]
    for group in forecast.groups():
        first, _ = group[0]
        ended = [at for _, at in group if at is not None]
        cut = "" if len(ended) == len(group) else f"{len(group) - len(ended)} left out"
        last = f"{max(ended):.0f}" if ended else "–"
        rows.append((first.stage, first.workload, str(len(group)), cut, last))
    print_table(("stage", "workload", "jobs", "budget", "ended after s"), rows, right=(2, 4))
    left_out = ""
    if forecast.budget_s and forecast.left_out:
        left_out = (
            f"; {forecast.left_out} of {len(forecast.jobs)} jobs are left out by "
            f"--budget {forecast.budget_s:g} s"
        )
    say(f"\nabout {forecast.seconds / 60:.1f} min{left_out}")
