"""Roofline and occupancy as the pages show them: with numbers, without them, and without a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.ui.test_pages import charts, page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]  # the pages are run whole
MENDED = "compute_tendencies_x_279_gpu"
BASELINE = {"family": "ncar", "find": "Baseline", "launch": MENDED}


@pytest.fixture
def lineage_data(tmp_path: Path, committed_data: Path) -> Path:
    """The committed lineage: static and modelled facts, nothing measured."""
    return Path(shutil.copytree(committed_data, tmp_path / "data"))


def test_a_launch_stands_under_its_roofs(full_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("runs", full_data, monkeypatch, **BASELINE, view="roofline")
    said = text(app)
    assert "fp64 3.45 TFLOP/s 6.63 TFLOP/s 52.1 % closest roof" in said
    assert "not used by this launch: fp16" in said
    (chart,) = charts(app)
    assert [one["text"] for one in chart["data"] if one["mode"] == "markers+text"] == [
        ["L1", "L2", "DRAM"] * 2
    ]
    assert app.query_params["view"] == "roofline"


def test_a_launch_without_the_metrics_has_no_chart_and_names_them(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("runs", made_data, monkeypatch, family="esmm", find="049ec612", view="roofline")
    assert not charts(app)
    said = text(app)
    assert "No point to draw" in said
    assert "dram__bytes.sum.peak_sustained" in said
    assert "ncu --metrics $(profiler list metrics --chip sm_86)" in said


def test_occupancy_says_what_limits_and_shows_the_reports_curves(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page(
        "runs", made_data, monkeypatch, family="ncar", find="Baseline", launch=MENDED, view="occupancy"
    )
    said = text(app)
    assert "achieved 48.4 % theoretical 50.0 % 32 of 64 warps" in said
    assert "registers 8 block limits" in said
    assert "36 warps at 56 registers per thread" in said
    assert len(charts(app)) == 3


def test_a_failed_occupancy_is_a_state_and_not_zero(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("runs", made_data, monkeypatch, family="mistic", find="HIGGS", view="occupancy")
    said = text(app)
    assert "achieved failed (NaN)" in said
    assert "What limits is not known" in said
    assert not charts(app)
    assert " 0 block" not in said


def test_the_path_has_a_point_a_version_and_an_arrow(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", made_data, monkeypatch, family="ncar", view="roofline", kernel=MENDED, level="L2")
    (chart,) = charts(app)
    (marks,) = [one for one in chart["data"] if one["mode"] == "markers+text"]
    assert marks["text"] == ["MW_Baseline", "MW_DivToMult"]
    assert sum(bool(one["showarrow"]) for one in chart["layout"]["annotations"]) == 1
    assert "lts__t_sectors" in text(app)


def test_a_path_without_points_lists_the_versions_with_their_states(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", made_data, monkeypatch, family="esmm", view="roofline")
    assert not charts(app)
    assert text(app).count("not collected") >= 6


def test_without_a_gpu_the_path_is_not_measured_and_says_the_command(
    lineage_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", lineage_data, monkeypatch, family="attention", view="roofline")
    said = text(app)
    assert "Not measured" in said
    assert "profiler collect v2d_d --full v2d_d" in said, "the best by the model"
    assert not charts(app)


def test_without_a_gpu_a_run_shows_its_static_occupancy(
    lineage_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = "v2d_c · sm_90a · head dim 64"
    app = page("runs", lineage_data, monkeypatch, function=function)
    said = text(app)
    assert "achieved not measured theoretical" in said
    assert "limits" in said
    assert "profiler collect v2d_c --full v2d_c" in said
    assert len(charts(app)) == 3
    assert app.query_params["function"] == function
