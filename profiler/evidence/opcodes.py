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

# Opcodes that do what another one does, by the name of the other: since sm_90 a reduction in global memory is
# called REDG, and since sm_100 there are fp32 operations on pairs.
_SAME_OPERATION = {"REDG": "RED", "FFMA2": "FFMA", "FMUL2": "FMUL", "FADD2": "FADD"}

# What the XU and the ADU pipe execute, by kind. Source: Nsight Compute Profiling Guide, "Pipelines"; for bit
# counts arXiv 2503.20481.
XU_OPCODES: Mapping[str, tuple[str, ...]] = {
    "special functions": ("MUFU",),
    "conversions": ("I2F", "F2I", "F2F", "FRND", "I2I"),
    "bit counts": ("POPC", "FLO", "BREV"),
}
ADU_OPCODES: Mapping[str, tuple[str, ...]] = {
    "indexed constants": ("LDC",),
    "barriers": ("BAR",),
    "indirect branches": ("BRX", "JMX"),
}

TENSOR_CORE, OTHER = "tensor core", "integer, control …"
# Source: CUDA Binary Utilities, "Instruction Set Reference", Volta to Blackwell; what it does not list and
# nvdisasm 13.2 prints is sorted by the PTX instruction that it comes from.
_BY_CLASS = {
    TENSOR_CORE: " ".join((*TENSOR_OPCODES, "WARPGROUP WARPGROUPDEPBAR WARPGROUPSET")),
    "float math": "FFMA FMUL FADD FFMA2 FMUL2 FADD2 FHADD FHFMA FFMA32I FMUL32I FADD32I FSWZADD FMNMX FMNMX3 "
    "FSEL FSETP FSET FCHK MUFU HFMA2 HADD2 HMUL2 HFMA2_32I HADD2_32I HMUL2_32I HMNMX2 VHMNMX HSETP2 HSET2 "
    "F2F F2FP F2I F2IP I2F I2FP FRND DADD DMUL DFMA DMNMX DSET DSETP "
    "QADD4 QMUL4 QFMA4 UFADD UFMUL UFFMA UFMNMX UFSEL UFSET UFSETP UFRND UF2F UF2FP UF2I UF2IP UI2F UI2FP",
    "shared memory": "LDS STS LDSM STSM ATOMS LDGSTS MOVM STAS REDAS",
    "tensor memory": "LDTM STTM LDT STT UTCCP UTCSHIFT UTCATOMSWS UTCLDSWS UTCSTSWS",
    "global, local memory": "LDG STG LD ST LDL STL LDC LDCU ULDC LDGMC RED REDG ATOM ATOMG CCTL CCTLL CCTLT "
    "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKPF UBLKRED "
    "TEX TLD TLD4 TMML TXD TXQ SULD SUST SURED SUATOM SUQUERY",
    "barriers and shuffles": "BAR SHFL WARPSYNC DEPBAR LDGDEPBAR BSSY BSYNC MEMBAR FENCE ERRBAR CGAERRBAR "
    "SYNCS ARRIVES UTCBAR UCGABAR_ARV UCGABAR_WAIT ACQBULK ENDCOLLECTIVE ELECT MATCH VOTE VOTEU REDUX CREDUX "
    "NANOSLEEP YIELD",
}
OPCODE_CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(opcodes.split()) for name, opcodes in _BY_CLASS.items()
}
CLASS_NAMES = (*OPCODE_CLASSES, OTHER)  # what no class names is in the last


def base_opcode(opcode: str) -> str:
    """The opcode without its modifiers: HMMA of HMMA.16816.F32."""
    return opcode.partition(".")[0]


def operation(opcode: str) -> str:
    """What an opcode does, by one name on all architectures: RED for REDG.E.ADD.F32, else its base."""
    base = base_opcode(opcode)
    return _SAME_OPERATION.get(base, base)


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
