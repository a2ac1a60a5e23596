"""A kernel run on the CPU thread by thread: its numbers, races, waits and bank conflicts."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.emulator.cpu_check import CheckRun as CheckRun
    from profiler.emulator.cpu_check import VersionCheck as VersionCheck
    from profiler.emulator.cpu_check import check as check
    from profiler.emulator.cpu_check import check_versions as check_versions
    from profiler.emulator.emulator import Emulator as Emulator
    from profiler.emulator.emulator import Landing as Landing
    from profiler.emulator.emulator import Schedule as Schedule
    from profiler.emulator.run_result import Defect as Defect
    from profiler.emulator.run_result import KernelArgument as KernelArgument
    from profiler.emulator.run_result import LaunchShape as LaunchShape
    from profiler.emulator.run_result import RunResult as RunResult
    from profiler.emulator.run_result import SharedTraffic as SharedTraffic
    from profiler.emulator.run_result import SourceLine as SourceLine

__getattr__ = lazy(__name__)
