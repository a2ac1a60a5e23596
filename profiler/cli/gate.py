"""`profiler gate`: pass or fail against a baseline, for CI, with or without a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters
from profiler.statistics import Verdict

if TYPE_CHECKING:
    from profiler.cli.output import Commands

FORMATS = ("text", "json", "markdown", "junit")
_DESCRIPTION = """\
Hold versions, a run or reports against a baseline and fail on what got worse. A name is a report file, a run
id, family/version, or a version whose name is unique; without names the newest run is judged, all of it.

Checked: correctness, the rules on facts (spills, stack, registers, barriers, blocks per SM, modelled
conflicts), the catalogue's budgets, the time and every exact count, data that the baseline has and the
subject lacks, and whether the two can be compared at all. Time decides: counters that wobble by themselves
(hit rates, bytes, conflicts) are told and weigh nothing unless --on names them, and exact counts weigh
nothing where the time got better. Static and modelled evidence and plain reports are enough.

--baseline: a report, a run id, a version, a torch backend that was collected, parent (the nearest correct
ancestor in the catalogue) or best (the fastest correct version). Without it: what `profiler baseline` pinned,
else the last run of the same version before this one.

Whether a version is right and within its budget takes no baseline: a new one, and one that was wrong before,
fail too, as does a rejected one that the check lets through. What only a GPU can tell may be lacking where
there is none, unless --evidence asks for it. Results held against themselves, or against a copy of the same
report, are nothing compared.

A regression that `profiler acknowledge` recorded is let pass until its end, and is listed. One that
ended says when and why."""

_EPILOG = """\
exit codes: 0 nothing got worse · 1 something did (one launch a side counts), is wrong, over its budget, or
was tried and gave no result · 2 input that cannot be read or used · 3 nobody could judge: unclear, missing,
not comparable, or nothing was compared. --allow unclear lets pass what is unclear, and nothing else."""


def add(commands: Commands) -> None:
    """Add `gate`."""
    gate = commands.add_parser(
        "gate",
        help="pass or fail against a baseline, for CI",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    gate.add_argument("names", nargs="*", metavar="NAME", help="what is judged; default: the newest run")
    gate.add_argument("--baseline", metavar="B", help="what it is judged against")
    add_filters(gate, "workload", "gpu")
    gate.add_argument(
        "--evidence",
        action="append",
        choices=("measured", "static", "modelled"),
        default=[],
        help="only this kind (repeatable)",
    )
    gate.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu"),
        default=[],
        help="driver or ncu version may differ: that is the question (repeatable)",
    )
    gate.add_argument(
        "--on", action="append", default=[], metavar="CONCEPT", help="judge this concept too (repeatable)"
    )
    gate.add_argument(
        "--allow",
        action="append",
        choices=[verdict.value for verdict in Verdict if verdict.traits.may_pass],
        default=[],
        help="let pass what is unclear",
    )
    gate.add_argument("--format", choices=FORMATS, help="how it is told (default: text)")
    for name in FORMATS[1:]:
        gate.add_argument(f"--{name}", action="store_const", dest="format", const=name, help=f"print {name}")
    gate.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="write there too, by its suffix .txt, .json, .md or .xml (repeatable)",
    )
    gate.add_argument("--link", metavar="URL", default="", help="a dashboard to link to, for the Markdown")
    gate.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge, print, write, and make the verdict the exit code."""
    from profiler.bundles import location
    from profiler.cli import gate_output, output
    from profiler.evidence import Evidence, metric_table
    from profiler.gate import CellFilter, run_gate

    files = [gate_output.destination(Path(name)) for name in arguments.out]
    table, root = metric_table.load_metrics(), location.open_root()
    kinds = [Evidence(kind) for kind in arguments.evidence]
    cells = CellFilter(arguments.workload, arguments.gpu, kinds)
    options = {name: getattr(arguments, name) for name in ("on", "across", "allow")}
    names = arguments.names, arguments.baseline
    report = run_gate(*names, output.open_store, root, table, cells=cells, **options)
    gate_output.write_and_print(report, files, arguments.format or "text", arguments.link.rstrip("/"))
    return report.code
