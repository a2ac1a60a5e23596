"""A/A pairs collected by stand-in stages: sessions of their own, resumable, within a budget, and listed."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import NOISE
from profiler.cli import main
from profiler.collect import aa_sessions, measurement, plan
from profiler.collect.machine import Machine
from profiler.collect.staging import unfinished_runs
from profiler.compare import noise_floor
from profiler.store.index import Store
from tests.standins import GPU, SMALL, again, begin, calls, finish, prepare, tell

LARGE = {**SMALL, "len_q": 128, "len_kv": 128}
LABELS = ("1x1x64x64", "1x1x128x64")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return prepare(tmp_path, monkeypatch)


def noisy(folder: Path, pairs: int = 3, **changed: object):
    options = {"versions": ("one",), "workloads": (SMALL, LARGE), "pairs": pairs, "counters": False}
    return begin(folder, **{**options, **changed})


def test_the_two_sessions_of_a_pair_lie_half_the_collection_apart() -> None:
    assert aa_sessions.in_pairs([0, 1, 2, 3, 4, 5]) == [0, 3, 1, 4, 2, 5]
    assert aa_sessions.in_pairs([0, 1, 2, 3, 4]) == [0, 2, 1, 3, 4], "the last one has nobody"
    assert aa_sessions.in_pairs([7]) == [7]
    assert aa_sessions.in_pairs([]) == []


def test_a_budget_that_ends_early_leaves_every_workload_as_many_pairs() -> None:
    jobs = plan.plan_aa_sessions({label: ["a"] for label in LABELS}, pairs=20)
    timed = [job for job in jobs if job.stage == "time"]
    assert len(timed) == 80
    for cut in range(2, 80, 2):
        counts = Counter(job.workload for job in timed[:cut])
        assert set(counts.values()) == {cut // 2}


def test_every_session_is_one_process_for_all_workloads_and_the_run_holds_pairs(folder: Path) -> None:
    tell(folder, wobble=0.02)
    collection = noisy(folder)
    collection.run_jobs()
    assert [line for line in calls(folder) if line.startswith("lat")] == ["latency one x2"] * 6
    run = finish(folder, collection)
    assert run.provenance["purpose"] == NOISE
    assert "-noise-" in run.run_id
    assert run.provenance["settings"]["pairs"] == 3
    for result in run.results:
        assert len(result.samples) == 2 * 6, "two modes of six sessions"
        assert all(block.rounds == tuple(r for r in range(6) for _ in range(4)) for block in result.samples)
        first = [block.ns[0] for block in result.samples[:6]]
        sessions = [1000.0 * (1 + 0.02 * ((number * 0.618) % 1 - 0.5)) for number in range(1, 7)]
        assert first == pytest.approx([sessions[at] for at in (0, 3, 1, 4, 2, 5)])
    assert all(state["during"] == [] for state in run.provenance["states"]), "the samples hold the clocks"


def test_the_index_reads_a_noise_run_as_pairs_and_as_nobodys_latency(folder: Path) -> None:
    tell(folder, wobble=0.02)
    collection = noisy(folder)
    collection.run_jobs()
    run = finish(folder, collection)
    store = Store.open(folder / "index.db")
    store.add(run, {})
    floors = noise_floor.stored_floors(store)
    assert [stored.key for stored in floors] == [
        ("stand-in", f"events; cache {mode}; clock none", "short", "attention", "580")
        for mode in ("cold", "warm")
    ]
    assert {stored.floor.pairs for stored in floors} == {3}, "both workloads went through the same sessions"
    levels = [1002.5 + 20 * ((number * 0.618) % 1 - 0.5) for number in range(1, 7)]
    apart = [abs(math.log(b / a)) for a, b in zip(levels[:3], levels[3:], strict=True)]
    assert floors[0].floor.largest == pytest.approx(max(apart), rel=1e-3)
    assert store.latencies() == []
    store.close()


def test_a_killed_session_is_taken_anew_and_what_ended_is_not(folder: Path) -> None:
    collection = noisy(folder)
    collection.run_jobs()
    lost = [job for job in collection.planned if (job.stage, job.block) == ("time", 4)]
    assert len(lost) == 2
    for job in lost:
        collection.staging.forget(job.key)
    collection.staging.close()
    before = len(calls(folder))
    resumed = again(folder, collection.staging.run_id)
    resumed.run_jobs()
    assert calls(folder)[before:] == ["latency one x2"], "one session, both workloads"
    assert all(len(result.samples) == 12 for result in finish(folder, resumed).results)


def test_a_process_that_dies_costs_its_session_and_its_workloads_are_timed_apart(folder: Path) -> None:
    tell(folder, together__one="crash")
    collection = noisy(folder, pairs=1)
    collection.run_jobs()
    timed = [line for line in calls(folder) if line.startswith("lat")]
    assert timed == ["latency one x2", "latency one", "latency one"] * 2
    assert all(len(result.samples) == 4 for result in finish(folder, collection).results)


@pytest.mark.slow
def test_a_version_that_dies_alone_is_failed_and_left_out_of_later_sessions(folder: Path) -> None:
    tell(folder, together__one="crash", latency__one="exit")
    collection = noisy(folder)
    collection.run_jobs()
    assert [line for line in calls(folder) if line.startswith("lat")].count("latency one x2") == 1
    run = finish(folder, collection)
    assert {result.status for result in run.results} == {"failed"}
    assert "illegal address" in run.results[0].reason


@pytest.mark.slow
def test_a_budget_keeps_the_pairs_it_got(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in ("check", "time"):
        monkeypatch.setitem(plan.START_S, stage, 0.01)
    tell(folder, sleep__latency=0.05)
    collection = noisy(folder, pairs=40)
    collection.run_jobs(budget_s=2.0)
    run = finish(folder, collection)
    counts = {len(result.samples) // 2 for result in run.results}
    assert len(counts) == 1
    assert 1 < counts.pop() < 80
    assert any("the time budget" in words for words in run.provenance["left_out"])


# ---------------------------------------------------------------- the command


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "detect_machine", lambda counters=True: Machine(GPU, None))


def noise(folder: Path, *words: str, version: str = "one") -> int:
    return main(["collect", "--noise", *([version] if version else []), "--catalog", str(folder), *words])


def test_without_a_gpu_one_line_says_so_and_nothing_is_begun(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measurement, "detect_machine", lambda counters=True: Machine(None, None))
    assert noise(folder) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("profiler: no GPU here")
    assert calls(folder) == []
    assert unfinished_runs(LocalRoot(folder / "data")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_pairs_are_collected_told_and_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(folder, wobble=0.02)
    options = ["--workloads", "1x8x512x64", "--rounds", "2", "--samples", "2"]
    assert noise(folder, *options, "--pairs", "12", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(floor["mode"], floor["pairs"], floor["limit"]) for floor in document["floors"]] == [
        ("events; cache cold; clock none", 12, None),
        ("events; cache warm; clock none", 12, None),
    ]
    assert noise(folder, *options, "--pairs", "8", "--out", str(folder / "noise.zip")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "8 of 20" in out
    assert (folder / "noise.zip").stat().st_size > 500
    assert main(["list", "noise", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(floor["pairs"], len(floor["runs"])) for floor in listed["floors"]] == [(20, 2), (20, 2)]
    assert 0.005 < listed["floors"][0]["limit"] < 0.08
    assert listed["floors"][0]["detectable"] > listed["floors"][0]["limit"]
    assert listed["missing"] == []
    assert main(["list", "noise"]) == 0
    assert "±" in capsys.readouterr().out


def test_the_list_names_the_command_for_calls_without_a_floor(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = begin(folder)
    collection.run_jobs()
    finish(folder, collection)
    assert main(["list", "noise"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no A/A pairs (`profiler collect --noise`)" in out
    modes = "events; cache cold; clock none and events; cache warm; clock none"
    command = "profiler collect --noise one --workloads 1x1x64x64"
    assert f"missing: short calls on stand-in ({modes}): {command}" in out


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_collection_says_that_it_has_no_floor_until_it_has_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--catalog", str(folder), "--workloads", "1x8x512x64", "--rounds", "4"]
    collect = ["collect", "one", *options, "--no-counters", "--no-model"]
    assert main(collect) == 0
    words = "no A/A floor for short calls here"
    assert words in capsys.readouterr().out
    tell(folder, wobble=0.02)  # equal samples would be copies, of which no noise is learnt
    assert noise(folder, *options[2:], "--samples", "2") == 0
    capsys.readouterr()
    assert main(collect) == 0
    assert words not in capsys.readouterr().out


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which version?"),
        (["v2"], "v2: only a correct version has a latency"),
        (["v2d_c", "--workloads", "9x9"], "no workload 9x9"),
        (["v2d_c", "--budget", "soon"], "--budget"),
        (["v2d_c", "--seal"], "--seal needs --resume"),
    ],
)
def test_a_wrong_question_is_answered_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["collect", "--noise", *words]) == 2
    assert message in capsys.readouterr().err
    assert unfinished_runs(LocalRoot(folder / "data")) == []


@pytest.mark.usefixtures("gpu")
def test_by_default_three_workloads_of_different_size_are_measured(folder: Path) -> None:
    assert noise(folder, "--pairs", "1", "--rounds", "1", "--samples", "1") == 0
    root = LocalRoot(folder / "data")
    (run_id,) = bundle.list_runs(root)
    run = bundle.load_run(root, run_id)
    assert [result.workload for result in run.results] == ["1x8x512x64", "2x8x2048x64 causal", "2x8x2048x128"]
