"""The table of every family's newest version: how its launches came to be pairs with those of before."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.evidence.metric_table import load_metrics
from profiler.history.overview import load_overview
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from profiler.ui.views import newest_versions
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile, SessionDetails
from tests.ui.views.test_launch_pairs import text

CHIP = {f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")}  # GA100


def test_kernels_of_two_names_are_named_below_the_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ncu_report")
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    for day, version in enumerate(("v6", "v7")):
        kernel = f"gemm_{version}"
        metrics = {**CHIP, "gpu__time_duration.sum": 1e6 * (2 - day)}
        launch = LaunchResult(kernel, f"void {kernel}(float*)", f"_Z{kernel}", metrics, (64, 1, 1))
        created = SessionDetails(created=1730121091 + 86400 * day)
        (tmp_path / f"{version}.ncu-rep").write_bytes(ReportFile((launch,) * 2, created).to_bytes())
    import_paths([tmp_path], family="gemms")
    table = load_metrics()
    shown = text(newest_versions.table(load_overview(open_store(), table), table))
    assert "better −50.0 % unreplicated" in shown
    assert "gemm_v6 → gemm_v7: paired by similar name, names differ (2 launches)" in shown


@pytest.mark.slow
def test_of_many_versions_the_first_few_are_open(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROFILER_DB", raising=False)
    metrics = load_metrics()
    overview = load_overview(open_store(str(made_data)), metrics)
    opened, _, folded = newest_versions.table(overview, metrics).partition("<details")
    families = [cell.family for cell in overview.cells]
    assert len(families) > 4
    assert all(f"{family}" in text(opened) for family in families[:4])
    assert f"{len(families) - 4} more: " in text(folded)
    assert all(row.part.partition("#")[0] in folded for row in overview.cells[-1].rows)
