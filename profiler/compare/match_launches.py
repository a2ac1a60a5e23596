"""Matches the launches of two sides: by declared pairs, by name, and by what may be proposed without it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from profiler.compare.kernel_pairs import Captures, KernelPair, captures
from profiler.compare.propose_pairs import SAME_OPCODES, opcode_overlap, propose_pairs
from profiler.errors import UnknownName
from profiler.evidence import BadPattern, Launch, compile_expression, compile_wildcards

Group = tuple[str, tuple[str, ...]]  # base name, NVTX path

# A function that a template is given: a lambda, as compilers number them within the function around it, or a
# functor by the endings that are usual for its name.
_FUNCTION = re.compile(
    r"(?:\w+(?:\([^()]*\))?::)?[\[{]lambda\([^\]}]*[\]}](?:#\d+)?|\w*(?:[Ff]unctor\w*|Ops?|Func|Fn|_op|_fn|_func)\b"
)


class BadKernelPattern(UnknownName):
    """A kernel filter that cannot be used; the text names the option, for which a page has a field."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"--kernel {pattern}: {reason}", option="--kernel")
        self.pattern, self.reason = pattern, reason


@dataclass(frozen=True)
class AmbiguousLaunches:
    """Launches of one kernel on both sides that no rule can pair; `why` says what is missing."""

    base_name: str
    a: tuple[Launch, ...]
    b: tuple[Launch, ...]
    why: str


class PairedBy(StrEnum):
    """What makes two launches a pair."""

    NAME = "name"
    TEMPLATE = "template"  # proposed: equal names, but the templates name other functions
    DECLARED = "declared"  # somebody said that the two names are one kernel
    SIMILAR_NAME = "similar name"  # proposed: the names differ in a version, a number or a variant
    POSITION = "position"  # proposed: nothing else was left on either side

    @property
    def words(self) -> str:
        """How the launches were paired, for a reader; "" for equal names, which need no words."""
        return _PAIRED_WORDS[self]

    @property
    def is_proposed(self) -> bool:
        """Whether nobody said that the two are one kernel."""
        return self in (PairedBy.TEMPLATE, PairedBy.SIMILAR_NAME, PairedBy.POSITION)

    @property
    def decides(self) -> bool:
        """Whether it is enough for a gate to pass or to fail by."""
        return self not in (PairedBy.TEMPLATE, PairedBy.POSITION)


_PAIRED_WORDS = {
    PairedBy.NAME: "",
    PairedBy.TEMPLATE: "paired by name, but their templates name different functions",
    PairedBy.DECLARED: "paired as declared",
    PairedBy.SIMILAR_NAME: "paired by similar name, names differ",
    PairedBy.POSITION: "paired by position, names differ",
}


class LaunchPair(NamedTuple):
    """A launch of A, its partner in B, and what makes them a pair."""

    a: Launch
    b: Launch
    by: PairedBy = PairedBy.NAME


@dataclass(frozen=True)
class Matching:
    """The pairs in A's order, and the launches without a partner."""

    pairs: tuple[LaunchPair, ...]
    only_in_a: tuple[Launch, ...]
    only_in_b: tuple[Launch, ...]
    ambiguous: tuple[AmbiguousLaunches, ...]


def match(
    a: Sequence[Launch],
    b: Sequence[Launch],
    *,
    asked: Sequence[KernelPair] = (),
    kept: Sequence[KernelPair] = (),
    propose: bool = True,
) -> Matching:
    """Pair the launches of two sides.

    First come the pairs of kernels that were `asked` for, A's name before B's, at last those that are `kept`,
    in both directions: within each by the rules below, then in order as far as both sides go. Between them
    launches pair within a group: one base name, and one NVTX range unless a side has no ranges around that
    kernel. In a group, launches with equal template, grid and block pair first, then those that either
    template or size identifies, and at last indistinguishable launches, in order, where both sides have
    equally many. With `propose`, launches that are left may pair under different names (`propose_pairs`).
    """
    pairs: list[LaunchPair] = []
    left_a, left_b = list(a), list(b)
    for pair in asked:
        declared = _pair_declared(left_a, left_b, pair)
        pairs += declared
        left_a, left_b = _without(left_a, declared), _without(left_b, declared)
    by_name, only_a, only_b, ambiguous = _match_by_name(left_a, left_b)
    of_launchers = [pair for pair in by_name if pair.by is PairedBy.TEMPLATE]
    only_a, only_b = (
        [*only_a, *(pair.a for pair in of_launchers)],
        [*only_b, *(pair.b for pair in of_launchers)],
    )
    pairs += (pair for pair in by_name if pair.by is not PairedBy.TEMPLATE)
    for pair in [direction for either in kept for direction in (either, either.reversed)]:
        declared = _pair_declared(only_a, only_b, pair)
        pairs += declared
        only_a, only_b = _without(only_a, declared), _without(only_b, declared)
    if propose:
        still_left = {id(launch) for launch in (*only_a, *only_b)}
        proposed = [pair for pair in of_launchers if still_left.issuperset((id(pair.a), id(pair.b)))]
        pairs += proposed
        only_a, only_b = _without(only_a, proposed), _without(only_b, proposed)
    if propose and only_a and only_b:
        left_a = [*only_a, *(launch for group in ambiguous for launch in group.a)]
        left_b = [*only_b, *(launch for group in ambiguous for launch in group.b)]
        proposed = [
            LaunchPair(x, y, PairedBy.SIMILAR_NAME if similar else PairedBy.POSITION)
            for x, y, similar in propose_pairs(a, b, left_a, left_b)
        ]
        pairs += proposed
        only_a, only_b = _without(only_a, proposed), _without(only_b, proposed)
    position = {id(launch): index for side in (a, b) for index, launch in enumerate(side)}
    pairs.sort(key=lambda pair: position[id(pair.a)])
    return Matching(
        tuple(pairs),
        tuple(sorted(only_a, key=lambda launch: position[id(launch)])),
        tuple(sorted(only_b, key=lambda launch: position[id(launch)])),
        tuple(ambiguous),
    )


def _match_by_name(
    a: Sequence[Launch], b: Sequence[Launch]
) -> tuple[list[LaunchPair], list[Launch], list[Launch], list[AmbiguousLaunches]]:
    """The pairs of equal names, the launches that A or B alone has, and those that no rule can pair."""
    kernels_with_ranges = _kernels_with_ranges_on_both_sides(a, b)
    groups_a, groups_b = _groups(a, kernels_with_ranges), _groups(b, kernels_with_ranges)
    pairs: list[LaunchPair] = []
    only_a: list[Launch] = []
    only_b: list[Launch] = []
    ambiguous: list[AmbiguousLaunches] = []
    for group in dict.fromkeys((*groups_a, *groups_b)):
        left_a, left_b = groups_a.get(group, []), groups_b.get(group, [])
        for pair_up in _RULES:
            new_pairs = [
                LaunchPair(x, y, PairedBy.TEMPLATE if _run_other_functions(x, y) else PairedBy.NAME)
                for x, y in pair_up(left_a, left_b)
            ]
            pairs += new_pairs
            left_a, left_b = _without(left_a, new_pairs), _without(left_b, new_pairs)
        if left_a and left_b:  # launches on one side alone are new or gone, not ambiguous
            ambiguous.append(
                AmbiguousLaunches(group[0], tuple(left_a), tuple(left_b), _why_ambiguous(left_a, left_b))
            )
        else:
            only_a += left_a
            only_b += left_b
    return pairs, only_a, only_b, ambiguous


def _pair_declared(a: Sequence[Launch], b: Sequence[Launch], pair: KernelPair) -> list[LaunchPair]:
    """The pairs among launches of the two kernels, or of what two patterns stand for.

    Of two patterns, first the kernels pair for which they stand for the same: of `*_v6=*_v7` gemm_v6 and
    gemm_v7. What is left pairs where it is a single kernel on either side.
    """
    texts_a, texts_b = ([_captures(name, x) for x in side] for name, side in ((pair.a, a), (pair.b, b)))
    pairs: list[LaunchPair] = []
    for texts in dict.fromkeys(texts_a):
        if texts is not None:
            same_a, same_b = (
                [launch for launch, own in zip(side, all_texts, strict=True) if own == texts]
                for side, all_texts in ((a, texts_a), (b, texts_b))
            )
            pairs += _pair_two_kernels(same_a, same_b)
    left_a, left_b = (
        _without([launch for launch, own in zip(side, all_texts, strict=True) if own is not None], pairs)
        for side, all_texts in ((a, texts_a), (b, texts_b))
    )
    if len({launch.base_name for launch in left_a}) == len({launch.base_name for launch in left_b}) == 1:
        pairs += _pair_two_kernels(left_a, left_b)
    return pairs


def _captures(pattern: str, launch: Launch) -> Captures | None:
    """What a pattern stands for in the first of the launch's names that it fits; None where it fits none."""
    found = (captures(pattern, name) for name in launch.names)
    return next((texts for texts in found if texts is not None), None)


def _pair_two_kernels(a: Sequence[Launch], b: Sequence[Launch]) -> list[LaunchPair]:
    """The launches of two kernels, which are one, in pairs; by NVTX range where both sides have any."""
    by_range = any(launch.nvtx for launch in a) and any(launch.nvtx for launch in b)
    pairs: list[LaunchPair] = []
    ranges = list(dict.fromkeys(launch.nvtx for launch in a)) if by_range else [()]
    for nvtx in ranges:
        left_a, left_b = ([x for x in side if not by_range or x.nvtx == nvtx] for side in (a, b))
        for pair_up in (*_RULES, _pair_in_order):
            new_pairs = [LaunchPair(x, y, PairedBy.DECLARED) for x, y in pair_up(left_a, left_b)]
            pairs += new_pairs
            left_a, left_b = _without(left_a, new_pairs), _without(left_b, new_pairs)
    return pairs


def _without(launches: Sequence[Launch], pairs: Sequence[LaunchPair]) -> list[Launch]:
    """The launches that are in no pair; by identity, since a report may hold equal ones."""
    identities = {id(launch) for pair in pairs for launch in pair[:2]}
    return [launch for launch in launches if id(launch) not in identities]


def launch_labels(launches: Sequence[Launch]) -> tuple[str, ...]:
    """The label of each launch, in order: `range/kernel`, with `#n` where a range holds several."""
    counts = Counter((launch.base_name, launch.nvtx) for launch in launches)
    seen: Counter[Group] = Counter()  # launches of each group so far, which number the next one
    named = []
    for launch in launches:
        group = (launch.base_name, launch.nvtx)
        suffix = f"#{seen[group]}" if counts[group] > 1 else ""
        named.append("/".join((*launch.nvtx, launch.base_name)) + suffix)
        seen[group] += 1
    return tuple(named)


def kernel_filter(pattern: str | None) -> Callable[[Launch], bool]:
    """A predicate for launches whose name matches the pattern of `--kernel`; None matches every launch.

    `regex:EXPR`, as ncu writes it, is searched for; a pattern with `*` or `?` has to match the whole name;
    anything else is a part of the name. Case is ignored. A launch has three names: the base name, range/name,
    and the demangled name. Raises UnknownName for an invalid regular expression.
    """
    if pattern is None:
        return lambda launch: True
    matches = name_filter(pattern)
    return lambda launch: any(map(matches, launch.names))


def template_arguments(launch: Launch) -> str:
    """The template arguments in the kernel's name, as the report writes them; "" for none."""
    return _template_arguments(launch.demangled)


def _run_other_functions(a: Launch, b: Launch) -> bool:
    """Whether the templates of two launches name different functions to run, and the code is not the same.

    Kokkos, thrust and torch run all that they are given by a few kernels: what tells one from another is a
    lambda or a functor among the template's arguments. Numbers and types that differ are another version.
    """
    if template_arguments(a) == template_arguments(b):
        return False
    functions_a, functions_b = (_functions_in(template_arguments(launch)) for launch in (a, b))
    if not (functions_a - functions_b and functions_b - functions_a):
        return False
    shared = opcode_overlap(a.opcodes, b.opcodes)
    return shared is None or shared < SAME_OPCODES  # a lambda gets another number by one before it


def launch_differences(a: Launch, b: Launch) -> tuple[str, ...]:
    """Which of template, grid, block and NVTX range differ. An unknown size does not count as different."""
    differences = {
        "template": template_arguments(a) != template_arguments(b),
        "grid": None not in (a.grid, b.grid) and a.grid != b.grid,
        "block": None not in (a.block, b.block) and a.block != b.block,
        "NVTX range": a.nvtx != b.nvtx,
    }
    return tuple(name for name, differs in differences.items() if differs)


def _kernels_with_ranges_on_both_sides(a: Sequence[Launch], b: Sequence[Launch]) -> frozenset[str]:
    """Kernels that both sides have in NVTX ranges. If a side was profiled without --nvtx, there are none."""
    ranged = [{launch.base_name for launch in side if launch.nvtx} for side in (a, b)]
    return frozenset(ranged[0] & ranged[1])


def _groups(launches: Iterable[Launch], kernels_with_ranges: frozenset[str]) -> dict[Group, list[Launch]]:
    groups: dict[Group, list[Launch]] = defaultdict(list)
    for launch in launches:
        name = launch.base_name
        groups[name, launch.nvtx if name in kernels_with_ranges else ()].append(launch)
    return groups


@lru_cache(maxsize=4096)
def _functions_in(template: str) -> frozenset[str]:
    """The lambdas and functors that template arguments name."""
    return frozenset(match[0] for match in _FUNCTION.finditer(template))


@lru_cache(maxsize=4096)  # a CUTLASS name has 5,000 characters, and a report hundreds of launches of it
def _template_arguments(demangled: str) -> str:
    name = demangled.replace("(anonymous namespace)", "")  # its parenthesis opens no argument list
    depth, start, arguments = 0, 0, []
    for mark in re.finditer(r"[<>(]", name):
        if mark[0] == "<":
            start = mark.start() if not depth else start
            depth += 1
        elif mark[0] == ">" and depth:
            depth -= 1
            if not depth:
                arguments.append(name[start : mark.end()])
        elif not depth:  # the parenthesis of the function's own arguments
            break
    return "".join(arguments)


def _template(launch: Launch) -> Hashable:
    return template_arguments(launch)


def _size(launch: Launch) -> Hashable:
    return launch.grid, launch.block


def _identity(launch: Launch) -> Hashable:
    return template_arguments(launch), launch.grid, launch.block


def _pair_exact(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    return _pair_by_traits(_identity, a, b)


def _pair_by_order(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    return _pair_by_traits(lambda launch: None, a, b)


def _pair_in_order(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    """Pairs in order as far as both sides go: of each grid and block, else where a side has one of them."""
    classes_a, classes_b = _classes(_size, a), _classes(_size, b)
    pairs = [
        pair
        for size, launches in classes_a.items()
        for pair in zip(launches, classes_b.get(size, ()), strict=False)
    ]
    if not pairs and len(classes_a) == len(classes_b) == 1:
        pairs = list(zip(a, b, strict=False))
    return pairs


def _pair_by_template_or_size(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    """Pairs by equal template, or by equal grid and block, where the two do not contradict each other."""
    candidates = {
        (id(x), id(y)): (x, y) for traits in (_template, _size) for x, y in _pair_by_traits(traits, a, b)
    }
    # A launch that the template pairs with one launch and the size with another is left alone.
    partners = Counter(key for pair_of_ids in candidates for key in pair_of_ids)
    return [
        pair_of_ids for keys, pair_of_ids in candidates.items() if partners[keys[0]] == partners[keys[1]] == 1
    ]


def _pair_by_traits(
    traits: Callable[[Launch], Hashable], a: list[Launch], b: list[Launch]
) -> list[tuple[Launch, Launch]]:
    """Pairs of launches with equal traits, where each side has equally many that are all alike."""
    classes_a, classes_b = _classes(traits, a), _classes(traits, b)
    pairs: list[tuple[Launch, Launch]] = []
    for trait, launches_a in classes_a.items():
        launches_b = classes_b.get(trait, [])
        if (
            len(launches_a) == len(launches_b)
            and len(set(map(_identity, launches_a))) == len(set(map(_identity, launches_b))) == 1
        ):
            pairs += zip(launches_a, launches_b, strict=True)
    return pairs


def _classes(traits: Callable[[Launch], Hashable], launches: list[Launch]) -> dict[Hashable, list[Launch]]:
    classes: dict[Hashable, list[Launch]] = defaultdict(list)
    for launch in launches:
        classes[traits(launch)].append(launch)
    return classes


# From the strictest to the loosest, each for what the rules before it left.
_RULES = (_pair_exact, _pair_by_template_or_size, _pair_by_order)


def _why_ambiguous(a: list[Launch], b: list[Launch]) -> str:
    if len({_identity(launch) for launch in (*a, *b)}) == 1:
        return f"{len(a)} launches in A and {len(b)} in B with the same template, grid and block"
    return f"{len(a)} in A and {len(b)} in B, and neither template nor grid and block say which is which"


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """`kernel_filter` for a single name instead of a launch."""
    if pattern is None:
        return lambda name: True
    lowered = pattern.lower()
    try:
        if pattern.startswith("regex:"):
            search = compile_expression(pattern.removeprefix("regex:"), ignore_case=True).search
            return lambda name: search(name) is not None
        if "*" in pattern or "?" in pattern:
            fit = compile_wildcards(pattern).search
            return lambda name: fit(name) is not None
    except BadPattern as reason:
        raise BadKernelPattern(pattern, str(reason)) from None
    return lambda name: lowered in name.lower()
