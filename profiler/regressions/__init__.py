"""What is worse now in the index, since when, how sure, and why."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.regressions.cause import Cause as Cause
    from profiler.regressions.cause import CauseFinder as CauseFinder
    from profiler.regressions.groups import RegressionGroup as RegressionGroup
    from profiler.regressions.groups import WorseNow as WorseNow
    from profiler.regressions.groups import group_regressions as group_regressions
    from profiler.regressions.regression import Regression as Regression
    from profiler.regressions.regression import RegressionKind as RegressionKind
    from profiler.regressions.regression import SeriesKey as SeriesKey
    from profiler.regressions.regression import VersionRun as VersionRun
    from profiler.regressions.report import RegressionReport as RegressionReport
    from profiler.regressions.report import find_regressions as find_regressions
    from profiler.regressions.report import with_acknowledgements as with_acknowledgements
    from profiler.regressions.search import Coverage as Coverage
    from profiler.regressions.shared_regressions import SharedRegression as SharedRegression
    from profiler.regressions.shared_regressions import find_shared_regressions as find_shared_regressions
    from profiler.regressions.shared_regressions import shared_run as shared_run
    from profiler.regressions.stored_search import KnownCauses as KnownCauses
    from profiler.regressions.stored_search import load_regressions as load_regressions
    from profiler.regressions.stored_search import search_index as search_index

__getattr__ = lazy(__name__)
