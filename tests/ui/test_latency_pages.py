"""Timed calls on the Diff page: the verdict first, its interval and floor, and every sample in the chart."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, Capture, ReportFile, Result, Run
from profiler.compare.latency import compare_latencies
from profiler.compare.noise_model import UNKNOWN_NOISE
from profiler.evidence.side import Latency, Side
from profiler.ui.charts import latency_samples
from profiler.ui.views import latency_verdict
from tests import timed_runs
from tests.timed_runs import COLD, WARM
from tests.ui.test_pages import charts, page, text

pytestmark = pytest.mark.slow  # the pages are run whole


def latency(version: str, level: float, seed: int = 3, run: str = "r", **more: object) -> Latency:
    held = timed_runs.rounds({"v1": 170e3, version: level}, seed)[version]
    found = Latency(
        run,
        WARM,
        np.array(held.ns, np.float32),
        np.array(held.rounds, np.uint16),
        np.array([], np.float32),
        np.array([], np.uint32),
    )
    return replace(found, **more)


A = latency("v1", 170e3)
B = latency("v2", 175.1e3)


class TestSamples:
    def test_every_sample_is_a_dot_at_its_round_and_the_line_is_the_median(self) -> None:
        figure = latency_samples.dot_figure([("A", A), ("B", B)])
        for axis, one in (("y", A), ("y2", B)):
            own = [trace for trace in figure["data"] if trace["yaxis"] == axis]
            dots = [trace for trace in own if trace["mode"] == "markers"]
            assert sum(len(trace["x"]) for trace in dots) == 100
            plain = dots[0]
            shown = {(int(x), round(y, 2)) for x, y in zip(plain["x"], plain["y"], strict=True)}
            real = {(int(r), round(float(n) / 1000, 2)) for r, n in zip(one.rounds, one.ns, strict=True)}
            assert shown <= real
            lines = [trace for trace in own if trace["mode"] == "lines" and "dash" not in trace["line"]]
            assert [trace["y"][0] for trace in lines] == [pytest.approx(float(np.median(one.ns)) / 1000)]
        assert figure["layout"]["yaxis"]["range"] == figure["layout"]["yaxis2"]["range"]

    def test_a_throttled_sample_is_a_cross_and_one_far_out_stands_at_the_edge_with_its_number(self) -> None:
        ns = A.ns.copy()
        ns[5], ns[40] = 900e3, 900e3
        one = replace(A, ns=ns, throttled=np.array([5], np.uint32))
        figure = latency_samples.dot_figure([("A", one), ("B", B)])
        by_symbol = {
            trace["marker"]["symbol"]: trace
            for trace in figure["data"]
            if trace["mode"] == "markers" and trace["yaxis"] == "y"
        }
        top = figure["layout"]["yaxis"]["range"][1]
        assert top < 300, "two samples do not flatten the rest"
        assert by_symbol["x-thin"]["y"] == [top]
        assert by_symbol["x-thin"]["customdata"] == [[1, "900"]]
        assert [10, "900"] in by_symbol["triangle-up"]["customdata"]
        assert latency_samples.count_beyond_axis([("A", one), ("B", B)]) >= 2

    def test_sides_far_apart_have_an_axis_each_of_one_span(self) -> None:
        figure = latency_samples.dot_figure([("A", A), ("B", latency("v2", 90e3))])
        (low, high), (low_b, high_b) = (figure["layout"][axis]["range"] for axis in ("yaxis", "yaxis2"))
        assert high_b < low
        assert high_b - low_b == pytest.approx(high - low)
        assert not [trace for trace in figure["data"] if trace.get("line", {}).get("dash")]

    def test_very_many_samples_are_thinned_for_drawing_only(self) -> None:
        many = replace(A, ns=np.tile(A.ns, 50), rounds=np.repeat(np.arange(25, dtype=np.uint16), 200))
        figure = latency_samples.dot_figure([("A", many)])
        assert sum(len(trace["x"]) for trace in figure["data"] if trace["mode"] == "markers") < 1300
        figure = latency_samples.ecdf_figure([("A", many)])
        assert len(figure["data"][0]["x"]) <= latency_samples.MAX_DOTS + 1
        assert figure["data"][0]["y"][-1] == 100

    def test_the_shares_reach_half_at_the_median(self) -> None:
        figure = latency_samples.ecdf_figure([("A", A), ("B", B)])
        for trace, one in zip(figure["data"], (A, B), strict=True):
            at = float(np.interp(50, trace["y"], trace["x"]))
            assert at == pytest.approx(float(np.median(one.ns)) / 1000, rel=1e-3)
        assert [trace["y"][0] for trace in figure["data"]] == [0, 0]


class TestWords:
    def side(self, version: str, *several: Latency) -> Side:
        return Side(version, (), "GPU", family="f", version=version, latencies=several)

    def test_two_runs_without_a_floor_are_unclear_and_the_command_stands_there(self) -> None:
        a, b = self.side("v1", A), self.side("v2", replace(B, run_id="other"))
        (one,) = compare_latencies(a, b, ())
        told = " ".join(latency_verdict.notes(one, b, UNKNOWN_NOISE))
        assert "unclear" in latency_verdict.verdict(one)
        assert "no noise floor" in told
        assert "profiler collect --noise v2" in told
        assert "profiler collect v2 --against v1 --rounds 25" in told
        assert "did not alternate" in latency_verdict.chart_note(one, "samples")

    def test_a_side_that_nobody_timed_is_missing_and_the_other_is_still_drawn(self) -> None:
        a, b = self.side("v1", A), self.side("v2")
        (one,) = compare_latencies(a, b, ())
        assert "missing" in latency_verdict.verdict(one)
        assert len(latency_samples.dot_figure([("A", A)])["data"]) == len(
            latency_verdict.chart(one, "samples")["data"]
        )


@pytest.mark.usefixtures("pages_of")
class TestPage:
    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        return timed_runs.seal(
            tmp_path,
            timed_runs.noise(170e3, 0.003),
            timed_runs.run({"v1": 170e3, "v2": 175.1e3}, 0, modes=(WARM, COLD), throttled=(7, 8)),
        )

    def test_the_verdict_on_latency_comes_first_with_interval_detectable_and_floor(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", data, monkeypatch, a="flash/v1", b="flash/v2", evidence="measured")
        shown = text(app)
        assert "Verdict latency of calls; events; cache warm; clock none; live pair, 25 rounds" in shown
        assert "! worse +2.9 % 99 %: +2.5 % to +3.3 %" in shown
        assert "would have shown; A/A floor here ±" in shown
        assert "throttled in 2 of 25 rounds" in shown
        assert "latency samples: not collected" not in shown
        (figure,) = charts(app)
        dots = [trace for trace in figure["data"] if trace["mode"] == "markers"]
        assert sum(len(trace["x"]) for trace in dots) == 200
        assert sum(len(t["x"]) for t in dots if t["marker"]["symbol"] == "x-thin") == 16

    def test_the_mode_and_the_kind_of_chart_live_in_the_address(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = {"a": "flash/v1", "b": "flash/v2", "mode": COLD, "spread": "ecdf", "evidence": "measured"}
        app = page("diff", data, monkeypatch, **asked)
        assert "Verdict latency of calls; events; cache cold" in text(app)
        (figure,) = charts(app)
        assert [trace["line"]["shape"] for trace in figure["data"]] == ["hv", "hv"]
        assert app.query_params["spread"] == "ecdf"
        assert app.query_params["mode"] == COLD

    def test_with_counters_too_the_ncu_duration_stands_second(
        self, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = timed_runs.rounds({"MW_Baseline": 6e6, "MW_DivToMult": 3.4e6}, 5)
        results, files, sources = [], [], {}
        for version, samples_ in held.items():
            path = reports / "ncar" / f"{version}.ncu-rep"
            content = path.read_bytes()
            digest = sha256(content).hexdigest()
            files.append(ReportFile(path.name, digest, len(content), f"reports/{path.name}"))
            sources[f"reports/{path.name}"] = path
            captures = (Capture(digest),)
            results.append(Result("ncar", version, "w", {}, samples=(samples_,), captures=captures))
        told = {"gpu": "Tesla V100-SXM2-32GB", "compute_capability": "7.0"}
        whole = Run("r", COLLECT, timed_runs.START, told, tuple(results), tuple(files))
        root = location.open_root(str(tmp_path))
        with bundle.importing(root):
            assert bundle.seal(root, whole, sources)
        app = page("diff", tmp_path, monkeypatch, a="ncar/MW_Baseline", b="ncar/MW_DivToMult")
        shown = text(app)
        first, second = shown.index("Verdict latency of calls"), shown.index("Under the profiler")
        assert first < second < shown.index("All launches of both")
        assert "Under the profiler ncu duration, not latency ✓ better −43.8 % unreplicated" in shown
        assert "latency samples: not collected" not in shown
        assert len(charts(app)) == 1, "the samples"
        assert any("time by cause" in element.value for element in app.html)
