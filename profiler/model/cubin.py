"""What a cubin says of its kernels beside their code: parameters, constants, shared and local memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from profiler.build.code_images import attributes, block_threads, read_functions
from profiler.build.elf import is_elf, read_sections, section_bytes
from profiler.errors import BuildFailed

# Attributes of .nv.info sections. Source: their names as `cuobjdump --dump-elf` prints them, and the values
# beside them.
_PARAM_CBANK = 0x0A
_KPARAM_INFO = 0x17
_KPARAM_INFO_V2 = 0x45  # of kernels with more than 4 KB of parameters, and of cuTile's
_MALFORMED = (struct.error, ValueError, IndexError, OverflowError, BuildFailed)


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
    if not is_elf(data):
        raise BuildFailed(f"{path} is no cubin: it does not begin as a 64-bit ELF file")
    try:
        sections = {
            section.name: (section_bytes(data, section), section.size) for section in read_sections(data)
        }
        names = [function.name for function in read_functions(data) if function.is_kernel]
        return {name: _kernel(name, sections) for name in names}
    except _MALFORMED as error:
        raise BuildFailed(f"{path} is damaged: {error}") from None


def _kernel(function: str, sections: Mapping[str, tuple[bytes, int]]) -> KernelImage:
    info = sections.get(f".nv.info.{function}", (b"", 0))[0]
    parameters, base = _parameters(info)
    if base is None:  # without parameters: where they would begin
        base = sections.get(f".nv.constant0.{function}", (b"", 0))[1]
    constants = {
        int(bank): content
        for other, (content, _) in sections.items()
        if other.startswith(".nv.constant")
        and (bank := other.removeprefix(".nv.constant").partition(".")[0]).isdecimal()
        and (other.endswith(f".{function}") or other.removeprefix(".nv.constant").isdecimal())
    }
    shared = sections.get(f".nv.shared.{function}", (b"", 0))[1]
    return KernelImage(function, parameters, base, constants, shared, block_threads(info))


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
