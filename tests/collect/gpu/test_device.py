"""Tests of what is said of a GPU: what nobody says is None and never zero."""

import os
import sys
import time
import types

import pytest

from profiler.collect.gpu import cuda_driver, device, nvidia_smi, nvml, properties
from profiler.collect.gpu.properties import Gpu, GpuState


@pytest.fixture(autouse=True)
def _fresh():
    nvml._library.cache_clear()
    yield
    nvml._library.cache_clear()


@pytest.fixture
def no_gpu(monkeypatch):
    """Neither libcuda, nor NVML, nor nvidia-smi."""
    monkeypatch.setattr(cuda_driver, "read_gpu", lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(nvidia_smi.shutil, "which", lambda _name: None)


def test_without_a_gpu_there_is_no_gpu_and_no_state(no_gpu):
    assert device.describe() is None
    assert device.state() is None
    assert not device.StateMonitor().fast


def test_what_a_source_does_not_know_another_fills_in_and_the_first_is_believed():
    merged = device.merge(Gpu(name="A", sms=132), None, Gpu(name="B", driver="580.1"))
    assert merged == Gpu(name="A", sms=132, driver="580.1")
    assert device.merge(None, Gpu()) is None


def test_zero_from_a_source_is_a_number_and_not_a_gap():
    assert device.merge(Gpu(other_processes=0, mig=False), Gpu(other_processes=5, mig=True)) == Gpu(
        other_processes=0, mig=False
    )


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (None, None),
        ((), False),
        (("idle",), False),
        (("application clocks",), False),
        (("power cap",), True),
        (("idle", "hardware thermal slowdown"), True),
    ],
)
def test_only_what_takes_speed_away_is_throttling(reasons, throttled):
    assert GpuState(reasons=reasons).throttled is throttled
    assert GpuState(reasons=reasons).as_json()["throttled"] is throttled


def test_reasons_have_words_and_an_unknown_bit_keeps_its_number():
    assert properties.reason_names(0) == ()
    assert properties.reason_names(0x5) == ("idle", "power cap")
    assert properties.reason_names(0x4 | 0x8000) == ("power cap", "0x8000")


@pytest.mark.parametrize(
    ("value", "first"),
    [(None, "0"), ("2,3", "2"), ("GPU-12,GPU-13", "GPU-12"), ("", None), ("-1", None), ("NoDevFiles", None)],
)
def test_the_first_visible_gpu(value, first):
    assert properties.first_visible({} if value is None else {"CUDA_VISIBLE_DEVICES": value}) == first


def test_identifiers_are_written_as_nvml_writes_them():
    raw = bytes.fromhex("0123456789abcdef0123456789abcdef")
    assert cuda_driver.uuid_text(raw) == "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert properties.cuda_version(13000) == "13.0"
    assert properties.cuda_version(12080) == "12.8"


# ---------------------------------------------------------------- nvidia-smi


def test_what_nvidia_smi_does_not_support_is_unknown():
    row = {"name": "NVIDIA L4", "uuid": "[N/A]", "memory_bytes": "23034", "power_limit_w": "[Not Supported]"}
    gpu = nvidia_smi.gpu_of(row)
    assert gpu == Gpu(name="NVIDIA L4", memory_bytes=23034 << 20)
    assert nvidia_smi.gpu_of({"name": "[Unknown Error]"}) is None


def test_a_state_of_nvidia_smi():
    row = {"sm_mhz": "1410", "memory_mhz": "[N/A]", "power_w": "71.50", "temperature_c": "64"}
    found = nvidia_smi.state_of({**row, "reasons": "0x0000000000000024"})
    assert found == GpuState(1410, None, 71.5, 64, ("power cap", "software thermal slowdown"))
    assert nvidia_smi.state_of({**row, "reasons": "[N/A]"}).reasons is None
    assert nvidia_smi.state_of({**row, "reasons": "0x0000000000000000"}).reasons == ()
    assert nvidia_smi.state_of({"sm_mhz": "[N/A]"}) is None


def test_fields_that_this_nvidia_smi_does_not_know_are_asked_for_by_their_older_name():
    asked = []

    def ask(names):
        asked.append(tuple(names))
        answers = {"clocks.sm": "1410", "clocks_throttle_reasons.active": "0x4"}
        return answers.get(names[0]) if len(names) == 1 else None

    assert nvidia_smi.query_fields(nvidia_smi.STATE_FIELDS, ask) == {"sm_mhz": "1410", "reasons": "0x4"}
    assert len(asked[0]) == 5
    assert ("clocks_event_reasons.active",) in asked


def test_an_answer_in_one_piece_is_asked_for_once():
    asked = []

    def ask(names):
        asked.append(names)
        return "1410, 2619, 300.1, 40, 0x0\n"

    row = nvidia_smi.query_fields(nvidia_smi.STATE_FIELDS, ask)
    assert nvidia_smi.state_of(row) == GpuState(1410, 2619, 300.1, 40, ())
    assert len(asked) == 1


# ---------------------------------------------------------------- NVML


def library(**answers):
    """An NVML that knows some questions and refuses the others, as a real one does."""
    module = types.ModuleType("pynvml")
    module.nvmlInit = lambda: None
    for name, answer in answers.items():
        setattr(module, name, lambda *_, answer=answer: answer)
    return module


def test_what_nvml_refuses_is_unknown(monkeypatch, no_gpu):
    def refuse(*_):
        raise RuntimeError("Not Supported")

    module = library(
        nvmlDeviceGetHandleByIndex=object(),
        nvmlDeviceGetName=b"NVIDIA H100",
        nvmlDeviceGetTemperature=31,
        nvmlDeviceGetCurrentClocksThrottleReasons=0,
    )
    module.nvmlDeviceGetPowerUsage = refuse
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert device.describe() == Gpu(name="NVIDIA H100")
    assert device.state() == GpuState(temperature_c=31, reasons=())


def test_an_nvml_that_does_not_start_leaves_nothing_known(monkeypatch, no_gpu):
    module = library()

    def refuse():
        raise RuntimeError("Driver Not Loaded")

    module.nvmlInit = refuse
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert device.describe() is None


def test_an_nvidia_smi_that_hangs_is_waited_for_once(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nsleep 30\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(nvidia_smi, "_TIMEOUT_S", 0.3)
    begun = time.monotonic()
    assert nvidia_smi.read_state() is None
    assert time.monotonic() - begun < 5
