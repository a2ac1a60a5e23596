"""Runs, and the sealed bundles on disk that are the truth about them, with people's decisions beside them."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.bundles.bundle import hash_file as hash_file
    from profiler.bundles.bundle import list_runs as list_runs
    from profiler.bundles.bundle import load_run as load_run
    from profiler.bundles.bundle import load_run_folder as load_run_folder
    from profiler.bundles.bundle import read_content as read_content
    from profiler.bundles.bundle import seal as seal
    from profiler.bundles.decisions import DecidedLabels as DecidedLabels
    from profiler.bundles.decisions import DecisionRecord as DecisionRecord
    from profiler.bundles.decisions import load_decisions as load_decisions
    from profiler.bundles.decisions import load_labels as load_labels
    from profiler.bundles.decisions import write_decision as write_decision
    from profiler.bundles.location import LocalRoot as LocalRoot
    from profiler.bundles.location import Root as Root
    from profiler.bundles.location import index_location as index_location
    from profiler.bundles.location import is_read_only as is_read_only
    from profiler.bundles.location import open_root as open_root
    from profiler.bundles.run import COLLECT as COLLECT
    from profiler.bundles.run import EXAMPLE as EXAMPLE
    from profiler.bundles.run import FAMILY_GIVEN as FAMILY_GIVEN
    from profiler.bundles.run import FOLDER as FOLDER
    from profiler.bundles.run import IMPORT as IMPORT
    from profiler.bundles.run import NOISE as NOISE
    from profiler.bundles.run import Attachment as Attachment
    from profiler.bundles.run import Capture as Capture
    from profiler.bundles.run import Facts as Facts
    from profiler.bundles.run import Json as Json
    from profiler.bundles.run import Labels as Labels
    from profiler.bundles.run import ReportFile as ReportFile
    from profiler.bundles.run import Result as Result
    from profiler.bundles.run import Run as Run
    from profiler.bundles.run import Samples as Samples
    from profiler.bundles.run import check_label as check_label
    from profiler.bundles.run import launch_parts as launch_parts
    from profiler.bundles.run import ncu_mode as ncu_mode
    from profiler.bundles.scratch import scratch_folder as scratch_folder
    from profiler.bundles.scratch import sweep as sweep
    from profiler.bundles.zip_file import is_bundle_zip as is_bundle_zip
    from profiler.bundles.zip_file import pack as pack
    from profiler.bundles.zip_file import unpack as unpack

__getattr__ = lazy(__name__)
