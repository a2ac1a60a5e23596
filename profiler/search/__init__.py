"""Candidates that a generator makes are judged, and the best are kept: a search that can be replayed."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.search.archive import Archive as Archive
    from profiler.search.archive import SeatChange as SeatChange
    from profiler.search.archive import beats as beats
    from profiler.search.archive import best_so_far as best_so_far
    from profiler.search.archive import mean_time_ns as mean_time_ns
    from profiler.search.archive import path_to as path_to
    from profiler.search.archive import replay as replay
    from profiler.search.evaluation import CandidateJudge as CandidateJudge
    from profiler.search.evaluation import Evaluator as Evaluator
    from profiler.search.evaluation import Screening as Screening
    from profiler.search.generator import CallableGenerator as CallableGenerator
    from profiler.search.generator import CandidateProposal as CandidateProposal
    from profiler.search.generator import Generator as Generator
    from profiler.search.generator import GeneratorFailed as GeneratorFailed
    from profiler.search.generator import NothingLeft as NothingLeft
    from profiler.search.generator import Request as Request
    from profiler.search.insights import Insight as Insight
    from profiler.search.insights import insights_of as insights_of
    from profiler.search.journal import Journal as Journal
    from profiler.search.journal import Working as Working
    from profiler.search.journal import create_journal as create_journal
    from profiler.search.journal import find_journal as find_journal
    from profiler.search.journal import list_journals as list_journals
    from profiler.search.named_generator import load_generator as load_generator
    from profiler.search.record import PairVerdict as PairVerdict
    from profiler.search.record import SearchRecord as SearchRecord
    from profiler.search.record import Status as Status
    from profiler.search.record import candidate_name as candidate_name
    from profiler.search.settings import SearchSettings as SearchSettings
    from profiler.search.worker import Worker as Worker
    from profiler.search.worker import WorkerLimits as WorkerLimits
    from profiler.search.worker import record_line as record_line

__getattr__ = lazy(__name__)
