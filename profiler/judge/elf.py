"""The sections and symbols of an ELF file: what a cubin or an object holds beside its code."""

from __future__ import annotations

import struct
from typing import NamedTuple

from profiler.errors import BuildFailed

WRITE, ALLOCATED, EXECUTABLE = 1, 2, 4  # SHF_*
_SYMBOLS, _EMPTY = 2, 8  # SHT_SYMTAB, SHT_NOBITS
# SHT_RELA, SHT_REL, and what Blackwell's cubins have beside SHT_RELA: bytes of an entry.
_RELOCATIONS = {4: 24, 9: 16, 0x70000082: 24}
_MOST = 1 << 16  # sections, and symbols


class Section(NamedTuple):
    """A section of the file."""

    name: str
    size: int
    flags: int
    kind: int


class Symbol(NamedTuple):
    """A name that the file defines, or asks for."""

    name: str
    section: str  # "" where it is defined elsewhere
    size: int
    binding: int  # 0 local, 1 global, 2 weak


class Relocation(NamedTuple):
    """A place that is given the address of something when the file is loaded."""

    section: str  # where the place is
    offset: int
    symbol: str  # "" where it is a whole section
    target: str  # the section that the symbol is in; "" where it is defined elsewhere


def read_sections(data: bytes) -> list[Section]:
    """The sections in order. Raises BuildFailed where the file is no whole 64-bit ELF file."""
    return [section for section, _ in _headers(data)]


def read_symbols(data: bytes) -> list[Symbol]:
    """The symbols that have a name. Raises BuildFailed as read_sections does."""
    headers = _headers(data)
    symbols = []
    try:
        for section, (_, start, link, _) in headers:
            if section.kind != _SYMBOLS or link >= len(headers):
                continue
            names = headers[link][1][1]
            for at in range(start, start + min(section.size, 24 * _MOST), 24):
                name, info, _, index, _, size = struct.unpack_from("<IBBHQQ", data, at)
                text = _text(data, names + name)
                place = headers[index][0].name if 0 < index < len(headers) else ""
                if text:
                    symbols.append(Symbol(text, place, size, info >> 4))
    except (struct.error, ValueError) as error:
        raise BuildFailed(f"no whole ELF file: {error}") from None
    return symbols


def read_relocations(data: bytes) -> list[Relocation]:
    """The relocations in order. Raises BuildFailed as read_sections does."""
    headers = _headers(data)
    found = []
    try:
        for section, (_, start, link, place) in headers:
            entry = _RELOCATIONS.get(section.kind)
            if entry is None or link >= len(headers) or place >= len(headers):
                continue
            _, symbols, strings, _ = headers[link][1]
            names = headers[strings][1][1]
            for at in range(start, start + min(section.size, entry * _MOST), entry):
                offset, info = struct.unpack_from("<QQ", data, at)
                name, _, _, index, _, _ = struct.unpack_from("<IBBHQQ", data, symbols + 24 * (info >> 32))
                target = headers[index][0].name if 0 < index < len(headers) else ""
                found.append(Relocation(headers[place][0].name, offset, _text(data, names + name), target))
    except (struct.error, ValueError, IndexError) as error:
        raise BuildFailed(f"no whole ELF file: {error}") from None
    return found


def read_contents(data: bytes) -> list[tuple[Section, bytes]]:
    """The sections in order with their bytes; those of a section that has none in the file are none.

    Raises BuildFailed as read_sections does, and where sections have more bytes than the file: they overlap.
    """
    rows = [(section, start, section.kind != _EMPTY) for section, (_, start, _, _) in _headers(data)]
    if sum(section.size for section, _, is_there in rows if is_there) > len(data):
        raise BuildFailed("the sections of the ELF file overlap")
    return [
        (section, data[start : start + section.size] if is_there else b"")
        for section, start, is_there in rows
    ]


def _headers(data: bytes) -> list[tuple[Section, tuple[int, int, int, int]]]:
    """Each section with the number of its header, where it starts, its link and its info."""
    if data[:5] != b"\x7fELF\x02":
        raise BuildFailed("no 64-bit ELF file")
    try:
        offset = struct.unpack_from("<Q", data, 0x28)[0]
        entry_size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
        rows = []
        for index in range(min(count, _MOST)):
            name, kind, flags, _, start, size, link, info = struct.unpack_from(
                "<IIQQQQII", data, offset + index * entry_size
            )
            rows.append((name, kind, flags, start, size, link, info))
        names_start = rows[names_index][3]
        return [
            (Section(_text(data, names_start + name), size, flags, kind), (index, start, link, info))
            for index, (name, kind, flags, start, size, link, info) in enumerate(rows)
        ]
    except (struct.error, IndexError, ValueError) as error:
        raise BuildFailed(f"no whole ELF file: {error}") from None


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    if end < 0:
        raise ValueError("a name without an end")
    return data[at:end].decode(errors="replace")
