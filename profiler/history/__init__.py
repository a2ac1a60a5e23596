"""What happened over versions and runs: trends, change points, the overview, the lineage, and baselines."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.history.baselines import Baseline as Baseline
    from profiler.history.baselines import Baselines as Baselines
    from profiler.history.baselines import LostPin as LostPin
    from profiler.history.baselines import Pin as Pin
    from profiler.history.best_versions import BestVersion as BestVersion
    from profiler.history.best_versions import load_best_versions as load_best_versions
    from profiler.history.catalog_snapshot import CatalogSnapshot as CatalogSnapshot
    from profiler.history.catalog_snapshot import load_newest_snapshot as load_newest_snapshot
    from profiler.history.catalog_snapshot import load_snapshot as load_snapshot
    from profiler.history.change_points import Drift as Drift
    from profiler.history.change_points import History as History
    from profiler.history.change_points import LevelStep as LevelStep
    from profiler.history.change_points import SeriesView as SeriesView
    from profiler.history.change_points import find_change_points as find_change_points
    from profiler.history.change_points import search_histories as search_histories
    from profiler.history.family_order import example_families as example_families
    from profiler.history.family_order import order_families as order_families
    from profiler.history.family_order import own_family as own_family
    from profiler.history.joined_parts import joined_arrays as joined_arrays
    from profiler.history.lineage import Lineage as Lineage
    from profiler.history.lineage import VersionStatus as VersionStatus
    from profiler.history.lineage import load_lineage as load_lineage
    from profiler.history.lineage import load_lineages as load_lineages
    from profiler.history.notes import Note as Note
    from profiler.history.notes import list_notes as list_notes
    from profiler.history.notes import note_subject as note_subject
    from profiler.history.notes import withdraw_note as withdraw_note
    from profiler.history.notes import write_note as write_note
    from profiler.history.opcode_shares import opcode_mix as opcode_mix
    from profiler.history.overview import Overview as Overview
    from profiler.history.overview import OverviewCell as OverviewCell
    from profiler.history.overview import OverviewRow as OverviewRow
    from profiler.history.overview import load_overview as load_overview
    from profiler.history.point_changes import changes_between as changes_between
    from profiler.history.reference_levels import ReferenceLevel as ReferenceLevel
    from profiler.history.reference_levels import budget_levels as budget_levels
    from profiler.history.reference_levels import latency_levels as latency_levels
    from profiler.history.run_spread import RunSpread as RunSpread
    from profiler.history.run_spread import load_run_spreads as load_run_spreads
    from profiler.history.shared_steps import MIN_SHARE as MIN_SHARE
    from profiler.history.shared_steps import MIN_SHARED as MIN_SHARED
    from profiler.history.shared_steps import SharedStep as SharedStep
    from profiler.history.shared_steps import find_shared_steps as find_shared_steps
    from profiler.history.speedups import Speedup as Speedup
    from profiler.history.speedups import load_speedups as load_speedups
    from profiler.history.stall_shares import MixPoint as MixPoint
    from profiler.history.stall_shares import stall_mix as stall_mix
    from profiler.history.trend import LATENCY as LATENCY
    from profiler.history.trend import Trend as Trend
    from profiler.history.trend import TrendPoint as TrendPoint
    from profiler.history.trend import load_latency_trends as load_latency_trends
    from profiler.history.trend import load_trends as load_trends
    from profiler.history.version_grid import GridCell as GridCell
    from profiler.history.version_grid import build_grid as build_grid
    from profiler.history.version_latency import VersionLatency as VersionLatency

__getattr__ = lazy(__name__)
