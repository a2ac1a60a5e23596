"""The series of Trends: the chart, its steps and the grid of all workloads share what was loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.location import open_root
from profiler.errors import UnknownName
from profiler.evidence.values import Evidence
from profiler.history.change_points import find_change_points
from profiler.history.trend import LATENCY
from profiler.store.index import Store
from profiler.ui.data import index, series
from tests import timed_runs

pytestmark = pytest.mark.usefixtures("pages_of")
NIGHTS = 16


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions timed every night, one of which got slower by a tenth."""
    runs = [
        timed_runs.run({"v1": 170e3 * (1.1 if night >= 8 else 1.0), "v2": 150e3}, night)
        for night in range(NIGHTS)
    ]
    return timed_runs.seal(tmp_path_factory.mktemp("nights"), *runs)


def test_medians_are_loaded_once_for_chart_steps_and_grid(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(nights))
    asked: list[Any] = []
    load = Store.median_latencies

    def counted(store: Store, **filters: Any) -> Any:
        asked.append(filters)
        return load(store, **filters)

    monkeypatch.setattr(Store, "median_latencies", counted)
    version = index.current_version()
    cell = next(cell for cell in index.store().cells() if cell.evidence is Evidence.MEASURED)
    there = (cell.workload, cell.gpu)
    (line,) = series.trends(version, LATENCY, cell.family, *there, "time", Evidence.MEASURED)
    histories = series.histories(version, LATENCY, cell.family, *there, Evidence.MEASURED)
    grid = series.version_grid(version, LATENCY, cell.family, Evidence.MEASURED, None)
    assert len(asked) == 1
    assert len(line.points) == 2 * NIGHTS
    steps = {history.version: history.steps for history in histories}
    of_grid = {place.version: cell.step for place, cell in grid.items()}
    assert of_grid["v1"] is steps["v1"][-1]
    assert of_grid["v2"] is None
    assert steps["v2"] == ()
    assert histories == find_change_points(
        index.store(), open_root(), index.metric_table(version), LATENCY, family=cell.family
    )


def test_a_workload_that_nobody_timed_is_named(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(nights))
    version = index.current_version()
    cell = next(cell for cell in index.store().cells() if cell.evidence is Evidence.MEASURED)
    with pytest.raises(UnknownName, match="no workload 'none' in the index"):
        series.histories(version, LATENCY, cell.family, "none", cell.gpu, Evidence.MEASURED)
