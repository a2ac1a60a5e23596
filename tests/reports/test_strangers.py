"""Files in the shape of what strangers export: the right number of each, or a refusal with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.errors import Exit
from profiler.evidence.values import State, Value
from profiler.reports.read import read_report

STRANGERS = Path(__file__).resolve().parents[2].parent / "shared" / "strangers"
pytestmark = pytest.mark.skipif(not STRANGERS.is_dir(), reason=f"no {STRANGERS}")
DURATION = "gpu__time_duration.sum"
FAILED = Value(None, "ns", state=State.FAILED)


@pytest.mark.parametrize(
    ("name", "durations"),
    [
        ("01/C.raw", [11_360]),
        ("02/filtered", [295_264, 590_000]),
        ("03/values", [72_640]),
        ("04/nvlink", [72_640]),
        ("06/bar1", [100_000]),
        ("06/bar2", [100_000]),
        ("20/failed", [100_000, 100_000]),
        ("29/twelve", [152_192]),
    ],
)
def test_the_launches_of_a_file_have_their_durations(name: str, durations: list[int]) -> None:
    launches = read_report(STRANGERS / f"{name}.csv").launches
    assert [launch.values.number(DURATION) for launch in launches] == durations


def test_instances_and_what_stands_between_rows_cost_no_number() -> None:
    (instances,) = read_report(STRANGERS / "03/values.csv").launches
    assert instances.values.number("derived__memory_l1_wavefronts_shared_excessive") == 12
    assert instances.values.number("launch__block_dim_x") == 128
    (nvlink,) = read_report(STRANGERS / "04/nvlink.csv").launches
    assert nvlink.values.number("launch__registers_per_thread") == 40


def test_a_number_that_may_be_a_thousand_times_as_large_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["show", str(STRANGERS / "01/de_DE.raw.csv")]) == Exit.UNUSABLE_INPUT
    assert "11.360" in capsys.readouterr().err


def test_a_collection_that_failed_has_no_number_and_no_bottleneck(capsys: pytest.CaptureFixture[str]) -> None:
    path = STRANGERS / "05/failed.csv"
    (launch,) = read_report(path).launches
    assert launch.values[DURATION] == FAILED
    assert all(value.number is None for name, value in launch.values.items() if "__attribute_" not in name)
    main(["insights", str(path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert [one for one in answer["statements"] if one["kind"] == "bottleneck"] == []


def test_a_kernel_that_ncu_could_not_profile_is_named() -> None:
    (warning,) = read_report(STRANGERS / "20/failed.csv").warnings
    assert '"k2"' in warning


def test_shares_over_their_peak_are_shown_and_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(STRANGERS / "20/over.csv"), "--all", "--json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)["launches"]
    over = {name: one["value"] for name, one in launch["metrics"].items() if one.get("over_peak")}
    assert over == {
        "lts__t_sector_hit_rate.pct": 117.3,
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": 114.4,
    }
