from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, Run, ncu_mode
from profiler.compare import counter_noise, resolve_names
from profiler.compare.clock_drift import HEADLINE
from profiler.compare.comparison import Comparison, compare, judge_counters_together
from profiler.compare.counter_noise import CounterKey, CounterNoise
from profiler.compare.noise_model import NoiseModel
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.compare.same_code import same_code_lookup
from profiler.errors import Exit
from profiler.evidence import metric_table
from profiler.evidence.launch import Launch, Session
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Finding, Outcome
from profiler.gate.judgement import judge
from profiler.history.overview import load_overview
from profiler.regressions.report import find_regressions
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from tests import made
from tests.timed_runs import static

TABLE = metric_table.load_metrics()
READ, EXECUTED = "dram__bytes_read.sum", "smsp__inst_executed.sum"
SESSION = Session("2025.3.1", command_line="ncu --clock-control base", clock_control="base")
GPU = "NVIDIA Test 1"
LEVEL = 1e9  # bytes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = Store.open(tmp_path / "index.sqlite")
    yield held
    held.close()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    return folder


def launches(
    read: Sequence[float], *, ns: float = 1e6, executed: Sequence[float] | None = None, name: str = "gemm"
) -> list[Launch]:
    """Repeats of one kernel that read so many bytes."""
    bare, counts = made.launch(name, ns), executed or [4096.0] * len(read)
    return [
        replace(bare, ordinal=place, values=pack_values({**bare.values, READ: size, EXECUTED: count}))
        for place, (size, count) in enumerate(
            (Value(size, "byte"), Value(count, "inst")) for size, count in zip(read, counts, strict=True)
        )
    ]


def spread(count: int, sd: float, seed: int = 3) -> list[float]:
    return [LEVEL * float(np.exp(draw)) for draw in np.random.default_rng(seed).normal(0, sd, count)]


def add(store: Store, version: str, held: Sequence[Launch], minute: int = 0) -> None:
    run, reports = made.imported(version, *held, minute=minute, session=SESSION)
    assert store.add(run, reports)


def change(found: Comparison, concept: str = "dram_read") -> MetricChange:
    return next(metric for metric in found.pairs[0].metrics if metric.concept == concept)


def versus(store: Store, a: str = "v1", b: str = "v2") -> Comparison:
    old, new = (store.side(family="gemms", version=name) for name in (a, b))
    return compare(old, new, TABLE, noise=NoiseModel.of_store(lambda: store))


def learned_noise(
    store: Store, side: Side, kernel: str, metric: str, between_runs: bool
) -> CounterNoise | None:
    noise = NoiseModel.of_store(lambda: store)
    return noise.counter_noise(CounterKey.of_side(side), kernel, metric, between_runs)


class TestLearned:
    def test_forty_repeats_in_one_report_are_twenty_pairs_and_the_rule_sizes_their_wobble(
        self, store: Store
    ) -> None:
        read = spread(40, 0.004)
        add(store, "v1", launches(read))
        side = store.side(family="gemms", version="v1")
        noise = learned_noise(store, side, "gemm", READ, False)
        assert noise is not None
        moved = np.sort(np.abs(np.log(np.array(read[1::2]) / np.array(read[::2]))))
        assert noise.wobble.pairs == 20
        assert noise.wobble.sizes == pytest.approx(moved)
        assert noise.kernel == "gemm"
        assert noise.judges

    def test_fewer_than_twenty_pairs_excuse_a_change_and_call_none_worse(self, store: Store) -> None:
        add(store, "v1", launches(spread(39, 0.004)))
        side = store.side(family="gemms", version="v1")
        noise = learned_noise(store, side, "gemm", READ, False)
        assert noise is not None
        assert noise.wobble.pairs == 19
        assert not noise.judges

    def test_repeats_that_executed_other_instructions_did_other_work(self, store: Store) -> None:
        executed = [4096.0 + place for place in range(10)]
        add(store, "v1", launches(spread(10, 0.004), executed=executed))
        side = store.side(family="gemms", version="v1")
        assert learned_noise(store, side, "gemm", READ, False) is None

    def test_imported_reports_of_one_version_are_no_pairs_for_nobody_knows_their_build(
        self, store: Store
    ) -> None:
        for minute, read in enumerate(spread(12, 0.004)):
            add(store, "v1", launches([read]), minute)
        side = store.side(family="gemms", version="v1")
        assert learned_noise(store, side, "gemm", READ, False) is None

    def test_a_kernel_with_too_few_pairs_goes_by_all_of_the_family(self, store: Store) -> None:
        held = launches(spread(40, 0.004)) + launches(spread(1, 0.004, 9), name="softmax")
        add(store, "v1", [replace(one, ordinal=place) for place, one in enumerate(held)])
        side = store.side(family="gemms", version="v1")
        noise = learned_noise(store, side, "softmax", READ, False)
        assert noise is not None
        assert (noise.wobble.pairs, noise.kernel, noise.judges) == (20, "", False)

    def test_another_gpu_clock_or_workload_lends_nothing(self, store: Store) -> None:
        add(store, "v1", launches(spread(10, 0.004)))
        side = store.side(family="gemms", version="v1")
        for other in (
            replace(side, gpu="NVIDIA Test 2"),
            replace(side, workload="2x8x2048x64"),
            replace(side, session=replace(SESSION, clock_control="none")),
            replace(side, gpu=None),
            replace(side, family=None),
        ):
            assert learned_noise(store, other, "gemm", READ, False) is None

    def test_it_is_learned_anew_when_the_index_changed(self, store: Store) -> None:
        add(store, "v1", launches(spread(1, 0.004)))
        side = store.side(family="gemms", version="v1")
        assert learned_noise(store, side, "gemm", READ, False) is None
        add(store, "v1", launches(spread(10, 0.004)), minute=1)
        assert learned_noise(store, side, "gemm", READ, False) is not None


class TestSessions:
    def collected(
        self,
        store: Store,
        data: Path,
        sass: Sequence[str],
        ns: Sequence[float],
        version: str = "v1",
        first: int = 0,
    ) -> Side:
        """One run a hash, each with its report, sealed as a bundle and in the index."""
        root = location.open_root(str(data))
        for minute, (code, size, time) in enumerate(
            zip(sass, spread(len(sass), 0.004), ns, strict=True), first
        ):
            held = launches([size], ns=1e5 * time / LEVEL)
            run, reports = made.imported(version, *held, minute=minute, session=SESSION)
            result = replace(run.results[0], facts=(static(code),))
            without = replace(run, kind=COLLECT, results=(replace(result, captures=()),), reports=())
            with bundle.importing(root):
                assert bundle.seal(root, without, {})
            assert store.add(replace(run, kind=COLLECT, results=(result,)), reports)
        return store.side(family="gemms", version=version)

    @pytest.mark.long
    def test_a_duration_within_what_equal_builds_lie_apart_is_no_regression(
        self, store: Store, data: Path
    ) -> None:
        """Of two versions one launch each, the second slower by more than the threshold."""
        times = spread(40, 0.01, 5)
        self.collected(store, data, ["aa"] * 40, times)
        self.collected(store, data, ["bb"], [1.03 * times[-1]], "v2", 41)
        by_pairs = find_regressions(store, TABLE, noise=NoiseModel.of_store(lambda: store))
        by_threshold = find_regressions(store, TABLE)
        assert by_pairs.regressions == ()
        assert [regression.basis for regression in by_threshold.regressions] == [
            "unreplicated: one launch per side"
        ]
        self.collected(store, data, ["cc"], [1.5 * LEVEL], "v3", 50)
        (regression,) = find_regressions(store, TABLE, noise=NoiseModel.of_store(lambda: store)).regressions
        assert regression.series.version == "v3"
        assert regression.interval is not None
        assert 0.3 < regression.interval.low < regression.effect < regression.interval.high < 0.7
        assert regression.how_sure.startswith("A/A pairs: +")
        assert "20 A/A pairs of gemm vary by" in regression.how_sure
        assert "unreplicated" not in regression.how_sure

    def test_runs_of_one_machine_code_are_pairs_for_the_duration_too(self, store: Store, data: Path) -> None:
        side = self.collected(store, data, ["aa"] * 4, spread(4, 0.01, 5))
        for name, between_runs in ((READ, False), (made.DURATION, True)):
            noise = learned_noise(store, side, "gemm", name, between_runs)
            assert noise is not None
            assert noise.wobble.pairs == 2

    def test_runs_of_other_machine_code_are_none(self, store: Store, data: Path) -> None:
        side = self.collected(store, data, [f"{place:02x}" for place in range(10)], spread(10, 0.01, 5))
        assert learned_noise(store, side, "gemm", READ, False) is None

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("equal", "asked"), [(True, counter_noise.MAX_PAIRS), (False, counter_noise.MAX_RUNS - 2)]
    )
    def test_of_hundreds_of_runs_the_newest_are_asked_about_and_no_more_than_it_takes(
        self, store: Store, equal: bool, asked: int
    ) -> None:
        """Who is asked reads a bundle. The pairs are of the newest runs, whichever version they are of."""
        for minute, read in enumerate(spread(counter_noise.MAX_RUNS + 20, 0.004)):
            add(store, "old" if minute < (20 if equal else 60) else "new", launches([read]), minute)
        place = counter_noise.CounterKey("gemms", "", GPU, ncu_mode(SESSION))
        met: list[tuple[tuple[str, str], tuple[str, str]]] = []

        def same(a: tuple[str, str], b: tuple[str, str]) -> bool:
            met.append((a, b))
            return equal

        learned = counter_noise.learn(store, place, same)
        assert len(met) == asked, "of two versions: no pair leads from one to the other"
        assert len({one for pair in met for one in pair}) <= counter_noise.MAX_RUNS
        assert len(learned.pairs) == (counter_noise.MAX_PAIRS if equal else 0)
        assert {version for pair in met[: counter_noise.MAX_PAIRS] for _, version in pair} == {"new"}

    def test_a_run_is_read_once_whoever_asks(
        self, store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.collected(store, data, ["aa"] * 4, spread(4, 0.01, 5))
        read: list[str] = []
        load = bundle.load_outline

        def counted(root: location.Root, run: str, values: Collection[str]) -> Run:
            read.append(run)
            return load(root, run, values)

        monkeypatch.setattr(bundle, "load_outline", counted)
        for workload in ("", ""):
            place = counter_noise.CounterKey("gemms", workload, GPU, ncu_mode(SESSION))
            assert len(counter_noise.learn(store, place, same_code_lookup()).pairs) == 2
        assert len(read) == len(set(read)) == 4

    def test_repeats_within_a_report_say_nothing_of_the_duration(self, store: Store) -> None:
        add(store, "v1", launches(spread(10, 0.004)))
        side = store.side(family="gemms", version="v1")
        assert learned_noise(store, side, "gemm", made.DURATION, True) is None


class TestJudged:
    def test_a_change_within_the_wobble_is_the_same_and_one_beyond_it_names_wobble_and_pairs(
        self, store: Store
    ) -> None:
        read = spread(40, 0.02)
        for version, factor in (("v1", 1.0), ("within", 1.04), ("beyond", 1.9)):
            add(store, version, launches([factor * size for size in read]))
        within, beyond = (change(versus(store, "v1", name)) for name in ("within", "beyond"))
        assert within.noise_share is not None
        assert 0.04 < within.noise_share < 0.5, "what 2 % of spread wobble by"
        assert within.verdict is Verdict.SAME
        assert beyond.verdict is Verdict.WORSE
        assert not beyond.unreplicated
        assert "its noise in A/A pairs; " in beyond.reason
        assert "A/A pairs of gemm vary by" in beyond.reason
        assert beyond.interval == pytest.approx((0.9 - within.noise_share, 0.9 + within.noise_share))

    def test_without_pairs_the_threshold_alone_decides_as_ever(self, store: Store) -> None:
        add(store, "v1", launches([LEVEL]))
        add(store, "v2", launches([1.5 * LEVEL]))
        comparison = versus(store)
        assert comparison.pairs == compare(comparison.a, comparison.b, TABLE).pairs
        one = change(comparison)
        assert (one.verdict, one.unreplicated, one.noise_share, one.interval) == (
            Verdict.WORSE,
            True,
            None,
            None,
        )

    def test_exact_counts_ask_for_no_wobble(self, store: Store) -> None:
        add(store, "v1", launches(spread(10, 0.02)))
        add(store, "v2", launches([LEVEL] * 10, executed=[8192.0] * 10))
        one = change(versus(store), "inst_executed")
        assert (one.verdict, one.noise_share) == (Verdict.WORSE, None)

    def test_the_overview_counts_no_counter_worse_that_moves_so_by_itself(self, store: Store) -> None:
        read = spread(40, 0.02)
        for minute, (version, factor) in enumerate((("v1", 1.0), ("v2", 1.04))):
            add(store, version, launches([factor * size for size in read]), minute)
        (by_pairs,) = load_overview(store, TABLE, rows=3, noise=NoiseModel.of_store(lambda: store)).cells
        (by_threshold,) = load_overview(store, TABLE, rows=3).cells
        assert [row.worse for row in by_threshold.rows] == [1]
        assert [row.worse for row in by_pairs.rows] == [0]
        assert (by_pairs.hidden_rows, dict(by_pairs.tally)) == (0, {Verdict.SAME: 1})


class TestGate:
    def verdict(self, store: Store, on: Sequence[str]) -> tuple[Finding | None, Exit]:
        comparison = versus(store)
        contest = ComparisonPair("gemms/v2", "gemms/v1", comparison.a, comparison.b)
        verdicts = judge([contest], TABLE, on=on, noise=NoiseModel.of_store(lambda: store))
        one = next((one for one in verdicts.findings if one.concept == "dram_read"), None)
        return one, verdicts.exit_code()

    def test_asked_for_and_beyond_its_wobble_a_counter_fails(self, store: Store) -> None:
        add(store, "v1", launches(spread(40, 0.004)))
        add(store, "v2", launches([1.5 * LEVEL] * 40))
        one, code = self.verdict(store, ["dram_read"])
        assert one is not None
        assert (one.outcome, code) == (Outcome.FAILED, Exit.REGRESSION)
        assert one.interval is not None
        assert one.detectable is not None
        noted, code = self.verdict(store, [])
        assert noted is not None
        assert (noted.outcome, code) == (Outcome.NOTED, Exit.PASS)

    def test_asked_for_without_pairs_it_is_unclear_and_the_line_says_the_way_out(self, store: Store) -> None:
        add(store, "v1", launches([LEVEL]))
        add(store, "v2", launches([1.5 * LEVEL]))
        one, code = self.verdict(store, ["dram_read"])
        assert one is not None
        assert (one.verdict, one.outcome, code) == (Verdict.UNCLEAR, Outcome.UNJUDGED, Exit.UNJUDGED)
        assert "no A/A pairs say how far" in one.line
        assert "import reports with 40 launches" in one.line


def test_the_four_launches_of_a_real_report_are_the_same_work_and_too_few(
    reports: Path, store: Store
) -> None:
    path = reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"
    (side,) = resolve_names.resolve_all([str(path)], lambda: store)
    assert len({launch.values.number(EXECUTED) for launch in side.launches}) == 1
    assert len({launch.values.number(READ) for launch in side.launches}) == 4
    assert store.add(*made.imported("v1", *side.launches, session=side.session))
    stored = store.side(family="gemms", version="v1")
    place = counter_noise.CounterKey("gemms", "", stored.gpu or "", ncu_mode(stored.session))
    learned = counter_noise.learn(store, place, lambda *_: None)
    assert [(pair.a.ordinal, pair.b.ordinal) for pair in learned.pairs] == [(0, 1), (2, 3)]
    noise = learned.of("adamw_kernel2", READ, False)
    assert noise is not None
    assert not noise.judges


class TestTogether:
    def changes(self, p: Sequence[float], concept: str = "dram_read") -> PairComparison:
        """A pair with changes of these p-values, worse from .01 down."""
        pair = compare(*two_sides(), TABLE).pairs[0]
        kind = change(compare(*two_sides(), TABLE), concept)
        rows = tuple(
            replace(kind, verdict=Verdict.WORSE if chance <= 0.01 else Verdict.SAME, p=chance) for chance in p
        )
        return replace(pair, metrics=rows)

    def test_one_of_a_hundred_counters_beyond_its_wobble_is_unclear(self) -> None:
        chance = [(place + 1) / 101 for place in range(100)]
        (pair,) = judge_counters_together([self.changes(chance)])
        assert pair.metrics[0].verdict is Verdict.UNCLEAR
        assert pair.metrics[0].reason.endswith("; not significant after correcting for 100 counters")

    def test_what_is_rare_among_a_hundred_stands(self) -> None:
        (pair,) = judge_counters_together([self.changes([0.0001, *[0.5] * 99])])
        assert pair.metrics[0].verdict is Verdict.WORSE

    def test_all_pairs_of_a_comparison_are_one_table_and_durations_a_family_of_their_own(self) -> None:
        alone = self.changes([0.004])
        assert judge_counters_together([alone])[0].metrics[0].verdict is Verdict.WORSE
        many = judge_counters_together([alone, *[self.changes([0.5])] * 40])
        assert many[0].metrics[0].verdict is Verdict.UNCLEAR
        apart = judge_counters_together([alone, *[self.changes([0.5], HEADLINE)] * 40])
        assert apart[0].metrics[0].verdict is Verdict.WORSE


def two_sides() -> tuple[Side, Side]:
    """The same kernel, which reads more in the second."""
    a, b = (
        Side(name, tuple(launches([size])), GPU, "9.0", session=SESSION)
        for name, size in (("a", LEVEL), ("b", 1.5 * LEVEL))
    )
    return a, b
