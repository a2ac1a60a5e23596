"""Every function of a binary with its machine code, and which function of another binary it is there."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from profiler.build.code_images import (
    CODE_FILES,
    CodeImage,
    FunctionBytes,
    ImageFunction,
    StoredImage,
    code_files,
    function_bytes,
    stored_images,
)
from profiler.build.kernel_names import function_name, stable_name, without_lambda_numbers
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BuildFailed, CannotJudge
from profiler.evidence.gpu_arch import FIRST_OF_128_BITS, arch_number

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
            return self.arch, self.code.code, self.code.constants, self.code.symbols
        # Here: what compares bytes alone needs no NumPy, which takes long to load.
        from profiler.sass.opcode_classes import unscheduled_words

        words = unscheduled_words(self.code.code, [offset for offset, _ in self.code.relocations])
        # Not the words: they would be in memory beside the code.
        digest = blake2b(words.tobytes(), digest_size=16).digest()
        return self.arch, digest, self.code.constants, self.code.symbols

    @property
    def indirect(self) -> dict[int, tuple[int, ...]]:
        """By the position of an indirect jump, the positions that it may lead to."""
        return {at // 16: tuple(one // 16 for one in leads) for at, leads in self.code.indirect}

    @property
    def facts(self) -> tuple[int | None, ...]:
        """Registers, stack, shared memory, launch bounds, that of spills, parameters, blocks of a cluster."""
        return (
            self.registers,
            self.stack_bytes,
            self.shared_bytes,
            self.max_threads,
            self.code.shared_spill_bytes,
            self.code.parameter_bytes,
            *self.code.cluster,
        )


def read_functions_of(path: Path) -> list[BinaryFunction]:
    """The functions of a cubin, object, library, fat binary, wheel or folder of these, in its order.

    Raises BuildFailed for what is damaged or holds no machine code, CannotJudge where it holds PTX alone.
    """
    functions = list[BinaryFunction]()
    with _BinaryFiles(path) as files:
        for label in files.labels:
            functions += _of_images(files.images(label), label)
    if not functions:
        raise CannotJudge(f"{path} holds no function in machine code")
    return functions


def images_of(path: Path, labels: Collection[str]) -> Iterator[tuple[str, CodeImage]]:
    """The images of some files of a binary, by the label that its functions have.

    Raises BuildFailed as read_functions_of does.
    """
    with _BinaryFiles(path) as files:
        for label in files.labels:
            if label in labels:
                for stored in files.images(label):
                    yield label, stored.image()
                files.close(label)


@dataclass(frozen=True)
class BothSides:
    """The functions of two binaries."""

    equal: tuple[BinaryFunction, ...]  # of images that both have to the byte
    a: tuple[BinaryFunction, ...]  # the others of each side
    b: tuple[BinaryFunction, ...]


def read_both(a: Path, b: Path) -> BothSides:
    """The functions of two binaries; images of both are read once. Raises as read_functions_of does."""
    equal, rest_a, rest_b = list[BinaryFunction](), list[BinaryFunction](), list[BinaryFunction]()
    codes: dict[bytes, bytes] = {}  # equal code is in memory once
    with _BinaryFiles(a) as files_a, _BinaryFiles(b) as files_b:
        for label in dict.fromkeys((*files_a.labels, *files_b.labels)):
            images_a, images_b = files_a.images(label), files_b.images(label)
            same, only_a, only_b = _equal_images(images_a, images_b)
            equal += _of_images(same, label)
            rest_a += _of_images(only_a, label, codes)
            rest_b += _of_images(only_b, label, codes)
            files_a.close(label)
            files_b.close(label)
    for path, rest in ((a, rest_a), (b, rest_b)):
        if not equal and not rest:
            raise CannotJudge(f"{path} holds no function in machine code")
    return BothSides(tuple(equal), tuple(rest_a), tuple(rest_b))


def _equal_images(
    a: Sequence[StoredImage], b: Sequence[StoredImage]
) -> tuple[list[StoredImage], list[StoredImage], list[StoredImage]]:
    """The images of B that A has too, and those that one side has alone."""
    by_size: dict[tuple[int, ...], list[StoredImage]] = defaultdict(list)
    for image in a:
        by_size[image.size, image.unpacked_size, image.flags].append(image)
    equal, only_b = list[StoredImage](), list[StoredImage]()
    for image in b:
        candidates = by_size[image.size, image.unpacked_size, image.flags]
        stored = image.stored if candidates else b""
        place = next((at for at, one in enumerate(candidates) if one.stored == stored), None)
        if place is None:
            only_b.append(image)
        else:
            equal.append(image)
            del candidates[place]
    left = {id(image) for some in by_size.values() for image in some}
    return equal, [image for image in a if id(image) in left], only_b


class _BinaryFiles:
    """The files of a binary by label: one, those of a folder, or those packed in a wheel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._paths: dict[str, Path] = {}
        self._packed: dict[str, zipfile.ZipInfo] = {}
        self._stack = ExitStack()
        if path.is_dir():
            files = [file for file in code_files(path) if file.suffix.lower() != ".ptx"]
            self._paths = {str(file.relative_to(path)): file for file in files}
            if not files:
                raise BuildFailed(f"{path} holds no file of machine code ({', '.join(CODE_FILES)})")
        elif path.suffix == ".whl":
            self._open_wheel()
        else:
            self._paths = {"": path}
        self.labels = [*self._paths, *self._packed]

    def __enter__(self) -> _BinaryFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def images(self, label: str) -> list[StoredImage]:
        """Those of one file; none where the binary has no such file."""
        if label in self._packed:
            return self._packed_images(label)
        return list(stored_images(self._paths[label])) if label in self._paths else []

    def close(self, label: str) -> None:
        """The images of a file are no longer asked for."""
        if label in self._packed and label in self._paths:
            self._paths.pop(label).unlink()

    def _open_wheel(self) -> None:
        try:
            self._wheel = self._stack.enter_context(zipfile.ZipFile(self.path))
        except _DAMAGED_ZIP as error:
            raise self._unreadable(error) from None
        entries = [
            entry
            for entry in self._wheel.infolist()
            if not entry.is_dir() and (Path(entry.filename).suffix in CODE_FILES or ".so." in entry.filename)
        ]
        if sum(entry.file_size for entry in entries) > _MOST_UNPACKED:
            raise BuildFailed(f"{self.path} unpacks to more than {_MOST_UNPACKED >> 30} GB")
        self._packed = {entry.filename: entry for entry in entries}
        self._folder = self._stack.enter_context(scratch_folder())

    def _packed_images(self, label: str) -> list[StoredImage]:
        file = self._folder / f"{self.labels.index(label)}{Path(label).suffix}"
        try:
            with self._wheel.open(self._packed[label]) as packed, file.open("wb") as unpacked:
                while part := packed.read(1 << 20):
                    unpacked.write(part)
        except _DAMAGED_ZIP as error:
            raise self._unreadable(error) from None
        self._paths[label] = file
        try:
            return [replace(image, path=self.path / label) for image in stored_images(file)]
        except BuildFailed as error:
            if "no machine code" in str(error):
                return []
            raise BuildFailed(str(error).replace(str(file), str(self.path / label))) from None

    def _unreadable(self, error: BaseException) -> BuildFailed:
        return BuildFailed(f"{self.path} cannot be read as a wheel: {error}")


def _of_images(
    images: Iterable[StoredImage], label: str, codes: dict[bytes, bytes] | None = None
) -> Iterator[BinaryFunction]:
    for stored in images:
        yield from _of_image(stored.image(), label, stored.path, {} if codes is None else codes)


def _of_image(
    image: CodeImage, label: str, path: Path, codes: dict[bytes, bytes]
) -> Iterator[BinaryFunction]:
    try:
        found = function_bytes(image)
    except (struct.error, ValueError, IndexError, OverflowError, BuildFailed) as error:
        raise BuildFailed(f"{path} is damaged: image {image.number}: {error}") from None
    functions = [*image.functions]
    # Numbers that all its code shares are compared as a function without instructions.
    known = {function.name for function in functions}
    functions += [
        ImageFunction(name, False, None, None, 0)
        for name in found
        if name not in known and not found[name].code
    ]
    for function in functions:
        code = found[function.name]
        yield BinaryFunction(
            label,
            image.arch,
            function.name,
            function.is_kernel,
            function.registers,
            function.stack_bytes,
            code.shared_bytes,
            code.max_threads,
            replace(code, code=codes.setdefault(code.code, code.code)),
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
        if self.a is None or self.b is None or self.a.name == self.b.name:
            return False
        return stable_name(self.a.name) != stable_name(self.b.name)


def pair_functions(a: Sequence[BinaryFunction], b: Sequence[BinaryFunction]) -> list[FunctionPair]:
    """Every function of both sides once, in the order of B, what is gone behind.

    By name and architecture; of several of one name those with equal code first, the others in their order.
    Names that differ in the numbers of lambdas alone are one where the code is equal. What has no partner by
    name is paired by equal code, then by its name without those numbers, then by its plain name where one
    function of each side has it.
    """
    pairs: list[FunctionPair] = []
    left_a, left_b = list(a), list(b)
    keys: list[Callable[[BinaryFunction], Hashable]] = [
        lambda one: (one.arch, one.name, one.identity),
        lambda one: (one.arch, stable_name(one.name), one.identity),
        lambda one: (one.arch, stable_name(one.name), one.unscheduled),
        lambda one: (one.arch, without_lambda_numbers(stable_name(one.name)), one.unscheduled),
        lambda one: (one.arch, one.name, one.file),
        lambda one: (one.arch, stable_name(one.name)),
        # Device functions are often equal without being one: these need their name.
        lambda one: one.identity if one.is_kernel else (one.arch, one.name),
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
