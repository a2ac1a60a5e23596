"""`profiler explain`: why B takes another time than A, from the counters of both."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, say
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Split the difference in time of every pair of launches into causes, in microseconds: work (instructions
issued), waiting by stall reason, parallelism (active warps), balance (active share of the cycles), clock, and
a residue that makes the sum exact (skew between ncu's replay passes). A and B are named as for `compare`.

It is Little's law, T = I * L / (W * S * a * f), split with the log-mean Divisia method. Where counters are
missing the split is coarser (cycles and clock) or there is none, and the lines of metrics.txt to collect are
named. A launch whose time moved less than its threshold is unchanged and has no causes."""

_EPILOG = """\
exit codes: 0, unless an input cannot be read or used (2). With --fail, as `compare --fail`, with the reason
below: 0 nothing got worse, 1 something did, 3 could not judge, as where no GPU measured the two. --top does
not change the exit code."""


def add(commands: Commands) -> None:
    """Add `explain`."""
    explain = commands.add_parser(
        "explain",
        help="why a version takes another time: work, waiting, parallelism, balance, clock",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("a", metavar="A", help="the side to explain from")
    explain.add_argument("b", metavar="B", help="the side to explain")
    shape = explain.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="split launches whose verdict is unclear too")
    add_filters(explain, "kernel", "top", "workload", "gpu")
    explain.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu"),
        default=[],
        help="driver or ncu version may differ: that is the question (may be repeated)",
    )
    explain.add_argument("--fail", action="store_true", help="make the verdict the exit code")
    explain.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, split, print, and with --fail judge."""
    from profiler.cli import comparison, explanation, failing, output
    from profiler.compare import NoiseModel, resolve_names
    from profiler.compare import comparison as compare_comparison
    from profiler.documents import GateDocument
    from profiler.evidence import metric_table
    from profiler.explain import explanation as explain_explanation
    from profiler.history.without_results import versions_without_results_explained

    table = metric_table.load_metrics()
    names, where = (arguments.a, arguments.b), (arguments.workload, arguments.gpu)
    with versions_without_results_explained(names, output.open_store):
        facts = resolve_names.find_fact_pairs(names, output.open_store, *where)
        a, b = (None, None) if facts else resolve_names.resolve_all(names, output.open_store, *where)
    if a is None or b is None:
        return _without_time(arguments, list(dict.fromkeys(one.evidence.value for one, _ in facts)))
    found = compare_comparison.compare(
        a,
        b,
        table,
        across=arguments.across,
        kernel=arguments.kernel,
        noise=NoiseModel.of_store(output.open_store),
    )
    if not arguments.fail:
        output.note_forgotten(names, output.open_store)
    shown = found.top(arguments.top or (None if arguments.json else comparison.SHOWN))
    told = explain_explanation.explain(shown, table)
    verdict = failing.judge(arguments, [found], table, output.open_store) if arguments.fail else None
    if arguments.json:
        print_json(failing.with_gate(explanation.document(shown, told), verdict))
    elif arguments.markdown:
        print(explanation.markdown(shown, told), end="")
        print(f"\n{GateDocument(verdict).to_markdown()}" if verdict else "", end="")
    else:
        explanation.print_text(shown, told, everything=arguments.all)
        failing.print_text(verdict)
    return verdict.code if verdict else 0


def _without_time(arguments: argparse.Namespace, kinds: list[str]) -> int:
    """Two versions that no GPU measured: say so; a gate cannot judge them."""
    from profiler.cli import explanation

    words, document = explanation.without_time(arguments.a, arguments.b, kinds)
    if arguments.json:
        print_json(document)
    else:
        say(f"{words}. `profiler compare {arguments.a} {arguments.b}` shows what differs")
    return Exit.UNJUDGED if arguments.fail else Exit.PASS
