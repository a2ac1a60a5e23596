"""What differs between two sides: names to sides, launches to pairs, noise to verdicts."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.compare.clock_drift import HEADLINE as HEADLINE
    from profiler.compare.comparability import ACROSS as ACROSS
    from profiler.compare.comparability import CORRECTNESS as CORRECTNESS
    from profiler.compare.comparability import OWN_KERNELS as OWN_KERNELS
    from profiler.compare.comparability import Difference as Difference
    from profiler.compare.comparison import Comparison as Comparison
    from profiler.compare.comparison import check_concepts as check_concepts
    from profiler.compare.counter_noise import CounterKey as CounterKey
    from profiler.compare.counter_noise import CounterNoise as CounterNoise
    from profiler.compare.environment_change import EnvironmentChange as EnvironmentChange
    from profiler.compare.environment_change import RunChanges as RunChanges
    from profiler.compare.environment_change import environment_changes as environment_changes
    from profiler.compare.environment_change import run_changes as run_changes
    from profiler.compare.judged import Judge as Judge
    from profiler.compare.judged import Judged as Judged
    from profiler.compare.judged import judge_calls as judge_calls
    from profiler.compare.judged import judge_comparisons_together as judge_comparisons_together
    from profiler.compare.judged import judge_in_one_table as judge_in_one_table
    from profiler.compare.kernel_pairs import NO_PAIRS as NO_PAIRS
    from profiler.compare.kernel_pairs import KeptPair as KeptPair
    from profiler.compare.kernel_pairs import KernelPair as KernelPair
    from profiler.compare.kernel_pairs import Pairing as Pairing
    from profiler.compare.kernel_pairs import check_asked as check_asked
    from profiler.compare.kernel_pairs import keep_pair as keep_pair
    from profiler.compare.kernel_pairs import list_kept_pairs as list_kept_pairs
    from profiler.compare.kernel_pairs import pairs_digest as pairs_digest
    from profiler.compare.kernel_pairs import pairs_of as pairs_of
    from profiler.compare.kernel_pairs import parse_pair as parse_pair
    from profiler.compare.kernel_pairs import withdraw_pair as withdraw_pair
    from profiler.compare.latency import LatencyComparison as LatencyComparison
    from profiler.compare.latency import compare_latencies as compare_latencies
    from profiler.compare.latency import noise_command as noise_command
    from profiler.compare.match_launches import AmbiguousLaunches as AmbiguousLaunches
    from profiler.compare.match_launches import PairedBy as PairedBy
    from profiler.compare.match_launches import kernel_filter as kernel_filter
    from profiler.compare.match_launches import launch_labels as launch_labels
    from profiler.compare.match_launches import name_filter as name_filter
    from profiler.compare.match_launches import template_arguments as template_arguments
    from profiler.compare.metric_groups import MetricGroup as MetricGroup
    from profiler.compare.metric_groups import group_metrics as group_metrics
    from profiler.compare.metric_groups import largest_first as largest_first
    from profiler.compare.metric_verdict import SHORT_NS as SHORT_NS
    from profiler.compare.metric_verdict import Judgement as Judgement
    from profiler.compare.metric_verdict import judge as judge
    from profiler.compare.noise_floor import StoredFloor as StoredFloor
    from profiler.compare.noise_floor import floors_of_runs as floors_of_runs
    from profiler.compare.noise_floor import stored_floors as stored_floors
    from profiler.compare.noise_model import UNKNOWN_NOISE as UNKNOWN_NOISE
    from profiler.compare.noise_model import NoiseModel as NoiseModel
    from profiler.compare.older_workloads import split_older as split_older
    from profiler.compare.pair_comparison import MetricChange as MetricChange
    from profiler.compare.pair_comparison import OpcodeChange as OpcodeChange
    from profiler.compare.pair_comparison import PairComparison as PairComparison
    from profiler.compare.repeated_numbers import split_repeats as split_repeats
    from profiler.compare.resolve_names import NothingShared as NothingShared
    from profiler.compare.resolve_names import StoreOpener as StoreOpener
    from profiler.compare.resolve_names import VersionRef as VersionRef
    from profiler.compare.resolve_names import find_fact_pairs as find_fact_pairs
    from profiler.compare.resolve_names import find_facts as find_facts
    from profiler.compare.resolve_names import find_measured as find_measured
    from profiler.compare.resolve_names import is_file_name as is_file_name
    from profiler.compare.resolve_names import refuse_unused_filters as refuse_unused_filters
    from profiler.compare.resolve_names import resolve as resolve
    from profiler.compare.resolve_names import resolve_all as resolve_all
    from profiler.compare.resolve_names import resolve_measured as resolve_measured
    from profiler.compare.resolve_names import resolve_version as resolve_version
    from profiler.compare.resolve_names import side_of_report as side_of_report
    from profiler.compare.same_code import CodeChange as CodeChange
    from profiler.compare.same_code import SameBuildLookup as SameBuildLookup
    from profiler.compare.same_code import SameCodeLookup as SameCodeLookup
    from profiler.compare.same_code import same_build_lookup as same_build_lookup
    from profiler.compare.same_code import same_code_lookup as same_code_lookup
    from profiler.compare.workload_change import WorkloadChange as WorkloadChange
    from profiler.compare.workload_change import describe_sizes as describe_sizes
    from profiler.compare.workload_change import is_other_grid as is_other_grid

__getattr__ = lazy(__name__)
