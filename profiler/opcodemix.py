"""What an opcode is for: the classes that an opcode mix is shown in."""

from __future__ import annotations

from collections.abc import Mapping

# Class -> base opcodes; what none names is in the last.
_NAMED = {
    "tensor core": "HMMA HGMMA QGMMA IMMA IGMMA BMMA WARPGROUP",
    "float math": "FFMA FMUL FADD FMNMX FSEL FSETP FSET FCHK MUFU HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 "
    "F2F F2FP F2I I2F I2FP DADD DMUL DFMA",
    "shared memory": "LDS STS LDSM STSM ATOMS LDGSTS MOVM",
    "global, local memory": "LDG STG LD ST LDL STL LDC ULDC RED ATOM ATOMG UTMALDG",
    "barriers and shuffles": "BAR SHFL WARPSYNC DEPBAR LDGDEPBAR BSSY BSYNC MEMBAR SYNCS VOTE VOTEU REDUX",
}
CLASSES: Mapping[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _NAMED.items()}
OTHER = "integer, control …"
NAMES = (*CLASSES, OTHER)


def shares(opcodes: Mapping[str, float]) -> dict[str, float]:
    """The share of each class in per cent, in the order of the classes; nothing where there is no opcode."""
    total = sum(opcodes.values())
    if not total:
        return {}
    found = dict.fromkeys(NAMES, 0.0)
    for opcode, count in opcodes.items():
        base = opcode.partition(".")[0]
        found[next((name for name, members in CLASSES.items() if base in members), OTHER)] += count
    return {name: 100 * count / total for name, count in found.items()}
