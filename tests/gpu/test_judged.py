"""Candidates judged with a GPU: timed beside an elite and a baseline, and what no run on the CPU can see."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.collect.gpu.cuda_driver import read_gpu
from profiler.evidence.gpu_parts import part_of_device
from profiler.evidence.values import Evidence
from profiler.judge.isolation import why_not_isolated
from profiler.judge.judgement import StageState
from profiler.judge.pipeline import judge_candidate
from profiler.statistics.verdict import Verdict
from tests.exploits.corpus import BY_NAME, ON_A_GPU, Exploit

HEADLINE = "1x8x512x64"
TRUST = bool(why_not_isolated())


@pytest.fixture(scope="module")
def gpu() -> str:
    """The name of the part in this machine."""
    found = read_gpu()
    part = part_of_device(found.name or "") if found else None
    if part is None:
        pytest.skip(f"no part is known for {found.name if found else 'this machine'}")
    return part.name


def test_a_version_is_timed_beside_its_parent_and_a_baseline(gpu: str) -> None:
    judgement = judge_candidate("v2d_b", "v2d_a", gpu=gpu, workloads=[HEADLINE], seed=7, trust=TRUST)
    assert judgement.stage("measured").state is StageState.PASSED, judgement.stage("measured").reason
    assert judgement.evidence is Evidence.MEASURED
    (time,) = judgement.times
    assert time.floor_ns is not None
    assert time.likely_ns is not None
    assert time.floor_ns < time.likely_ns < 1e6
    (row,) = judgement.against
    assert row.evidence is Evidence.MEASURED
    assert row.verdict is Verdict.BETTER  # the swizzle takes the conflicts away
    assert judgement.baseline == "sdpa"
    assert len(judgement.against_baseline) == 1


def test_the_same_code_is_not_better_than_itself(gpu: str) -> None:
    judgement = judge_candidate("v2d_b", "v2d_b", gpu=gpu, workloads=[HEADLINE], seed=8, trust=TRUST)
    (row,) = judgement.against
    assert row.verdict in (Verdict.SAME, Verdict.UNCLEAR)


@pytest.mark.parametrize("name", ["plain", "cluster", "two_launches", "keys_split"])
def test_an_honest_candidate_is_measured(name: str, gpu: str, tmp_path: Path) -> None:
    path = BY_NAME[name].write(tmp_path)
    judgement = judge_candidate(path, gpu=gpu, workloads=[HEADLINE], seed=9, trust=TRUST)
    assert judgement.stage("measured").state is StageState.PASSED, judgement.reason
    assert judgement.valid is True
    assert judgement.evidence is Evidence.MEASURED


@pytest.mark.parametrize("exploit", ON_A_GPU, ids=lambda exploit: exploit.name)
def test_what_only_a_gpu_shows_is_caught(exploit: Exploit, gpu: str, tmp_path: Path) -> None:
    path = exploit.write(tmp_path)
    judgement = judge_candidate(path, gpu=gpu, workloads=[HEADLINE], seed=11, trust=TRUST)
    assert judgement.valid is False
    assert judgement.failed is not None
    assert judgement.failed.name == exploit.stage, judgement.reason
