"""A tar written and read member by member in bounded memory, of plain files alone.

tarfile writes the heads, so that every tar program reads what is written here. It does not read them: it
takes extended heads of any size into memory, and keeps a note of every member.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath

from profiler.bundles.bundle import Readable, Writable
from profiler.errors import BadBundle

_BLOCK = 512
_READ_BYTES = 1 << 20
MAX_NAME_BYTES = 4096
_MODE = 0o644


def add_member(tar: Writable, name: str, source: Readable, size_bytes: int) -> None:
    """Write one file of this size. Raises BadBundle where the source has not that many bytes."""
    head = tarfile.TarInfo(name)
    head.size, head.mode = size_bytes, _MODE
    tar.write(head.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict"))
    left = size_bytes
    while block := source.read(min(_READ_BYTES, left)):
        tar.write(block)
        left -= len(block)
    if left or source.read(1):
        raise BadBundle(f"{name} was changed while it was read")
    tar.write(b"\0" * (-size_bytes % _BLOCK))


def end(tar: Writable) -> None:
    """Write the two empty blocks that end a tar."""
    tar.write(b"\0" * (2 * _BLOCK))


class Member:
    """A file in a tar that is being read: once, before the next member is asked for."""

    def __init__(self, tar: Readable, name: str, size_bytes: int) -> None:
        self.name = name
        self.size_bytes = size_bytes
        self._tar = tar
        self._left = size_bytes

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, fewer only at the end of the file. Raises BadBundle where the tar ends."""
        wanted = self._left if size < 0 else min(size, self._left)
        block = _read_whole(self._tar, wanted)
        self._left -= wanted
        return block

    def skip(self) -> None:
        """Read over the rest of the file and what fills its last block."""
        while self.read(_READ_BYTES):
            pass
        _read_whole(self._tar, -self.size_bytes % _BLOCK)


def read_members(tar: Readable) -> Iterator[Member]:
    """The files of a tar in order; what a caller leaves of one is skipped.

    Raises BadBundle for links, folders, devices and pipes, names that lead out, and a tar that was cut short.
    """
    long_name: str | None = None
    while any(block := _read_whole(tar, _BLOCK)):
        try:
            head = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise BadBundle(f"what should be the head of a file is none ({error})") from error
        if head.size < 0:
            raise BadBundle(f"{head.name[:80]!r} has a size below zero")
        member = Member(tar, head.name if long_name is None else long_name, head.size)
        if head.type == tarfile.GNUTYPE_LONGNAME and long_name is None:
            if head.size > MAX_NAME_BYTES:
                raise BadBundle(f"a name of {head.size:,} bytes")
            try:
                long_name = member.read().rstrip(b"\0").decode()
            except UnicodeDecodeError as error:
                raise BadBundle("a name that is no UTF-8") from error
            member.skip()
            continue
        if head.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise BadBundle(f"{member.name[:80]!r} is no plain file")
        long_name = None
        check_name(member.name)
        yield member
        member.skip()


def check_name(name: str) -> None:
    """Raise BadBundle for a name that leads out of the folder, or that some system reads in another way."""
    parts = PurePosixPath(name).parts
    if (
        not parts
        or str(PurePosixPath(name)) != name
        or name.startswith("/")
        or ".." in parts
        or any(mark in name for mark in "\\:")
        or not name.isprintable()
    ):
        raise BadBundle(f"the name {name[:80]!r} would lead elsewhere")


def _read_whole(tar: Readable, size: int) -> bytes:
    """Exactly `size` bytes."""
    blocks = []
    while size and (block := tar.read(min(size, _READ_BYTES))):
        blocks.append(block)
        size -= len(block)
    if size:
        raise BadBundle("it was cut short: copy it again")
    return b"".join(blocks)
