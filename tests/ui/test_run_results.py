"""What a run of timed calls shows: each workload and mode with its calls, and what failed with its reason."""

from __future__ import annotations

from datetime import UTC, datetime

from profiler.bundles.run import COLLECT, Result, Run, Samples
from profiler.ui.views import run_results


def test_timed_calls_stand_by_workload_and_mode_and_failures_with_their_reason() -> None:
    timed = Samples("NVBench; cold; samples", (2000.0, 1000.0, 6000.0), (0, 0, 0))
    results = (
        Result("copy", "abc", "N=8", samples=(timed,)),
        Result("copy", "abc", "N=16", status="failed", reason="too small"),
    )
    table = str(run_results.timed_table(Run("r", COLLECT, datetime(2026, 3, 1, tzinfo=UTC), {}, results)))
    for words in ("N=8", "NVBench; cold; samples", ">3<", "2.00", "N=16", "too small"):
        assert words in table
