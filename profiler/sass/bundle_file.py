"""How a version's machine code lies in a bundle: a file a version, with its functions by architecture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from profiler.build import BuiltLibrary
from profiler.build.opcode_counts import INSTRUCTION_BYTES
from profiler.errors import BadBundle, CannotJudge
from profiler.sass.listing import FileLine, FunctionCode, library_functions

SASS = "sass"  # of the bundle's file, and the folder it lies in
_PRESET = 6  # a window of 8 MB: more than any file of one version needs
_MOST_MEMORY = 64 << 20  # that unpacking may take
_MOST_BYTES = 64 << 20  # of one file once unpacked: the largest of the lineage takes 0.6 MB


@dataclass(frozen=True)
class MachineCode:
    """What the compiler made of a version, as a run keeps it."""

    version: str
    compiler: str  # nvcc 13.0.88
    functions: Mapping[str, tuple[FunctionCode, ...]]  # by architecture


def code_path(version: str) -> str:
    """Where a bundle has the machine code of a version."""
    return f"{SASS}/{version}.json.xz"


def pack_build(built: BuiltLibrary, folder: Path) -> bytes:
    """The machine code of a built version as a bundle keeps it; sources are named as below their folder.

    Raises CannotJudge where a tool is missing, BuildFailed where a tool does not read the library.
    """
    functions = {arch: library_functions(built.library, arch) for arch in built.arches}
    return pack_code(MachineCode(built.version, built.compiler, functions), folder)


def pack_code(code: MachineCode, folder: Path) -> bytes:
    """The file's content: the same code gives the same bytes, wherever its sources lie."""
    names = {
        source[0]: _inside(source[0], folder)
        for functions in code.functions.values()
        for one in functions
        for source in one.sources
        if source
    }
    files = sorted(set(names.values()))
    places = {path: files.index(name) for path, name in names.items()}
    document = {
        "version": code.version,
        "evidence": "static",
        "compiler": code.compiler,
        "files": files,
        "architectures": {
            arch: [_dump_function(one, places) for one in functions]
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
        text = lzma.LZMADecompressor(memlimit=_MOST_MEMORY).decompress(content, _MOST_BYTES)
        document = json.loads(text)
        files = [str(name) for name in document["files"]]
        return MachineCode(
            str(document["version"]),
            str(document["compiler"]),
            {
                str(arch): tuple(_parse_function(one, files) for one in functions)
                for arch, functions in document["architectures"].items()
            },
        )
    except (lzma.LZMAError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"[:120]
        raise BadBundle(f"{where} holds no machine code that can be read ({why})") from None


def _dump_function(one: FunctionCode, places: Mapping[str, int]) -> dict[str, Any]:
    offsets = [offset for offset, _ in one.instructions]
    rows = [[places[source[0]], source[1]] if source else [] for source in one.sources]
    written: dict[str, Any] = {
        "name": one.name,
        "sass": "\n".join(text for _, text in one.instructions),
        "lines": [[len(list(same)), *row] for row, same in groupby(rows)],  # how many, file, line
    }
    return written if offsets == _regular(len(offsets)) else {**written, "offsets": offsets}


def _parse_function(one: Mapping[str, Any], files: Sequence[str]) -> FunctionCode:
    texts = one["sass"].split("\n") if one["sass"] else []
    offsets = [int(offset) for offset in one.get("offsets") or _regular(len(texts))]
    sources: list[FileLine | None] = []
    for count, *row in one["lines"]:
        sources += [(files[row[0]], int(row[1])) if row else None] * int(count)
    if not len(texts) == len(offsets) == len(sources):
        raise ValueError(f"{len(texts)} instructions with {len(offsets)} places, {len(sources)} source lines")
    return FunctionCode(str(one["name"]), tuple(zip(offsets, texts, strict=True)), tuple(sources))


def _regular(count: int) -> list[int]:
    """The offsets of instructions that follow each other without a gap."""
    return list(range(0, count * INSTRUCTION_BYTES, INSTRUCTION_BYTES))


def _inside(path: str, folder: Path) -> str:
    """A source as the bundle names it: below the catalogue's folder, else its name, of nobody's machine."""
    resolved = Path(path).resolve()
    home = folder.resolve()
    return resolved.relative_to(home).as_posix() if resolved.is_relative_to(home) else resolved.name


def _lzma() -> Any:
    """Python's lzma, which some builds of Python come without."""
    try:
        import lzma
    except ImportError:
        raise CannotJudge("this Python is built without lzma, which machine code is packed with") from None
    return lzma
