"""How calls are timed: modes, rounds, batches, several workloads in one process; on the host as a GPU."""

import types

import pytest

from profiler.collect.gpu import event_timer
from profiler.collect.gpu.latency import time_workload, time_workloads
from profiler.collect.gpu.messages import LatencyRequest, TimingRequest
from tests import hostgpu
from tests.collect.gpu.conftest import SDPA

SMALL = {"batch": 1, "heads": 1, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}
LARGER = {**SMALL, "heads": 2}


@pytest.fixture(autouse=True)
def _awake(monkeypatch):
    """A host has no clock to wait for."""
    monkeypatch.setattr(event_timer, "SPIN_S", 0.001)


def timing(versions, workload=SMALL, **changed):
    settings = {"rounds": (0, 1, 2), "samples": 2, "modes": ("warm",), "warm_up_ms": 1.0, **changed}
    return TimingRequest(workload, tuple(versions), **settings)


def time_it(torch, versions, **changed):
    request = LatencyRequest({"workload": timing(versions, **changed)})
    return time_workloads(request)["timings"]["workload"]


@pytest.mark.slow
def test_every_version_and_mode_has_its_samples_in_every_round(torch, version):
    timed = time_it(torch, [version(), SDPA], modes=("cold", "warm", "graph"))
    assert timed["status"] == "done"
    assert timed["rounds_done"] == [0, 1, 2]
    assert timed["cold_sets"] > 2
    assert set(timed["versions"]) == {"right", "sdpa"}
    for result in timed["versions"].values():
        assert [samples["mode"] for samples in result["samples"]] == [
            "events; cache cold; clock none",
            "events; cache warm; clock none",
            "graph replay; cache warm; clock none",
        ]
        for samples in result["samples"]:
            assert samples["rounds"] == [0, 0, 1, 1, 2, 2]
            assert len(samples["ns"]) == 6
            assert min(samples["ns"]) >= 0
            assert samples["throttled"] == []
    assert hostgpu.Graph.replays > 2 * 6
    assert timed["launch_ns"]["events"] > 0


def test_a_version_that_is_refused_costs_itself_and_not_the_group(torch, version):
    timed = time_it(torch, [version(REFUSE=1), version()])
    assert timed["status"] == "done"
    assert timed["versions"]["REFUSE"]["status"] == "failed"
    assert "launch refused" in timed["versions"]["REFUSE"]["reason"]
    assert len(timed["versions"]["right"]["samples"][0]["ns"]) == 6


def test_a_version_that_leaves_output_unwritten_is_not_timed(torch, version):
    timed = time_it(torch, [version(SKIP_ROW=47)])
    assert timed["status"] == "failed"
    assert "unwritten" in timed["reason"]


def test_a_call_that_no_graph_takes_is_timed_without(torch, version, monkeypatch):
    def refuse(_graph):
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", refuse)
    timed = time_it(torch, [version()], modes=("cold", "warm", "graph"))
    assert timed["status"] == "done"
    right = timed["versions"]["right"]
    assert [samples["mode"].split(";")[0] for samples in right["samples"]] == ["events", "events"]
    assert "capturing" in right["without"]["graph"]
    assert timed["launch_ns"]["graph"] is None
    assert time_it(torch, [version()], modes=("graph",))["status"] == "failed", "nothing is left of it"


def test_the_clock_that_waits_are_made_by_is_the_highest_while_the_gpu_wakes(torch, monkeypatch):
    milliseconds = iter([5.8, 5.8, 0.6, 0.5])  # for a million cycles: 172 MHz asleep, 2000 awake
    seconds = iter(range(10))  # one a look at the clock, however busy this machine is
    monkeypatch.setattr(event_timer, "time", types.SimpleNamespace(perf_counter=lambda: next(seconds)))
    monkeypatch.setattr(event_timer, "SPIN_S", 5)
    monkeypatch.setattr(hostgpu.Event, "elapsed_time", lambda *_: next(milliseconds, 0.5))
    assert event_timer.EventTimer(torch)._clock_mhz == pytest.approx(2000)


def test_a_batch_that_another_process_decided_is_kept(torch, version):
    timed = time_it(torch, [version()], batch={"right": {"warm": 7}})
    assert timed["versions"]["right"]["batch"] == {"warm": 7}


def test_time_that_is_over_leaves_whole_rounds(torch, version):
    timed = time_it(torch, [version()], rounds=tuple(range(100_000)), max_seconds=0.05)
    done = timed["rounds_done"]
    assert done == list(range(len(done)))
    assert 1 <= len(done) < 100_000
    assert len(timed["versions"]["right"]["samples"][0]["ns"]) == 2 * len(done)


def test_an_unknown_mode_is_refused(torch):
    tepid = timing([SDPA], modes=("tepid",))
    with pytest.raises(ValueError, match="unknown mode tepid"):
        time_workload(torch, LatencyRequest({"small": tepid}), tepid)


# ---------------------------------------------------------------- several workloads in one process


def test_every_workload_has_what_a_process_of_its_own_would_give(torch, version):
    timings = {"a": timing([version()]), "b": timing([version()], LARGER, modes=("cold",))}
    result = time_workloads(LatencyRequest(timings))
    assert result["status"] == "done"
    assert list(result["timings"]) == ["a", "b"]
    blocks = [timed["versions"]["right"]["samples"][0] for timed in result["timings"].values()]
    assert [block["mode"] for block in blocks] == [
        "events; cache warm; clock none",
        "events; cache cold; clock none",
    ]
    assert [len(block["ns"]) for block in blocks] == [6, 6]
    assert all(timed["launch_ns"]["events"] > 0 for timed in result["timings"].values())


def test_a_workload_that_fails_leaves_the_others(torch, version):
    timings = {
        "tepid": timing([version()], modes=("tepid",)),
        "refused": timing([version(REFUSE=1)]),
        "good": timing([version()], LARGER),
    }
    result = time_workloads(LatencyRequest(timings))
    assert result["status"] == "done"
    assert [timed["status"] for timed in result["timings"].values()] == ["failed", "failed", "done"]
    assert "unknown mode tepid" in result["timings"]["tepid"]["reason"]
    assert result["timings"]["tepid"]["versions"] == {}
    assert "launch refused" in result["timings"]["refused"]["versions"]["REFUSE"]["reason"]


def test_where_none_could_be_timed_the_first_reason_stands(torch, version):
    result = time_workloads(LatencyRequest({"a": timing([version()], modes=("tepid",))}))
    assert result["status"] == "failed"
    assert "unknown mode tepid" in result["reason"]
