"""Files that are no reports, and a report damaged in the ways that were seen: cut, appended to, bits flipped.

What `ncu_report` does with a flipped bit depends on where it lies; each place here was chosen for one of the
outcomes, and the file is named for it. Every one must be refused.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.reportfiles.wire import message

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 521470\n".format("0" * 64)
_DIMENSIONS = message((8, 3), (9, message((1, 0), (2, 0), (3, 0))))  # required, before a launch's grid


def write(report: Path, folder: Path) -> None:
    """Damage a report of several launches in every way, one file each."""
    whole = report.read_bytes()
    draw = random.Random(20250301)
    launches = _places(whole, _DIMENSIONS)
    files: dict[str, bytes] = {
        "empty": b"",
        "text": b"this is not a report",
        "random": b"RVN" + draw.randbytes(99_997),
        "magic_only": whole[:4],
        "lfs_pointer": LFS_POINTER.encode(),
        "first10": whole[:10],
        "minus_last_byte": whole[:-1],
        "trailing_garbage": whole + draw.randbytes(700),
        "twice": whole + whole,
        "truncated_1_of_4_actions": whole[: (launches[0] + launches[1]) // 2],
        "truncated_3_of_4_actions": whole[: (launches[2] + launches[3]) // 2],
        "truncated_near_end": whole[:-9000],
        # the tag of a required field of a launch: the library finds it without a name
        "flip1_metrics_lost": _changed(whole, {launches[0]: 0x60}),
        "flip20_metrics_lost": _changed(
            whole, {launches[1]: 0x60} | dict.fromkeys(_places(whole, b"launch__")[:19], 42)
        ),
        # a letter in the table of names
        "flip1_exception": _changed(whole, {_places(whole, b"gpu__time_duration.sum")[0] + 4: 0xDF}),
        # a tag in the header of the first block, which then is none: the library reads no block after it
        "flip1_all_actions_lost": _changed(whole, {_places(whole, b"\x12\x03#17")[0]: 0x02}),
        # the highest byte of a launch's length
        "flip1_abort": _changed(whole, {_length_of_first_launch(whole): 0x40}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.ncu-rep").write_bytes(content)


def _places(content: bytes, pattern: bytes) -> list[int]:
    """Every place of a pattern."""
    found, at = [], content.find(pattern)
    while at >= 0:
        found.append(at)
        at = content.find(pattern, at + 1)
    return found


def _changed(content: bytes, bytes_at: dict[int, int]) -> bytes:
    changed = bytearray(content)
    for at, byte in bytes_at.items():
        assert changed[at] != byte
        changed[at] = byte
    return bytes(changed)


def _length_of_first_launch(content: bytes) -> int:
    """Where the last of the four bytes of its entry's length lies: its mangled name follows soon after."""
    at = 4
    at += 4 + int.from_bytes(content[at : at + 4], "little")
    while at < len(content):
        end = at + 4 + int.from_bytes(content[at : at + 4], "little")
        header = content[at + 4 : end]
        results, payload = _numbers(header, 2), _numbers(header, 5)
        if results:
            return end + 3
        at = end + payload
    raise ValueError("no launch")


def _numbers(header: bytes, field: int) -> int:
    """A whole-number field of a message; 0 where it is absent."""
    at = 0
    while at < len(header):
        tag, at = _varint(header, at)
        value, at = _varint(header, at)
        if tag == field << 3:
            return value
        if tag & 7 == 2:
            at += value
    return 0


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not content[at - 1] & 0x80:
            return value, at
