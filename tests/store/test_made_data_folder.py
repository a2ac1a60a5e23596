"""bench/data_folder.py: the index that it writes is the one that its bundles give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.data_folder import METRICS, WORKLOADS, make, metric_names
from profiler.store.readable_index import open_store
from profiler.store.sync import rebuild_index

pytestmark = pytest.mark.slow


def answers(folder: Path) -> list[object]:
    with open_store(str(folder), sync=False) as store:
        series = store.series([name for name, _ in metric_names()])
        return [
            store.runs(),
            store.versions("attention"),
            repr(series),
            store.cells("attention"),
        ]


def test_the_index_of_a_made_folder_is_that_of_its_bundles(tmp_path: Path) -> None:
    make(tmp_path / "data", 22, 8)
    before = answers(tmp_path / "data")
    with open_store(str(tmp_path / "data"), sync=False) as store:
        kinds = Counter(run.kind for run in store.runs())
    assert kinds == {"import": 22, "collect": 1}  # the last keeps the catalogue
    rebuild_index(str(tmp_path / "data"))
    assert answers(tmp_path / "data") == before
    assert len(metric_names()) == METRICS
    assert len(WORKLOADS) == 5
