"""The commands whose JSON is kept: on what a clone ships, and on public reports where they are at hand."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from profiler.cli import main

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
FILES = Path(__file__).parent
REPORTS = ROOT.parent / "shared" / "reports"
DIGESTS = FILES / "public-reports.sha256"

BEFORE = "20250414T200414-example-gemm-ee5ce738-af04d546"
AFTER = "20250416T160138-example-gemm-17f278cb-f12e32f8"

SHIPPED: dict[str, tuple[str, ...]] = {
    "baseline": ("decide", "baseline", "list"),
    "compare-code": ("compare", "v2d_b", "v2d_c"),
    "compare-many": ("compare", "v2d_a", "v2d_b", "v2d_c"),
    "compare-runs": ("compare", BEFORE, AFTER),
    "explain-code": ("explain", "v2d_b", "v2d_c"),
    "explain-runs": ("explain", BEFORE, AFTER),
    "gate-family": ("gate", "attention"),
    "gate-runs": ("gate", AFTER, "--baseline", BEFORE),
    "history": ("trend", "--steps", "gpu__time_duration.sum"),
    "insights-code": ("insights", "v2d_c"),
    "insights-run": ("insights", AFTER),
    "metrics": ("list", "metrics"),
    "regressions": ("regressions",),
    "report": ("report", "v2d_b", "v2d_c"),
    "roofline": ("roofline", AFTER),
    "runs": ("list", "runs"),
    "sass-aligned": ("sass", "v2d_b", "v2d_c"),
    "sass-one": ("sass", "v2d_c"),
    "show": ("show", AFTER),
    "trend": ("trend", "gpu__time_duration.sum"),
    "verify": (
        "data",
        "verify",
    ),
    "versions": ("list", "versions"),
    "workloads": ("list", "workloads"),
}


def of_reports() -> dict[str, tuple[str, ...]]:
    """The commands on public reports, by name; none where there are no reports."""
    commands = {}
    for path in sorted(REPORTS.glob("*/*.ncu-rep")):
        if path.parent.name == "bad":
            continue
        name = f"{path.parent.name}/{path.stem}"
        for command in ("show", "insights", "roofline"):
            commands[f"{command} {name}"] = (command, str(path))
    pairs = [
        ("ncar/MW_Baseline", "ncar/MW_DivToMult"),
        ("mistic/prof1", "mistic/prof2"),
        ("cutlass/report75", "cutlass/report80"),
        ("esmm/profile@a62323b2", "esmm/profile@17f278cb"),
        ("llm.c/adamw_coalsecing_shared", "llm.c/adamw_coalsecing_shared"),
    ]
    for a, b in pairs if commands else []:
        sides = tuple(str(REPORTS / f"{name}.ncu-rep") for name in (a, b))
        commands |= {f"compare {a} {b}": ("compare", *sides), f"explain {a} {b}": ("explain", *sides)}
        commands[f"gate {b} --baseline {a}"] = ("gate", sides[1], "--baseline", sides[0])
    return commands


def printed(command: tuple[str, ...]) -> str:
    """What a command prints with --json, its exit code below; the folder of the reports stands as REPORTS."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        code = main([*command, "--json"])
    text = f"{output.getvalue()}exit {int(code)}\n".replace(str(REPORTS), "REPORTS")
    return re.sub(r'^ "created": ".*"', ' "created": "NOW"', text, flags=re.MULTILINE)  # a report's own time
