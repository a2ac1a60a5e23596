"""What a cubin says of its kernels beside their code: parameters, constants, shared and local memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.build.code_images import BlockShape, attributes, block_shape, read_functions
from profiler.build.elf import is_elf, read_relocations, read_sections, section_bytes
from profiler.errors import BuildFailed
from profiler.model.instructions import NoModel
from profiler.model.memory import GAP, START, GlobalMemory

Array = NDArray[Any]

# Attributes of .nv.info sections. Source: their names as `cuobjdump --dump-elf` prints them, and the values
# beside them.
_PARAM_CBANK = 0x0A
_KPARAM_INFO = 0x17
_KPARAM_INFO_V2 = 0x45  # of kernels with more than 4 KB of parameters, and of cuTile's
DATA_SECTIONS = (".nv.global", ".nv.global.init")  # sections of global memory that the cubin brings along
_DATA_ALIGNMENT = 256  # of each of them, more than any variable asks for
_MOST_DATA_BYTES = 64 << 20
_ADDRESSES = (2, 4)  # R_CUDA_64 and R_CUDA_G64 of relocations
_MALFORMED = (struct.error, ValueError, IndexError, OverflowError, BuildFailed)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    ordinal: int
    offset: int  # from where the parameters begin in constant bank 0
    size: int


@dataclass(frozen=True)
class ModuleData:
    """The global memory that a cubin brings along for all its kernels: `__device__` variables and tables."""

    content: bytes  # as it is before the first launch; addresses in it are 0
    pointers: tuple[
        tuple[int, int], ...
    ] = ()  # at which offset of it the address of which of its bytes stands
    left_out: int = 0  # bytes, where it has more than can be run

    @property
    def size(self) -> int:
        """In bytes."""
        return self.left_out or len(self.content)

    def at(self, address: int) -> Array:
        """Its bytes where it lies at an address. Raises NoModel where they are too many."""
        if self.left_out:
            raise NoModel(f"{self.left_out} bytes of global memory of its own: {_MOST_DATA_BYTES} at most")
        return np.frombuffer(_placed(self.content, self.pointers, address), np.uint8)


@dataclass(frozen=True)
class KernelImage:
    """One kernel of a cubin."""

    function: str  # mangled
    parameters: tuple[Parameter, ...]  # by ordinal
    parameter_base: int  # where they begin in constant bank 0
    constants: dict[int, bytes]  # by bank, as they are before the launch; bank 0 without its parameters
    static_shared_bytes: int
    block: BlockShape | None = None  # None where the code does not say
    data: ModuleData = ModuleData(b"")
    # In which constant bank at which offset the address of which byte of the data stands.
    pointers: tuple[tuple[int, int, int], ...] = ()
    unlinked: Mapping[int, str] = field(default_factory=dict)  # offsets in its code that the loader fills in

    @property
    def block_threads(self) -> int | None:
        """That a block has, or has at most; None where the code does not say."""
        return self.block.threads if self.block else None

    def with_data_at(self, address: int) -> KernelImage:
        """The kernel with constants as they are where the cubin's data lies at an address."""
        constants = {
            bank: _placed(content, [(at, to) for own, at, to in self.pointers if own == bank], address)
            for bank, content in self.constants.items()
        }
        return replace(self, constants=constants)

    @property
    def code_entries(self) -> frozenset[int]:
        """Words of its tables, of which those of functions and jumps are offsets in its code."""
        tables = [content for bank, content in self.constants.items() if bank not in (0, 4)]
        return frozenset(
            word
            for table in (*tables, self.data.content)
            for (word,) in struct.iter_unpack("<I", table[: len(table) // 4 * 4])
        )


def _placed(content: bytes, pointers: Sequence[tuple[int, int]], address: int) -> bytes:
    """Bytes with 64-bit addresses put in at offsets, of what lies so many bytes behind an address."""
    placed = bytearray(content)
    for at, to in pointers:
        placed[at : at + 8] = ((address + to) & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    return bytes(placed)


def read_kernels(path: Path) -> dict[str, KernelImage]:
    """The kernels of a cubin by their mangled names. Raises BuildFailed where the file is no cubin."""
    data = path.read_bytes()
    if not is_elf(data):
        raise BuildFailed(f"{path} is no cubin: it does not begin as a 64-bit ELF file")
    try:
        sections = {
            section.name: (section_bytes(data, section), section.size) for section in read_sections(data)
        }
        names = [function.name for function in read_functions(data) if function.is_kernel]
        module = _Module(data)
        return {name: module.complete(_kernel(name, sections)) for name in names}
    except _MALFORMED as error:
        raise BuildFailed(f"{path} is damaged: {error}") from None


def place_data(
    images: Mapping[str, KernelImage], arrays: list[Array], start: int = START, gaps: Sequence[int] = ()
) -> tuple[GlobalMemory, dict[str, KernelImage]]:
    """Global memory with arrays and behind them the cubin's data, and the kernels that know where that lies.

    images: the kernels of one cubin. start, gaps: as GlobalMemory has them. Raises NoModel for too much data.
    """
    data = next((image.data for image in images.values()), ModuleData(b""))
    own = data.at(0)
    if not own.size:
        return GlobalMemory(arrays, start, gaps), dict(images)
    memory = GlobalMemory([*arrays, own], start, [*gaps, GAP] if gaps else ())
    address = memory.addresses.pop()
    memory.own = slice(address - start, address - start + own.size)
    memory.bytes[memory.own] = data.at(address)
    return memory, {name: image.with_data_at(address) for name, image in images.items()}


def _kernel(function: str, sections: Mapping[str, tuple[bytes, int]]) -> KernelImage:
    info = sections.get(f".nv.info.{function}", (b"", 0))[0]
    parameters, base = _parameters(info)
    if base is None:  # without parameters: where they would begin
        base = sections.get(f".nv.constant0.{function}", (b"", 0))[1]
    constants = {
        int(bank): content + bytes(-len(content) % 4)  # read as words, whatever a table ends with
        for other, (content, _) in sections.items()
        if other.startswith(".nv.constant")
        and (bank := other.removeprefix(".nv.constant").partition(".")[0]).isdecimal()
        and (other.endswith(f".{function}") or other.removeprefix(".nv.constant").isdecimal())
    }
    shared = sections.get(f".nv.shared.{function}", (b"", 0))[1]
    return KernelImage(function, parameters, base, constants, shared, block_shape(info))


class _Module:
    """The data of a cubin, and what in it and in its kernels has addresses of it."""

    def __init__(self, content: bytes) -> None:
        self._relocations = read_relocations(content)
        self._places: dict[str, int] = {}
        parts: list[bytes] = []
        size = 0
        for section in read_sections(content):
            if section.name in DATA_SECTIONS:
                self._places[section.name] = size
                size += -(-section.size // _DATA_ALIGNMENT) * _DATA_ALIGNMENT
                if size <= _MOST_DATA_BYTES:
                    part = section_bytes(content, section)
                    parts.append(part.ljust(size - self._places[section.name], b"\0"))
        pointers = tuple((at, to) for _, at, to in self._pointers(self._places))
        self._data = ModuleData(b"".join(parts), pointers, size if size > _MOST_DATA_BYTES else 0)

    def _pointers(self, places: Mapping[str, int]) -> list[tuple[str, int, int]]:
        """Of relocations in sections: which section, the place with what precedes it, and the byte meant."""
        return [
            (one.section, places[one.section] + one.offset, self._places[one.target] + one.distance)
            for one in self._relocations
            if one.section in places and one.kind in _ADDRESSES and one.target in self._places
        ]

    def complete(self, kernel: KernelImage) -> KernelImage:
        """A kernel with the data."""
        banks = {
            name: bank
            for bank in kernel.constants
            for name in (f".nv.constant{bank}", f".nv.constant{bank}.{kernel.function}")
        }
        pointers = tuple((banks[name], at, to) for name, at, to in self._pointers(dict.fromkeys(banks, 0)))
        code = f".text.{kernel.function}"
        unlinked = {one.offset // 16 * 16: one.symbol for one in self._relocations if one.section == code}
        return replace(kernel, data=self._data, pointers=pointers, unlinked=unlinked)


def _parameters(info: bytes) -> tuple[tuple[Parameter, ...], int | None]:
    parameters, base = [], None
    for attribute, value in attributes(info):
        if attribute == _PARAM_CBANK:
            base = struct.unpack_from("<H", value, 4)[0]
        elif attribute == _KPARAM_INFO:
            _, ordinal, offset, packed = struct.unpack_from("<IHHI", value)
            parameters.append(Parameter(ordinal, offset, packed >> 18))
        elif attribute == _KPARAM_INFO_V2:
            _, ordinal, offset, size = struct.unpack_from("<IHHH", value)
            parameters.append(Parameter(ordinal, offset, size))
    return tuple(sorted(parameters, key=lambda parameter: parameter.ordinal)), base
