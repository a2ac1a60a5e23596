"""An index in which a version got slower, and has its facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.store import Store, open_store
from tests import timed_runs


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
