"""Series of a kernel under two names: one where somebody declared the pair, two where one run has both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.compare.kernel_pairs import KernelPair, Pairing
from profiler.evidence import metric_table
from profiler.evidence.values import State, Value
from profiler.history.joined_parts import joined_arrays, one_kernel
from profiler.history.trend import Trend, load_trends
from profiler.store.index import Store
from tests.made import DURATION, WARPS, imported, launch

PAIRING = Pairing(kept=lambda family: [KernelPair("gemm_v6", "gemm_v7")])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "index.db")
    opened.add(*imported("v6", launch("gemm_v6", 6.0), launch("fill", 1.0, ordinal=1)))
    opened.add(*imported("v7", launch("gemm_v7", 5.0), launch("fill", 1.0, ordinal=1), minute=1))
    yield opened
    opened.close()


def trends(store: Store, kernel: str | None = None, pairing: Pairing = PAIRING) -> dict[str, Trend]:
    table = metric_table.load_metrics()
    return {
        trend.part: trend for trend in load_trends(store, DURATION, table, kernel=kernel, pairing=pairing)
    }


def numbers(trend: Trend) -> list[object]:
    return [point.value.number for point in trend.points]


def test_a_kernel_under_two_names_is_one_series_with_the_newest_name(store: Store) -> None:
    joined = trends(store)
    assert list(joined) == ["gemm_v7#0", "fill#0"]
    assert numbers(joined["gemm_v7#0"]) == [6.0, 5.0]
    assert joined["gemm_v7#0"].base_name == "gemm_v7"
    assert joined["gemm_v7#0"].also == " (also gemm_v6)"
    assert joined["fill#0"].also == ""
    assert numbers(trends(store, "gemm_v6")["gemm_v7#0"]) == [6.0, 5.0], "either name finds it"
    apart = trends(store, pairing=Pairing())
    assert numbers(apart["gemm_v6#0"]) == [6.0, None]


def test_kernels_that_ran_in_one_run_stay_two_series(store: Store) -> None:
    store.add(*imported("v8", launch("gemm_v6", 4.0), launch("gemm_v7", 3.0, ordinal=1), minute=2))
    assert numbers(trends(store)["gemm_v6#0"]) == [6.0, None, 4.0]


def test_pairs_of_pairs_are_one_kernel_and_patterns_join_what_they_stand_for() -> None:
    names = ["gemm_v6", "gemm_v7", "gemm_v8", "sum_v6", "sum_v7"]
    chain = [KernelPair("gemm_v6", "gemm_v7"), KernelPair("gemm_v8", "gemm_v7")]
    assert len({one_kernel(names, chain)[name] for name in names[:3]}) == 1
    found = one_kernel(names, [KernelPair("*_v6", "*_v7")])
    assert found["gemm_v6"] == found["gemm_v7"] != found["sum_v6"] == found["sum_v7"]
    assert "gemm_v8" not in found
    numbered = one_kernel(names, [KernelPair("gemm_v*", "gemm_v*")])
    assert len({numbered[name] for name in names[:3]}) == 1, "a pattern beside itself: all that fit are one"
    assert "sum_v6" not in numbered


def test_the_arrays_of_a_kernel_under_two_names_are_one_in_the_order_of_time(store: Store) -> None:
    store.add(*imported("v7", launch("gemm_v6", 7.0, **{WARPS: Value(50.0, "%")}), minute=2))
    pairs = [KernelPair("gemm_v6", "gemm_v7")]
    parts = {part.part: part for part in joined_arrays(store.part_arrays([DURATION, WARPS]), pairs)}
    assert set(parts) == {"gemm_v6#0", "fill#0"}, "the newest run calls it gemm_v6"
    gemm = parts["gemm_v6#0"]
    assert gemm.metrics == (DURATION, WARPS)
    assert gemm.numbers[0].tolist() == [6.0, 5.0, 7.0]
    assert np.isnan(gemm.numbers[1][:2]).all()
    assert gemm.numbers[1][2] == 50.0
    assert gemm.states[1].tolist() == [State.NOT_COLLECTED, State.NOT_COLLECTED, State.PRESENT]
    assert [gemm.versions[index] for index in gemm.version] == ["v6", "v7", "v7"]
    assert gemm.latest.tolist() == [True, False, True]
    assert [part.part for part in joined_arrays(store.part_arrays([DURATION]), [])] == [
        "fill#0",
        "gemm_v6#0",
        "gemm_v7#0",
    ]
