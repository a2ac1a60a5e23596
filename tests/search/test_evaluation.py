"""What the judge is asked by a search, and which times may be compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.evidence.values import Evidence
from profiler.judge.judgement import Against, WorkloadTime
from profiler.search import evaluation
from profiler.search.evaluation import CandidateJudge, measured_verdict, modelled_verdict
from profiler.search.record import SearchRecord, Status
from profiler.statistics.verdict import Verdict
from tests.search.simulated import WORKLOAD, judged, make_search, modelled


@pytest.mark.parametrize(("here", "rival"), [("", "elite"), ("no GPU is here", None)])
def test_a_candidate_is_measured_beside_the_rival_where_the_gpu_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, rival: str | None
) -> None:
    asked: list[Any] = []

    def judge(folder: Path, against: Path | None, **options: Any) -> object:
        asked.append(against)
        return judged("a", "b", (modelled(1000.0),))

    monkeypatch.setattr(evaluation, "judge_candidate", judge)
    monkeypatch.setattr(evaluation, "why_no_gpu", lambda part: here)
    settings = make_search(tmp_path).settings
    CandidateJudge(settings, trust=True).judge(tmp_path, tmp_path / "elite", lambda what: None)
    assert asked == [tmp_path / rival if rival else None]


def record(content_id: str, time: WorkloadTime) -> SearchRecord:
    return SearchRecord(1, Status.VALID, content_id=content_id, times={time.workload: time.as_json()})


def test_a_measured_time_is_not_held_against_a_modelled_one() -> None:
    other = record("a" * 64, modelled(2000.0))
    mine = replace(modelled(1000.0), evidence=Evidence.MEASURED)
    verdict = modelled_verdict({WORKLOAD: mine.as_json()}, other, [WORKLOAD])
    assert verdict.by_workload == {WORKLOAD: "missing"}
    assert verdict.verdict is not Verdict.BETTER
    both = modelled_verdict({WORKLOAD: modelled(1000.0).as_json()}, other, [WORKLOAD])
    assert both.verdict is Verdict.BETTER


def test_a_measured_verdict_is_that_against_the_rival_alone() -> None:
    row = Against(WORKLOAD, Verdict.BETTER, 0.9, 0.88, 0.92, Evidence.MEASURED)
    found = judged("c", "code", (modelled(900.0),), elite="a" * 24, against=(row,))
    verdict = measured_verdict(found, record("a" * 64, modelled(1000.0)), [WORKLOAD])
    assert verdict is not None
    assert (verdict.verdict, verdict.evidence) == (Verdict.BETTER, Evidence.MEASURED)
    assert verdict.ratio == pytest.approx(0.9)
    assert measured_verdict(found, record("b" * 64, modelled(1000.0)), [WORKLOAD]) is None
