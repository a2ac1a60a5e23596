"""Tests of several workloads timed in one process, run on the host in place of a GPU."""

import shutil

import pytest

from profiler.collect.gpu import latencies
from tests import hostgpu

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

SMALL = {"batch": 1, "heads": 1, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}
LARGER = {**SMALL, "heads": 2}


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    found = hostgpu.install(monkeypatch)
    monkeypatch.setattr(found.cuda, "empty_cache", lambda: None)
    return found


def part(versions, workload, **settings):
    asked = {"versions": versions, "workload": workload, "warm_up_ms": 1, "rounds": [0, 1], "samples": 2}
    return {**asked, "modes": ["warm"], **settings}


def version(folder, **planted):
    name = "_".join(planted) or "right"
    return {"id": name, "library": str(hostgpu.library(folder, **planted)), "callable": None}


def test_every_workload_has_what_a_process_of_its_own_would_give(tmp_path):
    right = version(tmp_path)
    found = latencies.work({"parts": {"a": part([right], SMALL), "b": part([right], LARGER, modes=["cold"])}})
    assert found["status"] == "done"
    assert list(found["parts"]) == ["a", "b"]
    modes = [one["versions"]["right"]["samples"][0]["mode"] for one in found["parts"].values()]
    assert modes == ["events; cache warm; clock none", "events; cache cold; clock none"]
    for one in found["parts"].values():
        assert len(one["versions"]["right"]["samples"][0]["ns"]) == 4
        assert one["launch_ns"]["events"] > 0


def test_a_workload_that_fails_leaves_the_others(tmp_path):
    right, refused = version(tmp_path), version(tmp_path, REFUSE=1)
    parts = {
        "tepid": part([right], SMALL, modes=["tepid"]),
        "refused": part([refused], SMALL),
        "good": part([right], LARGER),
    }
    found = latencies.work({"parts": parts})
    assert found["status"] == "done"
    assert [one["status"] for one in found["parts"].values()] == ["failed", "failed", "done"]
    assert "unknown mode tepid" in found["parts"]["tepid"]["reason"]
    assert found["parts"]["tepid"]["versions"] == {}
    assert "launch refused" in found["parts"]["refused"]["versions"]["REFUSE"]["reason"]


def test_where_none_could_be_timed_the_first_reason_stands(tmp_path):
    found = latencies.work({"parts": {"a": part([version(tmp_path)], SMALL, modes=["tepid"])}})
    assert found["status"] == "failed"
    assert "unknown mode tepid" in found["reason"]
