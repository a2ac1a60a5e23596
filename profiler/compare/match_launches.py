"""Matches the launches of two sides by name, NVTX range, template and size, and never by guess."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from profiler.errors import UnknownName
from profiler.evidence import Launch

Group = tuple[str, tuple[str, ...]]  # base name, NVTX path


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


@dataclass(frozen=True)
class Matching:
    """The pairs in A's order, and the launches without a partner."""

    pairs: tuple[tuple[Launch, Launch], ...]
    only_in_a: tuple[Launch, ...]
    only_in_b: tuple[Launch, ...]
    ambiguous: tuple[AmbiguousLaunches, ...]


def match(a: Sequence[Launch], b: Sequence[Launch]) -> Matching:
    """Pair the launches of two sides.

    Launches pair only within a group: one base name, and one NVTX range unless a side has no ranges around
    that kernel. In a group, launches with equal template, grid and block pair first, then those that either
    template or size identifies, and at last indistinguishable launches, in order, where both sides have
    equally many.
    """
    kernels_with_ranges = _kernels_with_ranges_on_both_sides(a, b)
    groups_a, groups_b = _groups(a, kernels_with_ranges), _groups(b, kernels_with_ranges)
    pairs: list[tuple[Launch, Launch]] = []
    only_a: list[Launch] = []
    only_b: list[Launch] = []
    ambiguous: list[AmbiguousLaunches] = []
    for group in dict.fromkeys((*groups_a, *groups_b)):
        left_a, left_b = groups_a.get(group, []), groups_b.get(group, [])
        # From the strictest rule to the loosest, each on what the rules before it left.
        for pair_up in (_pair_exact, _pair_by_template_or_size, _pair_by_order):
            new_pairs = pair_up(left_a, left_b)
            pairs += new_pairs
            paired = {id(launch) for pair in new_pairs for launch in pair}
            left_a = [launch for launch in left_a if id(launch) not in paired]
            left_b = [launch for launch in left_b if id(launch) not in paired]
        if left_a and left_b:  # launches on one side alone are new or gone, not ambiguous
            ambiguous.append(
                AmbiguousLaunches(group[0], tuple(left_a), tuple(left_b), _why_ambiguous(left_a, left_b))
            )
        else:
            only_a += left_a
            only_b += left_b
    position = {id(launch): index for side in (a, b) for index, launch in enumerate(side)}
    pairs.sort(key=lambda pair: position[id(pair[0])])
    return Matching(
        tuple(pairs),
        tuple(sorted(only_a, key=lambda launch: position[id(launch)])),
        tuple(sorted(only_b, key=lambda launch: position[id(launch)])),
        tuple(ambiguous),
    )


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
    return lambda launch: any(map(matches, _names(launch)))


def template_arguments(launch: Launch) -> str:
    """The template arguments in the kernel's name, as the report writes them; "" for none."""
    return _template_arguments(launch.demangled)


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


def _why_ambiguous(a: list[Launch], b: list[Launch]) -> str:
    if len({_identity(launch) for launch in (*a, *b)}) == 1:
        return f"{len(a)} launches in A and {len(b)} in B with the same template, grid and block"
    return f"{len(a)} in A and {len(b)} in B, and neither template nor grid and block say which is which"


def _names(launch: Launch) -> tuple[str, ...]:
    return launch.base_name, "/".join((*launch.nvtx, launch.base_name)), launch.demangled


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """`kernel_filter` for a single name instead of a launch."""
    if pattern is None:
        return lambda name: True
    lowered = pattern.lower()
    if pattern.startswith("regex:"):
        expression = pattern.removeprefix("regex:")
        try:
            re.compile(expression)
        except re.error as error:
            raise BadKernelPattern(pattern, f"not a regular expression: {error}") from None
        return lambda name: re.search(expression, name, re.IGNORECASE) is not None
    if "*" in pattern or "?" in pattern:
        # "[" is part of a kernel's name here, not the start of a set of characters.
        return lambda name: fnmatchcase(name.lower(), lowered.replace("[", "[[]"))
    return lambda name: lowered in name.lower()
