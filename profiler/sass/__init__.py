"""Machine code: read, aligned with other machine code, its hot spots, and what runs keep of it."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.sass.alignment import AlignedFunction as AlignedFunction
    from profiler.sass.alignment import AlignedRow as AlignedRow
    from profiler.sass.alignment import Alignment as Alignment
    from profiler.sass.alignment import align as align
    from profiler.sass.bundle_file import MachineCode as MachineCode
    from profiler.sass.disassembly import assemble_ptx as assemble_ptx
    from profiler.sass.disassembly import cubin_functions as cubin_functions
    from profiler.sass.disassembly import disassemble as disassemble
    from profiler.sass.disassembly import extract_cubin as extract_cubin
    from profiler.sass.disassembly import extract_cubins as extract_cubins
    from profiler.sass.disassembly import library_functions as library_functions
    from profiler.sass.hotspots import CodeLocation as CodeLocation
    from profiler.sass.hotspots import HotRow as HotRow
    from profiler.sass.hotspots import HotSpot as HotSpot
    from profiler.sass.hotspots import HotSpotChange as HotSpotChange
    from profiler.sass.hotspots import hot_spot_changes as hot_spot_changes
    from profiler.sass.hotspots import hottest as hottest
    from profiler.sass.hotspots import hottest_rows as hottest_rows
    from profiler.sass.hottest_places import HotPlace as HotPlace
    from profiler.sass.hottest_places import StaticLine as StaticLine
    from profiler.sass.hottest_places import hot_places as hot_places
    from profiler.sass.hottest_places import static_lines as static_lines
    from profiler.sass.listing import FunctionCode as FunctionCode
    from profiler.sass.listing import Listing as Listing
    from profiler.sass.listing import SassLine as SassLine
    from profiler.sass.listing import listing_of_launch as listing_of_launch
    from profiler.sass.listing import make_listing as make_listing
    from profiler.sass.listing import select_functions as select_functions
    from profiler.sass.live_registers import LiveRegisters as LiveRegisters
    from profiler.sass.live_registers import count_live_registers as count_live_registers
    from profiler.sass.registers import Renaming as Renaming
    from profiler.sass.source_diff import FlagChange as FlagChange
    from profiler.sass.source_diff import LineTraffic as LineTraffic
    from profiler.sass.source_diff import SourceRow as SourceRow
    from profiler.sass.source_diff import TrafficRow as TrafficRow
    from profiler.sass.source_diff import compare_traffic as compare_traffic
    from profiler.sass.source_diff import side_by_side as side_by_side
    from profiler.sass.stored_code import CodeNotStored as CodeNotStored
    from profiler.sass.stored_code import StoredCode as StoredCode
    from profiler.sass.stored_code import find_code as find_code
    from profiler.sass.stored_code import newest_running_on as newest_running_on

__getattr__ = lazy(__name__)
