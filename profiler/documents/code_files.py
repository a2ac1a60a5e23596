"""What files of machine code say of their kernels: cubins, libraries, reports, Triton's cache."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from profiler.build.code_images import (
    CODE_FILES,
    MOST_FOLLOWED_BYTES,
    CodeImage,
    ImageFunction,
    architectures,
    choose_images,
    code_files,
    function_bytes,
    read_images,
)
from profiler.build.kernel_names import instance_name
from profiler.build.occupancy import (
    Headroom,
    NextBlock,
    Occupancy,
    carveout_of,
    headroom,
    next_block,
    no_block_words,
    occupancy,
    own_shared_bytes,
)
from profiler.build.signatures import signatures
from profiler.build.triton_facts import TritonFacts, triton_facts
from profiler.bundles.scratch import scratch_folder
from profiler.compare.match_launches import kernel_filter, name_filter
from profiler.documents.blocks import Block, Heading, Name, Notes, Table
from profiler.documents.code_accesses import (
    CodeAccesses,
    code_accesses,
    pad_dict,
    pad_words,
    swizzle_dict,
    swizzle_words,
)
from profiler.documents.document import Document
from profiler.errors import CannotJudge, Exit, ProfilerError, UnknownName
from profiler.evidence.gpu_arch import architecture_of, find_architecture
from profiler.evidence.launch import Launch
from profiler.evidence.naming import brief_list
from profiler.evidence.opcodes import base_opcode
from profiler.evidence.plain_file import special_kind
from profiler.model.cubin import KernelImage, read_kernels
from profiler.model.dimensions import Grid
from profiler.model.instruction_work import access_bytes
from profiler.model.instructions import NoModel
from profiler.model.loop_cost import LoopCost, hottest, loop_costs
from profiler.reports.read import launch_detail, read_report
from profiler.sass.disassembly import assemble_ptx, disassemble
from profiler.sass.listing import FileLine, SassLine, listing_of_launch
from profiler.sass.live_registers import LiveRegisters, count_live_registers
from profiler.sass.loops import BlockGraph, block_graph

UNKNOWN = "not known"
_HEAD = (
    "file",
    "function",
    "arch",
    "regs",
    "live",
    "stack",
    "LDL/STL",
    "shared",
    "threads",
    "occupancy",
    "highest",
)
_LOOP_HEAD = (
    *("file", "function", "loop", "depth", "instructions", "spills", "cycles", "set by", "stalls"),
    *("operations", "global bytes", "shared bytes"),
)
_LOOP_NOTES = (
    "cycles: what the busiest unit of a full SM needs; stalls: cycles that the schedule makes the warp wait",
    "operations: of floating point, a multiply-add is two; these and bytes are those of 32 lanes",
)
_REPORTS = (".ncu-rep", ".ncu-repz")
# What is disassembled of a file unasked: 1.3 MB took 6 s of a processor, 98 MB here and 132 MB in nvdisasm.
_MOST_CODE_BYTES = 4_000_000
_MOST_NAMES = 10  # of functions with one thing not known, and with their parameters
_MOST_CHARACTERS = 300  # of a name with parameters, unasked: those of CUTLASS have thousands
_MOST_LINES = 3  # of a function whose accesses cost too much, unasked


class AskedLaunch(NamedTuple):
    """What a user says of the launches of files of machine code; None where nothing."""

    block: Grid | None = None  # of kernels whose code does not say what they require
    shared_bytes: int | None = None  # dynamic, of a block
    carveout_kb: int | None = None  # of an SM's shared memory, that it is set to


class LocalAccesses(NamedTuple):
    """Loads and stores of local memory, and of shared memory for spills, of one line at one loop depth."""

    source: FileLine | None
    loop_depth: int
    places: int  # instructions
    loads: int  # of them; the others store
    bytes: int  # of a thread, that all of them move, each executed once
    spills: int | None  # of them that ptxas marks as spills; None where it marks none

    def as_json(self) -> dict[str, object]:
        """Null for what is not known."""
        file, line = self.source or (None, None)
        return {
            "file": file,
            "line": line,
            "loop_depth": self.loop_depth,
            "count": self.places,
            "loads": self.loads,
            "bytes": self.bytes,
            "spills": self.spills,
        }


@dataclass(frozen=True)
class CodeFunction:
    """One kernel of a file of machine code; None is what the file does not say."""

    file: str
    function: str  # mangled, or as a report calls it
    arch: str | None
    registers: int | None
    stack_bytes: int | None
    static_shared_bytes: int | None  # of a block, without what the system takes
    dynamic_shared_bytes: int | None
    threads: int | None  # of a block, or at most
    live: LiveRegisters | None
    opcodes: Mapping[str, int]  # how many instructions of each there are, modifiers left out
    unknown: tuple[str, ...]  # what is not known, and why
    tensor_columns: int = 0  # of tensor memory, that a block allocates; 0 also where nothing says so
    is_kernel: bool = True  # else a device function, which no launch names
    spill_instructions: int | None = None  # that ptxas marks as spills; None where the code does not say
    shared_spill_bytes: int = 0  # of a block, that spills into shared memory take
    block: Grid | None = None  # the threads along x, y and z
    block_from: str = ""  # who says so: --block, .reqntid, .maxntid (at most so many), num_warps
    remark: str = ""  # why a block that was asked for is not taken
    local: tuple[LocalAccesses, ...] = ()  # of the deepest loops first
    accesses: CodeAccesses | None = None  # None where the block or the code is not known
    loops: tuple[LoopCost, ...] = ()  # without what is in loops inside of them
    carveout: int | None = None  # bytes that an SM's shared memory is set to; None: all that it has
    signature: str | None = None  # the name with the types of its parameters; None without a demangler

    @property
    def name(self) -> str:
        """Without namespace, with the numbers of its template: `rows<64>`."""
        return instance_name(self.function)

    @property
    def shared_bytes(self) -> int | None:
        """Of a block: static, and dynamic where something says how much."""
        if self.static_shared_bytes is None:
            return None
        return self.static_shared_bytes + (self.dynamic_shared_bytes or 0)

    @property
    def is_shared_whole(self) -> bool:
        """Whether something says how much is dynamic."""
        return self.dynamic_shared_bytes is not None

    @property
    def live_registers(self) -> int | None:
        """The most at any instruction."""
        return self.live.highest if self.live else None

    @property
    def live_words(self) -> str:
        """`128 live at v2d.cu:142`."""
        return self.live.words if self.live else ""

    @property
    def local_accesses(self) -> int | None:
        """Loads and stores of local memory in the code: spills, and arrays that are indexed."""
        return self.opcodes.get("LDL", 0) + self.opcodes.get("STL", 0) if self.opcodes else None

    @property
    def occupancy(self) -> Occupancy | None:
        """Of the block's threads and what is known of its shared memory; None where too little is known."""
        return occupancy(*self._block) if self._block else None

    @property
    def next_block(self) -> NextBlock | None:
        """What one more block on an SM asks for."""
        return next_block(*self._block) if self._block else None

    @property
    def headroom(self) -> Headroom | None:
        """What may be added with as many blocks on an SM."""
        return headroom(*self._block) if self._block else None

    @property
    def in_loops(self) -> int:
        """How many of the accesses of local memory are in loops."""
        return sum(one.places for one in self.local if one.loop_depth)

    @property
    def hot_loop(self) -> LoopCost | None:
        """The loop with most arithmetic; None where there is no loop, or the code is not known."""
        return hottest(self.loops)

    @property
    def local_words(self) -> str:
        """`40 of 75 loads and stores of local memory are in loops, most at a.cu:7`; "" where none is."""
        inside = [one for one in self.local if one.loop_depth]
        if not inside:
            return ""
        by_line = Counter[FileLine | None]()
        for one in inside:
            by_line[one.source] += one.places
        ((source, _),) = by_line.most_common(1)
        total, most = sum(one.places for one in self.local), inside[0].loop_depth
        at = f", most at {Path(source[0]).name}:{source[1]}" if source else ""
        loops = f"in loops, the deepest in {most}" if most > 1 else "in loops"
        kind = "spills" if all(one.spills == one.places for one in self.local) else "local memory"
        return f"{self.in_loops} of {total} loads and stores of {kind} are {loops}{at}"

    @property
    def no_block_words(self) -> str:
        """Why no SM takes a block of it; "" where one does, or too little is known."""
        return no_block_words(*self._block) if self._block else ""

    @property
    def _block(self) -> tuple[str, int, int, int, int, int | None] | None:
        """What a block takes of an SM; None where too little is known."""
        if not self.arch or self.registers is None or not self.threads or not find_architecture(self.arch):
            return None
        shared = self.shared_bytes or 0
        return self.arch, self.registers, self.threads, shared, self.tensor_columns, self.carveout

    def as_json(self) -> dict[str, object]:
        """Everything, null for what is not known."""
        following, fits, spare = self.next_block, self.occupancy, self.headroom
        swizzle, pad = (self.accesses.swizzle, self.accesses.pad) if self.accesses else (None, None)
        source = self.live.highest_line if self.live else None
        return {
            "file": self.file,
            "function": self.function,
            "name": self.name,
            "signature": self.signature,
            "evidence": "static",
            "arch": self.arch,
            "registers": self.registers,
            "stack_bytes": self.stack_bytes,
            "spill_bytes": None,
            "is_kernel": self.is_kernel,
            "spill_instructions": self.spill_instructions,
            "shared_spill_bytes": self.shared_spill_bytes,
            "local_accesses": self.local_accesses,
            "local_accesses_by_line": [one.as_json() for one in self.local],
            "shared_bytes": self.shared_bytes,
            "shared_bytes_with_dynamic": self.is_shared_whole,
            "tensor_columns": self.tensor_columns,
            "carveout_bytes": self.carveout,
            "threads": self.threads,
            "block": list(self.block) if self.block else None,
            "block_from": self.block_from or None,
            "live_registers": self.live_registers,
            "live_registers_file": source[0] if source else None,
            "live_registers_line": source[1] if source else None,
            "live_registers_by_line": [
                {"file": file, "line": line, "live_registers": count}
                for (file, line), count in sorted(self.live.by_line.items())
            ]
            if self.live
            else [],
            "live_registers_by_instruction": list(self.live.counts) if self.live else [],
            "occupancy_pct": fits.pct if fits else None,
            "blocks_per_sm": fits.blocks if fits else None,
            "limiter": ", ".join(fits.limiters) if fits else None,
            "fits_no_sm": self.no_block_words or None,
            "next_block": {**following._asdict(), "words": following.words} if following else None,
            "spare_registers": spare.registers if spare else None,
            "spare_shared_bytes": spare.shared_bytes if spare else None,
            "loops": [
                {**loop.as_json(), "is_hot": loop is self.hot_loop}
                for loop in sorted(self.loops, key=lambda loop: loop.offset)
            ],
            "accesses": [one.as_json() for one in self.accesses.accesses] if self.accesses else None,
            "swizzle": swizzle_dict(swizzle) if swizzle else None,
            "pad": pad_dict(pad) if pad else None,
            "opcodes": dict(self.opcodes),
            "not_known": list(self.unknown),
        }


@dataclass(frozen=True, repr=False)
class CodeFilesDocument(Document):
    """The functions of files of machine code."""

    functions: tuple[CodeFunction, ...]
    errors: Mapping[str, str]  # why a file was not read, by its name

    title = "Machine code"
    columns = (
        "file",
        "function",
        "arch",
        "registers",
        "live_registers",
        "stack_bytes",
        "local_accesses",
        "shared_bytes",
        "threads",
        "occupancy_pct",
        "limiter",
        "next_block",
    )

    @property
    def sentences(self) -> Sequence[str]:
        """What fits no SM, spills in loops, wasteful lines, one more block, and what is not known."""
        never = [
            f"{one.name} fits no SM: {one.no_block_words}" for one in self.functions if one.no_block_words
        ]
        near = [
            f"{function.name}: {following.words}"
            for function in self.functions
            if (following := function.next_block) and following.is_near
        ]
        wasteful = [words for function in self.functions for words in _waste_words(function)]
        local = [f"{one.name}: {one.local_words}" for one in self.functions if one.local_words]
        unknown = _grouped([words for function in self.functions for words in function.unknown])
        unread = [f"{file} is not read: {why}" for file, why in self.errors.items()]
        remarks = [one.remark for one in self.functions if one.remark]
        carved = {
            f"an SM has {one.carveout >> 10} KB of shared memory set, by --carveout"
            for one in self.functions
            if one.carveout is not None
        }
        known = [*never, *sorted(carved), *remarks, *local, *wasteful, *near]
        return list(dict.fromkeys([*known, *(f"not known: {words}" for words in unknown), *unread]))

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a function, what is to be known of them, and what is not known.

        Names with parameters where there are few, and of the loops that with most arithmetic. With
        `everything` all of them, and live registers, wasteful accesses and those of local memory by line.
        """
        yield Heading(self.title, 1)
        labels = Counter((one.file, one.arch, one.name) for one in self.functions)
        rows = [_cells(one, labels[one.file, one.arch, one.name] == 1) for one in self.functions]
        yield Table(_HEAD, rows, right=range(3, 10))
        signed = {f"{one.name}: {one.signature}": None for one in self.functions if one.signature}
        if everything or len(signed) <= _MOST_NAMES:
            most = None if everything else _MOST_CHARACTERS
            yield Notes([words[:most] + "…" * (len(words) > len(words[:most])) for words in signed])
        yield Notes(self.sentences)
        loops = [
            _loop_cells(one, loop, labels[one.file, one.arch, one.name] == 1)
            for one in self.functions
            for loop in (one.loops if everything else filter(None, [one.hot_loop]))
        ]
        if loops:
            yield Heading("Loops, modelled: a pass of a warp")
            yield Table(_LOOP_HEAD, loops, right=(3, 4, 5, 6, 8, 9, 10, 11))
            yield Notes(_LOOP_NOTES)
        for function in self.functions if everything else ():
            if function.live and function.live.by_line:
                yield Heading(f"{function.file} {function.name}: live registers by source line")
                by_line = sorted(function.live.by_line.items())
                rows = [(f"{Path(file).name}:{line}", str(count)) for (file, line), count in by_line]
                yield Table(("line", "live regs"), rows, right=(1,))
            if function.accesses and function.accesses.wasteful:
                yield Heading(f"{function.file} {function.name}: accesses that cost too much")
                rows = [(line.place, line.words) for line in function.accesses.wasteful]
                yield Table(("line", "accesses"), rows)
            if function.local:
                yield Heading(
                    f"{function.file} {function.name}: loads and stores of local memory, and spills"
                )
                rows = [
                    (
                        f"{Path(one.source[0]).name}:{one.source[1]}" if one.source else UNKNOWN,
                        str(one.loop_depth),
                        str(one.places),
                        str(one.loads),
                        str(one.bytes),
                        known_words(one.spills),
                    )
                    for one in function.local
                ]
                head = ("line", "loops", "count", "loads", "bytes", "spills")
                yield Table(head, rows, right=range(1, 6))

    @property
    def exit_code(self) -> Exit:
        """1 where a kernel fits no SM, 2 where a file cannot be read, 3 where there is no function."""
        if self.errors:
            return Exit.UNUSABLE_INPUT
        if any(function.no_block_words for function in self.functions):
            return Exit.REGRESSION
        return Exit.PASS if self.functions else Exit.UNJUDGED

    def rows(self) -> list[tuple[object, ...]]:
        """A row a function."""
        return [
            (
                function.file,
                function.function,
                function.arch,
                function.registers,
                function.live_registers,
                function.stack_bytes,
                function.local_accesses,
                function.shared_bytes,
                function.threads,
                function.occupancy.pct if function.occupancy else None,
                ", ".join(function.occupancy.limiters) if function.occupancy else None,
                function.next_block.words if function.next_block else None,
            )
            for function in self.functions
        ]

    def _content(self) -> dict[str, object]:
        return {
            "functions": [function.as_json() for function in self.functions],
            "errors": dict(self.errors),
        }


def known_words(value: int | None) -> str:
    """A number, or that it is not known."""
    return UNKNOWN if value is None else str(value)


def _waste_words(function: CodeFunction) -> Iterator[str]:
    """The lines whose accesses cost too much, the worst of them, and the swizzle and the pad."""
    if not function.accesses:
        return
    lines = function.accesses.wasteful
    for line in lines[:_MOST_LINES]:
        yield f"{function.name} {line.place}: {line.words}"
    if (more := len(lines) - _MOST_LINES) > 0:
        yield f"{function.name}: accesses of {more} more line{'s' if more > 1 else ''} cost too much: --lines"
    if swizzle := function.accesses.swizzle:
        yield f"{function.name}: swizzle: {swizzle_words(swizzle)}"
        if pad := function.accesses.pad:
            yield f"{function.name}: pad: {pad_words(pad, swizzle)}"


def _cells(function: CodeFunction, is_only: bool) -> tuple[str, ...]:
    local = known_words(function.local_accesses)
    return (
        function.file,
        Name(function.name if is_only else function.function),
        function.arch or UNKNOWN,
        known_words(function.registers),
        known_words(function.live_registers),
        known_words(function.stack_bytes),
        f"{local}, {function.in_loops} in loops" if function.in_loops else local,
        known_words(function.shared_bytes),
        known_words(function.threads),
        UNKNOWN if function.occupancy is None else f"{function.occupancy.pct:.1f} %",
        function.live_words,
    )


def _loop_cells(function: CodeFunction, loop: LoopCost, is_only: bool) -> tuple[str, ...]:
    source = loop.source
    return (
        function.file,
        Name(function.name if is_only else function.function),
        f"{Path(source[0]).name}:{source[1]}" if source else f"+{loop.offset:#x}",
        str(loop.depth),
        str(loop.instructions),
        str(loop.spills),
        UNKNOWN if loop.cycles is None else f"{loop.cycles:,.0f}",
        loop.unit or ", ".join(loop.without_model),
        str(loop.stall_cycles),
        *(UNKNOWN if number is None else f"{number:,}" for number in loop.work),
    )


def _grouped(reasons: Sequence[str]) -> list[str]:
    """Reasons that end in a name in parentheses: of a reason with many names a few, and how many more."""
    names: dict[str, dict[str, None]] = {}
    for words in reasons:
        reason, _, name = words.removesuffix(")").rpartition(" (") if words.endswith(")") else (words, "", "")
        names.setdefault(reason, {})[name] = None
    return [
        f"{reason} ({name})" if name else reason
        for reason, known in names.items()
        for name in (list(known) if len(known) <= _MOST_NAMES else [f"{len(known)} functions"])
    ]


def examine_files(
    paths: Sequence[Path],
    arches: Sequence[str] | None = None,
    *,
    with_lines: bool = False,
    with_swizzle: bool = False,
    asked: AskedLaunch | None = None,
    kernel: str | None = None,
) -> CodeFilesDocument:
    """What cubins, libraries, reports and folders of cubins say of their kernels, without running anything.

    arches: those of a library with several. with_lines: disassemble however much machine code there is, about
    five seconds of a processor a megabyte, and follow all its addresses; without it of more than 4 MB the
    headers alone are read. with_swizzle: find the swizzle and the pad that clear most bank conflicts. kernel:
    only functions whose name has this pattern. Raises UnknownName for a path that is not there, a pattern
    that no name has and a carveout that an SM lacks, CannotJudge where cuobjdump or nvdisasm is missing.
    """
    functions: list[CodeFunction] = []
    chosen = _Chosen(kernel)
    errors: dict[str, str] = {}
    for path in paths:
        if not path.exists():
            raise UnknownName(f"there is no {path}")
        files = code_files(path) if path.is_dir() else [path]
        if not files:
            errors[str(path)] = f"the folder has no {', '.join(f'*{suffix}' for suffix in CODE_FILES)}"
        for file in files:
            name = str(file.relative_to(path)) if path.is_dir() else file.name
            if (kind := special_kind(file)) is not None:
                errors[name] = f"{kind}, not a file"
                continue
            try:
                if file.suffix.lower() in _REPORTS:
                    functions += _of_report(file, name, chosen)
                else:
                    for arch in arches or (None,):
                        functions += examine_binary(
                            file,
                            name,
                            arch,
                            with_lines=with_lines,
                            with_swizzle=with_swizzle,
                            asked=asked,
                            is_selected=chosen.has,
                        )
            except CannotJudge:
                raise
            except ProfilerError as error:
                errors[name] = str(error).splitlines()[0]
    if chosen.others and not functions and not errors:
        names = brief_list(sorted(chosen.others))
        raise UnknownName(f"there is no kernel {kernel!r}; there are {names}", option="--kernel")
    known = signatures([one.function for one in functions])
    named = [replace(one, signature=known.get(one.function, one.signature)) for one in functions]
    if asked and asked.carveout_kb is not None:
        named = [_with_carveout(one, asked.carveout_kb) for one in named]
    return CodeFilesDocument(tuple(named), errors)


def _with_carveout(function: CodeFunction, asked_kb: int) -> CodeFunction:
    """A function on SMs whose shared memory is set to so much. Raises UnknownName for no size of theirs."""
    if not function.arch or not find_architecture(function.arch):
        return function
    carveout = carveout_of(function.arch, asked_kb, function.shared_bytes or 0)
    remarks = [function.remark] if function.remark else []
    if carveout > asked_kb << 10:
        remarks.append(f"{function.name}: a block does not fit --carveout: an SM has {carveout >> 10} KB set")
    return replace(function, carveout=carveout, remark="; ".join(remarks))


class _Chosen:
    """The kernels that are asked for by a pattern of their names, all where there is none."""

    def __init__(self, pattern: str | None) -> None:
        self._has_name = name_filter(pattern)
        self._has_launch = kernel_filter(pattern)
        self.others: set[str] = set()  # names of those that are not

    def has(self, function: str) -> bool:
        """Whether a function is one of them, by its mangled name or as tables have it."""
        name = instance_name(function)
        return self._noted(name, self._has_name(function) or self._has_name(name))

    def has_launch(self, launch: Launch) -> bool:
        """Whether the kernel of a launch is."""
        return self._noted(launch.base_name, self._has_launch(launch))

    def _noted(self, name: str, is_one: bool) -> bool:
        if not is_one:
            self.others.add(name)
        return is_one


def examine_binary(
    path: Path,
    name: str,
    arch: str | None,
    *,
    with_lines: bool = False,
    with_swizzle: bool = False,
    asked: AskedLaunch | None = None,
    is_selected: Callable[[str], bool] = lambda function: True,
) -> list[CodeFunction]:
    """The functions of every image of a cubin, library, or PTX; arch: None takes all architectures.

    is_selected: whether a function is asked for, by its mangled name; without one no image is disassembled.
    Raises CannotJudge where a tool is missing, BuildFailed.
    """
    with scratch_folder() as folder:
        triton = triton_facts(path)
        if path.suffix.lower() == ".ptx":
            path, arch = assemble_ptx(path, folder, arch), None
        arches = architectures(path)
        if arch:
            arches = tuple({image.arch for image in choose_images(path, arch)})
        # Of a large library the headers alone are read: its disassembly takes hours and gigabytes.
        sizes: dict[int, int] = {}  # of images that have a selected function, by their numbers
        followed = 0
        for image in read_images(path):
            own = [function.code_bytes for function in image.functions if is_selected(function.name)]
            if own and image.arch in arches:
                sizes[image.number] = sum(function.code_bytes for function in image.functions)
                followed += sum(own)
        size = sum(sizes.values())
        why = ""
        if size > _MOST_CODE_BYTES and not with_lines:
            why = f"{size / 1e6:.0f} MB of machine code are disassembled only with --lines"
        are_followed = followed <= MOST_FOLLOWED_BYTES or with_lines or with_swizzle
        search = _FileQuestions(asked or AskedLaunch(), triton, why, are_followed, with_swizzle)
        functions: list[CodeFunction] = []
        for image in read_images(path):
            if image.number in sizes:
                cubin = folder / f"{image.number}.cubin"
                cubin.write_bytes(image.content)
                functions += _of_image(name, image, cubin, search, is_selected)
                cubin.unlink()
    return functions


class _FileQuestions(NamedTuple):
    """What is asked of the kernels of a file."""

    asked: AskedLaunch
    triton: TritonFacts
    why_no_code: str  # why the code is not disassembled; "" where it is
    are_followed: bool  # the addresses of accesses
    with_swizzle: bool


class _FunctionListing(NamedTuple):
    """The machine code of one function, disassembled."""

    live: LiveRegisters
    rows: Sequence[SassLine]
    graph: BlockGraph
    spills: tuple[int, ...] | None  # offsets of what ptxas marks; None where it marks nothing in the image
    loops: tuple[LoopCost, ...]


def _of_image(
    name: str, image: CodeImage, cubin: Path, search: _FileQuestions, is_selected: Callable[[str], bool]
) -> list[CodeFunction]:
    kernels = read_kernels(cubin)
    codes: dict[str, _FunctionListing] = {}
    if not search.why_no_code:
        listing = disassemble(cubin)
        marked = function_bytes(image)
        has_marks = any(one.spill_instructions for one in image.functions)
        for live in count_live_registers(listing, is_selected):
            rows = listing.lines[live.first : live.first + len(live.counts)]
            own, graph = marked.get(live.function), block_graph(rows)
            spills = (own.spills if own else None) or (() if has_marks else None)
            loops = loop_costs(rows, graph, own.code, spills, image.arch) if own else ()
            codes[live.function] = _FunctionListing(live, rows, graph, spills, loops)
    return [
        _function(name, function, image.arch, kernels.get(function.name), codes.get(function.name), search)
        for function in image.functions
        if is_selected(function.name)
    ]


def _function(
    name: str,
    function: ImageFunction,
    arch: str,
    image: KernelImage | None,
    code: _FunctionListing | None,
    search: _FileQuestions,
) -> CodeFunction:
    static = own_shared_bytes(arch, image.static_shared_bytes if image else 0)
    asked, triton = search.asked, search.triton
    dynamic = triton.shared_bytes if asked.shared_bytes is None else asked.shared_bytes
    plain = instance_name(function.name)
    unknown = ["bytes spilled (count LDL and STL; the stack may also hold arrays)"]
    if function.shared_spill_bytes:
        unknown = [
            f"bytes spilled of {plain}: {function.shared_spill_bytes} bytes of shared memory hold spills"
        ]
    if search.why_no_code:
        unknown.append(f"live registers and opcodes: {search.why_no_code}")
    block, block_from, remark = _block_of(image, search) if function.is_kernel else (None, "", "")
    if function.is_kernel and block is None:
        unknown.append(f"threads of a block, so occupancy ({plain})")
    if function.is_kernel and dynamic is None:
        unknown.append("dynamic shared memory: occupancy is that without any")
    live = code.live if code else None
    if live and live.unknown_calls:
        unknown.append(f"{live.unknown_calls} calls of other files: live registers are too low ({plain})")
    accesses = None
    if code and image and block and search.are_followed:
        try:
            sizes = _shared_sizes(arch, static, dynamic) if search.with_swizzle else None
            accesses = code_accesses(image, code.rows, code.graph, block, sizes)
            unknown += [f"{words} ({plain})" for words in accesses.unknown_words]
        except NoModel as error:
            unknown.append(f"what accesses cost: {error} ({plain})")
    elif code and image and block:
        unknown.append("what accesses cost: the addresses of so much code are followed only with --lines")
    return CodeFunction(
        name,
        function.name,
        arch,
        function.registers,
        function.stack_bytes,
        static,
        dynamic,
        math.prod(block) if block else None,
        live,
        _opcodes(code.rows if code else ()),
        tuple(unknown),
        triton.tensor_columns or 0,
        is_kernel=function.is_kernel,
        spill_instructions=function.spill_instructions,
        shared_spill_bytes=function.shared_spill_bytes,
        block=block,
        block_from=block_from,
        remark=f"{plain}: {remark}" if remark else "",
        local=_local_accesses(code) if code else (),
        accesses=accesses,
        loops=code.loops if code else (),
    )


def _block_of(image: KernelImage | None, search: _FileQuestions) -> tuple[Grid | None, str, str]:
    """The block of a kernel, who says so, and why what was asked for is not taken."""
    stated, asked = image.block if image else None, search.asked.block
    if stated and stated.is_exact:
        remark = "--block is not taken: its code requires {},{},{}".format(*stated.sizes)
        return stated.sizes, ".reqntid", remark if asked and asked != stated.sizes else ""
    if asked and (not stated or math.prod(asked) <= stated.threads):
        return asked, "--block", ""
    if stated:
        remark = f"--block is not taken: its launch bounds are {stated.threads} threads" if asked else ""
        return stated.sizes, ".maxntid", remark
    if search.triton.threads:
        return (search.triton.threads, 1, 1), "num_warps", ""
    return None, "", ""


def _shared_sizes(arch: str, static: int, dynamic: int | None) -> tuple[int, int]:
    """Shared memory of a block with what the system takes: as far as it is known, and at most."""
    limits = find_architecture(arch)
    reserved, most = (limits.reserved_shared_bytes, limits.shared_bytes) if limits else (0, 0)
    known = static + (dynamic or 0) + reserved
    return known, known if dynamic is not None else max(known, most)


def _local_accesses(code: _FunctionListing) -> tuple[LocalAccesses, ...]:
    """Loads and stores of local memory and marked spills, by line and loop depth."""
    is_marked = code.spills is not None
    marked = frozenset(code.spills or ())
    groups: dict[tuple[int, FileLine | None], list[SassLine]] = {}
    for row, depth in zip(code.rows, code.graph.depths, strict=True):
        if base_opcode(row.opcode) in ("LDL", "STL") or row.offset in marked:
            groups.setdefault((depth, row.source), []).append(row)
    found = [
        LocalAccesses(
            source,
            depth,
            len(rows),
            sum(row.opcode.startswith("LD") for row in rows),
            sum(access_bytes(row.opcode) for row in rows),
            sum(row.offset in marked for row in rows) if is_marked else None,
        )
        for (depth, source), rows in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.loop_depth, -one.places)))


def _opcodes(lines: Sequence[SassLine]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in lines:
        if line.opcode and line.opcode != "NOP":
            base = base_opcode(line.opcode)
            counts[base] = counts.get(base, 0) + 1
    return dict(sorted(counts.items()))


def _of_report(path: Path, name: str, chosen: _Chosen) -> list[CodeFunction]:
    """Each kernel of a report once, with the launch's registers, threads and memory."""
    functions: dict[tuple[str, int | None, int | None], CodeFunction] = {}
    for launch in filter(chosen.has_launch, read_report(path).launches):
        function = _of_launch(path, name, launch)
        functions.setdefault((launch.demangled, function.threads, function.shared_bytes), function)
    return list(functions.values())


def _of_launch(path: Path, name: str, launch: Launch) -> CodeFunction:
    values = launch.values
    numbers = {
        key: values.number(f"launch__{key}")
        for key in (
            "registers_per_thread",
            "block_size",
            "shared_mem_per_block_static",
            "shared_mem_per_block_dynamic",
        )
    }
    registers, threads, static, dynamic = (
        None if number is None else int(number) for number in numbers.values()
    )
    major = values.number("device__attribute_compute_capability_major")
    minor = values.number("device__attribute_compute_capability_minor")
    known = major is not None and minor is not None
    limits = architecture_of(f"{major:.0f}.{minor:.0f}") if known else None
    listing = listing_of_launch(launch_detail(path, launch.ordinal))
    live = None
    unknown = ["bytes spilled (count LDL and STL; the stack may also hold arrays)"]
    if listing.has_text:
        candidates = count_live_registers(listing)
        live = max(candidates, key=lambda function: len(function.counts))
    else:
        unknown.append("the report has no machine code: no opcodes, no live registers")
    return CodeFunction(
        name,
        launch.mangled or launch.demangled,
        limits.name if limits else None,
        registers,
        None,
        None if dynamic is None else static,
        dynamic,
        threads,
        live,
        _opcodes(listing.lines) if listing.has_text else {},
        tuple(unknown),
        signature=launch.demangled if launch.mangled not in ("", launch.demangled) else None,
    )
