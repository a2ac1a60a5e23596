"""What a report file tells of the machine and person that made it, and how that is overwritten in place."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import UnreadableReport
from profiler.reports.file_format import MAGIC, Framing, check_framing
from profiler.reports.reader_process import varint

# Field numbers: ProfilerReport.proto and ProfilerReportCommon.proto of ncu 2024.1, as in framing.py.
_SESSION, _PROCESS, _PAYLOAD_SIZE, _SOURCES = 3, 6, 5, 1
_SYSTEMS, _EXECUTABLE, _COMMAND_LINE, _COMMENTS = (3, 4), 9, 11, 7
_COMPUTER_NAME, _ADDRESSES = 5, 7
_SOURCE_FILES = 8  # of SourceData

_FILLER = b"x"
_NAME_BYTES = 200  # longer than any metric's name
_SHORTEST = 6  # bytes: a shorter word, such as the user `root`, occurs by chance in metrics and machine code
# Where every machine has the same things. A user's own folder below them would not be in a home directory.
_PUBLIC = (
    b"/usr",
    b"/opt",
    b"/lib",
    b"/bin",
    b"/sbin",
    b"/etc",
    b"/dev",
    b"/proc",
    b"/sys",
    b"/run",
    b"/var/lib",
)
_PART = rb"[A-Za-z0-9_.+@~%#-]+"
_ABSOLUTE = re.compile(rb"(?:/" + _PART + rb")+/?")
_ROOTS = (
    rb"/(?:home|Users|root|mnt|data|workspace|work|scratch|tmp|projects?|export|media|srv|nfs|gpfs|lustre)"
)
# Folders in the line table of the machine code: whole strings between zeros, the first after its header.
# Elsewhere the bytes around a path are lengths and tags that must not be touched, and may look like letters.
_PRIVATE = re.compile(rb"(?<=[\0\1])(" + _ROOTS + rb"(?:/" + _PART + rb")+)(?=\0)")
# In a sentence, such as a rule's error: between what ends a word on both sides.
_IN_TEXT = re.compile(rb"(?<=[ '\"(=:\n])(" + _ROOTS + rb"(?:/" + _PART + rb")+/?)(?=[ '\"):,;\n])")
_BEGINS = re.compile(_ROOTS + rb"/")  # a string of its own where its length stands before it
_HOME = re.compile(rb"/(?:home|Users)/[A-Za-z0-9_.-]{1,32}(?=/)")  # whose it is
_LOOPBACK = (b"127.0.0.1", b"::1", b"localhost", b"0.0.0.0")


@dataclass(frozen=True)
class Redaction:
    """What was overwritten."""

    places: int  # occurrences
    words: int  # different hosts, addresses, folders


@dataclass(frozen=True)
class _Field:
    number: int
    start: int  # of the content, in the file
    end: int


def redact_report(path: Path, target: Path, private: Iterable[str] = ()) -> Redaction:
    """Copy a report with hosts, addresses, environment, folders and user names overwritten at equal length.

    `private` names more words to overwrite everywhere. File names stay, since source lines need them, and
    ncu's options stay, since comparability needs them. Equal words become equal words. Raises
    UnreadableReport where the report is damaged, or where the copy does not hold what the report held.
    """
    before = check_framing(path)
    content = bytearray(path.read_bytes())
    words: dict[bytes, bytes] = {}
    fixed: list[tuple[int, int]] = []  # overwritten whole, wherever they lie
    for field in _session_fields(content):
        _collect_words(content, *field, words, fixed)
    for name in private:
        _remember_word(name.encode(), words)
    for ordinary in [word for word in words if b"/" not in word and _in_metric_names(word, content)]:
        del words[ordinary]  # a machine called `device` says nothing, and device__attribute_… must stay
    for match in _PRIVATE.finditer(content):
        folder, _, file_name = match[1].rpartition(b"/")
        _remember_folder(folder if b"." in file_name.lstrip(b".") else match[1], words)
    for folder in _in_strings(content):
        _remember_folder(folder, words)
    for match in _IN_TEXT.finditer(content):
        _remember_folder(bytes(match[1]).rstrip(b"/"), words)
    for match in _HOME.finditer(content):
        _remember_word(bytes(match[0]), words)
    places = 0
    for start, end in fixed:
        content[start:end] = _FILLER * (end - start)
        places += 1
    redacted = bytes(content)
    for word in sorted(words, key=len, reverse=True):  # a folder before the one it lies in
        places += redacted.count(word)
        redacted = redacted.replace(word, words[word])
    target.write_bytes(redacted)
    try:
        _check_copy(path, target, before, words)
    except UnreadableReport:
        target.unlink(missing_ok=True)
        raise
    return Redaction(places, len(words))


def private_words() -> list[str]:
    """What files made on this machine could reveal: its name, the user's home, the folders worked in."""
    words = [
        socket.gethostname(),
        str(Path.home()),
        str(Path.cwd()),
        str(Path(__file__).resolve().parents[2]),
        tempfile.gettempdir(),
    ]
    return [word for word in words if len(word.strip("/")) > 4]


def _check_copy(path: Path, target: Path, before: Framing, words: dict[bytes, bytes]) -> None:
    """Raise UnreadableReport where the copy lost a launch or its session, or still holds one of the words."""
    after = check_framing(target)
    same = (after.size_bytes, after.declared, after.launches) == (
        before.size_bytes,
        before.declared,
        before.launches,
    )
    sessions = [
        (session.ncu_version, session.driver, session.clock_control, session.cache_control)
        for session in (before.session, after.session)
    ]
    if not same or sessions[0] != sessions[1]:
        raise UnreadableReport(
            f"{path}: overwriting its session would change what it measured; not published"
        )
    content = target.read_bytes()
    left = [word for word, mask in words.items() if word != mask and word in content]
    if left:
        raise UnreadableReport(f"{path}: still names {left[0].decode(errors='replace')}; not published")


def _session_fields(content: bytearray) -> Iterator[tuple[str, _Field]]:
    """Every field that says something about the machine, with its kind: host, path or whole."""
    at = len(MAGIC)
    at += 4 + int.from_bytes(content[at : at + 4], "little")
    while at < len(content):
        start = at + 4
        end = start + int.from_bytes(content[at:start], "little")
        payload, sources = 0, 0
        for field in _fields(content, start, end):
            if field.number == _SESSION:
                yield from _of_session(content, field)
            elif field.number == _PROCESS:
                for inner in _fields(content, field.start, field.end):
                    if inner.number in (2, 3):
                        yield ("host" if inner.number == 2 else "path"), inner
        for number, value in _numbers(content, start, end):
            payload = value if number == _PAYLOAD_SIZE else payload
            sources = value if number == _SOURCES else sources
        yield from _of_sources(content, end, end + payload, sources)
        at = end + payload


def _of_session(content: bytearray, session: _Field) -> Iterator[tuple[str, _Field]]:
    for field in _fields(content, session.start, session.end):
        if field.number in _SYSTEMS:
            for inner in _fields(content, field.start, field.end):
                if inner.number == _COMPUTER_NAME:
                    yield "host", inner
                elif inner.number == _ADDRESSES:
                    for address in _fields(content, inner.start, inner.end):
                        if address.number == 1:
                            yield "host", address
        elif field.number == _EXECUTABLE:
            for inner in _fields(content, field.start, field.end):
                yield ("whole" if inner.number == 4 else "path"), inner
        elif field.number == _COMMAND_LINE:
            yield "path", field
        elif field.number == _COMMENTS:
            yield "whole", field


def _of_sources(content: bytearray, at: int, end: int, sources: int) -> Iterator[tuple[str, _Field]]:
    """The names of the source files of each SourceData, which come first in the payload."""
    for _ in range(sources):
        if at + 4 > end:
            return
        start = at + 4
        at = start + int.from_bytes(content[at:start], "little")
        for field in _fields(content, start, min(at, end)):
            if field.number != _SOURCE_FILES:
                continue
            for file in _fields(content, field.start, field.end):
                for inner in _fields(content, file.start, file.end):
                    if inner.number == 1:
                        yield "path", inner


def _in_strings(content: bytearray) -> Iterator[bytes]:
    """The folders of paths that are a whole field, of call stacks for example: their length stands before."""
    for match in _BEGINS.finditer(content):
        start = match.start()
        for width in (1, 2):
            try:
                length, begin = varint(content, start - width)
            except (IndexError, ValueError):
                continue
            text = bytes(content[start : start + length])
            if begin == start and len(text) == length and _ABSOLUTE.fullmatch(text):
                yield os.path.dirname(text)


def _collect_words(
    content: bytearray,
    kind: str,
    field: _Field,
    words: dict[bytes, bytes],
    fixed: list[tuple[int, int]],
) -> None:
    """Add what a field of the session calls for: words to overwrite everywhere, or the place of the field."""
    text = bytes(content[field.start : field.end])
    if kind == "whole":
        fixed.append((field.start, field.end))
    elif kind == "host":
        if text not in _LOOPBACK:
            fixed.append((field.start, field.end))
            _remember_word(text, words)
    else:
        for match in _ABSOLUTE.finditer(text):
            _remember_folder(os.path.dirname(match[0]), words)


def _remember_word(word: bytes, words: dict[bytes, bytes]) -> None:
    if len(word) >= _SHORTEST and word not in _LOOPBACK:
        words[word] = _masked_path(word) if b"/" in word else _FILLER * len(word)


def _in_metric_names(word: bytes, content: bytearray) -> bool:
    """Whether it is a part of the names that metrics have, with `__` in them."""
    at = content.find(word)
    while at >= 0:
        begin, end = max(0, at - _NAME_BYTES), at + len(word) + _NAME_BYTES
        before = re.search(rb"\w*\Z", content[begin:at])
        after = re.match(rb"\w*", content[at + len(word) : end])
        if b"__" in (before[0] if before else b"") + word + (after[0] if after else b""):
            return True
        at = content.find(word, at + 1)
    return False


def _remember_folder(folder: bytes, words: dict[bytes, bytes]) -> None:
    if len(folder) >= _SHORTEST and not folder.startswith(_PUBLIC) and folder.strip(b"/."):
        words[folder] = _masked_path(folder)


def _masked_path(path: bytes) -> bytes:
    """Every part as long as it was, so that one folder is masked in the same way wherever it begins."""
    return re.sub(rb"[^/]", _FILLER, path)


def _fields(content: bytearray, at: int, end: int) -> Iterator[_Field]:
    """The length-delimited fields of a message."""
    for number, start, stop in _walk(content, at, end):
        if stop is not None:
            yield _Field(number, start, stop)


def _numbers(content: bytearray, at: int, end: int) -> Iterator[tuple[int, int]]:
    """The whole numbers of a message."""
    for number, value, stop in _walk(content, at, end):
        if stop is None:
            yield number, value


def _walk(content: bytearray, at: int, end: int) -> Iterator[tuple[int, int, int | None]]:
    """Number, start and end of each field with a length; number, value and None of each whole number."""
    while at < end:
        tag, at = varint(content, at)
        wire = tag & 7
        if wire == 2:
            length, at = varint(content, at)
            yield tag >> 3, at, at + length
            at += length
        elif wire == 0:
            value, at = varint(content, at)
            yield tag >> 3, value, None
        else:
            at += 8 if wire == 1 else 4
