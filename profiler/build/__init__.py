"""What a compiler makes of versions: libraries, resources, opcode counts, occupancy, lower bounds."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.build.facts import static_facts as static_facts
    from profiler.build.kernel_names import function_name as function_name
    from profiler.build.kernel_names import template_integer as template_integer
    from profiler.build.library import BuiltLibrary as BuiltLibrary
    from profiler.build.library import FailedBuild as FailedBuild
    from profiler.build.library import ResourceUsage as ResourceUsage
    from profiler.build.library import build as build
    from profiler.build.lower_bounds import LowerBounds as LowerBounds
    from profiler.build.lower_bounds import PeakRates as PeakRates
    from profiler.build.lower_bounds import workload_bounds as workload_bounds
    from profiler.build.occupancy import NextBlock as NextBlock
    from profiler.build.occupancy import Occupancy as Occupancy
    from profiler.build.occupancy import next_block as next_block
    from profiler.build.opcode_counts import CodeSummary as CodeSummary
    from profiler.build.resources import FunctionResources as FunctionResources
    from profiler.build.resources import LaunchConfig as LaunchConfig
    from profiler.build.resources import VersionResources as VersionResources
    from profiler.build.resources import version_resources as version_resources
    from profiler.build.toolchain import ToolkitProgram as ToolkitProgram
    from profiler.build.toolchain import find_tool as find_tool
    from profiler.build.toolchain import require_tool as require_tool

__getattr__ = lazy(__name__)
