"""Predictions of launches: limiter, range, what-ifs, and versions of the lineage through the command."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from profiler.catalog.catalog import load_catalog
from profiler.documents.prediction import PredictionDocument, predict_names
from profiler.errors import UnknownName
from profiler.model.error_table import load_errors
from profiler.model.launch_model import HitRates, LaunchInputs, LaunchModel
from profiler.model.prediction import WAITING, predict_counted, what_ifs
from profiler.model.version_prediction import with_macros
from tests.model.test_cycle_simulation import A100, inputs
from tests.toolchain import needs_gxx, needs_sass

ERRORS = load_errors()
HITS = HitRates(0.0, 1.0, 1.0)
CONFLICTS = ["LDS R0, [R2]", "FFMA R4, R0, R5, R4"] * 100


def conflicting(wavefronts: float) -> LaunchInputs:
    launch = inputs(CONFLICTS, [1] * 200, threads=256, blocks=A100.sms * 8)
    is_load = np.array([text.startswith("LDS") for text in CONFLICTS])
    nan = np.full(200, np.nan)
    return replace(
        launch,
        wavefronts=np.where(is_load, wavefronts, nan),
        ideal_wavefronts=np.where(is_load, 1.0, nan),
    )


def test_the_limiter_is_what_the_time_falls_without() -> None:
    prediction = predict_counted("k", LaunchModel(conflicting(8)), HITS, ERRORS)
    assert prediction.limiter == "L1 data"
    assert prediction.limiter_saves > 0.5
    assert prediction.low_ns < prediction.likely_ns < prediction.high_ns
    (no_conflicts, half) = list(what_ifs(prediction))[:2]
    assert no_conflicts.change == "no bank conflicts"
    assert "88 % of the shared wavefronts" in no_conflicts.needs
    assert no_conflicts.time_ratio < 0.5
    assert half.time_ratio == pytest.approx(0.5, abs=0.1)
    free = predict_counted("k", LaunchModel(conflicting(1)), HITS, ERRORS)
    assert free.likely_ns / prediction.likely_ns == pytest.approx(no_conflicts.time_ratio, rel=0.02)
    assert not any(change.change == "no bank conflicts" for change in what_ifs(free))


def test_a_chain_that_waits_has_no_limiter() -> None:
    launch = inputs(["FFMA R0, R0, R3, R4"] * 100, [1] * 100, stall=4)
    assert predict_counted("k", LaunchModel(launch), HITS, ERRORS).limiter == WAITING
    # Eight warps on a partition keep the pipe busy, two cycles an instruction; without it, issue takes half.
    # Two operands, of both banks of registers: three would keep a bank busy for two cycles too.
    long = inputs(["FADD R0, R0, R3"] * 1000, [1] * 1000, stall=4)
    many = replace(long, threads=32 * 32, blocks=A100.sms)
    busy = predict_counted("k", LaunchModel(many), HITS, ERRORS)
    assert busy.limiter == "FMA"
    assert busy.limiter_saves > 0.3


@pytest.mark.slow
def test_one_more_block_says_what_it_needs() -> None:
    launch = replace(conflicting(1), registers=128, shared_bytes=40 << 10)
    assert launch.resident_blocks == 2
    changes = {
        change.change: change for change in what_ifs(predict_counted("k", LaunchModel(launch), HITS, ERRORS))
    }
    more = changes["3 blocks on an SM instead of 2"]
    assert more.needs == "at most 80 registers per thread instead of 128"
    large = replace(conflicting(1), shared_bytes=80 << 10)
    assert large.resident_blocks == 2
    changes = {
        change.change: change for change in what_ifs(predict_counted("k", LaunchModel(large), HITS, ERRORS))
    }
    assert changes["3 blocks on an SM instead of 2"].needs == (
        "at most 53.6 KiB of shared memory per block instead of 80.0"
    )
    full = replace(conflicting(1), threads=1024)
    assert full.resident_blocks == 2
    assert not any(
        "blocks on an SM" in change.change
        for change in what_ifs(predict_counted("k", LaunchModel(full), HITS, ERRORS))
    )


def test_every_input_that_is_taken_away_widens_the_range() -> None:
    launch = inputs(["LDG.E R0, [R2.64]", "LDS R4, [R6]"] * 50, [1] * 100, threads=256, blocks=A100.sms)
    known = replace(launch, sectors=np.full(100, 4.0), wavefronts=np.full(100, 1.0))

    def spread(inputs_known: LaunchInputs, hits: HitRates | None) -> float:
        prediction = predict_counted("k", LaunchModel(inputs_known), hits, ERRORS)
        return prediction.high_ns / prediction.low_ns

    whole = spread(known, HITS)
    assert spread(launch, HITS) >= whole
    assert spread(replace(known, controls=None), HITS) >= whole
    assert spread(known, None) >= whole


def test_only_macros_that_the_source_offers_can_be_set() -> None:
    (version,) = load_catalog().pick(["v2d_c"])
    changed = with_macros(version, {"STAGES": "4"})
    assert changed.id == "v2d_c_STAGES4"
    assert "-DSTAGES=4" in changed.flags
    assert "-DSTAGES=3" not in changed.flags
    with pytest.raises(
        UnknownName, match="v2d_c has no macro TILE to set: it has SWIZZLE, STAGES, WARPS, KEYS"
    ):
        with_macros(version, {"TILE": "1"})


@needs_sass
@needs_gxx
def test_the_swizzle_is_seen_to_help_and_a_third_stage_not() -> None:
    document = predict_names(["v2d_b", "v2d_c"], workloads=["1x8x512x64"])
    swizzled, staged = document.calls
    assert swizzled.ratio is not None
    assert swizzled.ratio.against == "v2d_a"
    assert swizzled.ratio.ratio < 0.6
    assert swizzled.ratio.word == "faster"
    assert staged.ratio is not None
    assert staged.ratio.word == "unclear"
    assert staged.likely_ns is not None
    assert 4e3 < staged.likely_ns < 30e3
    answer = json.loads(json.dumps(document.to_dict()))
    assert answer["evidence"] == "modelled"
    assert answer["calls"][0]["launches"][0]["inputs"]["has_control_words"]


@needs_sass
@needs_gxx
@pytest.mark.parametrize(
    ("gpu", "arch"),
    # Nothing else is built for the second one; test_cubin_run tries another GPU too.
    [("H100-SXM", "sm_90a"), pytest.param("L4", "sm_89", marks=pytest.mark.long)],
)
def test_flags_and_another_gpu_can_be_tried(gpu: str, arch: str) -> None:
    document: PredictionDocument = predict_names(
        ["v2d_c"], workloads=["1x8x512x64"], gpus=[gpu], macros=["WARPS=8"]
    )
    assert [(call.subject, call.gpu.name, call.arch) for call in document.calls] == [
        ("v2d_c_WARPS8", gpu, arch),
    ]
    for call in document.calls:
        assert call.ratio is not None
        assert call.ratio.against == "v2d_c"
        assert 0.5 < call.ratio.ratio < 2
        assert call.longest is not None
        assert call.longest.inputs.threads == 256
        assert call.what_ifs


def test_what_is_asked_for_wrongly_is_named() -> None:
    with pytest.raises(UnknownName, match="no workload '9x9x9x9'"):
        predict_names(["v2d_c"], workloads=["9x9x9x9"])
    with pytest.raises(UnknownName, match="did you mean v2d_a"):
        predict_names(["v2d_c"], against="v2d_aa")
    with pytest.raises(UnknownName, match="no GPU 'B9000' is known here"):
        predict_names(["v2d_c"], gpus=["B9000"])
    with pytest.raises(UnknownName, match="NAME=VALUE"):
        predict_names(["v2d_c"], macros=["STAGES"])
