"""What an opcode is for: the classes of an opcode mix, and which opcodes multiply matrices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

# What each tensor opcode multiplies. Source: CUDA Binary Utilities, "Instruction Set Reference".
TENSOR_OPCODES: Mapping[str, str] = {
    **dict.fromkeys(("HMMA", "HGMMA", "UTCHMMA"), "float"),
    **dict.fromkeys(("QMMA", "QGMMA", "UTCQMMA"), "fp8"),
    **dict.fromkeys(("OMMA", "UTCOMMA"), "fp4"),
    **dict.fromkeys(("IMMA", "IGMMA", "UTCIMMA"), "int"),
    **dict.fromkeys(("BMMA", "BGMMA"), "bit"),
    "DMMA": "fp64",
}

TENSOR_CORE, OTHER = "tensor core", "integer, control …"
_BY_CLASS = {
    TENSOR_CORE: " ".join((*TENSOR_OPCODES, "WARPGROUP")),
    "float math": "FFMA FMUL FADD FMNMX FSEL FSETP FSET FCHK MUFU HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 "
    "F2F F2FP F2I I2F I2FP DADD DMUL DFMA",
    "shared memory": "LDS STS LDSM STSM ATOMS LDGSTS MOVM",
    "global, local memory": "LDG STG LD ST LDL STL LDC ULDC RED ATOM ATOMG UTMALDG",
    "barriers and shuffles": "BAR SHFL WARPSYNC DEPBAR LDGDEPBAR BSSY BSYNC MEMBAR SYNCS VOTE VOTEU REDUX",
}
OPCODE_CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(opcodes.split()) for name, opcodes in _BY_CLASS.items()
}
CLASS_NAMES = (*OPCODE_CLASSES, OTHER)  # what no class names is in the last


def base_opcode(opcode: str) -> str:
    """The opcode without its modifiers: HMMA of HMMA.16816.F32."""
    return opcode.partition(".")[0]


@cache
def opcode_class(opcode: str) -> str:
    """The class of an opcode, whatever its modifiers."""
    base = base_opcode(opcode)
    return next((name for name, members in OPCODE_CLASSES.items() if base in members), OTHER)


def is_matrix_multiply(opcode: str) -> bool:
    """Whether an opcode multiplies matrices. HFMA2.MMA does not, although the tensor pipe counts it."""
    return base_opcode(opcode) in TENSOR_OPCODES


def class_shares(opcodes: Mapping[str, float]) -> dict[str, float]:
    """The share of each class in per cent, in the order of the classes; nothing where there is no opcode."""
    total = sum(opcodes.values())
    if not total:
        return {}
    counts = dict.fromkeys(CLASS_NAMES, 0.0)
    for opcode, count in opcodes.items():
        counts[opcode_class(opcode)] += count
    return {name: 100 * count / total for name, count in counts.items()}
