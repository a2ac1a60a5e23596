"""Tests of what needs no GPU: the stage's protocol, what is said of outputs, and cases that are kept."""

import ctypes
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from profiler.catalog import ATTENTION, Case, Tolerance
from profiler.catalog.attention import HEADLINE
from profiler.collect import gpu_process, subprocesses
from profiler.collect.gpu import calls, cases, correctness, stage
from profiler.errors import CannotJudge

STAGES = ("correctness", "latency", "ncu_target", "torch_probe")
SMALL = {"batch": 1, "heads": 2, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}


@pytest.mark.parametrize("name", STAGES)
def test_without_torch_every_stage_is_skipped_and_says_so(tmp_path, name):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "torch.py").write_text("raise ImportError('No module named torch')")
    paths = f"{tmp_path / 'hidden'}{os.pathsep}{subprocesses.package_environment()['PYTHONPATH']}"
    request = {"version": {"id": "v1"}, "versions": [], "cells": [], "workload": SMALL}
    folder = tmp_path / "cell"
    result = gpu_process.run_stage(name, request, folder, timeout_s=60, env={"PYTHONPATH": paths})
    assert result["status"] == "skipped"
    assert "torch is not installed" in result["reason"]
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.request.json",
        f"{name}.result.json",
        f"{name}.log",
    }


def test_a_torch_without_a_gpu_is_skipped_and_says_which_it_is(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = gpu_process.run_stage(
        "correctness", {"version": {"id": "v1"}, "workload": SMALL}, tmp_path, timeout_s=120
    )
    assert result["status"] == "skipped"
    assert result["reason"].startswith("no GPU: ")


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_called_without_its_files_says_how(name):
    done = subprocess.run(
        [sys.executable, "-m", f"profiler.collect.gpu.{name}"],
        capture_output=True,
        text=True,
        env={**os.environ, **subprocesses.package_environment()},
    )
    assert done.returncode == 2
    assert "REQUEST.json RESULT.json" in done.stderr


# ---------------------------------------------------------------- the protocol


def result_of(work, tmp_path):
    (tmp_path / "request").write_text("{}")
    assert stage.main(work, [str(tmp_path / "request"), str(tmp_path / "result")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["request", "result"]
    return json.loads((tmp_path / "result").read_text())


def raising(error):
    def work(_request):
        raise error

    return work


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (stage.Skipped("no GPU: none"), "skipped", "no GPU: none"),
        (CannotJudge("torch's flash backend does not take it"), "skipped", "torch's flash backend does not"),
        (calls.LaunchRefused(1), "failed", "launch refused: cudaErrorInvalidValue (1)"),
        (calls.LaunchRefused(4242), "failed", "launch refused: CUDA error (4242)"),
        (
            RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with…"),
            "failed",
            "CUDA error: an illegal memory access was encountered",
        ),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate"), "failed", "out of GPU memory: CUDA out"),
        (MemoryError(), "failed", "out of memory"),
        (KeyError("workload"), "failed", "the request has no 'workload'"),
        (ValueError("what"), "failed", "ValueError: what"),
        (ValueError(), "failed", "ValueError: ValueError"),
    ],
)
def test_an_error_is_a_result_with_one_line_as_its_reason(tmp_path, error, status, reason):
    result = result_of(raising(error), tmp_path)
    assert result["status"] == status
    assert result["reason"].startswith(reason)
    assert "\n" not in result["reason"]


def test_numbers_that_json_lacks_are_null(tmp_path):
    numbers = [float("nan"), np.float32("inf"), np.float64(2.5), np.int64(3), True, None]
    assert result_of(lambda _: {"status": "done", "all": numbers}, tmp_path)["all"] == [
        None,
        None,
        2.5,
        3,
        True,
        None,
    ]


def ends(pid, within_s):
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("runner", [True, False])
def test_a_stage_ends_with_its_runner_and_not_with_a_thread_of_some_tool(runner):
    inner = "import time\nfrom profiler.collect.gpu import stage\nstage._die_with_parent()\n"
    inner += "print('up', flush=True)\n"
    outer = (
        "import subprocess, sys, os\n"
        f"os.environ['PROFILER_RUNNER'] = str(os.getpid() if {runner} else 1)\n"
        f"child = subprocess.Popen([sys.executable, '-c', {inner + 'time.sleep(60)'!r}], "
        "stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.Popen(
        [sys.executable, "-c", outer],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **subprocesses.package_environment()},
    )
    child = int(done.stdout.readline())
    done.wait(20)
    try:
        assert ends(child, 5 if runner else 0.5) == runner
    finally:
        if not runner:
            os.kill(child, 9)


# ---------------------------------------------------------------- arguments, problem


def test_arguments_are_passed_as_the_c_function_takes_them():
    class Tensor:
        def data_ptr(self):
            return 4096

    assert calls.c_argument(Tensor()).value == 4096
    assert calls.c_argument(None).value is None
    assert isinstance(calls.c_argument(0.125), ctypes.c_float)
    assert calls.c_argument(7).value == 7
    assert calls.c_argument(True).value == 1
    assert isinstance(calls.c_argument(np.int64(3)), ctypes.c_int)


def test_a_problem_of_a_users_own_is_found_beside_the_catalogue(tmp_path):
    (tmp_path / "mine.py").write_text("class P: name = 'mine'\nPROBLEM = P()\n")
    request = {"catalog": str(tmp_path / "catalog.toml"), "problem": "mine.py:PROBLEM"}
    assert stage.problem_of(request)[1].name == "mine"
    assert stage.problem_of({})[1] is ATTENTION


# ---------------------------------------------------------------- verdict

CASE = Case((), (), np.full((2, 3), np.nan, np.float16), np.ones((2, 3)), Tolerance(1e-3, 1e-3))


def outputs(*values):
    return [np.full((2, 3), value, np.float16) for value in values]


def test_right_in_every_repeat_is_done():
    found = correctness.verdict(outputs(1, 1, 1), False, False, CASE)
    assert (found["status"], found["reason"], found["wrong"], found["moved"]) == ("done", None, 0, False)
    assert found["errors"] == [0.0, 0.0, 0.0]
    assert found["elements"] == 6


def test_one_wrong_repeat_is_wrong_and_a_moving_error_is_said():
    got = outputs(1, 1, 1)
    got[1][1, 0] = 3
    found = correctness.verdict(got, False, False, CASE)
    assert found["status"] == "wrong"
    assert found["moved"]
    assert (found["max_abs_error"], found["first_wrong"]) == (2.0, (1, 0))
    assert found["reason"] == (
        "1 of 6 elements are out of tolerance, the first at [1, 0]; the largest error is 2; "
        "the same inputs gave different outputs"
    )


def test_an_element_that_was_not_written_is_not_finite():
    got = outputs(1)
    got[0][0, 2] = np.nan
    found = correctness.verdict(got, False, False, CASE)
    assert (found["status"], found["max_abs_error"], found["not_finite"]) == ("wrong", None, 1)
    assert "1 are not finite" in found["reason"]


def test_right_numbers_with_a_write_outside_are_wrong():
    assert correctness.verdict(outputs(1), True, False, CASE)["reason"] == "it wrote outside its output"
    assert correctness.verdict(outputs(1), False, True, CASE)["reason"] == "it changed its inputs"


def test_bits_that_move_within_tolerance_are_right_and_said():
    found = correctness.verdict(outputs(1, 1.0009765625), False, False, CASE)
    assert (found["status"], found["moved"]) == ("done", True)


def test_another_shape_is_wrong():
    found = correctness.verdict([np.ones((3, 2), np.float16)], False, False, CASE)
    assert found["status"] == "wrong"
    assert "[3, 2] instead of [2, 3]" in found["reason"]


# ---------------------------------------------------------------- cases


@pytest.mark.parametrize("dtype", ["fp16", "fp8"])
def test_a_kept_case_is_the_case_that_was_made(tmp_path, dtype):
    workload = ATTENTION.workload(**{**SMALL, "dtype": dtype})
    made = cases.load_or_make(ATTENTION, workload, 5, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    kept = cases.load_or_make(ATTENTION, workload, 5, tmp_path)
    for one, other in ((made.arguments, kept.arguments), (made.operands, kept.operands)):
        assert [type(value) for value in one] == [type(value) for value in other]
        for value, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, same)
    np.testing.assert_array_equal(made.reference, kept.reference)
    assert (made.tolerance, made.input_error) == (kept.tolerance, kept.input_error)
    assert sum(value is kept.output for value in kept.arguments) == 1
    assert np.isnan(kept.output).all()


def test_another_seed_or_size_is_another_case(tmp_path):
    workload = ATTENTION.workload(**SMALL)
    first = cases.load_or_make(ATTENTION, workload, 0, tmp_path)
    second = cases.load_or_make(ATTENTION, workload, 1, tmp_path)
    cases.load_or_make(ATTENTION, ATTENTION.workload(**{**SMALL, "causal": False}), 0, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    assert not np.array_equal(first.arguments[0], second.arguments[0])


def test_a_damaged_kept_case_is_made_again(tmp_path):
    workload = ATTENTION.workload(**SMALL)
    cases.load_or_make(ATTENTION, workload, 0, tmp_path)
    (path,) = tmp_path.iterdir()
    for damage in (b"", path.read_bytes()[:1000], b"no zip at all"):
        path.write_bytes(damage)
        assert np.isfinite(cases.load_or_make(ATTENTION, workload, 0, tmp_path).reference).all()


def test_the_headline_inputs_are_those_of_the_check_on_the_cpu(tmp_path):
    mine = stage.case_of({"seed": 2, "cases": str(tmp_path)}, ATTENTION, HEADLINE)
    np.testing.assert_array_equal(mine.arguments[0], ATTENTION.case(HEADLINE, 2).arguments[0])
