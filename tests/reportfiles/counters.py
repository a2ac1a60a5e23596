"""The numbers of public reports, as text: one CSV a report, a row a metric and a column a launch.

`function`, `grid`, `block`, `stream` and `nvtx` come first; rows `opcode NAME` are the instruction mix. After
the name stands the unit that ncu's command line prints, after it the values. A row with one value holds for
every launch, and an empty cell says that the launch has no such metric. Whole numbers are counters that ncu
stores as uint64, numbers with a point doubles (to nine digits), `no data` is a metric without a value, and
anything else text. `rules.csv` holds the rule results: what they were about, never their words.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.reportfiles.ncu_rep import Focus, RuleResult, Scalar

FOLDER = Path(__file__).parent / "counters"
_WHOLE = re.compile(r"-?\d+")
_LAUNCH_ROWS = ("function", "grid", "block", "stream", "nvtx")


@dataclass
class CountedLaunch:
    """One launch of a public report: what was counted, without a name of a file or a line of its code."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stream: int
    nvtx: tuple[str, ...]
    metrics: dict[str, Scalar | None] = field(default_factory=dict)
    opcodes: dict[str, Scalar] = field(default_factory=dict)


def load(name: str) -> list[CountedLaunch]:
    """The launches of a report, such as `ncar/MW_Baseline`."""
    rows = {metric: cells for metric, _, *cells in _rows(name)}
    count = max(map(len, rows.values()))

    def cells(row: Sequence[str]) -> list[str]:
        return list(row) * count if len(row) == 1 else [*row, *[""] * (count - len(row))]

    columns = {name: cells(row) for name, row in rows.items()}
    launches = [
        CountedLaunch(
            columns["function"][index],
            _sizes(columns["grid"][index]),
            _sizes(columns["block"][index]),
            int(columns["stream"][index]),
            tuple(filter(None, columns.get("nvtx", [""] * count)[index].split("/"))),
        )
        for index in range(count)
    ]
    for name, column in columns.items():
        if name in _LAUNCH_ROWS:
            continue
        kind, _, opcode = name.partition(" ")
        for launch, text in zip(launches, column, strict=True):
            if not text:
                continue
            if kind == "opcode":
                launch.opcodes[opcode] = _scalar(text)
            else:
                launch.metrics[name] = None if text == "no data" else _scalar(text)
    return launches


def units(name: str) -> dict[str, str]:
    """The units of a report's metrics as ncu prints them."""
    return {metric: unit for metric, unit, *_ in _rows(name)}


@functools.cache
def _rows(name: str) -> list[list[str]]:
    with (FOLDER / f"{name.replace('/', '__')}.csv").open(newline="") as stream:
        return list(csv.reader(stream))


def _sizes(text: str) -> tuple[int, int, int]:
    x, y, z = map(int, text.split("x"))
    return x, y, z


def _scalar(text: str) -> Scalar:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


@functools.cache
def _rule_rows() -> tuple[dict[str, str], ...]:
    with (FOLDER / "rules.csv").open(newline="") as stream:
        return tuple(csv.DictReader(stream))


def rules(name: str, ordinal: int, function: str, address: int) -> list[RuleResult]:
    """What rules said of a launch, in words of our own that name an address and a number as ncu's do."""
    found = []
    for row in _rule_rows():
        speedups = dict(zip(row["launches"].split(), row["speedups"].split(), strict=False))
        if row["report"] != name or str(ordinal) not in row["launches"].split():
            continue
        said = f"{row['title'] or row['name']} in {function}, at {address:#x}: {ordinal + 1} of 100"
        if row["kind"] == "error":
            said += " (/mnt/rules/sections/NvRules.py:2062)"
        speedup = speedups.get(str(ordinal))
        found.append(
            RuleResult(
                row["identifier"],
                row["name"],
                row["section"],
                row["kind"],
                row["title"],
                f"{said}; see @section:{row['section']}:{row['name']}@.",
                None if speedup is None else float(speedup),
                row["scope"] or "local",
                tuple(Focus(metric, 1.0) for metric in row["focus"].split()),
            )
        )
    return found
