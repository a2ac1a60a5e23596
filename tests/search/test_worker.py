"""The loop: what is recorded, what is judged, kills, several workers, and that a replay gives the same."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.judge.judgement import CandidateJudgement
from profiler.search.archive import replay
from profiler.search.evaluation import Progress
from profiler.search.generator import CallableGenerator
from profiler.search.journal import Journal
from profiler.search.named_generator import load_generator
from profiler.search.record import Status
from profiler.search.worker import Worker, WorkerLimits
from profiler.statistics.verdict import Verdict
from tests.search.simulated import LandscapeJudge, landscape, make_search, run_search, summary

ROOT = Path(__file__).resolve().parent.parent.parent


def apart(*words: object) -> str:
    """What tests.search.simulated says in a process of its own."""
    command = [sys.executable, "-m", "tests.search.simulated", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_flags_find_the_swizzle_in_the_modelled_landscape(tmp_path: Path) -> None:
    journal = make_search(tmp_path)
    run_search(journal, 30)
    archive = journal.archive()
    assert archive.seed is not None
    assert archive.seed.macros["SWIZZLE"] == "0"
    best = archive.elites[0]
    assert best.macros["SWIZZLE"] == "1"
    assert best.facts["bank_conflicts"] == 0
    assert best.time_ns("2x8x2048x64") < 0.6 * archive.seed.time_ns("2x8x2048x64")  # type: ignore[operator]


@pytest.mark.slow
def test_nothing_is_proposed_twice_and_the_end_is_said(tmp_path: Path) -> None:
    journal = make_search(tmp_path, seed=3)
    assert run_search(journal, 10_000) == "every combination of the macros was tried"
    records = journal.archive().records
    assert len({record.content_id for record in records}) == len(records) == len(landscape())


@pytest.mark.slow
def test_an_elite_falls_only_to_better(tmp_path: Path) -> None:
    journal = make_search(tmp_path, seed=5)
    run_search(journal, 40)
    archive = journal.archive()
    replaced = [change for change in archive.changes if change.replaced is not None]
    assert replaced
    for change in replaced:
        assert change.replaced is not None
        loser = archive.by_number[change.replaced]
        verdict = archive.by_number[change.number].verdicts[loser.content_id]
        assert verdict.verdict is Verdict.BETTER
        assert verdict.ratio is not None
        assert verdict.ratio < 0.85  # under the model's error nobody is replaced


@pytest.mark.slow
def test_the_journal_replays_to_the_same_archive_in_any_order(tmp_path: Path) -> None:
    journal = make_search(tmp_path)
    run_search(journal, 30)
    archive, records = journal.archive(), journal.records()
    random.Random(1).shuffle(records)
    assert replay([*records, records[0]]) == archive
    assert Journal(journal.folder).archive() == archive


@pytest.mark.slow
def test_two_runs_of_one_seed_are_one_search(tmp_path: Path) -> None:
    a, b = (make_search(tmp_path / name, seed=9) for name in "ab")
    run_search(a, 25)
    for _ in range(5):
        Worker(b, LandscapeJudge(), load_generator("flags", 10)).run(WorkerLimits(candidates=5, total=25))
    run_search(b, 25)
    assert summary(a) == summary(b)


@pytest.mark.slow
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    undisturbed, killed = (make_search(tmp_path / name, seed=2) for name in ("whole", "killed"))
    run_search(undisturbed, 45)
    assert int(apart("kills", killed.folder, 45, 50)) == 50
    done_by_killed = len(killed.records())
    run_search(killed, 45)
    assert 5 < done_by_killed < 46  # they were killed in the middle of it
    assert summary(killed) == summary(undisturbed)


@pytest.mark.slow
def test_two_workers_share_a_search(tmp_path: Path) -> None:
    journal = make_search(tmp_path, seed=4)
    apart("together", journal.folder, 40, 2)
    records = journal.records()
    assert sorted(record.number for record in records) == list(range(41))
    judged_ones = [record for record in records if record.status is Status.VALID]
    assert len({record.content_id for record in judged_ones}) == len(judged_ones)
    assert len({record.code_id for record in judged_ones}) == len(judged_ones)
    assert journal.working() == []
    random.Random(2).shuffle(records)
    assert replay(records) == journal.archive()


def test_a_stop_ends_workers_after_their_candidate(tmp_path: Path) -> None:
    journal = make_search(tmp_path)
    worker = Worker(
        journal, LandscapeJudge(), load_generator("flags", 10), lambda _line: journal.request_stop()
    )
    assert worker.run() == "it was told to stop"
    assert len(journal.records()) == 1
    journal.allow_work()
    run_search(journal, 2)
    assert len(journal.records()) == 3


def copy_of_parent(prompt: str, parent: Path, candidate: Path) -> None:
    """A generator that changes nothing."""


def comment(prompt: str, parent: Path, candidate: Path) -> str:
    """A generator whose candidate differs in a comment alone."""
    source = candidate / "v2d.cu"
    source.write_text(source.read_text() + "// another one\n")
    return "to see whether\nthe machine code is recognised"


def test_the_same_source_and_the_same_code_are_recognised(tmp_path: Path) -> None:
    journal = make_search(tmp_path)
    run_search(journal, 1, generator=CallableGenerator(copy_of_parent))
    same = journal.archive().by_number[1]
    assert (same.status, same.same_as, same.seconds.keys()) == (Status.SAME_SOURCE, 0, {"generator"})
    run_search(journal, 2, generator=CallableGenerator(comment))
    same = journal.archive().by_number[2]
    assert (same.status, same.same_as) == (Status.SAME_CODE, 0)
    assert same.content_id != journal.archive().by_number[0].content_id
    assert "judge" not in same.seconds
    assert same.why == "to see whether\nthe machine code is recognised"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no idea')", "ValueError: no idea"),
        ("(candidate / 'candidate.toml').unlink()", "there is no manifest"),
        ("(candidate / 'candidate.toml').write_text('family = [')", "candidate.toml"),
        ("(candidate / 'candidate.toml').write_bytes(b'\\xff\\x00')", "candidate.toml"),
        ("(candidate / 'v2d.cu').unlink()", "v2d.cu"),
    ],
)
def test_what_a_generator_does_wrong_costs_an_iteration(tmp_path: Path, body: str, reason: str) -> None:
    def broken(prompt: str, parent: Path, candidate: Path) -> None:
        exec(body, {"candidate": candidate})

    journal = make_search(tmp_path)
    run_search(journal, 1, generator=CallableGenerator(broken))
    record = journal.archive().by_number[1]
    assert record.status is Status.NO_CANDIDATE
    assert record.stage == "generator"
    assert reason in record.reason
    assert run_search(journal, 2) == "all 2 candidates are there"  # the search goes on


@pytest.mark.slow
def test_slower_than_every_elite_goes_no_further(tmp_path: Path) -> None:
    journal = make_search(tmp_path, seed=5)
    run_search(journal, 40)
    archive = journal.archive()
    slower = [record for record in archive.records if record.status is Status.SLOWER]
    assert slower
    for record in slower:
        assert "judge" not in record.seconds
        assert {verdict.verdict for verdict in record.verdicts.values()} >= {Verdict.WORSE}


class Counting(LandscapeJudge):
    """Counts what is judged."""

    def __init__(self) -> None:
        super().__init__()
        self.judged_ones: list[str] = []
        self.rivals: list[Path | None] = []

    def judge(self, folder: Path, rival: Path | None, progress: Progress) -> CandidateJudgement:
        self.judged_ones.append(folder.name)
        self.rivals.append(rival)
        return super().judge(folder, rival, progress)


def run_batches(journal: Journal, total: int, judge: LandscapeJudge, batch: int) -> None:
    Worker(journal, judge, load_generator("flags", 10), batch=batch).run(WorkerLimits(total=total))


@pytest.mark.slow
def test_a_batch_is_screened_first_and_fewer_candidates_are_judged(tmp_path: Path) -> None:
    """Where the fastest of twelve are judged first, more of the others are slower than every elite."""
    judged_ones, best = {1: 0, 12: 0}, {1: 0.0, 12: 0.0}
    for batch in judged_ones:
        for seed in range(6):
            judge = Counting()
            journal = make_search(tmp_path / str(batch), seed=seed)
            run_batches(journal, 36, judge, batch)
            archive = journal.archive()
            assert [r.number for r in sorted(archive.records, key=lambda r: r.number)] == list(range(37))
            assert journal.working() == []
            judged_ones[batch] += len(judge.judged_ones)
            best[batch] += archive.elites[0].time_ns("2x8x2048x64") or 0.0
    assert judged_ones[12] < 0.8 * judged_ones[1]
    assert best[12] < 1.15 * best[1]  # no worse than the model's error


def test_a_candidate_is_judged_beside_the_slowest_elite(tmp_path: Path) -> None:
    judge, journal = Counting(), make_search(tmp_path)
    run_search(journal, 3, judge)
    assert judge.rivals[0] is None  # the seed
    seed = journal.archive().by_number[0]
    assert judge.rivals[1] == journal.candidate_folder(seed.content_id)
