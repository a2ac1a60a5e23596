"""Which launch of one side answers to which of the other: by name and NVTX range, never by guess."""

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
        super().__init__(f"--kernel {pattern}: {reason}")
        self.pattern, self.reason = pattern, reason


@dataclass(frozen=True)
class AmbiguousLaunches:
    """Launches of one kernel on both sides that no rule pairs; `why` says what stands in the way."""

    base_name: str
    a: tuple[Launch, ...]
    b: tuple[Launch, ...]
    why: str


@dataclass(frozen=True)
class Matching:
    """The pairs in A's order, and everything that found no partner."""

    pairs: tuple[tuple[Launch, Launch], ...]
    only_in_a: tuple[Launch, ...]
    only_in_b: tuple[Launch, ...]
    ambiguous: tuple[AmbiguousLaunches, ...]


def match(a: Sequence[Launch], b: Sequence[Launch]) -> Matching:
    """Pair the launches of two sides.

    Different base names never pair, nor do different NVTX ranges (unless one side has no range around that
    kernel at all). Within a group, equal template, grid and block pair first; what is left pairs as far as
    template or size single it out; launches that nothing tells apart pair by order when equally many.
    """
    ranges_say = _kernels_with_ranges_on_both_sides(a, b)
    groups_a, groups_b = _groups(a, ranges_say), _groups(b, ranges_say)
    pairs: list[tuple[Launch, Launch]] = []
    only_a: list[Launch] = []
    only_b: list[Launch] = []
    ambiguous: list[AmbiguousLaunches] = []
    for group in dict.fromkeys((*groups_a, *groups_b)):
        left_a, left_b = groups_a.get(group, []), groups_b.get(group, [])
        for traits in (_exact, _template_or_size, _nothing):
            found = traits(left_a, left_b)
            pairs += found
            taken = {id(launch) for pair in found for launch in pair}
            left_a = [launch for launch in left_a if id(launch) not in taken]
            left_b = [launch for launch in left_b if id(launch) not in taken]
        if left_a and left_b:
            ambiguous.append(AmbiguousLaunches(group[0], tuple(left_a), tuple(left_b), _why(left_a, left_b)))
        else:
            only_a += left_a
            only_b += left_b
    place = {id(launch): index for side in (a, b) for index, launch in enumerate(side)}
    pairs.sort(key=lambda pair: place[id(pair[0])])
    return Matching(
        tuple(pairs),
        tuple(sorted(only_a, key=lambda launch: place[id(launch)])),
        tuple(sorted(only_b, key=lambda launch: place[id(launch)])),
        tuple(ambiguous),
    )


def launch_labels(launches: Sequence[Launch]) -> tuple[str, ...]:
    """What each launch is called, in order: `range/kernel`, with `#n` where the range holds several."""
    counts = Counter((launch.base_name, launch.nvtx) for launch in launches)
    seen: Counter[Group] = Counter()
    named = []
    for launch in launches:
        group = (launch.base_name, launch.nvtx)
        suffix = f"#{seen[group]}" if counts[group] > 1 else ""
        named.append("/".join((*launch.nvtx, launch.base_name)) + suffix)
        seen[group] += 1
    return tuple(named)


def kernel_filter(pattern: str | None) -> Callable[[Launch], bool]:
    """A test of a launch against `--kernel`.

    `regex:EXPR` (as ncu writes it) is searched for, a pattern with `*` or `?` must fit the whole name,
    anything else is looked for inside it; case is ignored. A name is the base name, range/name, or demangled.
    """
    if pattern is None:
        return lambda launch: True
    fits = name_filter(pattern)
    return lambda launch: any(map(fits, _names(launch)))


def template_arguments(launch: Launch) -> str:
    """The template arguments in the kernel's name as the report prints them; "" for none."""
    return _template_arguments(launch.demangled)


def launch_differences(a: Launch, b: Launch) -> tuple[str, ...]:
    """Which of template, grid, block and NVTX range differ in a pair. An unknown size differs from none."""
    told = {
        "template": template_arguments(a) != template_arguments(b),
        "grid": None not in (a.grid, b.grid) and a.grid != b.grid,
        "block": None not in (a.block, b.block) and a.block != b.block,
        "NVTX range": a.nvtx != b.nvtx,
    }
    return tuple(name for name, differs in told.items() if differs)


def _kernels_with_ranges_on_both_sides(a: Sequence[Launch], b: Sequence[Launch]) -> frozenset[str]:
    """Where one side was collected without --nvtx, ranges cannot tell launches apart."""
    ranged = [{launch.base_name for launch in side if launch.nvtx} for side in (a, b)]
    return frozenset(ranged[0] & ranged[1])


def _groups(launches: Iterable[Launch], ranges_say: frozenset[str]) -> dict[Group, list[Launch]]:
    groups: dict[Group, list[Launch]] = defaultdict(list)
    for launch in launches:
        name = launch.base_name
        groups[name, launch.nvtx if name in ranges_say else ()].append(launch)
    return groups


@lru_cache(maxsize=4096)  # a CUTLASS name has five thousand characters, and a report hundreds of launches
def _template_arguments(demangled: str) -> str:
    name = demangled.replace("(anonymous namespace)", "")
    depth, start, kept = 0, 0, []
    for mark in re.finditer(r"[<>(]", name):
        if mark[0] == "<":
            start = mark.start() if not depth else start
            depth += 1
        elif mark[0] == ">" and depth:
            depth -= 1
            if not depth:
                kept.append(name[start : mark.end()])
        elif not depth:
            break
    return "".join(kept)


def _template(launch: Launch) -> Hashable:
    return template_arguments(launch)


def _size(launch: Launch) -> Hashable:
    return launch.grid, launch.block


def _identity(launch: Launch) -> Hashable:
    return template_arguments(launch), launch.grid, launch.block


def _exact(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    return _by(_identity, a, b)


def _nothing(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    return _by(lambda launch: None, a, b)


def _template_or_size(a: list[Launch], b: list[Launch]) -> list[tuple[Launch, Launch]]:
    """Pairs by equal template or by equal grid and block, without those on which the two disagree."""
    found = {(id(x), id(y)): (x, y) for traits in (_template, _size) for x, y in _by(traits, a, b)}
    partners = Counter(key for pair in found for key in pair)
    return [pair for keys, pair in found.items() if partners[keys[0]] == partners[keys[1]] == 1]


def _by(
    traits: Callable[[Launch], Hashable], a: list[Launch], b: list[Launch]
) -> list[tuple[Launch, Launch]]:
    """Pairs of equal traits where each side has equally many and nothing tells those of one side apart."""
    classes_a, classes_b = _classes(traits, a), _classes(traits, b)
    found: list[tuple[Launch, Launch]] = []
    for trait, left in classes_a.items():
        right = classes_b.get(trait, [])
        if len(left) == len(right) and len(set(map(_identity, left))) == len(set(map(_identity, right))) == 1:
            found += zip(left, right, strict=True)
    return found


def _classes(traits: Callable[[Launch], Hashable], launches: list[Launch]) -> dict[Hashable, list[Launch]]:
    classes: dict[Hashable, list[Launch]] = defaultdict(list)
    for launch in launches:
        classes[traits(launch)].append(launch)
    return classes


def _why(a: list[Launch], b: list[Launch]) -> str:
    if len({_identity(launch) for launch in (*a, *b)}) == 1:
        return f"{len(a)} launches in A and {len(b)} in B with the same template, grid and block"
    return f"{len(a)} in A and {len(b)} in B, and neither template nor grid and block say which is which"


def _names(launch: Launch) -> tuple[str, ...]:
    return launch.base_name, "/".join((*launch.nvtx, launch.base_name)), launch.demangled


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """`kernel_filter` for a single name."""
    if pattern is None:
        return lambda name: True
    wanted = pattern.lower()
    if pattern.startswith("regex:"):
        expression = pattern.removeprefix("regex:")
        try:
            re.compile(expression)
        except re.error as error:
            raise BadKernelPattern(pattern, f"not a regular expression: {error}") from None
        return lambda name: re.search(expression, name, re.IGNORECASE) is not None
    if "*" in pattern or "?" in pattern:
        return lambda name: fnmatchcase(name.lower(), wanted.replace("[", "[[]"))
    return lambda name: wanted in name.lower()
