"""Why a launch takes the time it takes: the split of a change, the roofline, occupancy, and drill-downs."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.explain.drilldown import BankConflicts as BankConflicts
    from profiler.explain.drilldown import OpcodeClassChange as OpcodeClassChange
    from profiler.explain.drilldown import TensorPipe as TensorPipe
    from profiler.explain.explanation import CounterToCollect as CounterToCollect
    from profiler.explain.explanation import Explanation as Explanation
    from profiler.explain.explanation import MissingCounter as MissingCounter
    from profiler.explain.explanation import counters_to_collect as counters_to_collect
    from profiler.explain.explanation import explain as explain
    from profiler.explain.identity_factors import StandIn as StandIn
    from profiler.explain.launch_numbers import LaunchNumber as LaunchNumber
    from profiler.explain.memory_traffic import MemoryLevel as MemoryLevel
    from profiler.explain.memory_traffic import MemoryLink as MemoryLink
    from profiler.explain.memory_traffic import MemoryTraffic as MemoryTraffic
    from profiler.explain.ncu_sections import LaunchSections as LaunchSections
    from profiler.explain.ncu_sections import MissingSection as MissingSection
    from profiler.explain.ncu_sections import launch_sections as launch_sections
    from profiler.explain.occupancy_whatif import OccupancyAnalysis as OccupancyAnalysis
    from profiler.explain.occupancy_whatif import OccupancyCurve as OccupancyCurve
    from profiler.explain.occupancy_whatif import measured_occupancy as measured_occupancy
    from profiler.explain.occupancy_whatif import static_occupancy as static_occupancy
    from profiler.explain.roofline import Roof as Roof
    from profiler.explain.roofline import Roofline as Roofline
    from profiler.explain.roofline import RooflinePoint as RooflinePoint
    from profiler.explain.roofline import roofline_of as roofline_of
    from profiler.explain.roofline_path import PathStep as PathStep
    from profiler.explain.roofline_path import RooflinePath as RooflinePath
    from profiler.explain.roofline_path import load_roofline_path as load_roofline_path
    from profiler.explain.sentence import SentenceParts as SentenceParts
    from profiler.explain.time_identity import Term as Term
    from profiler.explain.time_identity import TimeIdentity as TimeIdentity
    from profiler.explain.time_identity import TimeSplit as TimeSplit
    from profiler.explain.time_identity import WaterfallStep as WaterfallStep
    from profiler.explain.what_moved import CounterMove as CounterMove
    from profiler.explain.what_moved import WhatMoved as WhatMoved

__getattr__ = lazy(__name__)
