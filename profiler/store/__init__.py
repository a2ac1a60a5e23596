"""The index over the bundles, and import and sync, which fill it. Store brings SQLAlchemy in on first use."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.store.backups import back_up as back_up
    from profiler.store.backups import restore_backup as restore_backup
    from profiler.store.begin_import import import_paths as import_paths
    from profiler.store.deletion import Deletion as Deletion
    from profiler.store.deletion import delete_runs as delete_runs
    from profiler.store.deletion import plan_deletion as plan_deletion
    from profiler.store.family_mix import FamilyMix as FamilyMix
    from profiler.store.family_mix import family_mixes as family_mixes
    from profiler.store.import_files import AlreadyImported as AlreadyImported
    from profiler.store.import_files import Imported as Imported
    from profiler.store.import_files import ImportSummary as ImportSummary
    from profiler.store.index import Store as Store
    from profiler.store.pruning import PruneSummary as PruneSummary
    from profiler.store.pruning import plan_pruning as plan_pruning
    from profiler.store.pruning import prune_runs as prune_runs
    from profiler.store.readable_index import open_store as open_store
    from profiler.store.rows import ROW_LIMIT as ROW_LIMIT
    from profiler.store.rows import WORKLOAD_CLASSES as WORKLOAD_CLASSES
    from profiler.store.rows import DamagedIndex as DamagedIndex
    from profiler.store.rows import Environment as Environment
    from profiler.store.rows import IndexNotWritable as IndexNotWritable
    from profiler.store.rows import LatencyInfo as LatencyInfo
    from profiler.store.rows import MedianLatency as MedianLatency
    from profiler.store.rows import NoisePair as NoisePair
    from profiler.store.rows import PartArrays as PartArrays
    from profiler.store.rows import Point as Point
    from profiler.store.rows import ResultInfo as ResultInfo
    from profiler.store.rows import Rows as Rows
    from profiler.store.rows import RunInfo as RunInfo
    from profiler.store.rows import SampleArrays as SampleArrays
    from profiler.store.rows import Series as Series
    from profiler.store.rows import VersionInfo as VersionInfo
    from profiler.store.rows import WorkloadInfo as WorkloadInfo
    from profiler.store.rows import WriteConflict as WriteConflict
    from profiler.store.rows import workload_class as workload_class
    from profiler.store.run_decisions import forget_run as forget_run
    from profiler.store.run_decisions import relabel as relabel
    from profiler.store.run_files import dropped_report_words as dropped_report_words
    from profiler.store.run_files import export_run as export_run
    from profiler.store.run_files import open_report as open_report
    from profiler.store.sync import Progress as Progress
    from profiler.store.sync import SyncSummary as SyncSummary
    from profiler.store.sync import rebuild_index as rebuild_index
    from profiler.store.sync import sync_index as sync_index
    from profiler.store.sync import sync_store as sync_store
    from profiler.store.verify import Fault as Fault
    from profiler.store.verify import Verification as Verification
    from profiler.store.verify import verify_data as verify_data

__getattr__ = lazy(__name__)
