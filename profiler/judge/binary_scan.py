"""What the machine code of a candidate may not have: state, answers, and ways out of computing."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.build.elf import WRITE
from profiler.judge.compilation import CandidateCode

MOST_CONSTANT_BYTES = 4096  # of all tables together: more looks like an answer
# Sections that hold what threads can write and the next launch reads.
_STATE = (".nv.global", ".bss", ".data", ".nv.managed")
# Functions of the device runtime, by how their names begin.
_CALLS = {
    "vprintf": "prints",
    "malloc": "allocates memory",
    "free": "allocates memory",
    "__assertfail": "asserts",
    "__assert_fail": "asserts",
    "cudaLaunchDevice": "launches kernels from the device",
    "cudaGetParameterBuffer": "launches kernels from the device",
    "cnpLaunch": "launches kernels from the device",
    "__cudaCDP": "launches kernels from the device",
    "cudaCDP": "launches kernels from the device",
}
_OPCODES = {
    "NANOSLEEP": "sleeps",
    "BPT": "stops for a debugger",
    "KILL": "kills lanes",
    "PMTRIG": "triggers a performance monitor",
    "SETLMEMBASE": "moves its local memory",
}
# What compilers make of a wait for an mbarrier, which ends it; and of the allocation of tensor memory, which
# is tried again and stops the launch where it cannot succeed. Seen in code of ptxas 13.0 to 13.4.
_BARRIER_WAIT = "NANOSLEEP.SYNCS"
_ALLOCATES, _OF_ALLOCATION = "UTCATOMSWS", ("NANOSLEEP", "BPT.TRAP")
# Registers that tell time or place, which no result may depend on.
_SPECIAL = ("SR_CLOCK", "SR_GLOBALTIMER", "SR_GLOBAL_TIMER", "SR_SMID", "SR_VIRT", "SR_WARPID", "SR_NSMID")
_PLACE = ("SR_SMID", "SR_VIRT", "SR_NSMID")


# Before the names of what Blackwell's cubins hold once more, in another encoding.
_COPY = ".nv.merc"
# Where addresses of global memory lie for the code to read, and where they have no effect on what runs.
_POINTERS = (".nv.constant4", ".nv.constant.pic")
# Data that compilers put there by themselves, by how its name begins, and how to do without it.
_COMPILERS_DATA = {
    "__cudart_": "these are tables of sin, cos and tan for large arguments: call __sinf, sinpif or the like, "
    "or compile with --use_fast_math",
    "_ZTV": "these are tables of virtual functions: take templates or a switch",
    "$str": "this is a string: put it into __constant__",
}
_DEBUG = (".debug", ".nv_debug", ".nv.tileir.debug", ".nv.host", ".eh_frame")


def scan_binary(code: CandidateCode) -> Iterator[str]:
    """What stands against the binary, a sentence each; nothing where there is nothing."""
    names = [name for name, _, _, _ in code.sections if name.startswith((".text.", ".nv."))]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"several sections {name}: which of them a GPU would run is not known"
    for name, section, _, _ in code.symbols:
        if name in code.kernels and section != f".text.{name}":
            yield f"the symbol of {name} lies in {section or 'no section'}"
    constants = 0
    named = _named_sections(code)
    for name, size, flags, _ in code.sections:
        if name.startswith(f"{_COPY}."):
            name = name.removeprefix(_COPY)
        if size and any(name == state or name.startswith(f"{state}.") for state in _STATE):
            if name not in named:  # such as a string that a compiler left behind, or cuTile's launch data
                continue
            words = ", ".join(s for s, place, _, _ in code.symbols if place == name and not s.startswith("."))
            yield (
                f"{size} bytes of global memory of its own{f' ({words[:80]})' if words else ''}: what one "
                f"launch leaves there the next can replay; {_way_out(words)}"
            )
        elif name.startswith(".nv.constant3") or name.startswith(".nv.constant2"):
            constants += size
        elif flags & WRITE and size and not name.startswith((".nv.shared", ".nv.global", ".nv.local")):
            yield f"a writable section {name} of {size} bytes"
    if constants > MOST_CONSTANT_BYTES:
        yield (
            f"{constants} bytes of constant tables, of which {MOST_CONSTANT_BYTES} are allowed: so much "
            "could be an answer"
        )
    for name, section, _, _ in code.symbols:
        if not section:
            called = next((words for call, words in _CALLS.items() if name.startswith(call)), "")
            if called:
                yield f"it {called}: it calls {name}"
    for function, kernel in code.kernels.items():
        allocates = any(opcode.startswith(_ALLOCATES) for opcode in kernel.opcodes)
        for opcode in kernel.opcodes:
            if opcode == _BARRIER_WAIT or (allocates and opcode in _OF_ALLOCATION):
                continue
            if what := _OPCODES.get(opcode.partition(".")[0]):
                yield f"{function} {what}: {opcode}"
        for register in kernel.special:
            if register.startswith(_SPECIAL):
                what = "where it runs" if register.startswith(_PLACE) else "the time"
                if not register.startswith("SR_WARPID"):
                    yield f"{function} reads {what} ({register}): a result may not depend on it"


def _way_out(symbols: str) -> str:
    """What to write in place of data that a compiler put into global memory."""
    ways = [
        way for begin, way in _COMPILERS_DATA.items() if symbols.startswith(begin) or f", {begin}" in symbols
    ]
    return "; ".join(ways) or "pass scratch buffers, put tables into __constant__"


def _named_sections(code: CandidateCode) -> frozenset[str]:
    """The sections whose address any instruction can come by.

    An instruction has it from a relocation of its own, or of a constant or variable that it reads. Constant
    bank 4 holds nothing but addresses: of its slots those count that an instruction reads.
    """
    held: dict[str, set[str]] = {}  # the sections that the addresses in a section are of
    named = set()
    for place, offset, _, target in code.relocations:
        place, target = place.removeprefix(_COPY), target.removeprefix(_COPY)
        if place.startswith(_DEBUG) or not target:
            continue
        if place.startswith(_POINTERS):
            if code.pointers & {-1, offset // 8}:
                named.add(target)
        elif any(place == state or place.startswith(f"{state}.") for state in _STATE):
            held.setdefault(place, set()).add(target)
        else:
            named.add(target)
    pending = list(named)
    while pending:
        for target in held.get(pending.pop(), set()) - named:
            named.add(target)
            pending.append(target)
    return frozenset(named)
