"""A small lineage that tests make: a catalogue with its sources, and the run that dissecting it gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, Attachment, Facts, Result, Run, Samples
from profiler.evidence.values import Evidence, State, Value

FAMILY = "mine"
CATALOG = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
claim_source = "an earlier notebook"
claim_gpu = "NVIDIA L4"
[[version]]
id = "zero"
technique = "the plain <one>"
file = "k.cu"
claims = [{ fact = "latency", value = 1000, unit = "ns", workload = "big" }]
[[version]]
id = "bad"
parent = "zero"
technique = "two warps share a row"
state = "rejected"
reason = "wrong: a race on the row"
caught_by = ["race"]
file = "k.cu"
flags = ["-DBUG=BUG_ROW"]
[[version]]
id = "alpha"
parent = "bad"
technique = "a warp a row"
file = "k.cu"
flags = ["-DTILE=64"]
[[version]]
id = "later"
parent = "alpha"
technique = "not yet"
state = "planned"
reason = "needs a GPU"
[[version]]
id = "theirs"
technique = "somebody else's"
state = "baseline"
callable = "profiler.catalog.torch_backends:sdpa"
"""
SOURCE = """// a kernel
#ifndef TILE
#define TILE 32
#endif
#if BUG == BUG_ROW
share();
#else
own();
#endif
x[lane] = TILE;
y[lane] = 1;
"""
CREATED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def static(registers: int, arch: str = "sm_80", **opcodes: float) -> Facts:
    """What a compiler says of one function."""
    values = {
        "static__registers": Value(registers, "register/thread"),
        "static__spill_bytes": Value(0, "byte"),
        "static__occupancy_pct": Value(50.0, "%"),
        "static__limiter": Value(None, text="registers"),
        "static__over_budget": Value(None, text="nothing"),
    }
    return Facts(Evidence.STATIC, "main", values, target=arch, opcodes=opcodes or {"HMMA": 3.0, "IMAD": 1.0})


def modelled(conflicts: int | None, error: float | None) -> Facts:
    """What a run on the CPU says; None where it did not come so far."""
    failed = Value(None, state=State.FAILED)
    values = {
        "modelled__bank_conflicts": failed if conflicts is None else Value(conflicts),
        "modelled__max_abs_error": failed if error is None else Value(error),
    }
    return Facts(Evidence.MODELLED, "total", values, mode="CPU model")


def results(*, measured: bool = False, alpha: str = "done") -> tuple[Result, ...]:
    """The cells of every version with a source."""
    found = []
    for name, registers, conflicts, error, status, flags in (
        ("zero", 40, 0, 1e-4, "done", ()),
        ("bad", 42, 8, 0.5, "wrong", ("-DBUG=BUG_ROW",)),
        ("alpha", 64, 4000, 2e-4, alpha, ("-DTILE=64",)),
    ):
        about = Result(FAMILY, name, flags=flags, source_sha256=name)
        found += [
            Result(
                **{**vars(about), "workload": f"head dim {size}", "facts": (static(registers + at, arch),)}
            )
            for size in (64, 128)
            for at, arch in enumerate(("sm_80", "sm_90a"))
        ]
        reason = None if status == "done" else f"race at k.cu:6 in {name}"
        check = {
            "state": "rejected" if name == "bad" else "good",
            "passed": status == "done",
            "as_expected": True,
            "seeds": [0, 1],
            "max_abs_error": error,
        }
        checked = {"workload": "1x1x8x64", "status": status, "reason": reason, "check": check}
        found.append(Result(**{**vars(about), **checked, "facts": (modelled(conflicts, error),)}))
        if measured:
            samples = (Samples("events", (registers * 10.0, registers * 10.0), (0, 1)),)
            found.append(Result(**{**vars(about), "workload": "1x1x8x64", "samples": samples}))
    return tuple(found)


def dissected(
    folder: Path,
    made: tuple[Result, ...] | None = None,
    *,
    created: datetime = CREATED,
    catalog: str | None = CATALOG,
    gpu: str | None = None,
    source: str | None = SOURCE,
    lines: bool = True,
) -> Run:
    """A sealed run of the lineage in a data folder; without its source, or its line tables, where asked."""
    tables = {
        "columns": ["file", "line", "kind", "requests", "wavefronts", "ideal"],
        "workloads": {"1x1x8x64": [["k.cu", 10, "store", 10, 4010, 10], ["k.cu", 11, "store", 10, 10, 10]]},
    }
    clean = {**tables, "workloads": {"1x1x8x64": [["k.cu", 10, "store", 10, 10, 10]]}}
    contents: Mapping[str, tuple[str, bytes]] = {
        **({"kernels/k.cu": ("source", source.encode())} if source else {}),
        **({"lines/alpha.json": ("lines", json.dumps(tables).encode())} if lines else {}),
        **({"lines/zero.json": ("lines", json.dumps(clean).encode())} if lines else {}),
        **({"kernels/catalog.toml": ("catalog", catalog.encode())} if catalog else {}),
    }
    files = tuple(
        Attachment(kind, path.split("/", 1)[1], sha256(content).hexdigest(), len(content), path)
        for path, (kind, content) in contents.items()
    )
    provenance = {"created_from": "clock", **({"gpu": gpu} if gpu else {})}
    run_id = bundle.imported_run_id(created, FAMILY, "dissect", sha256(repr(contents).encode()).hexdigest())
    run = Run(run_id, COLLECT, created, provenance, results() if made is None else made, files=files)
    scratch = folder / "scratch"
    sources = {}
    for path, (_, content) in contents.items():
        sources[path] = scratch / path
        sources[path].parent.mkdir(parents=True, exist_ok=True)
        sources[path].write_bytes(content)
    root = location.open_root(str(folder))
    with bundle.importing(root):
        bundle.seal(root, run, sources)
    return run


def timed_twice(folder: Path, gpu: str, workload: str = "1x1x8x64") -> list[Run]:
    """Two measured collections of the lineage, a day apart; in the second a torch backend was timed too."""
    first = results(measured=True)
    theirs = Result(FAMILY, "theirs", workload, samples=(Samples("events", (90.0, 90.0), (0, 1)),))
    return [
        dissected(folder, made, created=CREATED + timedelta(days=day), gpu=gpu)
        for day, made in enumerate((first, (*first, theirs)))
    ]
