"""The answer of a gate, by names or for comparisons that were made already."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import decisions, location
from profiler.compare.comparison import Comparison, check_concepts
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing, check_asked
from profiler.compare.match_launches import kernel_filter
from profiler.compare.noise_model import NoiseModel
from profiler.compare.resolve_names import is_file_name
from profiler.errors import Exit, UnknownName
from profiler.evidence.cell import EVERY_CELL, CellFilter
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list, nearest_first
from profiler.gate.acknowledgement import list_acknowledgements
from profiler.gate.comparison_pairs import ComparisonPair, find_pairs, pair_of_sides
from profiler.gate.finding import Outcome, Verdicts
from profiler.gate.inventory import Inventory
from profiler.gate.judgement import judge, judge_comparisons
from profiler.history.without_results import versions_without_results_explained
from profiler.statistics.decision import change_text
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.compare.resolve_names import StoreOpener

_COUNTED = {
    Outcome.FAILED: "failed",
    Outcome.UNJUDGED: "undecided",
    Outcome.ACKNOWLEDGED: "acknowledged",
    Outcome.PASSED: "passed",
    Outcome.NOTED: "informational",
}
HEADLINES = {
    Exit.PASS: "Gate passed",
    Exit.REGRESSION: "Gate failed",
    Exit.UNJUDGED: "Gate could not judge",
}


class ChosenBaseline(NamedTuple):
    """A baseline that nobody named."""

    name: str
    why: str  # pinned, or the run before
    versions: int  # of how many versions


@dataclass(frozen=True)
class GateReport:
    """The answer of a gate: its findings and the exit code that follows."""

    verdicts: Verdicts
    code: Exit
    baseline: str  # as it was asked for; "" for the pinned or last one
    not_judged: str = ""  # what was not asked for and might have been meant, with the way to judge it
    chosen: tuple[ChosenBaseline, ...] = ()  # the baselines of what was compared, where nobody named one
    families: tuple[str, ...] = ()  # of the index, that versions were judged of
    summary: str = ""  # of a library how many functions there are of each kind
    functions: frozenset[str] = frozenset()  # of a library the names that its findings say

    @property
    def headline(self) -> str:
        """The answer in one line."""
        unmet = {finding.subject for finding in self.verdicts.findings if finding.is_without_baseline}
        counts = [
            f"{count} {words}"
            for outcome, words in _COUNTED.items()
            # A version without a baseline is counted as such.
            if (count := sum(not finding.is_without_baseline for finding in self.verdicts.of(outcome)))
        ]
        if counts:
            number, word = counts[0].split(" ", 1)
            counts[0] = f"{number} check{'s' * (number != '1')} {word}"
        if unmet:
            counts.append(f"{len(unmet)} version{'s' * (len(unmet) > 1)} without a baseline")
        if not self.verdicts.compared:
            counts.append("nothing was compared")
        return f"{HEADLINES[self.code]}: {', '.join(counts)}"

    @property
    def time_line(self) -> str:
        """How many times got worse or better, and which moved most; "" where no time was compared."""
        times = self.verdicts.times
        counts = Counter(finding.verdict for finding in times)
        if not counts:
            return ""
        words = ", ".join(f"{counts[verdict]} {verdict.words}" for verdict in Verdict if counts[verdict])
        known = [finding for finding in times if finding.effect is not None]
        most = ", ".join(
            f"{' · '.join(filter(None, (finding.kernel or finding.subject, finding.workload)))} "
            f"{change_text(finding.effect or 0.0)}"
            for finding in dict.fromkeys((*known[:1], *known[-1:]))
            if finding.verdict.traits.moved
        )
        return f"Time: {words}{f'; most: {most}' if most else ''}"


def run_gate(
    names: Sequence[str],
    baseline: str | None,
    opener: StoreOpener,
    table: MetricTable,
    *,
    cells: CellFilter = EVERY_CELL,
    on: Sequence[str] = (),
    across: Collection[str] = (),
    allow: Collection[str] = (),
    pairing: Pairing = NO_PAIRS,
    kernel: str | None = None,
    data: str | None = None,
) -> GateReport:
    """Judge reports, runs and versions against their baselines; names and baseline are as for `find_pairs`.

    `on` names concepts that are judged besides time and exact counts, `across` what may differ (see compare),
    `allow` the undecided verdicts that may pass, `pairing` the kernels that are one under two names, `kernel`
    a pattern of the kernels that are judged alone (see kernel_filter). `data` is the folder or URL of the
    index's bundles, PROFILER_DATA's where None. Raises UnknownName, CannotJudge for a version without
    results, and where it is unknown which results are the newest.
    """
    check_concepts(table, on)  # before the names, so that a wrong concept is reported as such
    root = location.open_root(data)
    with versions_without_results_explained((*names, baseline or ""), opener, data):
        pairs = find_pairs(names, baseline, opener, root, cells, across)
    check_asked(pairing.asked, [(pair.a, pair.b) for pair in pairs if pair.a and pair.b])
    if kernel is not None:
        pairs = _pairs_with_kernel(pairs, kernel)
    verdicts = judge(
        pairs,
        table,
        on=on,
        across=across,
        noise=NoiseModel.of_store(opener, data),
        pairing=pairing,
        acknowledged=list_acknowledgements(decisions.load_decisions(root)),
        kernel=kernel,
    )
    not_judged = "" if names else _beside_newest(Inventory(opener(), root))
    families = dict.fromkeys(pair.b.family for pair in pairs if pair.b and pair.b.family)
    return GateReport(
        verdicts, verdicts.exit_code(allow), baseline or "", not_judged, _chosen(pairs), tuple(families)
    )


def _chosen(pairs: Sequence[ComparisonPair]) -> tuple[ChosenBaseline, ...]:
    """The baselines that nobody named, of most versions first."""
    versions: dict[tuple[str, str], set[str]] = {}
    for pair in pairs:
        if pair.baseline_choice:
            versions.setdefault((pair.baseline, pair.baseline_choice), set()).add(pair.subject)
    found = [ChosenBaseline(name, why, len(of)) for (name, why), of in versions.items()]
    return tuple(sorted(found, key=lambda chosen: -chosen.versions))


def _pairs_with_kernel(pairs: Sequence[ComparisonPair], kernel: str) -> list[ComparisonPair]:
    """The pairs of which a side has a kernel of that pattern. Raises UnknownName where none has."""
    is_chosen = kernel_filter(kernel)
    sides = [[side for side in (pair.a, pair.b) if side is not None] for pair in pairs]
    chosen = [
        pair
        for pair, of_pair in zip(pairs, sides, strict=True)
        if any(is_chosen(launch) for side in of_pair for launch in side.launches)
    ]
    if not chosen:
        present = {launch.base_name for of_pair in sides for side in of_pair for launch in side.launches}
        listed = brief_list(nearest_first(kernel, sorted(present))) or "none"
        raise UnknownName(
            f"no kernel matches {kernel!r} in what is judged; there are {listed}", option="--kernel"
        )
    return chosen


def _beside_newest(inventory: Inventory) -> str:
    """That the newest run, judged because nothing was named, is one report of several; "" where it is not."""
    beside = inventory.beside_newest_import()
    if beside is None:
        return ""
    family, others = beside
    versions = f"{others} other version{'s' * (others > 1)}"
    return (
        f"not judged: {versions} of {family}, as no name asks for them: `profiler gate {shlex.quote(family)}`"
    )


def gate_comparisons(
    a: str,
    b: str,
    comparisons: Sequence[Comparison],
    opener: StoreOpener,
    root: Root,
    table: MetricTable,
    *,
    cells: CellFilter | None = None,
    on: Collection[str] = (),
    across: Collection[str] = (),
    pairing: Pairing = NO_PAIRS,
) -> GateReport:
    """The answer of `run_gate([b], a)` for sides that were compared already.

    `cells`: the comparisons are all cells that the two versions share of this evidence, so cells that only A
    has are reported as missing. Raises UnknownName and CannotJudge as `run_gate` does.
    """
    for name in (a, b):
        if not is_file_name(name):
            Inventory(opener(), root).check_name(name)
    is_stored = any(comparison.b.family for comparison in comparisons)  # a report is of no version
    acknowledged = list_acknowledgements(decisions.load_decisions(root)) if is_stored else []
    if cells is not None:  # facts, which repeat exactly: no noise is needed to judge them
        pairs = find_pairs([b], a, opener, root, cells)
        verdicts = judge(pairs, table, on=on, across=across, pairing=pairing, acknowledged=acknowledged)
    else:
        pairs = [pair_of_sides(comparison.a, comparison.b, opener, root) for comparison in comparisons]
        verdicts = judge_comparisons(pairs, comparisons, table, on=on, acknowledged=acknowledged)
    return GateReport(verdicts, verdicts.exit_code(), a)
