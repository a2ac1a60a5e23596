"""Opens the index's database, SQLite or PostgreSQL, for one writer and many readers at the same time.

To add a database that SQLAlchemy knows: a branch of `connect` (isolation, settings of a connection), one of
`writing` (how writers wait for each other) and its errors in `_WAYS_OUT`; its INSERT that ignores rows
which exist, in `writer`; where it writes a type or a partial index otherwise, `schema`. `_select_tails` in
`payload_columns` is faster for PostgreSQL only; `run_rows` limits numbers and text to what both databases
take; `sync` takes an index that is not a file for one that several data folders may share.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from profiler.errors import ProfilerError, UnknownName
from profiler.store.rows import DamagedIndex, IndexNotWritable

_WRITE = "profiler_write"
_READ_ONLY = "profiler_read_only"  # of an engine that must not write: the reason in words
_WRITER_LOCK = 0x70726F66  # any number, the same in every process: PostgreSQL's advisory lock for writers
_BUSY_MS = 120_000  # how long a writer waits for another one
_RETRY_S = 0.005  # between two tries where SQLite does not wait by itself
_UNDEFINED = ("42P01", "42703")  # PostgreSQL error codes: undefined table, undefined column
_NOT_PERMITTED = ("25006", "42501")  # read-only transaction, insufficient privilege
_ELSEWHERE = "keep one at another place, such as PROFILER_DB=sqlite:////tmp/index.db"
_NO_SPACE = "53100"  # disk full
_REBUILD = "make it again: profiler data index --rebuild"
_SERVER = "check the server and PROFILER_DB"
_CHECK_FOLDER = f"check the folder, or {_ELSEWHERE}"
_CHECK_SPACE = f"check the space on the disk, or {_ELSEWHERE}"
_NOT_PERMITTED_WAY_OUT = "its user has to be allowed to make and change tables there (PROFILER_DB)"
_NOT_WRITABLE = (_NOT_PERMITTED_WAY_OUT, _CHECK_FOLDER, _CHECK_SPACE)
_WAYS_OUT = {  # what to do, by words of the database's message
    "locked": "another process is writing to it: try again when that is done",
    "not a database": _REBUILD,
    "malformed": _REBUILD,
    "unable to open": _CHECK_FOLDER,
    "readonly": _CHECK_FOLDER,
    "disk": _CHECK_SPACE,
    "connection": _SERVER,
    "no such table": _REBUILD,
    "no such column": _REBUILD,
}


def connect(url: str | Path, *, unwritable: str = "") -> Engine:
    """An engine for the index; a path is a SQLite file. Raises ProfilerError for a URL that no driver takes.

    A SQLite file that may not be written is opened for reading only, as is any with `unwritable`: the
    sentence that says to writers why.
    """
    try:
        parsed = URL.create("sqlite", database=str(url)) if isinstance(url, Path) else make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            path = Path(parsed.database or ":memory:")
            if unwritable:
                return _read_only(parsed, path, unwritable)
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
                reason = f"the index {path} is to be changed, and read-only: {_ELSEWHERE}"
                return _read_only(parsed, path, reason)
            # A database in memory is of one connection unless they share it, and ends with the last one.
            pool = QueuePool if "mode" in parsed.query else None
            engine = create_engine(parsed, poolclass=pool, connect_args={"timeout": _BUSY_MS / 1000})
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        if parsed.get_backend_name() == "postgresql":
            arguments = {"cursor_factory": _binary_cursor()}
            return create_engine(
                parsed, isolation_level="REPEATABLE READ", pool_pre_ping=True, connect_args=arguments
            )
    except OSError as error:
        raise IndexNotWritable(
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
    with _explain_failures(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction, all or nothing; writers wait for each other."""
    if reason := engine.get_execution_options().get(_READ_ONLY):
        raise IndexNotWritable(reason)
    with _explain_failures(engine), engine.connect() as plain:
        # Read committed: after waiting for the lock a writer must see what the one before it wrote.
        level = {"isolation_level": "READ COMMITTED"} if engine.dialect.name == "postgresql" else {}
        connection = plain.execution_options(**{_WRITE: True}, **level)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})"))
            yield connection


@contextlib.contextmanager
def writing_if_free(engine: Engine) -> Iterator[Connection | None]:
    """As `writing`; None where that cannot begin at once: for what can be left out."""
    if engine.get_execution_options().get(_READ_ONLY):
        yield None
        return
    with contextlib.ExitStack() as stack:
        connection = None
        with contextlib.suppress(DatabaseError, InterfaceError):
            plain = stack.enter_context(engine.connect())
            if engine.dialect.name == "postgresql":
                free = plain.execution_options(isolation_level="READ COMMITTED")
                stack.enter_context(free.begin())
                if free.scalar(text(f"SELECT pg_try_advisory_xact_lock({_WRITER_LOCK})")):
                    connection = free
            else:
                driver: Any = plain.connection.dbapi_connection
                driver.execute("PRAGMA busy_timeout=0")
                stack.callback(driver.execute, f"PRAGMA busy_timeout={_BUSY_MS}")
                stack.enter_context(plain.execution_options(**{_WRITE: True}).begin())
                connection = plain
        yield connection


def count_anew(connection: Connection) -> None:
    """Refresh PostgreSQL's statistics, by which it plans: by itself it does so once a minute at most."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def _binary_cursor() -> type[Any]:
    """A cursor that fetches bytes as they are: the text format sends hexadecimal, twice as much."""
    import psycopg

    class BinaryCursor(psycopg.Cursor[Any]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.format = psycopg.pq.Format.BINARY

    return BinaryCursor


def _read_only(url: URL, path: Path, reason: str) -> Engine:
    """An engine that writes nothing, not even the -wal and -shm files that SQLite's readers share."""
    if not path.exists():
        raise IndexNotWritable(f"there is no index in {path.parent}, which is read-only: {_ELSEWHERE}")

    def opened() -> sqlite3.Connection:
        # Without a log nobody is writing, and "immutable" keeps SQLite from making the files itself.
        log = path.with_name(f"{path.name}-wal")
        how = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
        connection.isolation_level = None
        return connection

    # A new connection every time: SQLite never looks for changes in a file opened as immutable.
    engine = create_engine(url, creator=opened, poolclass=NullPool, execution_options={_READ_ONLY: reason})
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    # The page size of PostgreSQL. SQLite ignores this where the file exists already.
    cursor.execute("PRAGMA page_size=8192")
    _log_ahead(cursor)
    for pragma in ("synchronous=NORMAL", "cache_size=-65536", "mmap_size=1073741824"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _log_ahead(cursor: Any) -> None:
    """Turn on write-ahead logging, so that readers do not wait for a writer.

    SQLite ignores its timeout for this statement: where another process creates the index at the same moment
    it fails at once with "database is locked". Seen on SQLite 3.40, in about one of ten attempts in which
    four processes opened a new file together.
    """
    until = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_RETRY_S)


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that begins as a reader and then writes cannot wait for another writer: it fails at once
    # with "database is locked".
    write = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@contextlib.contextmanager
def _explain_failures(engine: Engine) -> Iterator[None]:
    """Turn a failure of the database into one line with a way out; our own faulty SQL keeps its traceback."""
    try:
        yield
    except UnicodeEncodeError as error:  # a name made from a file name whose bytes are no text
        escaped = error.object.encode(errors="backslashreplace").decode()
        raise UnknownName(f"{escaped} is no text (UTF-8), and nothing in the index is called so") from error
    except (DatabaseError, InterfaceError) as error:
        message = " ".join(str(error.orig).split())
        way_out = next(
            (way_out_for_word for word, way_out_for_word in _WAYS_OUT.items() if word in message.lower()),
            None,
        )
        if way_out is None and engine.dialect.name == "postgresql":
            if getattr(error.orig, "sqlstate", None) == _NO_SPACE:
                way_out = _CHECK_SPACE
            elif isinstance(error, OperationalError | InterfaceError):  # too many different messages to list
                way_out = _SERVER
            elif getattr(error.orig, "sqlstate", None) in _UNDEFINED:
                way_out = _REBUILD
            elif getattr(error.orig, "sqlstate", None) in _NOT_PERMITTED:
                way_out = _NOT_PERMITTED_WAY_OUT
        if way_out is None:
            raise
        where = engine.url.render_as_string(hide_password=True)
        kind = ProfilerError
        if way_out in (_REBUILD, *_NOT_WRITABLE):
            kind = DamagedIndex if way_out == _REBUILD else IndexNotWritable
        raise kind(f"the index {where} cannot be used: {message}; {way_out}") from error
