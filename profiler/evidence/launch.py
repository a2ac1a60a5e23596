"""What a report holds: its launches with their values and NVIDIA's rule results, and how it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from profiler.evidence.values import Values

_T = TypeVar("_T")
_MOST = 10_000  # multiprocessors, or devices: a larger number is a damaged one
_LINE_ENDS = re.compile("[\t-\r\x1c-\x1e\x85\u2028\u2029]+")
_ABI_TAG = re.compile(r"\[abi:[^\]]*\]")


@dataclass(frozen=True)
class RuleResult:
    """One result of one of NVIDIA's rules, in the report's own words."""

    identifier: str
    name: str
    section: str
    kind: str  # ok, optimization, warning or error
    title: str
    message: str
    speedup_pct: float | None = None  # NVIDIA's estimate; older reports carry none
    speedup_scope: str | None = None  # local or global
    focus_metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One execution of a kernel, as a report holds it.

    `base_name` is its identity; template arguments, grid and block are attributes.
    """

    function: str  # ncu's function name
    demangled: str
    mangled: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    stream: int | None
    nvtx: tuple[str, ...]  # push/pop ranges around the launch, outermost first
    ordinal: int  # place in the report, from 0
    values: Values
    opcodes: Mapping[str, float] = field(default_factory=dict)  # warp instructions executed, by opcode
    rules: tuple[RuleResult, ...] = ()
    # Metrics that the report has of it and of which nobody asked for a value; None: nobody knows which.
    unread: frozenset[str] | None = frozenset()
    device_column: int | None = None  # what a CSV says of its device; other reports have it as a metric

    @property
    def base_name(self) -> str:
        """The kernel's name without return type, template arguments, parameters and ABI tags."""
        if self.function.endswith("]") and self.demangled:
            # ncu takes an ABI tag for the function: of numba's `cudapy::add_1[abi:v1][abi:cw51](int)` it
            # names `cw51]`, the end that all kernels of a program share.
            return kernel_base_name(_ABI_TAG.sub("", self.demangled)).rpartition("::")[2]
        return kernel_base_name(self.function or self.demangled)

    @property
    def gpu(self) -> str | None:
        """The display name of the GPU that it ran on, by its device attributes; None where not collected."""
        return self.values.value("device__attribute_display_name").text or None

    @property
    def compute_capability(self) -> str | None:
        """The compute capability of that GPU, "9.0", from its device attributes; None where not collected."""
        major = self.values.number("device__attribute_compute_capability_major")
        minor = self.values.number("device__attribute_compute_capability_minor")
        return None if major is None or minor is None else f"{major:.0f}.{minor:.0f}"

    @property
    def multiprocessors(self) -> int | None:
        """How many multiprocessors that GPU has, fewer for an instance of MIG; None where not collected."""
        number = self.values.number("device__attribute_multiprocessor_count")
        return None if number is None or not 1 <= number <= _MOST else int(number)

    @property
    def device(self) -> int | None:
        """The index of that GPU among those of its process, from 0; None where not collected."""
        number = self.values.number("launch__device_id")
        return self.device_column if number is None or not 0 <= number <= _MOST else int(number)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a filter may mean: the base name, range/name, and the demangled name."""
        return self.base_name, "/".join((*self.nvtx, self.base_name)), self.demangled


@dataclass(frozen=True)
class Session:
    """What the report file says of its own making; None where it does not say."""

    ncu_version: str | None = None
    driver: str | None = None
    cuda: str | None = None
    created: datetime | None = None  # always UTC
    command_line: str | None = None
    clock_control: str | None = None  # base, boost, none: only when the command line says so
    cache_control: str | None = None
    replay_mode: str | None = None


@dataclass(frozen=True)
class Report:
    """One report file, read whole."""

    name: str  # the file's name as the user gave it
    sha256: str
    size_bytes: int
    form: str  # ncu-rep, csv-raw, csv-details or text-details
    session: Session
    launches: tuple[Launch, ...]
    warnings: tuple[str, ...] = ()  # what shows that the file may have changed since it was written
    path: Path | None = field(default=None, repr=False, compare=False)  # where it was read, absolute

    @property
    def gpus(self) -> tuple[str, ...]:
        """The display names of the GPUs that its launches ran on, in their order; empty where none says."""
        return tuple(dict.fromkeys(launch.gpu for launch in self.launches if launch.gpu))

    @property
    def gpu(self) -> str | None:
        """The display name of its GPU; None where its launches ran on several, or none says."""
        return only(self.gpus)

    @property
    def compute_capability(self) -> str | None:
        """The compute capability of its GPU, "9.0"; None where its launches have several, or none says."""
        return only(launch.compute_capability for launch in self.launches)


def only(values: Iterable[_T | None]) -> _T | None:
    """The only value but None; None where there is none, or several that differ."""
    distinct = {value for value in values if value is not None}
    return distinct.pop() if len(distinct) == 1 else None


def one_line(name: str) -> str:
    """A name with a space for every line end and tab in it: it is printed in lines that say other things."""
    return _LINE_ENDS.sub(" ", name)


@lru_cache(maxsize=4096)  # a history has few names, many times over
def kernel_base_name(name: str) -> str:
    """The kernel name without return type, template arguments and parameters.

    `void cutlass::Kernel<A<B>>(C)` and `cutlass::Kernel` give `cutlass::Kernel`; what stands inside the
    parameters falls away with them.
    """
    depth, characters = 0, []
    for character in name.replace("(anonymous namespace)", "{anonymous}"):
        if character == "<":
            depth += 1
        elif character == ">":
            depth = max(0, depth - 1)
        elif depth == 0:
            if character == "(":
                break
            characters.append(character)
    text = "".join(characters).strip()
    return (text.split(" ")[-1] or name.strip()).replace("{anonymous}", "(anonymous namespace)")


def place_of_most_time(kernels: Sequence[str], times_ns: Sequence[float | None]) -> int:
    """The place of the longest launch of the kernel whose launches take most time together.

    kernels: the kernel of each launch; times_ns: how long each takes, None where that is not known. Where no
    time is known it is the first. Raises ValueError for no launches.
    """
    total: dict[str, float] = {}
    for kernel, time in zip(kernels, times_ns, strict=True):
        total[kernel] = total.get(kernel, 0.0) + (time or 0.0)
    times = [-1.0 if time is None else time for time in times_ns]
    return max(range(len(kernels)), key=lambda at: (total[kernels[at]], times[at]))
