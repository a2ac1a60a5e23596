"""What machine code says without running: its opcode counts by class, its size, its hash."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import subprocess
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from profiler.build.code_images import choose_images
from profiler.build.instruction_text import InstructionText, read_line, split_instruction
from profiler.build.toolchain import require_tool
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BuildFailed

_WIDE = r"\b(?:\.\w+)*\.{}\b"  # bits of a lane: LDG.E.128.CONSTANT, LDG.E.ENL2.256, but not LDG.E.LTC128B
# What the whole opcode, modifiers included, must begin with to count for a class. LDG alone would also match
# LDGSTS and LDGDEPBAR.
OPCODE_CLASSES: Mapping[str, str] = {
    "HMMA": r"HMMA\b",
    "HGMMA": r"HGMMA\b",
    "QGMMA": r"QGMMA\b",
    "QMMA": r"QMMA\b",
    "OMMA": r"OMMA\b",
    "IMMA": r"IMMA\b",
    "DMMA": r"DMMA\b",
    "UTCHMMA": r"UTCHMMA\b",
    "UTCQMMA": r"UTCQMMA\b",
    "UTCOMMA": r"UTCOMMA\b",
    "UTCIMMA": r"UTCIMMA\b",
    "FFMA": r"FFMA\b",
    "FMUL": r"FMUL\b",
    "FADD": r"FADD\b",
    "FFMA2": r"FFMA2\b",
    "FMUL2": r"FMUL2\b",
    "FADD2": r"FADD2\b",
    "FMNMX3": r"FMNMX3\b",
    "HFMA2": r"HFMA2\b",
    "MUFU": r"MUFU\b",
    "MUFU.EX2": r"MUFU\.EX2\b",
    "LDSM": r"LDSM\b",
    "LDSM.T": r"LDSM\b.*\.MT",
    "STSM": r"STSM\b",
    "LDS": r"LDS(\.|$)",
    "STS": r"STS(\.|$)",
    "LDG": r"LDG(\.|$)",
    "LDG.128": r"LDG" + _WIDE.format(128),
    "LDG.256": r"LDG" + _WIDE.format(256),
    "STG": r"STG(\.|$)",
    "STG.128": r"STG" + _WIDE.format(128),
    "STG.256": r"STG" + _WIDE.format(256),
    "LDGSTS": r"LDGSTS\b",
    "UTMALDG": r"UTMALDG\b",
    "UTMASTG": r"UTMASTG\b",
    "UTMAREDG": r"UTMAREDG\b",
    "UBLKCP": r"UBLKCP\b",
    "LDCU": r"LDCU\b",
    "LDTM": r"LDTM\b",
    "STTM": r"STTM\b",
    "UTCCP": r"UTCCP\b",
    "UTCBAR": r"UTCBAR\b",
    "SYNCS": r"SYNCS\b",
    "STAS": r"STAS\b",
    "BAR": r"BAR\b",
    "WARPSYNC": r"WARPSYNC\b",
    "SHFL": r"SHFL\b",
    "REDUX": r"REDUX\b",
    "CREDUX": r"CREDUX\b",
    "ATOMS": r"ATOMS\b",
    # On global memory, with and without a result, whatever the architecture calls it.
    "RED": r"(REDG?|ATOMG?)\b",
    "LDL": r"LDL\b",
    "STL": r"STL\b",
    "DEPBAR": r"(LDGDEPBAR|DEPBAR)\b",
}
_PATTERNS = [(name, re.compile(pattern)) for name, pattern in OPCODE_CLASSES.items()]
_SETMAXNREG = re.compile(r"\bUSETMAXREG\.(\w+)\S*\s+(?:UP\w+,\s*)?0x([0-9a-f]+)")
_NEVER = ("!PT", "!UPT")  # predicates that are never true: ptxas pads LDGSTS with @!PT LDS
INSTRUCTION_BYTES = 16  # since sm_70
TIME_LIMIT_S = 120


@dataclass(frozen=True)
class CodeSummary:
    """The machine code of one kernel function on one architecture. It counts sites, not executions."""

    function: str  # mangled
    arch: str
    instructions: int  # without padding, which never executes
    code_bytes: int  # with padding
    classes: Mapping[str, int] = field(default_factory=dict)  # every class, 0 where there is none
    opcodes: Mapping[str, int] = field(default_factory=dict)  # by opcode without modifiers
    # What setmaxnreg leaves a thread, where it releases registers and where it claims some.
    released_registers: tuple[int, ...] = ()
    claimed_registers: tuple[int, ...] = ()
    sha256: str = ""  # of the instructions and their encoding: equal for equal machine code


def dump_sass(library: Path, arch: str) -> str:
    """cuobjdump's listing of one architecture's machine code; made once and cached beside the library.

    Raises CannotJudge where the tools are missing, BuildFailed where the library has no such code or the tool
    does not end.
    """
    cached = library.with_name(f"{arch}.sass.gz")
    with contextlib.suppress(OSError, EOFError):  # there is none, or half a file
        return gzip.decompress(cached.read_bytes()).decode()
    cuobjdump, nvdisasm = require_tool("cuobjdump"), require_tool("nvdisasm")
    environment = {**os.environ, "PATH": f"{nvdisasm.path.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        with scratch_folder() as folder:
            texts = []
            for image in choose_images(library, arch):
                cubin = folder / f"{image.number}.cubin"
                cubin.write_bytes(image.content)
                done = subprocess.run(
                    [str(cuobjdump.path), "--dump-sass", str(cubin)],
                    capture_output=True,
                    text=True,
                    env=environment,
                    timeout=TIME_LIMIT_S,
                )
                texts.append(done.stdout)
                if done.returncode:
                    break
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"no {arch} machine code of {library}: {error}") from error
    sass = "".join(texts)
    if done.returncode or "Function :" not in sass:
        message = (done.stderr or done.stdout).strip().splitlines()
        raise BuildFailed(
            f"no {arch} machine code in {library}: {message[-1] if message else 'cuobjdump printed nothing'}"
        )
    partial = cached.with_name(f".{uuid.uuid4().hex}")
    partial.write_bytes(gzip.compress(sass.encode(), 6, mtime=0))
    partial.replace(cached)
    return sass


def summarize_code(sass: str, arch: str) -> list[CodeSummary]:
    """The functions of cuobjdump's listing, in its order, counted without what never executes."""
    summaries: list[CodeSummary] = []
    for part in sass.split("Function :")[1:]:
        function, _, listing = part.partition("\n")
        total = 0
        sites_of: Counter[str] = Counter()  # by whole opcode, modifiers included
        for line in listing.splitlines():
            found = read_line(line)
            if found and (instruction := split_instruction(found[1])):
                total += 1
                if not _never_executes(found[0], instruction):
                    sites_of[instruction.opcode] += 1
        set_registers = [(how == "DEALLOC", int(count, 16)) for how, count in _SETMAXNREG.findall(listing)]
        classes, opcodes = opcode_sites(sites_of)
        summaries.append(
            CodeSummary(
                function.strip(),
                arch,
                sum(opcodes.values()),
                total * INSTRUCTION_BYTES,
                classes,
                opcodes,
                tuple(count for is_release, count in set_registers if is_release),
                tuple(count for is_release, count in set_registers if not is_release),
                _digest(listing),
            )
        )
    return summaries


def _digest(listing: str) -> str:
    """The hash of instructions and encodings: the lines that begin with `/*`, however they are aligned."""
    lines = (" ".join(line.split()) for line in listing.splitlines())
    return sha256("\n".join(line for line in lines if line.startswith("/*")).encode()).hexdigest()


def opcode_sites(opcodes: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """How many sites there are by class of OPCODE_CLASSES, and by opcode without modifiers.

    opcodes: sites by whole opcode.
    """
    classes = dict.fromkeys(OPCODE_CLASSES, 0)
    plain: Counter[str] = Counter()
    for opcode, sites in opcodes.items():
        plain[opcode.split(".")[0]] += sites
        for name in _classes_of(opcode):
            classes[name] += sites
    return classes, dict(sorted(plain.items()))


@cache
def _classes_of(opcode: str) -> tuple[str, ...]:
    return tuple(name for name, pattern in _PATTERNS if pattern.match(opcode))


def _never_executes(offset: int, instruction: InstructionText) -> bool:
    """Whether it is padding: NOP, a predicate that is never true, the jump to itself behind the last EXIT."""
    guard, opcode, operands = instruction
    if opcode == "NOP" or guard in _NEVER:
        return True
    return opcode == "BRA" and not guard and _is_offset(operands, offset)


def _is_offset(operand: str, offset: int) -> bool:
    try:
        return int(operand, 16) == offset
    except ValueError:
        return False
