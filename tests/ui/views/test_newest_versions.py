"""The table of every family's newest version: how its launches came to be pairs with those of before."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.evidence import load_metrics
from profiler.history import load_overview
from profiler.store import import_paths, open_store
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
