"""The facts of each GPU architecture in one table: a new one is a row here, and its names in metrics.txt.

Limits are from the CUDA Programming Guide, `ncu_chip` from `ncu --list-chips`. `default_target` only where
every version is to be compiled for it; `--arch` can always ask for the others. What depends on an
architecture is a field of its row: no other module asks for one by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import overload

# A binary for sm_90a has instructions that only sm_90 has, one for sm_100f those of its family.
# Source: CUDA C++ Programming Guide, "Feature-Set Compiler Targets".
ARCH_PATTERN = re.compile(r"sm_(\d+)([af]?)")
_PARTS = re.compile(r"sm_(\d+)(\d)([af]?)")  # the major number, the minor one, the letter


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What holds for every GPU of one compute capability. The defaults are those of the newest GPUs.

    The limits are those of one SM. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability"; cuda_occupancy.h and the `.minnctapersm` that ptxas takes, both of CUDA 13.0.
    """

    name: str  # sm_90
    # One chip of the architecture, as `ncu --chips` and (in capitals) NVIDIA's library call it; another chip
    # of the same compute capability has the same metrics. Source: ncu --list-chips of 2024.1; those of
    # Blackwell are newer than that ncu. The library knows GV100, though it does not list it. "": neither
    # knows one, so that the names of its metrics are unknown.
    ncu_chip: str
    # What a version is compiled for here unless its catalogue says otherwise; "": not for this one.
    default_target: str = ""

    max_warps: int
    max_blocks: int
    shared_bytes: int
    # What an SM's shared memory can be set to, up to all of it. Source: CUDA C++ Programming Guide, "Shared
    # Memory" of each compute capability; sm_88, sm_103, sm_110 and sm_121 as their relatives.
    shared_sizes_kb: tuple[int, ...] = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
    reserved_shared_bytes: int = 1024  # what the system takes from each block
    shared_unit: int = 128  # shared memory is given to a block in steps of so many bytes
    registers: int = 65536
    register_unit: int = 256  # registers are given to a warp in steps of so many
    partitions: int = 4  # the warps of a block are spread over so many sub-partitions
    limits_barriers: bool = True  # ncu tells how many blocks the barriers allow, and it can be the limit

    # Dense FP16 tensor FLOP a clock and SM, the highest of any card of the architecture: a lower bound on
    # time may then be too low, never too high. Source: NVIDIA's architecture whitepapers (V100, T4, A100,
    # A10, L4, H100, B200, RTX 5090) and data sheets (Jetson AGX Orin, B300, Jetson AGX Thor, DGX Spark).
    tensor_flops: int
    fp8_tensors: bool = True  # twice that rate on 8-bit operands
    sparse_tensors: bool = True  # the plain peak of a tensor counter is that of structured sparsity
    # Base-2 exponentials a clock and SM. Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
    # Instructions"; for sm_103 NVIDIA's description of Blackwell Ultra, which doubles them for attention.
    exponentials: int = 16
    fp64_operations: int = 2  # 64-bit FMA a clock and SM. Source: the same table

    # The widest PTX instruction that multiplies matrices on tensor cores. Source: PTX ISA 8.7, "Warp-Level
    # Matrix Instructions" (mma.sync, of every architecture here), "Asynchronous Warpgroup-Level Matrix
    # Instructions" (wgmma, sm_90a alone), "TensorCore 5th Generation Instructions" (tcgen05, not sm_12x).
    matrix_instruction: str = "mma.sync"
    # Columns of tensor memory, which blocks allocate. Source: PTX ISA, "Tensor Memory".
    tensor_columns: int = 0
    async_copy: bool = True  # cp.async: global to shared memory past the registers
    # The widest load of one lane. Source: PTX ISA 8.8, "ld", `.v8.b32` and `.v4.b64`, of sm_100 and later.
    lane_bytes: int = 32
    # The counter of what loads write back from L1. Shared memory is in it only on CC 7.0, which has no other.
    l1_counter: str = "l1tex__lsu_writeback_active_mem_lgds"

    # What the model of time reads. Lanes are those of one SM: a warp takes 32 / (lanes / partitions) cycles
    # of its partition's pipe. Source: the CUDA C++ Programming Guide's throughput table and NVIDIA's
    # whitepapers.
    fp32_lanes: int = 128
    half2_lanes: int = 128  # packed pairs of fp16
    integer_lanes: int = 64
    address_lanes: int = 32  # of the load/store unit
    # Of the tensor rate above, what mma.sync reaches. Source: arXiv 2402.13499 for sm_90, where wgmma alone
    # reaches all of it.
    mma_sync_share: float = 1.0
    l1_bytes: int  # L1 and shared memory together, of one SM
    l2_bytes_per_clock: int  # of the largest chip
    # A slice of L2: its size, and what it gives a clock. How many a chip has follows from the size of its L2.
    # Source: ncu's lts__t_sectors.avg.peak_sustained, and its sums over cycles in public reports of 20 chips;
    # sm_100 and sm_120 estimated.
    l2_slice_bytes: int = 2 << 20
    l2_slice_bytes_per_clock: int = 64
    # Cycles of the L1 data stage for one pass, and of an SM's port to L2 for one packet. Source: ncu's
    # l1tex__throughput, which counts both twice on sm_75 (64 bytes a clock of shared memory), once elsewhere.
    wavefront_cycles: float = 1.0
    # Cycles from issue to data where nothing is in the way. Source: arXiv 1804.06826 (sm_70), 1903.07486
    # (sm_75), 2208.11174 (sm_80), 2402.13499 (sm_89, sm_90), those of DRAM fitted on reports, and 2507.10789
    # (sm_120, L2 and DRAM); sm_86 as sm_89, sm_100 as sm_90. The other rows are estimates, as their
    # relatives: sm_87 and sm_88 as sm_86, sm_103 and sm_110 as sm_100, sm_121 as sm_120.
    shared_latency: int = 23
    l1_latency: int = 33
    l2_latency: int
    dram_latency: int
    # From the start of a launch to its first block, and from its last one to the end. Fitted on launches of a
    # few microseconds in public reports; sm_70 and sm_100 estimated.
    launch_cycles: float

    @property
    def compute_capability(self) -> str:
        """9.0: the last digit of the name is the minor number."""
        return f"{self.name[3:-1]}.{self.name[-1]}"

    @property
    def block_shared_bytes(self) -> int:
        """The most shared memory that one block may opt in to."""
        return self.shared_bytes - self.reserved_shared_bytes

    @property
    def carveouts_kb(self) -> tuple[int, ...]:
        """What an SM's shared memory can be set to."""
        return tuple(size for size in self.shared_sizes_kb if size << 10 <= self.shared_bytes)

    @property
    def library_chip(self) -> str:
        """What NVIDIA's library calls the chip: GH100."""
        return self.ncu_chip.upper()


ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        Architecture(
            name="sm_70",
            ncu_chip="gv100",
            max_warps=64,
            max_blocks=32,
            shared_bytes=96 << 10,
            shared_sizes_kb=(0, 8, 16, 32, 64, 96),
            reserved_shared_bytes=0,
            shared_unit=256,
            limits_barriers=False,
            tensor_flops=1024,
            fp64_operations=32,
            fp8_tensors=False,
            sparse_tensors=False,
            async_copy=False,
            l1_counter="l1tex__lsu_writeback_active",
            fp32_lanes=64,
            half2_lanes=64,
            lane_bytes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=2048,
            l2_slice_bytes=192 << 10,
            shared_latency=19,
            l1_latency=28,
            l2_latency=193,
            dram_latency=450,
            launch_cycles=2500,
        ),
        Architecture(
            name="sm_75",
            ncu_chip="tu102",
            max_warps=32,
            max_blocks=16,
            shared_bytes=64 << 10,
            shared_sizes_kb=(32, 64),
            reserved_shared_bytes=0,
            shared_unit=256,
            limits_barriers=False,
            tensor_flops=1024,
            fp8_tensors=False,
            sparse_tensors=False,
            async_copy=False,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            fp32_lanes=64,
            address_lanes=16,
            lane_bytes=16,
            l1_bytes=96 << 10,
            l2_bytes_per_clock=1536,
            l2_slice_bytes=128 << 10,
            l2_slice_bytes_per_clock=32,
            wavefront_cycles=2.0,
            shared_latency=19,
            l1_latency=32,
            l2_latency=188,
            dram_latency=450,
            launch_cycles=1500,
        ),
        Architecture(
            name="sm_80",
            ncu_chip="ga100",
            default_target="sm_80",
            max_warps=64,
            max_blocks=32,
            shared_bytes=164 << 10,
            limits_barriers=False,
            tensor_flops=2048,
            fp64_operations=32,
            fp8_tensors=False,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            fp32_lanes=64,
            lane_bytes=16,
            l1_bytes=192 << 10,
            l2_bytes_per_clock=4096,
            l2_slice_bytes=512 << 10,
            l2_latency=230,
            dram_latency=530,
            launch_cycles=2500,
        ),
        Architecture(
            name="sm_86",
            ncu_chip="ga102",
            max_warps=48,
            max_blocks=16,
            shared_bytes=100 << 10,
            limits_barriers=False,
            tensor_flops=1024,
            fp8_tensors=False,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            address_lanes=16,
            lane_bytes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=2048,
            l2_slice_bytes=128 << 10,
            l2_slice_bytes_per_clock=32,
            l2_latency=220,
            dram_latency=480,
            launch_cycles=2200,
        ),
        Architecture(
            name="sm_87",
            ncu_chip="ga10b",
            max_warps=48,
            max_blocks=16,
            shared_bytes=164 << 10,
            limits_barriers=False,
            tensor_flops=2048,
            fp8_tensors=False,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            address_lanes=16,
            lane_bytes=16,
            l1_bytes=192 << 10,
            l2_bytes_per_clock=1024,
            l2_slice_bytes=128 << 10,
            l2_slice_bytes_per_clock=32,
            l2_latency=220,
            dram_latency=480,
            launch_cycles=2200,
        ),
        Architecture(
            name="sm_88",
            ncu_chip="",
            max_warps=48,
            max_blocks=16,
            shared_bytes=100 << 10,
            limits_barriers=False,
            tensor_flops=1024,
            fp8_tensors=False,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            address_lanes=16,
            lane_bytes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=1024,
            l2_slice_bytes=128 << 10,
            l2_slice_bytes_per_clock=32,
            l2_latency=220,
            dram_latency=480,
            launch_cycles=2200,
        ),
        Architecture(
            name="sm_89",
            ncu_chip="ad102",
            default_target="sm_89",
            max_warps=48,
            max_blocks=24,
            shared_bytes=100 << 10,
            limits_barriers=False,
            tensor_flops=1024,
            l1_counter="l1tex__lsu_writeback_active_mem_lg",
            address_lanes=16,
            lane_bytes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=2560,
            l2_latency=270,
            dram_latency=560,
            launch_cycles=3200,
        ),
        Architecture(
            name="sm_90",
            ncu_chip="gh100",
            default_target="sm_90a",
            max_warps=64,
            max_blocks=32,
            shared_bytes=228 << 10,
            tensor_flops=4096,
            fp64_operations=64,
            matrix_instruction="wgmma",
            mma_sync_share=0.63,
            lane_bytes=16,
            l1_bytes=256 << 10,
            l2_bytes_per_clock=4096,
            l2_slice_bytes=512 << 10,
            l2_latency=265,
            dram_latency=650,
            launch_cycles=4000,
        ),
        Architecture(
            name="sm_100",
            ncu_chip="gb100",
            max_warps=64,
            max_blocks=32,
            shared_bytes=228 << 10,
            tensor_flops=8192,
            fp64_operations=64,
            matrix_instruction="tcgen05",
            tensor_columns=512,
            mma_sync_share=0.63,
            l1_bytes=256 << 10,
            l2_bytes_per_clock=4096,
            l2_latency=265,
            dram_latency=650,
            launch_cycles=4000,
        ),
        Architecture(
            name="sm_103",
            ncu_chip="gb110",
            max_warps=64,
            max_blocks=32,
            shared_bytes=228 << 10,
            tensor_flops=8192,
            matrix_instruction="tcgen05",
            tensor_columns=512,
            mma_sync_share=0.63,
            exponentials=32,
            l1_bytes=256 << 10,
            l2_bytes_per_clock=4096,
            l2_latency=265,
            dram_latency=650,
            launch_cycles=4000,
        ),
        Architecture(
            name="sm_110",
            ncu_chip="gb10b",
            max_warps=48,
            max_blocks=24,
            shared_bytes=228 << 10,
            tensor_flops=8192,
            matrix_instruction="tcgen05",
            tensor_columns=512,
            mma_sync_share=0.63,
            l1_bytes=256 << 10,
            l2_bytes_per_clock=1280,
            l2_latency=265,
            dram_latency=650,
            launch_cycles=4000,
        ),
        Architecture(
            name="sm_120",
            ncu_chip="gb202",
            max_warps=48,
            max_blocks=24,
            shared_bytes=100 << 10,
            tensor_flops=1024,
            address_lanes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=3072,
            l2_latency=358,
            dram_latency=877,
            launch_cycles=3200,
        ),
        Architecture(
            name="sm_121",
            ncu_chip="gb20b",
            max_warps=48,
            max_blocks=24,
            shared_bytes=100 << 10,
            tensor_flops=1024,
            address_lanes=16,
            l1_bytes=128 << 10,
            l2_bytes_per_clock=3072,
            l2_latency=358,
            dram_latency=877,
            launch_cycles=3200,
        ),
    )
}

# Up to CUDA 12.9 Thor was called sm_101. Source: CUDA 13.0's release notes.
_RENAMED = {"sm_101": "sm_110"}


@overload
def chip_of(compute_capability: str) -> str: ...


@overload
def chip_of(compute_capability: str | None) -> str | None: ...


def chip_of(compute_capability: str | None) -> str | None:
    """The name of the architecture with a compute capability: "9.0" is sm_90, "12.0" is sm_120."""
    if not compute_capability:  # unknown
        return None
    major, minor = (int(part) for part in compute_capability.split("."))
    name = f"sm_{major}{minor}"
    return _RENAMED.get(name, name)


FIRST_OF_128_BITS = 70  # its number: an instruction has 128 bits from there on, 64 before
_TURING = "sm_75"


def holds_on(chips: frozenset[str], chip: str | None) -> bool:
    """Whether what is limited to these chips holds on one; no chips: it holds on every chip.

    A chip whose metrics no table knows excludes nothing.
    """
    row = ARCHITECTURES.get(chip or "")
    return row is None or not row.ncu_chip or not chips or chip in chips


def find_architecture(name: str | None) -> Architecture | None:
    """The row of an architecture, with or without a suffix (sm_90a); None where the table lacks it."""
    match = ARCH_PATTERN.fullmatch(name or "")
    if match is None:
        return None
    plain = f"sm_{match[1]}"
    return ARCHITECTURES.get(_RENAMED.get(plain, plain))


def arch_number(name: str) -> int:
    """The number of an architecture: 90 of sm_90a. Raises ValueError for what is no name of one."""
    match = ARCH_PATTERN.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is no architecture")
    return int(match[1])


def disassembled_as(name: str) -> str:
    """What nvdisasm is asked for: its toolkit 13 knows nothing before Turing, which has Volta's encoding."""
    return _TURING if FIRST_OF_128_BITS <= arch_number(name) < arch_number(_TURING) else name


def architecture_of(compute_capability: str) -> Architecture | None:
    """The row of a compute capability ("9.0"); None where the table lacks it."""
    return find_architecture(f"sm_{compute_capability.replace('.', '')}")


def newest_running_on(capability: str, arches: Iterable[str]) -> str | None:
    """The newest of the architectures whose code runs on a GPU of a compute capability ("9.0").

    Code runs on GPUs of its major number and its minor number or a higher one, that of sm_90a on 9.0 alone.
    Source: CUDA C++ Programming Guide, "Binary Compatibility" and "Feature-Set Compiler Targets".
    """
    major, minor = (int(part) for part in capability.split("."))
    running = []
    for arch in arches:
        match = _PARTS.fullmatch(arch)
        if match and int(match[1]) == major:
            arch_minor, is_specific = int(match[2]), match[3] == "a"
            if arch_minor == minor if is_specific else arch_minor <= minor:
                running.append((arch_minor, is_specific, arch))
    return max(running)[2] if running else None
