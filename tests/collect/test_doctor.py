"""Tests of what the doctor says with a GPU, with none, without permission; unknown is never zero."""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler.cli import doctor
from profiler.collect import doctor as collect_doctor
from profiler.collect.doctor import DoctorReport, ToolStatus
from profiler.collect.gpu.properties import Gpu, GpuState
from profiler.errors import Exit

H100 = Gpu(
    name="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    driver="580.1",
    cuda="13.0",
    sms=132,
    memory_bytes=80 << 30,
    max_sm_mhz=1980,
    other_processes=0,
    virtual="none",
)
ALL = {
    name: ToolStatus(f"/usr/bin/{name}", "1.2")
    for name in ("nvcc", "cuobjdump", "ncu", "compute-sanitizer", "g++")
}
TORCH = {"status": "done", "reason": None, "torch": "2.11.0", "cuda": "13.0", "backends": {"sdpa_math": None}}
IDLE = GpuState(sm_mhz=345, power_w=70.2, temperature_c=31, reasons=("idle",))


def made(**changes):
    whole = {
        "system": "Linux",
        "python": "3.12",
        "gpu": H100,
        "state": IDLE,
        "tools": ALL,
        "counters": True,
        "counters_reason": "ncu reads counters",
        "torch": TORCH,
    }
    return DoctorReport(**{**whole, **changes})


def able(report):
    return {name for name, (works, _) in report.can.items() if works}


def run(monkeypatch, capsys, report, json_wanted=False):
    monkeypatch.setattr(collect_doctor, "examine_machine", lambda: report)
    code = doctor.run(argparse.Namespace(json=json_wanted))
    return code, capsys.readouterr().out


def test_a_whole_machine_can_do_everything(monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, made())
    assert code == Exit.PASS
    assert able(made()) == set(made().can)
    assert "SM 345 of 1980 MHz; held by: idle" in out
    assert "70 W, 31 °C" in out
    assert len(out.splitlines()) <= 40, "one screen"


def test_without_a_gpu_nothing_is_measured_and_the_rest_is_named(monkeypatch, capsys):
    skipped = {"status": "skipped", "reason": "torch is not installed"}
    report = made(gpu=None, state=None, counters=None, counters_reason="no GPU", torch=skipped)
    code, out = run(monkeypatch, capsys, report)
    assert code == Exit.UNJUDGED
    assert able(report) == {"import, compare, dashboard", "check on the CPU", "build, static"}
    assert "Nothing can be measured on this machine" in out
    assert " 0 " not in out


def test_without_permission_latency_is_measured_and_the_way_out_is_said(monkeypatch, capsys):
    report = made(counters=False, counters_reason=collect_doctor.PERMISSION)
    code, out = run(monkeypatch, capsys, report)
    assert code == Exit.PASS
    assert set(report.can) - able(report) == {"counters"}
    assert "NVreg_RestrictProfilingToAdminUsers=0" in out


def test_a_gpu_without_torch_measures_nothing():
    report = made(torch={"status": "skipped", "reason": "torch is not installed (…)"})
    assert not report.can_measure
    assert report.can["latency"] == (False, "torch is not installed (…)")


def test_without_nvcc_the_baselines_are_still_measured():
    report = made(tools={**ALL, "nvcc": ToolStatus(None, None, "install it")})
    assert report.can_measure
    assert "only Python versions" in report.can["latency"][1]


def test_json_holds_what_the_screen_says(monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, made(gpu=Gpu(name="X")), json_wanted=True)
    document = json.loads(out)
    assert code == Exit.PASS
    assert document["gpu"]["sms"] is None
    assert document["can"]["latency"]["works"] is True
    assert document["tools"]["ncu"]["version"] == "1.2"


def test_what_the_gpu_does_not_say_is_unknown_on_the_screen(monkeypatch, capsys):
    _, out = run(monkeypatch, capsys, made(gpu=Gpu(name="X"), state=None))
    assert out.count("unknown") >= 4


@pytest.mark.parametrize(
    ("gpu", "words"),
    [
        (H100, "no other process"),
        (Gpu(name="X"), "unknown: the driver does not say"),
        (Gpu(other_processes=2), "shared: 2 other processes"),
        (Gpu(other_processes=0, mig=True), "MIG is on"),
        (Gpu(other_processes=0, virtual="passthrough"), "virtual machine (passthrough)"),
        (None, "unknown: no GPU"),
    ],
)
def test_whether_the_gpu_is_shared(gpu, words):
    assert words in made(gpu=gpu).shared


# ---------------------------------------------------------------- counters


def ncu(tmp_path, text, code=0):
    """A program in ncu's place that prints what ncu prints."""
    program = tmp_path / "ncu"
    program.write_text(f"#!{sys.executable}\nprint({text!r})\nraise SystemExit({code})\n")
    program.chmod(0o755)
    return collect_doctor.may_read_counters(program, tmp_path)


READ = (
    '==PROF== Connected to process 1\n"ID","Metric Name","Metric Unit","Metric Value"\n'
    '"0","smsp__inst_executed.sum","inst","{}"'
)


def test_a_counter_that_is_read_is_the_proof(tmp_path):
    assert ncu(tmp_path, READ.format("7")) == (True, "ncu reads counters")
    assert ncu(tmp_path, READ.format("1,234"))[0] is True


@pytest.mark.parametrize("value", ["0", "nan", "n/a", ""])
def test_a_counter_that_is_nothing_is_no_proof(tmp_path, value):
    assert ncu(tmp_path, READ.format(value))[0] is None


def test_a_refused_counter_says_what_to_do(tmp_path):
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access GPU counters"
    assert ncu(tmp_path, text, 1) == (False, collect_doctor.PERMISSION)


def test_an_ncu_that_fails_otherwise_leaves_it_unknown(tmp_path):
    text = "==ERROR== Failed to initialize the profiler: LibraryNotLoaded"
    permitted, reason = ncu(tmp_path, text, 1)
    assert permitted is None
    assert "exit code 1: Failed to initialize the profiler" in reason


def test_the_probe_leaves_the_clocks_alone_and_needs_neither_torch_nor_nvcc():
    argv = collect_doctor.counter_argv(Path("/x/ncu"))
    assert argv[argv.index("--clock-control") + 1] == "none"
    assert argv[-1].endswith("launch_probe.py")


KILLED = """
import sys
from pathlib import Path
from profiler.collect import doctor, gpu_process
hang = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(300)"
gpu_process.program_argv = lambda *_: [sys.executable, "-c", hang, {begun!r}]
doctor.examine_machine()
"""


def test_what_hangs_does_not_outlive_a_doctor_that_is_killed(tmp_path):
    begun = tmp_path / "begun"
    process = subprocess.Popen([sys.executable, "-c", KILLED.format(begun=str(begun))])
    assert within(60, begun.exists)
    process.terminate()
    process.wait(timeout=20)
    assert within(20, lambda: not any(str(begun) in words for words in command_lines()))


def within(seconds, seen):
    until = time.monotonic() + seconds
    while not seen() and time.monotonic() < until:
        time.sleep(0.05)
    return seen()


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text(errors="replace").split("\0")
