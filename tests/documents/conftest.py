"""A data folder for each test, two made reports, and an index in which a version got slower."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests import timed_runs


@pytest.fixture(autouse=True)
def empty_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder of its own for every test that names no other."""
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)


@pytest.fixture
def ncar(made_reports: Path) -> tuple[str, str]:
    """Two made reports, of which the second has a slower launch."""
    a, b = (str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("DivToMult", "Baseline"))
    return a, b


@pytest.fixture(scope="session")
def sealed_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with A/A pairs and twelve runs of one version: from the ninth on 5 % slower."""
    wander = np.exp(np.random.default_rng(3).normal(0, 0.003, 12))
    levels = [ns * at for ns, at in zip([170e3] * 8 + [178.5e3] * 4, wander, strict=True)]
    runs = [
        timed_runs.run({"v1": ns}, day, facts={"v1": {"static__registers": 40}})
        for day, ns in enumerate(levels)
    ]
    return timed_runs.seal(tmp_path_factory.mktemp("data") / "a<b>", timed_runs.noise(170e3, 0.003), *runs)


@pytest.fixture
def store(sealed_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The index of these runs, which commands find too."""
    monkeypatch.setenv("PROFILER_DATA", str(sealed_runs))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    opened = open_store()
    yield opened
    opened.close()
