"""`profiler compare`: what differs between two versions, runs or plain report files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, evidence_of, print_json
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Compare B with A: the latency of calls mode by mode, counters launch by launch. A and B are report files (no
store is opened then), run ids, family/version, or a version whose name is unique; looked for in this order.

Latencies that one run took in alternating rounds are judged by these rounds; those of two runs by the noise
floor of the GPU, and without one they are unclear.

Kernels with different names never pair; what cannot be paired is listed. ncu's duration is not latency: it is
measured under the profiler, and a launch under 50 µs that moved is unclear, not worse.

Two versions that were not both measured are compared by their static and their modelled facts, each kind by
itself, on every workload and architecture that both have: --evidence, --workload and --gpu choose. A version
whose results are wrong has no speed and no verdict: it stands as wrong."""

_EPILOG = """\
exit codes: 0, unless an input cannot be read or used (2). With --fail, by the verdict on the latency of every
mode (where not both were timed: on every ncu duration) and on the concepts named by --on: 0 nothing is worse
· 1 something is worse (one launch a side counts) · 3 could not judge: a verdict is unclear, missing or not
comparable, or there is none; by launches also where some are ambiguous or one of A has no partner. --top
does not change the exit code."""


def add(commands: Commands) -> None:
    """Add `compare`."""
    compare = commands.add_parser(
        "compare",
        help="what differs between two versions, runs or report files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("a", metavar="A", help="the side to judge against")
    compare.add_argument("b", metavar="B", help="the side that is judged")
    shape = compare.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="print every metric of every pair, not what moved")
    add_filters(compare, "kernel", "top", "workload", "gpu")
    add_evidence(compare)
    compare.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu"),
        default=[],
        help="driver or ncu version may differ: that is the question (may be repeated)",
    )
    compare.add_argument("--fail", action="store_true", help="make the verdict the exit code")
    compare.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="CONCEPT",
        help="with --fail: judge this concept too (repeatable)",
    )
    compare.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and with --fail judge."""
    from profiler import circumstances, compare, metrics, noisefloor, sources, wobble
    from profiler.cli import comparison, comparison_json, facts, known, output
    from profiler.values import Evidence

    if arguments.on and not arguments.fail:
        raise ProfilerError("--on says which concepts --fail judges: add --fail, or leave --on out")
    table = metrics.load()
    compare.check_concepts(table, arguments.on)
    names, where = (arguments.a, arguments.b), (arguments.workload, arguments.gpu)
    with known.catalogued(names, output.open_store):
        pairs = sources.facts_of(names, output.open_store, *where, evidence_of(arguments))
        if not pairs:
            a, b = sources.resolve_all(names, output.open_store, *where)
            pairs = [(a, b)]
    options = {
        "across": arguments.across,
        "kernel": arguments.kernel,
        "same_code": circumstances.same_code(),
        "noise": noisefloor.lookup(output.open_store),
        "wobble": wobble.lookup(output.open_store),
    }
    found = [compare.compare(a, b, table, **options) for a, b in pairs]
    limit = arguments.top or (None if arguments.json else comparison.SHOWN)
    shown = [one.top(limit) for one in found]
    if arguments.json:
        print_json(comparison_json.documents(shown))
    elif shown[0].a.evidence is not Evidence.MEASURED:
        facts.print_facts(shown, everything=arguments.all, markdown=arguments.markdown)
    elif arguments.markdown:
        print(comparison.markdown(shown[0]), end="")
    else:
        comparison.print_text(shown[0], everything=arguments.all)
    return compare.worst([one.exit_code(arguments.on) for one in found]) if arguments.fail else 0
