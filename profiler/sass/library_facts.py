"""What is stored of a build of machine code: static facts of each of its kernels, for histories and gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from profiler.build.kernel_names import instance_name
from profiler.build.occupancy import occupancy, own_shared_bytes
from profiler.build.opcode_counts import INSTRUCTION_BYTES, opcode_sites
from profiler.bundles.run import Facts
from profiler.errors import CannotJudge
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.values import Evidence, State, Value
from profiler.sass.binary_functions import BinaryFunction, read_functions_of
from profiler.sass.code_changes import FunctionRows
from profiler.sass.code_words import CodeReader
from profiler.sass.listing import SassLine
from profiler.sass.loop_facts import facts_of

MOST_KERNELS = 2_000  # of one import: pages show each as a row
_AT_ONCE = 64  # kernels that nvdisasm reads in one call


def library_facts(path: Path) -> tuple[Facts, ...]:
    """The facts of every kernel of a cubin, object, library, fat binary or wheel, by architecture and name.

    The part is the kernel's name with the numbers of its template; the whole mangled name where two kernels
    would have the same. Raises BuildFailed for what is damaged or holds no machine code, CannotJudge where it
    holds PTX alone, no kernel or more than MOST_KERNELS of them, or where nvdisasm is missing.
    """
    kernels = [function for function in read_functions_of(path) if function.is_kernel]
    if not kernels:
        raise CannotJudge(f"{path} holds no kernel")
    if len(kernels) > MOST_KERNELS:
        raise CannotJudge(
            f"{path} holds {len(kernels):,} kernels, of which {MOST_KERNELS:,} can be stored: "
            "`profiler pin` keeps all of them in a lock"
        )
    names = Counter((kernel.arch, instance_name(kernel.name)) for kernel in kernels)
    facts = []
    for arch, of_arch in groupby(sorted(kernels, key=lambda one: one.arch), key=lambda one: one.arch):
        reader = CodeReader(arch)
        for some in batched(of_arch, _AT_ONCE):
            for kernel, rows in zip(some, reader.rows(some), strict=True):
                name = instance_name(kernel.name)
                facts.append(_facts(kernel, rows, name if names[arch, name] == 1 else kernel.name))
    return tuple(facts)


def batched(functions: Iterable[BinaryFunction], size: int) -> Iterator[list[BinaryFunction]]:
    """Lists of so many functions, the last perhaps shorter."""
    left = iter(functions)
    while some := list(islice(left, size)):
        yield some


def _facts(kernel: BinaryFunction, rows: Sequence[SassLine] | None, part: str) -> Facts:
    limits = find_architecture(kernel.arch)
    shared = own_shared_bytes(kernel.arch, kernel.shared_bytes)
    found = None
    if limits and kernel.registers is not None and kernel.max_threads:
        found = occupancy(kernel.arch, kernel.registers, kernel.max_threads, shared)
    loops = None if rows is None else facts_of(FunctionRows(kernel, rows).counted)
    classes, opcodes = opcode_sites(Counter(row.opcode for row in rows or () if row.opcode != "NOP"))
    values = {
        "static__registers": _number(kernel.registers, "register/thread"),
        "static__stack_bytes": _number(kernel.stack_bytes, "byte"),
        "static__shared_static_bytes": Value(shared, "byte/block"),
        "static__threads": _number(kernel.max_threads, "thread"),
        "static__occupancy_pct": _number(found.pct if found else None, "%"),
        "static__blocks_per_sm": _number(found.blocks if found else None, "block"),
        "static__code_bytes": Value(len(kernel.code.code), "byte"),
        "static__instructions": Value(len(kernel.code.code) // INSTRUCTION_BYTES, "inst"),
        "static__spill_instructions": _number(loops.spill_count if loops else None, "inst"),
        "static__loop_spill_instructions": _number(sum(loops.spills[1:]) if loops else None, "inst"),
    }
    for name, count in classes.items():
        values[f"static__opcode_{name}"] = _number(count if loops else None, "inst")
    return Facts(Evidence.STATIC, part, values, target=kernel.arch, opcodes=opcodes)


def _number(number: float | None, unit: str) -> Value:
    return Value(None, unit, state=State.NOT_COLLECTED) if number is None else Value(number, unit)
