"""Predictions of some of what was asked for: a workload that one version lacks, and a stop in between."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.documents import prediction
from profiler.errors import Exit, UnknownName
from profiler.model.version_prediction import VersionPrediction
from profiler.reports.reader_client import ReaderWorker

_WORKLOAD = "1x8x512x64"


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions that are predicted, in order, with no model of any."""
    asked = []

    def predict(catalog, version, problem, workload, part, errors):  # type: ignore[no-untyped-def]
        asked.append(version.id)
        return VersionPrediction(version, workload, part, "sm_90a", (), "no model here")

    monkeypatch.setattr(prediction, "predict_version", predict)
    return asked


def test_a_version_without_the_workload_is_named_and_the_others_are_predicted(predicted: list[str]) -> None:
    document = prediction.predict_names(["v1", "fp8_stage_c", "v2d_c"], workloads=[_WORKLOAD], jobs=1)
    calls = {call.subject: call for call in document.calls}
    assert set(calls) == {"v1", "fp8_stage_c", "v2d_c"}
    assert "fp8_stage_c" not in predicted
    assert {"v1", "v2d_c"} <= set(predicted)
    assert "1x8x512x64 fp8" in calls["fp8_stage_c"].no_model
    with pytest.raises(UnknownName):
        prediction.predict_names(["fp8_stage_c"], workloads=[_WORKLOAD])


def test_what_was_predicted_before_a_stop_is_kept(predicted: list[str]) -> None:
    def stop(version: str, what: str) -> None:
        raise KeyboardInterrupt

    document = prediction.predict_names(["v1", "v2"], workloads=[_WORKLOAD], jobs=1, progress=stop)
    states = {call.subject: call.no_model for call in document.calls}
    assert len(states) == 2
    assert "no model here" in states.values()
    assert document.exit_code is Exit.UNJUDGED


def test_sigterm_shows_what_was_predicted_without_waiting_for_what_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released, before = threading.Event(), signal.getsignal(signal.SIGTERM)

    def predict(catalog, version, problem, workload, part, errors):  # type: ignore[no-untyped-def]
        if version.id == "v2b":
            os.kill(os.getpid(), signal.SIGTERM)
            released.wait(120)
        return VersionPrediction(version, workload, part, "sm_90a", (), "no model here")

    monkeypatch.setattr(prediction, "predict_version", predict)
    try:
        code = main(["predict", "v1", "v2b", "--workload", _WORKLOAD, "--jobs", "1", "--json"])
        assert not released.is_set()
    finally:
        released.set()
    calls = {call["subject"]: call["no_model"] for call in json.loads(capsys.readouterr().out)["calls"]}
    assert calls == {"v1": "no model here", "v2b": prediction.STOPPED}
    assert code == Exit.UNJUDGED
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_workload_of_fp8_is_predicted_of_the_versions_that_have_it(predicted: list[str]) -> None:
    document = prediction.predict_names(["v2d_c", "fp8_stage_c"], workloads=[f"{_WORKLOAD} fp8"], jobs=1)
    calls = {call.subject: call.no_model for call in document.calls}
    assert "fp8_stage_c" in predicted
    assert "v2d_c" not in predicted
    assert calls["fp8_stage_c"] == "no model here"
    assert f"no workload '{_WORKLOAD} fp8'" in calls["v2d_c"]


@pytest.mark.parametrize(
    ("name", "launches"), [("llm.c/adamw_coalsecing_shared", 4), ("mistic/prof1", 4), ("cutlass/report80", 3)]
)
def test_a_report_is_read_as_often_with_several_launches_as_with_one(
    reports: Path, monkeypatch: pytest.MonkeyPatch, name: str, launches: int
) -> None:
    asked: list[Path] = []
    ask = ReaderWorker.ask

    def count(worker: ReaderWorker, path: Path, *rest: Any, **more: Any) -> None:
        asked.append(path)
        ask(worker, path, *rest, **more)

    monkeypatch.setattr(ReaderWorker, "ask", count)
    calls = prediction.predict_names([str(reports / f"{name}.ncu-rep")]).calls
    assert len(calls) == launches
    assert 0 < len(asked) < 4, "launches, machine code, counts of instructions"
