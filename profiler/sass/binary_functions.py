"""Every function of a binary with its machine code, and which function of another binary it is there."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from profiler.build.code_images import (
    CODE_FILES,
    CodeImage,
    FunctionBytes,
    ImageFunction,
    code_files,
    function_bytes,
    read_images,
)
from profiler.build.kernel_names import function_name, stable_name, without_lambda_numbers
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BuildFailed, CannotJudge
from profiler.evidence.gpu_arch import FIRST_OF_128_BITS, arch_number

_SCHEDULE_BIT = 105  # from here on the 128 bits of an instruction say how it is scheduled
_SCHEDULE = np.array([0xFFFFFFFFFFFFFFFF, (1 << (_SCHEDULE_BIT - 64)) - 1], dtype=np.uint64)
# What the linker fills in: an address in 32 bits, or the distance of a call behind it too.
_RELOCATED = np.array([0x00000000FFFFFFFF, 0xFFFFFFFFFFFC0000], dtype=np.uint64)
# What zipfile raises for a damaged file, an encrypted entry (RuntimeError) and an unknown compression, a kind
# of RuntimeError too.
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError)
_MOST_UNPACKED = 8 << 30  # bytes of the libraries of a wheel


@dataclass(frozen=True)
class BinaryFunction:
    """One function of a binary for one architecture."""

    file: str  # its name in a folder or wheel; "" of a single file
    arch: str  # sm_90a
    name: str  # mangled
    is_kernel: bool  # else a device function that other code calls
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int  # static, of a block
    max_threads: int | None  # of a block, by its launch bounds
    code: FunctionBytes = field(repr=False)

    @property
    def short_name(self) -> str:
        """Without namespace and template."""
        return function_name(self.name)

    @property
    def instructions(self) -> int:
        """With padding."""
        return len(self.code.code) // 16

    @cached_property
    def identity(self) -> Hashable:
        """Equal for functions that are one down to the schedule, whatever their names."""
        return self.arch, self.code.code, self.code.constants, self.code.relocations, self.facts

    @cached_property
    def unscheduled(self) -> Hashable:
        """Equal for functions of the same instructions in the same order on the same registers."""
        if arch_number(self.arch) < FIRST_OF_128_BITS:
            return self.identity
        words = np.frombuffer(self.code.code, np.uint64).reshape(-1, 2) & _SCHEDULE
        for offset, _ in self.code.relocations:
            words[offset // 16] &= _RELOCATED
        symbols = tuple((offset, stable_name(symbol)) for offset, symbol in self.code.relocations)
        return self.arch, words.tobytes(), self.code.constants, symbols

    @property
    def facts(self) -> tuple[int | None, ...]:
        """Registers, stack, static shared memory, launch bounds, shared memory of spills, parameters."""
        return (
            self.registers,
            self.stack_bytes,
            self.shared_bytes,
            self.max_threads,
            self.code.shared_spill_bytes,
            self.code.parameter_bytes,
        )


def read_functions_of(path: Path) -> list[BinaryFunction]:
    """The functions of a cubin, object, library, fat binary, wheel or folder of these, in its order.

    Raises BuildFailed for what is damaged or holds no machine code, CannotJudge where it holds PTX alone.
    """
    if path.is_dir():
        files = [file for file in code_files(path) if file.suffix.lower() != ".ptx"]
        functions = [function for file in files for function in _of_file(file, str(file.relative_to(path)))]
        if not files:
            raise BuildFailed(f"{path} holds no file of machine code ({', '.join(CODE_FILES)})")
    elif path.suffix == ".whl":
        functions = list(_of_wheel(path))
    else:
        functions = list(_of_file(path, ""))
    if not functions:
        raise CannotJudge(f"{path} holds no function in machine code")
    return functions


def _of_wheel(path: Path) -> Iterator[BinaryFunction]:
    try:
        with zipfile.ZipFile(path) as wheel, scratch_folder() as folder:
            entries = [
                entry
                for entry in wheel.infolist()
                if not entry.is_dir()
                and (Path(entry.filename).suffix in CODE_FILES or ".so." in entry.filename)
            ]
            if sum(entry.file_size for entry in entries) > _MOST_UNPACKED:
                raise BuildFailed(f"{path} unpacks to more than {_MOST_UNPACKED >> 30} GB")
            for number, entry in enumerate(entries):
                file = folder / f"{number}{Path(entry.filename).suffix}"
                with wheel.open(entry) as packed, file.open("wb") as unpacked:
                    while part := packed.read(1 << 20):
                        unpacked.write(part)
                try:
                    yield from _of_file(file, entry.filename)
                except BuildFailed as error:
                    if "no machine code" not in str(error):
                        raise BuildFailed(f"{path}: {entry.filename}: {error}") from None
                finally:
                    file.unlink()
    except _DAMAGED_ZIP as error:
        raise BuildFailed(f"{path} cannot be read as a wheel: {error}") from None


def _of_file(path: Path, label: str) -> Iterator[BinaryFunction]:
    for image in read_images(path):
        yield from _of_image(image, label, path)


def _of_image(image: CodeImage, label: str, path: Path) -> Iterator[BinaryFunction]:
    try:
        codes = function_bytes(image.content)
    except (struct.error, ValueError, IndexError, OverflowError, BuildFailed) as error:
        raise BuildFailed(f"{path} is damaged: image {image.number}: {error}") from None
    functions = [*image.functions]
    # Numbers that all its code shares are compared as a function without instructions.
    known = {function.name for function in functions}
    functions += [
        ImageFunction(name, False, None, None, 0)
        for name in codes
        if name not in known and not codes[name].code
    ]
    for function in functions:
        code = codes[function.name]
        yield BinaryFunction(
            label,
            image.arch,
            function.name,
            function.is_kernel,
            function.registers,
            function.stack_bytes,
            code.shared_bytes,
            code.max_threads,
            code,
        )


@dataclass(frozen=True)
class FunctionPair:
    """A function of A and what it is in B; None on one side: it is new, or gone."""

    a: BinaryFunction | None
    b: BinaryFunction | None

    @property
    def either(self) -> BinaryFunction:
        """That of B, else of A."""
        found = self.b or self.a
        assert found is not None
        return found

    @property
    def code_bytes(self) -> int:
        """Of both sides."""
        return sum(len(function.code.code) for function in (self.a, self.b) if function)

    @property
    def is_renamed(self) -> bool:
        """Whether its name is another one, hashes of paths left out."""
        return bool(self.a and self.b and stable_name(self.a.name) != stable_name(self.b.name))


def pair_functions(a: Sequence[BinaryFunction], b: Sequence[BinaryFunction]) -> list[FunctionPair]:
    """Every function of both sides once, in the order of B, what is gone behind.

    By name and architecture; of several of one name those with equal code first, the others in their order.
    What has no partner by name is paired by equal code, then by its name without the numbers of lambdas, then
    by its plain name where one function of each side has it.
    """
    pairs: list[FunctionPair] = []
    left_a, left_b = list(a), list(b)
    keys: list[Callable[[BinaryFunction], Hashable]] = [
        lambda one: (one.arch, one.name, one.identity),
        lambda one: (one.arch, stable_name(one.name), one.identity),
        lambda one: (one.arch, stable_name(one.name), one.unscheduled),
        lambda one: (one.arch, one.name, one.file),
        lambda one: (one.arch, stable_name(one.name)),
        lambda one: one.identity if one.is_kernel else ("device", one.name),
        lambda one: (one.arch, without_lambda_numbers(stable_name(one.name))),
    ]
    for key in keys:
        pairs += _pair_by(key, left_a, left_b)
    pairs += _pair_by(lambda one: (one.arch, one.short_name, one.is_kernel), left_a, left_b, is_unique=True)
    order = {id(function): place for place, function in enumerate(b)}
    pairs.sort(key=lambda pair: order[id(pair.b)])
    rest = [FunctionPair(None, function) for function in left_b]
    return sorted((*pairs, *rest), key=lambda pair: order[id(pair.b)]) + [
        FunctionPair(function, None) for function in left_a
    ]


def _pair_by(
    key: Callable[[BinaryFunction], Hashable],
    left_a: list[BinaryFunction],
    left_b: list[BinaryFunction],
    *,
    is_unique: bool = False,
) -> list[FunctionPair]:
    """Pairs of equal keys, in order; both lists keep the others. is_unique: of one function a side alone."""
    if not left_a or not left_b:
        return []
    by_key: dict[Hashable, list[BinaryFunction]] = defaultdict(list)
    for function in left_a:
        by_key[key(function)].append(function)
    counts: dict[Hashable, int] = defaultdict(int)
    for function in left_b if is_unique else ():
        counts[key(function)] += 1
    pairs, rest = [], []
    for function in left_b:
        candidates = by_key.get(own := key(function))
        if candidates and not (is_unique and (len(candidates) > 1 or counts[own] > 1)):
            pairs.append(FunctionPair(candidates.pop(0), function))
        else:
            rest.append(function)
    paired = {id(pair.a) for pair in pairs}
    left_a[:] = [function for function in left_a if id(function) not in paired]
    left_b[:] = rest
    return pairs
