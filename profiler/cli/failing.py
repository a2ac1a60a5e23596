"""What `--fail` adds to a comparison: the gate's answer on the same sides, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.cli.gate import brief_text
from profiler.documents import GateDocument
from profiler.evidence import Evidence
from profiler.gate import CellFilter, GateReport, gate_comparisons

if TYPE_CHECKING:
    import argparse

    from profiler.compare import Comparison, StoreOpener
    from profiler.evidence import MetricTable


def judge(
    arguments: argparse.Namespace,
    comparisons: Sequence[Comparison],
    table: MetricTable,
    opener: StoreOpener,
    *,
    every_cell: bool = False,
) -> GateReport:
    """What `profiler gate B --baseline A` answers, of the sides that were compared.

    `every_cell`: they are all that two versions share of their facts; what only A has is missed in B too.
    """
    cells = None
    if every_cell:
        kinds = [Evidence(arguments.evidence)] if arguments.evidence else []
        cells = CellFilter(arguments.workload, arguments.gpu, kinds)
    return gate_comparisons(
        arguments.a,
        arguments.b,
        comparisons,
        opener,
        location.open_root(),
        table,
        cells=cells,
        on=getattr(arguments, "on", ()),
        across=arguments.across,
    )


def print_text(report: GateReport | None) -> None:
    """Print the answer below the comparison: what has weight; nothing where it was not asked for."""
    if report is not None:
        print(f"\n{brief_text(report)}", end="")


def with_gate(comparison: dict[str, object], report: GateReport | None) -> dict[str, object]:
    """The comparison's JSON, with the answer where it was asked for."""
    return comparison if report is None else {**comparison, "gate": GateDocument(report).to_dict()}
