"""How the index is laid out: narrow tables, packed payloads, partial covering indexes, on both databases.

The layout and what it saves against a row per value are measured in `bench/store.py`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, cast

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

SCHEMA = "7"  # another number in an index means: rebuild it from the bundles

metadata = MetaData()

VALUED = ("launch", "facts")  # the kinds of results that hold values of metrics

# INTEGER PRIMARY KEY is SQLite's row id: no second tree to look a row up in.
Key = BigInteger().with_variant(Integer, "sqlite")

# Both databases (and Python) order such text by code point, whatever the machine's language is.
Name = Text().with_variant(Text(collation="C"), "postgresql")


def key(*parts: str | int) -> int:
    """A row's id from what the row is, so that links survive a rebuild and inserts need no look-up.

    53 bits: a browser keeps such a number whole, and a million rows collide with a chance of 1 in 18,000.
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
    Column("gpu", Name),
    Column("compute_capability", Text),
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

cell = Table(  # which versions and workloads a run covers
    "cell",
    metadata,
    Column("run", Key, primary_key=True, autoincrement=False),
    Column("version", Key, primary_key=True, autoincrement=False),
    Column("workload", Name, primary_key=True),  # "" where nobody said
    Column("created", BigInteger, nullable=False),  # of the run, as the next two
    Column("hidden", Boolean, nullable=False),
    Column("gpu", Name),
    Column("counts", SmallInteger, nullable=False),  # 1 for one cell of the run and version, 0 for its others
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
# The newest state of everything is what pages ask for. SQLite takes a partial index only for a condition
# written the same way, and reads nothing but the index only if the condition's column is in it.
for _name, _columns in (
    ("result_latest", ("config", "version", "created", "run", "duration", "duration_state", "median_ns")),
    ("result_latest_by_version", ("version", "config", "kind", "created", "run")),
):
    Index(
        _name,
        *(result.c[column] for column in (*_columns, "is_latest")),
        sqlite_where=text("is_latest = 1"),
        postgresql_where=result.c.is_latest,
    )
UNDONE = text("result.status <> 'done'")  # the few results that tell whether a version is right
TIMED = {kind: text(f"result.kind = '{kind}'") for kind in ("latency", "noise")}  # for these indexes
for _kind in TIMED:
    Index(
        f"result_{_kind}",
        *(result.c[column] for column in ("version", "config", "created")),
        sqlite_where=text(f"kind = '{_kind}'"),
        postgresql_where=text(f"kind = '{_kind}'"),
    )
Index("result_undone", result.c.version, sqlite_where=text("status <> 'done'"), postgresql_where=UNDONE)

payload = Table(  # one slot and one state a position of the metric set; everything a page rarely asks for
    "payload",
    metadata,
    Column(
        "result", BigInteger, primary_key=True, autoincrement=False
    ),  # not the row id: rows lie as they came
    Column("slots", LargeBinary, nullable=False),  # 8 bytes each
    Column("states", LargeBinary, nullable=False),  # a byte each; empty: all present
    Column("texts", Text),  # JSON {position: text}
    Column("extras", Text),  # JSON: stream, nvtx, opcodes, rules
    Column("samples", LargeBinary),  # float32 ns
    Column("rounds", LargeBinary),  # uint16
    Column("clocks", LargeBinary),  # float32 MHz
    Column("throttled", LargeBinary),  # uint32 positions
)

# What follows is derived from payloads, for the metrics that are asked for often: it may be deleted any time.

series_head = Table(  # the points of a prepared series
    "series_head",
    metadata,
    Column("config", Key, primary_key=True, autoincrement=False),
    Column("names", BigInteger, nullable=False),  # key of the list of names that it is prepared for
    Column("points", Integer, nullable=False),
    Column("until", BigInteger, nullable=False),  # the newest result at that time; later ones are not in it
    Column("head", LargeBinary, nullable=False),
)

series_chunk = Table(  # the values of a few names at some of these points, for each name that one carries
    "series_chunk",
    metadata,
    Column("config", Key, primary_key=True, autoincrement=False),
    Column("band", SmallInteger, primary_key=True, autoincrement=False),  # which BAND of the list of names
    Column("segment", SmallInteger, primary_key=True, autoincrement=False),  # which CHUNK of the points
    Column("slots", LargeBinary, nullable=False),
    Column("marks", LargeBinary),  # none: all are of the first form
    Column("forms", Text, nullable=False),  # JSON: place of each name in the list, and its forms
)
CHUNK = 500  # points
BAND = 8  # names: to Python a row costs more than its 32 KB, and a page that asks for one name reads eight

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
