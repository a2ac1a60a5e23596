"""Noise floors out of an index: which A/A pairs make one, for which calls, and who judges by it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, NOISE, Labels, Result, Run, Samples
from profiler.cli import main
from profiler.compare import latency_words, noise_floor
from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS, NoiseFloor, judge_stored_baseline
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store

START = datetime(2026, 5, 1, tzinfo=UTC)
WARM, COLD = "events; cache warm; clock none", "events; cache cold; clock none"
MS, US = 1e6, 1e3
KEY = noise_floor.FloorKey("H100", WARM, "long", "fam", "580")


def samples(level_ns: float, seed: int, mode: str = WARM) -> Samples:
    rng = np.random.default_rng(seed)
    ns = level_ns * np.exp(rng.normal(0, 0.001, 40))
    return Samples(mode, tuple(ns.tolist()), tuple(range(40)))


def sessions(level_ns: float, sd: float, pairs: int, mode: str = WARM, seed: int = 3) -> tuple[Samples, ...]:
    """Two a pair, whose log-ratios have a standard deviation of `sd`."""
    levels = level_ns * np.exp(np.random.default_rng(seed).normal(0, sd / math.sqrt(2), 2 * pairs))
    return tuple(samples(level, seed * 1000 + number, mode) for number, level in enumerate(levels))


def run(
    *blocks: Sequence[Samples],
    day: int = 0,
    version: str = "v1",
    workload: str = "b1",
    gpu: str = "H100",
    purpose: str | None = NOISE,
) -> Run:
    """A run of one version, a result of which holds all blocks."""
    created = START + timedelta(days=day)
    told = {"gpu": gpu, "driver": "580", "compute_capability": "9.0"}
    held = tuple(one for block in blocks for one in block)
    result = Result("fam", version, workload, {"dtype": "fp16"}, samples=held)
    more = {"purpose": purpose} if purpose else {}
    return Run(f"{created:%Y%m%dT%H%M%S}-{version}-{workload}", COLLECT, created, told | more, (result,))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "index.db")
    yield opened
    opened.close()


def test_a_floor_holds_for_its_gpu_mode_and_length_of_call_alone(store: Store) -> None:
    store.add(
        run(sessions(2 * MS, 0.01, MIN_FLOOR_PAIRS), sessions(40 * US, 0.03, MIN_FLOOR_PAIRS, COLD)), {}
    )
    lookup = noise_floor.floor_lookup(lambda: store)
    long, short = lookup("H100", WARM, 5 * MS), lookup("H100", COLD, 60 * US)
    assert long is not None
    assert short is not None
    assert long.pairs == short.pairs == MIN_FLOOR_PAIRS
    assert 0.005 < long.sd < 0.02
    assert short.sd > 2 * long.sd
    for place in (("A100", WARM, 5 * MS), ("H100", COLD, 5 * MS), ("H100", WARM, 60 * US)):
        assert lookup(*place) is None


def test_the_floor_of_another_family_or_driver_is_named_and_judges_nothing(store: Store) -> None:
    store.add(run(sessions(2 * MS, 0.01, MIN_FLOOR_PAIRS)), {})
    lookup = noise_floor.floor_lookup(lambda: store)
    for family, driver, whose in (
        ("fam", "580", ""),
        ("fam", "", ""),
        ("softmax", "580", "family fam"),
        ("fam", "570", "driver 580"),
        ("softmax", "570", "family fam and driver 580"),
    ):
        floor = lookup("H100", WARM, 2 * MS, family, driver)
        assert floor is not None
        assert floor.differs_in == whose
        assert floor.judges == (not whose)
    other_family = lookup("H100", WARM, 2 * MS, "softmax", "580")
    decision = judge_stored_baseline([2e6], [2.6e6], other_family)
    assert decision.verdict is Verdict.UNCLEAR
    assert "the only noise floor here is of family fam" in decision.reason
    words = latency_words.aa_floor(other_family, "v2", None, "events")
    assert words == "no A/A floor here but of family fam: `profiler collect --noise v2`"
    other = run(sessions(2 * MS, 0.01, MIN_FLOOR_PAIRS), day=1)
    store.add(replace(other, results=(replace(other.results[0], family="softmax"),)), {})
    found = lookup("H100", WARM, 2 * MS, "softmax", "580")
    assert found is not None
    assert found.judges


def test_pairs_of_several_runs_add_up_and_a_forgotten_run_is_none(store: Store) -> None:
    lookup = noise_floor.floor_lookup(lambda: store)
    store.add(run(sessions(MS * 2, 0.01, 12)), {})
    one = lookup("H100", WARM, 2 * MS)
    assert one is not None
    assert one.pairs == 12
    later = run(sessions(2 * MS, 0.01, 9, seed=4), day=1)
    store.add(later, {})
    both = lookup("H100", WARM, 2 * MS)
    assert both is not None
    assert both.pairs == 21, "read anew when the index changed"
    store.replace([(later, {}, Labels(hidden=True))])
    assert noise_floor.floors_by_key(store)[KEY].pairs == 12


def test_versions_that_went_through_the_same_sessions_are_no_more_pairs(store: Store) -> None:
    one = run(sessions(2 * MS, 0.01, 10))
    two = replace(one.results[0], version="v2", samples=sessions(3 * MS, 0.01, 10, seed=5))
    store.add(replace(one, results=(*one.results, two)), {})
    (floor,) = noise_floor.stored_floors(store)
    assert floor.floor.pairs == 10
    assert floor.versions == ("fam/v1", "fam/v2")
    assert not floor.judges


def test_a_session_without_a_time_makes_no_pair(store: Store) -> None:
    held = list(sessions(2 * MS, 0.01, 3))
    held[1] = replace(held[1], ns=(0.0, *held[1].ns[1:]))
    store.add(run(held), {})
    assert noise_floor.floors_by_key(store)[KEY].pairs == 2


def test_runs_and_their_index_give_the_same_floors(store: Store) -> None:
    runs = [
        run(sessions(2 * MS, 0.01, 7), sessions(2 * MS, 0.02, 7, COLD, 5)),
        run(sessions(40 * US, 0.03, 4), day=1),
    ]
    for one in runs:
        store.add(one, {})
    ours = noise_floor.floors_of_runs([*runs, run([samples(MS, 1), samples(MS, 2)], day=2, purpose=None)])
    theirs = noise_floor.stored_floors(store)
    assert [(one.key, one.floor.pairs) for one in ours] == [
        (("H100", COLD, "long", "fam", "580"), 7),
        (("H100", WARM, "short", "fam", "580"), 4),
        (("H100", WARM, "long", "fam", "580"), 7),
    ]
    for here, there in zip(ours, theirs, strict=True):
        assert here.floor.limit == pytest.approx(there.floor.limit, rel=1e-3), "the index keeps 32 bits"
        assert replace(here, floor=there.floor) == there


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One version timed on two days, the second time 4 % slower."""
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    for day, level in ((1, 2 * MS), (2, 2.08 * MS)):
        seal(tmp_path, run([samples(level, day)], day=day, purpose=None))
    return tmp_path


def seal(folder: Path, one: Run) -> str:
    root = location.open_root(str(folder))
    with bundle.importing(root):
        assert bundle.seal(root, one, {})
    return one.run_id


NAMES = ("20260502T000000-v1-b1", "20260503T000000-v1-b1")


def test_two_runs_without_a_floor_name_the_command_that_makes_one(
    two_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *NAMES, "--fail"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "to settle it: profiler collect --noise v1 --workloads b1" in told
    assert "no A/A floor here: `profiler collect --noise v1 --workloads b1`" in told
    assert main(["gate", NAMES[1], "--baseline", NAMES[0], "--json"]) == 3
    (unjudged,) = [
        one for one in json.loads(capsys.readouterr().out)["findings"] if one["concept"] == "latency"
    ]
    assert unjudged["next"] == "profiler collect --noise v1 --workloads b1"


@pytest.mark.slow
@pytest.mark.parametrize(("sd", "code", "word"), [(0.004, 1, "worse"), (0.03, 0, "same")])
def test_two_runs_are_judged_by_the_stored_floor_everywhere(
    two_runs: Path, capsys: pytest.CaptureFixture[str], sd: float, code: int, word: str
) -> None:
    seal(two_runs, run(sessions(2 * MS, sd, MIN_FLOOR_PAIRS, seed=4)))
    for command in (["compare", *NAMES, "--fail"], ["gate", NAMES[1], "--baseline", NAMES[0], "--json"]):
        assert main(command) == code
        told = " ".join(capsys.readouterr().out.split())
        assert "the noise floor of " in told
        assert f"({MIN_FLOOR_PAIRS} A/A pairs)" in told
    assert main(["compare", *NAMES, "--json"]) == 0
    (latency,) = json.loads(capsys.readouterr().out)["latency"]
    assert latency["verdict"] == word
    assert latency["floor"]["pairs"] == MIN_FLOOR_PAIRS
    assert latency["floor"]["limit"] == pytest.approx(latency["interval"][1] - latency["effect"], rel=0.1)
    assert latency["floor_command"] is None


@pytest.mark.slow
def test_insights_are_judged_by_the_stored_floor(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lookup = ["insights", NAMES[1], "--against", NAMES[0]]
    main(lookup)
    assert "`profiler collect --noise v1 --workloads b1`" in " ".join(capsys.readouterr().out.split())
    seal(two_runs, run(sessions(2 * MS, 0.004, MIN_FLOOR_PAIRS)))
    main(lookup)
    assert f"({MIN_FLOOR_PAIRS} A/A pairs)" in " ".join(capsys.readouterr().out.split())


def test_without_a_floor_the_words_name_the_command_that_makes_one() -> None:
    assert latency_words.aa_floor(None, "v2", "2x8 long", "events") == (
        "no A/A floor here: `profiler collect --noise v2 --workloads '2x8 long'`"
    )
    assert (
        latency_words.aa_floor(NoiseFloor(100, 0.001, (0.01,)), "v2", None, "events")
        == "A/A floor here ±1 % (100 pairs)"
    )
    few = latency_words.aa_floor(NoiseFloor(3, 0.001, (0.01,)), None, None, "events")
    assert few == "A/A floor of 3 pairs, 20 are needed: `profiler collect --noise VERSION`"
