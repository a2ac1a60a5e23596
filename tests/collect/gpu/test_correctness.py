"""Whether a version is right: planted errors are found, on the host in the place of a GPU."""

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.catalog.problem import Case, Tolerance
from profiler.collect.gpu.correctness import check, judge_outputs
from profiler.collect.gpu.messages import CheckRequest, ProblemSetup
from tests.collect.gpu.conftest import SDPA

SMALL = {"batch": 1, "heads": 2, "len_q": 48, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}


@pytest.mark.slow
def test_a_right_library_passes_and_its_output_can_be_kept(torch, version, tmp_path):
    setup = ProblemSetup(seed=3, cases=str(tmp_path / "cases"))
    result = check(CheckRequest(version(), SMALL, setup, save=str(tmp_path / "out.npy")))
    assert (result["status"], result["reason"]) == ("done", None)
    assert result["max_abs_error"] < 1e-3
    assert len(result["errors"]) == 3
    case = ATTENTION.case(ATTENTION.workload(**SMALL), 3)
    assert np.abs(np.load(tmp_path / "out.npy") - case.reference).max() == result["max_abs_error"]


@pytest.mark.slow
def test_a_callable_is_checked_the_same_way(torch):
    assert check(CheckRequest(SDPA, {**SMALL, "len_q": 64}))["status"] == "done"


@pytest.mark.slow
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
def test_a_planted_error_is_found(torch, version, planted, status, reason):
    result = check(CheckRequest(version(**planted), SMALL, ProblemSetup(seed=3)))
    assert result["status"] == status
    assert reason in result["reason"]


def test_a_row_that_is_left_out_is_named(torch, version):
    result = check(CheckRequest(version(SKIP_ROW=47), SMALL, ProblemSetup(seed=3)))
    assert result["first_wrong"] == [0, 0, 47, 0]


# ---------------------------------------------------------------- what the outputs say

CASE = Case((), (), np.full((2, 3), np.nan, np.float16), np.ones((2, 3)), Tolerance(1e-3, 1e-3))


def outputs(*values):
    return [np.full((2, 3), value, np.float16) for value in values]


def verdict(outputs, outside=False, changed=False):
    return judge_outputs(outputs, CASE, outside=outside, changed=changed)


def test_right_in_every_repeat_is_done():
    result = verdict(outputs(1, 1, 1))
    assert (result["status"], result["reason"], result["wrong"], result["moved"]) == ("done", None, 0, False)
    assert result["errors"] == [0.0, 0.0, 0.0]
    assert result["elements"] == 6


def test_one_wrong_repeat_is_wrong_and_a_moving_error_is_said():
    repeats = outputs(1, 1, 1)
    repeats[1][1, 0] = 3
    result = verdict(repeats)
    assert result["status"] == "wrong"
    assert result["moved"]
    assert (result["max_abs_error"], result["first_wrong"]) == (2.0, [1, 0])
    assert result["reason"] == (
        "1 of 6 elements are out of tolerance, the first at [1, 0]; the largest error is 2; "
        "the same inputs gave different outputs"
    )


def test_an_element_that_was_not_written_is_not_finite():
    repeats = outputs(1)
    repeats[0][0, 2] = np.nan
    result = verdict(repeats)
    assert (result["status"], result["max_abs_error"], result["not_finite"]) == ("wrong", None, 1)
    assert "1 are not finite" in result["reason"]


def test_right_numbers_with_a_write_outside_are_wrong():
    assert verdict(outputs(1), outside=True)["reason"] == "it wrote outside its output"
    assert verdict(outputs(1), changed=True)["reason"] == "it changed its inputs"


def test_bits_that_move_within_tolerance_are_right_and_said():
    result = verdict(outputs(1, 1.0009765625))
    assert (result["status"], result["moved"]) == ("done", True)


def test_another_shape_is_wrong():
    result = verdict([np.ones((3, 2), np.float16)])
    assert result["status"] == "wrong"
    assert "[3, 2] instead of [2, 3]" in result["reason"]
