"""What an opcode is for: the classes that an opcode mix is shown in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

# Class -> base opcodes; what none names is in the last.
_NAMED = {
    "tensor core": "HMMA HGMMA QMMA QGMMA OMMA IMMA IGMMA BMMA BGMMA DMMA "
    "UTCHMMA UTCQMMA UTCOMMA UTCIMMA WARPGROUP",
    "float math": "FFMA FMUL FADD FMNMX FSEL FSETP FSET FCHK MUFU HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 "
    "F2F F2FP F2I I2F I2FP DADD DMUL DFMA",
    "shared memory": "LDS STS LDSM STSM ATOMS LDGSTS MOVM",
    "global, local memory": "LDG STG LD ST LDL STL LDC ULDC RED ATOM ATOMG UTMALDG",
    "barriers and shuffles": "BAR SHFL WARPSYNC DEPBAR LDGDEPBAR BSSY BSYNC MEMBAR SYNCS VOTE VOTEU REDUX",
}
OPCODE_CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(text.split()) for name, text in _NAMED.items()
}
OTHER = "integer, control …"
CLASS_NAMES = (*OPCODE_CLASSES, OTHER)


@cache
def opcode_class(opcode: str) -> str:
    """The class of an opcode, its modifiers aside."""
    base = opcode.partition(".")[0]
    return next((name for name, members in OPCODE_CLASSES.items() if base in members), OTHER)


def is_matrix_multiply(opcode: str) -> bool:
    """Whether an opcode multiplies matrices. HFMA2.MMA does not, although the tensor pipe counts it."""
    return opcode_class(opcode) == "tensor core" and "MMA" in opcode.partition(".")[0]


def class_shares(opcodes: Mapping[str, float]) -> dict[str, float]:
    """The share of each class in per cent, in the order of the classes; nothing where there is no opcode."""
    total = sum(opcodes.values())
    if not total:
        return {}
    found = dict.fromkeys(CLASS_NAMES, 0.0)
    for opcode, count in opcodes.items():
        found[opcode_class(opcode)] += count
    return {name: 100 * count / total for name, count in found.items()}
