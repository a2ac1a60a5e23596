"""Numbers that never travel without unit and state, the kinds of evidence, and what metrics.txt declares."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.evidence.cell import EVERY_CELL as EVERY_CELL
    from profiler.evidence.cell import Cell as Cell
    from profiler.evidence.cell import CellFilter as CellFilter
    from profiler.evidence.derived_forms import DerivedForm as DerivedForm
    from profiler.evidence.derived_forms import formula_names as formula_names
    from profiler.evidence.gpu_arch import ARCHITECTURES as ARCHITECTURES
    from profiler.evidence.gpu_arch import Architecture as Architecture
    from profiler.evidence.gpu_arch import architecture_of as architecture_of
    from profiler.evidence.gpu_arch import chip_of as chip_of
    from profiler.evidence.gpu_arch import find_architecture as find_architecture
    from profiler.evidence.gpu_parts import DEFAULT_PART as DEFAULT_PART
    from profiler.evidence.gpu_parts import GPU_PARTS as GPU_PARTS
    from profiler.evidence.gpu_parts import GpuPart as GpuPart
    from profiler.evidence.gpu_parts import find_part as find_part
    from profiler.evidence.gpu_parts import part_of_device as part_of_device
    from profiler.evidence.gpu_parts import part_of_launch as part_of_launch
    from profiler.evidence.launch import Launch as Launch
    from profiler.evidence.launch import Report as Report
    from profiler.evidence.launch import RuleResult as RuleResult
    from profiler.evidence.launch import Session as Session
    from profiler.evidence.launch import only as only
    from profiler.evidence.launch import place_of_most_time as place_of_most_time
    from profiler.evidence.library_kernels import is_library_launch as is_library_launch
    from profiler.evidence.library_kernels import libraries_of as libraries_of
    from profiler.evidence.library_kernels import library_kernels_alone as library_kernels_alone
    from profiler.evidence.metric_table import Metric as Metric
    from profiler.evidence.metric_table import MetricTable as MetricTable
    from profiler.evidence.metric_table import load_metrics as load_metrics
    from profiler.evidence.name_pattern import BadPattern as BadPattern
    from profiler.evidence.name_pattern import Expression as Expression
    from profiler.evidence.name_pattern import compile_expression as compile_expression
    from profiler.evidence.name_pattern import compile_wildcards as compile_wildcards
    from profiler.evidence.naming import brief_list as brief_list
    from profiler.evidence.naming import natural_key as natural_key
    from profiler.evidence.naming import nearest_first as nearest_first
    from profiler.evidence.naming import plain_template_arguments as plain_template_arguments
    from profiler.evidence.ncu_release import NcuRelease as NcuRelease
    from profiler.evidence.one_measurement import agreeing_digits as agreeing_digits
    from profiler.evidence.one_measurement import is_one_measurement as is_one_measurement
    from profiler.evidence.one_measurement import key_launch as key_launch
    from profiler.evidence.one_measurement import shared_digits as shared_digits
    from profiler.evidence.opcodes import ADU_OPCODES as ADU_OPCODES
    from profiler.evidence.opcodes import CLASS_NAMES as CLASS_NAMES
    from profiler.evidence.opcodes import OPCODE_CLASSES as OPCODE_CLASSES
    from profiler.evidence.opcodes import TENSOR_OPCODES as TENSOR_OPCODES
    from profiler.evidence.opcodes import XU_OPCODES as XU_OPCODES
    from profiler.evidence.opcodes import base_opcode as base_opcode
    from profiler.evidence.opcodes import class_shares as class_shares
    from profiler.evidence.opcodes import is_matrix_multiply as is_matrix_multiply
    from profiler.evidence.opcodes import opcode_class as opcode_class
    from profiler.evidence.opcodes import operation as operation
    from profiler.evidence.rollups import CounterRates as CounterRates
    from profiler.evidence.rollups import Rate as Rate
    from profiler.evidence.side import EarlierCounters as EarlierCounters
    from profiler.evidence.side import Latency as Latency
    from profiler.evidence.side import Side as Side
    from profiler.evidence.tensor_pipes import TensorPath as TensorPath
    from profiler.evidence.tensor_pipes import declared_tensor_metrics as declared_tensor_metrics
    from profiler.evidence.tensor_pipes import tensor_paths as tensor_paths
    from profiler.evidence.values import NCU_DURATION as NCU_DURATION
    from profiler.evidence.values import NOT_COLLECTED as NOT_COLLECTED
    from profiler.evidence.values import Derivation as Derivation
    from profiler.evidence.values import Evidence as Evidence
    from profiler.evidence.values import MetricSet as MetricSet
    from profiler.evidence.values import State as State
    from profiler.evidence.values import Value as Value
    from profiler.evidence.values import Values as Values
    from profiler.evidence.values import is_over_peak as is_over_peak

__getattr__ = lazy(__name__)
