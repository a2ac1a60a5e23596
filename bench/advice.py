"""How often advice meets what made a kernel faster: labelled optimisation steps, replayed.

    python bench/advice.py REPORTS STEPS.json …        the table of docs/insights.md
    python bench/advice.py REPORTS STEPS.json --steps  a line a step as well
    python bench/advice.py --lineage                   the lineage: advice of each version without a GPU,
                                                       against the idea of the version made from it
    python bench/advice.py REPORTS STEPS.json --write  write profiler/advice/track_record.py too, by which
                                                       advice says how often it helped: after a changed rule

REPORTS is a folder of reports, each named by the SHA-256 of its bytes (`….ncu-rep`). STEPS.json is a list
of steps of public repositories (several lists count as one): the report and kernel before (`a`) and after
(`b`), `change` in the vocabulary of profiler.advice.techniques, `direction` (faster or slower). Nothing is
fetched, and nothing of either enters the repository but the numbers that this prints.

A step is met where one of the first 1 or 3 levers of the earlier report asks for what was changed; equal
levers count once. A lever is false where one of the first three asks for a change that made the kernel
slower. The main question is unknown where what limits the time stands among what is unknown. `explain`
agrees where the largest cause of the change is one that the change of the source can have. NVIDIA's rules
are ranked by their estimated speed-up.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.advice.insights import Insights, choose_launch, find_insights, launch_statements
from profiler.advice.rules import record_digest, rules_digest
from profiler.advice.statement import Statement
from profiler.advice.subject import ComparedSide, Subject, load_subject
from profiler.advice.techniques import (
    ATOMICS,
    BANK_CONFLICTS,
    CACHE_HINTS,
    COALESCING,
    DIVERGENCE,
    FEWER_INSTRUCTIONS,
    FUSION,
    GRID_SIZE,
    LOCAL_MEMORY,
    OCCUPANCY,
    PRECISION,
    PREFETCH,
    REGISTER_TILING,
    SHARED_TILING,
    SYNCHRONISATION,
    TENSOR_CORES,
    VECTORISED,
    techniques_of,
)
from profiler.cli.output import open_store
from profiler.compare.comparison import compare
from profiler.compare.resolve_names import side_of_report
from profiler.evidence.gpu_arch import ARCHITECTURES
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.explain.explanation import explain
from profiler.explain.time_identity import BALANCE, FULL, PARALLELISM, WAITING, WAITING_UNDIVIDED, WORK
from profiler.reports import read
from profiler.reports.rule_changes import rank_rules

TABLE = load_metrics()
MAIN_QUESTIONS = ("limit", "waiting")  # by the id of the statement
# What each of NVIDIA's rules asks for, by how its name begins.
NSIGHT_RULES = {
    "Uncoalesced Global": (COALESCING,),
    "Memory Cache Access Pattern": (COALESCING,),
    "L1TEX Global": (COALESCING,),
    "L2 Store Access": (COALESCING,),
    "L2 Load Access": (COALESCING,),
    "Shared Memory Conflicts": (BANK_CONFLICTS,),
    "Shared Load Bank": (BANK_CONFLICTS,),
    "Shared Store Bank": (BANK_CONFLICTS,),
    "Uncoalesced Shared": (BANK_CONFLICTS,),
    "Occupancy": (OCCUPANCY,),
    "Achieved Occupancy": (OCCUPANCY,),
    "Theoretical Occupancy": (OCCUPANCY,),
    "Issue Slot": (OCCUPANCY,),
    "Launch Configuration": (GRID_SIZE, OCCUPANCY),
    "Small Grid": (GRID_SIZE,),
    "Tail Effect": (GRID_SIZE,),
    "Workload Imbalance": (GRID_SIZE,),
    "FP32/64 Instructions": (PRECISION, FEWER_INSTRUCTIONS),
    "FP32 Non-Fused": (FEWER_INSTRUCTIONS,),
    "FP64 Non-Fused": (FEWER_INSTRUCTIONS,),
    "High Pipe Utilization": (FEWER_INSTRUCTIONS,),
    "Roofline": (PRECISION,),
    "Thread Divergence": (DIVERGENCE,),
    "CPI Stall 'Barrier'": (SYNCHRONISATION,),
    "Barrier Stalls": (SYNCHRONISATION,),
    "DRAM": (FUSION, SHARED_TILING),
    "Memory L2 Compression": (CACHE_HINTS,),
    "Local": (LOCAL_MEMORY,),
}
# The causes that a change of the source can have in the split of the time. Of a stall reason any.
CAUSES = {
    FEWER_INSTRUCTIONS: {WORK},
    PRECISION: {WORK, WAITING},
    TENSOR_CORES: {WORK, WAITING},
    REGISTER_TILING: {WORK, WAITING},
    VECTORISED: {WORK, WAITING},
    COALESCING: {WAITING},
    SHARED_TILING: {WAITING, WORK},
    BANK_CONFLICTS: {WAITING},
    PREFETCH: {WAITING},
    CACHE_HINTS: {WAITING},
    SYNCHRONISATION: {WAITING},
    ATOMICS: {WAITING, WORK},
    LOCAL_MEMORY: {WAITING, WORK},
    FUSION: {WORK, WAITING},
    DIVERGENCE: {WORK, WAITING},
    OCCUPANCY: {PARALLELISM, BALANCE},
    GRID_SIZE: {BALANCE, PARALLELISM},
}


# What the idea of a version changes of its parent's code, by kernels/catalog.toml. A version that mends a
# rejected one is held against the good one before it.
LINEAGE = (
    ("v1", "v2b", {PREFETCH}),
    ("v1", "flashcore_vec", {VECTORISED}),
    ("v2b", "v2c_v1", {TENSOR_CORES}),
    ("v2c_v3", "v2c_v4", {TENSOR_CORES}),
    ("v2c_v4", "v2c_v5", {TENSOR_CORES}),
    ("v2c_v5", "v2d_a", {REGISTER_TILING}),
    ("v2d_a", "v2d_b", {BANK_CONFLICTS}),
    ("v2d_b", "v2d_c", {PREFETCH}),
    ("v2d_c", "v2e", {TENSOR_CORES, PREFETCH}),
    ("flashcore_vec", "flashcore_wmma", {TENSOR_CORES}),
    ("flashcore_wmma", "fp8_stage_c", {PRECISION}),
)


class Outcome(NamedTuple):
    """What is said of one step, in the words of the vocabulary."""

    name: str
    repository: str
    change: frozenset[str]
    also: frozenset[str]
    is_faster: bool
    levers: tuple[tuple[str, ...], ...]  # what each lever asks for, the first one first
    is_unknown: bool  # what limits the time
    nsight: tuple[tuple[str, ...], ...]
    cause: str | None  # the largest of the split; None where the cycles are not split
    rules: tuple[tuple[str, tuple[str, ...]], ...]  # every statement with a lever: its id and techniques

    def meets(self, levers: Sequence[Iterable[str]], first: int) -> bool:
        """Whether one of the first levers asks for what was changed."""
        return any(self.change.intersection(techniques) for techniques in levers[:first])

    @property
    def is_false(self) -> bool:
        """Whether one of the first three levers asks for a change that made the kernel slower."""
        return not self.is_faster and self.meets(self.levers, 3)

    @property
    def mark(self) -> str:
        """How the step went, in a word."""
        if not self.is_faster:
            return "false" if self.is_false else ""
        return "hit@1" if self.meets(self.levers, 1) else "hit@3" if self.meets(self.levers, 3) else "missed"

    @property
    def agrees(self) -> bool:
        """Whether the largest cause is one that the change can have."""
        kinds = {kind for technique in self.change | self.also for kind in CAUSES.get(technique, ())}
        return self.cause is not None and self.cause.partition(":")[0] in kinds


def replay(step: dict[str, Any], folder: Path) -> Outcome:
    """Advice on the earlier report of a step, and the explanation of the change."""
    before, after = (_side(folder / f"{step[side]['sha256']}.ncu-rep") for side in "ab")
    insights = find_insights(Subject(before.label, ComparedSide(before)), TABLE, _pattern(step["a"]))
    a, b = (
        choose_launch(side, TABLE, _pattern(step[name])).launch
        for side, name in ((before, "a"), (after, "b"))
    )
    return Outcome(
        step["id"],
        step["repo"],
        frozenset(step["change"]),
        frozenset(step.get("also", ())),
        step["direction"] == "faster",
        _levers(insights),
        any(
            statement.kind == "unknown" and statement.id in MAIN_QUESTIONS
            for statement in insights.statements
        ),
        tuple(filter(None, map(_of_rule, (rule.name for rule in rank_rules(a.rules) if rule.kind != "ok")))),
        _cause(before, a, after, b),
        _rules(before, a),
    )


def _pattern(side: dict[str, Any]) -> str | None:
    return f"regex:^{side['kernel']}$" if side["kernel"] else None


@lru_cache(maxsize=4)
def _side(path: Path) -> Side:
    return side_of_report(read.read_report(path), path.stem[:8])


def _levers(insights: Insights) -> tuple[tuple[str, ...], ...]:
    levers = {
        statement.lever: statement.techniques or techniques_of(statement.lever)
        for statement in reversed(insights.statements)
        if statement.lever
    }
    return tuple(reversed(levers.values()))


def _rules(side: Side, launch: Launch) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """All that is advised on the launch, also what stands below the six statements that are shown."""
    answers = launch_statements(ComparedSide(side), launch, TABLE)
    return tuple(
        (answer.id, answer.techniques) for answer in answers if isinstance(answer, Statement) and answer.lever
    )


def _of_rule(name: str) -> tuple[str, ...]:
    return next((techniques for words, techniques in NSIGHT_RULES.items() if name.startswith(words)), ())


def _cause(before: Side, a: Launch, after: Side, b: Launch) -> str | None:
    """The largest cause of the change, where the cycles are split; single stall reasons need full sets."""
    # The two kernels may have different names: under one name they are a pair.
    renamed = replace(b, function=a.function, demangled=a.demangled, mangled=a.mangled)
    comparison = compare(_with_only(before, a), _with_only(after, renamed), TABLE)
    explanations = explain(comparison, TABLE)
    if not explanations:
        return None
    split = explanations[0].split
    if split is None or split.depth not in (FULL, WAITING_UNDIVIDED) or split.flagged:
        return None
    return max(split.terms, key=lambda term: abs(term.us)).cause


def _with_only(side: Side, launch: Launch) -> Side:
    return replace(side, launches=(replace(launch, ordinal=0, nvtx=()),))


def print_table(outcomes: Sequence[Outcome]) -> None:
    """The numbers, a line each."""
    faster = [outcome for outcome in outcomes if outcome.is_faster]
    split = [outcome for outcome in outcomes if outcome.cause is not None]
    print(
        f"{len(outcomes)} steps of {len({outcome.repository for outcome in outcomes})} repositories, "
        f"{len(faster)} faster"
    )
    for label, count, of in (
        ("hit@1", sum(outcome.meets(outcome.levers, 1) for outcome in faster), faster),
        ("hit@3", sum(outcome.meets(outcome.levers, 3) for outcome in faster), faster),
        ("no lever", sum(not outcome.levers for outcome in faster), faster),
        ("false levers", sum(outcome.is_false for outcome in outcomes), outcomes),
        ("main question unknown", sum(outcome.is_unknown for outcome in outcomes), outcomes),
        ("explain agrees", sum(outcome.agrees for outcome in split), split),
        ("no split", len(outcomes) - len(split), outcomes),
        ("NVIDIA's rules, hit@1", sum(outcome.meets(outcome.nsight, 1) for outcome in faster), faster),
        ("NVIDIA's rules, hit@3", sum(outcome.meets(outcome.nsight, 3) for outcome in faster), faster),
    ):
        print(f"{label:24}{count:4} of {len(of)}")


def print_lineage() -> None:
    """Whether advice from static and modelled facts of a version names the idea of the next one."""
    met = {1: 0, 3: 0}
    for version, child, idea in LINEAGE:
        insights = find_insights(load_subject(f"attention/{version}", open_store, TABLE), TABLE)
        levers = _levers(insights)
        ranks = [rank for rank, techniques in enumerate(levers, 1) if idea.intersection(techniques)]
        for first in met:
            met[first] += bool(ranks and ranks[0] <= first)
        where = f"lever {ranks[0]}" if ranks else "not among"
        told = " | ".join("+".join(techniques) or "?" for techniques in levers) or "none"
        print(f"{version:15}{child:15}{'+'.join(sorted(idea)):36}{where:10} {told}")
    print(f"hit@1 {met[1]} of {len(LINEAGE)}, hit@3 {met[3]} of {len(LINEAGE)}")


def write_track_record(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write how often each rule helped beside the rules."""
    helped: dict[str, list[int]] = {}
    for outcome in outcomes:
        for name, techniques in outcome.rules:
            counts = helped.setdefault(name, [0, 0])
            counts[0] += outcome.is_faster and bool((outcome.change | outcome.also).intersection(techniques))
            counts[1] += 1
    head, _, _ = path.read_text("utf-8").partition("\nSTEPS,")
    repositories = len({outcome.repository for outcome in outcomes})
    digest = record_digest(
        len(outcomes), repositories, {name: (met, given) for name, (met, given) in helped.items()}
    )
    lines = [
        f"STEPS, REPOSITORIES = {len(outcomes)}, {repositories}",
        f"CHIPS = {tuple(ARCHITECTURES)!r}  # that the rules knew then",
        f'RULES_DIGEST = "{rules_digest(ARCHITECTURES)}"  # of the rules that the steps were replayed with',
        f'RECORD_DIGEST = "{digest}"  # of the numbers here, which are counted and never edited',
        "# By the id of the statement: in how many steps its lever helped, of those in which it was given.",
        "HELPED: dict[str, tuple[int, int]] = {",
        *(f'    "{name}": ({met}, {given}),' for name, (met, given) in sorted(helped.items())),
        "}",
    ]
    path.write_text("\n".join((head, *lines)) + "\n", "utf-8")


def main() -> None:
    """Replay the steps and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("reports", type=Path, nargs="?", help="folder of reports, named by their SHA-256")
    parser.add_argument("steps", type=Path, nargs="*", help="the labelled steps")
    parser.add_argument("--lineage", action="store_true", help="the lineage's own versions, without a GPU")
    parser.add_argument("--steps", dest="each", action="store_true", help="a line a step as well")
    parser.add_argument("--write", action="store_true", help="write profiler/advice/track_record.py")
    arguments = parser.parse_args()
    if arguments.lineage:
        print_lineage()
        return
    if not arguments.reports or not arguments.steps:
        parser.error("give REPORTS and STEPS.json, or --lineage")
    steps = [step for path in arguments.steps for step in json.loads(path.read_text("utf-8"))]
    outcomes = [replay(step, arguments.reports) for step in steps]
    for outcome in outcomes if arguments.each else ():
        levers = " | ".join("+".join(techniques) or "?" for techniques in outcome.levers) or "none"
        change = "+".join(sorted(outcome.change))
        print(f"{outcome.name:16}{outcome.mark:7}{change:43}{levers}; {outcome.cause or 'no split'}")
    print_table(outcomes)
    if arguments.write:
        write_track_record(outcomes, Path(__file__).parent.parent / "profiler/advice/track_record.py")


if __name__ == "__main__":
    main()
