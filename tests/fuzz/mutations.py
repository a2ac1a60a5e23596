"""Damage as files meet it: seeded changes of bytes, of lines and cells, of JSON, and of zip archives."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

TEXTS = [
    "",
    "\x00",
    "\x1b[2J",
    "\u202e",
    "../../etc/passwd",
    "/",
    "a" * 5000,
    "NaN",
    "-1",
    "é",
    "\n",
    '"',
    "{}",
]
STRANGE_PATHS = ("../x", "/etc/x", "a\\b", "x/../../y", "\n", "a" * 300)
NUMBERS: list[Any] = [0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, None, True, "7", [], {}]


def change_bytes(content: bytes, random: Random) -> bytes:
    """One to four changes: a bit, a byte, a block that is lost, doubled, moved or zero, an end cut off."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        if not data:
            return bytes(data)
        at = random.randrange(len(data))
        length = random.choice((1, 2, 4, 8, 64, 512, 4096))
        match random.randrange(8):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at] = random.randrange(256)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                data[at : at + length] = bytes(len(data[at : at + length]))
            case 5:
                data[at:at] = random.randbytes(length)
            case 6:
                block, there = data[at : at + length], random.randrange(len(data))
                del data[at : at + length]
                data[there:there] = block
            case _:
                del data[at:]
    return bytes(data)


def change_lines(content: bytes, random: Random) -> bytes:
    """One to three changes of a text's lines or of the words in them; now and then of its bytes."""
    if random.random() < 0.2:
        return change_bytes(content, random)
    lines = content.decode(errors="surrogateescape").split("\n")
    for _ in range(random.randint(1, 3)):
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                separator = random.choice((",", " ", "=", "|", ":"))
                cells = lines[at].split(separator)
                cells[random.randrange(len(cells))] = random.choice(TEXTS)
                lines[at] = separator.join(cells)
            case 4:
                separator = random.choice((",", " ", "="))
                cells = lines[at].split(separator)
                random.shuffle(cells)
                lines[at] = separator.join(cells)
            case _:
                lines[at] = lines[at][: random.randrange(len(lines[at]) + 1)]
        lines = lines or [""]
    return "\n".join(lines).encode(errors="surrogateescape")


def change_json(content: bytes, random: Random) -> bytes:
    """One to three changes of a JSON text: a key lost or renamed, a value of another kind or doubled."""
    if random.random() < 0.2:
        return change_bytes(content, random)
    body = json.loads(content)
    for _ in range(random.randint(1, 3)):
        place, key = _place(body, random)
        if place is None:
            continue
        match random.randrange(5):
            case 0:
                del place[key]
            case 1:
                place[key] = random.choice([*NUMBERS, *TEXTS])
            case 2 if isinstance(place, dict):
                place[random.choice(TEXTS)] = place.pop(key)
            case 3 if isinstance(place, list):
                place.insert(random.randrange(len(place) + 1), place[key])
            case _:
                place[key] = [place[key]]
    text = json.dumps(body)
    if random.random() < 0.05:
        text = text.replace("{", '{"schema": 0, ', 1)  # a key twice
    return text.encode(errors="surrogatepass")


def _place(body: Any, random: Random) -> tuple[Any, Any]:
    """A container somewhere in the document, and a key of it; None where there is none."""
    place, key = None, None
    here = body
    while isinstance(here, (dict, list)) and here:
        if place is not None and random.random() < 0.3:
            break
        place, key = here, random.choice(list(here) if isinstance(here, dict) else range(len(here)))
        here = place[key]
    return place, key


def change_zip(content: bytes, random: Random) -> bytes:
    """A change of an archive: its bytes, its directory, or an entry lost, doubled, renamed or damaged."""
    kind = random.randrange(7)
    if kind == 0:
        return change_bytes(content, random)
    if kind == 1:  # in the last records, where counts and offsets stand
        tail = bytearray(content[-22:])
        tail[random.randrange(4, 22)] = random.randrange(256)
        return content[:-22] + bytes(tail)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    at = random.randrange(len(entries))
    name, body = entries[at]
    match kind:
        case 2:
            del entries[at]
        case 3:
            entries.append((name, body))
        case 4:
            entries.append((random.choice(STRANGE_PATHS), body))
        case 5:
            entries[at] = name, damage(name)(body, random)
        case _:
            entries[at] = name.replace("/", random.choice(("\\", "//", "/./"))), body
    packed = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two entries of one name are meant
        for entry, text in entries:
            archive.writestr(entry, text)
    return packed.getvalue()


def damage(name: str) -> Callable[[bytes, Random], bytes]:
    """The kind of change that fits a file's name."""
    suffix = name.rpartition(".")[2]
    if suffix == "json":
        return change_json
    return change_lines if suffix in ("csv", "txt", "toml") else change_bytes


def lengthen_field(content: bytes, random: Random) -> bytes:
    """A length or count somewhere in a binary file set to a huge or negative number."""
    data = bytearray(content)
    if len(data) >= 8:
        at = random.randrange(len(data) - 7)
        number = random.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 0x0FFFFFFF))
        struct.pack_into("<I", data, at, number)
    return bytes(data)
