"""A report, its copies and its exports are one measurement; two runs of one program are two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from profiler.evidence.launch import Launch
from profiler.evidence.one_measurement import is_one_measurement
from profiler.evidence.values import Value, pack_values
from profiler.reports.read import read_report
from tests.conftest import REPORTS

TIME, CYCLES = "gpu__time_duration.sum", "gpc__cycles_elapsed.max"
ACTIVE, BUSY, RATE = (
    "sm__cycles_active.avg",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes.sum.per_second",
)
UNITS = {TIME: "ns", CYCLES: "cycle", ACTIVE: "cycle", BUSY: "%", RATE: "byte/s"}
ONE = {TIME: 437_440.0, CYCLES: 612_345.0, ACTIVE: 598_765.4321, BUSY: 43.218765, RATE: 412_345_678_901.2}


def launch(numbers: Mapping[str, float], name: str = "kernel") -> Launch:
    values = pack_values({key: Value(number, UNITS.get(key, "")) for key, number in numbers.items()})
    return Launch(name, f"{name}(float*)", "", (64, 1, 1), (128, 1, 1), 7, (), 0, values)


# As the details page prints them: two decimals, in units that suit the size.
ROUNDED = {TIME: 437_440.0, CYCLES: 612_345.0, ACTIVE: 598_765.43, BUSY: 43.22, RATE: 412_350_000_000.0}


def test_a_launch_and_what_a_page_prints_of_it_are_one() -> None:
    assert is_one_measurement([launch(ONE)], [launch(ONE)])
    assert is_one_measurement([launch(ONE)], [launch(ROUNDED)])
    assert is_one_measurement([launch(ROUNDED)], [launch(ONE)])


def test_a_page_that_leaves_counters_out_is_the_same_measurement() -> None:
    few = {name: ROUNDED[name] for name in (TIME, CYCLES, BUSY)}
    assert is_one_measurement([launch(ONE)], [launch(few)])


@pytest.mark.parametrize("name", sorted(ONE))
def test_one_number_that_differs_beyond_its_print_makes_two(name: str) -> None:
    """The least that two runs differ in: the fourth digit of one counter."""
    for other in (ONE, ROUNDED):
        again = launch({**other, name: other[name] * 1.0008})
        assert not is_one_measurement([launch(ONE)], [again])


def test_another_kernel_or_size_is_another_measurement() -> None:
    assert not is_one_measurement([launch(ONE)], [launch(ONE, "other")])
    assert not is_one_measurement([launch(ONE)], [replace(launch(ONE), grid=(65, 1, 1))])


def test_round_numbers_and_counts_are_no_evidence() -> None:
    """Made by hand, or what every run of a program repeats: instructions, registers, the launch itself."""
    counts = {"smsp__inst_executed.sum": 123_456_789.0, "launch__registers_per_thread": 40.0}
    assert not is_one_measurement(
        [launch({TIME: 200_000.0, **counts})], [launch({TIME: 200_000.0, **counts})]
    )
    assert not is_one_measurement([launch(counts)], [launch(counts)])
    assert not is_one_measurement([], [launch(ONE)])


def test_launches_of_a_filtered_export_are_found_in_the_report() -> None:
    second = {name: number * 1.37 for name, number in ONE.items()}
    whole = [launch(ONE, "a"), launch(second, "b"), launch(ONE, "c")]
    assert is_one_measurement(whole, [launch(second, "b")])
    assert is_one_measurement([launch(ROUNDED, "c")], whole)
    assert not is_one_measurement([launch(ONE, "c"), launch(ONE, "a")], whole), "in their order"


def test_fewer_launches_that_say_little_are_no_export() -> None:
    """Ten launches of a kernel beside twelve: that they begin alike by their times alone proves nothing."""
    times = [100_000.0 + 37 * number for number in range(12)]
    twelve = [launch({TIME: time}) for time in times]
    assert not is_one_measurement(twelve, twelve[:10])
    assert is_one_measurement(twelve, twelve)


@pytest.mark.skipif(not (REPORTS / "oracle").exists(), reason="../shared/reports is absent")
class TestPublicReports:
    def exports(self) -> dict[Path, Path]:
        files = (path for path in REPORTS.glob("*/*.ncu-rep") if path.parent.name != "bad")
        oracle = {path: REPORTS / "oracle" / f"{path.parent.name}__{path.name}.raw.csv" for path in files}
        return {path: export for path, export in sorted(oracle.items()) if export.exists()}

    @pytest.mark.slow
    def test_every_report_is_its_export_and_no_other(self) -> None:
        reports = {path: read_report(path) for path in self.exports()}
        exported = {path: read_report(export) for path, export in self.exports().items()}
        assert len(reports) > 10
        for path, other in ((x, y) for x in reports for y in reports):
            is_one = is_one_measurement(reports[path].launches, exported[other].launches)
            # Of HIGGS nothing was measured: it has no number that could tell.
            assert is_one is (path == other and path.stem != "profileHIGGS"), (path, other)

    def test_no_two_reports_of_one_history_are_one(self) -> None:
        history = [read_report(path) for path in self.exports() if path.parent.name == "esmm"]
        assert len(history) > 5
        for a, b in combinations(history, 2):
            assert not is_one_measurement(a.launches, b.launches)
            shared = min(len(a.launches), len(b.launches))
            assert not is_one_measurement(a.launches[:shared], b.launches[:shared])
