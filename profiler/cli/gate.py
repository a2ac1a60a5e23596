"""`profiler gate`: pass or fail against a baseline, for CI, with or without a GPU."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_across, add_filters, add_pairing, ask, destination, text_of, write_bytes
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents.gate import GateDocument

# The forms that an answer is printed in, and the suffix of a file of each. All but the text are written by
# the document's method `to_FORM`.
FORMATS = {"text": ".txt", "json": ".json", "markdown": ".md", "junit": ".xml", "sarif": ".sarif"}
_DESCRIPTION = """\
Compare versions, a run or reports with a baseline and fail on what got worse. A name is a report file, a run
id, family/version, a version whose name is unique, or a family (all of its versions). Without names the whole
newest run is judged, and other versions of its family are listed.

Checked: correctness, the rules on facts (spills, stack, registers, barriers, blocks per SM, modelled
conflicts), the catalogue's budgets, the time and every exact count, data that the baseline has and the
subject lacks, and whether the two can be compared at all. Time decides: noisy counters (hit rates, bytes,
conflicts) are reported but do not decide unless --on names them, and exact counts do not decide where the
time is the same or better. Static and modelled evidence and plain reports are enough.

--baseline: a report, a run id, a version, a torch backend that was collected, parent (the nearest correct
ancestor in the catalogue) or best (the fastest correct version). Default: what `profiler decide baseline
set` pinned, else the previous run of the same version. The parent is judged against only where it is asked
for, although `profiler decide baseline show` lists it.

Correctness and budgets need no baseline. The catalogue calls a version good, or rejected: kept as an example
of a known fault. A good version fails if its results are wrong, also if they were wrong before; a rejected
one fails if it is no longer caught, that is, if the CPU check finds nothing wrong with it. Measured results
may be missing unless --evidence measured is given. Results compared with themselves, or with a copy of the
same report, do not count as a comparison. If at least one version was compared, versions without a baseline
do not change the exit code; the headline counts them.

A cubin, library, object, wheel or folder of these is held against its lock, kernels.lock or --lock FILE,
which `profiler pin` wrote, or against other machine code as --baseline: spills in innermost loops, fewer
blocks per SM, more stack, lost matrix instructions and narrower accesses fail; --gpu is its architecture.

A regression that `profiler decide acknowledge` recorded passes until its end, and is listed. An expired
acknowledgement is reported with its date and reason."""

_EPILOG = """\
exit codes: 0 nothing got worse · 1 something got worse (one launch per side is enough), is wrong, is over its
budget, or was collected and failed · 2 input that cannot be read or used · 3 something could not be judged
and nothing got worse: unclear, missing, not comparable, or nothing was compared. --allow unclear lets unclear
results pass, and nothing else. Unclear launches decide only if, at the bad end of their intervals, they lose
more than half of the time that the others gained, and more than 2 % of all paired time; else they are only
reported."""


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
    gate.add_argument("--baseline", metavar="B", help="the baseline")
    add_filters(gate, "kernel", "workload", "gpu")
    gate.add_argument(
        "--evidence",
        action="append",
        choices=("measured", "static", "modelled"),
        default=[],
        help="only this kind (repeatable)",
    )
    add_across(gate)
    gate.add_argument(
        "--on", action="append", default=[], metavar="CONCEPT", help="also judge this concept (repeatable)"
    )
    gate.add_argument(
        "--allow",
        action="append",
        choices=[verdict.value for verdict in Verdict if verdict.traits.may_pass],
        default=[],
        help="let unclear results pass",
    )
    gate.add_argument(
        "--lock",
        metavar="FILE",
        help="of machine code: the lock (default: kernels.lock in the working folder)",
    )
    add_pairing(gate)
    gate.add_argument("--format", choices=FORMATS, help="output format (default: text)")
    for name in list(FORMATS)[1:]:  # text is the default
        gate.add_argument(f"--{name}", action="store_const", dest="format", const=name, help=f"print {name}")
    gate.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="also write this file: .txt, .json, .md, .xml or .sarif (repeatable)",
    )
    gate.add_argument(
        "--link", metavar="URL", default="", help="URL of a dashboard, for links in the Markdown"
    )
    gate.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge, print, write, and make the verdict the exit code."""
    from profiler.documents.gate import gate_versions

    files = [destination(name, FORMATS.values()) for name in arguments.out]
    document = ask(gate_versions, arguments, dashboard=arguments.link.rstrip("/"))
    _write(document, files)
    print(render(document, arguments.format or "text"), end="")
    return document.exit_code


def render(document: GateDocument, form: str) -> str:
    """The answer in one of FORMATS, with its last newline."""
    if form == "text":
        return text_of(document.blocks(everything=True))
    written: str = getattr(document, f"to_{form}")()
    return written


def _write(document: GateDocument, files: Iterable[Path]) -> None:
    """Write the answer to files, each in the form of its suffix; ProfilerError where that cannot be done."""
    forms = {suffix: form for form, suffix in FORMATS.items()}
    for path in files:
        # A file name in the answer may be any bytes.
        write_bytes(render(document, forms[path.suffix]).encode("utf-8", "backslashreplace"), path)
