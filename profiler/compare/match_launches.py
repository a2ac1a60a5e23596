"""Matches the launches of two sides: by declared pairs, by name, and by what may be proposed without it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from profiler.compare.kernel_pairs import Captures, KernelPair, captures
from profiler.compare.launch_facts import (
    LaunchClass,
    generated_stem,
    is_named_by_line,
    launch_classes,
    scaled,
    settle,
)
from profiler.compare.propose_pairs import (
    SAME_OPCODES,
    name_stem,
    opcode_overlap,
    propose_pairs,
    renamed_kernels,
)
from profiler.errors import UnknownName
from profiler.evidence.launch import Launch
from profiler.evidence.name_pattern import BadPattern, compile_expression, compile_wildcards
from profiler.evidence.naming import plain_template_arguments
from profiler.statistics.decision import MIN_SAMPLES

Group = tuple[str, tuple[str, ...]]  # base name, NVTX path

# A function that a template is given: a lambda, as compilers number them within the function around it, or a
# functor by the endings that are usual for its name.
_FUNCTION = re.compile(
    r"(?:\w+(?:\([^()]*\))?::)?[\[{]lambda\([^\]}]*[\]}](?:#\d+)?|\w*(?:[Ff]unctor\w*|Ops?|Func|Fn|_op|_fn|_func)\b"
)
_LAMBDA = re.compile(r"[\[{]lambda\(")
# What nvcc called a lambda of --extended-lambda: its function, and which one of that function it is. Source:
# names in reports of CUDA 9 to 11.
_TAGGED = re.compile(r"__nv_dl_tag<")
_LONGEST_TAG = 2000  # characters
_TAG_NUMBER = re.compile(r",\s*(?:\(unsigned int\))?\d+u?\s*$")
_LAST_WORD = re.compile(r"[A-Za-z_]\w*$")
_NOT_OWNERS = frozenset(("operator", "const"))
_OPENING, _CLOSING = ")>]}", "(<[{"  # read backwards
_DURATION = "gpu__time_duration.sum"
_APART = 0.02  # times that lie closer together are one, whichever launches pair


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
    GRIDS = "grids"  # proposed: another tile or block, and all grids changed by one factor

    @property
    def words(self) -> str:
        """How the launches were paired, for a reader; "" for equal names, which need no words."""
        return _PAIRED_WORDS[self]

    @property
    def is_proposed(self) -> bool:
        """Whether nobody said that the two are one kernel."""
        return self in (PairedBy.TEMPLATE, PairedBy.SIMILAR_NAME, PairedBy.POSITION, PairedBy.GRIDS)

    @property
    def decides(self) -> bool:
        """Whether it is enough for a gate to pass or to fail by."""
        return self not in (PairedBy.TEMPLATE, PairedBy.POSITION, PairedBy.GRIDS)


_PAIRED_WORDS = {
    PairedBy.NAME: "",
    PairedBy.TEMPLATE: "paired by name, but functions in their templates differ in name, number or arguments",
    PairedBy.DECLARED: "paired as declared",
    PairedBy.SIMILAR_NAME: "paired by similar name, names differ",
    PairedBy.POSITION: "paired by position, names differ",
    PairedBy.GRIDS: "paired by grid: the tile or block changed, and all grids by one factor",
}


class LaunchPair(NamedTuple):
    """A launch of A, its partner in B, and what makes them a pair.

    Of launches that repeat one piece of work `samples` are all of A's and all of B's, however many there are,
    and `a` and `b` those whose durations are in the middle.
    """

    a: Launch
    b: Launch
    by: PairedBy = PairedBy.NAME
    samples: tuple[tuple[Launch, ...], tuple[Launch, ...]] | None = None  # None: one launch per side

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch of either side."""
        return (self.a, self.b) if self.samples is None else (*self.samples[0], *self.samples[1])


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
    kernel. In a group, launches with equal template, grid and block pair first, by what they are besides
    (registers, shared memory, instructions, stores), then those that template, size or facts identify
    (`launch_facts.settle`). Launches that repeat one piece of work are the samples of one pair, however many
    each side has. With `propose`, launches whose tile changed may pair by grid (`launch_facts.scaled`), and
    those that are left under different names (`propose_pairs`).
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
    if propose:
        by_grid = [_pair_scaled(group.a, group.b) for group in ambiguous]
        pairs += (pair._replace(by=PairedBy.GRIDS) for of_group in by_grid for pair in of_group)
        ambiguous = [group for group, of in zip(ambiguous, by_grid, strict=True) if not of]
    if propose and only_a and only_b:
        renamed = [
            pair._replace(by=PairedBy.SIMILAR_NAME)
            for of_a, of_b in renamed_kernels(a, b, only_a, only_b)
            for pair in _pair_up(of_a, of_b)
            if (pair.a.grid, pair.a.block) == (pair.b.grid, pair.b.block)
        ]
        pairs += renamed
        only_a, only_b = _without(only_a, renamed), _without(only_b, renamed)
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
    pairs.sort(key=lambda pair: position[id(pair.a if pair.samples is None else pair.samples[0][0])])
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
    shared = {launch.base_name for launch in a} & {launch.base_name for launch in b}
    groups_a, groups_b = (_groups(side, kernels_with_ranges, shared) for side in (a, b))
    pairs: list[LaunchPair] = []
    only_a: list[Launch] = []
    only_b: list[Launch] = []
    ambiguous: list[AmbiguousLaunches] = []
    for group in dict.fromkeys((*groups_a, *groups_b)):
        left_a, left_b = groups_a.get(group, []), groups_b.get(group, [])
        new_pairs = [
            pair._replace(by=_by_name(pair.a, pair.b))
            for pair in _pair_up(left_a, left_b)
            if not _have_other_owners(pair.a, pair.b)
        ]
        pairs += new_pairs
        left_a, left_b = _without(left_a, new_pairs), _without(left_b, new_pairs)
        apart_a, apart_b = _of_other_owners(left_a, left_b), _of_other_owners(left_b, left_a)
        only_a += apart_a
        only_b += apart_b
        left_a, left_b = (
            [launch for launch in left if not any(launch is other for other in apart)]
            for left, apart in ((left_a, apart_a), (left_b, apart_b))
        )
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
        for pair_up in (_pair_up, _pair_scaled, _pair_in_order):
            new_pairs = [pair._replace(by=PairedBy.DECLARED) for pair in pair_up(left_a, left_b)]
            pairs += new_pairs
            left_a, left_b = _without(left_a, new_pairs), _without(left_b, new_pairs)
    rest = _pair_in_order(_without(a, pairs), _without(b, pairs))  # of ranges that the other side lacks
    return pairs + [pair._replace(by=PairedBy.DECLARED) for pair in rest]


def _without(launches: Sequence[Launch], pairs: Sequence[LaunchPair]) -> list[Launch]:
    """The launches that are in no pair; by identity, since a report may hold equal ones."""
    identities = {id(launch) for pair in pairs for launch in pair.launches}
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


def plain_template(launch: Launch) -> str:
    """The template arguments without casts, suffixes and spaces, which differ between demanglers."""
    return plain_template_arguments(template_arguments(launch))


def template_arguments(launch: Launch) -> str:
    """The template arguments in the kernel's name, as the report writes them; "" for none."""
    return _template_arguments(launch.demangled)


def _run_other_functions(a: Launch, b: Launch) -> bool:
    """Whether the templates of two launches name different functions to run, and the code is not the same.

    Kokkos, thrust and torch run all that they are given by a few kernels: what tells one from another is a
    lambda or a functor among the template's arguments. Numbers and types that differ are another version.
    """
    if plain_template(a) == plain_template(b):
        return False
    functions_a, functions_b = (_functions_in(template_arguments(launch)) for launch in (a, b))
    if not (functions_a - functions_b and functions_b - functions_a):
        return False
    return not _are_same_code(a, b)  # a lambda gets another number by one before it


def _by_name(a: Launch, b: Launch) -> PairedBy:
    """What makes two launches of one group a pair."""
    if _run_other_functions(a, b):
        return PairedBy.TEMPLATE
    return PairedBy.NAME if a.base_name == b.base_name else PairedBy.SIMILAR_NAME


def _have_other_owners(a: Launch, b: Launch) -> bool:
    """Whether the lambdas among two launches' template arguments belong to functions of other names.

    What a launcher runs is then another kernel: PyTorch's `uniform_and_transform` beside its
    `normal_and_transform`. Owners that differ in a version or a number may be one function.
    """
    owners_a, owners_b = (_lambda_owners(launch.demangled) for launch in (a, b))
    if not owners_a or not owners_b:
        return False
    stems_a, stems_b = ({name_stem(owner) for owner in owners} for owners in (owners_a, owners_b))
    return bool(stems_a - stems_b and stems_b - stems_a) and not _are_same_code(a, b)


def _of_other_owners(launches: Sequence[Launch], others: Sequence[Launch]) -> list[Launch]:
    """The launches whose lambdas belong to functions that none of the others has."""
    return [x for x in launches if others and all(_have_other_owners(x, y) for y in others)]


def _are_same_code(a: Launch, b: Launch) -> bool:
    shared = opcode_overlap(a.opcodes, b.opcodes)
    return shared is not None and shared >= SAME_OPCODES


def launch_differences(a: Launch, b: Launch) -> tuple[str, ...]:
    """Which of template, grid, block and NVTX range differ. An unknown size does not count as different."""
    differences = {
        "template": plain_template(a) != plain_template(b),
        "grid": None not in (a.grid, b.grid) and a.grid != b.grid,
        "block": None not in (a.block, b.block) and a.block != b.block,
        "NVTX range": a.nvtx != b.nvtx,
    }
    return tuple(name for name, differs in differences.items() if differs)


def _kernels_with_ranges_on_both_sides(a: Sequence[Launch], b: Sequence[Launch]) -> frozenset[str]:
    """Kernels that both sides have in NVTX ranges. If a side was profiled without --nvtx, there are none."""
    ranged = [{launch.base_name for launch in side if launch.nvtx} for side in (a, b)]
    return frozenset(ranged[0] & ranged[1])


def _groups(
    launches: Iterable[Launch], kernels_with_ranges: frozenset[str], shared: Collection[str]
) -> dict[Group, list[Launch]]:
    """Launches by name and range. A line by which both sides name a kernel has not moved."""
    groups: dict[Group, list[Launch]] = defaultdict(list)
    for launch in launches:
        name = launch.base_name
        stem = name if name in shared and is_named_by_line(name) else generated_stem(name)
        groups[stem, launch.nvtx if name in kernels_with_ranges else ()].append(launch)
    return groups


@lru_cache(maxsize=4096)
def _lambda_owners(demangled: str) -> frozenset[str]:
    """The functions that the lambdas of a name are written in: the last word of each path."""
    owners = set()
    ends = [lambda_at.start() for lambda_at in _LAMBDA.finditer(demangled)]
    ends += [_end_of_owner(demangled, tag.end()) for tag in _TAGGED.finditer(demangled)]
    for end in ends:
        while True:
            end = _skip_brackets(demangled, end)
            word = _LAST_WORD.search(demangled, max(0, end - 200), end)
            if word is None:
                break
            if word[0] not in _NOT_OWNERS:
                owners.add(word[0])
                break
            end = word.start()
    return frozenset(owners)


def _end_of_owner(text: str, begin: int) -> int:
    """Where the function's name ends in the arguments of a tag: `void (*)(int), &(rows(int)), 1u`."""
    depth, end = 1, begin
    while depth and end < min(len(text), begin + _LONGEST_TAG):
        depth += (text[end] in _CLOSING) - (text[end] in _OPENING)
        end += 1
    if number := _TAG_NUMBER.search(text, begin, end - 1):
        end = number.start()
    return end - 1 if text[begin:end].endswith("))") else end


def _skip_brackets(text: str, end: int) -> int:
    """The place before the `::`, ` const`, parameters and template arguments that end there."""
    while True:
        stripped = text[:end].rstrip(" :")
        stripped = stripped.removesuffix(" const").rstrip(" :")
        end = len(stripped)
        if not stripped or stripped[-1] not in _OPENING:
            return end
        depth = 0
        while end:
            end -= 1
            depth += (text[end] in _OPENING) - (text[end] in _CLOSING)
            if not depth:
                break


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


def _identity(launch: Launch) -> Hashable:
    return plain_template(launch), launch.grid, launch.block


def _pair_up(a: Sequence[Launch], b: Sequence[Launch]) -> list[LaunchPair]:
    """The pairs of launches of one kernel, by what tells them apart."""
    classes = settle(launch_classes(a, plain_template), launch_classes(b, plain_template))
    return [pair for class_a, class_b in classes for pair in _pairs_of_classes(class_a, class_b)]


def _pair_scaled(a: Sequence[Launch], b: Sequence[Launch]) -> list[LaunchPair]:
    """The pairs of launches of one kernel by the sizes of their grids; none where these do not tell."""
    classes = scaled(launch_classes(a, plain_template), launch_classes(b, plain_template))
    pairs = [_pairs_of_classes(class_a, class_b) for class_a, class_b in classes]
    return [pair for of_class in pairs for pair in of_class] if all(pairs) else []


def _pairs_of_classes(a: LaunchClass, b: LaunchClass) -> list[LaunchPair]:
    """The pairs of two classes that answer to each other: their launches are samples, or pair one by one.

    Nothing tells the launches of a class apart, so which of them pair does not matter where those of one side
    are alike, unless the times of the other lie on both sides of theirs: then all are samples. Where the
    times of both show that they are of several kinds it would, and there is no pair.
    """
    counts = len(a.launches), len(b.launches)
    if counts == (1, 1):
        return [LaunchPair(a.launches[0], b.launches[0])]
    repeats = {a.repeats, b.repeats}
    # Two launches beside one are repeats only if they are known to be one build.
    is_known = a.facts.known and b.facts.known
    are_samples = repeats == {True} and (max(counts) >= MIN_SAMPLES or (counts[0] != counts[1] and is_known))
    if are_samples or (counts[0] == counts[1] and True in repeats and _one_encloses(a, b)):
        return [LaunchPair(_middle(a.launches), _middle(b.launches), samples=(a.launches, b.launches))]
    if counts[0] != counts[1] or (False in repeats and True not in repeats):
        return []
    return [LaunchPair(x, y) for x, y in zip(a.launches, b.launches, strict=True)]


def _one_encloses(a: LaunchClass, b: LaunchClass) -> bool:
    """Whether the times of one side begin below and end above all of the other's, and lie apart."""
    times = [[launch.values.number(_DURATION) or 0.0 for launch in of.launches] for of in (a, b)]
    inner, outer = sorted(times, key=lambda of: max(of) - min(of))
    is_apart = max(outer) > (1 + _APART) * min(outer)
    return is_apart and 0 < min(outer) < min(inner) and max(inner) < max(outer)


def _middle(launches: Sequence[Launch]) -> Launch:
    """The launch whose duration is in the middle; of an even number the shorter of two."""
    times = [(launch.values.number(_DURATION) or 0.0, index) for index, launch in enumerate(launches)]
    return launches[sorted(times)[(len(times) - 1) // 2][1]]


def _pair_in_order(a: Sequence[Launch], b: Sequence[Launch]) -> list[LaunchPair]:
    """Pairs in order as far as both sides go, on request: of each grid and block, then of the rest."""
    pairs: list[LaunchPair] = []
    for traits in (_identity, lambda launch: (launch.grid, launch.block), lambda launch: None):
        left_a, left_b = (_classes(traits, _without(side, pairs)) for side in (a, b))
        pairs += [
            LaunchPair(x, y)
            for trait, launches in left_a.items()
            for x, y in zip(launches, left_b.get(trait, ()), strict=False)
        ]
    return pairs


def _classes(
    traits: Callable[[Launch], Hashable], launches: Iterable[Launch]
) -> dict[Hashable, list[Launch]]:
    classes: dict[Hashable, list[Launch]] = defaultdict(list)
    for launch in launches:
        classes[traits(launch)].append(launch)
    return classes


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
