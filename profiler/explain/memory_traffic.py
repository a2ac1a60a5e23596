"""What one launch moved between the levels of the memory hierarchy, and what it found there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.values import Derivation, State, Value
from profiler.explain.launch_numbers import LaunchNumber, LaunchReader

KERNEL, L1, SHARED, L2, DRAM = "kernel", "L1/TEX", "shared", "L2", "DRAM"
SECTOR_BYTES = 32  # CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"
_LOOKED_UP = "l1tex__t_sectors_pipe_"
# Loads and stores that L1 looks up, hits included: the rows of ncu's table "L1/TEX Cache". What is not in a
# report is left out of the sum; global accesses are what every section that has one of them has.
_LOADED = ("lsu_mem_global_op_ld", "lsu_mem_local_op_ld", "tex_mem_texture", "tex_mem_surface_op_ld")
_STORED = ("lsu_mem_global_op_st", "lsu_mem_local_op_st", "tex_mem_surface_op_st")
_ATOMICS = ("lsu_mem_global_op_atom", "lsu_mem_global_op_red")
_ELAPSED = "pct_of_peak_sustained_elapsed"
_L2_TO_L1 = "l1tex__m_xbar2l1tex_read_bytes.sum"
_L1_TO_L2 = "l1tex__m_l1tex2xbar_write_bytes.sum"
# Sections without the memory chart still have the share: the sectors' share is that of their bytes (equal on
# 117 launches, CC 7.0 to 9.0).
_L2_TO_L1_SHARES = (f"{_L2_TO_L1}.{_ELAPSED}", f"l1tex__m_xbar2l1tex_read_sectors.avg.{_ELAPSED}")
# Where the bytes were not collected: sectors that L2 looked up for reads of L1, 10.9 % off at most on 117
# launches. Of writes there is no such stand-in: L2 looks up partial sectors several times (4-fold on CC 7.5).
_L2_READS = "lts__t_sectors_srcunit_tex_op_read.sum"
_L2_READS_MOST_OFF = 10.9
# Past L1 into shared memory; the first is of sm_80 and newer, the second of sm_90 and newer.
_ASYNC_COPY = "sm__sass_l1tex_m_xbar2l1tex_read_bytes_mem_global_op_ldgsts_cache_bypass.sum"
_TMA_LOAD = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum"
_DSHARED = "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum"  # of other blocks of a cluster


@dataclass(frozen=True)
class MemoryLink:
    """What went one way between two neighbours in one launch."""

    name: str
    source: str  # one of KERNEL, L1, SHARED, L2, DRAM
    target: str
    moved: LaunchNumber  # bytes; of shared memory wavefronts
    rate: LaunchNumber | None = None  # bytes per second
    share: LaunchNumber | None = None  # % of the link's peak
    details: tuple[LaunchNumber, ...] = ()

    @property
    def is_counted_in_bytes(self) -> bool:
        """Whether its width can be drawn on the scale of the others: nobody counts shared memory's bytes."""
        return SHARED not in (self.source, self.target)


@dataclass(frozen=True)
class MemoryLevel:
    """One level: its hit rate where it is a cache, and what else is known of it."""

    name: str
    hit: LaunchNumber | None
    details: tuple[LaunchNumber, ...]
    throughput: LaunchNumber | None = None  # % of its peak


@dataclass(frozen=True)
class MemoryTraffic:
    """The memory hierarchy of one launch, from the kernel to DRAM."""

    levels: tuple[MemoryLevel, ...]
    links: tuple[MemoryLink, ...]
    beyond: tuple[LaunchNumber, ...]  # bytes that L2 did not find and that are not in this GPU's DRAM
    notes: tuple[LaunchNumber, ...]  # excess sectors, local memory

    @property
    def is_collected(self) -> bool:
        """Whether the report holds the bytes of any link, or a hit rate."""
        numbers = [link.moved for link in self.links] + [level.hit for level in self.levels if level.hit]
        return any(number.number is not None for number in numbers)

    @property
    def lacking(self) -> tuple[LaunchNumber, ...]:
        """What is drawn as missing."""
        numbers = [link.moved for link in self.links] + [level.hit for level in self.levels if level.hit]
        return tuple(number for number in numbers if number.number is None)

    def link(self, name: str) -> MemoryLink:
        """The link of that name."""
        return next(link for link in self.links if link.name == name)

    def level(self, name: str) -> MemoryLevel:
        """The level of that name."""
        return next(level for level in self.levels if level.name == name)


def memory_traffic(reader: LaunchReader) -> MemoryTraffic:
    """The traffic of a launch. What the report does not hold keeps its state; nothing is 0 by absence."""
    return MemoryTraffic(
        (_kernel(reader), _l1(reader), _shared(reader), _l2(reader), _dram(reader)),
        (
            _accesses(reader, "loads", L1, KERNEL, _LOADED, "ld"),
            _accesses(reader, "stores", KERNEL, L1, _STORED, "st"),
            *_shared_links(reader),
            _l2_to_l1(reader),
            _link(reader, "L1 to L2", L1, L2, reader.named("L1 to L2", _L1_TO_L2), _share_of(_L1_TO_L2)),
            _dram_link(reader, "read", DRAM, L2),
            _dram_link(reader, "write", L2, DRAM),
        ),
        tuple(
            reader.total(where, "byte", SECTOR_BYTES, f"lts__t_sectors_aperture_{aperture}_lookup_miss.sum")
            for where, aperture in (("system memory", "sysmem"), ("peer memory", "peer"))
        ),
        (
            reader.concept("global_excess", "excess global sectors"),
            reader.total(
                "local memory (spills and local arrays)",
                "byte",
                SECTOR_BYTES,
                f"{_LOOKED_UP}lsu_mem_local_op_ld.sum",
                f"{_LOOKED_UP}lsu_mem_local_op_st.sum",
            ),
        ),
    )


def _kernel(reader: LaunchReader) -> MemoryLevel:
    requests = (f"l1tex__t_requests_pipe_lsu_mem_global_op_{access}.sum" for access in ("ld", "st"))
    return MemoryLevel(
        KERNEL,
        None,
        (
            reader.concept("inst_executed", "instructions"),
            reader.total("global requests", "", 1, *requests),
        ),
    )


def _l1(reader: LaunchReader) -> MemoryLevel:
    details = [
        reader.named(words, f"l1tex__t_sector_pipe_lsu_mem_global_op_{access}_hit_rate.pct")
        for words, access in (("global loads", "ld"), ("global stores", "st"))
    ]
    sectors = tuple(f"{_LOOKED_UP}{access}.sum" for access in _ATOMICS)
    details.append(reader.total("atomics and reductions", "byte", SECTOR_BYTES, *sectors))
    return MemoryLevel(
        L1,
        reader.concept("l1_hit", "L1 hit rate"),
        tuple(details),
        reader.concept("sol_l1", "throughput (active cycles)"),
    )


def _shared(reader: LaunchReader) -> MemoryLevel:
    details = [
        reader.named("a block", "launch__shared_mem_per_block"),
        reader.concept("shared_conflicts", "bank conflicts"),
        reader.concept("shared_excess", "excess wavefronts"),
    ]
    architecture = find_architecture(reader.chip)
    if architecture is None or architecture.async_copy:
        details.append(reader.named("cp.async past L1", _ASYNC_COPY))
    if architecture is None or architecture.matrix_instruction != "mma.sync":
        details.append(reader.named("TMA loads", _TMA_LOAD))
        details.append(reader.named("from other blocks' shared memory", _DSHARED))
    return MemoryLevel(SHARED, None, tuple(details))


def _l2(reader: LaunchReader) -> MemoryLevel:
    sectors = reader.concept("l2_sectors", "sectors")
    return MemoryLevel(
        L2, reader.concept("l2_hit", "L2 hit rate"), (sectors,), reader.concept("sol_l2", "throughput")
    )


def _dram(reader: LaunchReader) -> MemoryLevel:
    bandwidth = reader.concept("dram_bandwidth", "bandwidth")
    return MemoryLevel(DRAM, None, (bandwidth,), reader.concept("sol_dram", "throughput"))


def _accesses(
    reader: LaunchReader, name: str, source: str, target: str, parts: tuple[str, ...], access: str
) -> MemoryLink:
    """Loads or stores of the kernel, as the sectors that L1 looked up for them."""
    sectors = reader.total("sectors", "sector", 1, *(f"{_LOOKED_UP}{part}.sum" for part in parts))
    moved = reader.total(name, "byte", SECTOR_BYTES, *(f"{_LOOKED_UP}{part}.sum" for part in parts))
    requests = reader.named("global requests", f"l1tex__t_requests_pipe_lsu_mem_global_op_{access}.sum")
    own = reader.named("global sectors", f"{_LOOKED_UP}lsu_mem_global_op_{access}.sum")
    return MemoryLink(name, source, target, moved, None, None, (sectors, _ratio(own, requests)))


def _shared_links(reader: LaunchReader) -> tuple[MemoryLink, ...]:
    """Loads and stores of shared memory, in wavefronts."""
    links = []
    for name, source, target, access in (
        ("shared loads", SHARED, KERNEL, "ld"),
        ("shared stores", KERNEL, SHARED, "st"),
    ):
        counter = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{access}.sum"
        concept = f"shared_wavefronts_{'load' if access == 'ld' else 'store'}"
        moved = reader.concept(concept, name)
        links.append(
            MemoryLink(name, source, target, moved, None, reader.named("of peak", f"{counter}.{_ELAPSED}"))
        )
    return tuple(links)


def _l2_to_l1(reader: LaunchReader) -> MemoryLink:
    moved = reader.named("L2 to L1", _L2_TO_L1)
    if moved.value.state is State.NOT_COLLECTED:
        sectors = reader.total("L2 to L1", "byte", SECTOR_BYTES, _L2_READS)
        if sectors.number is not None:
            stands_in = Derivation(f"{SECTOR_BYTES} * {_L2_READS}", _L2_READS_MOST_OFF)
            baseline = sectors.baseline and sectors.baseline._replace(derivation=stands_in)
            value = sectors.value._replace(derivation=stands_in)
            moved = replace(sectors, value=value, baseline=baseline)
    return _link(reader, "L2 to L1", L2, L1, moved, _L2_TO_L1_SHARES)


def _dram_link(reader: LaunchReader, access: str, source: str, target: str) -> MemoryLink:
    moved = reader.concept(f"dram_{access}", f"DRAM {access}")
    # sm_120 has new names; reports of an older ncu carry the old ones there too.
    shares = (f"dram__bytes_{access}.sum.{_ELAPSED}", f"dram__bytes_op_{access}.sum.{_ELAPSED}")
    return _link(reader, f"DRAM {access}", source, target, moved, shares)


def _link(
    reader: LaunchReader,
    name: str,
    source: str,
    target: str,
    moved: LaunchNumber,
    shares: tuple[str, ...],
) -> MemoryLink:
    return MemoryLink(
        name, source, target, moved, reader.rate(moved, "rate"), reader.named("of peak", *shares)
    )


def _share_of(counter: str) -> tuple[str, ...]:
    return (f"{counter}.{_ELAPSED}",)


def _ratio(sectors: LaunchNumber, requests: LaunchNumber) -> LaunchNumber:
    """Sectors that a request takes; no number where there is no request."""
    name = f"{sectors.metric} / {requests.metric}"
    baseline = None
    if sectors.baseline is not None and requests.baseline is not None:
        baseline = _quotient(sectors.baseline, requests.baseline, name)
    value = _quotient(sectors.value, requests.value, name)
    return LaunchNumber("sectors per request", name, value, baseline)


def _quotient(above: Value, below: Value, formula: str) -> Value:
    if above.number is None or below.number is None:
        return Value(None, state=above.state if above.number is None else below.state)
    if not below.number:
        return Value(None, state=State.NO_DATA)
    return Value(float(above.number) / float(below.number), derivation=Derivation(formula))
