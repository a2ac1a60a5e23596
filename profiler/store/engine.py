"""How the index's database is opened, so that one writer and many readers get along on both databases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

from profiler.errors import ProfilerError

_WRITE = "profiler_write"
_WRITER_LOCK = 0x70726F66  # any number, the same in every process: PostgreSQL's advisory lock for writers
_BUSY_MS = 120_000  # a writer waits this long for another one
_WAYS_OUT = {  # by a word of what the database says
    "locked": "another process is writing to it: try again when that is done",
    "not a database": "make it again: profiler index --rebuild",
    "malformed": "make it again: profiler index --rebuild",
    "unable to open": "check the folder, or name another place in PROFILER_DB",
    "readonly": "check the folder, or name another place in PROFILER_DB",
    "disk": "check the space on the disk, or name another place in PROFILER_DB",
    "connection": "check the server and PROFILER_DB",
}


def connect(url: str) -> Engine:
    """An engine for the index. Raises ProfilerError for a URL that no driver takes."""
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            if parsed.database:
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            engine = create_engine(parsed, connect_args={"timeout": _BUSY_MS / 1000})
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        if parsed.get_backend_name() == "postgresql":
            arguments = {"cursor_factory": _binary_cursor()}
            return create_engine(
                parsed, isolation_level="REPEATABLE READ", pool_pre_ping=True, connect_args=arguments
            )
    except (ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
        raise ProfilerError(f"the index's database cannot be used: {error} (PROFILER_DB)") from error
    raise ProfilerError(
        f"PROFILER_DB names {parsed.get_backend_name()}; the index is kept in SQLite or PostgreSQL"
    )


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent state of the index, also while another process writes."""
    with _said_plainly(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction, all or nothing; writers wait for each other."""
    with _said_plainly(engine), engine.connect() as plain:
        # Read committed: after waiting for the lock a writer must see what the one before it wrote.
        level = {"isolation_level": "READ COMMITTED"} if engine.dialect.name == "postgresql" else {}
        connection = plain.execution_options(**{_WRITE: True}, **level)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})"))
            yield connection


def _binary_cursor() -> type[Any]:
    """A cursor that fetches bytes as they are: in PostgreSQL's text format they come as hexadecimal."""
    import psycopg

    class BinaryCursor(psycopg.Cursor[Any]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.format = psycopg.pq.Format.BINARY

    return BinaryCursor


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-65536", "mmap_size=1073741824"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer that begins as a reader cannot wait for another one: "database is locked" at once.
    write = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@contextlib.contextmanager
def _said_plainly(engine: Engine) -> Iterator[None]:
    """Say what is wrong with the database in one line; a fault of our own statements keeps its traceback."""
    try:
        yield
    except DatabaseError as error:
        said = " ".join(str(error.orig).split())
        way_out = next((way for word, way in _WAYS_OUT.items() if word in said.lower()), None)
        if way_out is None:
            raise
        where = engine.url.render_as_string(hide_password=True)
        raise ProfilerError(f"the index {where} cannot be used: {said}; {way_out}") from error
