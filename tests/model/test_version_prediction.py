"""Predictions and runs of versions that are kept beside the library for the next process."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.build.library import BuiltLibrary, build
from profiler.catalog.attention import ATTENTION, AttentionWorkload
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.evidence.gpu_parts import find_part
from profiler.model import version_prediction
from profiler.model.error_table import load_errors
from profiler.model.version_prediction import VersionPrediction, predict_version
from profiler.model.version_run import LauncherTimeout, VersionExecution
from tests.toolchain import needs_gxx, needs_sass

pytestmark = [needs_sass, needs_gxx]
WORKLOAD = AttentionWorkload(1, 2, 128, 128, 64)


@pytest.fixture(scope="module")
def lineage() -> Catalog:
    return load_catalog()


@pytest.fixture(autouse=True)
def no_runs_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_prediction, "_RUNS", {})


def library(lineage: Catalog, name: str, folder: Path) -> BuiltLibrary:
    """A version's library for sm_90a in a folder of its own, where nothing is kept yet."""
    (built,) = build(lineage, lineage.pick([name]), ["sm_90a"])
    assert isinstance(built, BuiltLibrary)
    return replace(built, library=Path(shutil.copy(built.library, folder)))


def predict(lineage: Catalog, built: BuiltLibrary, name: str, gpu: str = "H100-SXM") -> VersionPrediction:
    (version,) = lineage.pick([name])
    return predict_version(lineage, version, ATTENTION, WORKLOAD, find_part(gpu), load_errors(), built)


def forbid_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> VersionExecution:
        raise AssertionError("nothing is left to be run")

    monkeypatch.setattr(version_prediction, "run_version", run)
    version_prediction._RUNS.clear()


def test_what_was_predicted_is_not_predicted_again(
    lineage: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = library(lineage, "v2d_c", tmp_path)
    first = predict(lineage, built, "v2d_c")
    assert first.likely_ns is not None
    (run,) = (tmp_path / "runs").glob("*.run")
    (kept,) = (tmp_path / "runs").glob("*.prediction")
    forbid_runs(monkeypatch)
    other = predict(lineage, built, "v2d_c", "H200-SXM")  # of the same machine code: from the run
    assert other.likely_ns is not None
    run.unlink()
    again = predict(lineage, built, "v2d_c")
    assert (again.likely_ns, again.low_ns, again.high_ns) == (first.likely_ns, first.low_ns, first.high_ns)
    assert again.launches[0].utilisation == first.launches[0].utilisation
    version_prediction._RUNS.clear()
    kept.write_bytes(b"damaged")
    with pytest.raises(AssertionError, match="nothing is left"):
        predict(lineage, built, "v2d_c")


def test_that_there_is_no_model_is_kept_unless_time_was_short(
    lineage: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = library(lineage, "v2e", tmp_path)
    with monkeypatch.context() as busy:

        def run(*_: object, **__: object) -> VersionExecution:
            raise LauncherTimeout("a busy machine")

        busy.setattr(version_prediction, "run_version", run)
        assert predict(lineage, built, "v2e").no_model == "a busy machine"
    first = predict(lineage, built, "v2e")
    assert first.no_model.startswith("no model of `")
    forbid_runs(monkeypatch)
    assert predict(lineage, built, "v2e").no_model == first.no_model
