"""Verdict rules as pure functions of numbers: each with its source and its assumptions."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.statistics.changepoint import MIN_POINTS as MIN_POINTS
    from profiler.statistics.changepoint import ChangePoint as ChangePoint
    from profiler.statistics.changepoint import LevelKind as LevelKind
    from profiler.statistics.changepoint import change_points as change_points
    from profiler.statistics.changepoint import change_points_of as change_points_of
    from profiler.statistics.counters import MIN_COUNTER_PAIRS as MIN_COUNTER_PAIRS
    from profiler.statistics.counters import Wobble as Wobble
    from profiler.statistics.counters import are_equal as are_equal
    from profiler.statistics.counters import counter_noise as counter_noise
    from profiler.statistics.counters import judge_counter as judge_counter
    from profiler.statistics.decision import MIN_SAMPLES as MIN_SAMPLES
    from profiler.statistics.decision import Decision as Decision
    from profiler.statistics.decision import Interval as Interval
    from profiler.statistics.decision import change_text as change_text
    from profiler.statistics.decision import share_text as share_text
    from profiler.statistics.facts import BUDGET_LABEL as BUDGET_LABEL
    from profiler.statistics.facts import OVER_BUDGET as OVER_BUDGET
    from profiler.statistics.facts import WATCHED_FACTS as WATCHED_FACTS
    from profiler.statistics.facts import Fact as Fact
    from profiler.statistics.facts import FactChange as FactChange
    from profiler.statistics.facts import FactsDecision as FactsDecision
    from profiler.statistics.facts import WatchedFact as WatchedFact
    from profiler.statistics.facts import excess_over_budget as excess_over_budget
    from profiler.statistics.facts import judge_facts as judge_facts
    from profiler.statistics.facts import note_same_code as note_same_code
    from profiler.statistics.launch_samples import judge_samples as judge_samples
    from profiler.statistics.live_pair import LIVE_PAIR as LIVE_PAIR
    from profiler.statistics.live_pair import judge_live_pair as judge_live_pair
    from profiler.statistics.multiple_testing import discoveries as discoveries
    from profiler.statistics.multiple_testing import judge_together as judge_together
    from profiler.statistics.noise_floor import ADVISED_FLOOR_PAIRS as ADVISED_FLOOR_PAIRS
    from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS as MIN_FLOOR_PAIRS
    from profiler.statistics.noise_floor import STORED_BASELINE as STORED_BASELINE
    from profiler.statistics.noise_floor import NoiseFloor as NoiseFloor
    from profiler.statistics.noise_floor import floor_of_ratios as floor_of_ratios
    from profiler.statistics.noise_floor import floor_of_sessions as floor_of_sessions
    from profiler.statistics.noise_floor import judge_stored_baseline as judge_stored_baseline
    from profiler.statistics.noise_floor import shorter_ns as shorter_ns
    from profiler.statistics.noise_floor import typical_ns as typical_ns
    from profiler.statistics.noise_floor import typical_pair_ns as typical_pair_ns
    from profiler.statistics.order_statistics import MIN_ROUNDS as MIN_ROUNDS
    from profiler.statistics.order_statistics import median_interval as median_interval
    from profiler.statistics.verdict import Verdict as Verdict
    from profiler.statistics.verdict import heaviest as heaviest
    from profiler.statistics.verdict import over_workloads as over_workloads

__getattr__ = lazy(__name__)
