"""Two sources side by side: which lines changed, which read a flag that differs, what the rest leaves out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3  # equal lines kept around each change
_MACRO = re.compile(r"-D(\w+)(?:=(.*))?")

Traffic = tuple[str, int, str, int, int, int]  # file, line, kind, requests, wavefronts, ideal wavefronts


@dataclass(frozen=True)
class FlagChange:
    """One macro that the two builds set differently; None where a side does not set it."""

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class SourceRow:
    """One line of each side. `kind`: same, changed, removed, added, flag (equal, and reads a differing macro),
    or gap (`skipped` equal lines left out)."""

    kind: str
    a_line: int | None = None
    a: str = ""
    b_line: int | None = None
    b: str = ""
    skipped: int = 0


@dataclass(frozen=True)
class LineTraffic:
    """Shared-memory traffic of one line, by the model of the banks, on both sides; None: no such line there."""

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
    a: str, b: str, changes: Sequence[FlagChange] = (), context: int = CONTEXT
) -> tuple[SourceRow, ...]:
    """The rows of a diff with `context` lines around what changed; equal sources show what flags reach."""
    left, right = a.splitlines(), b.splitlines()
    reads = _reads(changes)
    rows: list[SourceRow] = []
    for tag, i, j, k, m in _matcher(left, right).get_opcodes():
        for offset in range(max(j - i, m - k)):
            x, y = i + offset, k + offset
            has_a, has_b = x < j, y < m
            text_a, text_b = (left[x] if has_a else ""), (right[y] if has_b else "")
            kind = "changed" if has_a and has_b else "removed" if has_a else "added"
            if tag == "equal":
                kind = "flag" if reads and reads.search(_code(text_a)) else "same"
            rows.append(SourceRow(kind, x + 1 if has_a else None, text_a, y + 1 if has_b else None, text_b))
    return _near_changes(rows, context)


def traffic(
    a: Iterable[Traffic], b: Iterable[Traffic], texts: tuple[Mapping[str, str], Mapping[str, str]]
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
        lines_a, lines_b = (text.get(name, "").splitlines() for text, name in zip(texts, (file_a, file_b), strict=True))
        for i, k, size in _matcher(lines_a, lines_b).get_matching_blocks():
            same |= {(file_a, i + n + 1): (file_b, k + n + 1) for n in range(size)}
    found = []
    for (file, line, kind), row in left.items():
        other = right.pop((*same[file, line], kind), None) if (file, line) in same else None
        found.append(_both(kind, row, other, _line_of(texts[0], file, line)))
    found += [_both(kind, None, row, _line_of(texts[1], file, line)) for (file, line, kind), row in right.items()]
    return tuple(sorted(found, key=lambda one: -max(count or 0 for count in one.conflicts)))


def _both(kind: str, a: Traffic | None, b: Traffic | None, text: str) -> LineTraffic:
    places = [None if row is None else f"{row[0]}:{row[1]}" for row in (a, b)]
    return LineTraffic(kind, text, places[0], places[1], a and a[3:], b and b[3:])


def _line_of(texts: Mapping[str, str], file: str, line: int) -> str:
    lines = texts.get(file, "").splitlines()
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
