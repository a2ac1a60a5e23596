"""What was computed of one state of the index, and is kept beside it until that state ends."""

from __future__ import annotations

import zlib
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from profiler.store import listing, schema

_NOT_COMPUTING = ("ui", "cli", "documents")  # rooms that show what the others compute
_MOST_BYTES = 8 << 20  # of one answer, compressed


def answer(connection: Connection, name: str, question: str) -> str | None:
    """See Store.answer."""
    table = schema.answer.c
    row = connection.execute(
        select(table.content).where(table.name == name, table.question == _full(connection, question))
    ).first()
    try:
        return None if row is None else zlib.decompress(row.content).decode()
    except (zlib.error, UnicodeDecodeError):  # damaged: it can be computed again
        return None


def keep_answer(connection: Connection, name: str, question: str, content: str, state: str) -> bool:
    """See Store.keep_answer; in a writing transaction."""
    packed = zlib.compress(content.encode(), 1)
    if listing.data_version(connection) != state or len(packed) > _MOST_BYTES:
        return False
    connection.execute(delete(schema.answer).where(schema.answer.c.name == name))
    row = {"name": name, "question": _full(connection, question), "content": packed}
    connection.execute(insert(schema.answer), [row])
    return True


def _full(connection: Connection, question: str) -> str:
    """The question with what else an answer depends on: the state of the index, and the program."""
    return f"{listing.data_version(connection)} {_program()} {question}"


@cache
def _program() -> str:
    """A digest of all modules that compute: another version of the program asks again."""
    package = Path(__file__).parent.parent
    digest = sha256(np.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in _NOT_COMPUTING:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
