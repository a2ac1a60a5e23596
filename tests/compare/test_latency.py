"""Latencies of two sides: which samples are compared, by which rule, and what the command line says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from profiler import cli
from profiler.bundles import bundle
from profiler.bundles.location import open_root as data_root
from profiler.bundles.run import COLLECT, Result, Run, Samples
from profiler.compare.comparison import Comparison, compare
from profiler.compare.noise_model import NoiseModel
from profiler.compare.resolve_names import resolve_all
from profiler.errors import Exit
from profiler.evidence import metric_table
from profiler.evidence.side import Latency, Side
from profiler.gate import judgement
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.statistics.noise_floor import NoiseFloor
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests.made import START, fresh_database

WARM, COLD = "events; cache warm; clock none", "events; cache cold; clock none"
QUIET, LOUD = NoiseFloor(20, 0.002, (0.005,)), NoiseFloor(20, 0.02, (0.06,))


def timed(
    factor: float = 1.0, *, run: str = "r1", mode: str = WARM, seed: int = 1, **more: object
) -> Latency:
    """100 samples in 25 rounds; rounds of one run share a state."""
    rng = np.random.default_rng(crc32(run.encode()))
    state = np.repeat(1 + 0.05 * rng.random(25), 4)
    jitter = np.exp(np.random.default_rng(seed).normal(0, 0.004, 100))
    latency = Latency(
        run,
        mode,
        (1e6 * factor * state * jitter).astype(np.float32),
        np.repeat(np.arange(25, dtype=np.uint16), 4),
        np.array([], np.float32),
        np.array([], np.uint32),
        START,
        "abc -O3",
    )
    return replace(latency, **more)


def side(version: str, *latencies: Latency, **more: object) -> Side:
    plain = Side(version, (), "GPU", "9.0", "1x8x512x64", "fp16", family="f", version=version)
    return replace(plain, latencies=latencies, **more)


@pytest.fixture(scope="module")
def table() -> metric_table.MetricTable:
    return metric_table.load_metrics()


def judged(a: Side, b: Side, table: metric_table.MetricTable, **more: object) -> Comparison:
    return compare(a, b, table, **more)


def code(comparison: Comparison, table: metric_table.MetricTable) -> Exit:
    """What --fail makes of it."""
    return judgement.judge_comparisons(
        [ComparisonPair("b", "a", comparison.a, comparison.b)], [comparison], table
    ).exit_code()


def test_two_versions_of_one_run_are_a_live_pair(table: metric_table.MetricTable) -> None:
    comparison = judged(side("v1", timed()), side("v2", timed(1.05, seed=2)), table)
    (latency,) = comparison.latency
    assert latency.live
    assert latency.verdict is Verdict.WORSE
    assert latency.decision.fails_gate
    assert latency.decision.effect == pytest.approx(0.05, abs=0.003)
    assert code(comparison, table) is Exit.REGRESSION
    assert code(judged(side("v1", timed(1.03)), side("v2", timed(seed=2)), table), table) is Exit.PASS


def test_of_two_runs_nothing_is_known_without_a_floor(table: metric_table.MetricTable) -> None:
    a, b = side("v1", timed(run="r1")), side("v2", timed(1.3, run="r2", seed=2))
    comparison = judged(a, b, table)
    (latency,) = comparison.latency
    assert not latency.live
    assert latency.verdict is Verdict.UNCLEAR
    assert "no noise floor" in latency.decision.reason
    assert latency.settle == "profiler collect v2 --against v1 --workloads 1x8x512x64 --rounds 25"
    assert code(comparison, table) is Exit.UNJUDGED


def test_of_two_runs_the_floor_of_the_place_judges(table: metric_table.MetricTable) -> None:
    asked = []

    def quiet(*place: object) -> NoiseFloor:
        asked.append(place)
        return QUIET

    a, b = side("v1", timed(run="r1")), side("v2", timed(1.05, run="r2", seed=2))
    (latency,) = judged(a, b, table, noise=NoiseModel(floor=quiet)).latency
    assert latency.verdict is Verdict.WORSE
    assert latency.decision.rule == "stored baseline"
    assert asked == [("GPU", WARM, pytest.approx(1.025e6, rel=0.01), "f", "")]
    (latency,) = judged(a, b, table, noise=NoiseModel(floor=lambda *_: LOUD)).latency
    assert latency.verdict is Verdict.SAME
    assert latency.decision.detectable is not None
    assert latency.decision.detectable > 0.06
    assert latency.settle == ""


def test_the_newest_run_with_both_counts_unless_a_side_was_built_anew(
    table: metric_table.MetricTable,
) -> None:
    a = side("v1", timed(1.5, run="r3"), timed())
    b = side("v2", timed(1.03, seed=2))
    (latency,) = judged(a, b, table).latency
    assert latency.live
    assert latency.a is a.latencies[1]
    rebuilt = side("v1", timed(1.5, run="r3", build="def -O3"), timed())
    (latency,) = judged(rebuilt, b, table).latency
    assert not latency.live
    assert latency.a is rebuilt.latencies[0]


def test_equal_run_without_a_common_round_is_no_live_pair(table: metric_table.MetricTable) -> None:
    other = timed(seed=2)
    (latency,) = judged(
        side("v1", timed()), side("v2", replace(other, rounds=other.rounds + 25)), table
    ).latency
    assert not latency.live
    assert latency.verdict is Verdict.UNCLEAR


def test_a_mode_that_a_side_was_not_timed_in_is_missing(table: metric_table.MetricTable) -> None:
    comparison = judged(side("v1", timed(), timed(mode=COLD)), side("v2", timed(seed=2)), table)
    assert [(latency.mode, latency.verdict) for latency in comparison.latency] == [
        (WARM, Verdict.SAME),
        (COLD, Verdict.MISSING),
    ]
    assert "not timed in B" in comparison.latency[1].decision.reason
    assert code(comparison, table) is Exit.UNJUDGED


def test_what_is_wrong_has_no_verdict_and_another_gpu_none_either(table: metric_table.MetricTable) -> None:
    a = side("v1", timed())
    (latency,) = judged(a, side("v2", timed(seed=2), wrong="off by 3"), table).latency
    assert latency.verdict is Verdict.NOT_COMPARABLE
    assert "off by 3" in latency.decision.reason
    (latency,) = judged(
        a, side("v2", timed(run="r2"), gpu="Other"), table, noise=NoiseModel(floor=lambda *_: QUIET)
    ).latency
    assert latency.verdict is Verdict.NOT_COMPARABLE
    assert latency.decision.effect is None
    assert (latency.a_ns, latency.b_ns) != (None, None), "the numbers are still shown"


def test_another_driver_separates_runs_unless_that_is_the_question(table: metric_table.MetricTable) -> None:
    a, b = side("v1", timed(run="r1")), side("v2", timed(run="r2", seed=2))
    a = replace(a, session=replace(a.session, driver="550"))
    b = replace(b, session=replace(b.session, driver="560"))
    (latency,) = judged(a, b, table, noise=NoiseModel(floor=lambda *_: QUIET)).latency
    assert latency.verdict is Verdict.NOT_COMPARABLE
    (latency,) = judged(a, b, table, noise=NoiseModel(floor=lambda *_: LOUD), across=["driver"]).latency
    assert latency.verdict is Verdict.SAME


def test_what_moved_with_the_same_machine_code_is_the_environment(table: metric_table.MetricTable) -> None:
    asked = []

    def same(*places: object) -> bool:
        asked.append(places)
        return True

    a, b = side("v1", timed()), side("v2", timed(1.03, seed=2))
    (latency,) = judged(a, b, table, noise=NoiseModel(same_code=same)).latency
    assert latency.verdict is Verdict.WORSE
    assert "the machine code is the same" in latency.decision.reason
    assert asked == [(("r1", "v1"), ("r1", "v2"))]
    (latency,) = judged(a, b, table, noise=NoiseModel(same_code=lambda *_: None)).latency
    assert "machine code" not in latency.decision.reason
    judged(a, side("v2", timed(seed=2)), table, noise=NoiseModel(same_code=same))
    assert len(asked) == 1, "of what did not move nobody asks"


def test_sides_without_samples_have_no_latency(table: metric_table.MetricTable) -> None:
    assert judged(side("v1"), side("v2"), table).latency == ()


# ---- from the store, and on the command line


def collected(run_id: str, minute: int, *versions: tuple[str, float, str]) -> Run:
    """A run that timed versions in alternating rounds: name, factor, source."""
    results = []
    for place, (name, factor, source) in enumerate(versions):
        modes = []
        for mode in (COLD, WARM):
            one = timed(factor, run="r1", mode=mode, seed=place + minute + len(mode))
            ns, rounds = tuple(one.ns.tolist()), tuple(one.rounds.tolist())
            modes.append(Samples(mode, ns, rounds, processes=rounds))
        results.append(Result("flash", name, "1x8x512x64", source_sha256=source, samples=tuple(modes)))
    provenance = {"gpu": "NVIDIA Test 1", "driver": "550.1", "compute_capability": "9.0"}
    return Run(run_id, COLLECT, START + timedelta(minutes=minute), provenance, tuple(results))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    where = data_root(str(tmp_path))
    for run in (
        collected("20250301T120000-a", 0, ("v1", 1.0, "s1"), ("v2", 1.03, "s2")),
        collected("20250301T130000-b", 60, ("v1", 1.2, "s1")),
        collected("20250301T140000-c", 120, ("v3", 0.9, "s3")),
    ):
        with bundle.importing(where):
            bundle.seal(where, run, {})
    return tmp_path


def test_the_index_finds_the_run_that_has_both(data: Path, table: metric_table.MetricTable) -> None:
    store = open_store()
    a, b = resolve_all(["v1", "v2"], lambda: store)
    assert [latency.run_id for latency in a.latencies] == ["20250301T130000-b"] * 2 + [
        "20250301T120000-a"
    ] * 2
    comparison = compare(a, b, table)
    assert [(latency.mode, latency.verdict, latency.live) for latency in comparison.latency] == [
        (COLD, Verdict.WORSE, True),
        (WARM, Verdict.WORSE, True),
    ]
    (only,) = resolve_all(["20250301T130000-b"], lambda: store)
    assert {latency.run_id for latency in only.latencies} == {"20250301T130000-b"}
    store.close()


def test_a_run_compared_with_itself_is_the_same(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "20250301T140000-c", "20250301T140000-c", "--fail"]) == 3, "nothing is held"
    text = capsys.readouterr().out
    assert "= same" in text
    assert "the same samples of one run" in text


@pytest.mark.slow
def test_the_command_says_effect_interval_and_what_would_settle(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", "v1", "v2", "--fail"]) == 1
    text = capsys.readouterr().out
    assert "! worse" in text
    assert "in 25 rounds" in text
    assert "would have shown" in text
    assert cli.main(["compare", "v2", "v3", "--fail", "--json"]) == 3
    (cold, warm) = json.loads(capsys.readouterr().out)["latency"]
    assert cold["verdict"] == "unclear"
    assert warm["rule"] == "stored baseline"
    assert warm["effect"] == pytest.approx(0.9 / 1.03 - 1, abs=0.02)
    assert warm["command"] == "profiler collect v3 --against v2 --workloads 1x8x512x64 --rounds 25"
    assert cli.main(["compare", "v1", "v2", "--json"]) == 0
    (cold, _) = json.loads(capsys.readouterr().out)["latency"]
    assert cold["interval"][0] < cold["gate_interval"][0] < cold["effect"] < cold["interval"][1]
    assert cold["fails_gate"] is True
    assert cold["a"]["run_id"] == cold["b"]["run_id"]
    assert cold["command"] is None


def test_markdown_puts_latency_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "v1", "v2", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert "latency 2 worse" in text.splitlines()[0]
    assert f"| {WARM} |" in text


@pytest.mark.slow
def test_explain_puts_the_latency_first_and_says_that_it_has_no_counters(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", "v1", "v2"]) == 0
    text = capsys.readouterr().out
    assert text.index("! worse") < text.index("nothing to explain the latency by")
    assert "no launch of A" not in text
    assert cli.main(["explain", "v1", "v2", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert f"| {WARM} |" in text
    assert "| kernel |" not in text, "no empty table"
    assert cli.main(["explain", "v1", "v2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in document["latency"]] == ["worse", "worse"]
    assert document["launches"] == []


def test_one_source_under_two_names_is_known_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    where = data_root(str(tmp_path))
    run = collected("20250301T120000-a", 0, ("v1", 1.0, "s1"), ("again", 1.03, "s1"))
    with bundle.importing(where):
        bundle.seal(where, replace(run, provenance={**run.provenance, "nvcc": "13.0"}), {})
    assert cli.main(["compare", "v1", "again"]) == 0
    assert "the machine code is the same: the environment moved" in capsys.readouterr().out


@pytest.mark.server
def test_postgres_gives_the_same_samples(postgres: str, tmp_path: Path) -> None:
    run = collected("20250301T120000-a", 0, ("v1", 1.0, "s1"), ("v2", 1.03, "s2"))
    with fresh_database(postgres) as url:
        sides = []
        for place in (url, f"sqlite:///{tmp_path / 'index.db'}"):
            store = Store.open(place)
            assert store.add(run, {})
            sides.append(store.side(family="flash", version="v2"))
            store.close()
    for one, other in zip(sides[0].latencies, sides[1].latencies, strict=True):
        assert (one.run_id, one.mode, one.created, one.build) == (
            other.run_id,
            other.mode,
            other.created,
            other.build,
        )
        assert np.array_equal(one.ns, other.ns)
        assert np.array_equal(one.rounds, other.rounds)
    assert len(sides[0].latencies) == 2


def test_show_tells_the_latency_of_what_has_no_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests import timed_runs

    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    timed_runs.seal(tmp_path, timed_runs.run({"one": 2e5}, 0))
    assert cli.main(["show", "one"]) == 0
    output = capsys.readouterr().out
    assert f"latency, {WARM}: 2" in output
    assert "100 samples" in output
    assert "no launch with counters here" in output
    assert cli.main(["show", "one", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["latency"]
    assert told["ns"] == pytest.approx(2e5, rel=0.1)
