"""Tests of the floors against the table of kernels.md, and of what stays unknown."""

import pytest

from profiler.build import lower_bounds
from profiler.build.lower_bounds import PeakRates
from profiler.catalog.attention import ACCEPTANCE, ATTENTION
from profiler.evidence.values import State

# kernels.md 1c: H100 SXM at 790 TFLOP/s, 3.0 TB/s, 132 SMs, 16 ex2 per clock and SM at 1.755 GHz
NOTED = PeakRates(790e12, 16 * 132 * 1.755e9, 3.0e12, 132)
H100 = {
    "compute_capability": "9.0",
    "sms": 132,
    "max_sm_mhz": 1980.0,
    "max_memory_mhz": 2619.0,
    "memory_bus_bits": 5120,
}


@pytest.mark.parametrize(
    ("workload", "arithmetic_us", "memory_us", "exponential_us"),
    list(
        zip(
            ACCEPTANCE,
            (0.68, 0.34, 21.7, 10.9, 43.5),
            (0.70, 0.70, 5.6, 5.6, 11.2),
            (0.57, 0.28, 18.1, 9.1, 18.1),
            strict=True,
        )
    ),
    ids=lambda value: getattr(value, "label", None),
)
def test_the_table_of_the_notes(workload, arithmetic_us, memory_us, exponential_us):
    found = lower_bounds.bounds_at_rates(ATTENTION, workload, NOTED)
    assert found.arithmetic_ns / 1000 == pytest.approx(arithmetic_us, rel=0.02)
    assert found.memory_ns / 1000 == pytest.approx(memory_us, rel=0.02)
    assert found.exponential_ns / 1000 == pytest.approx(exponential_us, rel=0.02)


def test_half_filled_waves_double_the_arithmetic():
    assert lower_bounds.wave_efficiency(64, 132) == pytest.approx(0.48, abs=0.01)
    assert lower_bounds.wave_efficiency(512, 132) == pytest.approx(0.97, abs=0.01)
    assert lower_bounds.query_tiles(ACCEPTANCE[0]) == 64
    assert lower_bounds.query_tiles(ACCEPTANCE[0], 128) == 32
    found = lower_bounds.bounds_at_rates(ATTENTION, ACCEPTANCE[0], NOTED)
    assert found.wave_ns == pytest.approx(found.arithmetic_ns * 132 / 64)
    assert found.binding == "wave"


def test_the_largest_floor_is_the_floor():
    found = lower_bounds.bounds_at_rates(ATTENTION, ACCEPTANCE[0], NOTED, launch_ns=2000.0)
    assert (found.largest_ns, found.binding, found.unknown) == (2000.0, "launch", ())
    assert found.values()["floor"].number == 2000.0
    assert found.values()["floor_launch"].unit == "ns"


def test_the_rates_come_from_the_device_and_not_from_its_name():
    able = lower_bounds.peak_rates({**H100, "name": "anything"})
    assert able.flops_per_s == pytest.approx(4096 * 132 * 1.98e9)
    assert able.bytes_per_s == pytest.approx(3.35e12, rel=0.01)
    assert lower_bounds.peak_rates({**H100, "sms": 66}).flops_per_s == pytest.approx(able.flops_per_s / 2)
    assert lower_bounds.peak_rates(H100, "fp8").flops_per_s == pytest.approx(2 * able.flops_per_s)


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("compute_capability", {"arithmetic", "exponential", "wave"}),
        ("sms", {"arithmetic", "exponential", "wave"}),
        ("max_sm_mhz", {"arithmetic", "exponential", "wave"}),
        ("memory_bus_bits", {"memory"}),
        ("max_memory_mhz", {"memory"}),
    ],
)
def test_what_the_device_does_not_say_stays_unknown(missing, unknown):
    found = lower_bounds.workload_bounds(ATTENTION, ACCEPTANCE[2], {**H100, missing: None}, launch_ns=1500.0)
    assert set(found.unknown) == unknown
    for name in unknown:
        assert found.values()[f"floor_{name}"].state is State.NOT_COLLECTED
    assert found.largest_ns is not None


def test_an_architecture_of_the_future_has_no_known_rates():
    found = lower_bounds.workload_bounds(ATTENTION, ACCEPTANCE[0], {**H100, "compute_capability": "13.0"})
    assert set(found.unknown) == {"launch", "arithmetic", "exponential", "wave"}


def test_without_a_gpu_nothing_is_known_and_nothing_is_zero():
    found = lower_bounds.workload_bounds(ATTENTION, ACCEPTANCE[0], None)
    assert (found.largest_ns, found.binding) == (None, None)
    assert {value.number for value in found.values().values()} == {None}
    assert found.as_json()["floor_ns"] is None


def test_a_problem_without_query_rows_has_no_exponentials_and_no_waves():
    class Product:
        def sizes(self):
            return {"m": 64}

    class Gemm:
        def flops(self, _):
            return 10**9

        def minimal_bytes(self, _):
            return 10**6

    found = lower_bounds.bounds_at_rates(Gemm(), Product(), NOTED)
    assert found.arithmetic_ns == pytest.approx(1e9 / 790e12 * 1e9)
    assert set(found.unknown) == {"launch", "exponential", "wave"}
