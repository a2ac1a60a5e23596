"""The protocol of the programs: a request in, a result out, an error as a reason, an end with the runner."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION, HEADLINE
from profiler.collect import gpu_process, subprocesses
from profiler.collect.gpu import calls, program
from profiler.collect.gpu.messages import (
    CORRECTNESS,
    LATENCY,
    NCU_TARGET,
    TORCH_PROBE,
    CheckRequest,
    LatencyRequest,
    ProbeRequest,
    ProblemSetup,
    TargetRequest,
    VersionCode,
)
from profiler.errors import CannotJudge

SMALL = {"batch": 1, "heads": 2, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}
REQUESTS = {
    CORRECTNESS: CheckRequest(VersionCode("v1"), SMALL),
    LATENCY: LatencyRequest({}),
    NCU_TARGET: TargetRequest((), ()),
    TORCH_PROBE: ProbeRequest(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.name)
def test_without_torch_every_program_is_skipped_and_says_so(tmp_path, kind):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "torch.py").write_text("raise ImportError('No module named torch')")
    paths = f"{tmp_path / 'hidden'}{os.pathsep}{subprocesses.package_environment()['PYTHONPATH']}"
    folder = tmp_path / "cell"
    result = gpu_process.run_program(kind, REQUESTS[kind], folder, timeout_s=60, env={"PYTHONPATH": paths})
    assert (result["status"], result["machine"]) == ("skipped", True)
    assert "torch is not installed" in result["reason"]
    assert {path.name for path in folder.iterdir()} == {
        f"{kind.name}.request.json",
        f"{kind.name}.result.json",
        f"{kind.name}.log",
    }


@pytest.mark.slow
def test_a_torch_without_a_gpu_is_skipped_and_says_which_it_is(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = gpu_process.run_program(CORRECTNESS, REQUESTS[CORRECTNESS], tmp_path, timeout_s=120)
    assert result["status"] == "skipped"
    assert result["reason"].startswith("no GPU: ")


@pytest.mark.slow
def test_a_program_called_without_its_files_says_how():
    done = subprocess.run(
        [sys.executable, "-m", "profiler.collect.gpu.torch_probe"],
        capture_output=True,
        text=True,
        env={**os.environ, **subprocesses.package_environment()},
    )
    assert done.returncode == 2
    assert "REQUEST.json RESULT.json" in done.stderr


# ---------------------------------------------------------------- results


def result_of(work, tmp_path, request="{}"):
    (tmp_path / "request").write_text(request)
    assert program.main(TORCH_PROBE, work, [str(tmp_path / "request"), str(tmp_path / "result")]) == 0
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
        (program.Skipped("no GPU: none"), "skipped", "no GPU: none"),
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
        (ValueError("what"), "failed", "ValueError: what"),
        (ValueError(), "failed", "ValueError: ValueError"),
    ],
)
def test_an_error_is_a_result_with_one_line_as_its_reason(tmp_path, error, status, reason):
    result = result_of(raising(error), tmp_path)
    assert result["status"] == status
    assert result["reason"].startswith(reason)
    assert "\n" not in result["reason"]


def test_a_request_that_is_none_names_what_is_wrong_with_it(tmp_path):
    result = result_of(raising(AssertionError("it was called")), tmp_path, '{"colour": "blue"}')
    assert result == {"status": "failed", "reason": "the request has 'colour', which is no field of it"}


def test_numbers_that_json_lacks_are_null(tmp_path):
    numbers = [float("nan"), np.float32("inf"), np.float64(2.5), np.int64(3), True, None]
    result = result_of(lambda _request: {"status": "done", "all": numbers}, tmp_path)
    assert result["all"] == [None, None, 2.5, 3, True, None]


# ---------------------------------------------------------------- its end


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


@pytest.mark.slow
@pytest.mark.parametrize("runner", [True, False])
def test_a_program_ends_with_its_runner_and_not_with_a_thread_of_some_tool(runner):
    inner = "import time\nfrom profiler.collect.gpu import program\nprogram._die_with_parent()\n"
    inner += "print('up', flush=True)\n"
    outer = (
        "import subprocess, sys, os\n"
        f"os.environ['PROFILER_RUNNER'] = str(os.getpid() if {runner} else 1)\n"
        f"child = subprocess.Popen([sys.executable, '-c', {inner + 'time.sleep(60)'!r}], "
        "stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", outer],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **subprocesses.package_environment()},
    )
    child = int(process.stdout.readline())
    process.wait(20)
    try:
        assert ends(child, 20 if runner else 0.5) == runner
    finally:
        if not runner:
            os.kill(child, 9)


# ---------------------------------------------------------------- the problem and its inputs


def test_a_problem_of_a_users_own_is_found_beside_the_catalogue(tmp_path):
    (tmp_path / "mine.py").write_text("class P: name = 'mine'\nPROBLEM = P()\n")
    setup = ProblemSetup(catalog=str(tmp_path / "catalog.toml"), problem="mine.py:PROBLEM")
    assert program.load_problem(setup)[1].name == "mine"
    assert program.load_problem(ProblemSetup())[1] is ATTENTION


@pytest.mark.slow
def test_the_headline_inputs_are_those_of_the_check_on_the_cpu(tmp_path):
    case = program.load_case(ProblemSetup(seed=2, cases=str(tmp_path)), ATTENTION, HEADLINE)
    np.testing.assert_array_equal(case.arguments[0], ATTENTION.case(HEADLINE, 2).arguments[0])
