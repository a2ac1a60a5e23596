"""What is passed to whatever judges a change: the lookups of one index, which is opened once and late."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.compare.comparison import compare
from profiler.compare.counter_noise import CounterKey, CounterNoise
from profiler.compare.noise_model import NoiseModel
from profiler.compare.resolve_names import resolve_all
from profiler.evidence import metric_table
from profiler.statistics.counters import Wobble
from profiler.statistics.noise_floor import NoiseFloor
from profiler.store.index import Store

KEY = CounterKey("family", "", "GPU", "")
FLOOR = NoiseFloor(30, 0.01, (0.02,))


def test_two_report_files_are_compared_without_an_index(reports: Path) -> None:
    def opener() -> Store:
        raise AssertionError("nothing is asked of an index")

    paths = [str(reports / "ncar" / f"MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult")]
    a, b = resolve_all(paths, opener)
    assert compare(a, b, metric_table.load_metrics(), noise=NoiseModel.of_store(opener)).pairs


def test_an_index_is_opened_once_for_all_lookups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    opened = []

    def opener() -> Store:
        opened.append(Store.open(tmp_path / "index.db"))
        return opened[-1]

    noise = NoiseModel.of_store(opener)
    for _ in range(2):
        assert noise.floor("GPU", "events", 1e6) is None
        assert noise.counter_noise(KEY, "kernel", "metric", False) is None
    assert len(opened) == 1
    opened[0].close()


def test_a_model_without_something_still_knows_the_rest() -> None:
    noise = NoiseModel(lambda *_: FLOOR, lambda *_: CounterNoise(Wobble((0.1,)), "kernel"), lambda *_: True)
    without_code = noise.without_same_code()
    assert without_code.same_code(("r1", "v1"), ("r2", "v1")) is None
    assert without_code.floor("GPU", "events", 1e6) is FLOOR
    assert without_code.counter_noise is noise.counter_noise
    counters = noise.only_counters()
    assert counters.counter_noise is noise.counter_noise
    assert counters.floor("GPU", "events", 1e6) is None
    assert counters.same_code(("r1", "v1"), ("r2", "v1")) is None
