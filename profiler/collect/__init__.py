"""Measuring on this machine: settings become a plan, its jobs are run apart, what has ended is sealed."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.collect.collection import Collection as Collection
    from profiler.collect.collection import Listener as Listener
    from profiler.collect.doctor import DoctorReport as DoctorReport
    from profiler.collect.doctor import ToolStatus as ToolStatus
    from profiler.collect.doctor import examine_machine as examine_machine
    from profiler.collect.failure_logs import FailedJob as FailedJob
    from profiler.collect.failure_logs import failed_jobs as failed_jobs
    from profiler.collect.forecast import Forecast as Forecast
    from profiler.collect.forecast import forecast_run as forecast_run
    from profiler.collect.gpu.properties import Gpu as Gpu
    from profiler.collect.gpu.properties import GpuState as GpuState
    from profiler.collect.machine import Machine as Machine
    from profiler.collect.machine import detect_machine as detect_machine
    from profiler.collect.measurement import CollectionLimits as CollectionLimits
    from profiler.collect.measurement import Sealed as Sealed
    from profiler.collect.measurement import begin_collection as begin_collection
    from profiler.collect.measurement import local_root as local_root
    from profiler.collect.measurement import measure as measure
    from profiler.collect.measurement import resume_collection as resume_collection
    from profiler.collect.ncu_command import Ncu as Ncu
    from profiler.collect.plan import Job as Job
    from profiler.collect.plan import fresh_processes as fresh_processes
    from profiler.collect.provenance import overhead as overhead
    from profiler.collect.run_inputs import RunInputs as RunInputs
    from profiler.collect.run_inputs import UnfinishedRun as UnfinishedRun
    from profiler.collect.run_inputs import begin_run as begin_run
    from profiler.collect.run_inputs import resume_run as resume_run
    from profiler.collect.settings import Selection as Selection
    from profiler.collect.settings import Settings as Settings
    from profiler.collect.settings import collection_settings as collection_settings
    from profiler.collect.settings import noise_settings as noise_settings
    from profiler.collect.settings import publishable_command_line as publishable_command_line
    from profiler.collect.staging import Staging as Staging
    from profiler.collect.staging import unfinished_runs as unfinished_runs
    from profiler.collect.summary import RunSummary as RunSummary
    from profiler.collect.without_gpu import Dissection as Dissection
    from profiler.collect.without_gpu import dissect as dissect
    from profiler.collect.without_gpu import keep_dissection as keep_dissection

__getattr__ = lazy(__name__)
