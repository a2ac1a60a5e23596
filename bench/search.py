"""How searches select under noise, and whether insights help a generator that obeys them: simulated figures.

python bench/search.py [RUNS]             # 100 runs of 200 candidates, 20 seeds: some minutes
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiler.evidence.values import Evidence
from profiler.search.archive import confirmed, replay
from profiler.search.generator import CandidateProposal, Request
from profiler.search.journal import Journal
from profiler.search.record import PairVerdict, SearchRecord, Status
from profiler.search.variants import macro_words, write_manifest
from profiler.statistics.live_pair import judge_live_pair
from profiler.statistics.verdict import Verdict
from tests.search.simulated import WORKLOAD, landscape, make_search, run_search

CANDIDATES = 200
NOISE = 0.02  # sd of a sample, as a share
ROUNDS, SAMPLES = 25, 4  # what `collect` takes, a fresh process a round
_MACRO = re.compile(r"^- ([A-Z]+) = (\w+), of ([\w, ]+) \(", re.M)
_LEVER = re.compile(r"^   lever: (.*)$", re.M)


@dataclass(frozen=True)
class Samples:
    """The samples of one side of a live pair."""

    ns: np.ndarray
    rounds: np.ndarray
    clocks_mhz: tuple[float, ...] = ()
    throttled: tuple[int, ...] = ()
    processes: object = ()


@dataclass(frozen=True)
class Selection:
    """What became of many searches."""

    runs: int
    changed: int  # searches in which an elite changed after the seats were filled
    found: int  # in which the planted winner took a seat
    by_float: int  # in which one would have changed by the smallest mean


def measure(rng: np.random.Generator, ns: float, rival_ns: float) -> PairVerdict:
    """A candidate beside an elite in alternating rounds, judged as `compare` judges them."""
    rounds = np.repeat(np.arange(ROUNDS), SAMPLES)
    sides = [
        Samples(level * np.exp(NOISE * rng.standard_normal(rounds.size)), rounds, processes=rounds)
        for level in (rival_ns, ns)
    ]
    decision = judge_live_pair(*sides)
    ratio = None if decision.effect is None else 1 + decision.effect
    return PairVerdict(decision.verdict, Evidence.MEASURED, ratio)


def select(runs: int, planted: float = 0.0, seed: int = 1) -> Selection:
    """Searches of candidates of equal speed, one of which is faster by a share where `planted` says so."""
    changed = found = by_float = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        winner = int(rng.integers(10, CANDIDATES)) if planted else -1
        records: list[SearchRecord] = []
        true_ns: dict[int, float] = {}
        floats: list[float] = []
        float_changed = has_changed = False
        for number in range(CANDIDATES + 1):
            true_ns[number] = 100_000.0 * (1 - planted if number == winner else 1.0)
            mean = true_ns[number] * (1 + NOISE * rng.standard_normal() / np.sqrt(ROUNDS * SAMPLES))
            archive = replay(records)
            verdicts = {}
            if len(archive.elites) == 3:
                rival = archive.elites[-1]
                verdict = measure(rng, true_ns[number], true_ns[rival.number])
                if verdict.verdict is Verdict.BETTER:
                    verdict = confirmed(verdict, measure(rng, true_ns[number], true_ns[rival.number]))
                verdicts[rival.content_id] = verdict
                float_changed |= mean < max(floats)
                floats = sorted([*floats, mean])[:3]
            else:
                floats.append(mean)
            record = SearchRecord(
                number,
                Status.VALID,
                order=number,
                content_id=f"source {number}",
                code_id=f"code {number}",
                times={WORKLOAD: {"likely_ns": mean, "evidence": "measured"}},
                verdicts=verdicts,
            )
            records = [*(r for r in records if r.number in {e.number for e in archive.elites}), record]
            took = record.number in {elite.number for elite in replay(records).elites}
            found += took and number == winner
            has_changed |= took and len(archive.elites) == 3 and number != winner
        changed += has_changed
        by_float += bool(float_changed)
    return Selection(runs, changed, found, by_float)


class ObedientGenerator:
    """Reads a prompt and does what it says: switches a macro that the first insights name; else any macro."""

    name = "obedient"

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """See profiler.search.Generator."""
        assert request.space is not None
        rng = random.Random(f"{request.rng.random()}")
        macros = {name: (now, values.split(", ")) for name, now, values in _MACRO.findall(request.prompt)}
        named = [
            [word for word in line.split(", ") if word in macros] for line in _LEVER.findall(request.prompt)
        ]
        choices = next((names for names in named if names), list(macros))
        if rng.random() < 0.3:  # the second insight, now and then
            choices = next((names for names in named[1:] if names), choices)
        before = {name: now for name, (now, _) in macros.items()}
        after = dict(before)
        lever = rng.choice(choices)
        after[lever] = rng.choice([value for value in macros[lever][1] if value != before[lever]])
        assert request.version.source is not None
        for path in request.parent_folder.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        levers = macro_words(before, after)
        write_manifest(folder, request.catalog.family, request.version, request.space, after, levers)
        return CandidateProposal(levers, f"{lever}: as asked", after)


@dataclass(frozen=True)
class Arm:
    """Searches with one share of prompts without insights."""

    best_us: list[float]  # at the end, by seed
    until_good: list[int]  # candidates until one within 5 % of the landscape's best; the total where none


def obey(seeds: int, total: int, control_share: float) -> Arm:
    """Searches in the modelled landscape by the generator that does what prompts say."""
    rows = [row["time"]["likely_ns"] for row in landscape().values() if row["time"] and not row["failed"]]
    good_ns = 1.05 * min(rows)
    best, until = [], []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            journal: Journal = make_search(Path(folder), seed=seed, control_share=control_share)
            run_search(journal, total, generator=ObedientGenerator())
            times = [
                (record.number, record.time_ns(WORKLOAD) or np.inf)
                for record in journal.archive().records
                if record.is_valid
            ]
        best.append(min(ns for _, ns in times) / 1e3)
        until.append(next((number for number, ns in times if ns <= good_ns), total))
    return Arm(best, until)


def main() -> None:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    equal, winner = select(runs), select(runs, planted=0.03, seed=2)
    changed, by_float, found = (f"{n / runs:.1%}" for n in (equal.changed, equal.by_float, winner.found))
    print(f"{runs} searches of {CANDIDATES} equal candidates, {NOISE:.0%} noise:")
    print(f"  an elite changed in {changed}; by the smallest mean in {by_float}")
    print(f"  a planted 3 % winner took a seat in {found}")
    for total in (10, 20, 30):
        with_insights, control = (obey(20, total, share) for share in (0.0, 1.0))
        wins = sum(a < b for a, b in zip(with_insights.best_us, control.best_us, strict=True))
        ties = sum(a == b for a, b in zip(with_insights.best_us, control.best_us, strict=True))
        print(
            f"{total} candidates, 20 seeds: best {np.median(with_insights.best_us):.1f} µs with insights, "
            f"{np.median(control.best_us):.1f} without (better on {wins}, equal on {ties}); until within "
            f"5 %: {np.median(with_insights.until_good):.1f} and {np.median(control.until_good):.1f}"
        )


if __name__ == "__main__":
    main()
