"""What a report's launch gives the model of time: its machine code, counts, accesses and hit rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.evidence.gpu_parts import part_of_launch
from profiler.evidence.launch import Launch
from profiler.evidence.opcodes import base_opcode
from profiler.model import pipes
from profiler.model.control_words import INSTRUCTION_BYTES, ControlWords, decode
from profiler.model.instructions import NoModel
from profiler.model.launch_model import HitRates, LaunchInputs, LaunchModel
from profiler.model.warp_trace import ExecutedCode
from profiler.reports.instances import LaunchDetail
from profiler.sass.listing import Listing, listing_of_launch

_EXECUTED = "inst_executed"
_TRUE_THREADS = "thread_inst_executed_true"
_WAVEFRONTS, _IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
_TAGS = "memory_l1_tag_requests_global"
_SECTORS = ("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_local")
_SENT_TO_L2 = (  # sectors of stores, the best counter first
    "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sectors_op_write.sum",
)
_ATTRIBUTES = (  # of the GPU, as `part_of_launch` takes them
    "compute_capability_major",
    "compute_capability_minor",
    "multiprocessor_count",
    "global_memory_bus_width",
    "max_mem_frequency_khz",
    "display_name",
    "l2_cache_size",
)
# All that is read of a report for the model: the numbers of a launch, and its counts per instruction.
LAUNCH_METRICS = frozenset(
    [
        *(f"device__attribute_{name}" for name in _ATTRIBUTES),
        "gpu__time_duration.sum",
        "gpc__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.max",
        *(f"sm__cycles_elapsed.{end}" for end in ("max", "avg", "sum")),
        "smsp__cycles_elapsed.sum",
        "dram__cycles_elapsed.avg.per_second",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        *(f"launch__{size}" for size in ("block_size", "grid_size", "registers_per_thread")),
        *(f"launch__shared_mem_per_block_{kind}" for kind in ("static", "dynamic")),
        *(
            f"l1tex__t_sectors_pipe_lsu_mem_{memory}_op_ld{end}.sum"
            for memory in ("global", "local")
            for end in ("", "_lookup_hit")
        ),
        "l1tex__t_sector_hit_rate.pct",
        "lts__t_sector_hit_rate.pct",
        *_SENT_TO_L2,
    ]
)
INSTRUCTION_METRICS = frozenset([_EXECUTED, _TRUE_THREADS, _WAVEFRONTS, _IDEAL_WAVEFRONTS, _TAGS, *_SECTORS])
_PADDING = 9  # instructions at most that fill up a function behind its last


@dataclass(frozen=True)
class ReportLaunch:
    """A launch of a report as the model reads it, and what was measured of it."""

    inputs: LaunchInputs
    measured_cycles: float
    listing: Listing


def report_launch(
    launch: Launch, detail: LaunchDetail, functions: Mapping[str, NDArray[np.uint64]]
) -> ReportLaunch:
    """The model's inputs of a launch. Raises NoModel with what the report lacks, or what has no model.

    functions: the code words of the report's cubins, as `control_words.read_code_words` gives them.
    """
    values = launch.values
    cycles, clock_hz = _cycles_and_clock(launch)
    attributes = {
        name: (value.number if value.number is not None else value.text)
        for name in _ATTRIBUTES
        for value in (values.value(f"device__attribute_{name}"),)
    }
    memory_hz = values.number("dram__cycles_elapsed.avg.per_second")
    if memory_hz:  # what it ran at, as with the SMs' clock, not what it could
        attributes["max_mem_frequency_khz"] = memory_hz / 1e3
    part = part_of_launch(attributes, clock_hz)
    if part is None:
        raise NoModel("no model: the report does not say its GPU's SMs, clock and memory")
    threads, blocks = values.number("launch__block_size"), values.number("launch__grid_size")
    registers = values.number("launch__registers_per_thread")
    if not threads or not blocks or not registers:
        raise NoModel("no model: the report does not say block size, grid size and registers")
    listing = listing_of_launch(detail)
    executed = listing.counts.get(_EXECUTED)
    if executed is None or not listing.has_text:
        raise NoModel("no model: no machine code with executed counts (--section SourceCounters)")
    counts = np.nan_to_num(executed.values)
    if not counts.sum():
        raise NoModel("no model: the report counts no executed instruction")
    texts = [line.text or "NOP" for line in listing.lines]
    for text, count in zip(texts, counts, strict=True):
        if count and base_opcode(pipes.opcode_of(text)) in pipes.NO_MODEL:
            raise NoModel(f"no model of `{text}`: neither atomics nor asynchronous units are modelled")
    targets = [listing.index[line.target] if line.target else -1 for line in listing.lines]
    starts = [lines.start for lines in listing.ranges if len(lines)]
    warps = blocks * -(-threads // 32)
    kernel, controls = _controls(listing, launch, functions)
    shared = sum(values.number(f"launch__shared_mem_per_block_{kind}") or 0 for kind in ("static", "dynamic"))
    inputs = LaunchInputs(
        gpu=part,
        blocks=int(blocks),
        threads=int(threads),
        registers=int(registers),
        shared_bytes=int(shared),
        code=ExecutedCode(texts, targets, counts / warps, starts, kernel),
        controls=controls,
        sectors=_per_request(listing, counts, *_SECTORS),
        wavefronts=_wavefronts(listing, counts),
        ideal_wavefronts=_per_request(listing, counts, _IDEAL_WAVEFRONTS),
        without_lanes=_without_lanes(listing, counts),
    )
    return ReportLaunch(inputs, cycles, listing)


def _cycles_and_clock(launch: Launch) -> tuple[float, float]:
    """Elapsed cycles and the SMs' clock in hertz. Raises NoModel where the report has neither."""
    values = launch.values
    duration_ns = values.number("gpu__time_duration.sum")
    clock_hz = values.number("gpc__cycles_elapsed.avg.per_second")
    cycles = values.number("gpc__cycles_elapsed.max") or values.number("sm__cycles_elapsed.max")
    sms = values.number("device__attribute_multiprocessor_count")
    if not cycles and sms:
        # Averages over the SMs: a few cycles less than the longest.
        all_sms, all_parts = (
            values.number("sm__cycles_elapsed.sum"),
            values.number("smsp__cycles_elapsed.sum"),
        )
        cycles = (all_sms / sms if all_sms else None) or (all_parts / sms / 4 if all_parts else None)
        cycles = values.number("sm__cycles_elapsed.avg") or cycles
    if not cycles and duration_ns and clock_hz:
        cycles = duration_ns * 1e-9 * clock_hz
    if not cycles or not duration_ns:
        raise NoModel("no model: the report has no duration in cycles")
    return cycles, clock_hz or cycles / (duration_ns * 1e-9)


def _column(listing: Listing, name: str) -> NDArray[np.float64] | None:
    column = listing.counts.get(name)
    return None if column is None else column.values


def _per_request(listing: Listing, counts: NDArray[np.float64], *names: str) -> NDArray[np.float64]:
    """The sum of some counts, for each execution of a warp; NaN where no such count is stored."""
    columns = [column for name in names if (column := _column(listing, name)) is not None]
    if not columns:
        return np.full(len(counts), np.nan)
    total = np.sum([np.nan_to_num(column) for column in columns], axis=0)
    return np.where(counts > 0, total / np.maximum(counts, 1e-9), np.nan)


def _wavefronts(listing: Listing, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Passes of the L1 data stage a request: those of shared memory, or the tags of global memory."""
    shared = _per_request(listing, counts, _WAVEFRONTS)
    tags = _per_request(listing, counts, _TAGS)
    known = np.where(shared > 0, shared, np.nan)
    return np.where(tags > 0, np.fmax(known, tags), known)


def _without_lanes(listing: Listing, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    threads = _column(listing, _TRUE_THREADS)
    if threads is None:
        return np.zeros(len(counts), bool)
    without: NDArray[np.bool_] = (counts > 0) & (np.nan_to_num(threads) == 0)
    return without


def _controls(
    listing: Listing, launch: Launch, functions: Mapping[str, NDArray[np.uint64]]
) -> tuple[int, ControlWords | None]:
    """Which function of the listing is the kernel, and the control words, from the cubin in the report.

    Device functions have no names in a report: the one whose length fits is taken.
    """
    kernel_words = functions.get(launch.mangled)
    ranges = [lines for lines in listing.ranges if len(lines)]
    lengths = [listing.lines[lines[-1]].offset // INSTRUCTION_BYTES + 1 for lines in ranges]
    if kernel_words is None:
        return lengths.index(max(lengths)), None
    fits = [index for index, length in enumerate(lengths) if length <= len(kernel_words)]
    if not fits:
        return lengths.index(max(lengths)), None
    kernel = max(fits, key=lambda index: lengths[index])
    words = np.full(len(listing.lines), _UNKNOWN_WORD, np.uint64)
    for index, (lines, length) in enumerate(zip(ranges, lengths, strict=True)):
        source: NDArray[np.uint64] | None = kernel_words
        if index != kernel:
            fitting = [
                code
                for name, code in functions.items()
                if name != launch.mangled and length <= len(code) <= length + _PADDING
            ]
            source = min(fitting, key=len, default=None)
        for position in lines:
            at = listing.lines[position].offset // INSTRUCTION_BYTES
            if source is not None and at < len(source):
                words[position] = source[at]
    return kernel, decode(words)


# No scoreboard, two cycles: of instructions whose function is not known.
_UNKNOWN_WORD = np.uint64(2 << 41 | 7 << 46 | 7 << 49)


def _counted_l1_hits(launch: Launch) -> float | None:
    """What of the sectors that loads ask for is found in L1; None where nothing was counted.

    The hit rate that ncu prints has the sectors of stores in it too, which says nothing of a load.
    """
    values = launch.values
    asked = hits = 0.0
    for memory in ("global", "local"):
        counter = f"l1tex__t_sectors_pipe_lsu_mem_{memory}_op_ld"
        sectors, found = values.number(f"{counter}.sum"), values.number(f"{counter}_lookup_hit.sum")
        if sectors and found is not None:
            asked, hits = asked + sectors, hits + found
    if asked:
        return min(1.0, hits / asked)
    rate_pct = values.number("l1tex__t_sector_hit_rate.pct")
    return None if rate_pct is None else rate_pct / 100


def _counted_merged(launch: Launch, stored: float) -> float:
    """What of the stored sectors joins another one on the way to L2; 0 where that was not counted."""
    for counter in _SENT_TO_L2:
        if (sent := launch.values.number(counter)) is not None:
            return 1 - min(1.0, 32 * sent / max(1.0, stored))
    return 0.0


def counted_hit_rates(launch: Launch, model: LaunchModel) -> HitRates | None:
    """Where accesses were served, by the report's counters; None where it lacks them."""
    values = launch.values
    l1 = _counted_l1_hits(launch)
    if l1 is None:
        return None
    read, written = values.number("dram__bytes_read.sum"), values.number("dram__bytes_write.sum")
    loaded, stored = model.requested_bytes()
    if read is None:
        l2_pct = values.number("lts__t_sector_hit_rate.pct")
        return None if l2_pct is None else HitRates(l1, min(1.0, l2_pct / 100), 1.0)
    l2 = 1 - min(1.0, read / max(1.0, loaded * (1 - l1)))
    merged = _counted_merged(launch, stored)
    to_dram = (written or 0.0) / max(1.0, stored * (1 - merged))
    return HitRates(l1, l2, 1 - min(1.0, to_dram), merged)
