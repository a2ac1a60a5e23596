"""A lock of machine code: what each function of a library was when somebody pinned it, in one text file.

The file lies in a repository beside the sources. It holds no path, no date and no hash that a compiler makes
of a path: two runs on one library write the same bytes on any machine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from profiler.build.code_images import MOST_FOLLOWED_BYTES
from profiler.build.kernel_names import function_name, stable_name, without_lambda_numbers
from profiler.build.occupancy import own_shared_bytes
from profiler.build.triton_facts import triton_facts
from profiler.errors import ProfilerError
from profiler.evidence.gpu_arch import FIRST_OF_128_BITS, arch_number
from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.loop_facts import LoopFacts, loop_facts

LOCK_FILE = "kernels.lock"  # in the working folder, unless another is named
_FORMAT = "kernel lock 1"
_DIGEST_LETTERS = 16
_NUMBERS = ("registers", "stack", "shared", "dynamic_shared", "shared_spill", "threads")
_LARGEST = 1 << 30  # bytes of a lock


class AcceptedChange(NamedTuple):
    """What got worse when the function was pinned anew, and why it may be so."""

    what: str
    reason: str
    concept: str


class AccessCost(NamedTuple):
    """Accesses to one kind of memory at one loop depth whose addresses are known."""

    places: int  # in the code
    cost: float  # wavefronts or sectors of a warp's request, at least, all of them together
    excess: float  # of these, more than the bytes that lanes name fill


NO_ACCESSES = AccessCost(0, 0, 0)


class AccessFacts(NamedTuple):
    """What accesses to memory cost in a kernel that nobody launched: [0] in no loop, [1] in one, …"""

    block: tuple[int, int, int]  # the threads along x, y and z that it is for
    shared: tuple[AccessCost, ...]  # in wavefronts
    sectors: tuple[AccessCost, ...]  # of global memory
    unknown: tuple[int, ...]  # accesses whose addresses are not known


@dataclass(frozen=True)
class PinnedFunction:
    """What a lock says of one function; of several of one name the smaller stand first."""

    arch: str  # sm_90a
    name: str  # mangled, without the hashes of paths
    is_kernel: bool
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int  # static, of a block
    shared_spill_bytes: int  # of a block, that spills into shared memory take
    max_threads: int | None  # of a block, by its launch bounds, else by Triton's JSON file
    instructions: int  # with padding
    code: str  # hash of everything that its code is
    unscheduled: str  # of the same without what says how instructions are scheduled
    loops: LoopFacts | None  # None where the instructions are not read
    accepted: tuple[AcceptedChange, ...] = ()
    cluster: tuple[int, ...] = ()  # blocks of a cluster: x, y and z, or at most so many; () of none
    dynamic_shared_bytes: int | None = None  # of a block, by Triton's JSON file; None where nothing says so
    accesses: AccessFacts | None = None  # None where its addresses are not followed

    @property
    def short_name(self) -> str:
        """Without namespace and template."""
        return function_name(self.name)

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """Its place among others of one name and architecture, whatever file or image each is in."""
        numbers = tuple(-1 if number is None else number for number in self.numbers)
        dynamic = -1 if self.dynamic_shared_bytes is None else self.dynamic_shared_bytes
        return (self.name, self.arch, self.instructions, numbers, self.unscheduled, self.code, dynamic)

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """Registers, stack, static shared memory, that of spills, launch bounds, blocks of a cluster."""
        return (
            self.registers,
            self.stack_bytes,
            self.shared_bytes,
            self.shared_spill_bytes,
            self.max_threads,
            *self.cluster,
        )

    def is_same(self, other: PinnedFunction) -> bool:
        """Whether the other has equal code and numbers, whatever the names, as far as this one says them."""
        is_as_shared = self.dynamic_shared_bytes in (None, other.dynamic_shared_bytes)
        return is_as_shared and (self.code, self.numbers) == (other.code, other.numbers)


@dataclass(frozen=True)
class ReadFunction:
    """A function of a library as a lock would hold it, and its code, of which the facts may be read."""

    pinned: PinnedFunction
    function: BinaryFunction | None = None  # None of a lock
    library: Path | None = None  # what was read
    is_small: bool = False  # whether the addresses of its file are followed unasked


def pinned_of(
    functions: Iterable[BinaryFunction], known: Iterable[PinnedFunction] = (), path: Path = Path()
) -> list[ReadFunction]:
    """The functions of a library as a lock holds them, in its order, their instructions not read.

    known: functions of a lock, whose second hash is taken over where the first is the same. path: of the
    library, beside whose files Triton's may say more.
    """
    hashes = {(one.arch, one.code): one.unscheduled for one in known}
    triton = cache(lambda file: triton_facts(path / file))
    sizes = Counter[str]()
    functions = list(functions)
    for function in functions:
        sizes[function.file] += len(function.code.code)
    found = []
    for function in functions:
        code = function.code
        if not code.code:
            continue  # constants that functions share
        whole = _digest(code.code, code.constants, code.symbols)
        launch = triton(function.file) if function.is_kernel else None
        pinned = PinnedFunction(
            function.arch,
            stable_name(function.name),
            function.is_kernel,
            function.registers,
            function.stack_bytes,
            own_shared_bytes(function.arch, function.shared_bytes),
            code.shared_spill_bytes,
            function.max_threads or (launch.threads if launch else None),
            function.instructions,
            whole,
            hashes.get((function.arch, whole)) or _unscheduled(function, whole),
            None,
            cluster=code.cluster,
            dynamic_shared_bytes=launch.shared_bytes if launch else None,
        )
        is_small = sizes[function.file] <= MOST_FOLLOWED_BYTES
        found.append(ReadFunction(pinned, function, path, is_small))
    return sorted(found, key=lambda one: one.pinned.rank)


def _unscheduled(function: BinaryFunction, whole: str) -> str:
    """The hash without the schedule; of instructions of 64 bits, which have it elsewhere, the whole one."""
    if arch_number(function.arch) < FIRST_OF_128_BITS:
        return whole
    parts = function.unscheduled
    assert isinstance(parts, tuple)
    return _digest(*parts)


def _digest(*parts: object) -> str:
    digest = sha256()  # with a processor's help twice as fast as blake2b
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:_DIGEST_LETTERS]


def with_loops(
    functions: Sequence[ReadFunction], known: Iterable[PinnedFunction] = ()
) -> list[PinnedFunction]:
    """The functions with the facts of their instructions; those of equal code in `known` are not read again.

    Raises CannotJudge where nvdisasm is missing.
    """
    facts = {(one.arch, one.unscheduled): one.loops for one in known if one.loops is not None}
    unread = [
        one
        for one in functions
        if one.function and (one.pinned.arch, one.pinned.unscheduled) not in facts and not one.pinned.loops
    ]
    read = loop_facts([one.function for one in unread if one.function])
    for one, loops in zip(unread, read, strict=True):
        if loops is not None:
            facts[one.pinned.arch, one.pinned.unscheduled] = loops
    found = []
    for one in functions:
        loops = one.pinned.loops or facts.get((one.pinned.arch, one.pinned.unscheduled))
        found.append(one.pinned if loops is one.pinned.loops else replace(one.pinned, loops=loops))
    return found


class PinnedPair(NamedTuple):
    """A function of a lock and what it is in the library; None on one side: it is new, or gone."""

    a: ReadFunction | None
    b: ReadFunction | None


def pair_pinned(a: Sequence[ReadFunction], b: Sequence[ReadFunction]) -> list[PinnedPair]:
    """Every function of both sides once: by name, several of one name by their code, then in their order.

    What has no partner by name is paired by equal code, then by its name without the numbers of lambdas, then
    by its plain name where one function of each side has it.
    """
    pairs: list[PinnedPair] = []
    left_a, left_b = list(a), list(b)
    keys: list[Callable[[PinnedFunction], Hashable]] = [
        lambda one: (one.arch, one.name, one.code, one.numbers),
        lambda one: (one.arch, one.name, one.unscheduled),
        lambda one: (one.arch, without_lambda_numbers(one.name), one.code, one.numbers),
        lambda one: (one.arch, one.name),
        lambda one: (one.arch, one.code, one.numbers, one.is_kernel or one.name),
        lambda one: (one.arch, without_lambda_numbers(one.name)),
    ]
    for key in keys:
        pairs += _pair_by(key, left_a, left_b)
    pairs += _pair_by(lambda one: (one.arch, one.short_name, one.is_kernel), left_a, left_b, most=1)
    pairs += [PinnedPair(None, one) for one in left_b]
    pairs += [PinnedPair(one, None) for one in left_a]
    return sorted(pairs, key=lambda pair: _either(pair).rank)


def _either(pair: PinnedPair) -> PinnedFunction:
    one = pair.b or pair.a
    assert one is not None
    return one.pinned


def _pair_by(
    key: Callable[[PinnedFunction], Hashable],
    left_a: list[ReadFunction],
    left_b: list[ReadFunction],
    *,
    most: int | None = None,
) -> list[PinnedPair]:
    """Pairs of equal keys, in order; both lists keep the others. most: functions a side of one key."""
    if not left_a or not left_b:
        return []
    sides: list[dict[Hashable, list[ReadFunction]]] = []
    for functions in (left_a, left_b):
        by_key: dict[Hashable, list[ReadFunction]] = {}
        for function in functions:
            by_key.setdefault(key(function.pinned), []).append(function)
        sides.append(by_key)
    pairs = []
    for own, candidates in sides[0].items():
        others = sides[1].get(own, [])
        if most is None or max(len(candidates), len(others)) <= most:
            pairs += [PinnedPair(one, other) for one, other in zip(candidates, others, strict=False)]
    paired = {id(one) for pair in pairs for one in pair}
    for functions in (left_a, left_b):
        functions[:] = [one for one in functions if id(one) not in paired]
    return pairs


def lock_text(functions: Iterable[PinnedFunction]) -> str:
    """The lock as JSON with a line for each function, sorted by name and architecture."""
    lines = [
        json.dumps(_record(one), separators=(",", ":"), ensure_ascii=False)
        for one in sorted(functions, key=lambda one: one.rank)
    ]
    body = ",\n".join(lines)
    return f'{{"format":"{_FORMAT}","functions":[\n{body}\n]}}\n'


def _record(one: PinnedFunction) -> dict[str, object]:
    """What the lock holds of a function; what is 0, nothing or the rule is left out."""
    loops = one.loops
    record: dict[str, object] = {
        "name": one.name,
        "arch": one.arch,
        "kernel": None if one.is_kernel else False,
        **dict(
            zip(
                _NUMBERS,
                (
                    one.registers,
                    one.stack_bytes,
                    one.shared_bytes or None,
                    one.dynamic_shared_bytes,
                    one.shared_spill_bytes or None,
                    one.max_threads,
                ),
                strict=True,
            )
        ),
        "cluster": list(one.cluster) or None,
        "instructions": one.instructions,
        "code": one.code,
        "unscheduled": one.unscheduled,
    }
    if loops is not None:
        name = "spills" if loops.is_marked else "local_accesses"
        record[name] = list(loops.spills) or None
        record["in_innermost"] = loops.inner_spills or None
        record["opcodes"] = list(loops.opcodes)
    if one.accesses is not None:
        record["accesses"] = {name: value for name, value in one.accesses._asdict().items() if value}
    if one.accepted:
        record["accepted"] = [change._asdict() for change in one.accepted]
    return {key: value for key, value in record.items() if value is not None}


def read_lock(path: Path) -> list[PinnedFunction]:
    """The functions of a lock. Raises ProfilerError where it is none, or cannot be read."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ProfilerError(f"{path} is larger than any lock")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ProfilerError(
            f"the lock {path} cannot be read: {words}; `profiler pin LIB` writes one"
        ) from None
    try:
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise ProfilerError(
                f"{path} has the format {document['format']!r}, not {_FORMAT!r}: pin it with this version"
            )
        return [_pinned(record) for record in document["functions"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ProfilerError(f"{path} is no lock of `profiler pin`: {what}") from None


def _whole(value: object, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _LARGEST:
        raise ValueError(f"{value!r} is no whole number from {least}")
    return value


def _pinned(record: Mapping[str, Any]) -> PinnedFunction:
    registers, stack, shared, dynamic_shared, shared_spill, threads = (
        None if name not in record else _whole(record[name], 1 if name == "threads" else 0)
        for name in _NUMBERS
    )
    loops = None
    if "opcodes" in record:
        local = record.get("local_accesses")
        spills = local or record.get("spills") or ()
        loops = LoopFacts(
            tuple({name: _whole(count, 1) for name, count in part.items()} for part in record["opcodes"]),
            tuple(map(_whole, spills)),
            _whole(record.get("in_innermost", 0)),
            not local,
        )
    return PinnedFunction(
        str(record["arch"]),
        str(record["name"]),
        bool(record.get("kernel", True)),
        registers,
        stack,
        shared or 0,
        shared_spill or 0,
        threads,
        _whole(record["instructions"]),
        str(record["code"]),
        str(record["unscheduled"]),
        loops,
        tuple(
            AcceptedChange(str(one["what"]), str(one["reason"]), str(one.get("concept", "")))
            for one in record.get("accepted", ())
        ),
        tuple(_whole(blocks) for blocks in record.get("cluster", ())),
        dynamic_shared,
        _accesses(record["accesses"]) if "accesses" in record else None,
    )


def _accesses(record: Mapping[str, Any]) -> AccessFacts:
    shared, sectors = (
        tuple(
            AccessCost(_whole(places), _amount(cost), _amount(excess))
            for places, cost, excess in record.get(name, ())
        )
        for name in ("shared", "sectors")
    )
    x, y, z = (_whole(size, 1) for size in record["block"])
    return AccessFacts((x, y, z), shared, sectors, tuple(map(_whole, record.get("unknown", ()))))


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
        raise ValueError(f"{value!r} is no number from 0")
    return value
