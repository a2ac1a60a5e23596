"""Two sources side by side: which lines changed, depend on a flag that differs, or are not compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from profiler.reports.source_text import source_lines

CONTEXT = 3  # equal lines kept around each change
_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
_MACRO = re.compile(r"-D(\w+)(?:=(.*))?")


class TrafficRow(NamedTuple):
    """The shared-memory traffic of one access in the source, by the model of the banks."""

    file: str
    line: int
    kind: str  # load or store
    requests: int
    wavefronts: int
    ideal_wavefronts: int  # of an access pattern without conflicts


@dataclass(frozen=True)
class FlagChange:
    """One macro that the two builds set differently; None where a side does not set it."""

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class SourceRow:
    """One line of each side, or a gap."""

    # same, changed, removed, added; flag: equal, but dependent on a flag that differs; gap: `skipped` equal
    # lines are left out here.
    kind: str
    a_line: int | None = None
    a: str = ""
    b_line: int | None = None
    b: str = ""
    skipped: int = 0
    a_compiled: bool = True  # False: in an #if that is false under this side's flags
    b_compiled: bool = True


@dataclass(frozen=True)
class LineTraffic:
    """Shared-memory traffic of one line on both sides, by the model of the banks.

    None where a side has no such line.
    """

    kind: str  # load or store
    text: str
    a_line: str | None  # file:line
    b_line: str | None
    a: tuple[int, int, int] | None  # requests, wavefronts, ideal wavefronts
    b: tuple[int, int, int] | None

    @property
    def conflicts(self) -> tuple[int | None, int | None]:
        """Wavefronts over the ideal, of each side."""
        a, b = (None if side is None else side[1] - side[2] for side in (self.a, self.b))
        return a, b


def flag_changes(a: Sequence[str], b: Sequence[str]) -> tuple[FlagChange, ...]:
    """The macros and other flags that differ."""
    macros_a, macros_b = _macros(a), _macros(b)
    return tuple(
        FlagChange(name, macros_a.get(name), macros_b.get(name))
        for name in dict.fromkeys((*macros_a, *macros_b))
        if macros_a.get(name) != macros_b.get(name)
    )


def side_by_side(
    a: str,
    b: str,
    flags: tuple[Sequence[str], Sequence[str]] = ((), ()),
    context: int | None = CONTEXT,
) -> tuple[SourceRow, ...]:
    """The rows of a diff with `context` lines around what changed; None: all lines where anything did.

    `flags`, those of A and B, decide which lines depend on a flag and which are compiled: two versions of one
    source differ in nothing else.
    """
    lines_a, lines_b = source_lines(a), source_lines(b)
    reads_flag = _flag_pattern(flag_changes(*flags))
    uncompiled_a = uncompiled_lines(lines_a, _macros(flags[0]))
    uncompiled_b = uncompiled_lines(lines_b, _macros(flags[1]))
    rows: list[SourceRow] = []
    for tag, i, j, k, m in _matcher(lines_a, lines_b).get_opcodes():
        for offset in range(max(j - i, m - k)):
            x, y = i + offset, k + offset
            has_a, has_b = x < j, y < m
            text_a, text_b = (lines_a[x] if has_a else ""), (lines_b[y] if has_b else "")
            kind = "changed" if has_a and has_b else "removed" if has_a else "added"
            compiled = not (has_a and x in uncompiled_a), not (has_b and y in uncompiled_b)
            if tag == "equal":
                depends = compiled[0] != compiled[1] or (reads_flag and reads_flag.search(_code(text_a)))
                kind = "flag" if depends else "same"
            columns = (x + 1 if has_a else None, text_a, y + 1 if has_b else None, text_b)
            rows.append(SourceRow(kind, *columns, 0, *compiled))
    return _with_gaps(rows, context)


def uncompiled_lines(lines: Sequence[str], macros: Mapping[str, str]) -> frozenset[int]:
    """The lines, from 0, that macros leave out. A condition beyond a name or a comparison is unknown."""
    values = {**_defined_values(lines), **macros}
    uncompiled: set[int] = set()
    stack: list[bool | None] = []  # whether each open condition holds; None where nobody knows
    for index, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        word, rest = (directive[1], directive[2].strip()) if directive else ("", "")
        if word == "endif" and stack:
            stack.pop()
        elif word in ("else", "elif") and stack:
            stack[-1] = None if stack[-1] is None or word == "elif" else not stack[-1]
        elif not directive and False in stack:
            uncompiled.add(index)
        if word in ("if", "ifdef", "ifndef"):
            stack.append(_holds(word, _code(rest).strip(), values, macros))
    return frozenset(uncompiled)


def compare_traffic(
    a: Iterable[TrafficRow], b: Iterable[TrafficRow], texts: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[LineTraffic, ...]:
    """The traffic of both sides by line; lines of two sources belong together where their text is equal.

    `texts` has the text of each file of A and of B. Most conflicts first.
    """
    rows_a = {row[:3]: row for row in a}
    rows_b = {row[:3]: row for row in b}
    files_a, files_b = (list(dict.fromkeys(key[0] for key in rows)) for rows in (rows_a, rows_b))
    # Files of one name; where there is none, the first of each side, which are two versions' own sources.
    file_pairs = [(name, name) for name in files_a if name in files_b] or list(
        zip(files_a[:1], files_b[:1], strict=False)
    )
    same_line: dict[tuple[str, int], tuple[str, int]] = {}
    for file_a, file_b in file_pairs:
        lines_a, lines_b = source_lines(texts[0].get(file_a, "")), source_lines(texts[1].get(file_b, ""))
        for i, k, size in _matcher(lines_a, lines_b).get_matching_blocks():
            same_line |= {(file_a, i + n + 1): (file_b, k + n + 1) for n in range(size)}
    traffic = []
    for (file, line, kind), row in rows_a.items():
        partner = None
        if (file, line) in same_line:
            partner = rows_b.pop((*same_line[file, line], kind), None)
        traffic.append(_line_traffic(kind, row, partner, _line_of(texts[0], file, line)))
    traffic += [
        _line_traffic(kind, None, row, _line_of(texts[1], file, line))
        for (file, line, kind), row in rows_b.items()
    ]
    return tuple(sorted(traffic, key=lambda line: -max(count or 0 for count in line.conflicts)))


def _line_traffic(kind: str, a: TrafficRow | None, b: TrafficRow | None, text: str) -> LineTraffic:
    lines = [None if row is None else f"{row.file}:{row.line}" for row in (a, b)]
    return LineTraffic(kind, text, lines[0], lines[1], a and a[3:], b and b[3:])


def _line_of(texts: Mapping[str, str], file: str, line: int) -> str:
    lines = source_lines(texts.get(file, ""))
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _matcher(a: Sequence[str], b: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, a, b, autojunk=False)


def _macros(flags: Sequence[str]) -> dict[str, str]:
    """What flags set: a macro its value (-DX: 1), any other flag the word `set`."""
    values = {}
    for flag in flags:
        macro = _MACRO.fullmatch(flag)
        if macro:
            values[macro[1]] = "1" if macro[2] is None else macro[2]
        else:
            values[flag] = "set"
    return values


def _flag_pattern(changes: Sequence[FlagChange]) -> re.Pattern[str] | None:
    """What a line must hold to depend on a flag: a name that the flag is set to, else its own name."""
    words: set[str] = set()
    for change in changes:
        names = {value for value in (change.a, change.b) if value and re.fullmatch(r"[A-Za-z_]\w*", value)}
        words |= names - {"set"} or {change.name}
    return re.compile(rf"\b({'|'.join(sorted(words))})\b") if words else None


def _defined_values(lines: Sequence[str]) -> dict[str, str]:
    """What the text itself defines macros as, behind an #ifndef for example."""
    matches = (re.match(r"\s*#\s*define\s+(\w+)\s+(\w+)\s*(?://.*)?$", line) for line in lines)
    return {match[1]: match[2] for match in matches if match}


def _holds(word: str, condition: str, values: Mapping[str, str], macros: Mapping[str, str]) -> bool | None:
    """Whether #if, #ifdef or #ifndef is true; None where nobody knows."""
    if word != "if":
        return None if condition not in macros else (word == "ifdef")
    comparison = re.fullmatch(r"(\w+)\s*(==|!=)\s*(\w+)", condition)
    # A macro that is not set is not equal to a name of its own kind: BUG and BUG_V2.
    if comparison and (comparison[1] in values or comparison[3].startswith(f"{comparison[1]}_")):
        return (values.get(comparison[1]) == comparison[3]) == (comparison[2] == "==")
    if condition in macros:
        return macros[condition] != "0"
    return None


def _code(line: str) -> str:
    """The line without its comment."""
    return line.partition("//")[0]


def _with_gaps(rows: Sequence[SourceRow], context: int | None) -> tuple[SourceRow, ...]:
    """The rows near a change; each stretch of the others becomes one row that counts it."""
    changes = [index for index, row in enumerate(rows) if row.kind != "same"]
    if changes and context is None:
        return tuple(rows)
    reach = context or 0
    near_changes = {near for index in changes for near in range(index - reach, index + reach + 1)}
    visible: list[SourceRow] = []
    for index, row in enumerate(rows):
        if index in near_changes:
            visible.append(row)
        elif visible and visible[-1].kind == "gap":
            visible[-1] = SourceRow("gap", skipped=visible[-1].skipped + 1)
        else:
            visible.append(SourceRow("gap", skipped=1))
    return tuple(visible)
