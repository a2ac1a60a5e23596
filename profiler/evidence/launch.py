"""What a report holds: its launches with their values and NVIDIA's rule results, and how it was made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from profiler.evidence.values import Values

_LINE_ENDS = re.compile("[\t-\r\x1c-\x1e\x85\u2028\u2029]+")
_ABI_TAG = re.compile(r"\[abi:[^\]]*\]")


@dataclass(frozen=True)
class Rule:
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
    rules: tuple[Rule, ...] = ()

    @property
    def base_name(self) -> str:
        """The kernel's name without return type, template arguments, parameters and ABI tags."""
        if self.function.endswith("]") and self.demangled:
            # ncu takes an ABI tag for the function: of numba's `cudapy::add_1[abi:v1][abi:cw51](int)` it
            # names `cw51]`, the end that all kernels of a program share.
            return kernel_base_name(_ABI_TAG.sub("", self.demangled)).rpartition("::")[2]
        return kernel_base_name(self.function or self.demangled)

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
    form: str  # ncu-rep, csv-raw or csv-details
    session: Session
    launches: tuple[Launch, ...]
    warnings: tuple[str, ...] = ()  # what shows that the file may have changed since it was written
    path: Path | None = field(default=None, repr=False, compare=False)  # where it was read, absolute

    @property
    def gpu(self) -> str | None:
        """The GPU's display name, from the device attributes of the first launch that has one."""
        for launch in self.launches:
            text = launch.values.value("device__attribute_display_name").text
            if text:
                return text
        return None

    @property
    def compute_capability(self) -> str | None:
        """The GPU's compute capability, "9.0", from the device attributes of the first launch with them."""
        for launch in self.launches:
            major = launch.values.number("device__attribute_compute_capability_major")
            minor = launch.values.number("device__attribute_compute_capability_minor")
            if major is not None and minor is not None:
                return f"{major:.0f}.{minor:.0f}"
        return None


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
