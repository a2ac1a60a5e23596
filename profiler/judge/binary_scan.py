"""What the machine code of a candidate may not have: state, answers, and ways out of computing."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.build.elf import WRITE
from profiler.judge.compilation import CandidateCode

MOST_CONSTANT_BYTES = 4096  # of all tables together: more looks like an answer
# Sections that hold what threads can write and the next launch reads.
_STATE = (".nv.global", ".bss", ".data", ".nv.managed")
_TABLES = ".nv.global.init"  # what has values from the start; other variables wait for somebody to write them
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
        is_copy = name.startswith(f"{_COPY}.")
        if is_copy:
            name = name.removeprefix(_COPY)
        if _is_state(name) and size:
            if name not in named:  # such as a string that a compiler left behind, or cuTile's launch data
                continue
            if name == _TABLES and not code.writes_own_data:  # as constants are
                constants += 0 if is_copy else size
                continue
            by = f", which `{code.writes_own_data[0]}` may write" if code.writes_own_data else ""
            yield (
                f"{_own_memory(code, name, size)}{by}: what one launch leaves there the next can replay; "
                "pass scratch buffers"
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


def binary_doubts(code: CandidateCode) -> Iterator[str]:
    """What cannot be told of the binary, a sentence each."""
    if code.writes_own_data or not code.may_write_own_data:
        return
    named = _named_sections(code)
    for name, size, _, _ in code.sections:
        if name == _TABLES and size and name in named:
            store = code.may_write_own_data[0]
            yield (
                f"{_own_memory(code, name, size)}: whether `{store}` writes there cannot be told: its "
                "address comes out of memory that holds an address of these"
            )


def _is_state(section: str) -> bool:
    return any(section == state or section.startswith(f"{state}.") for state in _STATE)


def _own_memory(code: CandidateCode, section: str, size: int) -> str:
    words = ", ".join(s for s, place, _, _ in code.symbols if place == section and not s.startswith("."))
    return f"{size} bytes of global memory of its own{f' ({words[:80]})' if words else ''}"


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
        elif _is_state(place):
            held.setdefault(place, set()).add(target)
        else:
            named.add(target)
    pending = list(named)
    while pending:
        for target in held.get(pending.pop(), set()) - named:
            named.add(target)
            pending.append(target)
    return frozenset(named)
