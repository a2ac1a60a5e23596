"""Finds the pairs that a gate compares: every cell of what it judges beside the same cell of its baseline."""

from __future__ import annotations

import filecmp
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle
from profiler.compare.resolve_names import is_file_name, refuse_unused_filters, resolve_all
from profiler.compare.timed_files import are_timed_files, timed_pairs
from profiler.errors import UnknownName
from profiler.evidence.cell import Cell, CellFilter
from profiler.evidence.naming import brief_list, natural_key
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.gate.baseline_lookup import BaselineLookup, CellBaseline, CellBaselines
from profiler.gate.inventory import Inventory, VersionResults
from profiler.history.baselines import BEST

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.compare.resolve_names import StoreOpener


THIS_WORKLOAD = "this workload"  # in a reason, of one place; several are counted where they are merged
_NOT_MISSED = ", so nothing is missing there"


@dataclass(frozen=True)
class ComparisonPair:
    """A side to judge and its baseline, or why one of them is missing.

    Also without a baseline `b` is judged: whether its results are right and it keeps its budget.
    """

    subject: str  # family/version, or a report's path
    baseline: str  # "" where there is none
    a: Side | None  # the baseline
    b: Side | None  # the subject
    workload: str = ""
    gpu: str = ""
    evidence: str = ""
    why: str = ""  # why a side is missing, or nothing was compared
    gave_no_result: bool = False  # the subject was run there and failed
    is_without_baseline: bool = False  # the subject has no baseline in any place
    baseline_choice: str = ""  # why this baseline, where nobody named one
    rejected: bool = False  # the catalogue rejects the version, so its results have to be wrong
    rejected_in_run: bool = False  # and it is one of several versions of the judged run or family
    noted: bool = False  # what is missing has no weight: nothing can have got worse there
    same_results: bool = False  # both sides are the same results, which cannot be worse than themselves
    next_command: str = ""  # a command that collects what is missing
    rerun_command: str = ""  # a command that settles a verdict that is unclear or missing
    created: datetime | None = None  # when the subject's run was made
    diff_names: tuple[str, str] | None = None  # the names by which the dashboard compares the two


def find_pairs(
    names: Sequence[str],
    baseline: str | None,
    opener: StoreOpener,
    root: Root,
    cells: CellFilter,
    across: Collection[str] = (),
) -> list[ComparisonPair]:
    """The pairs of all named reports, runs and versions, one a cell, in the order of the names.

    Without names: of the newest run. `baseline` is a report, a run, a version, `pinned`, `parent`, `best` or
    `torch:ID`; None means the pinned one, else the last earlier run of the same version. With "gpu" in
    `across` results pair with those of the baseline's only other GPU. Raises UnknownName.
    """
    if not all(name.strip() for name in (*names, *(() if baseline is None else (baseline,)))):
        raise UnknownName("an empty name: name a report file, a run id, family/version, or a version")
    files = [name for name in names if is_file_name(name)]
    pairs: dict[str, list[ComparisonPair]] = {}
    if files:
        if baseline is None:
            if not Path(files[0]).exists():
                raise UnknownName(f"{files[0]}: no such file")
            raise UnknownName(
                f"{files[0]} is a report file: name its baseline with --baseline", option="--baseline"
            )
        if len(files) == len(names) and not are_timed_files(files):
            refuse_unused_filters((baseline, *files), cells.workload)
        if are_timed_files((baseline, *files)):
            return [
                pair
                for name in files
                for pair in _timed_file_pairs(baseline, name, cells.workload, cells.gpu)
            ]
        if is_file_name(baseline):
            a, *sides = (_on_gpu(side, cells.gpu) for side in resolve_all([baseline, *files], opener))
        else:
            sides = [_on_gpu(side, cells.gpu) for side in resolve_all(files, opener)]
            (a,) = resolve_all([baseline], opener, cells.workload, cells.gpu)
        for name, b in zip(files, sides, strict=True):
            is_same = _is_report_of(a, baseline, name, opener)
            pair = _file_pair(a, b, name, cells)
            pairs[name] = [_same_results(pair, noted=False) if is_same and pair.b else pair]
    others = [name for name in names if name not in pairs]
    if others or not names:
        inventory = Inventory(opener(), root)
        finder = PairFinder(BaselineLookup(inventory, baseline, opener), cells, "gpu" in across)
        pairs |= {name: finder.pairs_of(name) for name in others or [inventory.newest_run()]}
    return [pair for of_name in pairs.values() for pair in of_name]


def _timed_file_pairs(
    baseline: str, name: str, workload: str | None, gpu: str | None
) -> Iterator[ComparisonPair]:
    is_same = filecmp.cmp(baseline, name, shallow=False)
    for a, b in timed_pairs(baseline, name, workload, gpu):
        pair = ComparisonPair(name, baseline, a, b, b.workload or "", b.gpu or "", b.evidence)
        yield _same_results(pair, noted=False) if is_same else pair


def pair_of_sides(a: Side, b: Side, opener: StoreOpener, root: Root) -> ComparisonPair:
    """The pair of two sides, with what the index knows of the second, such as whether it is rejected."""
    pair = ComparisonPair(b.label, a.label, a, b, b.workload or "", b.gpu or "", b.evidence)
    if b.family is None or b.version is None or b.run_id is None:
        is_same = is_file_name(b.label) and _is_report_of(a, a.label, b.label, opener)
        return _same_results(pair, noted=False) if is_same else pair
    if (a.run_id, a.family, a.version) == (b.run_id, b.family, b.version) or (
        a.run_id is None and is_file_name(a.label) and _is_report_of(b, b.label, a.label, opener)
    ):
        pair = _same_results(pair, noted=False)
    cell = Cell(workload=pair.workload, gpu=pair.gpu, evidence=b.evidence)
    inventory = Inventory(opener(), root)
    finder = PairFinder(BaselineLookup(inventory, None, opener), CellFilter())
    subject, run = VersionResults(b.family, b.version, {cell: b.run_id}), inventory.store.run(b.run_id)
    return replace(
        pair,
        rejected=finder.lookup.is_rejected(subject),
        rerun_command=finder.rerun_command(subject, cell, a),
        created=run.created if run else None,
    )


def _file_pair(a: Side, b: Side, name: str, cells: CellFilter) -> ComparisonPair:
    """The pair of a report and its baseline. A file names no workload: only GPU and evidence count."""
    if not cells._replace(workload=None).matches(Cell(gpu=b.gpu or "", evidence=b.evidence)):
        gpu = b.gpu or "a GPU that it does not name"
        why = f"{name} is {b.evidence} on {gpu}, which was not requested"
        return ComparisonPair(name, a.label, None, None, why=why)
    return ComparisonPair(name, a.label, a, b, b.workload or "", b.gpu or "", b.evidence)


def _on_gpu(side: Side, gpu: str | None) -> Side:
    """A report's launches on the GPU that was asked for; all of them where it has none, which is said."""
    return side.on_gpu(gpu) if gpu in side.gpus else side


def _is_report_of(side: Side, name: str, file: str, opener: StoreOpener) -> bool:
    """Whether a side, resolved from `name`, was read from a report with the same content as `file`."""
    if is_file_name(name):
        return filecmp.cmp(name, file, shallow=False)
    digest = bundle.hash_file(Path(file))[0]
    return side.run_id is not None and opener().runs_with_reports([digest]).get(digest) == side.run_id


def _why_dropped(subject: VersionResults) -> str:
    """That a modelled cell is of a workload which was taken out of the family's problem."""
    return f"no {subject.family} version is checked on {THIS_WORKLOAD} any more"


def _same_results(pair: ComparisonPair, *, noted: bool) -> ComparisonPair:
    """The pair of two equal results; `noted`: it has no weight beside real comparisons."""
    why = f"compared with itself: {pair.baseline} is the same result"
    return replace(pair, why=why, same_results=True, noted=noted)


@dataclass(frozen=True)
class PairFinder:
    """Turns the names that a gate is given into pairs."""

    lookup: BaselineLookup
    cells: CellFilter
    across_gpu: bool = False  # whether the difference of two GPUs is the question

    @property
    def inventory(self) -> Inventory:
        """The results that the index has."""
        return self.lookup.inventory

    def pairs_of(self, name: str) -> list[ComparisonPair]:
        """The pairs of every version and cell that a name stands for; if there are none, one that says so."""
        pairs = list(self._pairs(name))
        compared = {pair.evidence for pair in pairs if pair.a and pair.b and not pair.same_results}
        if not compared:  # without any real comparison, what is missing has weight
            pairs = [replace(pair, noted=False) for pair in pairs]
        reported = compared | {pair.evidence for pair in pairs if not pair.noted}
        if not pairs:
            pairs.append(ComparisonPair(name, "", None, None, why=self._why_nothing(name)))
        elif compared:
            for kind in self.cells.evidence:
                if kind not in reported:
                    why = f"{name} has no {kind} results to compare, although --evidence {kind} was given"
                    pairs.append(ComparisonPair(name, "", None, None, evidence=kind, why=why))
        return pairs

    def _why_nothing(self, name: str) -> str:
        """Why no pair of a name is left: a filter that none of its results fits, with what there is."""
        cells = self.cells
        present = {cell for results in self.inventory.of_name(name) for cell in results.run_ids}
        for option, asked, names in (
            ("--evidence", " or ".join(cells.evidence), {cell.evidence.value for cell in present}),
            ("--gpu", cells.gpu, {cell.gpu for cell in present}),
            ("--workload", cells.workload, {cell.workload for cell in present}),
        ):
            if asked and not names & {*asked.split(" or ")}:
                there = brief_list(sorted(names - {""}, key=natural_key)) or "none"
                return f"{name} has no results for {option} {asked}; there are {there}"
        return f"{name} has no results{f' for {cells.words}' * bool(cells.words)}"

    def _pairs(self, name: str) -> Iterator[ComparisonPair]:
        is_run = self.inventory.is_run(name)
        versions = self.inventory.of_name(name)
        is_alone = len(versions) == 1
        for subject in versions:
            baselines = self.lookup.baselines_of(subject, is_alone)
            rejected = self.lookup.is_rejected(subject)
            rejected_in_run = not is_alone and rejected
            pairs = (
                self._pairs_with_file(subject, baselines, self.lookup.name or "")
                if isinstance(baselines, Side)
                else self._pairs_by_cell(subject, baselines)
            )
            if not is_run:
                yield from self._outdated_pairs(subject)
            for pair in pairs:
                # Of a rejected version no cell is missed.
                if pair.b or pair.gave_no_result or not rejected_in_run:
                    yield replace(pair, rejected=rejected, rejected_in_run=rejected_in_run)
        if is_run and not is_alone:
            yield from self._lost_versions(name, versions)

    def _lost_versions(self, name: str, versions: Sequence[VersionResults]) -> Iterator[ComparisonPair]:
        """Pairs for versions that the baseline run has and the judged run lacks."""
        other = self.lookup.name
        if not other or is_file_name(other) or not self.inventory.is_run(other):
            return
        names = {results.name for results in versions}
        for lost in self.inventory.of_run(other):
            if lost.name not in names and any(map(self.cells.matches, lost.run_ids)):
                why = f"{lost.name} is in {other}, not in {name}"
                yield ComparisonPair(lost.name, lost.name, None, None, why=why)

    def _pairs_with_file(self, subject: VersionResults, a: Side, file: str) -> Iterator[ComparisonPair]:
        for cell in self._sort_cells(subject.run_ids):
            if cell.evidence is Evidence.MEASURED:
                pair = self._pair(subject, cell, a.label, a)
                is_same = pair.b and _is_report_of(pair.b, pair.subject, file, self.lookup.opener)
                yield _same_results(pair, noted=True) if is_same else pair

    def _pairs_by_cell(self, subject: VersionResults, baselines: CellBaselines) -> Iterator[ComparisonPair]:
        """The pairs of shared cells, of those without a baseline, and of those only the baseline has."""
        kinds = {cell.evidence for cell in subject.run_ids}
        places = {(cell.evidence, cell.gpu) for cell in subject.run_ids}
        on_other_gpu = self._cells_on_other_gpu(subject, baselines) if self.across_gpu else {}
        kinds_shared = {cell.evidence for cell in baselines.by_cell if cell in subject.run_ids}
        for cell in self._sort_cells({**subject.run_ids, **baselines.by_cell}):
            baseline = baselines.by_cell.get(cell)
            if cell in on_other_gpu.values():
                continue  # it is the baseline of another GPU's results
            if other := on_other_gpu.get(cell):
                baseline = baselines.by_cell[other]
                a = self._side(baseline.results, other, other=subject)
                yield self._pair(subject, cell, baseline.name, a, baseline.results)
            elif baseline is None:
                yield self._pair_without_baseline(subject, cell, baselines)
            elif cell in subject.run_ids:
                pair = self._cell_pair(subject, cell, baseline)
                yield replace(pair, baseline_choice=self._why_chosen(cell, baselines))
            elif cell.workload in subject.failures:
                continue  # why it has no results there is reported below
            elif cell.evidence not in kinds:
                noted = self._may_lack_kind(subject, cell, kinds)
                yield self._gap_pair(subject, cell, baseline.name, noted=noted)
            elif cell.evidence in kinds_shared and (
                baselines.on_any_gpu or (cell.evidence, cell.gpu) in places
            ):
                if self.inventory.is_dropped(subject, cell):
                    yield self._dropped_pair(subject, cell, baseline, noted=cell in baselines.before)
                else:
                    yield self._gap_pair(subject, cell, baseline.name, noted=False)
        for workload, reason in subject.failures.items():
            if self.cells.workload in (None, workload):
                why = f"{subject.name} gave no result: {reason}"
                yield ComparisonPair(subject.name, "", None, None, workload, why=why, gave_no_result=True)

    def _cells_on_other_gpu(self, subject: VersionResults, baselines: CellBaselines) -> dict[Cell, Cell]:
        """The baseline's cell for each measured cell that it lacks: the only one of that workload."""
        lacking = [cell for cell in subject.run_ids if cell not in baselines.by_cell]
        spare = [cell for cell in baselines.by_cell if cell not in subject.run_ids]
        found = {}
        for cell in (cell for cell in lacking if cell.evidence is Evidence.MEASURED):
            others = [
                other for other in spare if (other.workload, other.evidence) == (cell.workload, cell.evidence)
            ]
            if len(others) == 1:
                found[cell] = others[0]
        return found

    def _cell_pair(self, subject: VersionResults, cell: Cell, baseline: CellBaseline) -> ComparisonPair:
        """The pair of a cell that both sides have."""
        a = self._side(baseline.results, cell, other=subject)
        pair = self._pair(subject, cell, baseline.name, a, baseline.results)
        is_same = (
            baseline.results.name == subject.name and baseline.results.run_ids[cell] == subject.run_ids[cell]
        )
        # With --baseline best, the best version meets itself: that is no mistake of the user.
        return _same_results(pair, noted=True) if is_same and self.lookup.name != BEST else pair

    def _why_chosen(self, cell: Cell, baselines: CellBaselines) -> str:
        """Why this is the baseline of a cell; "" where it was named."""
        if self.lookup.name is not None:
            return ""
        if cell not in baselines.before:
            return "pinned"
        is_pinned = cell in baselines.is_pin
        return f"previous run; {'these results are what is pinned' if is_pinned else 'no baseline is pinned'}"

    def _outdated_pairs(self, subject: VersionResults) -> Iterator[ComparisonPair]:
        """Pairs for cells whose results are of an older build than the version's newest ones.

        They have no weight where the newest run checked the version, and nothing of the family is checked
        there any more: the problem's list of workloads has changed.
        """
        outdated = self.inventory.outdated_cells(subject)
        for cell in self._sort_cells(outdated):
            newest = outdated[cell]
            is_dropped = self.inventory.is_dropped(subject, cell)
            why = (
                f"{_why_dropped(subject)}{_NOT_MISSED}"
                if is_dropped
                else f"its {cell.evidence} results there are of an older build ({subject.run_ids[cell]}): "
                f"{newest} built it again and lacks them"
            )
            command = "" if is_dropped else self.rerun_command(subject, cell)
            yield ComparisonPair(
                subject.name, "", None, None, *cell.place, why=why, noted=is_dropped, next_command=command
            )

    def _may_lack_kind(self, subject: VersionResults, gap: Cell, kinds: Collection[Evidence]) -> bool:
        """Whether the version may lack a whole kind of evidence: measured, on a machine without a GPU.

        If it was only measured it may lack the others as well; but whoever compiled and disassembled a
        version could have checked it, too. Evidence that a run has of none of its versions may be missing
        from each.
        """
        if gap.evidence in self.cells.evidence:
            return False
        if not kinds and subject.run_id is not None:
            cells_of_run = (
                cell for results in self.inventory.of_run(subject.run_id) for cell in results.run_ids
            )
            return all((cell.evidence, cell.gpu) != (gap.evidence, gap.gpu) for cell in cells_of_run)
        return gap.evidence is Evidence.MEASURED or not {Evidence.STATIC, Evidence.MODELLED} & set(kinds)

    def _pair_without_baseline(
        self, subject: VersionResults, cell: Cell, baselines: CellBaselines
    ) -> ComparisonPair:
        """The pair of a cell without a baseline; noted only if cell or evidence is new."""
        of_kind = [other for other in baselines.by_cell if other.evidence is cell.evidence]
        is_shared = any(other in subject.run_ids for other in of_kind)
        why, command = f"{subject.name}: no baseline has {cell.evidence} results there", ""
        if of_kind and not is_shared:
            places = [
                " ".join(filter(None, (other.workload, other.gpu))) or "GPU not specified"
                for other in of_kind
            ]
            why = f"{why}; available baselines: {brief_list(list(dict.fromkeys(places)))}"
        is_without = not baselines.by_cell and cell not in baselines.why_none
        if is_without:
            why = f"{subject.name} has no baseline"
            command = f"profiler decide baseline set {shlex.quote(subject.family)} RUN_OR_VERSION"
        if cell in baselines.why_none:
            why = f"{subject.name} has no baseline there: {baselines.why_none[cell]}"
        return ComparisonPair(
            subject.name,
            "",
            None,
            self._side(subject, cell),
            *cell.place,
            why=why,
            is_without_baseline=is_without,
            noted=cell not in baselines.refused and (is_shared or not of_kind),
            next_command=command,
            created=subject.created.get(cell),
        )

    def _gap_pair(self, subject: VersionResults, cell: Cell, baseline: str, *, noted: bool) -> ComparisonPair:
        """The pair of a cell that only the baseline has."""
        why = f"{subject.name} has no {cell.evidence} results here; its baseline {baseline} has"
        command = self.rerun_command(subject, cell)
        return ComparisonPair(
            subject.name, baseline, None, None, *cell.place, why=why, noted=noted, next_command=command
        )

    def _dropped_pair(
        self, subject: VersionResults, cell: Cell, baseline: CellBaseline, *, noted: bool
    ) -> ComparisonPair:
        """The pair of a cell that the baseline has, and on which nothing of the family is checked any more.

        No command collects it. Of a baseline that somebody named it is undecided: its newest run lacks it.
        """
        results, command = baseline.results, ""
        why = f"{_why_dropped(subject)}{_NOT_MISSED * noted}"
        if results.run_id is None:
            newest = max(results.created, key=lambda own: (results.created[own], results.run_ids[own]))
            name = f"{results.name}~{results.run_ids[newest]}"
            command = shlex.join(["profiler", "gate", subject.name, "--baseline", name])
        return ComparisonPair(
            subject.name, baseline.name, None, None, *cell.place, why=why, noted=noted, next_command=command
        )

    def _pair(
        self,
        subject: VersionResults,
        cell: Cell,
        baseline: str,
        a: Side,
        baseline_results: VersionResults | None = None,
    ) -> ComparisonPair:
        diff_names: tuple[str, str] | None = (baseline, subject.name)
        if baseline == a.run_id:  # the dashboard could not choose among several versions of a run
            is_alone = len(self.inventory.of_run(baseline)) == 1
            diff_names = (baseline, subject.run_ids[cell]) if is_alone else None
        return ComparisonPair(
            subject.name,
            baseline,
            a,
            self._side(subject, cell, other=baseline_results),
            *cell.place,
            rerun_command=self.rerun_command(subject, cell, a),
            created=subject.created.get(cell),
            diff_names=diff_names,
        )

    def rerun_command(self, subject: VersionResults, cell: Cell, a: Side | None = None) -> str:
        """A command that collects what is missing or settles what is unclear; "" where there is none."""
        if self.inventory.is_imported(subject, cell):
            return ""  # nothing here can measure an imported report again
        if cell.evidence is not Evidence.MEASURED:
            return f"profiler static --check {shlex.quote(subject.version)}"
        against = (
            f" --against {shlex.quote(a.version)}" if a and a.version not in (None, subject.version) else ""
        )
        return f"profiler collect {shlex.quote(subject.version)}{against} --rounds 25"

    def _side(self, results: VersionResults, cell: Cell, other: VersionResults | None = None) -> Side:
        """The results of a cell as one side, judged right or wrong by the runs they are from.

        A version, unlike a run, also brings the timed calls of its older runs: the other version may have
        been timed beside it there. Beside an older run of its own it would be compared with the same calls.
        """
        load = partial(
            self.inventory.store.side,
            family=results.family,
            version=results.version,
            workload=cell.workload,
            gpu=cell.gpu,
            evidence=cell.evidence,
            label=results.name,
        )
        side = load(run_id=results.run_ids[cell])
        of_other_version = other is not None and other.name != results.name
        if results.run_id is None and of_other_version and cell.evidence is Evidence.MEASURED:
            side = replace(side, latencies=load().latencies)
        return replace(side, wrong=results.wrong)

    def _sort_cells(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that were asked for: measured, modelled, then static, each by workload and GPU."""
        kinds = list(Evidence)
        return sorted(
            filter(self.cells.matches, cells),
            key=lambda cell: (-kinds.index(cell.evidence), natural_key(cell.workload), natural_key(cell.gpu)),
        )
