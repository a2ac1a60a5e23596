"""Tables with a time in a row: the plain form of this project, and any other whose columns are named.

The plain form is a CSV with a header. `time_ns`, `time_us`, `time_ms` or `time_s` has the time of a call;
`benchmark`, `version`, `workload`, `gpu`, `commit` and `date` (ISO 8601) may say what was timed. Rows that
say the same are the calls of one measurement, in their order; each date and commit is a run of its own.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from profiler.errors import ProfilerError
from profiler.timings.json_fields import moment
from profiler.timings.timing import NS, RATES, NotTimes, Timing, TimingsFile, brief, in_ns

PLAIN, TRITON, NAMED = "plain", "triton.testing", "named columns"  # forms of tables
KEYS = ("benchmark", "version", "workload", "time", "gpu", "commit", "date")
# `time_ms`; `Triton (ms)`, `Triton (Time (ms))`, `elapsed [us]`, `Triton (GB/s)`: at the end of a name
_UNIT = re.compile(r"[_(\[\s](ns|us|µs|μs|ms|s|sec|[GT]B/s|[GT]FLOP(?:S|/s))[)\]]*$", re.IGNORECASE)
NAME_COLUMNS = "name its columns of times, as in --columns time=Triton+Torch --time-unit GB/s"
_DIFFERENCE = "Diff"  # the column that perf_report(diff_col=True) adds
_UNITS = {unit.lower(): unit for unit in (*NS, *RATES)}
_TIME_COLUMN = re.compile(r"time_(?:ns|us|ms|s)")


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table say what; a key that is left out is not in the table."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by key of KEYS
    unit: str = ""  # of the times or rates; "" where the names of their columns end in it


def parse_columns(texts: Sequence[str], unit: str | None = None) -> TableColumns:
    """What `--columns time=ms --columns workload=M+N` says. Raises ProfilerError for what it cannot be."""
    names: dict[str, tuple[str, ...]] = {}
    for text in texts:
        key, _, columns = text.partition("=")
        if key not in KEYS or not columns:
            keys = ", ".join(KEYS)
            raise ProfilerError(
                f"--columns {text}: write KEY=COLUMN or KEY=COLUMN+COLUMN; KEY is one of {keys}"
            )
        names[key] = tuple(columns.split("+"))
    if unit is not None and unit.lower() not in _UNITS:
        raise ProfilerError(f"--time-unit {unit}: write one of {', '.join((*NS, *RATES))}")
    if names and "time" not in names:
        raise ProfilerError("--columns needs time=COLUMN, the column that has the times")
    return TableColumns(names, _UNITS[unit.lower()] if unit else "")


def plain_columns(header: Sequence[str]) -> TableColumns | None:
    """The columns of the plain form; None for a table with others, which may say what was timed."""
    times = [name for name in header if _TIME_COLUMN.fullmatch(name)]
    keys = [key for key in KEYS if key != "time"]
    if len(times) != 1 or not {*keys, *times}.issuperset(header):
        return None
    names: dict[str, tuple[str, ...]] = {key: (key,) for key in keys if key in header}
    return TableColumns(names | {"time": (times[0],)})


def triton_columns(header: Sequence[str]) -> TableColumns | None:
    """The columns of a table of triton.testing.perf_report, else None.

    They are sizes, then IMPLEMENTATION (UNIT), all in one unit, then perhaps the difference of two. Other
    columns among these make it another program's table, of which nothing says what its columns are.
    """
    parts = [_split(name) for name in header]
    labels = [label if name.endswith(" ") and _unit_of(label) else "" for name, label in parts]
    first = next((place for place, label in enumerate(labels) if label), 0)
    sizes = tuple(filter(None, header[:first]))  # without the row numbers, which have no name
    times = tuple(name for name in header[first:] if name != _DIFFERENCE)
    units = {label for label, name in zip(labels[first:], header[first:], strict=True) if name != _DIFFERENCE}
    if not sizes or len(units) > 1 or len(set(times)) < len(times):
        return None
    return TableColumns({"workload": sizes, "time": times})


def read(
    lines: Sequence[str], name: str, columns: TableColumns, form: str, mode: str
) -> tuple[TimingsFile, ...]:
    """The runs of a table, in their order; name: of its file, which is the benchmark where no column is.

    Where no column is said to be the workload, all that are not named are, but in the plain form.
    """
    rows = csv.reader(lines, strict=True)
    header = [cell.strip() for cell in next(rows)]
    places = {key: [_place(header, column) for column in columns.names.get(key, ())] for key in KEYS}
    if not places["workload"] and form != PLAIN:
        named = {place for of_key in places.values() for place in of_key}
        places["workload"] = [place for place in range(len(header)) if place not in named]
    units = [columns.unit or _unit(header[place]) for place in places["time"]]
    names_implementations = form == TRITON or len(units) > 1
    sessions: dict[tuple[datetime | None, str | None], dict[_Measured, list[str]]] = {}
    for number, row in enumerate(rows, 2):
        if not any(row):
            continue
        if len(row) != len(header):
            raise NotTimes(f"row {number} has {len(row)} of {len(header)} cells: cut or damaged")
        date = _cell(row, places["date"])
        created = moment(date)
        if date and created is None:
            raise NotTimes(f"row {number} has the date {brief(date)}: write it as 2026-11-29T12:00:00")
        session = sessions.setdefault((created, _cell(row, places["commit"])), {})
        for place, unit in zip(places["time"], units, strict=True):
            if not row[place].strip():
                continue  # not measured
            version = _cell(row, places["version"])
            if version is None and names_implementations:
                version = _without_unit(header[place])
            measured = _Measured(
                _cell(row, places["benchmark"]) or PurePosixPath(name).stem,
                version,
                _workload(header, row, places["workload"]),
                _cell(row, places["gpu"]),
                unit,
            )
            session.setdefault(measured, []).append(row[place].strip())
    return tuple(
        TimingsFile(form, tuple(_timing(*item, mode) for item in session.items()), created, commit)
        for (created, commit), session in sessions.items()
    )


class _Measured(NamedTuple):
    """What rows of one measurement have in common."""

    benchmark: str
    version: str | None
    parameters: str
    gpu: str | None
    unit: str


def _timing(of: _Measured, texts: Sequence[str], mode: str) -> Timing:
    """The calls of one measurement; nan, inf, 0 and less are what tools write for one that failed."""
    numbers = [_number(text, of) for text in texts]
    ns = tuple(in_ns(number, of.unit, of.parameters) for number in numbers if 0 < number < math.inf)
    failure = None if ns else f"its time in the table is {texts[0]}"
    if of.unit in RATES:
        mode = f"{mode}; time per {RATES[of.unit][0]}"
    return Timing(of.benchmark, of.version, of.parameters, mode, ns, of.gpu, failure=failure)


def _number(text: str, of: _Measured) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise NotTimes(f"the time at {brief(of.parameters)} is {brief(text)}, which is no number") from error


def _place(header: Sequence[str], column: str) -> int:
    if column not in header:
        raise NotTimes(f"has no column {brief(column)}; it has {brief(', '.join(header))}")
    return header.index(column)


def _unit(column: str) -> str:
    unit = _unit_of(column)
    if unit is None:
        raise NotTimes(f"the column {brief(column)} does not say its unit: name it with --time-unit")
    return unit


def _unit_of(column: str) -> str | None:
    """The unit that a name ends in."""
    match = _UNIT.search(column)
    return _UNITS[match[1].lower()] if match else None


def _split(column: str) -> tuple[str, str]:
    """`Triton [FP16] ` and `(Time (ms))` of `Triton [FP16] (Time (ms))`: the last brackets end it."""
    depth = 0
    for place in range(len(column) - 1, -1, -1):
        depth += (column[place] in ")]") - (column[place] in "([")
        if depth <= 0:
            return (column[:place], column[place:]) if column[place] in "([" else (column, "")
    return column, ""


def _without_unit(column: str) -> str:
    """`Triton` of `Triton (ms)`, and `Torch (jit)` as it is."""
    name, label = _split(column)
    return name.rstrip() if name.strip() and _unit_of(label) else column


def _cell(row: Sequence[str], places: Sequence[int]) -> str | None:
    return "-".join(text for place in places if (text := row[place].strip())) or None


def _workload(header: Sequence[str], row: Sequence[str], places: Sequence[int]) -> str:
    """`1024`; of a column that is not called workload, or of several, `M=1024 N=64`."""
    if len(places) == 1 and header[places[0]] == "workload":
        return row[places[0]].strip()
    return " ".join(f"{header[place]}={_size(row[place].strip())}" for place in places)


def _size(text: str) -> str:
    """`1024` of `1024.000000`: a table writes its sizes with the digits of its times."""
    return text.rstrip("0").rstrip(".") if re.fullmatch(r"\d+\.0+", text) else text
