"""Machine code run on the CPU: how often each instruction is executed, and what its accesses cost."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.model.accesses import AccessCounts as AccessCounts
    from profiler.model.block_sample import BlockSample as BlockSample
    from profiler.model.block_sample import sample_blocks as sample_blocks
    from profiler.model.cubin import KernelImage as KernelImage
    from profiler.model.cubin import Parameter as Parameter
    from profiler.model.cubin import read_kernels as read_kernels
    from profiler.model.instructions import Instruction as Instruction
    from profiler.model.instructions import NoModel as NoModel
    from profiler.model.instructions import parse_instruction as parse_instruction
    from profiler.model.interpreter import BlockCounts as BlockCounts
    from profiler.model.interpreter import Execution as Execution
    from profiler.model.interpreter import KernelProgram as KernelProgram
    from profiler.model.interpreter import count_blocks as count_blocks
    from profiler.model.interpreter import load_program as load_program
    from profiler.model.interpreter import run_blocks as run_blocks
    from profiler.model.memory import GlobalMemory as GlobalMemory
    from profiler.model.shared_layout import SharedTrace as SharedTrace
    from profiler.model.shared_layout import Swizzle as Swizzle
    from profiler.model.shared_layout import SwizzleSearch as SwizzleSearch
    from profiler.model.shared_layout import find_swizzle as find_swizzle
    from profiler.model.traffic import Traffic as Traffic
    from profiler.model.traffic import estimate_traffic as estimate_traffic
    from profiler.model.version_run import LaunchRun as LaunchRun
    from profiler.model.version_run import VersionExecution as VersionExecution
    from profiler.model.version_run import run_version as run_version

__getattr__ = lazy(__name__)
