"""The details page as ncu prints it without --csv: the launches and tables of a log, as rows of the CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from profiler.reports.csv_numbers import Unusable

_DIMENSIONS = r"\([0-9]+, [0-9]+, [0-9]+\)"
# `  void scale<float>(float *) (24, 4, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0`. ncu 2020 to
# 2022 print when the launch began in place of its grid and block. Source: 50 public logs.
_LAUNCH = re.compile(
    rf"  (?P<name>\S.*?)(?: (?P<grid>{_DIMENSIONS})x(?P<block>{_DIMENSIONS})|, [0-9]{{4}}-\w{{3}}-[0-9 :]+)"
    r"(?:, Context [0-9]+, Stream (?P<stream>[0-9]+))?"
    r"(?:, Device (?P<device>[0-9]+), CC (?P<capability>[0-9.]+))?(?P<mean>, Invocations [0-9]+)?\s*"
)
_SECTION = "    Section: "
_RULER = re.compile(r" {4,}(-+) (-+) (-+)\s*")  # deeper in pages that were indented by hand
_HEADER = ("Metric Name", "Metric Unit", "Metric Value")
_GAP = re.compile(r"\s{2,}")


def is_launch(line: str) -> bool:
    """Whether a line is the one that stands above the sections of a launch."""
    return _launch_in(line) is not None


def rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Each launch, then each row of its tables, by the columns of ncu's CSV; raises Unusable for a cut page.

    A launch is a row without a metric. ID counts the launches of the page, which does not number them. Left
    out are the rules, whose names it does not have, and what --print-details all adds: tables with a title.
    """
    launch: dict[str, str] | None = None
    section, table, count, is_titled = "", None, 0, False
    for line in lines:
        if table is None and (match := _launch_in(line)):
            launch = {"ID": str(count), **_cells(match)}
            count += 1
            yield launch
        elif table is None and line.startswith(_SECTION):
            section, is_titled = line.removeprefix(_SECTION).strip(), False
        elif ruler := _RULER.fullmatch(line):
            table = _TextTable(ruler) if table is None else table.after_ruler()
        elif table is None:
            is_titled = True
        elif launch is not None:
            if _launch_in(line) or line.startswith(_SECTION):
                break
            cells = table.cells(line)
            if cells == _HEADER:
                table.has_header = True
            elif any(cells[:1]) and not is_titled:
                yield launch | {"Section Name": section} | dict(zip(_HEADER, cells, strict=True))
    if table is not None:
        raise Unusable(f"a table of section {section} has no end: the page is cut short; print it again")


@dataclass
class _TextTable:
    """A table between its rulers, the first of which shows where its three columns stand."""

    ruler: re.Match[str]
    has_header: bool = False  # whether the next ruler stands under the header, not at the end

    def after_ruler(self) -> _TextTable | None:
        """The table that goes on below a ruler; None where it ends."""
        return _TextTable(self.ruler) if self.has_header else None

    def cells(self, line: str) -> tuple[str, ...]:
        """Name, unit and value of a row; () for a line that is none."""
        name, unit, value = (slice(*self.ruler.span(column)) for column in (1, 2, 3))
        gaps = line[name.stop : unit.start] + line[unit.stop : value.start]
        if not line.startswith("    ") or len(line) < value.start:
            return ()
        if not gaps.strip() and len(line.rstrip()) <= value.stop:
            return line[name].strip(), line[unit].strip(), line[value].strip()
        found = _GAP.split(line.strip())  # a name longer than its column moves the others
        return (found[0], *found[1:-1][:1], *[""] * (len(found) == 2), found[-1]) if len(found) > 1 else ()


def _launch_in(line: str) -> re.Match[str] | None:
    if not line.startswith("  ") or (", Context " not in line and ", Device " not in line):
        return None
    return _LAUNCH.fullmatch(line)


def _cells(match: re.Match[str]) -> dict[str, str]:
    if match["mean"]:
        raise Unusable(
            "is a summary (--print-summary): the mean over launches, and no launch; print it without"
        )
    columns = {"Kernel Name": "name", "Stream": "stream", "Device": "device", "CC": "capability"}
    if match["grid"]:
        columns |= {"Grid Size": "grid", "Block Size": "block"}
    return {column: match[group] or "" for column, group in columns.items()}
