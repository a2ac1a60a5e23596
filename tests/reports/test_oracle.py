"""Every number of every report against what NVIDIA's own command line prints for it, or would print."""

from __future__ import annotations

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest

from profiler.evidence.launch import Report
from profiler.evidence.values import State, is_placeholder
from profiler.reports import read
from tests.reportfiles import is_made

# How many numbers `ncu --import FILE --page raw --csv` prints for each public report: 43,198 in all.
NUMBERS = {
    "cutlass/report75": 3591,
    "cutlass/report80": 3591,
    "cutlass/report80@eba551e9": 1197,
    "esmm/profile@049ec612": 4248,
    "esmm/profile@17f278cb": 2970,
    "esmm/profile@5c6231e5": 1535,
    "esmm/profile@a62323b2": 2430,
    "esmm/profile@cd89388e": 2700,
    "esmm/profile@ee5ce738": 2970,
    "hyperspec/profile": 4016,
    "llm.c/adamw_coalsecing_shared": 4768,
    "mistic/prof1": 1200,
    "mistic/prof2": 1200,
    "mistic/profileHIGGS": 192,
    "ncar/MW_Baseline": 3295,
    "ncar/MW_DivToMult": 3295,
}


# Where we have another unit than ncu's command line, ours first.
THREADS = "smsp__sass_branch_targets_threads_"
EXCESS = "derived__memory_l2_theoretical_sectors_global_excessive"
OTHER_UNITS = {
    EXCESS: ("sector", "byte"),  # see the test of its terms
    **dict.fromkeys([f"{THREADS}divergent.{one}" for one in ("avg", "max", "min", "sum")], ("branches", "")),
    "smsp__sass_average_branch_targets_threads_uniform.pct": ("branches", "%"),
    "smsp__sass_inst_executed_op_memory_128b.sum": ("", "inst"),
    "smsp__sass_inst_executed_op_memory_16b.sum": ("", "inst"),
}


def printed_number(text: str) -> Decimal | None:
    """The number that a cell prints; None for nothing, a text, `nan` or `no data`."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def printed_numbers(reports: Path, name: str) -> int:
    """How many numbers the metrics of a raw page are; for a public report also counted by hand."""
    with (reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv").open(newline="") as stream:
        header, _, *rows = csv.reader(stream)
    first = header.index("CC") + 1
    count = sum(printed_number(cell) is not None for row in rows for cell in row[first:])
    assert is_made(reports) or count == NUMBERS[name]
    return count


STATES = {  # by what ncu prints
    "nan": State.FAILED,
    "inf": State.INFINITE,
    "no data": State.NO_DATA,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_agrees_with_ncu_and_none_is_invented(reports: Path, name: str) -> None:
    found = read.read_report(reports / f"{name}.ncu-rep")
    with (reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv").open(newline="") as stream:
        header, _, *rows = csv.reader(stream)
    assert len(rows) == len(found.launches)
    compared = 0
    for launch, row in zip(found.launches, rows, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert str(launch.grid or (0, 0, 0)) == cells["Grid Size"]
        assert str(launch.block or (0, 0, 0)) == cells["Block Size"]
        assert str(launch.stream) == cells["Stream"]
        major, minor = (
            launch.values[f"device__attribute_compute_capability_{x}"] for x in ("major", "minor")
        )
        assert f"{major.number}.{minor.number}" == cells["CC"]
        for metric, value in launch.values.items():
            printed = printed_number(cells.get(metric, ""))
            if printed is not None and is_placeholder(metric, float(printed), launch.block is not None):
                assert value.state is State.FAILED
                compared += 1
                continue
            assert (value.number is None) == (printed is None), (metric, value)
            if printed is not None and value.number is not None:
                half_a_digit = Decimal(5).scaleb(-1 + int(printed.as_tuple().exponent))
                error = abs(Decimal(value.number) - printed)
                exact = printed == printed.to_integral() and "." not in cells[metric]
                assert error <= (abs(printed) * Decimal("1e-12") if exact else half_a_digit), (metric, value)
                compared += 1
            if state := STATES.get(cells.get(metric, "")):
                assert value.state is state, metric
    assert compared == printed_numbers(reports, name), "none is missing"


@pytest.mark.slow
def test_every_unit_agrees_with_ncu_whatever_was_read_before(reports: Path) -> None:
    """One worker reads all 16 in two orders: what it read first must not show in what it says later."""
    paths = [reports / f"{name}.ncu-rep" for name in NUMBERS]
    there, back = list(read.read_reports(paths)), list(read.read_reports(paths[::-1]))[::-1]
    for name, one, other in zip(NUMBERS, there, back, strict=True):
        assert isinstance(one, Report)
        assert isinstance(other, Report)
        with (reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv").open(newline="") as stream:
            header, printed = next(rows := csv.reader(stream)), next(rows)
        units = dict(zip(header, printed, strict=True))
        for launch, again in zip(one.launches, other.launches, strict=True):
            assert launch.values.metric_set == again.values.metric_set
            assert dict(launch.values) == dict(again.values)
            for metric, unit in zip(
                launch.values.metric_set.names, launch.values.metric_set.units, strict=True
            ):
                if metric in units and unit != units[metric]:
                    assert OTHER_UNITS[metric] == (unit, units[metric]), metric


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ncar/MW_Baseline", "mistic/prof1", "hyperspec/profile"])
def test_a_report_read_alone_is_the_report_read_after_others(reports: Path, name: str) -> None:
    others = ["esmm/profile@049ec612", "llm.c/adamw_coalsecing_shared", "mistic/prof2", "cutlass/report75"]
    (*_, after) = read.read_reports([reports / f"{one}.ncu-rep" for one in (*others, name)])
    assert isinstance(after, Report)
    alone = read.read_report(reports / f"{name}.ncu-rep")
    for one, other in zip(alone.launches, after.launches, strict=True):
        assert one.values.metric_set == other.values.metric_set
        assert dict(one.values) == dict(other.values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ncar/MW_Baseline", "llm.c/adamw_coalsecing_shared", "cutlass/report75"])
def test_excess_sectors_are_the_difference_of_two_counters_that_ncu_prints_in_sectors(
    reports: Path, name: str
) -> None:
    terms = ("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal")
    path = reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv"
    with path.open(newline="") as stream:
        printed = next(rows := csv.DictReader(stream))
        for row in rows:
            whole, ideal, excess = (Decimal(row[one].replace(",", "")) for one in (*terms, EXCESS))
            assert whole - ideal == excess
    assert [printed[one] for one in (*terms, EXCESS)] == ["sectors", "sectors", "byte"]
    for found in (read.read_report(reports / f"{name}.ncu-rep"), read.read_report(path)):
        assert {launch.values[EXCESS].unit for launch in found.launches} == {"sector"}
