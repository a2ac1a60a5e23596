"""Tests of how latency is sampled: what is decided without a GPU."""

from collections import Counter
from itertools import pairwise

import pytest

from profiler.bundles.run import Samples
from profiler.collect import sample_schedule
from profiler.collect.gpu.device import GpuState
from profiler.collect.sample_schedule import SampleSeries


def test_the_order_of_each_round_is_drawn_and_follows_the_seed():
    def orders(seed, mode="warm"):
        whole = sample_schedule.turns(["a", "b"], range(200), [mode], seed)
        return ["".join(turn.version for turn in pair) for pair in zip(whole, whole, strict=True)]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert orders(1) != orders(1, "cold")
    a_first = [order == "ab" for order in orders(1)]
    assert 70 <= sum(a_first) <= 130
    turned = sum(before != after for before, after in pairwise(a_first))
    assert 70 <= turned <= 130, "A B B A in a rhythm would turn every time"


def test_the_order_of_a_round_is_its_own_in_whatever_process_it_runs():
    whole = list(sample_schedule.turns(["a", "b"], range(25), ["cold", "warm"]))
    parts = [
        turn
        for block in sample_schedule.blocks(25, 4)
        for turn in sample_schedule.turns(["a", "b"], block, ["cold", "warm"])
    ]
    assert parts == whole


def test_every_version_has_its_turn_once_a_round_and_mode():
    count = Counter(sample_schedule.turns(["a", "b", "c"], range(5), ["cold", "warm"]))
    assert set(count.values()) == {1}
    assert len(count) == 3 * 5 * 2


def test_a_version_is_at_every_place_about_as_often():
    places = Counter()
    for number in range(600):
        order = [turn.version for turn in sample_schedule.turns(["a", "b", "c"], [number], ["warm"])]
        places.update(enumerate(order))
    assert len(places) == 9
    assert all(150 <= count <= 250 for count in places.values())


@pytest.mark.parametrize(("count", "processes"), [(25, 5), (25, 4), (3, 5), (1, 1), (25, 1)])
def test_blocks_hold_every_round_once_and_differ_by_one_at_most(count, processes):
    blocks = sample_schedule.blocks(count, processes)
    assert [number for block in blocks for number in block] == list(range(count))
    assert len(blocks) == min(count, processes)
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1


@pytest.mark.parametrize(
    ("call_us", "size"),
    [(1000, 1), (100, 1), (99.9, 2), (50, 2), (49, 5), (12, 10), (6, 20), (3, 50), (0.5, 50)],
)
def test_short_calls_are_timed_in_batches(call_us, size):
    assert sample_schedule.batch_size(call_us * 1000) == size


def test_a_call_that_wobbles_keeps_its_batch():
    assert {sample_schedule.batch_size(us * 1000) for us in (5.2, 5.6, 6.0, 7.0, 9.0)} == {20}


def test_a_graph_holds_at_least_ten_short_calls_and_one_long_one():
    assert sample_schedule.graph_size(40_000) == 10
    assert sample_schedule.graph_size(6_000) == 20
    assert sample_schedule.graph_size(500_000) == 1


def test_modes_are_named_with_timer_cache_and_clock():
    assert sample_schedule.mode_name("warm", "none") == "events; cache warm; clock none"
    assert sample_schedule.mode_name("cold", "base") == "events; cache cold; clock base"
    assert sample_schedule.mode_name("graph", "none") == "graph replay; cache warm; clock none"


@pytest.mark.parametrize("set_mb", [2, 17, 34, 200])
def test_rotated_sets_outgrow_the_cache_before_one_comes_back(set_mb):
    sets = sample_schedule.input_sets(set_mb << 20, 50 << 20, 80 << 30)
    assert (sets - 1) * set_mb >= 3 * 50
    assert sets >= 2


def test_rotated_sets_leave_room_in_memory():
    assert sample_schedule.input_sets(1 << 30, 50 << 20, 4 << 30) == 2
    assert sample_schedule.input_sets(2 << 20, 50 << 20, 80 << 20) == 10
    assert sample_schedule.input_sets(1, 50 << 20, 80 << 30) == sample_schedule.MOST_SETS


def test_an_unknown_cache_is_taken_for_a_large_one():
    assert sample_schedule.input_sets(34 << 20, None, 80 << 30) > sample_schedule.input_sets(
        34 << 20, 50 << 20, 80 << 30
    )


def test_the_gpu_waits_twice_as_long_as_the_host_queues_and_never_for_long():
    assert sample_schedule.wait_cycles(1e6, 1000) == 2_000_000
    assert sample_schedule.wait_cycles(0, 1000) == 20_000
    assert sample_schedule.wait_cycles(1e12, 1000) == 50_000_000


# ---------------------------------------------------------------- series

COOL, HOT = GpuState(sm_mhz=1980, reasons=()), GpuState(sm_mhz=1400, reasons=("power cap",))
FOUR = [(100.0, False), (101.0, False), (102.0, True), (103.0, False)]


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        (COOL, COOL, []),
        (HOT, COOL, [0, 1, 2, 3]),
        (COOL, HOT, [0, 1, 2, 3]),
        (None, None, []),
        (GpuState(), GpuState(sm_mhz=1980), []),
        (GpuState(reasons=("idle",)), GpuState(reasons=("application clocks",)), []),
    ],
)
def test_throttled_samples_are_marked_and_kept(before, after, marked):
    series = SampleSeries("warm")
    series.add(0, FOUR, before, after)
    assert series.ns == [100.0, 101.0, 102.0, 103.0]
    assert series.throttled == marked
    assert series.host_bound == [2]


def test_a_series_is_a_run_s_samples():
    series = SampleSeries("cold")
    series.add(4, FOUR, COOL, COOL)
    series.add(5, FOUR, COOL, HOT)
    samples = Samples(**series.as_block("none"))
    assert samples.mode == "events; cache cold; clock none"
    assert samples.rounds == [4, 4, 4, 4, 5, 5, 5, 5]
    assert samples.clocks_mhz == [1980] * 4 + [1400] * 4
    assert samples.throttled == [4, 5, 6, 7]


def test_a_clock_that_was_read_only_sometimes_is_left_out():
    series = SampleSeries("warm")
    series.add(0, FOUR, COOL, COOL)
    series.add(1, FOUR, COOL, GpuState(reasons=()))
    assert series.as_block("none")["clocks_mhz"] == []
