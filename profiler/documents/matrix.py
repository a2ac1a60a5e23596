"""One source, several compilers, architectures, definitions and limits: the machine code of each build."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from profiler.build.kernel_names import instance_name
from profiler.build.toolkits import Toolkit, compile_cubin, find_toolkit
from profiler.bundles.scratch import scratch_folder
from profiler.compare.match_launches import name_filter
from profiler.documents.blocks import Block, Heading, Line, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import BuildFailed, CannotJudge, Exit, UnknownName
from profiler.model.loop_cost import LoopCost, hot_loop
from profiler.sass.binary_functions import BinaryFunction, read_functions_of
from profiler.sass.code_changes import ChangeKind, FunctionRows, compare_binaries
from profiler.sass.code_words import CodeReader

_SOURCES = (".cu", ".ptx")
_ARCH = re.compile(r"sm_\d+[af]?")
_MOST_REGISTERS = 255  # of a thread
_DEFINE = re.compile(r"[A-Za-z_]\w*(=.*)?", re.DOTALL)


@dataclass(frozen=True)
class MatrixBuild:
    """One way to build the source."""

    toolkit: Toolkit
    arch: str
    defines: tuple[str, ...]  # STAGES=2
    error: str = ""  # why there is no machine code
    max_registers: int | None = None  # of a thread, that the compiler may use; None: as it likes

    @property
    def label(self) -> str:
        """What tells it from the others of its architecture."""
        limit = () if self.max_registers is None else (f"-maxrregcount={self.max_registers}",)
        return " ".join((f"CUDA {self.toolkit.version}", *self.defines, *limit))


@dataclass(frozen=True)
class MatrixFunction:
    """One function as one build has it."""

    build: MatrixBuild
    function: BinaryFunction
    loop: LoopCost | None  # its hot loop; None where it has none, or is_read is False
    is_read: bool  # whether nvdisasm knows its instructions
    spills: int | None  # instructions that spill, all
    change: ChangeKind | None  # against the first compiler's build; None: this is the first, or it failed

    @property
    def name(self) -> str:
        """With the numbers of its template: v2d<64>."""
        return instance_name(self.function.name)

    @property
    def loop_spills(self) -> int:
        """Spills of the hot loop."""
        return self.loop.spills if self.loop else 0

    @property
    def order(self) -> tuple[int, bool, float, int, int]:
        """The cheapest build of a function comes first."""
        overhead = self.loop.overhead if self.loop else None
        cost = overhead if overhead is not None else 0.0
        return self.loop_spills, overhead is None, cost, self.spills or 0, self.function.registers or 0


@dataclass(frozen=True, repr=False)
class MatrixDocument(Document):
    """What each build of a source became."""

    source: str
    builds: tuple[MatrixBuild, ...]
    functions: tuple[MatrixFunction, ...]  # by architecture and name, in the order of the builds
    pick: bool = False

    columns = (
        *("function", "name", "arch", "compiler", "defines", "maxrregcount", "change", "registers"),
        *("stack_bytes", "shared_bytes", "spill_instructions", "loop_spill_instructions", "instructions"),
        *("loop_instructions", "loop_depth", "loop_cycles", "loop_unit", "loop_overhead", "is_picked"),
    )
    numbers_are = "static"  # those of loops are modelled

    @property
    def title(self) -> str:
        """The source."""
        return f"Builds of {self.source}"

    @property
    def failed(self) -> tuple[MatrixBuild, ...]:
        """Builds without machine code."""
        return tuple(build for build in self.builds if build.error)

    @property
    def exit_code(self) -> Exit:
        """3 where some build failed."""
        return Exit.UNJUDGED if self.failed else Exit.PASS

    @property
    def picked(self) -> tuple[MatrixFunction, ...]:
        """The cheapest build of each function for each architecture, the first of equal ones."""
        return tuple(min(group, key=lambda one: one.order) for group in self._groups())

    def _groups(self) -> list[list[MatrixFunction]]:
        groups: dict[tuple[str, str], list[MatrixFunction]] = {}
        for one in self.functions:
            groups.setdefault((one.function.arch, one.name), []).append(one)
        return list(groups.values())

    @property
    def sentences(self) -> Sequence[str]:
        """How many builds there are, the best of each function, and what failed."""
        made = len(self.builds) - len(self.failed)
        lines = [f"{made} of {len(self.builds)} builds compiled"]
        if self.pick:
            lines += [f"{one.name} ({one.function.arch}): {one.build.label}" for one in self.picked]
        return [*lines, *(f"{build.arch}, {build.label}: {build.error}" for build in self.failed)]

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each function of each build."""
        picked = self.picked
        return [
            (
                one.function.name,
                one.name,
                one.function.arch,
                one.build.toolkit.version,
                " ".join(one.build.defines),
                one.build.max_registers,
                one.change and one.change.value,
                one.function.registers,
                one.function.stack_bytes,
                one.function.shared_bytes,
                one.spills,
                one.loop.spills if one.loop else None,
                one.function.instructions,
                one.loop.instructions if one.loop else None,
                one.loop.depth if one.loop else None,
                one.loop.cycles if one.loop else None,
                (one.loop.unit or None) if one.loop else None,
                one.loop.overhead if one.loop else None,
                any(one is best for best in picked),
            )
            for one in self.functions
        ]

    def _content(self) -> dict[str, object]:
        return {
            "source": self.source,
            "evidence": {"functions": "static", "loops": "modelled"},
            "builds": [
                {
                    "toolkit": build.toolkit.name,
                    "compiler": build.toolkit.version,
                    "arch": build.arch,
                    "defines": build.defines,
                    "maxrregcount": build.max_registers,
                    "error": build.error or None,
                }
                for build in self.builds
            ],
            "functions": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table for each function and architecture, the cheapest build marked."""
        yield Heading(("Builds of ", Name(self.source)), 1)
        yield Line(self.sentences[0])
        best = self.picked
        for group in self._groups():
            yield Heading((Name(group[0].name), f", {group[0].function.arch}"))
            shown = [one for one in group if not self.pick or any(one is other for other in best)]
            heads = ("build", "changed", "registers", "spills", "in the loop", "instructions", "loop")
            rows = [_cells(one, is_best=any(one is other for other in best)) for one in shown]
            yield Table((*heads, "cycles per pass", "set by", "overhead"), rows, right=(2, 3, 4, 5, 6, 7, 9))
            if unknown := sorted({name for one in group if one.loop for name in one.loop.without_model}):
                yield Notes([f"cycles are not modelled where a loop uses {', '.join(unknown)}"])
        if self.functions:
            yield Notes(_NOTES)
        for build in self.failed:
            yield Line(build.error, f"{build.arch}, {build.label}")


_NOTES = (
    "changed: the machine code against the first compiler's, with the same definitions and limit",
    "loop: the one with most arithmetic; a loop inside another counts eight times",
    "cycles per pass: modelled, of one warp on a full SM, without waiting for memory",
    "overhead: these cycles over those of the loop's arithmetic; 1.0 is the best",
    "* cheapest: fewest spills in the loop, then the lowest overhead, then fewest spills and registers",
)


def build_matrix(
    source: str,
    *,
    nvcc: str = "installed",
    arch: str = "sm_90a",
    define: Collection[str] = (),
    maxrregcount: str = "",
    flag: Collection[str] = (),
    kernel: str | None = None,
    pick: bool = False,
) -> MatrixDocument:
    """What several compilers, architectures, definitions and limits make of one source, without running it.

    SOURCE is a file of CUDA C++ or PTX. Every combination is compiled. For each function the table has its
    registers, spills, the kind of change against the first compiler, and the modelled cost of its hot loop.
    Compilers come from wheels that are installed once, in a folder of their own. The wheels of CUDA 12 hold
    the assembler alone, so these take PTX.

    Exit codes: 0 every build compiled, 3 one did not.

    Arguments:
        source: a .cu or .ptx file
        nvcc: CUDA releases or folders of a toolkit, with commas: 13.0,13.5; the first is the baseline
        arch: architectures with commas: sm_90a,sm_100a
        define: a macro with its values: STAGES=2,3; again for another macro
        maxrregcount: the most registers of a thread, with commas: 64,96,128; 0 sets no limit
        flag: an option for the compiler, such as --flag=-O2; again for another
        pick: show only the cheapest build of each function

    Raises UnknownName for a source, release, architecture, limit or kernel that does not exist, CannotJudge
    where a compiler cannot be installed or no build compiles.

        profiler.build_matrix("attention.cu", nvcc="13.0,13.5", define=["STAGES=2,3"], pick=True)
    """
    path = _source(source)
    releases, arches = _listed(nvcc, "nvcc"), _listed(arch, "arch")
    for name in arches:
        if not _ARCH.fullmatch(name):
            raise UnknownName(f"{name!r} is no architecture: write it like sm_90a", option="--arch")
    combinations = _combinations(define)
    if path.suffix == ".ptx" and any(combinations):
        raise UnknownName("--define is for CUDA C++: PTX has no macros", option="--define")
    toolkits = [find_toolkit(name) for name in releases]
    wanted = list(product(arches, combinations, _limits(maxrregcount), toolkits))
    with scratch_folder() as folder, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        outputs = [folder / f"{number}.cubin" for number in range(len(wanted))]

        def make(number: int) -> MatrixBuild:
            target, defines, limit, toolkit = wanted[number]
            flags = (*flag, f"-maxrregcount={limit}") if limit else tuple(flag)
            error = ""
            try:
                compile_cubin(toolkit, path, target, defines, flags, outputs[number])
            except BuildFailed as failed:
                error = str(failed)
            return MatrixBuild(toolkit, target, defines, error, limit)

        builds = tuple(pool.map(make, range(len(wanted))))
        if all(build.error for build in builds):
            raise CannotJudge(f"no build of {path.name} compiles: {builds[0].error}")
        functions = _functions(builds, outputs, kernel)
    if not functions:
        raise UnknownName(f"{path.name} has no kernel {kernel!r}" if kernel else f"{path.name} has no kernel")
    order = {id(build): place for place, build in enumerate(builds)}
    names = list(dict.fromkeys(one.name for one in functions))
    functions.sort(
        key=lambda one: (
            arches.index(one.build.arch),
            names.index(one.name),
            order[id(one.build)],
        )
    )
    return MatrixDocument(path.name, builds, tuple(functions), pick)


def _source(source: str) -> Path:
    path = Path(source)
    if not path.is_file():
        raise UnknownName(f"{source} does not exist: name a file of CUDA C++ or PTX")
    if path.suffix not in _SOURCES:
        raise UnknownName(f"{source} is neither CUDA C++ (.cu) nor PTX (.ptx)")
    return path


def _listed(text: str, option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UnknownName(f"nothing is named with --{option}", option=f"--{option}")
    return names


def _limits(text: str) -> list[int | None]:
    """The limits of registers, None for no limit: "0,64" has both."""
    limits: list[int | None] = []
    for name in _listed(text, "maxrregcount") if text else ("0",):
        if not name.isdecimal() or int(name) > _MOST_REGISTERS:
            words = (
                f"{name!r} is no number of registers: a thread has up to {_MOST_REGISTERS}, 0 sets no limit"
            )
            raise UnknownName(words, option="--maxrregcount")
        limits.append(int(name) or None)
    return list(dict.fromkeys(limits))


def _combinations(define: Iterable[str]) -> list[tuple[str, ...]]:
    """Every choice of one value for each macro: ["STAGES=2,3", "FAST"] has two."""
    choices = []
    for text in define:
        if not _DEFINE.fullmatch(text):
            raise UnknownName(f"{text!r} is no macro: write NAME or NAME=VALUE,VALUE", option="--define")
        name, _, values = text.partition("=")
        choices.append([f"{name}={value}" for value in values.split(",")] if values else [name])
    return list(product(*choices))


def _functions(
    builds: Sequence[MatrixBuild], outputs: Sequence[Path], kernel: str | None
) -> list[MatrixFunction]:
    is_selected = name_filter(kernel) if kernel else None
    first: dict[tuple[object, ...], Path] = {}
    found = []
    for build, output in zip(builds, outputs, strict=True):
        if build.error:
            continue
        baseline = first.setdefault((build.arch, build.defines, build.max_registers), output)
        changes = {}
        if baseline != output:
            pairs = compare_binaries(baseline, output).changes
            changes = {one.pair.b.name: one.kind for one in pairs if one.pair.b}
        functions = [
            one
            for one in read_functions_of(output)
            if one.code.code and (is_selected is None or is_selected(one.name) or is_selected(one.short_name))
        ]
        codes = CodeReader(build.arch).rows(functions)
        for function, rows in zip(functions, codes, strict=True):
            read = FunctionRows(function, rows) if rows is not None else None
            marked = function.code.spills
            found.append(
                MatrixFunction(
                    build,
                    function,
                    hot_loop(read) if read else None,
                    read is not None,
                    len(marked) if marked is not None else read.counted.spills.total() if read else None,
                    changes.get(function.name),
                )
            )
    return found


def _cells(one: MatrixFunction, *, is_best: bool) -> tuple[str, ...]:
    loop = one.loop
    overhead = loop.overhead if loop else None
    return (
        f"{one.build.label}{' *' if is_best else ''}",
        one.change.value if one.change else "",
        _count(one.function.registers),
        _count(one.spills),
        _count(loop.spills if loop else None),
        _count(one.function.instructions),
        _count(loop.instructions if loop else None),
        f"{loop.cycles:,.0f}" if loop and loop.cycles is not None else "–",
        loop.unit if loop else "",
        f"{overhead:.2f}" if overhead is not None else "–",
    )


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
