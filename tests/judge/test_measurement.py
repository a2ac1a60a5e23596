"""How a candidate is timed beside others: sessions, checks around the rounds, verdicts; the host is a GPU."""

from __future__ import annotations

import json
import random
import re
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.catalog.cases import make_inputs
from profiler.catalog.catalog import load_catalog
from profiler.collect.gpu import event_timer, latency, module_launch
from profiler.collect.gpu.cuda_driver import read_gpu
from profiler.collect.gpu.messages import LatencyRequest, LatencyResult, VersionCode
from profiler.evidence.gpu_parts import find_part
from profiler.evidence.values import Evidence
from profiler.judge import measurement
from profiler.judge.isolation import Isolation, why_not_isolated
from profiler.judge.judgement import WorkloadTime
from profiler.judge.measurement import MeasuredSide, Measurement, SideSamples, measure
from profiler.judge.pipeline import below_the_floor
from profiler.statistics.verdict import Verdict
from tests import hostgpu
from tests.judge.host_driver import SIGNATURE, HostDriver

pytestmark = pytest.mark.slow  # imports torch

WORKLOAD = ATTENTION.workload(batch=1, heads=2, len_q=32, len_kv=48, head_dim=64, causal=True, dtype="fp16")
LABEL = WORKLOAD.label
CATALOG = load_catalog()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], HostDriver]:
    """Puts the host in the place of the GPU, and a driver with something planted in that of libcuda."""
    pytest.importorskip("torch", reason="torch is not installed")
    hostgpu.install(monkeypatch)
    monkeypatch.setattr(event_timer, "SPIN_S", 0.001)

    def install(planted: str = "") -> HostDriver:
        driver = HostDriver(planted)
        monkeypatch.setattr(module_launch, "load_driver", lambda: driver)
        return driver

    return install


def candidate(folder: Path, scratch: int = 0) -> MeasuredSide:
    """A side with a plan of one launch, written into the folder."""
    case = make_inputs(ATTENTION, WORKLOAD, 0)
    parameters, arrays = [], 0
    for _, value in zip(SIGNATURE, [a for a in case.arguments if a is not None], strict=False):
        if isinstance(value, np.ndarray):
            parameters.append({"bytes": "00" * 8, "pointers": [[0, arrays, 0]]})
            arrays += 1
    numbers = [WORKLOAD.len_q, WORKLOAD.len_kv]
    parameters += [{"bytes": n.to_bytes(4, "little").hex(), "pointers": []} for n in numbers]
    parameters.append({"bytes": np.float32(64**-0.5).tobytes().hex(), "pointers": []})
    parameters.append({"bytes": (1).to_bytes(4, "little").hex(), "pointers": []})
    parameters += [{"bytes": "00" * 8, "pointers": [[0, arrays + i, 0]]} for i in range(scratch)]
    launch = {"function": "attend", "grid": [8, 2, 1], "block": [128, 1, 1], "shared_bytes": 0}
    table = {
        "cubin": "kernel.cubin",
        "scratch": [256] * scratch,
        "launches": [{**launch, "cluster": [2, 1, 1], "parameters": parameters}],
    }
    (folder / "plan.json").write_text(json.dumps(table))
    (folder / "kernel.cubin").write_bytes(b"a cubin")
    plan = VersionCode("candidate", plan=str(folder / "plan.json"))
    return MeasuredSide("candidate", {LABEL: plan}, is_checked=True)


def here(request: LatencyRequest, folder: Path) -> LatencyResult:
    """The program, in this process; quick."""
    return latency.time_workloads(request)


def timed(sides: list[MeasuredSide], folder: Path, sessions: int = 3) -> Measurement:
    return measure(sides, CATALOG, [WORKLOAD], folder, here, seed=3, sessions=sessions)


def test_all_sides_are_timed_in_every_session_and_the_candidate_is_checked(
    host: Callable[[str], HostDriver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    driver = host("")
    baseline = measurement.baseline_code(CATALOG, [WORKLOAD])
    assert baseline is not None
    done = timed([candidate(tmp_path), baseline], tmp_path)
    assert not done.wrong
    assert set(done.samples) == {"candidate", "sdpa"}
    for own in done.samples.values():
        samples = own[LABEL]
        assert not samples.failed
        assert sorted(set(samples.rounds)) == list(range(9))
        assert samples.processes == [0] * 12 + [1] * 12 + [2] * 12
        assert samples.typical_ns is not None
    name, grid, attributes = driver.launches[0]
    assert (name, grid, attributes) == ("attend", (8, 2, 1), 1)
    assert done.decisions("sdpa", "candidate")[LABEL].rule == "live pair"


@pytest.mark.parametrize(
    ("planted", "scratch", "words"),
    [
        ("replay", 0, "elements are out of tolerance.*after the rounds"),
        ("inputs", 0, "changed its inputs.*before the rounds"),
        ("scratch", 1, "wrote outside its output.*before the rounds"),
    ],
)
def test_what_is_wrong_before_or_after_the_rounds_ends_the_measurement(
    host: Callable[[str], HostDriver],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    planted: str,
    scratch: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    host(planted)
    done = timed([candidate(tmp_path, scratch)], tmp_path)
    assert any(re.search(words, text) for text in done.wrong), done.wrong


def test_what_the_driver_refuses_is_the_candidates_failure(
    host: Callable[[str], HostDriver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    host("refused")
    done = timed([candidate(tmp_path)], tmp_path)
    assert "cuLaunchKernelEx failed (701)" in done.samples["candidate"][LABEL].failed


def test_inputs_are_new_in_every_session_and_the_order_changes(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []

    def run(request: LatencyRequest, folder: Path) -> LatencyResult:
        timing = request.timings[LABEL]
        seen.append((timing.versions[0].id, request.setup.seed, timing.check_seed))
        return answer(request, 1000.0)

    sides = [candidate(tmp_path), MeasuredSide("elite", {LABEL: VersionCode("elite", plan="x")})]
    measure(sides, CATALOG, [WORKLOAD], tmp_path, run, seed=3, sessions=6)
    by_session = [seen[i : i + 2] for i in range(0, 12, 2)]
    assert all(a[1] == b[1] for a, b in by_session)  # both sides of a session have the same
    assert len({rows[0][1] for rows in by_session}) == 6
    assert {rows[0][0] for rows in by_session} == {"candidate", "elite"}
    checks = [check for name, seed, check in seen if name == "candidate"]
    assert len(set(checks)) == 6
    assert None not in checks


def answer(
    request: LatencyRequest, ns: float, noise: float = 0.0, rng: random.Random | None = None
) -> LatencyResult:
    """A result whose samples lie about a time."""
    timing = request.timings[LABEL]
    rng = rng or random.Random(1)
    offset = rng.gauss(0, noise)
    rounds = [number for number in timing.rounds for _ in range(timing.samples)]
    block = {
        "mode": "cold",
        "ns": [ns * (1 + offset + rng.gauss(0, noise)) for _ in rounds],
        "rounds": rounds,
        "clocks_mhz": [],
        "throttled": [],
    }
    version = {"status": "done", "reason": None, "samples": [block]}
    own = {"status": "done", "reason": None, "versions": {timing.versions[0].id: version}}
    return {"status": "done", "reason": None, "timings": {LABEL: own}}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("ratio", "verdict"), [(0.9, Verdict.BETTER), (1.1, Verdict.WORSE), (1.0, None)])
def test_the_verdict_on_a_session_is_that_of_live_pairs(
    tmp_path: Path, ratio: float, verdict: Verdict | None
) -> None:
    rng = random.Random(8)

    def run(request: LatencyRequest, folder: Path) -> LatencyResult:
        is_own = request.timings[LABEL].versions[0].id == "candidate"
        return answer(request, 20_000.0 * (ratio if is_own else 1.0), 0.004, rng)

    sides = [candidate(tmp_path), MeasuredSide("elite", {LABEL: VersionCode("elite", plan="x")})]
    done = measure(sides, CATALOG, [WORKLOAD], tmp_path, run, seed=3)
    decision = done.decisions("elite", "candidate")[LABEL]
    if verdict is None:
        assert decision.verdict in (Verdict.SAME, Verdict.UNCLEAR)
    else:
        assert decision.verdict is verdict
    assert decision.interval is not None
    assert decision.interval.low <= ratio - 1 <= decision.interval.high


def test_a_time_below_the_lower_bound_is_a_finding() -> None:
    times = [
        WorkloadTime("a", Evidence.MEASURED, 900.0, floor_ns=1000.0),
        WorkloadTime("b", Evidence.MEASURED, 1100.0, floor_ns=1000.0),
        WorkloadTime("c", Evidence.MODELLED, 900.0, floor_ns=1000.0),
    ]
    assert below_the_floor(times, Evidence.MEASURED) == [
        "a: 0.90 µs measured, below the lower bound of 1.00 µs: nothing can be so fast"
    ]


def test_where_no_such_gpu_is_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    part = find_part("H100-SXM")
    monkeypatch.setattr(measurement, "read_gpu", lambda: None)
    assert "no GPU is here" in measurement.why_no_gpu(part)
    other = types.SimpleNamespace(name="NVIDIA L4")
    monkeypatch.setattr(measurement, "read_gpu", lambda: other)
    assert "the GPU here is NVIDIA L4, not H100-SXM" in measurement.why_no_gpu(part)
    own = types.SimpleNamespace(name="NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(measurement, "read_gpu", lambda: own)
    assert measurement.why_no_gpu(part) == ""


def test_samples_without_a_clock_have_none() -> None:
    samples = SideSamples([1.0, 2.0], [0, 0], [1700.0], [], [0, 0])
    assert samples.paired().clocks_mhz == []


def test_the_program_runs_isolated_and_says_that_no_gpu_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real program in the real isolation: without a GPU its answer is a reason."""
    if why_not_isolated():
        pytest.skip(why_not_isolated())
    if read_gpu() is not None:
        pytest.skip("a GPU is here")
    pytest.importorskip("torch", reason="torch is not installed")
    run = measurement.isolated_runner(Isolation(), CATALOG)
    done = measure([candidate(tmp_path)], CATALOG, [WORKLOAD], tmp_path, run, seed=1, sessions=1)
    assert "no GPU" in done.reason
    assert done.samples["candidate"][LABEL].ns == []
