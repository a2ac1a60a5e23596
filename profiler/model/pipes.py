"""Which unit of an SM an instruction runs on, and for how many cycles a warp keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from itertools import chain
from typing import NamedTuple

from profiler.build.instruction_text import split_instruction
from profiler.evidence.gpu_arch import Architecture
from profiler.evidence.gpu_parts import GpuPart
from profiler.evidence.opcodes import XU_OPCODES, base_opcode


class Pipe(IntEnum):
    """The units that instructions issue to. All but LSU are there once in each of the SM's partitions."""

    NONE = 0
    FMA = 1
    ALU = 2
    FP64 = 3
    XU = 4
    TENSOR = 5
    LSU = 6
    UNIFORM = 7
    FMA_HEAVY = 8  # the half of the FMA pipe that multiplies integers, from sm_86
    BRANCH = 9

    @property
    def label(self) -> str:
        """As tables write it."""
        return _LABELS.get(self, self.name.lower())


_LABELS = {
    Pipe.LSU: "load/store",
    Pipe.FMA_HEAVY: "FMA heavy",
    Pipe.FMA: "FMA",
    Pipe.ALU: "ALU",
    Pipe.FP64: "FP64",
    Pipe.XU: "XU (special functions)",
    Pipe.TENSOR: "tensor cores",
    Pipe.BRANCH: "branches",
}


class PipeUse(NamedTuple):
    """What a warp instruction takes of the unit that it runs on."""

    pipe: Pipe
    cycles: float


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Source: CUDA Binary Utilities, "Instruction Set Reference", for what they do; arXiv 2503.20481 for where.
_FP64 = _words("DADD DMUL DFMA DSETP DMNMX DMMA")
_FP32 = _words("FFMA FMUL FADD FFMA32I FMUL32I FADD32I")
_HALF = _words("HADD2 HMUL2 HFMA2 HSETP2 HSET2 HMNMX2 HADD2_32I HFMA2_32I")
_SPECIAL = frozenset(chain.from_iterable(XU_OPCODES.values()))
# From and to 64-bit types they are as slow as 64-bit sums. Source: CUDA C++ Programming Guide, "Throughput of
# Native Arithmetic Instructions".
_CONVERSIONS = _words("I2F F2I F2F FRND")
LOAD_STORE = _words(
    "LD ST LDG STG LDS STS LDSM STSM LDL STL ATOM ATOMG ATOMS RED REDG LDGSTS SHFL TEX TLD SULD SUST MATCH "
    "LDTRAM"
)
GLOBAL_ACCESSES = _words("LDG STG LD ST LDL STL LDGSTS ATOM ATOMG RED REDG")
_BRANCHES = _words("BRA BRX JMP CALL RET EXIT BSSY BSYNC BREAK WARPSYNC BMOV KILL YIELD RPCMOV BRXU JMX")
_INTEGER_MULTIPLY = _words("IMAD IMUL")
_NO_PIPE = _words(
    "S2R S2UR B2R R2B CS2R BAR DEPBAR LDGDEPBAR MEMBAR NOP CCTL ERRBAR ARRIVES NANOSLEEP LEPC R2UR VOTEU "
    "FENCE ELECT ENDCOLLECTIVE PREEXIT LDC"
)
_MATRIX = _words("HMMA IMMA BMMA QMMA")
# Atomics, which wait for each other, and asynchronous units: there is no model of when their work is done.
NO_MODEL = _words(
    "ATOM ATOMG RED REDG ATOMS HGMMA IGMMA QGMMA BGMMA WARPGROUP WARPGROUPDEPBAR UTMALDG UTMASTG UTMAREDG "
    "UTMAPF UBLKCP SYNCS ACQBULK UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCBAR LDTM STTM UCGABAR_ARV UCGABAR_WAIT"
)

# Multiply-adds of one warp-wide matrix instruction, by its shape. Source: PTX ISA, "Matrix Shape".
MULTIPLY_ADDS: Mapping[str, int] = {
    "1684": 512,
    "1688": 1024,
    "8816": 1024,
    "16816": 2048,
    "8832": 2048,
    "16832": 4096,
    "16864": 8192,
    "168128": 16384,
    "168256": 32768,
}
_HMMA_884_CYCLES = 4.0  # of Volta, fitted: a product of 8 × 8 × 4 takes four such steps
_BMMA_CYCLES, _DMMA_CYCLES = 8.0, 16.0  # fitted


def pipe_use(text: str, part: GpuPart) -> PipeUse:
    """What an instruction takes, by its text, on a GPU."""
    opcode = opcode_of(text)
    base = base_opcode(opcode)
    modifiers = opcode[len(base) :]
    architecture = part.architecture
    warp = 32 * architecture.partitions
    if base in _MATRIX:
        return PipeUse(Pipe.TENSOR, _tensor_cycles(base, modifiers, part))
    if base == "DMMA":
        return PipeUse(Pipe.TENSOR, _DMMA_CYCLES)
    if base in _FP64:
        return PipeUse(Pipe.FP64, warp / architecture.fp64_operations)
    if base in _FP32:
        return PipeUse(Pipe.FMA, warp / architecture.fp32_lanes)
    if base in _HALF:
        return PipeUse(Pipe.FMA, warp / architecture.half2_lanes)
    if base in _INTEGER_MULTIPLY:
        return _integer_multiply(modifiers, architecture)
    if (
        base in _CONVERSIONS
        and "64" in modifiers
        and architecture.fp64_operations < architecture.exponentials
    ):
        return PipeUse(Pipe.FP64, warp / architecture.fp64_operations)
    if base in _SPECIAL:
        return PipeUse(Pipe.XU, warp / architecture.exponentials)
    if base in LOAD_STORE:
        return PipeUse(Pipe.LSU, 32 / architecture.address_lanes)
    if base in _BRANCHES:
        return PipeUse(Pipe.BRANCH, 1.0 if base == "BSSY" else 2.0)
    if base in _NO_PIPE:
        return PipeUse(Pipe.NONE, 1.0)
    if base.startswith("U"):
        return PipeUse(Pipe.UNIFORM, 2.0)
    return PipeUse(Pipe.ALU, warp / architecture.integer_lanes)


def opcode_of(text: str) -> str:
    """The opcode of an instruction's text with its modifiers; NOP for what is none."""
    words = split_instruction(text)
    return words.opcode if words else "NOP"


def _integer_multiply(modifiers: str, architecture: Architecture) -> PipeUse:
    is_wide = ".WIDE" in modifiers or ".HI" in modifiers
    if architecture.fp32_lanes > 64:  # two halves of the FMA pipe: moves and sums run on either
        if re.search(r"\.(MOV|IADD|SHL)", modifiers):
            return PipeUse(Pipe.FMA, 1.0)
        return PipeUse(Pipe.FMA_HEAVY, 4.0 if is_wide else 2.0)
    return PipeUse(Pipe.FMA, 4.0 if is_wide else 2.0)


def _tensor_cycles(base: str, modifiers: str, part: GpuPart) -> float:
    """Cycles of a partition's tensor core for a matrix instruction."""
    architecture = part.architecture
    if base == "BMMA":
        return _BMMA_CYCLES
    match = re.search(r"\.(\d+)", modifiers)
    shape = match[1] if match else ""
    if shape == "884":
        return _HMMA_884_CYCLES
    products = MULTIPLY_ADDS.get(shape, 2048)
    rate = architecture.tensor_flops / 2 / architecture.partitions * architecture.mma_sync_share
    if base == "HMMA":
        if ".TF32" in modifiers:
            rate /= 2
        if part.halves_fp32_accumulation and ".F32" in modifiers:
            rate /= 2
    else:
        rate *= 4 if ".S4" in modifiers or ".U4" in modifiers else 2
    return products / rate
