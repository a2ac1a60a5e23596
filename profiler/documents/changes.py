"""What changed in the machine code between two binaries, function by function, as a document."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from profiler.build.code_images import CODE_FILES
from profiler.build.revisions import build_revision
from profiler.bundles.scratch import scratch_folder
from profiler.compare.match_launches import name_filter
from profiler.documents.asking import Subject
from profiler.documents.blocks import Block, Fold, Heading, Line, Name, Notes, Table
from profiler.documents.changed_code import ChangedCode, read_changed_code
from profiler.documents.document import Document
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import arch_number
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence, Value
from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.code_changes import (
    ChangeKind,
    CodeChanges,
    CountChange,
    FunctionChange,
    compare_binaries,
    compare_listings,
)

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.index import Store

_SHOWN = 20  # functions, unless everything is asked for
_COUNTS_SHOWN = 3  # of one function
_MEANINGS = {
    ChangeKind.NOT_READ: "nvdisasm does not know some instruction",
    ChangeKind.NEW: "only in the new one",
    ChangeKind.GONE: "only in the old one",
    ChangeKind.SPILLS: "more or fewer instructions that spill registers",
    ChangeKind.MMA: "other matrix instructions",
    ChangeKind.UNROLL: "a loop does another number of steps at a time",
    ChangeKind.LOOPS: "other loops",
    ChangeKind.MEMORY_WIDTH: "accesses of another width",
    ChangeKind.BARRIERS: "other barriers, fences or waits, or an access on the other side of one",
    ChangeKind.OPCODES: "other instructions",
    ChangeKind.CONSTANTS: "the same instructions with other numbers",
    ChangeKind.OPERANDS: "the same instructions on other values, or reading them otherwise, as -R1",
    ChangeKind.RESOURCES: "the same code; other registers, stack, memory, parameters, bounds or clusters",
    ChangeKind.REORDERED: "the same instructions on the same values in another order",
    ChangeKind.REGISTERS: "only other numbers of registers",
    ChangeKind.RESCHEDULED: "only other waits, stalls and hints of the scheduler, or padding",
    ChangeKind.RENAMED: "only another name",
    ChangeKind.SAME: "no difference",
}


class StoredTime(NamedTuple):
    """The newest measured time of a version with a kernel that changed."""

    kernel: str  # its plain name
    family: str
    version: str
    workload: str | None
    gpu: str | None
    time: Value  # of its longest launch


@dataclass(frozen=True, repr=False)
class ChangesDocument(Document):
    """The functions of two binaries, what concerns most first."""

    changes: CodeChanges
    allowed: ChangeKind = ChangeKind.SAME  # changes that concern no more than this one pass
    top: int | None = None
    code: tuple[ChangedCode, ...] = ()  # of the functions whose code is asked for
    notes: tuple[str, ...] = ()  # where code of versions and runs comes from, and what it lacks
    results: tuple[StoredTime, ...] = ()  # of kernels that changed, where they are asked for

    columns = (
        *("function", "name", "arch", "file", "kind", "kinds", "depth", "allowed"),
        *("registers_old", "registers", "stack_bytes_old", "stack_bytes", "instructions_old", "instructions"),
    )
    numbers_are = "static"

    @property
    def title(self) -> str:
        """The two binaries."""
        return f"{self.changes.b} against {self.changes.a}"

    @property
    def exit_code(self) -> Exit:
        """1 where something changed that is not allowed, 3 where only what could not be read remains."""
        kinds = {change.kind for change in self.changes.changes if not self.is_allowed(change)}
        if kinds - {ChangeKind.NOT_READ}:
            return Exit.REGRESSION
        return Exit.UNJUDGED if kinds else Exit.PASS

    def is_allowed(self, change: FunctionChange) -> bool:
        """Whether it is no more than what may change."""
        return change.kind.rank >= self.allowed.rank

    @property
    def sentences(self) -> Sequence[str]:
        """How many functions changed, then each that did."""
        total, changed = len(self.changes.changes), self.changes.changed
        first = (
            f"{len(changed):,} of {total:,} functions changed"
            if changed
            else f"{total:,} functions, none changed"
        )
        return [first, *(_sentence(change) for change in changed)]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a function; None on the side that lacks it."""
        return [self._row(change) for change in self.changes.changes]

    def _row(self, change: FunctionChange) -> tuple[object, ...]:
        either, a, b = change.pair.either, change.pair.a, change.pair.b
        return (
            either.name,
            either.short_name,
            either.arch,
            either.file or None,
            change.kind.value,
            ", ".join(change.kinds),
            change.depth,
            self.is_allowed(change),
            a and a.registers,
            b and b.registers,
            a and a.stack_bytes,
            b and b.stack_bytes,
            a and a.instructions,
            b and b.instructions,
        )

    def _content(self) -> dict[str, object]:
        """The counts of all functions, and every function that changed."""
        return {
            "old": self.changes.a,
            "new": self.changes.b,
            "evidence": "static",
            "allowed": None if self.allowed is ChangeKind.SAME else self.allowed.value,
            "functions": len(self.changes.changes),
            "kinds": {kind.value: count for kind, count in self.changes.counts.items()},
            "changes": [self._change_dict(change) for change in self.changes.changed],
            **({"code": [one.as_json() for one in self.code]} if self.code else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
            **(
                {"results": [one._asdict() | {"time": formatting.as_json(one.time)} for one in self.results]}
                if self.results
                else {}
            ),
        }

    def _change_dict(self, change: FunctionChange) -> dict[str, object]:
        either, a, b = change.pair.either, change.pair.a, change.pair.b
        return {
            "function": either.name,
            "old_function": a.name if a and a.name != either.name else None,
            "arch": either.arch,
            "file": either.file or None,
            "is_kernel": either.is_kernel,
            "kind": change.kind.value,
            "kinds": [kind.value for kind in change.kinds],
            "depth": change.depth,
            "is_allowed": self.is_allowed(change),
            "old": _facts(a),
            "new": _facts(b),
            "counts": [
                {"kind": one.kind.value, "what": one.what, "depth": one.depth, "old": one.a, "new": one.b}
                for one in change.counts
            ],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """How many of each kind, then the functions that changed, what concerns most first."""
        yield Heading((Name(self.changes.b), " against ", Name(self.changes.a)), 1)
        yield Line(self.sentences[0])
        kinds = [(kind.value, f"{count:,}", _MEANINGS[kind]) for kind, count in self.changes.counts.items()]
        yield Table(("kind", "functions", ""), kinds, right=(1,))
        changed = self.changes.changed
        groups = list(_grouped(changed))
        shown = groups if everything else groups[: self.top or _SHOWN]
        if shown:
            yield Heading("What changed")
            yield Table(
                (
                    "function",
                    "kind",
                    "depth",
                    "functions",
                    "architectures",
                    "registers",
                    "instructions",
                    "what",
                ),
                list(map(_cells, shown)),
                right=(2, 3),
            )
        if rest := len(groups) - len(shown):
            yield Line(f"and {rest:,} more: --all")
        if self.allowed is not ChangeKind.SAME and changed:
            passed = sum(map(self.is_allowed, changed))
            yield Line(f"{passed:,} of them allowed: {self.allowed.value}, or less")
        twice = {group[0].pair.either.short_name: group[0].kinds for group in shown if group[0].kinds[1:]}
        if twice:
            rows = [(Name(name), ", ".join(kinds)) for name, kinds in twice.items()]
            yield Fold("every kind of change", [Table(("function", "kinds"), rows)], "every kind: --json")
        for one in self.code:
            yield from one.blocks(everything=everything)
        if self.results:
            yield Heading("Stored results of these kernels")
            times = self.results if everything else self.results[: self.top or _SHOWN]
            cells: list[tuple[str | Name, ...]] = [
                (
                    Name(one.kernel),
                    f"{one.family}/{one.version}",
                    one.workload or "–",
                    one.gpu or "–",
                    str(formatting.quantity(one.time)),
                )
                for one in times
            ]
            yield Table(("kernel", "version", "workload", "GPU", "time"), cells, right=(4,))
            if rest := len(self.results) - len(times):
                yield Line(f"and {rest:,} more: --all")
        if self.notes:
            yield Notes(self.notes)


def code_changes(
    old: Subject,
    new: Subject,
    *,
    kernel: str | None = None,
    arch: str | None = None,
    allow: Literal["resources", "reordered", "registers", "rescheduled", "renamed"] | None = None,
    build: str | None = None,
    output: str | None = None,
    code: int | None = None,
    results: bool = False,
    top: int | None = None,
    store_opener: StoreOpener | None = None,
) -> ChangesDocument:
    """What changed in the machine code between two builds, without running it.

    OLD and NEW are cubins, objects, libraries, fat binaries, wheels, or folders of these; with --build they
    are revisions of this git repository, which are checked out elsewhere and built. Versions, runs and
    reports are compared by the text of the code that they keep. Every function of every architecture is
    compared and labelled with its most important change: spills, matrix instructions, unrolled or other
    loops, widths of accesses, barriers, opcodes, constants, operands, resources, order, numbers of registers,
    schedule, name. The depth is the number of loops around the deepest change; none is said of resources,
    order, registers, schedule and name.

    "same", "rescheduled" and "renamed" follow from the bytes; "registers" and "reordered" from which
    instruction computed each value that is read.

    Exit codes: 0 no change, or only allowed ones, 1 other changes, 3 no other changes, but something could
    not be read.

    Arguments:
        old: the build that is the baseline
        new: the build that is compared with it
        arch: only this architecture, such as sm_90a
        allow: changes of this kind, and of all less important kinds, pass
        build: the shell command that builds a revision, such as "make lib"; it runs in its checkout
        output: with --build: the file or folder that it makes, as seen from the checkout
        code: also show the machine code of the first N functions that changed: both sides aligned, their
          loops marked, and the modelled cost of the hot loop
        results: also list the newest measured times of the kernels that changed, from the data folder
        top: show only N functions

    Raises BuildFailed for a file that is damaged or holds no machine code, CannotJudge where it holds PTX
    alone or nvdisasm is missing, UnknownName for a file that is not there or a kernel that neither has.

        profiler.code_changes("old.so", "new.so").changes.counts
    """
    is_selected = name_filter(kernel) if kernel else None
    if (build is None) is not (output is None):
        raise UnknownName("build and output belong together: the command, and what it makes")
    if build is None and store_opener is not None and (names := _stored(old, new)):
        if code:
            raise UnknownName(
                f"--code needs two files: `profiler sass {names[0]} {names[1]}` aligns this code"
            )
        document = _stored_changes(names, arch, kernel, store_opener)
        times = _stored_times(document.changes, store_opener()) if results else ()
        return replace(document, allowed=ChangeKind(allow or "same"), top=top, results=times)
    if build is None or output is None:
        changes = compare_binaries(_path(old), _path(new), arch=arch, is_selected=is_selected)
    else:
        with scratch_folder() as folder:
            made = [
                build_revision(revision, build, output, folder, number)
                for number, revision in enumerate((str(old), str(new)))
            ]
            changes = compare_binaries(*made, arch=arch, is_selected=is_selected)
        changes = replace(changes, a=str(old), b=str(new))
    shown = read_changed_code(changes.changed, code or 0)
    allowed = ChangeKind(allow or "same")
    times = _stored_times(changes, store_opener()) if results and store_opener else ()
    return ChangesDocument(changes, allowed, top, shown, results=times)


def _stored(old: Subject, new: Subject) -> tuple[str, str] | None:
    """The names, where one of them is no path, or that of a report."""
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    is_path = [os.path.exists(name) and ".ncu-rep" not in name for name in (old, new)]
    return None if all(is_path) else (old, new)


def _stored_changes(
    names: tuple[str, str], arch: str | None, kernel: str | None, store_opener: StoreOpener
) -> ChangesDocument:
    """The changes of code that runs and reports keep as text, or of a version that is built here."""
    for name in names:
        if Path(name).suffix in (*CODE_FILES, ".whl"):
            _path(name)
    # Here: two files of machine code do not need it.
    from profiler.compare.resolve_code import CodeChoice, resolve_code
    from profiler.documents.sass import NO_TEXT

    sides = resolve_code(names, CodeChoice(kernel=kernel, arch=arch), store_opener)
    arches = []
    for name, side in zip(names, sides, strict=True):
        if not side.listing.has_text:
            raise CannotJudge(f"{name}: {NO_TEXT}")
        capability = (side.launch and side.launch.compute_capability) or ""
        arches.append(side.origin.arch or f"sm_{capability.replace('.', '')}")
    if len({arch.rstrip("af") for arch in arches}) > 1:
        raise CannotJudge(f"{names[0]} is code for {arches[0]}, {names[1]} for {arches[1]}")
    changes = compare_listings(sides[0].listing, sides[1].listing, arches[0])
    notes = [
        f"{name}: {words}" for name, side in zip(names, sides, strict=True) if (words := side.origin.words)
    ]
    notes.append("only the text of the code is compared: not waits, stalls and resources")
    return ChangesDocument(CodeChanges(*names, changes), notes=tuple(notes))


def _stored_times(changes: CodeChanges, store: Store) -> tuple[StoredTime, ...]:
    """The newest measured launches of the kernels that changed, the longest first."""
    names = {one.pair.either.short_name for one in changes.changed if one.pair.either.is_kernel}
    longest: dict[tuple[str, str, str, str | None, str | None], Value] = {}
    for family, kernel in store.kernels():
        if kernel not in names:
            continue
        for row in store.results(
            family=family, kernel=f"{kernel}*", evidence=Evidence.MEASURED, kind="launch"
        ):
            if row.base_name == kernel:
                place = (kernel, family, row.version, row.workload, row.gpu)
                known = longest.setdefault(place, row.duration_ns)
                longest[place] = max(known, row.duration_ns, key=lambda time: time.number or 0)
    found = [StoredTime(*place, time) for place, time in longest.items()]
    return tuple(sorted(found, key=lambda one: -(one.time.number or 0)))


def _path(subject: Subject) -> Path:
    if not isinstance(subject, str):
        raise TypeError(f"a file or folder of machine code is needed, not {type(subject).__name__}")
    if not os.path.exists(subject):
        raise UnknownName(f"{subject} does not exist: name a cubin, library, object, wheel or folder")
    return Path(subject)


def _facts(function: BinaryFunction | None) -> dict[str, object] | None:
    if function is None:
        return None
    return {
        "registers": function.registers,
        "stack_bytes": function.stack_bytes,
        "shared_bytes": function.shared_bytes,
        "shared_spill_bytes": function.code.shared_spill_bytes,
        "spill_instructions": None if function.code.spills is None else len(function.code.spills),
        "max_threads": function.max_threads,
        "cluster": list(function.code.cluster) or None,
        "instructions": function.instructions,
    }


def _sentence(change: FunctionChange) -> str:
    either = change.pair.either
    depth = f" in {change.depth} loops" if change.depth else ""
    counts = f": {_counts(change)}" if change.counts else ""
    return f"{either.short_name} ({either.arch}): {change.kind.value}{depth}{counts}"


def _grouped(changes: Sequence[FunctionChange]) -> Iterator[list[FunctionChange]]:
    """The functions of one plain name and kind together, in the order of the first of each."""
    groups: dict[tuple[str, ChangeKind], list[FunctionChange]] = {}
    for change in changes:
        groups.setdefault((change.pair.either.short_name, change.kind), []).append(change)
    yield from groups.values()


def _cells(group: Sequence[FunctionChange]) -> tuple[str | Name, ...]:
    """A row for functions of one name; … stands where what is said of the first is not so of all."""
    change = group[0]
    either, a, b = change.pair.either, change.pair.a, change.pair.b
    more = ", …" if len({other.pair.code_bytes for other in group}) > 1 else ""
    depths = [other.depth for other in group if other.depth is not None]
    registers = {_registers(other) for other in group}
    return (
        Name(either.short_name),
        change.kind.value,
        str(max(depths)) if depths else "–",
        f"{len(group):,}",
        brief_list(sorted({other.pair.either.arch for other in group}, key=arch_number)),
        f"{_registers(change)}{'' if len(registers) == 1 else ', …'}",
        f"{_from_to(a.instructions if a else None, b.instructions if b else None)}{more}",
        _counts(change),
    )


def _registers(change: FunctionChange) -> str:
    a, b = change.pair.a, change.pair.b
    return _from_to(a.registers if a else None, b.registers if b else None)


def _from_to(a: int | None, b: int | None) -> str:
    if a == b:
        return "–" if a is None else f"{a:,}"
    return " → ".join("–" if one is None else f"{one:,}" for one in (a, b))


def _counts(change: FunctionChange) -> str:
    own = [one for one in change.counts if one.kind is change.kind]
    own.sort(key=lambda one: (-one.depth, -abs(one.b - one.a)))
    words = ", ".join(map(_count_words, own[:_COUNTS_SHOWN]))
    return f"{words}, …" if len(own) > _COUNTS_SHOWN else words


def _count_words(change: CountChange) -> str:
    return f"{change.what} {change.a} → {change.b}"
