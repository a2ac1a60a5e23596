"""Every image of machine code in a cubin, fat binary, object, library, archive or program, without a tool."""

from __future__ import annotations

import math
import mmap
import os
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from profiler.build.elf import (
    FUNCTION,
    KERNEL,
    SECTION,
    Section,
    cubin_sections,
    is_elf,
    read_relocations,
    read_sections,
    read_symbols,
    section_bytes,
    section_name,
)
from profiler.build.kernel_names import stable_symbols
from profiler.errors import BuildFailed, CannotJudge, UnknownName
from profiler.evidence.naming import brief_list

# Containers and their entries. Source: fatbinary_section.h of the toolkit for the magic number; the entry as
# nvcc 11 to 13 write it, compared with what cuobjdump lists.
_CONTAINER = 0xBA55ED50
_CONTAINER_VERSION, _ENTRY_VERSION = 1, 0x101
_PTX, _ELF = 1, 2
_KINDS = frozenset((_PTX, _ELF, 4, 8, 16, 32, 64))  # others: old cubins, intermediate code, Mercury
_LZ4, _ZSTD = 0x2000, 0x8000
_LINKED, _RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"  # the second: before nvlink, of -rdc=true
_PROGRAMS = (2, 3)  # ET_EXEC, ET_DYN
_ARCHIVE, _MEMBER_BYTES = b"!<arch>\n", 60  # of a static library: its first bytes, the header of a member
_SEGMENTS, _SEGMENT_BYTES = ".nvFatBinSegment", 24  # what the host's code registers: an entry a container
_CUDA_MACHINE = 190  # EM_CUDA
# Attributes of .nv.info, by cuobjdump --dump-elf: a length in bytes, then a symbol's index and a number.
_SIZED = 4
_MIN_STACK_SIZE, _REGCOUNT = 0x12, 0x2F
# Of the section of one function: pairs of a kind and the offset of an instruction; bytes.
_ANNOTATIONS, _SPILL = 0x55, 1
_SHARED_SCRATCH = 0x32
_MAX_THREADS, _REQUIRED_THREADS = 0x05, 0x10  # __launch_bounds__ or .maxntid of PTX; .reqntid
_INDIRECT_TARGETS = 0x34  # of each indirect jump: its offset, 0, how many targets, their offsets
_CLUSTER, _MAX_CLUSTER = 0x3D, 0x3F  # __cluster_dims__ or .reqnctapercluster of PTX; .maxclusterrank
MOST_FOLLOWED_BYTES = 200_000  # of a file's code, whose addresses are followed unasked: 120 KB took 1.5 s
CODE_FILES = (".cubin", ".so", ".fatbin", ".o", ".ptx")
# Of PTX: a stub has a target and no function.
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\w+)", re.MULTILINE)
_FUNCTION = re.compile(rb"\.(entry|func)\b")
_BANK = re.compile(r"\.nv\.constant[1-9]\d*\.(.+)", re.DOTALL)
_SHARED_DATA = re.compile(r"\.nv\.(constant[1-9]\d*|global\.init)")
_INFO, _BANK_0 = ".nv.info.", ".nv.constant0."
_LARGEST = 1 << 32  # of one image, in bytes: more is a damaged header
_MALFORMED = (struct.error, ValueError, IndexError, OverflowError, BuildFailed)


@dataclass(frozen=True)
class ImageFunction:
    """What an image says of one of its functions; None is what it does not say."""

    name: str  # mangled
    is_kernel: bool  # else a device function that other code calls
    registers: int | None
    stack_bytes: int | None
    code_bytes: int
    spill_instructions: int | None = None  # that ptxas marks as spills, into local or shared memory
    shared_spill_bytes: int = 0  # of a block, that spills into shared memory take


@dataclass(frozen=True)
class CodeImage:
    """The machine code of one source for one architecture, as one cubin."""

    number: int  # in its file, from 1, PTX left out
    arch: str  # sm_90a
    functions: tuple[ImageFunction, ...]
    content: bytes = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)

    @property
    def kernels(self) -> tuple[ImageFunction, ...]:
        """Those that a launch may name."""
        return tuple(function for function in self.functions if function.is_kernel)


@dataclass(frozen=True)
class StoredImage:
    """A cubin, or PTX, as it lies in a file: it may be packed."""

    path: Path
    data: mmap.mmap = field(repr=False)
    begin: int  # in the data
    size: int  # there, in bytes
    unpacked_size: int
    flags: int  # how it is packed
    number: int = 0  # of the cubins of the file, from 1; 0 of PTX

    @property
    def stored(self) -> bytes:
        """Its bytes as they lie there: of equal ones, unpacked alike, the images are equal."""
        found = self.data[self.begin : self.begin + self.size]
        _forget(self.data, self.begin, self.size)
        return found

    def content(self) -> bytes:
        """Unpacked. Raises BuildFailed where it is damaged."""
        try:
            return _unpacked(self.stored, self.unpacked_size, self.flags)
        except _MALFORMED as error:
            raise BuildFailed(f"{self.path} is damaged: {error}") from None

    def image(self) -> CodeImage:
        """What it holds. Raises BuildFailed where it is damaged."""
        return _image(self.content(), self.number, self.path)


def read_images(path: Path) -> Iterator[CodeImage]:
    """The images of a file in its order, one in memory at a time.

    Raises BuildFailed for a file that is no such file, or is damaged.
    """
    for stored in stored_images(path):
        yield stored.image()


def stored_images(path: Path) -> Iterator[StoredImage]:
    """The images of a file in its order, not unpacked. Raises as read_images does."""
    data = _mapped(path)
    if _is_cubin(data):
        yield StoredImage(path, data, 0, len(data), len(data), 0, 1)
        return
    number = 0
    for kind, stored in _entries(data, path):
        if kind == _ELF:
            number += 1
            yield replace(stored, number=number)


def ptx_architectures(path: Path) -> tuple[str, ...]:
    """For which architectures a file holds PTX with a function: compute_90. Raises as read_images does."""
    data = _mapped(path)
    if _is_cubin(data):
        return ()
    return tuple(
        dict.fromkeys(
            f"compute_{match[1].decode()}"
            for kind, stored in _entries(data, path)
            if kind == _PTX
            for content in [stored.content()]
            if (match := _TARGET.search(content)) and _FUNCTION.search(content)
        )
    )


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file
        words = "it is empty" if isinstance(error, ValueError) else error.strerror
        raise BuildFailed(f"{path} cannot be read: {words}") from None
    return data


def _forget(data: mmap.mmap, begin: int, size: int) -> None:
    """Leave pages of the file to the system, which count as memory of this process else."""
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    data.madvise(mmap.MADV_DONTNEED, first, begin + size - first)


def _is_cubin(data: mmap.mmap) -> bool:
    return is_elf(data) and len(data) >= 20 and data[18] == _CUDA_MACHINE


def _entries(data: mmap.mmap, path: Path) -> Iterator[tuple[int, StoredImage]]:
    """Kind and place of each entry of each container."""
    is_fat_binary = data[:4] == _CONTAINER.to_bytes(4, "little")
    if not is_elf(data) and not is_fat_binary and data[: len(_ARCHIVE)] != _ARCHIVE:
        raise BuildFailed(f"{path} holds no machine code: it is no ELF file, no archive and no fat binary")
    try:
        if is_fat_binary:
            found = list(_containers(data, 0, len(data)))
        elif is_elf(data):
            found = _containers_of_object(data, 0, data)
        else:
            found = [
                container
                for begin, end in _members(data)
                if is_elf(data[begin : begin + 8])
                for container in _containers_of_object(data, begin, data[begin:end])
            ]
        for begin, end in found:
            for kind, *place in _entries_between(data, begin, end):
                yield kind, StoredImage(path, data, *place)
    except _MALFORMED as error:
        raise BuildFailed(f"{path} is damaged: {error}") from None


def _members(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where the members of an archive begin and end."""
    at = len(_ARCHIVE)
    while at + _MEMBER_BYTES <= len(data):
        begin, size = at + _MEMBER_BYTES, data[at + 48 : at + 58].strip()
        if not size.isdigit():
            raise ValueError("a member of the archive has no size")
        end = begin + int(size)
        if end > len(data):
            raise ValueError("a member of the archive ends behind it")
        yield begin, end
        at = end + end % 2


def _containers_of_object(data: mmap.mmap, start: int, content: mmap.mmap | bytes) -> list[tuple[int, int]]:
    """The containers of an object or program that begins there in a file."""
    sections = [section for section in read_sections(content) if section.is_in_file]
    found = {
        name: [
            container
            for one in sections
            if one.name == name
            for container in _containers(data, start + one.offset, start + one.offset + one.size)
        ]
        for name in (_LINKED, _RELOCATABLE)
    }
    registered = sum(one.size // _SEGMENT_BYTES for one in sections if one.name == _SEGMENTS)
    count = sum(map(len, found.values()))
    if count < registered:
        raise ValueError(f"it has {count} fat binaries and says that it has {registered}")
    if found[_LINKED] and content[16] in _PROGRAMS:
        return found[_LINKED]  # nvlink made it of the others
    return [*found[_LINKED], *found[_RELOCATABLE]]


def _containers(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the entries of each container begin and end."""
    at = start
    while at + 16 <= end:
        magic, version, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != _CONTAINER:
            if any(data[at : at + 8]):
                raise ValueError("what stands between fat binaries is none")
            at += 8  # containers are aligned to 8 bytes, with zeros between
            continue
        if version != _CONTAINER_VERSION:
            raise ValueError(f"a fat binary is of the unknown version {version}")
        if header < 16 or at + header + size > end:
            raise ValueError("a fat binary ends behind its section")
        yield at + header, at + header + size
        at += header + size


def _entries_between(data: mmap.mmap, inside: int, last: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Kind, start, size, size when unpacked, flags of the entries of one container."""
    while inside + 64 <= last:
        kind, version, entry_header, stored = struct.unpack_from("<HHIQ", data, inside)
        packed = struct.unpack_from("<I", data, inside + 16)[0]
        flags, _, whole = struct.unpack_from("<QQQ", data, inside + 40)
        begin = inside + entry_header
        if entry_header < 64 or begin + stored > last:
            raise ValueError("an entry ends behind its fat binary")
        if kind not in _KINDS or version != _ENTRY_VERSION:
            raise ValueError(f"an entry is of the unknown kind {kind}, version {version:#x}")
        if kind == _PTX and b"\x7fELF" in data[begin : begin + 8]:  # LZ4 leaves the first bytes as they are
            raise ValueError("an entry of PTX is an ELF file")
        if kind in (_PTX, _ELF):
            is_packed = flags & (_LZ4 | _ZSTD)
            yield kind, begin, packed if is_packed and packed else stored, whole, flags
        inside = begin + stored
    if any(data[inside:last]):
        raise ValueError("a fat binary ends in half an entry")


def _unpacked(content: bytes, size: int, flags: int) -> bytes:
    if not flags & (_LZ4 | _ZSTD):
        return content
    # Here: a machine that only measures has neither.
    import lz4.block

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    if not 0 < size <= min(_LARGEST, 1024 * len(content) + 4096):
        raise ValueError(f"an entry says that {len(content)} bytes unpack to {size}")
    try:
        if flags & _ZSTD:
            unpacked: bytes = zstd.ZstdDecompressor().decompress(content, max_length=size)
        else:
            unpacked = lz4.block.decompress(content, uncompressed_size=size)
    except (zstd.ZstdError, lz4.block.LZ4BlockError) as error:
        raise ValueError(f"an entry does not unpack: {error}") from None
    if len(unpacked) != size:
        raise ValueError(f"an entry says that it unpacks to {size} bytes, and it is {len(unpacked)}")
    return unpacked


def _image(content: bytes, number: int, path: Path) -> CodeImage:
    try:
        sections = cubin_sections(content)
        arch, functions = _architecture(content, sections), _functions(content, sections)
        return CodeImage(number, arch, functions, content, tuple(sections))
    except _MALFORMED as error:
        raise BuildFailed(f"{path} is damaged: image {number}: {error}") from None


def _architecture(data: bytes, sections: Sequence[Section]) -> str:
    """With its letter, which ptxas 13 writes in the note about itself alone; cuobjdump leaves `f` out."""
    flags, abi = struct.unpack_from("<I", data, 0x30)[0], data[8]
    # Source: llvm/BinaryFormat/ELF.h, EF_CUDA_SM, EF_CUDA_ACCELERATORS and their forms of ABI version 8.
    number = flags >> 8 & 0xFF if abi >= 8 else flags & 0xFF
    letter = "a" if flags & (0x8 if abi >= 8 else 0x800) else ""
    for section in sections:
        if section.name == ".note.nv.tkinfo":
            note = section_bytes(data, section)
            if match := re.search(rb"-arch[ =](?:sm|compute)_(\d+)([af]?)\b", note):
                letter = match[2].decode() if int(match[1]) == number else letter
    return f"sm_{number}{letter}"


def read_functions(data: bytes) -> tuple[ImageFunction, ...]:
    """The functions of a cubin. Raises BuildFailed or struct.error where it is damaged."""
    return _functions(data, read_sections(data))


def _functions(data: bytes, sections: list[Section]) -> tuple[ImageFunction, ...]:
    numbers: dict[int, dict[int, int]] = {_MIN_STACK_SIZE: {}, _REGCOUNT: {}}
    own: dict[str, Section] = {}
    for section in sections:
        if section.name == ".nv.info":
            for attribute, value in attributes(section_bytes(data, section)):
                if attribute in numbers and len(value) == 8:
                    symbol, number = struct.unpack("<II", value)
                    numbers[attribute][symbol] = number
        elif section.name.startswith(_INFO):
            own[section.name] = section
    functions = []
    names = {section.name for section in sections}
    for symbol in read_symbols(data, sections, ".symtab"):
        place = section_name(sections, symbol.place)
        # Of constants both may be right: ptxas 13.5 calls .nv.constant2.k .nv.constant.optimizer.k there.
        is_of_code = place.startswith(".text.") or symbol.name.startswith(".text.")
        if symbol.kind == SECTION and is_of_code and symbol.name != place:
            raise BuildFailed(f"the symbol of the section {place!r} calls it {symbol.name!r}")
        if symbol.kind != FUNCTION or not symbol.place:
            continue
        if not place.startswith(".text."):
            raise BuildFailed(f"the function {symbol.name!r} is in no section of code")
        if place != f".text.{symbol.name}":
            continue  # a part of another function's section
        if symbol.size != sections[symbol.place].size:
            raise BuildFailed(f"the code of {symbol.name!r} has another size than its symbol says")
        if not symbol.other & KERNEL and _BANK_0 + symbol.name in names:
            raise BuildFailed(f"{symbol.name!r} has parameters of a launch and is not marked as a kernel")
        info = own.get(_INFO + symbol.name)
        notes = _notes(section_bytes(data, info) if info else b"")
        functions.append(
            ImageFunction(
                symbol.name,
                bool(symbol.other & KERNEL),
                numbers[_REGCOUNT].get(symbol.number),
                numbers[_MIN_STACK_SIZE].get(symbol.number),
                sections[symbol.place].size,
                None if notes.spills is None else len(notes.spills),
                notes.shared_spill_bytes,
            )
        )
    named = {function.name for function in functions}
    for section in sections:
        if (
            section.name.startswith(".text.")
            and section.size
            and section.name.removeprefix(".text.") not in named
        ):
            raise BuildFailed(f"no symbol names the code in {section.name!r}")
    return tuple(functions)


@dataclass(frozen=True)
class FunctionBytes:
    """The code of one function, and what its image says of single instructions."""

    code: bytes
    spills: tuple[int, ...] | None  # offsets of what ptxas marks as spills; None where it marks nothing
    shared_spill_bytes: int  # of a block, that spills into shared memory take
    shared_bytes: int  # static, of a block
    max_threads: int | None  # of a block, by its launch bounds
    relocations: tuple[tuple[int, str], ...] = ()  # offset and symbol of what the linker fills in
    constants: bytes = b""  # its own constant banks but bank 0: numbers that its code loads
    parameter_bytes: int = 0  # of bank 0, with what stands before the parameters
    # By the offset of an indirect jump, the offsets that it may lead to.
    indirect: tuple[tuple[int, tuple[int, ...]], ...] = ()
    cluster: tuple[
        int, ...
    ] = ()  # blocks of a cluster: x, y and z, or at most so many; () where it says none

    @property
    def symbols(self) -> tuple[tuple[int, str], ...]:
        """What the linker fills in: offset, and whose address, without hashes of paths and counts."""
        names = stable_symbols([symbol for _, symbol in self.relocations])
        return tuple((offset, name) for (offset, _), name in zip(self.relocations, names, strict=True))


def function_bytes(image: CodeImage) -> dict[str, FunctionBytes]:
    """The functions of an image by name, and what they share: initial values of memory, by its section.

    Raises BuildFailed or struct.error where it is damaged.
    """
    data, sections = image.content, list(image.sections)
    relocations: dict[str, list[tuple[int, str]]] = {}
    for one in read_relocations(data, sections, ".text."):
        relocations.setdefault(one.section, []).append((one.offset, one.symbol or one.target))
    banks: dict[str, bytes] = {}
    found = {}
    by_name = {section.name: section for section in sections}
    for name, section in by_name.items():
        if not name.startswith(".nv."):
            continue
        if bank := _BANK.fullmatch(name):
            banks[bank[1]] = banks.get(bank[1], b"") + section_bytes(data, section)
        elif _SHARED_DATA.fullmatch(name):
            found[name] = FunctionBytes(b"", None, 0, 0, None, constants=section_bytes(data, section))
    for name, section in by_name.items():
        if not name.startswith(".text."):
            continue
        function = name.removeprefix(".text.")
        own = tuple(sorted(relocations.get(name, ())))
        if own and own[-1][0] >= section.size // 16 * 16:
            raise ValueError("a relocation is of a place behind the code")
        info, shared, zero = (by_name.get(prefix + function) for prefix in (_INFO, ".nv.shared.", _BANK_0))
        notes = _notes(section_bytes(data, info) if info else b"")
        found[function] = FunctionBytes(
            bytes(data[section.offset : section.offset + section.size // 16 * 16]),
            notes.spills or None,
            notes.shared_spill_bytes,
            shared.size if shared else 0,
            notes.threads,
            own,
            banks.get(function, b""),
            zero.size if zero else 0,
            notes.indirect,
            notes.cluster,
        )
    return found


class BlockShape(NamedTuple):
    """The threads of a block along x, y and z."""

    sizes: tuple[int, int, int]
    is_exact: bool  # by .reqntid; else at most so many, by launch bounds

    @property
    def threads(self) -> int:
        """Along all three."""
        return math.prod(self.sizes)


class _Notes(NamedTuple):
    """What the section .nv.info of one function says."""

    spills: tuple[int, ...] | None  # offsets of what is marked; None where nothing is marked at all
    shared_spill_bytes: int
    block: BlockShape | None
    indirect: tuple[tuple[int, tuple[int, ...]], ...]  # as FunctionBytes has both
    cluster: tuple[int, ...]

    @property
    def threads(self) -> int | None:
        """Of a block, or at most; None where it does not say."""
        return self.block.threads if self.block else None


def _notes(info: bytes) -> _Notes:
    spills: list[int] | None = None
    scratch = 0
    sizes: dict[int, tuple[int, int, int]] = {}
    indirect: list[tuple[int, tuple[int, ...]]] = []
    cluster: tuple[int, ...] = ()
    for attribute, value in attributes(info):
        if attribute == _ANNOTATIONS:
            pairs = struct.iter_unpack("<II", value[: len(value) // 8 * 8])
            spills = (spills or []) + [offset for kind, offset in pairs if kind == _SPILL]
        elif attribute == _SHARED_SCRATCH and len(value) >= 8:
            scratch = struct.unpack_from("<I", value, 4)[0]
        elif attribute in (_MAX_THREADS, _REQUIRED_THREADS) and len(value) >= 12:
            x, y, z = struct.unpack_from("<III", value)
            sizes[attribute] = x, y, z
        elif attribute == _INDIRECT_TARGETS:
            indirect += _indirect_targets(value)
        elif attribute in (_CLUSTER, _MAX_CLUSTER):
            cluster = tuple(struct.unpack_from(f"<{len(value) // 4}I", value))
    block = None
    for attribute in (_REQUIRED_THREADS, _MAX_THREADS):
        if block is None and attribute in sizes:
            block = BlockShape(sizes[attribute], attribute == _REQUIRED_THREADS)
    return _Notes(None if spills is None else tuple(spills), scratch, block, tuple(indirect), cluster)


def _indirect_targets(value: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 0
    while at + 12 <= len(value):
        offset, _, count = struct.unpack_from("<III", value, at)
        at += 12
        if at + 4 * count > len(value):
            return  # damaged: the others are not known
        yield offset, struct.unpack_from(f"<{count}I", value, at)
        at += 4 * count


def block_shape(info: bytes) -> BlockShape | None:
    """What a function says of its blocks; None where it says nothing."""
    return _notes(info).block


def attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes with a length of a section .nv.info: their numbers and values."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:  # of others the value stands in the place of the length
            yield attribute, info[at : at + size]
            at += size


def is_code(name: str) -> bool:
    """Whether a name is that of machine code: by its suffix, its first bytes, or a folder with a file of it.

    A folder must be named by a path: a name alone may be of a family. One with a report in it is none.
    """
    path = Path(name)
    try:
        if path.is_dir():
            is_path = os.sep in name or name in (".", "..")
            return is_path and not any(path.glob("*.ncu-rep*")) and bool(code_files(path))
        if path.suffix.lower() in (*CODE_FILES, ".whl"):
            return path.exists()
        with path.open("rb") as file:
            begin = file.read(len(_ARCHIVE))
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return False
    return is_elf(begin) or begin == _ARCHIVE or begin[:4] == _CONTAINER.to_bytes(4, "little")


def code_files(folder: Path) -> list[Path]:
    """Every file of code below a folder; PTX only where its machine code is not beside it."""
    found = [path for path in folder.rglob("*") if path.suffix.lower() in CODE_FILES]
    built = {path.with_suffix("") for path in found if path.suffix.lower() == ".cubin"}
    return sorted(
        path for path in found if path.suffix.lower() != ".ptx" or path.with_suffix("") not in built
    )


def code_file(path: Path) -> Path:
    """The one file of code of a folder; another path as it is. Raises UnknownName where there are several."""
    if not path.is_dir():
        return path
    found = code_files(path)
    if len(found) != 1:
        names = brief_list([str(file.relative_to(path)) for file in found]) or "none"
        raise UnknownName(f"{path} has {len(found)} files of machine code, name one: {names}")
    return found[0]


def architectures(path: Path) -> tuple[str, ...]:
    """Those that a file has functions for, in its order. An image without any, a stub, is no choice.

    Raises CannotJudge where it holds PTX alone, BuildFailed where it holds no function.
    """
    arches = dict.fromkeys(image.arch for image in read_images(path) if image.functions)
    if not arches:
        if targets := ptx_architectures(path):
            raise CannotJudge(
                f"{path} holds only PTX ({', '.join(targets)}) and no machine code: compile it for a GPU "
                f"with ptxas, or name the .ptx file"
            )
        raise BuildFailed(f"{path} holds no kernel for any architecture")
    return tuple(arches)


def choose_images(path: Path, arch: str | None, *, function: str | None = None) -> Iterator[CodeImage]:
    """The images that hold code for an architecture, of a file that may hold it for several.

    arch: None where it is no choice: one architecture alone has kernels. function: the image that has it
    alone. sm_100f and sm_100 are one: the file may not say which. Raises as architectures does.
    """
    arches = architectures(path)
    if arch is None and len(arches) > 1:
        there = ", ".join(sorted(arches))
        raise BuildFailed(f"{path} holds machine code of several architectures: {there}: choose with --arch")
    wanted = arch or arches[0]
    if wanted not in arches:
        wanted = next((known for known in arches if known.rstrip("f") == wanted.rstrip("f")), wanted)
    if wanted not in arches:
        raise BuildFailed(f"no {arch} machine code in {path}; there is {', '.join(sorted(arches))}")
    for image in read_images(path):
        names = [one.name for one in image.functions]
        if image.arch == wanted and names and (function is None or function in names):
            yield image
