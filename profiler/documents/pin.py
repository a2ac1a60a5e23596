"""What a pin wrote into the lock of a library, and what it changed of it, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.documents.asking import Subject
from profiler.documents.blocks import Block, Line, Name, Table
from profiler.documents.document import Document
from profiler.errors import CannotJudge
from profiler.gate.library import JudgedFunction, PinResult
from profiler.gate.library import pin_library as write_lock

_SHOWN = 20  # functions, unless everything is asked for


@dataclass(frozen=True, repr=False)
class PinDocument(Document):
    """The lock that was written; a row for each function that was pinned to something else before."""

    result: PinResult

    columns = ("function", "arch", "concept", "verdict", "what", "accepted")
    numbers_are = "static"

    @property
    def title(self) -> str:
        """The lock."""
        return f"Pinned in {self.result.lock}"

    @property
    def sentences(self) -> Sequence[str]:
        """How many functions the lock has, what changed of it, and of how many nobody could read the code."""
        result, changes = self.result, self.result.changes
        lines = [f"{len(result.functions):,} functions pinned in {result.lock}, {result.text_bytes:,} bytes"]
        if changes is not None:
            counts = {
                "as before": len(changes.same),
                "changed": len(changes.judged),
                "new": len(changes.new),
                "gone": len(changes.gone),
            }
            lines.append(", ".join(f"{count:,} {what}" for what, count in counts.items() if count))
        if unread := sum(one.loops is None for one in result.functions):
            lines.append(f"not pinned: spills and opcodes of {unread:,}, which nvdisasm cannot read")
        if unfollowed := result.unfollowed:
            why = "over 200 KB of code in a file, or the size of a block is not known"
            lines.append(f"not pinned: what accesses to memory cost, kernels: {unfollowed:,} ({why})")
        return lines

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each thing that differs from what was pinned."""
        accepted = {
            (one.name, one.arch, change.what): change.reason
            for one in self.result.functions
            for change in one.accepted
        }
        return [
            (
                one.b.name,
                one.b.arch,
                finding.concept,
                finding.verdict.value,
                finding.line,
                accepted.get((one.b.name, one.b.arch, finding.line)),
            )
            for one in self._judged
            for finding in one.findings
        ]

    @property
    def _judged(self) -> Sequence[JudgedFunction]:
        return self.result.changes.judged if self.result.changes else ()

    def _content(self) -> dict[str, object]:
        changes = self.result.changes
        return {
            "lock": str(self.result.lock),
            "functions": len(self.result.functions),
            "unread": sum(one.loops is None for one in self.result.functions),
            "unfollowed": self.result.unfollowed,
            "bytes": self.result.text_bytes,
            "before": changes
            and {
                "same": len(changes.same),
                "changed": len(changes.judged),
                "new": [one.name for one in changes.new],
                "gone": [one.name for one in changes.gone],
            },
            "changes": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The counts, then what is pinned to something else."""
        yield from map(Line, self.sentences)
        rows = self.rows()
        shown = rows if everything else rows[:_SHOWN]
        if shown:
            cells = [
                (Name(name), str(arch), str(verdict), str(line), str(reason or ""))
                for name, arch, _, verdict, line, reason in shown
            ]
            yield Table(("function", "arch", "verdict", "what", "accepted because"), cells)
        if rest := len(rows) - len(shown):
            yield Line(f"and {rest:,} more: --all")


def pin_library(
    library: Subject,
    *,
    lock: Path | None = None,
    kernel: str | None = None,
    reason: str | None = None,
    arch: str | None = None,
) -> PinDocument:
    """Write the lock of a library: what each kernel is, for `profiler gate LIB` to hold later builds against.

    LIB is a cubin, object, library, fat binary, wheel, or a folder of these. The lock is a text file for your
    repository: a line for each function and architecture with its registers, stack, shared memory, spills and
    opcodes by how many loops they are in, and a hash of its code; of files of at most 200 KB also what
    accesses to memory cost in excess. It is the same on every machine.

    `pin LIB --kernel NAME --reason WHY` accepts what became of some kernels: the others stay as they are
    pinned. The reason stays in the lock, and the gate lists it, until the code of the kernel changes.

    Exit codes: 0, 2 for input that cannot be read, 3 where the file holds PTX alone or nvdisasm is missing.

    Arguments:
        library: the build that is as it should be
        lock: the file that is written (default: kernels.lock in the working folder)
        reason: why what got worse may be so
        arch: only this architecture, such as sm_90a

    Raises BuildFailed for a file that is damaged or holds no machine code, CannotJudge where it holds PTX
    alone or nvdisasm is missing, UnknownName for a file or kernel that is not there, ProfilerError where the
    lock cannot be written.

        profiler.pin("build/libattention.so").sentences
    """
    if not isinstance(library, str):
        raise CannotJudge(f"a file or folder of machine code is needed, not {type(library).__name__}")
    return PinDocument(write_lock(Path(library), lock=lock, arch=arch, kernel=kernel, reason=reason))
