"""Two sources side by side: which lines changed, which read a flag that differs, what the rest leaves out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from profiler.reports import source_lines

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
    """One line of each side.

    `kind`: same, changed, removed, added, flag (equal, and depends on a flag that differs), or gap (`skipped`
    equal lines left out).
    """

    kind: str
    a_line: int | None = None
    a: str = ""
    b_line: int | None = None
    b: str = ""
    skipped: int = 0
    a_compiled: bool = True  # False: between an #if and #endif that this side's flags leave out
    b_compiled: bool = True


@dataclass(frozen=True)
class LineTraffic:
    """Shared-memory traffic of one line on both sides, by the model of the banks; None: no such line."""

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
    left, right = _macros(a), _macros(b)
    names = dict.fromkeys((*left, *right))
    return tuple(
        FlagChange(name, left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    )


def side_by_side(
    a: str,
    b: str,
    flags: tuple[Sequence[str], Sequence[str]] = ((), ()),
    context: int = CONTEXT,
) -> tuple[SourceRow, ...]:
    """The rows of a diff with `context` lines around what changed; equal sources show what flags reach.

    `flags` are those of A and B: they decide which lines count as reading a flag, and which are compiled.
    """
    left, right = source_lines(a), source_lines(b)
    reads = _reads(flag_changes(*flags))
    off = tuple(uncompiled_lines(text, _macros(own)) for text, own in zip((left, right), flags, strict=True))
    rows: list[SourceRow] = []
    for tag, i, j, k, m in _matcher(left, right).get_opcodes():
        for offset in range(max(j - i, m - k)):
            x, y = i + offset, k + offset
            has_a, has_b = x < j, y < m
            text_a, text_b = (left[x] if has_a else ""), (right[y] if has_b else "")
            kind = "changed" if has_a and has_b else "removed" if has_a else "added"
            compiled = not (has_a and x in off[0]), not (has_b and y in off[1])
            if tag == "equal":
                flagged = compiled[0] != compiled[1] or (reads and reads.search(_code(text_a)))
                kind = "flag" if flagged else "same"
            lines = (x + 1 if has_a else None, text_a, y + 1 if has_b else None, text_b)
            rows.append(SourceRow(kind, *lines, 0, *compiled))
    return _near_changes(rows, context)


def uncompiled_lines(lines: Sequence[str], macros: Mapping[str, str]) -> frozenset[int]:
    """The lines, from 0, that the macros leave out. Only a name or one comparison is understood."""
    values = {**_defaults(lines), **macros}
    out: set[int] = set()
    stack: list[bool | None] = []  # of each open condition: taken, left out, or nobody knows
    for index, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        word, rest = (directive[1], directive[2].strip()) if directive else ("", "")
        if word == "endif" and stack:
            stack.pop()
        elif word in ("else", "elif") and stack:
            stack[-1] = None if stack[-1] is None or word == "elif" else not stack[-1]
        elif not directive and False in stack:
            out.add(index)
        if word in ("if", "ifdef", "ifndef"):
            stack.append(_holds(word, _code(rest).strip(), values, macros))
    return frozenset(out)


def compare_traffic(
    a: Iterable[TrafficRow], b: Iterable[TrafficRow], texts: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[LineTraffic, ...]:
    """The traffic of both sides by line; lines of two sources belong together where the text is equal.

    `texts` has the text of each file of A and of B. Most conflicts first.
    """
    left = {row[:3]: row for row in a}
    right = {row[:3]: row for row in b}
    files_a, files_b = (list(dict.fromkeys(key[0] for key in side)) for side in (left, right))
    same: dict[tuple[str, int], tuple[str, int]] = {}
    pairs = [(name, name) for name in files_a if name in files_b] or list(
        zip(files_a[:1], files_b[:1], strict=False)
    )
    for file_a, file_b in pairs:
        lines_a, lines_b = (
            source_lines(text.get(name, "")) for text, name in zip(texts, (file_a, file_b), strict=True)
        )
        for i, k, size in _matcher(lines_a, lines_b).get_matching_blocks():
            same |= {(file_a, i + n + 1): (file_b, k + n + 1) for n in range(size)}
    found = []
    for (file, line, kind), row in left.items():
        other = right.pop((*same[file, line], kind), None) if (file, line) in same else None
        found.append(_both(kind, row, other, _line_of(texts[0], file, line)))
    found += [
        _both(kind, None, row, _line_of(texts[1], file, line)) for (file, line, kind), row in right.items()
    ]
    return tuple(sorted(found, key=lambda one: -max(count or 0 for count in one.conflicts)))


def _both(kind: str, a: TrafficRow | None, b: TrafficRow | None, text: str) -> LineTraffic:
    places = [None if row is None else f"{row[0]}:{row[1]}" for row in (a, b)]
    return LineTraffic(kind, text, places[0], places[1], a and a[3:], b and b[3:])


def _line_of(texts: Mapping[str, str], file: str, line: int) -> str:
    lines = source_lines(texts.get(file, ""))
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _matcher(a: Sequence[str], b: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, a, b, autojunk=False)


def _macros(flags: Sequence[str]) -> dict[str, str]:
    found = {}
    for flag in flags:
        macro = _MACRO.fullmatch(flag)
        found[macro[1] if macro else flag] = (macro[2] if macro[2] is not None else "1") if macro else "set"
    return found


def _reads(changes: Sequence[FlagChange]) -> re.Pattern[str] | None:
    """What a line must hold to depend on a flag: the names that it is set to, else its own name."""
    words: set[str] = set()
    for change in changes:
        named = {value for value in (change.a, change.b) if value and re.fullmatch(r"[A-Za-z_]\w*", value)}
        words |= named - {"set"} or {change.name}
    return re.compile(rf"\b({'|'.join(sorted(words))})\b") if words else None


def _defaults(lines: Sequence[str]) -> dict[str, str]:
    """What macros are set to in the text itself, as after an #ifndef."""
    found = (re.match(r"\s*#\s*define\s+(\w+)\s+(\w+)\s*(?://.*)?$", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _holds(word: str, condition: str, values: Mapping[str, str], macros: Mapping[str, str]) -> bool | None:
    if word != "if":
        return None if condition not in macros else (word == "ifdef")
    compared = re.fullmatch(r"(\w+)\s*(==|!=)\s*(\w+)", condition)
    if compared and (compared[1] in values or compared[3].startswith(f"{compared[1]}_")):
        return (values.get(compared[1]) == compared[3]) == (compared[2] == "==")
    if condition in macros:
        return macros[condition] != "0"
    return None


def _code(line: str) -> str:
    """The line without its comment."""
    return line.partition("//")[0]


def _near_changes(rows: Sequence[SourceRow], context: int) -> tuple[SourceRow, ...]:
    """The changed rows with their surroundings; each stretch left out becomes one row that counts it."""
    kept: Collection[int] = {
        near
        for index, row in enumerate(rows)
        if row.kind != "same"
        for near in range(index - context, index + context + 1)
    }
    found: list[SourceRow] = []
    for index, row in enumerate(rows):
        if index in kept:
            found.append(row)
        elif found and found[-1].kind == "gap":
            found[-1] = SourceRow("gap", skipped=found[-1].skipped + 1)
        else:
            found.append(SourceRow("gap", skipped=1))
    return tuple(found)
