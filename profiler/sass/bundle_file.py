"""How a bundle stores machine code: a file for each version, with its functions by architecture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from profiler.build.library import BuiltLibrary
from profiler.build.opcode_counts import INSTRUCTION_BYTES
from profiler.errors import BadBundle, CannotJudge
from profiler.sass.disassembly import library_functions
from profiler.sass.listing import FileLine, FunctionCode

SASS = "sass"  # the kind of the bundle's file, and the folder it lies in
_PRESET = 6  # of lzma: a window of 8 MB, more than the file of any version needs
_MAX_MEMORY = 64 << 20  # that unpacking may take
_MAX_BYTES = 64 << 20  # of one file once unpacked: the largest of the lineage takes 0.6 MB


@dataclass(frozen=True)
class MachineCode:
    """What the compiler made of a version, as a run stores it."""

    version: str
    compiler: str  # nvcc 13.0.88
    functions: Mapping[str, tuple[FunctionCode, ...]]  # by architecture


def code_path(version: str) -> str:
    """Where a bundle has the machine code of a version."""
    return f"{SASS}/{version}.json.xz"


def pack_build(built: BuiltLibrary, folder: Path) -> bytes:
    """The machine code of a built version as a bundle stores it; sources are named by their path in `folder`.

    Raises CannotJudge where a tool is missing, BuildFailed where a tool does not read the library.
    """
    functions = {arch: library_functions(built.library, arch) for arch in built.arches}
    return pack_code(MachineCode(built.version, built.compiler, functions), folder)


def pack_code(code: MachineCode, folder: Path) -> bytes:
    """The file's content: the same code gives the same bytes, wherever its sources lie."""
    names = {
        source[0]: _name_in(folder, source[0])
        for functions in code.functions.values()
        for function in functions
        for source in function.sources
        if source
    }
    files = sorted(set(names.values()))
    file_index = {path: files.index(name) for path, name in names.items()}
    document = {
        "version": code.version,
        "evidence": "static",
        "compiler": code.compiler,
        "files": files,
        "architectures": {
            arch: [_pack_function(function, file_index) for function in functions]
            for arch, functions in code.functions.items()
        },
    }
    lzma = _lzma()
    text = json.dumps(document, separators=(",", ":")).encode()
    return bytes(lzma.compress(text, preset=_PRESET | lzma.PRESET_EXTREME))


def unpack_code(content: bytes, where: str) -> MachineCode:
    """The machine code in a bundle's file. Raises BadBundle that names `where`."""
    lzma = _lzma()
    try:
        text = lzma.LZMADecompressor(memlimit=_MAX_MEMORY).decompress(content, _MAX_BYTES)
        document = json.loads(text)
        files = [str(name) for name in document["files"]]
        return MachineCode(
            str(document["version"]),
            str(document["compiler"]),
            {
                str(arch): tuple(_unpack_function(function, files) for function in functions)
                for arch, functions in document["architectures"].items()
            },
        )
    except (lzma.LZMAError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"[:120]
        raise BadBundle(f"{where} holds no machine code that can be read ({why})") from None


def _pack_function(function: FunctionCode, file_index: Mapping[str, int]) -> dict[str, Any]:
    offsets = [offset for offset, _ in function.instructions]
    rows = [[file_index[source[0]], source[1]] if source else [] for source in function.sources]
    document: dict[str, Any] = {
        "name": function.name,
        "sass": "\n".join(text for _, text in function.instructions),
        # Runs of instructions of one line: how many, and then, where it is known, the file and the line.
        "lines": [[len(list(same)), *row] for row, same in groupby(rows)],
    }
    return document if offsets == _regular(len(offsets)) else {**document, "offsets": offsets}


def _unpack_function(document: Mapping[str, Any], files: Sequence[str]) -> FunctionCode:
    texts = document["sass"].split("\n") if document["sass"] else []
    offsets = [int(offset) for offset in document.get("offsets") or _regular(len(texts))]
    sources: list[FileLine | None] = []
    for count, *row in document["lines"]:
        sources += [(files[row[0]], int(row[1])) if row else None] * int(count)
    if not len(texts) == len(offsets) == len(sources):
        raise ValueError(f"{len(texts)} instructions with {len(offsets)} places, {len(sources)} source lines")
    return FunctionCode(str(document["name"]), tuple(zip(offsets, texts, strict=True)), tuple(sources))


def _regular(count: int) -> list[int]:
    """The offsets of so many instructions without a gap."""
    return list(range(0, count * INSTRUCTION_BYTES, INSTRUCTION_BYTES))


def _name_in(folder: Path, path: str) -> str:
    """A source's path below the catalogue's folder, else its bare name: nothing of this machine."""
    resolved, root = Path(path).resolve(), folder.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else resolved.name


def _lzma() -> Any:
    """The module lzma, which some builds of Python come without."""
    try:
        import lzma
    except ImportError:
        raise CannotJudge("this Python is built without lzma, which machine code is packed with") from None
    return lzma
