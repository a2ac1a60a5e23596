"""The CSV that ncu prints on its raw and details pages: two shapes, scaled units, what it leaves unsaid."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from profiler.errors import UnreadableReport
from profiler.evidence import Launch, MetricSet, Report, Rule, Session, State, Value, Values
from profiler.evidence.launch import kernel_base_name
from profiler.evidence.values import is_duration, pack_values
from profiler.reports.reader_process import UNITS

MAX_BYTES = 1 << 28  # text takes several times its size while it is read

_HEADER_LINES = 10_000  # an application may print this much before ncu does
_NCU_LINE = re.compile(r"==[A-Z]+== ")
_NUMBER = re.compile(r"-?([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NUMBER_OF_ANOTHER_LOCALE = re.compile(r"[-+]?[0-9][0-9.,' \u00a0\u202f]*([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_DIMENSIONS = re.compile(r"\(?([0-9]{1,18}), *([0-9]{1,18}), *([0-9]{1,18})\)?")
_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
_NOT_FINITE = re.compile(r"[-+]?(nan|inf|infinity)(\([a-z]*\))?", re.IGNORECASE)
_DOUBTED = "(!)"  # ncu's mark before a word that stands in place of a number
_NO_DATA = frozenset({"no data", "error"})
_NOT_COLLECTED = frozenset({"n/a"})  # ncu does not say whether the GPU lacks it or the launch failed
# A label has spaces or is one plain word; "label (name)" is --print-metric-name label-name.
_NAME = re.compile(r"[A-Za-z][\w.:\\*+-]*_[\w.:\\*+-]*")
_LABEL_NAME = re.compile(rf".* \(({_NAME.pattern})\)")
_RANGE = re.compile(r'"([^"]*)"')
_RULE_KINDS = {"OPT": "optimization", "WRN": "warning", "ERR": "error"}
# Values per instance without a total: the CSV prints nothing there, as where a launch does not carry a name.
_INSTANCED = re.compile(
    r"memory_(access_size_|access_)?type|pmsampling:.*|(.*\.)?Triage(SCG|AC)\..*"
    r"|n(vlink|uma)__(dev_display_name_all|destination_ports|source_ports|cpu_affinity|id_cpu|id_memory)"
)

# `--page raw` in scaled units may print NaN as 0.000000 (ncu 2024.1); a launch that ran took some time.
_NEVER_ZERO = re.compile(r"gpu__time_duration\..*|\w+__cycles_elapsed\..*")
_SCALED_ZERO = "0.000000"

_TIME_NS = {
    "nsecond": 1.0,
    "usecond": 1e3,
    "msecond": 1e6,
    "second": 1e9,
    "ns": 1.0,
    "us": 1e3,
    "ms": 1e6,
    "s": 1e9,
}
_PREFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class _Unusable(ValueError):
    """What is wrong with the file, and the way out, without the file's name."""


@dataclass
class _Draft:
    """One launch while its rows come in."""

    cells: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)


def is_ncu_csv(path: Path) -> bool:
    """Whether a file holds the header that ncu's CSV has."""
    try:
        with path.open(encoding=_encoding(path), newline="") as stream:
            return any(_is_header(line) for line in islice(stream, _HEADER_LINES))
    except (OSError, ValueError):
        return False


def read_csv(path: Path, max_bytes: int = MAX_BYTES) -> Report:
    """Read ncu's CSV of either page into what a `.ncu-rep` would give, base units; raises UnreadableReport.

    Numbers are as ncu rounded them: two decimals on the details page. A CSV does not say versions or time.
    """
    try:
        size = path.stat().st_size
        if size > min(max_bytes, MAX_BYTES):
            raise _Unusable(f"{size:,} bytes of CSV; import the .ncu-rep file instead")
        with path.open("rb") as raw:
            sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
        with path.open(encoding=_encoding(path), newline="") as stream:
            form, drafts = _tables(stream)
        shared: dict[MetricSet, MetricSet] = {}
        launches = tuple(_launch(draft, ordinal, shared) for ordinal, draft in enumerate(drafts))
    except UnicodeDecodeError:
        raise UnreadableReport(f"{path}: neither an Nsight Compute report nor text") from None
    except OSError as error:
        raise UnreadableReport(
            f"{path}: cannot be opened: {(error.strerror or str(error)).lower()}"
        ) from error
    except csv.Error as error:
        raise UnreadableReport(
            f"{path}: the CSV is cut short or damaged ({error}); export it again"
        ) from None
    except _Unusable as error:
        raise UnreadableReport(f"{path}: {error}") from None
    for launch in launches:
        if not launch.values:
            raise UnreadableReport(
                f"{path}: launch {launch.ordinal} ({launch.base_name}) names no metric; "
                "export with --page raw, or with --print-metric-name name"
            )
    return Report(path.name, sha256, size, form, Session(), launches)


def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of ncu's newer versions, and the factor to it: `Gbyte/second` gives (`byte/s`, 1e9)."""
    top, slash, bottom = unit.partition("/")
    if top in _TIME_NS:
        top, factor = "ns", _TIME_NS[top]
    elif top[:1] in _PREFIX and top[1:].lower() in ("byte", "hz", "bit"):
        top, factor = top[1:], _PREFIX[top[0]]
    else:
        factor = 1.0
    top = "hz" if top.lower() == "hz" else top
    if bottom in _TIME_NS:
        bottom, factor = "s", factor * 1e9 / _TIME_NS[bottom]
    return ("hz" if (top, bottom) == ("cycle", "s") else top + slash + bottom), factor


def parse_cell(text: str, unit: str) -> Value | None:
    """The value of one CSV cell; None where ncu printed nothing. Raises ValueError for a doubtful number."""
    text = text.strip()
    base, factor = base_unit(unit)
    if not text:
        return None
    if _NUMBER.fullmatch(text):
        plain = text.replace(",", "")
        if factor == 1.0 and plain.isdigit() and len(plain) <= 20:
            return Value(int(plain), base)
        number = float(plain) * factor
        if not math.isfinite(number):
            raise _Unusable(f"a number of {len(text)} characters is larger than any counter; export it again")
        return Value(number, base)
    if _NUMBER_OF_ANOTHER_LOCALE.fullmatch(text):
        raise _Unusable(
            f"{_cut(text)!r} is no number in ncu's form (1,234.5); export it again under LC_ALL=C"
        )
    word = text.lower().removeprefix(_DOUBTED).lstrip()
    if word in _NO_DATA:
        return Value(None, base, state=State.NO_DATA)
    if _NOT_FINITE.fullmatch(word):
        return Value(None, base, state=State.INFINITE if "inf" in word else State.FAILED)
    if word in _NOT_COLLECTED:
        return Value(None, base, state=State.NOT_COLLECTED)
    return Value(None, base, text=text)


def _encoding(path: Path) -> str:
    """UTF-8, or the UTF-16 that PowerShell's `>` writes."""
    with path.open("rb") as stream:
        return "utf-16" if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _is_header(line: str) -> bool:
    return "Kernel Name" in line and line.startswith(('"ID"', "ID,")) and "Grid Size" in line


def _tables(stream: Iterable[str]) -> tuple[str, list[_Draft]]:
    """Form and launches of every table in the stream: ncu prints one per profiled process."""
    lines = (line for line in stream if not _NCU_LINE.match(line))
    header_line = next((line for line in lines if _is_header(line)), None)
    if header_line is None:
        raise _Unusable(
            "neither an Nsight Compute report nor the CSV that ncu prints (no header row with Kernel Name)"
        )
    header = next(csv.reader([header_line], strict=True))
    long_form = _is_long(header)
    rows = csv.reader(lines, strict=True)
    drafts: dict[tuple[str, ...], _Draft] = {}
    table, units = 0, None
    for row in rows:
        if not row or row == [""]:
            continue
        if row[0] == "ID":
            table, header, units = table + 1, row, None
            if _is_long(header) is not long_form:
                raise _Unusable("holds tables of both pages; import them one by one")
        elif long_form:
            cells = _cells(row, header, header.index("Metric Value") + 1)
            _add_row(
                drafts.setdefault((str(table), cells["ID"], cells.get("Process ID", "")), _Draft(cells)),
                cells,
            )
        elif units is None:
            units = _cells(row, header, len(header))
            if units["ID"]:
                raise _Unusable("has no row of units under its header; export it again with --csv --page raw")
        else:
            cells = _cells(row, header, len(header))
            drafts[str(table), str(len(drafts))] = _Draft(cells, _wide_values(cells, units))
    if not drafts:
        raise _Unusable("holds no launch; check the kernel filter of the ncu command that printed it")
    return ("csv-details" if long_form else "csv-raw"), list(drafts.values())


def _is_long(header: list[str]) -> bool:
    """Whether the table is of the details page, one metric a row; refuses a header without its columns."""
    long_form = "Metric Name" in header
    missing = {"ID", "Kernel Name", *(("Metric Value",) if long_form else ())}.difference(header)
    if missing:
        raise _Unusable(f"the header row has no column {min(missing)}: the CSV is damaged; export it again")
    return long_form


def _cells(row: list[str], header: list[str], at_least: int) -> dict[str, str]:
    """A row by column name. Rows of the details page that carry no rule end early."""
    if not at_least <= len(row) <= len(header):
        raise _Unusable(f"a row has {len(row)} of {len(header)} cells: the CSV is cut short; export it again")
    cells = dict(zip(header, row, strict=False))
    if len(cells) < len(row):
        for name, text in zip(header, row, strict=False):
            if cells[name] != text and _NAME.fullmatch(name):
                raise _Unusable(f"{name} has two columns that differ; export it again")
    return cells


def _wide_values(cells: Mapping[str, str], units: Mapping[str, str]) -> dict[str, Value]:
    values = {}
    for name, text in cells.items():
        if not _NAME.fullmatch(name) or "Domain:" in name:
            continue
        value = parse_cell(text, units[name])
        if value is not None:
            values[name] = value
        elif _INSTANCED.fullmatch(name):
            values[name] = Value(None, base_unit(units[name])[0], state=State.INSTANCES_ONLY)
    if any(not value.number and _NEVER_ZERO.fullmatch(name) for name, value in values.items()):
        for name, value in values.items():
            if cells[name] == _SCALED_ZERO:
                values[name] = Value(None, value.unit, state=State.FAILED)
    return values


def _add_row(draft: _Draft, cells: Mapping[str, str]) -> None:
    """One row of the details page: a metric by its name, a metric by its label (left out), or a rule."""
    label = cells["Metric Name"].strip()
    with_label = _LABEL_NAME.fullmatch(label)
    name = with_label.group(1) if with_label else label
    if _NAME.fullmatch(name):
        value = parse_cell(cells["Metric Value"], cells.get("Metric Unit", ""))
        if value is not None:
            draft.values.setdefault(name, value)
    elif not label and cells.get("Rule Name"):
        speedup = parse_cell(cells.get("Estimated Speedup", ""), "")
        draft.rules.append(
            Rule(
                identifier=cells["Rule Name"],
                name=cells["Rule Name"],
                section=cells.get("Section Name", ""),
                kind=_RULE_KINDS.get(cells.get("Rule Type", ""), "ok"),
                title="",
                message=cells.get("Rule Description", ""),
                speedup_pct=float(speedup.number) if speedup and speedup.number is not None else None,
                speedup_scope=cells.get("Estimated Speedup Type") or None,
            )
        )


def _launch(draft: _Draft, ordinal: int, shared: dict[MetricSet, MetricSet]) -> Launch:
    cells = draft.cells
    values = {
        name: value._replace(unit=UNITS.get(name, value.unit)) if value.text is None else value
        for name, value in draft.values.items()
    }
    for name in filter(is_duration, values):
        if (number := values[name].number) is not None and number <= 0:
            values[name] = Value(None, values[name].unit, state=State.FAILED)
    capability = _matched(_CAPABILITY, cells, "CC")
    if values and capability:
        for part, text in zip(("major", "minor"), capability.groups(), strict=True):
            values.setdefault(f"device__attribute_compute_capability_{part}", Value(int(text)))
    packed = pack_values(values)
    metric_set = shared.setdefault(packed.metric_set, packed.metric_set)
    stream = _matched(_WHOLE, cells, "Stream")
    return Launch(
        function=kernel_base_name(cells["Kernel Name"]).rpartition("::")[
            2
        ],  # ncu's own function names have no namespace
        demangled=cells["Kernel Name"],
        mangled="",
        grid=_dimensions(cells, "Grid Size"),
        block=_dimensions(cells, "Block Size"),
        stream=int(stream.group()) if stream else None,
        nvtx=tuple(_ranges(cells)),
        ordinal=ordinal,
        values=Values(metric_set, packed.slots, packed.states, packed.texts),
        rules=tuple(draft.rules),
    )


def _matched(form: re.Pattern[str], cells: Mapping[str, str], column: str) -> re.Match[str] | None:
    """The match of a column's text with the form in which ncu prints it; None where it is empty."""
    text = cells.get(column, "").strip()
    match = form.fullmatch(text)
    if text and not match:
        raise _Unusable(f"{column} is {_cut(text)!r}, which ncu does not print; export it again")
    return match


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _dimensions(cells: Mapping[str, str], column: str) -> tuple[int, int, int] | None:
    """`(24, 4, 1)`; None for zeros, which ncu prints where the launch failed."""
    match = _matched(_DIMENSIONS, cells, column)
    x, y, z = map(int, match.groups()) if match else (0, 0, 0)
    return (x, y, z) if x and y and z else None


def _ranges(cells: Mapping[str, str]) -> Iterator[str]:
    """NVTX push/pop ranges: `"<default domain>:Name:none:none:none:none:none:none"`, six fields each."""
    for column, text in cells.items():
        if "Domain:Push/Pop_Range" in column:
            for quoted in _RANGE.findall(text):
                domain, *rest = quoted.split(":")
                name = ":".join(rest[:-6])
                if name:
                    yield name if domain == "<default domain>" else f"{domain}@{name}"
