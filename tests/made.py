"""Small runs and launches that tests make, and the databases that the index is tested on."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from profiler.bundles.run import IMPORT, Capture, ReportFile, Result, Run
from profiler.evidence.launch import Launch, Report, RuleResult, Session
from profiler.evidence.values import State, Value, pack_values
from profiler.store.index import Store

START = datetime(2025, 3, 1, 12, tzinfo=UTC)
DURATION = "gpu__time_duration.sum"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
ATTRIBUTES = {
    "device__attribute_display_name": Value(None, "", "NVIDIA Test 1"),
    "device__attribute_compute_capability_major": Value(9, ""),
    "device__attribute_compute_capability_minor": Value(0, ""),
}


def launch(
    name: str = "gemm",
    duration: float | None = 1000.0,
    *,
    ordinal: int = 0,
    nvtx: tuple[str, ...] = (),
    **more: Value,
) -> Launch:
    """One launch; no duration means that its counters failed."""
    values = {DURATION: Value(duration, "ns", None, State.FAILED if duration is None else State.PRESENT)}
    return Launch(
        function=name,
        demangled=f"void {name}<(int)128>(float*)",
        mangled=f"_Z{name}",
        grid=(64, 2, 1),
        block=(128, 1, 1),
        stream=7,
        nvtx=nvtx,
        ordinal=ordinal,
        values=pack_values(values | more | ATTRIBUTES),
        opcodes={"FFMA": 1024.0, "LDS": 12.0},
        rules=(
            RuleResult("Bound", "Bound", "SOL", "optimization", "Title", "Text", 12.5, "local", (WARPS,)),
        ),
    )


def report(*launches: Launch, session: Session | None = None, name: str = "v1.ncu-rep") -> Report:
    """A report of these launches; its sha256 is that of its name and content."""
    content = repr((name, session, [(one.function, dict(one.values)) for one in launches]))
    return Report(
        name,
        sha256(content.encode()).hexdigest(),
        len(content),
        "ncu-rep",
        session or Session("2025.3.1"),
        launches,
    )


def imported(
    version: str = "v1",
    *launches: Launch,
    family: str = "gemms",
    workload: str | None = None,
    minute: int = 0,
    session: Session | None = None,
) -> tuple[Run, Mapping[str, Report]]:
    """The run that importing such a report makes, and its report."""
    held = report(*(launches or (launch(),)), session=session, name=f"{version}-{minute}.ncu-rep")
    created = START + timedelta(minutes=minute)
    run = Run(
        run_id=f"{created:%Y%m%dT%H%M%S}-{family}-{version}-{held.sha256[:8]}",
        kind=IMPORT,
        created=created,
        provenance={"created_from": "session"},
        results=(Result(family, version, workload, captures=(Capture(held.sha256),)),),
        reports=(ReportFile(held.name, held.sha256, held.size_bytes, f"reports/{held.name}"),),
    )
    return run, {held.sha256: held}


def lasting(report: Path, before_ns: float, after_ns: float, copy: Path) -> Path:
    """A copy of a real report in which one launch took another time; its bytes name `before_ns` once."""
    content, old = report.read_bytes(), struct.pack("<d", before_ns)
    assert content.count(old) == 1
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content.replace(old, struct.pack("<d", after_ns)))
    return copy


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """The URL of an empty database on a PostgreSQL server."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield server.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def everything(store: Store) -> str:
    """Every answer of an index, as text: two indexes of the same data give the same."""
    launches = store.results(latest=False)
    names = store.metric_names()
    return "\n".join(
        repr(answer)
        for answer in (
            store.families(),
            store.runs(hidden=True),
            store.versions(),
            store.workloads(),
            names,
            launches,
            store.results(),
            [_launch_text(one) for one in store.load([info.result_id for info in launches])],
            store.series(names),
        )
    )


def _launch_text(one: Launch) -> tuple[object, ...]:
    return (one.function, one.demangled, one.grid, one.nvtx, dict(one.values), dict(one.opcodes), one.rules)
