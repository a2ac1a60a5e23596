"""The stages run whole on the host in place of a GPU: real libraries, real torch, planted errors."""

import shutil

import numpy as np
import pytest

from profiler.catalog import ATTENTION
from profiler.collect.gpu import buffers, correctness, latency, ncu_target, stage
from tests import hostgpu

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

SMALL = {"batch": 1, "heads": 2, "len_q": 48, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}
SDPA = {"id": "sdpa", "library": None, "callable": "profiler.catalog.torch_backends:sdpa"}


@pytest.fixture
def torch(monkeypatch):
    hostgpu.Graph.replays = 0
    return hostgpu.install(monkeypatch)


def version(folder, **planted):
    name = "_".join(planted) or "right"
    return {"id": name, "library": str(hostgpu.library(folder, **planted)), "callable": None}


def check(folder, **planted):
    return correctness.work({"version": version(folder, **planted), "workload": SMALL, "seed": 3})


def test_a_right_library_passes_and_its_output_can_be_kept(torch, tmp_path):
    request = {"version": version(tmp_path), "workload": SMALL, "seed": 3, "save": str(tmp_path / "out.npy")}
    found = correctness.work({**request, "cases": str(tmp_path / "cases")})
    assert (found["status"], found["reason"]) == ("done", None)
    assert found["max_abs_error"] < 1e-3
    assert len(found["errors"]) == correctness.REPEATS
    case = ATTENTION.case(ATTENTION.workload(**SMALL), 3)
    assert np.abs(np.load(tmp_path / "out.npy") - case.reference).max() == found["max_abs_error"]


def test_a_callable_is_checked_the_same_way(torch):
    found = correctness.work({"version": SDPA, "workload": {**SMALL, "len_q": 64}, "seed": 0})
    assert found["status"] == "done"


@pytest.mark.parametrize(
    ("planted", "status", "reason"),
    [
        ({"FACTOR": 0.5}, "wrong", "out of tolerance"),
        ({"SKIP_ROW": 47}, "wrong", "128 are not finite"),
        ({"OUTSIDE": 1}, "wrong", "it wrote outside its output"),
        ({"INPUTS": 1}, "wrong", "it changed its inputs"),
        ({"REFUSE": 1}, "failed", "launch refused: cudaErrorInvalidValue (1)"),
    ],
)
def test_a_planted_error_is_found(torch, tmp_path, planted, status, reason):
    found = check(tmp_path, **planted)
    assert found["status"] == status
    assert reason in found["reason"]


def test_a_row_that_is_left_out_is_named(torch, tmp_path):
    assert check(tmp_path, SKIP_ROW=5)["first_wrong"] == (0, 0, 5, 0)


def test_a_library_that_is_not_there_or_lacks_the_function_says_so(torch, tmp_path):
    lacking = {"id": "x", "library": str(tmp_path / "no.so")}
    with pytest.raises(RuntimeError, match=r"no\.so cannot be loaded"):
        correctness.work({"version": lacking, "workload": SMALL})
    empty = tmp_path / "empty.cpp"
    empty.write_text("")
    hostgpu.subprocess.run(["g++", "-shared", "-o", tmp_path / "empty.so", empty], check=True)
    with pytest.raises(RuntimeError, match=r"empty\.so has no function attention_forward"):
        correctness.work({"version": {"id": "x", "library": str(tmp_path / "empty.so")}, "workload": SMALL})
    with pytest.raises(ValueError, match="neither a library nor a callable"):
        correctness.work({"version": {"id": "x"}, "workload": SMALL})


def test_rotated_inputs_are_others_of_the_same_kind(torch):
    case = ATTENTION.case(ATTENTION.workload(**SMALL), 0)
    first, other = buffers.upload(torch, case), buffers.upload(torch, case, shift=8)
    assert not torch.equal(first.arguments[0], other.arguments[0])
    assert torch.equal(first.arguments[0].flatten().sort()[0], other.arguments[0].flatten().sort()[0])
    assert other.output.isnan().all()
    assert first.arguments[3] is first.output
    assert first.operands[0] is first.arguments[0], "a callable reads the same arrays as a library"
    assert first.nbytes == sum(value.nbytes for value in case.arguments if hasattr(value, "nbytes"))


# ---------------------------------------------------------------- timing


def time_it(versions, **settings):
    workload = {**SMALL, "len_q": 64, "heads": 1}
    request = {"versions": versions, "workload": workload, "warm_up_ms": 1, "rounds": [0, 1, 2], "samples": 2}
    return latency.work({**request, **settings})


def test_every_version_and_mode_has_its_samples_in_every_round(torch, tmp_path):
    found = time_it([version(tmp_path), SDPA], modes=["cold", "warm", "graph"])
    assert found["status"] == "done"
    assert found["rounds_done"] == [0, 1, 2]
    assert found["cold_sets"] > 2
    assert set(found["versions"]) == {"right", "sdpa"}
    for one in found["versions"].values():
        assert [samples["mode"] for samples in one["samples"]] == [
            "events; cache cold; clock none",
            "events; cache warm; clock none",
            "graph replay; cache warm; clock none",
        ]
        for samples in one["samples"]:
            assert samples["rounds"] == [0, 0, 1, 1, 2, 2]
            assert len(samples["ns"]) == 6
            assert min(samples["ns"]) >= 0
            assert samples["throttled"] == []
    assert hostgpu.Graph.replays > 2 * 6
    assert found["launch_ns"]["events"] > 0


def test_a_version_that_is_refused_costs_itself_and_not_the_group(torch, tmp_path):
    found = time_it([version(tmp_path, REFUSE=1), version(tmp_path)], modes=["warm"])
    assert found["status"] == "done"
    assert found["versions"]["REFUSE"]["status"] == "failed"
    assert "launch refused" in found["versions"]["REFUSE"]["reason"]
    assert len(found["versions"]["right"]["samples"][0]["ns"]) == 6


def test_a_version_that_leaves_output_unwritten_is_not_timed(torch, tmp_path):
    found = time_it([version(tmp_path, SKIP_ROW=3)], modes=["warm"])
    assert found["status"] == "failed"
    assert "unwritten" in found["reason"]


def test_a_call_that_no_graph_takes_is_timed_without(torch, tmp_path, monkeypatch):
    def refuse(_graph):
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", refuse)
    found = time_it([version(tmp_path)], modes=["cold", "warm", "graph"])
    assert found["status"] == "done"
    right = found["versions"]["right"]
    assert [samples["mode"].split(";")[0] for samples in right["samples"]] == ["events", "events"]
    assert "capturing" in right["without"]["graph"]
    assert found["launch_ns"]["graph"] is None
    assert time_it([version(tmp_path)], modes=["graph"])["status"] == "failed", "nothing is left of it"


def test_the_clock_that_waits_are_made_by_is_the_highest_while_the_gpu_wakes(torch, tmp_path, monkeypatch):
    taken = iter([5.8, 5.8, 0.6, 0.5])  # milliseconds for a million cycles: 172 MHz asleep, 2000 awake
    monkeypatch.setattr(latency, "SPIN_S", 0.01)
    monkeypatch.setattr(hostgpu.Event, "elapsed_time", lambda *_: next(taken, 0.5))
    request = {"workload": SMALL, "modes": ["warm"]}
    place, problem = stage.problem_of(request)
    bench = latency.LatencySampler(torch, request, place, problem, latency.device.StateMonitor())
    assert bench._clock_mhz == pytest.approx(2000)


def test_a_batch_that_another_process_decided_is_kept(torch, tmp_path):
    found = time_it([version(tmp_path)], modes=["warm"], batch={"right": {"warm": 7}})
    assert found["versions"]["right"]["batch"] == {"warm": 7}


def test_time_that_is_over_leaves_whole_rounds(torch, tmp_path):
    found = time_it([version(tmp_path)], modes=["warm"], rounds=list(range(200)), max_seconds=0.05)
    done = found["rounds_done"]
    assert done == list(range(len(done)))
    assert 1 <= len(done) < 200
    assert len(found["versions"]["right"]["samples"][0]["ns"]) == 2 * len(done)


def test_an_unknown_mode_is_refused(torch):
    with pytest.raises(ValueError, match="unknown mode tepid"):
        time_it([SDPA], modes=["tepid"])


# ---------------------------------------------------------------- target


def test_only_the_counted_calls_are_in_ranges(torch, tmp_path):
    cells = [{"version": "right", "workload": SMALL}, {"version": "sdpa", "workload": SMALL}]
    found = ncu_target.work({"versions": [version(tmp_path), SDPA], "cells": cells, "calls": 2, "warm_up": 3})
    label = "1x2x48_3a_64x64_causal"
    assert [cell["range"] for cell in found["cells"]] == [f"right_at_{label}", f"sdpa_at_{label}"]
    pushed = [name for name in torch.cuda.pushed if name not in ("pop", "probe")]
    assert pushed == [f"right_at_{label}"] * 2 + [f"sdpa_at_{label}"] * 2
    assert torch.cuda.pushed.count("pop") == len(pushed) + 1


def test_a_cell_that_is_refused_leaves_the_others(torch, tmp_path):
    versions = [version(tmp_path, REFUSE=1), version(tmp_path)]
    cells = [{"version": one["id"], "workload": SMALL} for one in versions]
    found = ncu_target.work({"versions": versions, "cells": cells})
    assert [cell["status"] for cell in found["cells"]] == ["failed", "done"]
    assert found["status"] == "done"
    assert "launch refused" in found["reason"]
    alone = ncu_target.work({"versions": versions, "cells": cells[:1]})
    assert alone["status"] == "failed"


def test_no_cell_is_begun_after_the_time_is_over_and_none_of_them_has_failed(torch, tmp_path):
    cells = [{"version": "right", "workload": SMALL}, {"version": "sdpa", "workload": SMALL}]
    found = ncu_target.work({"versions": [version(tmp_path), SDPA], "cells": cells, "max_seconds": 1e-9})
    assert [cell["status"] for cell in found["cells"]] == ["done", ncu_target.UNLAUNCHED]
    assert (found["status"], found["reason"]) == ("done", None)
    assert not any("sdpa" in name for name in torch.cuda.pushed)
