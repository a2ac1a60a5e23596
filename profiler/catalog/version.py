"""What a version is: one kernel of a lineage, its budget, and the figures that others gave for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from profiler.evidence.gpu_arch import ARCH_PATTERN, ARCHITECTURES

VERSION_STATES = ("good", "rejected", "baseline", "planned")
# What can catch a rejected version: numbers out of tolerance, or the first words of a defect's kind.
CAUGHT_BY = (
    "numbers",
    "race",
    "uninitialised",
    "out-of-bounds-shared",
    "out-of-bounds-global",
    "cp.async-not-waited",
    "cp.async-left-pending",
    "async-not-waited",
    "async-left-pending",
    "proxy-fence-missing",
    "wgmma-fence-missing",
    "wgmma-not-waited",
    "mbarrier-misuse",
    "expect-tx-mismatch",
    "peer-not-started",
    "peer-exited",
    "barrier-divergence",
    "deadlock",
    "misaligned",
    "misuse",
    "over-budget",
    "launch-refused",
    "crash",
    "timeout",
)
_DEFAULT_ROWS = [row for row in ARCHITECTURES.values() if row.default_target]
DEFAULT_ARCHES = tuple(row.default_target for row in _DEFAULT_ROWS)  # sm_80, sm_89, sm_90a
# What a block may opt in to on each of them: 99 KiB, on sm_89.
DEFAULT_SHARED_BYTES = min(row.block_shared_bytes for row in _DEFAULT_ROWS)


@dataclass(frozen=True)
class Budget:
    """What a version may cost at most, each kernel function on each architecture; None is not judged."""

    registers: int | Mapping[int, int] | None = None  # a thread; by head dim where the limits differ
    shared_bytes: int | None = DEFAULT_SHARED_BYTES  # static and dynamic, a block
    spill_bytes: int | None = 0
    stack_bytes: int | None = None
    serialized_wgmma: int | None = 0  # warnings of ptxas that products of a warpgroup run one after another
    # Of a block. ptxas counts all 16 where one's number is not known when compiling: what is then in use, and
    # whether two of them are one, nobody can tell from the code.
    barriers: int | None = 15

    def limits(self, head_dim: int | None) -> dict[str, int | None]:
        """The limit of each fact for a kernel function of one head dim; None for one that serves all."""
        registers = self.registers
        if isinstance(registers, Mapping):
            registers = max(registers.values()) if head_dim is None else registers.get(head_dim)
        return {
            "registers": registers,
            "shared_bytes": self.shared_bytes,
            "spill_bytes": self.spill_bytes,
            "stack_bytes": self.stack_bytes,
            "serialized_wgmma": self.serialized_wgmma,
            "barriers": self.barriers,
        }


@dataclass(frozen=True)
class Claim:
    """A figure that somebody else measured or aims at: shown beside ours, always labelled, never judged."""

    fact: str  # latency, registers, shared memory, max error, spills
    value: float
    unit: str  # base unit: ns, byte, "" for a count
    source: str  # whose figure it is
    gpu: str
    high: float | None = None  # set where the figure is a range from `value`
    workload: str | None = None  # its label; None: nobody said
    kind: str = "measured"  # or goal
    note: str = ""


@dataclass(frozen=True)
class Version:
    """One kernel of the lineage: a source file and flags, or a Python callable."""

    id: str
    family: str
    parent: str | None
    technique: str
    state: str  # good, rejected, baseline or planned
    source: Path | None = None  # the .cu file
    callable: str | None = None  # module:function or file.py:function, called with Case.operands
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()  # the folders of the -I flags, its own and the catalogue's, resolved
    dtypes: tuple[str, ...] = ("fp16",)
    head_dims: tuple[int, ...] = (64, 128)
    arches: tuple[str, ...] = DEFAULT_ARCHES
    reason: str = ""  # why it was rejected, or what a planned version waits for
    caught_by: tuple[str, ...] = ()  # any one of these must catch a rejected version
    budget: Budget = Budget()
    claims: tuple[Claim, ...] = ()
    stages: tuple[str, ...] = ()  # the stages of the problem that it can be built to stop after
    roles: Mapping[str, str] = field(default_factory=dict)  # by kernel function, where it has several
    # Registers a thread of each warpgroup of a block, once all have run their setmaxnreg; () where none does.
    warpgroup_registers: tuple[int, ...] = ()
    # Sizes of more workloads that it is checked on: where its launcher chooses by size, those of the problem
    # may all take one way.
    check: tuple[Mapping[str, int | str | bool], ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype it is checked and measured in."""
        return self.dtypes[0]

    @property
    def buildable(self) -> bool:
        """Whether there is a source to compile now."""
        return self.source is not None and self.state != "planned"

    @property
    def why_not_built(self) -> str:
        """Why there is nothing to compile: `planned: needs a GPU`, `a Python callable`; "" where there is."""
        if self.buildable:
            return ""
        return f"planned: {self.reason}" if self.callable is None else "a Python callable"

    def supports(self, arch: str) -> bool:
        """Whether it may be compiled for an architecture: a listed one, or newer than a plain one of these.

        An architecture with a suffix (sm_90a) has instructions of its own and stands for itself alone.
        """
        if arch in self.arches:
            return True
        listed = (ARCH_PATTERN.fullmatch(name) for name in self.arches)
        plain_numbers = [int(match[1]) for match in listed if match and not match[2]]
        match = ARCH_PATTERN.fullmatch(arch)
        return match is not None and any(number <= int(match[1]) for number in plain_numbers)
