"""The tables of the index, the same on SQLite and PostgreSQL: narrow rows, packed payloads, partial indexes.

`bench/store.py` measures this layout against one row per value.
"""

from __future__ import annotations

import functools
from hashlib import blake2b
from typing import Any, cast

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    create_mock_engine,
    event,
    text,
)

SCHEMA = "11"  # an index with another number is emptied and filled again from the bundles

metadata = MetaData()

VALUED = ("launch", "facts")  # the kinds of results that have metric values

# In SQLite an INTEGER PRIMARY KEY is the row id itself, which saves a second B-tree per table.
# Source: SQLite documentation, "ROWIDs and the INTEGER PRIMARY KEY".
Key = BigInteger().with_variant(Integer, "sqlite")

# With this collation both databases, like Python, order text by code point, whatever the locale.
Name = Text().with_variant(Text(collation="C"), "postgresql")


def key(*parts: str | int) -> int:
    """A row's id, made from what the row is: links survive a rebuild, and inserts need no look-up.

    It has 53 bits, which JavaScript numbers keep exactly; among a million rows two collide with a chance of 1
    in 18,000.
    """
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 11


def version_key(family: str, version: str) -> int:
    """The id of a version."""
    return key("version", family, version)


meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

run = Table(
    "run",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("run_id", Name, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("hidden", Boolean, nullable=False),
    Column("labels", Text, nullable=False),  # the decisions that are applied, as JSON
    Column("gpu", Name),  # NULL where nobody said, or there are several
    Column("compute_capability", Text),  # as gpu
    Column("driver", Text),
    Column("ncu_version", Text),
    Column("cuda", Text),
    Column("host", Text),
    Column("command_line", Text),
    Column("clock_control", Text),
    Column("cache_control", Text),
    Column("launches", Integer, nullable=False),
    Column("evidence", Name, nullable=False),  # comma list
    Column("provenance", Text, nullable=False),  # JSON
    Column("gpus", Text, nullable=False),  # JSON: the compute capability, or null, of each GPU by its name
    Index("run_created", "created", "run_id"),
)

report = Table(
    "report",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("run", Key, nullable=False, index=True),
    Column("position", SmallInteger, nullable=False),
    Column("sha256", Text, nullable=False, index=True),
    Column("name", Name, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("gpu", Name),
    Column("compute_capability", Text),
    Column("session", Text, nullable=False),  # JSON
)

version = Table(
    "version",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("family", Name, nullable=False),
    Column("name", Name, nullable=False),
    UniqueConstraint("family", "name"),
)

cell = Table(  # one row for each version, workload and GPU that a run covers
    "cell",
    metadata,
    Column("run", Key, primary_key=True, autoincrement=False),
    Column("version", Key, primary_key=True, autoincrement=False),
    Column("workload", Name, primary_key=True),  # "" where nobody said
    Column("created", BigInteger, nullable=False),  # of the run, as the next two
    Column("hidden", Boolean, nullable=False),
    Column("gpu", Name, primary_key=True),  # "" where nobody said
    Column("counts", SmallInteger, nullable=False),  # 1 for one cell of the run and version, 0 for its others
    Column("describes", SmallInteger, nullable=False),  # 1 for one cell of the run, version and workload
    Column("about", Text, nullable=False),  # JSON: problem, source_sha256, flags, check
    Index("cell_listing", "version", "workload", "gpu", "hidden", "created", "counts"),
)

config = Table(  # the identity of a series, without version and metric
    "config",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("family", Name, nullable=False),
    Column("workload", Name, nullable=False),  # "" where nobody said
    Column("gpu", Name, nullable=False),  # "" where the report does not say
    Column("evidence", Name, nullable=False),
    Column("mode", Name, nullable=False),
    Column("part", Name, nullable=False),
    Column("base_name", Name, nullable=False),
    Index("config_family", "family", "workload", "gpu"),
)

kernel = Table(
    "kernel",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("function", Text, nullable=False),
    Column("demangled", Text, nullable=False),
    Column("mangled", Text, nullable=False),
)

metric_set = Table(
    "metric_set",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("names", Text, nullable=False),  # JSON, as units
    Column("units", Text, nullable=False),
    Column("kinds", Text, nullable=False),
)

result = Table(
    "result",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("run", Key, nullable=False, index=True),
    Column("config", Key, nullable=False),
    Column("version", Key, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("is_latest", Boolean, nullable=False),
    Column("position", Integer, nullable=False),  # of the row in its run
    Column("ordinal", Integer, nullable=False),  # of the launch in its report
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text),
    Column("report", Key),
    Column("kernel", Key),
    Column("grid", Text),
    Column("block", Text),
    Column("duration", Float(53)),
    Column("duration_unit", Text, nullable=False),
    Column("duration_state", SmallInteger, nullable=False),
    Column("median_ns", Float(53)),
    Column("samples", Integer, nullable=False),
    Column("metric_set", Key),
    Index("result_config", "config", "kind", "created"),
)
# Pages ask for the newest results, so those have indexes of their own. SQLite uses a partial index only where
# the query writes its condition the same way, and skips the table only if the index has that column, too.
# PostgreSQL's conditions are set when tables are created there: as arguments of an Index they would load its
# dialect and all its drivers, 100 ms that SQLite does not need.
_POSTGRESQL_WHERE: dict[Index, ColumnElement[Any] | TextClause] = {}
for _name, _columns in (
    ("result_latest", ("config", "version", "created", "run", "duration", "duration_state", "median_ns")),
    ("result_latest_by_version", ("version", "config", "kind", "created", "run")),
):
    _index = Index(
        _name,
        *(result.c[column] for column in (*_columns, "is_latest")),
        sqlite_where=text("is_latest = 1"),
    )
    _POSTGRESQL_WHERE[_index] = result.c.is_latest
UNDONE = text("result.status <> 'done'")  # the few results that say whether a version is wrong
TIMED = {kind: text(f"result.kind = '{kind}'") for kind in ("latency", "noise")}  # as the indexes write it
for _kind in TIMED:
    _index = Index(
        f"result_{_kind}",
        *(result.c[column] for column in ("version", "config", "created")),
        sqlite_where=text(f"kind = '{_kind}'"),
    )
    _POSTGRESQL_WHERE[_index] = text(f"kind = '{_kind}'")
_index = Index("result_undone", result.c.version, sqlite_where=text("status <> 'done'"))
_POSTGRESQL_WHERE[_index] = UNDONE


@event.listens_for(metadata, "before_create")
def _set_postgresql_conditions(_: MetaData, connection: Connection, **__: Any) -> None:
    if connection.dialect.name == "postgresql":
        for index, condition in _POSTGRESQL_WHERE.items():
            index.dialect_options["postgresql"]["where"] = condition


payload = Table(  # a slot and a state for each metric of the metric set, and all that pages rarely need
    "payload",
    metadata,
    # BigInteger, not Key: it must not become the row id, so that rows stay in the order of insertion.
    Column("result", BigInteger, primary_key=True, autoincrement=False),
    Column("slots", LargeBinary, nullable=False),  # 8 bytes each
    Column("states", LargeBinary, nullable=False),  # 1 byte each; empty: all present
    Column("texts", Text),  # JSON {position: text}
    Column("extras", Text),  # JSON: stream, nvtx, opcodes, rules
    Column("samples", LargeBinary),  # float32 ns
    Column("rounds", LargeBinary),  # uint16
    Column("clocks", LargeBinary),  # float32 MHz
    Column("throttled", LargeBinary),  # uint32 positions
    Column("processes", LargeBinary),  # uint16; empty: the run does not say
)

# The next two tables are derived from payloads, for metrics that are asked for often. They may be emptied at
# any time.

series_head = Table(  # the points of a prepared series
    "series_head",
    metadata,
    Column("config", Key, primary_key=True, autoincrement=False),
    Column("names", BigInteger, nullable=False),  # key() of the metrics that it is prepared for
    Column("points", Integer, nullable=False),
    Column("until", BigInteger, nullable=False),  # when its newest result was created
    Column("head", LargeBinary, nullable=False),
)

series_chunk = Table(  # the values of a BAND of names at a CHUNK of points, for the names that occur
    "series_chunk",
    metadata,
    Column("config", Key, primary_key=True, autoincrement=False),
    Column("band", SmallInteger, primary_key=True, autoincrement=False),  # number of the BAND of names
    Column("segment", SmallInteger, primary_key=True, autoincrement=False),  # number of the CHUNK of points
    Column("slots", LargeBinary, nullable=False),
    Column("marks", LargeBinary),  # NULL: every column has one form
    Column("forms", Text, nullable=False),  # JSON: each name's place in the list of names, and its forms
)
CHUNK = 500  # points
BAND = 8  # names: fetching a row costs Python more than its 32 KB, even where one of the 8 is asked for

answer = Table(  # what was computed of all rows: the newest answer of each name; may be emptied at any time
    "answer",
    metadata,
    Column("name", Text, primary_key=True),
    Column("question", Text, nullable=False),  # the state of the index, and all else that it depends on
    Column("content", LargeBinary, nullable=False),
)

# EXTERNAL: PostgreSQL does not compress these columns, which would cost time at every read.
_storage = cast(Any, DDL)  # untyped in SQLAlchemy
for _table, _column in (
    (series_head, "head"),
    (payload, "slots"),
    (payload, "samples"),
    (series_chunk, "slots"),
):
    event.listen(
        _table,
        "after_create",
        _storage(f"ALTER TABLE {_table.name} ALTER COLUMN {_column} SET STORAGE EXTERNAL").execute_if(
            dialect="postgresql"
        ),
    )


def create_tables(connection: Connection) -> None:
    """Create all tables in a database that has none of them."""
    for statement in _statements(f"{connection.dialect.name}+{connection.dialect.driver}"):
        connection.exec_driver_sql(statement)


@functools.cache
def _statements(driver: str) -> tuple[str, ...]:
    """What creates all tables. Kept, since to put it into words takes longer than to run it."""
    statements: list[str] = []

    def keep(statement: Any, *_: Any, **__: Any) -> None:
        statements.append(str(statement.compile(dialect=recorder.dialect)))

    recorder = create_mock_engine(f"{driver}://", keep)
    metadata.create_all(recorder, checkfirst=False)
    return tuple(statements)
