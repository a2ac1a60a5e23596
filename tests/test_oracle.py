"""Every number of every public report against what NVIDIA's own command line prints for it."""

from __future__ import annotations

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest

from profiler import report
from profiler.values import State

# How many numbers `ncu --import FILE --page raw --csv` prints for each, counted in the CSV: 43,198 in all.
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


def printed_number(text: str) -> Decimal | None:
    """The number that a cell prints; None for nothing, a text, `nan` or `no data`."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_agrees_with_ncu_and_none_is_invented(reports: Path, name: str) -> None:
    found = report.read_one(reports / f"{name}.ncu-rep")
    with (reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv").open(newline="") as stream:
        header, _, *rows = csv.reader(stream)
    assert len(rows) == len(found.launches)
    compared = 0  # equal to the numbers the CSV holds: so none is missing
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
            assert (value.number is None) == (printed is None), (metric, value)
            if printed is not None and value.number is not None:
                half_a_digit = Decimal(5).scaleb(-1 + int(printed.as_tuple().exponent))
                error = abs(Decimal(value.number) - printed)
                exact = printed == printed.to_integral() and "." not in cells[metric]
                assert error <= (abs(printed) * Decimal("1e-12") if exact else half_a_digit), (metric, value)
                compared += 1
            if cells.get(metric) in ("nan", "no data"):
                assert value.state is State.FAILED, metric
    assert compared == NUMBERS[name]
