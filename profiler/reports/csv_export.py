"""The text that ncu prints of its raw and details pages: its shapes, scaled units, what it leaves unsaid."""

from __future__ import annotations

import csv
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from profiler.errors import UnreadableReport
from profiler.evidence.launch import Launch, Report, RuleResult, Session, kernel_base_name, one_line
from profiler.evidence.values import MetricSet, State, Value, Values, is_duration, is_placeholder, pack_values
from profiler.reports import text_page
from profiler.reports.csv_labels import name_of_label
from profiler.reports.csv_numbers import CommaDecimals, NumberForm, Unusable, base_unit, cut, is_scaled
from profiler.reports.reader_process import UNITS

MAX_BYTES = 1 << 28  # text takes several times its size while it is read

_HEADER_LINES = 10_000  # an application may print this much before ncu does
_HEADER_CHARACTERS = 16 << 20
_MOST_LAUNCHES = 1 << 31
_WARNINGS = 5  # that are said of one file
_LINE_CHARACTERS = 4 << 20  # a row of the raw page with 5,000 metrics has 250,000
_NCU_LINE = re.compile(r"==[A-Z]+== ")
_ERROR_LINE = re.compile(r"==ERROR== (.*\S)")
_WHOLE = re.compile(r"[0-9]{1,18}")
_DIMENSIONS = re.compile(r"\(?([0-9]{1,18}), *([0-9]{1,18}), *([0-9]{1,18})\)?")
_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
_NAME = re.compile(r"[A-Za-z][\w.:\\*+-]*")
_RANGE = re.compile(r'"([^"]*)"')
_RULE_KINDS = {"OPT": "optimization", "WRN": "warning", "ERR": "error"}
# Values per instance without a total: the CSV prints nothing there, as where a launch does not carry a name.
_INSTANCED = re.compile(
    r"memory_(access_size_|access_)?type|pmsampling:.*|(.*\.)?Triage(SCG|AC)\..*"
    r"|n(vlink|uma)__(dev_display_name_all|destination_ports|source_ports|cpu_affinity|id_cpu|id_memory)"
)

_LAUNCH_COLUMNS = ("ID", "Process ID", "Kernel Name", "Stream", "Block Size", "Grid Size")
_COLUMNS_OF_RULES = tuple(name for name in _LAUNCH_COLUMNS if name != "Stream")
# Of the raw page, beside metrics and NVTX ranges. Source: what ncu 2020 to 2026 print.
_KNOWN_COLUMNS = frozenset(
    (*_LAUNCH_COLUMNS, "Process Name", "Host Name", "Kernel Time", "Context", "Context ID", "Device", "CC")
)
_TABLE_ROW = re.compile(r'"[0-9]{1,18}","[0-9]{1,18}","')  # an application prints no such line
# What an application printed without an end of its line may stand before a row or a header.
_ROW_BEGINS = re.compile(r'"(?:[0-9]{1,18}|ID|)","')
_HEADER_BEGINS = re.compile(r'"ID","')
# What ncu prints between rows beside its own `==…==` lines. Source: ncu 2024.2 on 16 public reports.
_BETWEEN_ROWS = re.compile(r"\s*|\s*The system does not have any NVLink connections\.\s*|\S.*\.py:[0-9]+\s*")
_SUMMARY = frozenset(("Kernel Name", "Invocations"))  # with --nvtx it begins with the ranges
_OTHER_PAGES = {
    "Launch Settings": "is the session page, which holds no launch",
    '"Kernel Name"': "is the source page, which holds no launch",
}

# A launch that ran took time and cycles. In scaled units ncu prints NaN as 0 or 0.000000 (2024.1, 2024.2).
_NEVER_ZERO = re.compile(r"gpu__time_duration\..*|(gpc|sm|smsp)__cycles_elapsed\..*")
# What is known before a launch runs: 0 is 0 there though it failed.
_NOT_COUNTED = re.compile(r"(launch|device|nvlink|numa|profiler)__.*")
# Names whose numbers ncu prints with a unit. Source: 1,396 names of 20 exports of ncu 2020 to 2026.
_HAS_UNIT = re.compile(r"gpu__time_.*|.*(pct|bytes|cycles_elapsed|per_second).*")


@dataclass
class _LongRows:
    """What the details page has of one launch in which lost, doubled and moved rows show.

    ncu prints the metrics of a section together, each once, and all of a section by label or all by name.
    """

    section: str | None = None  # of the last metric
    seen: set[tuple[str, str]] = field(default_factory=set)  # section, metric
    named: dict[str, bool] = field(default_factory=dict)  # by section: whether its first row has a name
    doubts: list[str] = field(default_factory=list)

    def add(self, section: str, metric: str, has_name: bool) -> None:
        """Note one row that is about a metric."""
        if (section, metric) in self.seen:
            self.doubts.append(f"{cut(metric)} stands twice in section {cut(section)}")
        self.seen.add((section, metric))
        if section != self.section and section in self.named:
            self.doubts.append(f"rows of section {cut(section)} stand apart from each other")
        self.section = section
        if self.named.setdefault(section, has_name) is not has_name:
            self.doubts.append(f"section {cut(section)} has {cut(metric)!r} among rows of another form")


@dataclass
class _Draft:
    """One launch while its rows come in."""

    table: int
    cells: Mapping[str, str]  # of its first row
    values: dict[str, Value] = field(default_factory=dict)
    is_scaled: bool = False  # whether a number of it stands in another unit than its base unit
    rules: list[RuleResult] = field(default_factory=list)
    rows: _LongRows = field(default_factory=lambda: _LongRows())

    @property
    def identifier(self) -> str:
        """Its number among the launches that ncu printed."""
        return self.cells["ID"]

    def is_of(self, table: int, cells: Mapping[str, str]) -> bool:
        """Whether a row of the details page is about this launch.

        In rows of rules ncu 2022.3 prints the context in the place of the stream.
        """
        columns = _LAUNCH_COLUMNS if cells.get("Metric Name") else _COLUMNS_OF_RULES
        return table == self.table and all(cells.get(name) == self.cells.get(name) for name in columns)


def is_ncu_csv(path: Path) -> bool:
    """Whether a file holds the header that ncu's CSV has, of launches or of a summary, or ncu's own lines."""
    try:
        with _open(path, "backslashreplace") as stream:
            left = _HEADER_CHARACTERS
            for _ in range(_HEADER_LINES):
                line = stream.readline(min(left, _LINE_CHARACTERS))
                if _NCU_LINE.search(line) or _is_summary(line) or _header_in(line):
                    return True
                left -= len(line)
                if not line or left <= 0:
                    break
    except (OSError, ValueError):
        pass
    return False


def read_csv(path: Path, max_bytes: int = MAX_BYTES) -> Report:
    """Read ncu's CSV of either page into what a `.ncu-rep` would give, base units; raises UnreadableReport.

    Numbers are as ncu rounded them: two decimals on the details page. A CSV does not say versions or time,
    and has nothing to count its rows by: what ncu would not print is in `warnings`, where it is not certain
    enough to refuse the file.
    """
    warnings: dict[str, None] = {}
    try:
        size = path.stat().st_size
        refuse_large(path, size, max_bytes)
        with path.open("rb") as raw:
            sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
        form, drafts = _read_tables(path, warnings)
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
    except Unusable as error:
        raise UnreadableReport(f"{path}: {error}") from None
    for launch, draft in zip(launches, drafts, strict=True):
        if not launch.values:
            # By label: "DRAM Frequency". The details page has no names unless it is asked for them.
            problem = "names metrics only by their labels" if draft.rows.seen else "names no metric"
            advice = "export with --page raw, or with --print-metric-name name"
            is_last = launch is launches[-1] and len(launches) > 1
            if is_last and form == "text-details" and not draft.rows.seen:
                advice = "the page seems to be cut short; print it again"
            raise UnreadableReport(
                f"{path}: launch {launch.ordinal} ({launch.base_name}) {problem}; {advice}"
            )
    return Report(path.name, sha256, size, form, Session(), launches, _first(warnings))


def refuse_large(path: Path, size_bytes: int, max_bytes: int = MAX_BYTES) -> None:
    """Raise UnreadableReport for a CSV that is larger than any is read."""
    if size_bytes > min(max_bytes, MAX_BYTES):
        raise UnreadableReport(f"{path}: {size_bytes:,} bytes of CSV; import the .ncu-rep file instead")


def _open(path: Path, errors: str) -> TextIO:
    """The file as text: UTF-8, or the UTF-16 that PowerShell's `>` writes."""
    with path.open("rb") as stream:
        encoding = "utf-16" if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return path.open(encoding=encoding, errors=errors, newline="")


def _header_in(line: str) -> str:
    """The header of a table where a line holds one, from its beginning on; "" where there is none."""
    begins = _HEADER_BEGINS.search(line)
    header = line[begins.start() :] if begins else line if line.startswith("ID,") else ""
    # ncu 2020 to 2022 print when a launch began in place of its grid and block.
    is_table = "Kernel Name" in header and any(
        name in header for name in ("Grid Size", "Metric Name", "Kernel Time")
    )
    return header if is_table else ""


def is_metric_name(text: str) -> bool:
    """Whether a cell names a metric: a label has spaces or is one plain word."""
    return "_" in text and _NAME.fullmatch(text) is not None


def _metric_name(cell: str) -> str | None:
    """The metric's name in a cell of the details page; None where there is only a label.

    "label (name)" is what --print-metric-name label-name prints.
    """
    text = cell.strip()
    if is_metric_name(text):
        return text
    name = text.rpartition(" (")[2].removesuffix(")")
    return name if text.endswith(f" ({name})") and is_metric_name(name) else None


@dataclass
class _Lines:
    """The lines of a stream of which tables are made, and what stands between them."""

    stream: TextIO
    is_quoted: bool = True  # whether rows begin with a quotation mark, as ncu prints them
    in_table: bool = False  # whether a header was seen: from there on what is no row is left out
    is_text: bool = False  # whether it is a page without --csv, whose tables show their ends
    errors: dict[str, None] = field(default_factory=dict)  # of ncu, in its own words
    foreign: list[str] = field(default_factory=list)  # lines between rows that ncu did not print
    other_columns: int = 0  # of the table of GPUs and links between rows (--print-details all)

    def __iter__(self) -> Iterator[str]:
        """The lines, in a table those that are part of a row; raises Unusable for what shows damage."""
        number = 0
        is_whole = True  # no quotation mark is open
        while line := self.stream.readline(_LINE_CHARACTERS):
            number += 1
            if "\0" in line:
                raise Unusable(f"line {number} holds a NUL byte: the CSV is damaged; export it again")
            if is_whole and (of_ncu := _NCU_LINE.search(line)) and not line.startswith('"'):
                if error := _ERROR_LINE.search(line):
                    self.errors[cut(error[1], 200)] = None
                if not of_ncu.start() or not self.in_table:
                    continue
            if line[-1] not in "\r\n" and not self.is_text:
                self._refuse_open_end(line, number)
            if self.in_table and is_whole:
                line = self._row_in(line)
            if line:
                is_whole = is_whole == (line.count('"') % 2 == 0)
                yield line

    def is_of_other_table(self, row: Sequence[str], columns: int) -> bool:
        """Whether a row is of the table that ncu prints within a section about the GPUs of the machine."""
        if row[0] == "GPU ID":
            self.other_columns = len(row)
            return True
        if len(row) != self.other_columns or len(row) == columns:
            self.other_columns = 0
        return self.other_columns > 0

    def _row_in(self, line: str) -> str:
        """A line from where a row of a table begins; "" where none does."""
        if line.startswith('"') or (not self.is_quoted and line.startswith((*"0123456789,", "ID,"))):
            return line
        if self.is_quoted and (begins := _ROW_BEGINS.search(line)):
            return line[begins.start() :]
        if not _BETWEEN_ROWS.fullmatch(line):
            self.foreign.append(cut(line.strip()))
        return ""

    def _refuse_open_end(self, line: str, number: int) -> None:
        if len(line) == _LINE_CHARACTERS:
            raise Unusable(f"line {number} has {_LINE_CHARACTERS:,} characters or more; export it again")
        raise Unusable(
            f"line {number}, the last, has no end: the CSV is cut short or damaged; export it again, "
            "or end the line if nothing is missing"
        )

    def doubts(self) -> Iterator[str]:
        """What is to be said of the lines that are no rows."""
        for error in self.errors:
            yield f"ncu says: {error}"
        if self.foreign:
            more = f" and {len(self.foreign) - 1} more" if len(self.foreign) > 1 else ""
            yield f"line {self.foreign[0]!r}{more} between the rows is no row of ncu: left out"


def _missing_launches(drafts: Sequence[_Draft]) -> str:
    """The IDs of launches that are not there, in words; raises Unusable for launches that are there twice.

    ncu counts from 0 over the whole report, a table or a process, whichever it printed; its filters
    (--kernel-name, --launch-skip) leave gaps, as lost rows do.
    """
    seen: set[tuple[str, str]] = set()
    for draft in drafts:
        if not _WHOLE.fullmatch(draft.identifier) or int(draft.identifier) >= _MOST_LAUNCHES:
            raise Unusable(f"ID is {cut(draft.identifier)!r}, which ncu does not print; export it again")
        # Without the process there is no telling two launches of one number in two tables.
        key = draft.identifier, draft.cells.get("Process ID") or f"in table {draft.table}"
        if key in seen:
            raise Unusable(f"holds launch ID {draft.identifier} twice; export it again")
        seen.add(key)
    counts: list[Callable[[_Draft], object]] = [
        lambda _: 0,
        lambda draft: draft.table,
        lambda draft: (draft.table, draft.cells.get("Process ID")),
    ]
    gaps = ""
    for count in counts:
        groups: dict[object, set[int]] = {}
        for draft in drafts:
            groups.setdefault(count(draft), set()).add(int(draft.identifier))
        missing = next((ids for ids in groups.values() if max(ids) >= len(ids)), None)
        if missing is None:
            return ""
        first = [
            str(number) for number in range(min(max(missing), len(missing) + 3)) if number not in missing
        ]
        more = max(missing) + 1 - len(missing) - len(first[:3])
        gaps = gaps or ", ".join(first[:3]) + (f" and {more} more" if more else "")
    return gaps


def _read_tables(path: Path, warnings: dict[str, None]) -> tuple[str, list[_Draft]]:
    """Form and launches of every table in the file, in the number form of whatever locale printed it."""
    # What a program printed between ncu's lines may be in any code page.
    errors = "backslashreplace" if is_ncu_csv(path) else "strict"
    for decimal in (".", ","):
        numbers, found = NumberForm(decimal), dict[str, None]()
        try:
            with _open(path, errors) as stream:
                form, drafts = _tables(stream, numbers, found)
        except CommaDecimals:
            continue
        numbers.refuse_doubt()
        warnings |= found
        return form, drafts
    raise AssertionError("only points as decimals can turn out to be commas")


def _tables(stream: TextIO, numbers: NumberForm, warnings: dict[str, None]) -> tuple[str, list[_Draft]]:
    """Form and launches of every table in the stream: ncu prints one per profiled process."""
    source = _Lines(stream)
    lines = iter(source)
    header_line = _find_header(source, lines)
    if text_page.is_launch(header_line):
        return "text-details", _text_drafts(source, itertools.chain([header_line], lines), numbers, warnings)
    source.is_quoted, source.in_table = header_line.startswith('"'), True
    header = next(csv.reader([header_line], strict=True))
    long_form = _is_long(header)
    warnings |= dict.fromkeys(_doubts_of_header(header, long_form))
    rows = csv.reader(lines, strict=True)
    drafts: list[_Draft] = []
    table, units = 0, None
    for row in rows:
        if not row or row == [""] or source.is_of_other_table(row, len(header)):
            continue
        if row[0] == "ID":
            table, header, units = table + 1, row, None
            if _is_long(header) is not long_form:
                raise Unusable("holds tables of both pages; import them one by one")
            warnings |= dict.fromkeys(_doubts_of_header(header, long_form))
        elif long_form:
            cells = _cells(row, header, header.index("Metric Value") + 1)
            if not drafts or not drafts[-1].is_of(table, cells):
                drafts.append(_Draft(table, cells))
            _add_row(drafts[-1], cells, numbers)
        elif units is None:
            units = _cells(row, header, len(header))
            if units["ID"]:
                raise Unusable("has no row of units under its header; export it again with --csv --page raw")
        else:
            cells = _cells(row, header, len(header))
            scaled = any(map(is_scaled, set(units.values())))
            drafts.append(_Draft(table, cells, _wide_values(cells, units, numbers), scaled))
    if not drafts:
        said = "; ".join(source.errors)
        raise Unusable(
            f"holds no launch: ncu says: {said}"
            if said
            else "holds no launch; check the kernel filter of the ncu command that printed it"
        )
    if missing := _missing_launches(drafts):
        words = f"launch ID {missing} is not in it: a filter of ncu left it out, or rows were lost"
        warnings |= {words: None}
    warnings |= dict.fromkeys(source.doubts())
    warnings |= dict.fromkeys(_doubts_of_values(drafts))
    warnings |= dict.fromkeys(_doubts_of_launches(drafts, long_form))
    return ("csv-details" if long_form else "csv-raw"), drafts


def _text_drafts(
    source: _Lines, lines: Iterable[str], numbers: NumberForm, warnings: dict[str, None]
) -> list[_Draft]:
    """The launches of a details page that was printed without --csv."""
    source.is_text = True
    drafts: list[_Draft] = []
    for cells in text_page.rows(lines):
        if "Metric Name" in cells:
            _add_row(drafts[-1], cells, numbers)
        else:
            drafts.append(_Draft(0, cells))
    for draft in drafts:
        draft.rows.doubts.clear()  # --print-details all prints labels and names in one section
    warnings |= dict.fromkeys(source.doubts())
    warnings |= dict.fromkeys(_doubts_of_values(drafts))
    warnings |= dict.fromkeys(_doubts_of_launches(drafts, long_form=True))
    return drafts


def _find_header(source: _Lines, lines: Iterator[str]) -> str:
    """The first header of a table, or launch of a page without --csv; raises Unusable for what is neither."""
    line = ""
    for line in lines:
        if text_page.is_launch(line):
            return line
        if header := _header_in(line):
            return header
        if _is_summary(line):
            raise Unusable(
                "is a summary (--print-summary): the mean over launches, and no launch; export it without"
            )
        if _TABLE_ROW.match(line):
            raise Unusable(
                "rows of a table under no header row with Kernel Name: the CSV is damaged; export it again"
            )
        for begins, words in _OTHER_PAGES.items():
            if line.startswith(begins):
                raise Unusable(f"{words}; export it with --csv --page raw")
    if source.errors:
        raise Unusable(f"holds no launch: ncu says: {'; '.join(source.errors)}")
    if not line:
        raise Unusable("holds no table: ncu printed no launch; export it with --csv --page raw")
    raise Unusable(
        "neither an Nsight Compute report nor the CSV that ncu prints (no header row with Kernel Name)"
    )


def _is_summary(line: str) -> bool:
    return {cell.strip('"\r\n') for cell in line.split(",")} >= _SUMMARY


def _doubts_of_header(header: Sequence[str], long_form: bool) -> Iterator[str]:
    """What ncu does not print as the header of a raw page: its metrics are sorted by name."""
    if long_form:
        return
    last = ""
    for name in header:
        if is_metric_name(name) and "Domain:" not in name:
            if name < last:
                yield f"column {cut(name)} stands after {cut(last)}: the names of columns may be mixed up"
            last = name
        elif name not in _KNOWN_COLUMNS and "Domain:" not in name:
            yield f"column {cut(name)!r} is no metric and nothing that ncu says of a launch: left out"


def _doubts_of_values(drafts: Sequence[_Draft]) -> Iterator[str]:
    """Durations that are no times, and numbers that have lost their unit."""
    without: dict[str, None] = {}
    for draft in drafts:
        for name, value in draft.values.items():
            if is_duration(name) and value.text is not None:
                yield f"launch ID {draft.identifier}: {cut(name)} is {cut(value.text)!r}, which is no time"
            elif value.number is None:
                continue
            elif is_duration(name) and value.unit not in ("ns", ""):
                yield f"launch ID {draft.identifier}: {cut(name)} is in {cut(value.unit)}, which is no time"
            elif not value.unit and _HAS_UNIT.fullmatch(name):
                without[name] = None
    if without:
        first = next(filter(is_duration, without), next(iter(without)))
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        yield f"{cut(first)}{more} without a unit, which ncu prints: how large the numbers are is not known"


def _doubts_of_launches(drafts: Sequence[_Draft], long_form: bool) -> Iterator[str]:
    """Launches out of their order, and on the details page any that lack metrics of others."""
    last: dict[str | None, int] = {}  # ID by process
    common: dict[int, set[str]] = {}  # by table, the metrics that any launch has
    for draft in drafts:
        common.setdefault(draft.table, set()).update(draft.values if long_form else ())
    for draft in drafts:
        process = draft.cells.get("Process ID")
        if int(draft.identifier) < last.get(process, -1):
            yield f"launch ID {draft.identifier} stands after {last[process]}: rows may be mixed up"
        last[process] = int(draft.identifier)
        for doubt in draft.rows.doubts:
            yield f"launch ID {draft.identifier}: {doubt}; rows may be lost, doubled or mixed up"
        if long_form and (lacking := common[draft.table] - draft.values.keys()):
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            yield f"launch ID {draft.identifier} lacks {cut(min(lacking))}{more}, which others have"


def _first(warnings: Mapping[str, None]) -> tuple[str, ...]:
    """The warnings that are worth saying of one file."""
    said = tuple(warnings)
    if len(said) <= _WARNINGS:
        return said
    return (
        *said[: _WARNINGS - 1],
        f"there are {len(said) - _WARNINGS + 1} more doubts about its rows and columns",
    )


def _is_long(header: list[str]) -> bool:
    """Whether the table is of the details page, one metric a row; refuses a header without its columns."""
    long_form = "Metric Name" in header
    missing = {"ID", "Kernel Name", *(("Metric Value",) if long_form else ())}.difference(header)
    if missing:
        raise Unusable(f"the header row has no column {min(missing)}: the CSV is damaged; export it again")
    return long_form


def _cells(row: list[str], header: list[str], at_least: int) -> dict[str, str]:
    """A row by column name. Rows of the details page that carry no rule end early."""
    if not at_least <= len(row) <= len(header):
        raise Unusable(f"a row has {len(row)} of {len(header)} cells: the CSV is cut short; export it again")
    cells = dict(zip(header, row, strict=False))
    if len(cells) < len(row):
        for name, text in zip(header, row, strict=False):
            if cells[name] != text and is_metric_name(name):
                raise Unusable(f"{name} has two columns that differ; export it again")
    return cells


def _wide_values(cells: Mapping[str, str], units: Mapping[str, str], numbers: NumberForm) -> dict[str, Value]:
    values = {}
    for name, text in cells.items():
        if not is_metric_name(name) or "Domain:" in name:
            continue
        value = numbers.parse(text, units[name])
        if value is not None:
            values[name] = value
        elif _INSTANCED.fullmatch(name):
            values[name] = Value(None, base_unit(units[name])[0], state=State.INSTANCES_ONLY)
    return values


def _add_row(draft: _Draft, cells: Mapping[str, str], numbers: NumberForm) -> None:
    """One row of the details page: a metric by its name or its label (left out if not known), or a rule."""
    section, name = cells.get("Section Name", ""), _metric_name(cells["Metric Name"])
    if cells["Metric Name"].strip():
        draft.rows.add(section, cells["Metric Name"], name is not None)
        name = name or name_of_label(section, cells["Metric Name"])
    elif not cells.get("Rule Name"):
        draft.rows.doubts.append("a row is about no metric and no rule")
    if name is not None:
        value = numbers.parse(cells["Metric Value"], cells.get("Metric Unit", ""))
        draft.is_scaled |= is_scaled(cells.get("Metric Unit", ""))
        if value is not None:
            draft.values.setdefault(name, value)
    elif not cells["Metric Name"].strip() and cells.get("Rule Name"):
        speedup = NumberForm().parse(cells.get("Estimated Speedup", ""), "")  # a point in every locale
        draft.rules.append(
            RuleResult(
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
    if _has_failed(draft, values):
        for name, value in values.items():
            if value.number is not None and value.number <= 0 and not _NOT_COUNTED.fullmatch(name):
                values[name] = Value(None, value.unit, state=State.FAILED)
    # Whoever leaves the column out says nothing of the block.
    has_block = "Block Size" not in cells or _dimensions(cells, "Block Size") is not None
    for name, value in values.items():
        if value.number is not None and is_placeholder(name, value.number, has_block):
            values[name] = Value(None, value.unit, state=State.FAILED)
    capability = _matched(_CAPABILITY, cells, "CC")
    if values and capability:
        for part, text in zip(("major", "minor"), capability.groups(), strict=True):
            values.setdefault(f"device__attribute_compute_capability_{part}", Value(int(text)))
    packed = pack_values(values)
    metric_set = shared.setdefault(packed.metric_set, packed.metric_set)
    stream, device = (_matched(_WHOLE, cells, column) for column in ("Stream", "Device"))
    name = one_line(cells["Kernel Name"])
    return Launch(
        function=kernel_base_name(name).rpartition("::")[2],  # ncu's own function names have no namespace
        demangled=name,
        mangled="",
        grid=_size(cells, "Grid Size", values, "launch__grid_"),
        block=_size(cells, "Block Size", values, "launch__block_"),
        stream=int(stream.group()) if stream else None,
        nvtx=tuple(map(one_line, _ranges(cells))),
        ordinal=ordinal,
        values=Values(metric_set, packed.slots, packed.states, packed.texts),
        rules=tuple(draft.rules),
        device_column=int(device.group()) if device else None,
    )


def _has_failed(draft: _Draft, values: Mapping[str, Value]) -> bool:
    """Whether the zeros of a launch stand for numbers that ncu could not take.

    A launch that ran took time and cycles on a grid. In base units ncu prints NaN for what it lacks; where it
    scales, it prints 0.
    """
    taken = [value for name, value in values.items() if _NEVER_ZERO.fullmatch(name)]
    if any(value.number is not None and value.number <= 0 for value in taken):
        return True
    if any(value.state is State.FAILED for value in taken):
        return draft.is_scaled
    grid = _matched(_DIMENSIONS, draft.cells, "Grid Size")
    return grid is not None and not any(map(int, grid.groups()))


def _matched(form: re.Pattern[str], cells: Mapping[str, str], column: str) -> re.Match[str] | None:
    """The match of a column's text with the form in which ncu prints it; None where it is empty."""
    text = cells.get(column, "").strip()
    match = form.fullmatch(text)
    if text and not match:
        raise Unusable(f"{column} is {cut(text)!r}, which ncu does not print; export it again")
    return match


def _size(
    cells: Mapping[str, str], column: str, values: Mapping[str, Value], prefix: str
) -> tuple[int, int, int] | None:
    """Blocks or threads by dimension; how many in one where no shape is printed, as by ncu 2020 to 2022."""
    if column in cells:
        return _dimensions(cells, column)
    names = [prefix + axis for axis in ("dim_x", "dim_y", "dim_z")]
    x, y, z, total = (values[name].number if name in values else None for name in (*names, f"{prefix}size"))
    if x and y and z:
        return int(x), int(y), int(z)
    return (int(total), 1, 1) if total else None


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
