"""Proposes pairs of launches whose kernels have different names: what may be one kernel in two versions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from profiler.evidence.launch import Launch

# A kernel with at least this share of its executed instructions in common with another is the same code under
# another name; with less than the other share it does another job, whatever the names have in common.
SAME_OPCODES = 0.9
OTHER_OPCODES = 0.25

# Words in a kernel's name that tell how it works, not what it computes.
_VARIANTS = """base baseline basic blocked coalesced fast fused gmem improved looping naive new old opt
optimised optimized pad padded ref reference shared shuffle simple smem strided stripped tiled unroll unrolled
variant vec vector vectorised vectorized vectors warp"""
# Words that kernels of every purpose share.
_GENERIC = """backward bwd calculate calculation calculations compute cuda cudapy device element elementwise
forward func function fwd global gpu grid impl kernel kernels launch loop main native nvidia run test triton
void"""
VARIANT_WORDS, GENERIC_WORDS = frozenset(_VARIANTS.split()), frozenset(_GENERIC.split())
_BACKWARD = frozenset({"backward", "bwd", "dgrad", "grad", "wgrad"})
_VECTOR_TYPE = re.compile(r"(?:float|double|half)[234](?![0-9])")
# Words as camel case, underscores and digits separate them: nodeByPoint5, node_by_point_5.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Triton's old suffix of arguments: d divisible by 16, c a constant, e of another alignment (0d1d2d3c4de).
_TRITON_SUFFIX = re.compile(r"_0[dce]{0,2}(?:\d{1,3}[dce]{0,2})*$")
_SHORTEST_AFFIX = 6  # characters
_NEAR_COUNT = 0.1  # executed instructions of one kernel under two names
_VERSION_MARKS = frozenset({"v", "ver", "version", "rev", "r", "k"})  # before a number


class Proposal(NamedTuple):
    """Two launches that may be of one kernel."""

    a: Launch
    b: Launch
    by_name: bool  # the names differ only in versions, numbers and variants; False: nothing else was left


def propose_pairs(
    a: Sequence[Launch], b: Sequence[Launch], left_a: Sequence[Launch], left_b: Sequence[Launch]
) -> list[Proposal]:
    """Pairs among the launches of two sides that are left without a partner, ambiguous ones included.

    Only kernels that a single side has are proposed: a kernel that both have was not renamed. Grid and block
    must be known and equal. By name: the names are equal but for a version, a number or a word for a variant,
    and both launches stand at the same place of their report. By position: one launch a side is left in all,
    or equally many of one kernel, and names or executed instructions do not speak for two different kernels.
    """
    names_a, names_b = {launch.base_name for launch in a}, {launch.base_name for launch in b}
    candidates_a = {id(launch): launch for launch in left_a if launch.base_name not in names_b}
    candidates_b = {id(launch): launch for launch in left_b if launch.base_name not in names_a}
    proposals = [
        Proposal(x, y, True)
        for x, y in zip(a, b, strict=False)  # launches at one place; those of the longer report have none
        if id(x) in candidates_a and id(y) in candidates_b and _alike(x, y) and _have_one_stem(x, y)
    ]
    taken = {id(launch) for proposal in proposals for launch in proposal[:2]}
    alone_a, alone_b = ([launch for launch in left if id(launch) not in taken] for left in (left_a, left_b))
    if len(alone_a) == len(alone_b) and all(_are_of_one_kernel(alone) for alone in (alone_a, alone_b)):
        pairs = list(zip(alone_a, alone_b, strict=True))
        by_name = all(_have_one_stem(x, y) for x, y in pairs)
        are_candidates = all(
            id(x) in candidates_a and id(y) in candidates_b and _alike(x, y) for x, y in pairs
        )
        if are_candidates and (by_name or all(may_be_one_kernel(x, y) for x, y in pairs)):
            proposals += [Proposal(x, y, by_name) for x, y in pairs]
    return proposals


def renamed_kernels(
    a: Sequence[Launch], b: Sequence[Launch], left_a: Sequence[Launch], left_b: Sequence[Launch]
) -> list[tuple[list[Launch], list[Launch]]]:
    """The launches of kernels that were renamed together: those of A's name, those of B's.

    Of kernels that a single side has, each that answers to one of the other side alone: one name ends or
    begins with the other, they differ in their namespace or in the suffix by which Triton says which
    arguments are constant or divisible, grids and blocks are equal, and as many instructions were executed,
    give or take a tenth.
    """
    of_a, of_b = (
        _by_name(left, {launch.base_name for launch in other}) for left, other in ((left_a, b), (left_b, a))
    )
    found = [(x, y) for x in of_a for y in of_b if _may_be_renamed(of_a[x], of_b[y])]
    counts = Counter(side for x, y in found for side in (("a", x), ("b", y)))
    return [(of_a[x], of_b[y]) for x, y in found if counts["a", x] == counts["b", y] == 1]


def _by_name(left: Sequence[Launch], names_of_other: Collection[str]) -> dict[str, list[Launch]]:
    """The launches of each kernel that the other side does not have."""
    by_name: dict[str, list[Launch]] = {}
    for launch in left:
        if launch.base_name not in names_of_other:
            by_name.setdefault(launch.base_name, []).append(launch)
    return by_name


def _may_be_renamed(a: Sequence[Launch], b: Sequence[Launch]) -> bool:
    x, y = a[0], b[0]
    if None in (x.grid, x.block) or {(one.grid, one.block) for one in a} != {
        (one.grid, one.block) for one in b
    }:
        return False
    if not may_be_one_kernel(x, y):
        return False
    counts_a, counts_b = (sorted(filter(None, map(_instructions, side))) for side in (a, b))
    are_known = bool(counts_a and counts_b)
    if are_known and not all(
        abs(of_a - of_b) <= _NEAR_COUNT * min(of_a, of_b)
        for of_a, of_b in ((counts_a[0], counts_b[0]), (counts_a[-1], counts_b[-1]))
    ):
        return False
    plain_x, plain_y = (_TRITON_SUFFIX.sub("", one.base_name.rpartition("::")[2]) for one in (x, y))
    return plain_x == plain_y or (are_known and _is_affix(plain_x, plain_y))


def _is_affix(x: str, y: str) -> bool:
    """Whether the shorter of two names is the end or the beginning of the other, by whole words."""
    short, long = sorted((x, y), key=len)
    if len(short) < _SHORTEST_AFFIX or not _telling_words(short):
        return False
    return long.endswith(f"_{short}") or long.startswith(f"{short}_")


def _instructions(launch: Launch) -> float | None:
    names = ("smsp__inst_executed.sum", "sm__inst_executed.sum")
    return next((n for name in names if (n := launch.values.number(name)) is not None), None)


@lru_cache(maxsize=4096)
def name_stem(name: str) -> tuple[str, ...]:
    """The words of a kernel's name without versions, numbers, vector types and words for a variant.

    `rms_norm_kernel_float4` and `rms_norm_kernel_v2` have one stem, (rms, norm, kernel).
    """
    words = [word.lower() for word in _WORD.findall(_VECTOR_TYPE.sub("", name))]
    followers = [*words[1:], ""]
    return tuple(
        word
        for word, follower in zip(words, followers, strict=True)
        if not word.isdigit()
        and word not in VARIANT_WORDS
        and not (word in _VERSION_MARKS and follower.isdigit())
    )


def may_be_one_kernel(a: Launch, b: Launch) -> bool:
    """Whether nothing speaks for two different kernels, and something for one.

    The names have to share a word that not every kernel has, or the executed instructions to be almost the
    same. Instructions that have next to nothing in common, and a forward beside a backward pass, decide
    against it.
    """
    words_a, words_b = (_telling_words(launch.base_name) for launch in (a, b))
    if bool(_words(a.base_name) & _BACKWARD) != bool(_words(b.base_name) & _BACKWARD):
        return False
    shared = opcode_overlap(a.opcodes, b.opcodes)
    if shared is None:
        return bool(words_a & words_b)
    return shared >= SAME_OPCODES or (bool(words_a & words_b) and shared >= OTHER_OPCODES)


def opcode_overlap(a: Mapping[str, float], b: Mapping[str, float]) -> float | None:
    """The share of executed instructions that two opcode mixes have in common, 0 to 1; None without a mix."""
    total_a, total_b = sum(a.values()), sum(b.values())
    if not total_a or not total_b:
        return None
    return sum(min(a.get(opcode, 0.0) / total_a, count / total_b) for opcode, count in b.items())


def _alike(a: Launch, b: Launch) -> bool:
    """Whether grid and block are known and equal, and no NVTX ranges tell the launches apart."""
    if None in (a.grid, a.block) or (a.grid, a.block) != (b.grid, b.block):
        return False
    return a.nvtx == b.nvtx or not (a.nvtx and b.nvtx)


def _are_of_one_kernel(launches: Sequence[Launch]) -> bool:
    """Whether all are launches of one kernel, with one template, grid and block; False for no launch."""
    return len({(x.base_name, x.demangled, x.grid, x.block, x.nvtx) for x in launches}) == 1


def _have_one_stem(a: Launch, b: Launch) -> bool:
    return name_stem(a.base_name) == name_stem(b.base_name)


def _words(name: str) -> frozenset[str]:
    """The words of a name without its namespaces."""
    return frozenset(name_stem(name.rpartition("::")[2]))


def _telling_words(name: str) -> frozenset[str]:
    """The words of a name that say what the kernel computes; one or two letters say nothing."""
    return frozenset(word for word in _words(name) if len(word) > 2) - GENERIC_WORDS
