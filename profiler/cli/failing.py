"""What `--fail` adds to a comparison: the gate's answer on the same sides, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.bundles import decisions, location
from profiler.cli.gate_output import answer, weighty
from profiler.cli.gate_report import GateReport
from profiler.compare import is_file_name
from profiler.compare.resolve_names import resolve_family_version
from profiler.evidence import Evidence
from profiler.gate import CellFilter, acknowledgement, find_pairs, judgement, pair_of_sides
from profiler.gate.baseline_lookup import BaselineLookup

if TYPE_CHECKING:
    import argparse

    from profiler.compare import Comparison, StoreOpener
    from profiler.evidence import MetricTable

SHOWN = 25  # findings of a kind on a terminal


def judged(
    arguments: argparse.Namespace,
    found: Sequence[Comparison],
    table: MetricTable,
    opener: StoreOpener,
    *,
    every_cell: bool = False,
) -> GateReport:
    """What `profiler gate B --baseline A` answers, of the sides that were compared.

    `every_cell`: found is all that two versions share of their facts; what only A has is held against B too.
    Raises UnknownName for a run that was forgotten, and as the gate does where nobody knows which results of
    a version are the newest.
    """
    root, on = location.open_root(), getattr(arguments, "on", ())
    for name in (arguments.a, arguments.b):
        if not is_file_name(name):
            known = BaselineLookup(opener(), root, None, opener)
            if not known.run(name):
                known.of_version(*resolve_family_version(known.store, name))
    stored = any(one.b.family for one in found)
    let_pass = acknowledgement.list_acknowledgements(decisions.load_decisions(root)) if stored else []
    if every_cell:
        kinds = [Evidence(arguments.evidence)] if arguments.evidence else []
        wanted = CellFilter(arguments.workload, arguments.gpu, kinds)
        held = find_pairs([arguments.b], arguments.a, opener, root, wanted)
        verdicts = judgement.judge(held, table, on=on, across=arguments.across, let_pass=let_pass)
    else:
        sides = [pair_of_sides(one.a, one.b, opener, root) for one in found]
        verdicts = judgement.judge_comparisons(sides, found, table, on=on, let_pass=let_pass)
    return GateReport(verdicts, verdicts.exit_code(), arguments.a)


def print_text(told: GateReport | None) -> None:
    """Print the answer below the comparison: what has weight; nothing where it was not asked for."""
    if told is not None:
        print(f"\n{weighty(told, SHOWN)}", end="")


def beside(document: dict[str, object], told: GateReport | None) -> dict[str, object]:
    """The comparison's JSON, with the answer where it was asked for."""
    return document if told is None else {**document, "gate": answer(told)}
