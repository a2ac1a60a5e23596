"""What accesses to memory cost in kernels of a library that nobody launched, as a lock holds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from profiler.build.code_images import CodeImage, function_bytes
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BuildFailed
from profiler.gate.code_lock import NO_ACCESSES, AccessCost, AccessFacts, ReadFunction
from profiler.model.cubin import KernelImage, read_kernels
from profiler.model.instructions import NoModel
from profiler.model.unlaunched_accesses import UnlaunchedAccess, unlaunched_accesses
from profiler.sass.binary_functions import images_of
from profiler.sass.disassembly import disassemble
from profiler.sass.listing import SassLine
from profiler.sass.loops import block_graph

_T = TypeVar("_T")
_DIGITS = 2  # behind the point, of a number in a lock


def follow_accesses(functions: Sequence[ReadFunction]) -> list[AccessFacts | None]:
    """What the accesses of each kernel cost; None where its block or its code is not known.

    functions: of a library that is still there, for its images are read and disassembled again. Raises
    CannotJudge where nvdisasm or cuobjdump is missing.
    """
    by_library: dict[Path, dict[tuple[str, str, str, bytes], list[int]]] = {}
    for place, one in enumerate(functions):
        if one.function and one.library:
            own = one.function
            keys = by_library.setdefault(one.library, defaultdict(list))
            keys[own.file, own.arch, own.name, own.code.code].append(place)
    found: list[AccessFacts | None] = [None] * len(functions)
    for library, wanted in by_library.items():
        for label, image in images_of(library, {file for file, *_ in wanted}):
            here = {
                name: places
                for name, own in function_bytes(image).items()
                if (places := wanted.pop((label, image.arch, name, own.code), []))
            }
            threads = {name: functions[places[0]].pinned.max_threads for name, places in here.items()}
            for name, facts in _of_image(image, threads):
                for place in here[name]:
                    found[place] = facts
    return found


def _of_image(image: CodeImage, threads: Mapping[str, int | None]) -> Iterator[tuple[str, AccessFacts]]:
    """Of the functions that are named, with their threads where something says so."""
    if not threads:
        return
    with scratch_folder() as folder:
        cubin = folder / "image.cubin"
        cubin.write_bytes(image.content)
        try:
            kernels, listing = read_kernels(cubin), disassemble(cubin)
        except BuildFailed:
            return
    for name, lines in zip(listing.functions, listing.ranges, strict=True):
        if name in threads and name in kernels:
            facts = _of_kernel(kernels[name], listing.lines[lines.start : lines.stop], threads[name])
            if facts is not None:
                yield name, facts


def _of_kernel(kernel: KernelImage, rows: Sequence[SassLine], threads: int | None) -> AccessFacts | None:
    block = kernel.block.sizes if kernel.block else (threads, 1, 1) if threads else None
    if block is None:
        return None
    graph = block_graph(rows)
    try:
        run = unlaunched_accesses(kernel, [(row.offset, row.text or "") for row in rows], graph, block)
    except NoModel:
        return None
    by_depth: dict[int, list[UnlaunchedAccess]] = defaultdict(list)
    for access in run.accesses:
        by_depth[graph.depths[access.position]].append(access)
    depths = [by_depth[depth] for depth in range(max(by_depth, default=-1) + 1)]
    unknown = [sum(not one.is_known for one in some) for some in depths]
    shared, sectors = ([_cost(some, space) for some in depths] for space in ("shared", "global"))
    return AccessFacts(
        block, _trimmed(shared, NO_ACCESSES), _trimmed(sectors, NO_ACCESSES), _trimmed(unknown, 0)
    )


def _cost(accesses: Collection[UnlaunchedAccess], space: str) -> AccessCost:
    known = [one for one in accesses if one.is_known and one.space == space]
    cost, excess = sum(one.least or 0 for one in known), sum(one.excess or 0 for one in known)
    return AccessCost(len(known), _rounded(cost), _rounded(excess))


def _rounded(number: float) -> float:
    """As a lock writes it: whole where it is."""
    rounded = round(number, _DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def _trimmed(by_depth: Sequence[_T], nothing: _T) -> tuple[_T, ...]:
    """Without the depths behind the last that has something."""
    end = max((depth for depth, one in enumerate(by_depth, 1) if one != nothing), default=0)
    return tuple(by_depth[:end])
