"""How the index's database is opened, so that one writer and many readers get along on both databases."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from profiler.errors import ProfilerError, UnknownName
from profiler.store.rows import DamagedIndex

_WRITE = "profiler_write"
_READ_ONLY = "profiler_read_only"
_WRITER_LOCK = 0x70726F66  # any number, the same in every process: PostgreSQL's advisory lock for writers
_BUSY_MS = 120_000  # a writer waits this long for another one
_AGAIN_S = 0.005  # and looks again after this long where SQLite does not wait by itself
_UNDEFINED = ("42P01", "42703")  # PostgreSQL: no such table, no such column
_MAY_NOT = ("25006", "42501")  # read-only, no permission
_ELSEWHERE = "keep one at another place, such as PROFILER_DB=sqlite:////tmp/index.db"
_REBUILD = "make it again: profiler index --rebuild"
_SERVER = "check the server and PROFILER_DB"
_WAYS_OUT = {  # by a word of what the database says
    "locked": "another process is writing to it: try again when that is done",
    "not a database": _REBUILD,
    "malformed": _REBUILD,
    "unable to open": f"check the folder, or {_ELSEWHERE}",
    "readonly": f"check the folder, or {_ELSEWHERE}",
    "disk": f"check the space on the disk, or {_ELSEWHERE}",
    "connection": _SERVER,
    "no such table": _REBUILD,
    "no such column": _REBUILD,
}


def connect(url: str | Path) -> Engine:
    """An engine for the index; a path is a SQLite file. Raises ProfilerError for a URL that no driver takes.

    A SQLite file that may not be written is opened for reading only.
    """
    try:
        parsed = URL.create("sqlite", database=str(url)) if isinstance(url, Path) else make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            path = Path(parsed.database or ":memory:")
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
                return _read_only(parsed, path)
            engine = create_engine(parsed, connect_args={"timeout": _BUSY_MS / 1000})
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        if parsed.get_backend_name() == "postgresql":
            arguments = {"cursor_factory": _binary_cursor()}
            return create_engine(
                parsed, isolation_level="REPEATABLE READ", pool_pre_ping=True, connect_args=arguments
            )
    except OSError as error:
        raise ProfilerError(
            f"no index at {url}: {error.strerror or error}; check PROFILER_DATA, or {_ELSEWHERE}"
        ) from error
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise ProfilerError(
            f"the index's database cannot be used: {error} (PROFILER_DB; a file is written as "
            "sqlite:////tmp/index.db)"
        ) from error
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
    if engine.get_execution_options().get(_READ_ONLY):
        raise ProfilerError(f"the index {engine.url.database} is to be changed, and read-only: {_ELSEWHERE}")
    with _said_plainly(engine), engine.connect() as plain:
        # Read committed: after waiting for the lock a writer must see what the one before it wrote.
        level = {"isolation_level": "READ COMMITTED"} if engine.dialect.name == "postgresql" else {}
        connection = plain.execution_options(**{_WRITE: True}, **level)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})"))
            yield connection


def count_anew(connection: Connection) -> None:
    """Let PostgreSQL plan by what is there now: by itself it counts its rows once a minute at most."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def _binary_cursor() -> type[Any]:
    """A cursor that fetches bytes as they are: in PostgreSQL's text format they come as hexadecimal."""
    import psycopg

    class BinaryCursor(psycopg.Cursor[Any]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.format = psycopg.pq.Format.BINARY

    return BinaryCursor


def _read_only(url: URL, path: Path) -> Engine:
    """An engine that writes nothing, not even the files in which SQLite's readers and writers meet."""
    if not path.exists():
        raise ProfilerError(f"there is no index in {path.parent}, which is read-only: {_ELSEWHERE}")

    def opened() -> sqlite3.Connection:
        # Where nobody has it open these files are not there, and SQLite would make them.
        log = path.with_name(f"{path.name}-wal")
        how = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
        connection.isolation_level = None
        return connection

    # Opened anew every time: what is immutable to SQLite would never be looked at again.
    engine = create_engine(url, creator=opened, poolclass=NullPool, execution_options={_READ_ONLY: True})
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    # Pages of the size of PostgreSQL's: ignored where the file is there.
    cursor.execute("PRAGMA page_size=8192")
    _log_ahead(cursor)
    for pragma in ("synchronous=NORMAL", "cache_size=-65536", "mmap_size=1073741824"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _log_ahead(cursor: Any) -> None:
    """Have writers write to a log of their own; where several processes make the index, whoever is first.

    SQLite does not wait for the others here, whatever its timeout: "database is locked" at once.
    Seen on SQLite 3.40 where four processes open a new file together, in about one such meeting of ten.
    """
    until = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_AGAIN_S)


def _begin_sqlite(connection: Connection) -> None:
    # A writer that begins as a reader cannot wait for another one: "database is locked" at once.
    write = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@contextlib.contextmanager
def _said_plainly(engine: Engine) -> Iterator[None]:
    """Say what is wrong with the database in one line; a fault of our own statements keeps its traceback."""
    try:
        yield
    except UnicodeEncodeError as error:  # a file's name may be so, and nothing here is called by one
        shown = error.object.encode(errors="backslashreplace").decode()
        raise UnknownName(f"{shown} is no text (UTF-8), and nothing in the index is called so") from error
    except (DatabaseError, InterfaceError) as error:
        said = " ".join(str(error.orig).split())
        way_out = next((way for word, way in _WAYS_OUT.items() if word in said.lower()), None)
        if way_out is None and engine.dialect.name == "postgresql":
            if isinstance(error, OperationalError | InterfaceError):  # each failure has words of its own
                way_out = _SERVER
            elif getattr(error.orig, "sqlstate", None) in _UNDEFINED:
                way_out = _REBUILD
            elif getattr(error.orig, "sqlstate", None) in _MAY_NOT:
                way_out = "its user has to be allowed to make and change tables there (PROFILER_DB)"
        if way_out is None:
            raise
        where = engine.url.render_as_string(hide_password=True)
        kind = DamagedIndex if way_out == _REBUILD else ProfilerError
        raise kind(f"the index {where} cannot be used: {said}; {way_out}") from error
