"""Whether a candidate is right, what it costs and whether it is better, for untrusted code."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.judge.candidate import Candidate as Candidate
    from profiler.judge.candidate import content_id as content_id
    from profiler.judge.candidate import load_candidate as load_candidate
    from profiler.judge.isolation import Isolation as Isolation
    from profiler.judge.judgement import Against as Against
    from profiler.judge.judgement import CandidateJudgement as CandidateJudgement
    from profiler.judge.judgement import StageResult as StageResult
    from profiler.judge.judgement import StageState as StageState
    from profiler.judge.judgement import WorkloadTime as WorkloadTime
    from profiler.judge.manifest import Manifest as Manifest
    from profiler.judge.manifest import read_manifest as read_manifest
    from profiler.judge.pipeline import STAGES as STAGES
    from profiler.judge.pipeline import judge_candidate as judge_candidate

__getattr__ = lazy(__name__)
