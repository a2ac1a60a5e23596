"""The forms in which ncu prints a report, as a table, and what each must give: the report's own numbers."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import UnreadableReport
from profiler.evidence.launch import Launch, Report
from profiler.evidence.values import State
from profiler.reports import read as reports_read
from profiler.reports.csv_numbers import base_unit

RECORDED = Path(__file__).with_name("forms.zip")  # of made reports, printed by ncu 2024.2: record_forms.py
RECORDED_REPORTS = ("cutlass/report80@eba551e9", "mistic/profileHIGGS")
LOCALES = {"C": "C", "de": "de_DE.UTF-8", "fr": "fr_FR.UTF-8", "ch": "de_CH.UTF-8", "hi": "hi_IN.UTF-8"}


@dataclass(frozen=True)
class Form:
    """One way to print a report: the page, its options, and how it is read."""

    name: str
    options: tuple[str, ...]
    locales: tuple[str, ...] = ("C",)
    skipped: int = 0  # launches that a filter leaves out at the beginning
    most: int = 1 << 30  # launches that it prints at most
    reads: bool = True  # else it is refused, with a word of the reason
    reason: str = ""
    is_whole: bool = False  # whether every metric of the report must be there


_NAME = ("--page", "details", "--print-metric-name", "name")
_RAW = ("--page", "raw", "--print-units")
_ALL = tuple(LOCALES)
FORMS = (
    Form("raw-base", (*_RAW, "base"), _ALL, is_whole=True),
    Form("raw-auto", (*_RAW, "auto"), _ALL, is_whole=True),
    Form("raw-fp", (*_RAW, "base", "--print-fp"), is_whole=True),
    Form("raw-auto-fp", (*_RAW, "auto", "--print-fp"), is_whole=True),
    Form("raw-values", (*_RAW, "base", "--print-metric-instances", "values"), ("C", "de"), is_whole=True),
    Form("raw-instances", (*_RAW, "auto", "--print-metric-instances", "details"), is_whole=True),
    Form("raw-function", (*_RAW, "base", "--print-kernel-base", "function"), is_whole=True),
    Form("raw-mangled", (*_RAW, "base", "--print-kernel-base", "mangled"), is_whole=True),
    Form("raw-nvtx", (*_RAW, "base", "--print-nvtx-rename", "kernel"), is_whole=True),
    Form("raw-skip", (*_RAW, "base", "--launch-skip", "1"), skipped=1, is_whole=True),
    Form("raw-count", (*_RAW, "base", "--launch-count", "1"), most=1, is_whole=True),
    Form("details-auto", (*_NAME, "--print-units", "auto"), _ALL),
    Form("details-base", (*_NAME, "--print-units", "base"), _ALL),
    Form("details-fp", (*_NAME, "--print-fp")),
    Form("details-body", (*_NAME, "--print-details", "body")),
    Form("details-all", (*_NAME, "--print-details", "all")),
    Form("details-all-values", (*_NAME, "--print-details", "all", "--print-metric-instances", "values")),
    Form("details-label-name", ("--page", "details", "--print-metric-name", "label-name")),
    Form("details-label", ("--page", "details"), reason="--print-metric-name"),
    Form("summary", ("--print-summary", "per-kernel"), reads=False, reason="summary"),
    Form("summary-gpu", ("--print-summary", "per-gpu"), reads=False, reason="summary"),
    Form("source", ("--page", "source"), reads=False, reason="source page"),
    Form("session", ("--page", "session"), reads=False, reason="session page"),
)


def print_form(ncu: str, report: Path, form: Form, locale: str) -> bytes:
    """What ncu prints of a report in one form, its own lines and errors included."""
    environment = os.environ | {"LC_ALL": LOCALES[locale]}
    command = [ncu, "--import", str(report), "--csv", *form.options]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    return done.stdout + done.stderr


def what_differs(original: Report, path: Path, form: Form) -> list[str]:
    """How the printed form differs from the report; nothing where it holds the same."""
    try:
        printed = reports_read.read_report(path)
    except UnreadableReport as error:
        if form.reason and form.reason in str(error):
            return []
        if "printed no launch" in str(error) and b'","' not in path.read_bytes():
            return []  # nothing was left to print, or no section is in the report
        if "holds no launch" in str(error) and path.read_text("utf-8").count("\n") == 1:
            return []  # a header alone, where no section has a body
        return [f"refused: {error}"]
    if not form.reads:
        return ["read, and should be refused"]
    launches = original.launches[form.skipped :][: form.most]
    if len(printed.launches) != len(launches):
        return [f"{len(printed.launches)} launches of {len(launches)}"]
    largest: dict[str, float] = {}  # of all launches, which share the unit of a column
    for launch in launches:
        for name in launch.values:
            largest[name] = max(largest.get(name, 0.0), abs(launch.values.number(name) or 0.0))
    return [
        f"launch {place}: {words}"
        for place, (a, b) in enumerate(zip(launches, printed.launches, strict=True))
        for words in _what_differs(a, b, form, largest)
    ]


def _what_differs(a: Launch, b: Launch, form: Form, largest: dict[str, float]) -> Iterator[str]:
    has_sizes = b.grid is not None or b.block is not None  # ncu 2020 to 2022 prints none
    if has_sizes and (a.grid, a.block, a.stream) != (b.grid, b.block, b.stream):
        yield f"{(a.grid, a.block, a.stream)} → {(b.grid, b.block, b.stream)}"
    if form.name not in ("raw-mangled", "raw-nvtx") and a.function != b.function:
        yield f"{a.function} → {b.function}"
    has_failed = any(
        a.values[name].number is None for name in a.values if name.startswith("gpu__time_duration")
    )
    for name, other in b.values.items():
        if name not in a.values:
            if other.state is not State.NOT_COLLECTED and not name.startswith("device__"):
                yield f"{name}: the report has none, {other.number!r} {other.state.words}"
            continue
        value = a.values[name]
        if value.state is not other.state:
            is_lost_zero = has_failed and other.state is State.FAILED and value.number == 0
            if not is_lost_zero:
                yield f"{name}: {value.state.words} → {other.state.words}"
        elif value.text != other.text:
            yield f"{name}: {value.text!r} → {other.text!r}"
        elif value.number is not None and other.number is not None:
            if value.unit in ("ns", "hz", "byte", "byte/s") and value.unit != other.unit:
                yield f"{name}: {value.unit!r} → {other.unit!r}"
            if abs(value.number - other.number) > _rounding(largest[name], other.unit, form):
                yield f"{name}: {value.number!r} → {other.number!r} {value.unit}"
    if form.is_whole:
        lost = [
            name
            for name, value in a.values.items()
            if name not in b.values and not name.startswith(("breakdown:", "group:", "regex:"))
        ]
        if lost:
            yield f"lost {len(lost)}: {lost[0]}"


def _rounding(number: float, unit: str, form: Form) -> float:
    """How far ncu's printing may move a number: two decimals; of a scaled one six digits on the raw page."""
    if "base" in form.options:
        return 5.01e-3 + 1e-12 * abs(number)
    if form.name.startswith("raw") and "--print-metric-instances" not in form.options:
        return 5.01e-3 + 1e-6 * abs(number)
    return 5.01e-3 * _largest_factor(number, unit)


def _largest_factor(number: float, unit: str) -> float:
    """The factor of the largest unit that ncu scales such a number to."""
    names = {"ns": ("us", "ms", "s"), "hz": ("Khz", "Mhz", "Ghz")}
    top = unit.partition("/")[0].replace("sector", "byte")  # as which older versions printed some
    units = names.get(top, (f"K{top}", f"M{top}", f"G{top}", f"T{top}") if top in ("byte", "bit") else ())
    factors = [base_unit(name)[1] for name in units]
    if unit.endswith("/s") or unit == "hz":
        factors += [1e3, 1e6, 1e9]
    fitting = [factor for factor in factors if factor <= abs(number) or math.isclose(factor, abs(number))]
    return max(fitting, default=1.0)
