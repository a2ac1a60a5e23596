"""Pass or fail: versions, runs and reports judged against their baselines, and what somebody let pass."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.gate.acknowledgement import Acknowledgement as Acknowledgement
    from profiler.gate.acknowledgement import LapsedAcknowledgement as LapsedAcknowledgement
    from profiler.gate.acknowledgement import acknowledge as acknowledge
    from profiler.gate.acknowledgement import find_acknowledgement as find_acknowledgement
    from profiler.gate.acknowledgement import list_acknowledgements as list_acknowledgements
    from profiler.gate.acknowledgement import others_of as others_of
    from profiler.gate.acknowledgement import parse_limit as parse_limit
    from profiler.gate.acknowledgement import withdraw as withdraw
    from profiler.gate.comparison_pairs import ComparisonPair as ComparisonPair
    from profiler.gate.comparison_pairs import find_pairs as find_pairs
    from profiler.gate.comparison_pairs import pair_of_sides as pair_of_sides
    from profiler.gate.finding import Check as Check
    from profiler.gate.finding import Finding as Finding
    from profiler.gate.finding import Outcome as Outcome
    from profiler.gate.finding import Verdicts as Verdicts
    from profiler.gate.judgement import judge as judge
    from profiler.gate.judgement import judge_comparisons as judge_comparisons
    from profiler.gate.pins import set_baseline as set_baseline
    from profiler.gate.pins import unset_baseline as unset_baseline
    from profiler.gate.report import GateReport as GateReport
    from profiler.gate.report import gate_comparisons as gate_comparisons
    from profiler.gate.report import run_gate as run_gate

__getattr__ = lazy(__name__)
