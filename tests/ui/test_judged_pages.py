"""Verdicts with their intervals wherever a change is shown: Overview, Lineage and Trends."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from profiler.bundles import location
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.history import lineage
from profiler.history.speedups import load_speedups
from profiler.statistics.verdict import Verdict
from profiler.store.readable_index import open_store
from profiler.ui.charts import small_multiples
from tests import lineages, timed_runs
from tests.timed_runs import GPU, run
from tests.ui.test_pages import charts, page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]  # the pages are run whole
WORKLOAD = "1x1x8x64"


@pytest.fixture
def flash(tmp_path: Path) -> Path:
    return timed_runs.seal(
        tmp_path, timed_runs.noise(170e3, 0.003), run({"v1": 170e3, "v2": 175.1e3}, 0), run({"v3": 160e3}, 1)
    )


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    lineages.dissected(tmp_path)
    levels = {"zero": 170e3, "bad": 90e3, "alpha": 160e3}
    return timed_runs.seal(tmp_path, run(levels, 1, family=lineages.FAMILY, workload=WORKLOAD))


class TestOverview:
    def test_timed_calls_stand_first_with_verdict_interval_and_floor(
        self, flash: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("overview", flash, monkeypatch))
        assert "Got better ✓ 1 call or launch v3 latency" in shown
        assert re.search(
            r"latency; events; cache warm; clock none 1\d\d µs ✓ better −8\.\d % "
            r"−\S+ % to −\S+ % \(noise floor\); A/A ±1\.\d %",
            shown,
        ), shown

    def test_a_version_that_nothing_came_before_has_its_latency_and_no_verdict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        timed_runs.seal(tmp_path, run({"v1": 170e3}, 0))
        shown = text(page("overview", tmp_path, monkeypatch))
        assert "latency; events; cache warm; clock none 170 µs –" in shown
        assert "Got better ✓ 0" in shown


class TestLineage:
    def test_the_speed_up_on_the_nearest_correct_ancestor_has_the_interval_of_the_rounds(
        self, mine: Path
    ) -> None:
        store = open_store(str(mine))
        found = lineage.load_lineages(location.open_root(str(mine)), store)[lineages.FAMILY]
        told = load_speedups(store, found, WORKLOAD, GPU, NoiseModel.of_store(lambda: store))
        store.close()
        assert set(told) == {"alpha"}, "a wrong version has no speed"
        one = told["alpha"]
        assert one.compared.live
        assert one.compared.verdict is Verdict.BETTER
        assert one.interval is not None
        assert one.interval[0] < one.times < one.interval[1]
        assert one.times == pytest.approx(170 / 160, rel=0.01)

    def test_the_table_says_it_in_words_and_links_to_the_measured_diff(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("lineage", mine, monkeypatch)
        body = " ".join(element.value for element in app.markdown)
        words = " ".join(re.sub(r"<[^>]+>", " ", body).split())
        assert re.search(r"✓ &nbsp;better ×1\.0\d \(1\.0\d–1\.0\d\)", words), words
        assert "evidence=measured" in body

    def test_two_runs_without_a_floor_are_unclear(self, tmp_path: Path) -> None:
        lineages.dissected(tmp_path)
        timed_runs.seal(
            tmp_path,
            run({"zero": 170e3}, 1, family=lineages.FAMILY, workload=WORKLOAD),
            run({"alpha": 160e3}, 2, family=lineages.FAMILY, workload=WORKLOAD),
        )
        store = open_store(str(tmp_path))
        found = lineage.load_lineages(location.open_root(str(tmp_path)), store)[lineages.FAMILY]
        one = load_speedups(store, found, WORKLOAD, GPU, UNKNOWN_NOISE)["alpha"]
        store.close()
        assert (one.compared.verdict, one.interval) == (Verdict.UNCLEAR, None)


class TestTrends:
    def test_latency_is_shown_unasked_with_the_band_of_the_floor(
        self, flash: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", flash, monkeypatch)
        shown = text(app)
        assert re.search(r"clock none: A/A floor here ±1\.\d % \(50 pairs\); grey band", shown)
        (figure,) = charts(app)
        (band,) = [trace for trace in figure["data"] if trace.get("fill") == "toself"]
        line = next(trace for trace in figure["data"] if trace.get("name") == "events; cache warm")
        numbers = [y for y in line["y"] if y is not None]
        assert len(numbers) == 3
        upper = np.array(band["y"][:3]) / np.array(numbers)
        assert upper == pytest.approx([upper[0]] * 3)
        assert 1.005 < upper[0] < 1.03
        assert figure["layout"]["yaxis"]["range"][0] > 100, (
            "what is told apart by little is not drawn from zero"
        )

    def test_without_a_floor_the_command_that_makes_one_stands_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        timed_runs.seal(tmp_path, run({"v1": 170e3}, 0), run({"v2": 160e3}, 1))
        app = page("trends", tmp_path, monkeypatch)
        assert "no A/A floor here: profiler collect --noise v2" in text(app)
        (figure,) = charts(app)
        assert not [trace for trace in figure["data"] if trace.get("fill") == "toself"]

    def test_a_band_stops_where_the_line_does(self) -> None:
        points = [
            small_multiples.PanelPoint(0, 10.0),
            small_multiples.PanelPoint(1, None, gap="failed"),
            small_multiples.PanelPoint(2, 10.0),
        ]
        line = small_multiples.PanelLine("a", (*points, small_multiples.PanelPoint(3, 11.0)), band=0.1)
        panel = small_multiples.Panel("latency", "µs", (line,), from_zero=False)
        figure = small_multiples.figure([panel], small_multiples.Axis(("a", "b", "c", "d"), span=(0, 3)))
        bands = [trace for trace in figure["data"] if trace.get("fill") == "toself"]
        assert [trace["x"] for trace in bands] == [[-0.235, 0.235, 0.235, -0.235], [2, 3, 3, 2]]
