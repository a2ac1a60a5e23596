"""What a cubin says of its kernels beside their code: parameters, constants, shared and local memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import BuildFailed

# Attributes of .nv.info sections. Source: their names as `cuobjdump --dump-elf` prints them, and the values
# beside them.
_SIZED = 4  # EIFMT_SVAL: a length in bytes and the value
_MAX_THREADS = 0x05  # __launch_bounds__, or .maxntid of PTX
_PARAM_CBANK = 0x0A
_REQUIRED_THREADS = 0x10  # .reqntid
_KPARAM_INFO = 0x17


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    ordinal: int
    offset: int  # from where the parameters begin in constant bank 0
    size: int


@dataclass(frozen=True)
class KernelImage:
    """One kernel of a cubin."""

    function: str  # mangled
    parameters: tuple[Parameter, ...]  # by ordinal
    parameter_base: int  # where they begin in constant bank 0
    constants: dict[int, bytes]  # by bank, as they are before the launch; bank 0 without its parameters
    static_shared_bytes: int
    block_threads: int | None = None  # that a block has, or has at most; None where the code does not say


def read_kernels(path: Path) -> dict[str, KernelImage]:
    """The kernels of a cubin by their mangled names. Raises BuildFailed where the file is no cubin."""
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise BuildFailed(f"{path} is no cubin: it does not begin as a 64-bit ELF file")
    sections = _sections(data)
    kernels = {}
    for name in sections:
        if not name.startswith(".text."):
            continue
        function = name.removeprefix(".text.")
        info = sections.get(f".nv.info.{function}", (b"", 0))[0]
        parameters, base = _parameters(info)
        if base is None:
            continue  # a device function has no parameters of its own
        constants = {
            int(other.removeprefix(".nv.constant").partition(".")[0]): content
            for other, (content, _) in sections.items()
            if other.startswith(".nv.constant")
            and (other.endswith(f".{function}") or other.removeprefix(".nv.constant").isdigit())
        }
        shared = sections.get(f".nv.shared.{function}", (b"", 0))[1]
        kernels[function] = KernelImage(function, parameters, base, constants, shared, _block_threads(info))
    return kernels


def _sections(data: bytes) -> dict[str, tuple[bytes, int]]:
    """The sections by name: content, which is empty for one without bits in the file, and size."""
    offset = struct.unpack_from("<Q", data, 0x28)[0]
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = []
    for index in range(count):
        at = offset + index * entry_size
        name, kind = struct.unpack_from("<II", data, at)
        start, size = struct.unpack_from("<QQ", data, at + 0x18)
        headers.append((name, kind, start, size))
    names_start = headers[names_index][2]
    sections = {}
    for name, kind, start, size in headers:
        text = data[names_start + name : data.index(b"\0", names_start + name)].decode()
        without_bits = kind == 8  # SHT_NOBITS
        sections[text] = (b"" if without_bits else data[start : start + size], size)
    return sections


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes with a length of a section .nv.info: their numbers and values."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:  # of others the value stands in the place of the length
            yield attribute, info[at : at + size]
            at += size


def _block_threads(info: bytes) -> int | None:
    sizes = {
        attribute: math.prod(struct.unpack_from("<III", value))
        for attribute, value in _attributes(info)
        if attribute in (_MAX_THREADS, _REQUIRED_THREADS) and len(value) >= 12
    }
    return sizes.get(_REQUIRED_THREADS, sizes.get(_MAX_THREADS))


def _parameters(info: bytes) -> tuple[tuple[Parameter, ...], int | None]:
    parameters, base = [], None
    for attribute, value in _attributes(info):
        if attribute == _PARAM_CBANK:
            base = struct.unpack_from("<H", value, 4)[0]
        elif attribute == _KPARAM_INFO:
            _, ordinal, offset, packed = struct.unpack_from("<IHHI", value)
            parameters.append(Parameter(ordinal, offset, packed >> 18))
    return tuple(sorted(parameters, key=lambda parameter: parameter.ordinal)), base
