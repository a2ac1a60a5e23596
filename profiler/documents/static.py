"""What the compiler and the machine code say of each kernel function, as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.build.library import FailedBuild, why_not_compiled
from profiler.build.occupancy import NextBlock, next_block
from profiler.build.resources import FunctionResources, VersionResources, version_resources
from profiler.catalog.catalog import load_catalog
from profiler.catalog.sources import load_problem
from profiler.documents.blocks import Block, Fold, Heading, Line, Name, Notes, Table
from profiler.documents.code_accesses import swizzle_words
from profiler.documents.code_files import UNKNOWN, known_words
from profiler.documents.code_lines import FunctionLines, version_lines
from profiler.documents.document import Document
from profiler.emulator import cpu_check
from profiler.errors import Exit

_HEAD = ("version", "arch", "d", "regs", "spill", "stack", "shared", "occupancy", "limited by")
_OPCODES = ("HMMA", "FFMA", "MUFU.EX2", "LDSM", "LDGSTS", "LDS", "STS", "SHFL", "BAR")
_LOCAL = ("LDL", "STL")  # shown only where there are any


@dataclass(frozen=True, repr=False)
class StaticDocument(Document):
    """The resources of versions on their architectures, and what their budgets say."""

    examined: tuple[VersionResources | FailedBuild, ...]
    not_built: Mapping[str, str]  # why, by version
    lines: tuple[FunctionLines, ...] = ()  # where they were asked for

    title = "Static facts"
    columns = (
        "version",
        "state",
        "arch",
        "function",
        "role",
        "head_dim",
        "registers",
        "spill_bytes",
        "stack_bytes",
        "shared_bytes",
        "occupancy_pct",
        "limiter",
        "instructions",
        "code_bytes",
        "over_budget",
    )

    @property
    def versions(self) -> list[VersionResources]:
        """Those that compile."""
        return [version for version in self.examined if isinstance(version, VersionResources)]

    @property
    def failures(self) -> list[FailedBuild]:
        """Those that do not."""
        return [version for version in self.examined if isinstance(version, FailedBuild)]

    @property
    def functions(self) -> list[FunctionResources]:
        """Of all versions, in their order."""
        return [function for version in self.versions for function in version.functions]

    @property
    def near_blocks(self) -> list[tuple[FunctionResources, NextBlock]]:
        """The functions that lack little for one more block on an SM."""
        near = []
        for function in self.functions:
            following = following_block(function)
            if following is not None and following.is_near:
                near.append((function, following))
        return near

    @property
    def missing(self) -> list[str]:
        """What is not known and why, each once."""
        return list(dict.fromkeys(words for version in self.versions for words in version.missing))

    @property
    def sentences(self) -> Sequence[str]:
        """What is over its budget, does not compile, is not known, or was not built."""
        return [
            *(
                f"{function.version.id} {function.name} {function.arch}: {'; '.join(function.over_budget)}"
                for function in self.functions
                if function.over_budget
            ),
            *(
                f"{function.version.id} {function_label(function)} {function.arch}: {following.words}"
                for function, following in self.near_blocks
            ),
            *(failure.error for failure in self.failures),
            *self.missing,
            *(f"{version} is not built: {why}" for version, why in self.not_built.items()),
        ]

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a function and architecture, what to know of them, and where it was asked for by line.

        The lines of a function are folded; a terminal has them with `everything`.
        """
        yield Heading(self.title, 1)
        if functions := self.functions:
            codes = [function.code for function in functions if function.code]
            has_local = any(code.classes[opcode] for code in codes for opcode in _LOCAL)
            opcodes = (*_OPCODES, *(_LOCAL if has_local else ()))
            numbers = (2, 3, 4, 5, 6, 7, *range(9, 9 + len(opcodes)))
            rows = [_cells(function, opcodes) for function in functions]
            yield Table((*_HEAD, *opcodes, "over budget"), rows, right=numbers)
        yield Notes(self.sentences)
        for lines in self.lines:
            yield from _line_blocks(lines, everything)

    @property
    def exit_code(self) -> Exit:
        """1 for a good version over its budget, 2 for one that does not compile, 3 where nobody knows."""
        if self.failures:
            return Exit.UNUSABLE_INPUT
        good = [function for function in self.functions if function.version.state == "good"]
        if any(function.over_budget for function in good):
            return Exit.REGRESSION
        is_unknown = not self.examined or self.missing or any(function.unjudged for function in good)
        return Exit.UNJUDGED if is_unknown else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row a function and architecture; shared memory is that of the head dim that takes most."""
        return [
            (
                function.version.id,
                function.version.state,
                function.arch,
                function.name,
                function.role,
                function.head_dim,
                function.usage.registers,
                function.usage.spill_bytes,
                function.usage.stack_bytes,
                function.most_shared_bytes,
                function.occupancy.pct if function.occupancy else None,
                ", ".join(function.occupancy.limiters) if function.occupancy else None,
                function.code.instructions if function.code else None,
                function.code.code_bytes if function.code else None,
                "; ".join(function.over_budget) or None,
            )
            for function in self.functions
        ]

    def _content(self) -> dict[str, object]:
        """The functions with their opcodes, and the versions that do not compile."""
        return {
            "versions": [function_dict(function) for function in self.functions],
            "lines": [function.as_json() for function in self.lines],
            "failed": [{"version": failure.version, "error": failure.error} for failure in self.failures],
        }


def examine_versions(
    names: Sequence[str],
    *,
    catalog: Path | None = None,
    arches: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[str, str], None] | None = None,
    with_lines: bool = False,
    with_swizzle: bool = False,
) -> StaticDocument:
    """Build versions of a catalogue, all where none is named, and say what their functions cost.

    with_lines, with_swizzle: their machine code is run too, for what accesses of each line ask for and the
    smallest swizzle that clears them. Raises UnknownName, and CannotJudge where there is no nvcc.
    """
    loaded = load_catalog(catalog)
    versions = loaded.pick(names)
    examined = tuple(
        version_resources(
            loaded, versions, arches, launch_configs=cpu_check.launch_configs, progress=progress, jobs=jobs
        )
    )
    lines: list[FunctionLines] = []
    if with_lines or with_swizzle:
        problem = load_problem(loaded)
        for resources in examined:
            if isinstance(resources, VersionResources):
                for arch in resources.built.arches:
                    lines += version_lines(
                        resources.version, problem, resources.built, arch, with_swizzle=with_swizzle
                    )
    return StaticDocument(examined, why_not_compiled(versions, arches), tuple(lines))


def _cells(function: FunctionResources, opcodes: Sequence[str]) -> tuple[str, ...]:
    usage, occupancy, code = function.usage, function.occupancy, function.code
    shared = function.most_shared_bytes
    name = function.version.id if function.role == "main" else f"{function.version.id} {function.role}"
    return (
        Name(name if function.version.state == "good" else f"{name} ({function.version.state})"),
        function.arch,
        "any" if function.head_dim is None else str(function.head_dim),
        str(usage.registers),
        str(usage.spill_bytes),
        str(usage.stack_bytes),
        "unknown" if shared is None else f"{shared / 1024:.1f} KiB",
        "unknown" if occupancy is None else f"{occupancy.pct:.1f} %",
        "" if occupancy is None else ", ".join(occupancy.limiters),
        *("?" if code is None else str(code.classes[opcode]) for opcode in opcodes),
        "; ".join((*function.over_budget, *function.unjudged)),
    )


def _line_blocks(function: FunctionLines, everything: bool) -> Iterator[Block]:
    """The lines that have an access, or the most live registers; and the swizzle."""
    label = "" if function.head_dim is None else f" d={function.head_dim}"
    where = function.workload.label if function.workload else UNKNOWN
    run = f"not run: {function.not_run}" if function.not_run else f"run on {where}"
    yield Heading(f"{function.version}{label} {function.arch}: {function.live.words}; {run}")
    if function.swizzle:
        yield Line(f"swizzle: {swizzle_words(function.swizzle)}")
    most = function.live.highest_line
    shown = [x for x in function.lines if x.sectors or x.wavefronts or (x.file, x.line) == most]
    rows = [
        (
            line.place,
            str(line.live_registers),
            *map(known_words, (line.sectors, line.excess_sectors, line.wavefronts, line.conflicts)),
        )
        for line in shown
    ]
    table = Table(("line", "live regs", "sectors", "excess", "wavefronts", "conflicts"), rows, range(1, 6))
    summary = f"{len(rows)} source lines"
    yield Fold(summary, [table], "" if everything else f"{summary}: --lines")


def following_block(function: FunctionResources) -> NextBlock | None:
    """What one more block of a function on an SM asks for; None where nothing does, or it is not known."""
    if function.occupancy is None or function.threads is None:
        return None
    shared = max((size for size in function.shared_bytes.values() if size is not None), default=0)
    return next_block(function.arch, function.usage.registers, function.threads, shared)


def function_label(function: FunctionResources) -> str:
    """`fwd d=64`: a function of a version, told from its other instances."""
    return function.name if function.head_dim is None else f"{function.name} d={function.head_dim}"


def function_dict(function: FunctionResources) -> dict[str, object]:
    """One function on one architecture; null where a tool that would say is missing."""
    occupancy, following = function.occupancy, following_block(function)
    return {
        "version": function.version.id,
        "state": function.version.state,
        "evidence": "static",
        "arch": function.arch,
        "function": function.name,
        "role": function.role,
        "head_dim": function.head_dim,
        "registers": function.usage.registers,
        "spill_bytes": function.usage.spill_bytes,
        "stack_bytes": function.usage.stack_bytes,
        "shared_bytes": {str(head_dim): size for head_dim, size in function.shared_bytes.items()},
        "static_shared_bytes": function.usage.static_shared_bytes,
        "barriers": function.usage.barriers,
        "threads": function.threads,
        "opcodes": dict(function.code.classes) if function.code else None,
        "instructions": function.code.instructions if function.code else None,
        "code_bytes": function.code.code_bytes if function.code else None,
        "occupancy_pct": occupancy.pct if occupancy else None,
        "blocks_per_sm": occupancy.blocks if occupancy else None,
        "limiter": ", ".join(occupancy.limiters) if occupancy else None,
        "next_block": {**following._asdict(), "words": following.words} if following else None,
        "over_budget": list(function.over_budget),
        "unjudged": list(function.unjudged),
        "ptxas": function.usage.line,
    }
