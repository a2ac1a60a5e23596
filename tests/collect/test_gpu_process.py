"""What is made of a program of collect/gpu, however it ends."""

import json
import signal

import pytest

from profiler.collect import gpu_process
from profiler.collect.gpu.messages import CORRECTNESS, CheckRequest, Program, VersionCode
from profiler.collect.subprocesses import ProcessResult

REQUEST = CheckRequest(VersionCode("v1"), {"batch": 1})
WELL = ProcessResult("exited", 0, 1.0, "at work", "ended with exit code 0")
CRASHED = ProcessResult("signalled", signal.SIGSEGV, 1.0, "at work\n\n", "was killed by SIGSEGV")
KILLED = ProcessResult("signalled", signal.SIGKILL, 1.0, "", "was killed by SIGKILL")


@pytest.fixture
def prepared(tmp_path):
    return gpu_process.prepare(CORRECTNESS, REQUEST, tmp_path)


def test_a_program_that_died_without_a_result_is_failed_with_how_and_its_last_words(prepared):
    result = prepared.result(CRASHED)
    assert result["status"] == "failed"
    assert result["reason"] == "its process was killed by SIGSEGV: at work"
    assert (result["ended"], result["tail"]) == ("signalled", "at work\n\n")


def test_a_program_that_was_killed_may_have_run_out_of_memory(prepared):
    assert "when memory ran out" in prepared.result(KILLED)["reason"]


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"status"', '{"other": 1}', '{"status": "done", "reason": null, "wrong": "few"}']
)
def test_half_a_result_is_no_result(prepared, text):
    prepared.result_path.write_text(text)
    result = prepared.result(WELL)
    assert result["status"] == "failed"
    assert result["reason"].startswith("its process ended with exit code 0: and its result ")


def test_a_result_is_kept_though_its_process_died_after_it(prepared):
    prepared.result_path.write_text(json.dumps({"status": "done", "reason": None}))
    assert prepared.result(CRASHED) == {"status": "done", "reason": None, "ended": "signalled"}


def test_an_old_result_is_never_taken_for_a_new_one(tmp_path):
    (tmp_path / "nothing.result.json").write_text('{"status": "done", "reason": null}')
    nothing = Program("nothing", CORRECTNESS.request, CORRECTNESS.result)
    result = gpu_process.run_program(nothing, REQUEST, tmp_path, timeout_s=60)
    assert result["status"] == "failed"
    assert "No module named" in result["reason"]
    assert result["seconds"] > 0
