"""A judgement with a GPU in the place of which a program makes times up: what follows from measured ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from profiler.collect.gpu.messages import LatencyRequest, LatencyResult
from profiler.evidence.values import Evidence
from profiler.judge import pipeline
from profiler.judge.isolation import why_not_isolated
from profiler.judge.judgement import StageState
from profiler.judge.pipeline import judge_candidate
from profiler.statistics.verdict import Verdict
from tests.toolchain import needs_sass

HEADLINE = "1x8x512x64"
pytestmark = [
    needs_sass,
    pytest.mark.long,
    pytest.mark.skipif(bool(why_not_isolated()), reason=f"nothing isolates here: {why_not_isolated()}"),
]


def timed(monkeypatch: pytest.MonkeyPatch, **ns: float) -> list[LatencyRequest]:
    """Let a program answer with these times by side, for a GPU that is said to be here; what it was asked."""
    rng, asked = random.Random(4), []

    def run(request: LatencyRequest, folder: Path) -> LatencyResult:
        asked.append(request)
        timings = {}
        for label, timing in request.timings.items():
            (version,) = timing.versions
            if version.plan:
                assert (folder / version.plan).is_file()
            rounds = [number for number in timing.rounds for _ in range(timing.samples)]
            block = {
                "mode": "cold",
                "ns": [ns[version.id] * rng.gauss(1, 0.004) for _ in rounds],
                "rounds": rounds,
                "clocks_mhz": [],
                "throttled": [],
            }
            done = {"status": "done", "reason": None, "samples": [block]}
            timings[label] = {"status": "done", "reason": None, "versions": {version.id: done}}
        return {"status": "done", "reason": None, "timings": timings}  # type: ignore[typeddict-item]

    monkeypatch.setattr(pipeline, "why_no_gpu", lambda part: "")
    monkeypatch.setattr(pipeline, "isolated_runner", lambda isolation, catalog: run)
    return asked


def test_a_measured_candidate_has_measured_times_and_verdicts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = timed(monkeypatch, candidate=16_000.0, elite=20_000.0, sdpa=15_000.0)
    found = judge_candidate("v2d_b", "v2d_a", workloads=[HEADLINE], seed=5, keep=tmp_path / "kept")
    assert found.stage("measured").state is StageState.PASSED, found.stage("measured").reason
    assert (found.valid, found.evidence) == (True, Evidence.MEASURED)
    (time,) = found.times
    assert time.likely_ns == pytest.approx(16_000, rel=0.01)
    assert time.floor_ns is not None
    assert found.score == pytest.approx(time.floor_ns / time.likely_ns)
    (row,) = found.against
    assert (row.verdict, row.evidence) == (Verdict.BETTER, Evidence.MEASURED)
    assert row.ratio == pytest.approx(0.8, rel=0.01)
    assert found.verdict is Verdict.BETTER
    assert found.baseline == "sdpa"
    assert [item.verdict for item in found.against_baseline] == [Verdict.WORSE]
    assert len(asked) == 30
    assert found.insights
    assert set(found.artefacts) == {"cubin", "sass", "resources", "predictions"}


def test_faster_than_the_lower_bound_is_a_failure_and_no_win(monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, candidate=200.0, elite=20_000.0, sdpa=15_000.0)
    found = judge_candidate("v2d_b", "v2d_a", workloads=[HEADLINE], seed=5)
    assert found.valid is False
    assert found.failed is not None
    assert found.failed.name == "measured"
    assert "below the lower bound" in found.reason
    assert found.score is None
    assert found.verdict is Verdict.MISSING
