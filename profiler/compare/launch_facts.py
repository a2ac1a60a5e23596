"""What a launch is besides its name (registers, shared memory, instructions, stores), and launches alike."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from profiler.evidence.launch import Launch

# What the compiler and the launch fixed: equal in every launch of one configuration.
_BUILD = (
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
)
# What it executed, by the first counter that a launch carries.
_WORK: tuple[tuple[str, ...], ...] = (
    ("smsp__inst_executed.sum", "sm__inst_executed.sum"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "smsp__inst_executed_op_global_st.sum"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "smsp__inst_executed_op_global_ld.sum"),
)
# What ncu would have to save to replay the launch: equal to the byte where a program has the same allocated.
_HELD = "profiler__replayer_bytes_mem_accessible.sum"
_TIME = "gpu__time_duration.sum"
_LONGEST_GENERATED = 500  # characters: Inductor's names end at about 100
_NEAR = 0.02  # launches of one configuration execute as much, give or take this share
_EQUAL = 0.002  # the same where all else differs: a count of other code comes near by chance
_STEADY = 1.25  # times of launches that nothing else tells to be alike: the longest beside the shortest
# Numbers that a code generator names kernels by: a count in Inductor's triton_poi_fused_add_3, XLA's
# loop_add_fusion_2, IREE's main_dispatch_4_matmul, nvFuser's nvfuser_pointwise_f0_c1_r0_g2 and TVM's
# tvmgen_default_fused_add_1_kernel, which one kernel more before it changes; the line of an offloaded loop,
# which any edit above it moves, in nvc++'s nvkernel_main_F1L61_6 and main_61_gpu and, after the numbers of
# the file, clang's __omp_offloading_fd02_1a2b_main_l61, or after the path of a checkout, in ClimaCore's
# set_cache__FILE_ClimaAtmos_jl_src_cache_jl_L61.
_GENERATED = (
    (re.compile(r"\w+\$?\w*_dispatch_\d+(?:_\w*)?"), re.compile(r"(?<=_dispatch)_\d+")),
    (re.compile(r"(?:triton_\w*?|(?:\w*_)?fusion(?:_\w+?)?)_?\d+"), re.compile(r"_?\d+$")),
    (re.compile(r"nvfuser_\w+?_f\d+_c\d+_r\d+_g\d+"), re.compile(r"_f\d+_c\d+_r\d+_g\d+$")),
    (re.compile(r"tvmgen_\w+?_kernel(?:_?\d+)?"), re.compile(r"(?:_\d+)?(?=_kernel)|(?<=_kernel)_?\d+$")),
)
_BY_LINE = (
    (re.compile(r"nvkernel_\w+_F\d+L\d+_\d+"), re.compile(r"(?:_F\d+L\d+_\d+)+$")),
    (
        re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_\w+_l\d+"),
        re.compile(r"(?<=offloading)_[0-9a-f]+_[0-9a-f]+|_l\d+$"),
    ),
    (re.compile(r"\w+__FILE_\w+_L\d+"), re.compile(r"__FILE_\w+_L\d+$")),
    (re.compile(r"\w+_\d+_gpu(?:__red)?"), re.compile(r"_\d+(?=_gpu(?:__red)?$)")),
)

_LINE = re.compile(r"[lL]\d+")

Settled = tuple["LaunchClass", "LaunchClass"]


class LaunchFacts(NamedTuple):
    """What is known of a launch besides its name and size; None where not collected."""

    build: tuple[float | None, ...]  # registers per thread, static and dynamic shared memory per block
    instructions: float | None
    stores: float | None
    loads: float | None = None
    held: float | None = None  # bytes of memory that the program held then

    @property
    def work(self) -> tuple[float | None, ...]:
        """Instructions, stores and loads."""
        return self.instructions, self.stores, self.loads

    @property
    def known(self) -> bool:
        """Whether any of build and work is known."""
        return any(fact is not None for fact in (*self.build, *self.work))


@dataclass(frozen=True)
class LaunchClass:
    """Launches of one side that nothing tells apart: name, template, grid, block and facts are alike."""

    launches: tuple[Launch, ...]
    template: str
    facts: LaunchFacts  # of the first

    @cached_property
    def name(self) -> str:
        """The kernel's name."""
        return self.launches[0].base_name

    @cached_property
    def size(self) -> tuple[Hashable, Hashable]:
        """Grid and block."""
        return self.launches[0].grid, self.launches[0].block

    @cached_property
    def repeats(self) -> bool | None:
        """Whether the launches repeat one piece of work; None where neither counters nor times say.

        Equal instructions or stores say so. Without either, times that lie close together do, and times that
        do not say that these are launches of several kinds.
        """
        if self.facts.instructions is not None or self.facts.stores is not None:
            return True
        times = [launch.values.number(_TIME) for launch in self.launches]
        return _is_steady(times) if all(times) else None


@lru_cache(maxsize=4096)
def generated_stem(name: str) -> str:
    """A kernel's name without the numbers that a code generator named it by; any other name as it is."""
    if len(name) <= _LONGEST_GENERATED:
        for names, numbers in (*_GENERATED, *_BY_LINE):
            if names.fullmatch(name):
                return numbers.sub("", name)
    return name


def is_named_by_line(name: str) -> bool:
    """Whether a compiler named the kernel by the line of its loop."""
    return len(name) <= _LONGEST_GENERATED and any(names.fullmatch(name) for names, _ in _BY_LINE)


def build_facts(launch: Launch) -> tuple[float | None, ...]:
    """Registers a thread, static and dynamic shared memory per block; None where not collected."""
    return tuple(map(launch.values.number, _BUILD))


def launch_classes(launches: Sequence[Launch], template_of: Callable[[Launch], str]) -> list[LaunchClass]:
    """The classes of launches that are alike, in the order of their first launches."""
    by_key: dict[Hashable, list[Launch]] = defaultdict(list)
    for launch in launches:
        facts = _facts(launch)
        known = tuple(fact is None for fact in facts.work)
        key = (launch.base_name, template_of(launch), launch.grid, launch.block, facts.build, known)
        by_key[key].append(launch)
    classes = [
        LaunchClass(tuple(alike), template_of(alike[0]), _facts(alike[0]))
        for of_key in by_key.values()
        for near in _split(of_key, lambda facts: facts.instructions)
        for stored in _split(near, lambda facts: facts.stores)
        for alike in _split(stored, lambda facts: facts.loads)
    ]
    place = {id(launch): index for index, launch in enumerate(launches)}
    return sorted(classes, key=lambda of: place[id(of.launches[0])])


def settle(a: Sequence[LaunchClass], b: Sequence[LaunchClass]) -> list[Settled]:
    """The classes of A and B that answer to each other, from the surest to the loosest rule.

    A rule pairs two classes where each fits no other. Equal facts come before equal names where a code
    generator numbers names, and always before the order of launches, which says nothing.
    """
    settled: list[Settled] = []
    left_a, left_b = list(a), list(b)
    for rules in (*_RULES, _MERGE, *_LOOSE_RULES, _MERGE):
        if rules is _MERGE:
            merged_a, merged_b = _merged(left_a), _merged(left_b)
            if merged_a is not None and merged_b is not None:
                return [*settled, (merged_a, merged_b)]
        found = _unique(rules, left_a, left_b)
        settled += found
        taken = {id(of) for pair in found for of in pair}
        left_a, left_b = ([of for of in left if id(of) not in taken] for left in (left_a, left_b))
    return settled


def scaled(a: Sequence[LaunchClass], b: Sequence[LaunchClass]) -> list[Settled]:
    """The classes of one kernel whose tile or block changed, by grids that all changed by one factor.

    None where that does not hold for all. Either side has one template and one block, and grids that differ;
    stores, where known, are as many.
    """
    builds = [{(of.template, of.launches[0].block) for of in side} for side in (a, b)]
    if len(a) != len(b) or len(a) < 2 or not len(builds[0]) == len(builds[1]) == 1 or builds[0] == builds[1]:
        return []
    grids = [{_blocks(of): of for of in side} for side in (a, b)]
    sizes_a, sizes_b = (sorted(of_side) for of_side in grids)
    if not len(sizes_a) == len(sizes_b) == len(a) or not sizes_a[0] or not sizes_b[0]:
        return []
    if any(x * sizes_b[0] != y * sizes_a[0] for x, y in zip(sizes_a, sizes_b, strict=True)):
        return []
    pairs = [(grids[0][x], grids[1][y]) for x, y in zip(sizes_a, sizes_b, strict=True)]
    known = [(x.facts.stores, y.facts.stores) for x, y in pairs if x.facts.stores and y.facts.stores]
    return pairs if all(_near(x, y) for x, y in known) else []


def _blocks(of: LaunchClass) -> int:
    """How many blocks its launches have; 0 where that is not known."""
    return math.prod(of.launches[0].grid or (0,))


def _merged(left: Sequence[LaunchClass]) -> LaunchClass | None:
    """What is left of a side as one class: a class alone, or several that differ by their data alone.

    Those have one template, size and build, and neither their work nor their times lie far apart.
    """
    if len(left) == 1:
        return left[0]
    launches = tuple(launch for of in left for launch in of.launches)
    if len({(of.name, of.template, of.size, of.facts.build) for of in left}) != 1:
        return None
    facts = [_facts(launch) for launch in launches]
    instructions, stores = [of.instructions for of in facts], [of.stores for of in facts]
    times = [launch.values.number(_TIME) for launch in launches]
    if not all(_is_steady(numbers) for numbers in (instructions, stores) if any(numbers)):
        return None
    ordered = tuple(sorted(launches, key=lambda launch: launch.ordinal))
    return LaunchClass(ordered, left[0].template, left[0].facts) if _is_steady(times) else None


def _is_steady(numbers: Sequence[float | None]) -> bool:
    known = [number for number in numbers if number]
    return len(known) == len(numbers) > 0 and max(known) <= _STEADY * min(known)


def _unique(
    rules: Iterable[Callable[[LaunchClass, LaunchClass], bool]],
    a: Sequence[LaunchClass],
    b: Sequence[LaunchClass],
) -> list[Settled]:
    """The pairs of classes for which a rule is met by no other, and no other rule names another partner."""
    candidates: dict[tuple[int, int], Settled] = {}
    for fits in rules:
        fitting = [(x, y) for x in a for y in b if fits(x, y)]
        counts = Counter(id(of) for pair in fitting for of in pair)
        for x, y in fitting:
            if counts[id(x)] == counts[id(y)] == 1:
                candidates[id(x), id(y)] = (x, y)
    partners = Counter(key for keys in candidates for key in keys)
    return [pair for keys, pair in candidates.items() if partners[keys[0]] == partners[keys[1]] == 1]


def _same_all(x: LaunchClass, y: LaunchClass) -> bool:
    return x.facts.known and x.facts[:4] == y.facts[:4] and x.name == y.name and _same_version(x, y)


def _same_but_name(x: LaunchClass, y: LaunchClass) -> bool:
    return _near_facts(x, y) and _same_version(x, y)


def _same_facts_and_size(x: LaunchClass, y: LaunchClass) -> bool:
    return _near_facts(x, y) and x.size == y.size


def _same_version(x: LaunchClass, y: LaunchClass) -> bool:
    return x.size == y.size and x.template == y.template


def _same_work(x: LaunchClass, y: LaunchClass) -> bool:
    return _same_version(x, y) and _near(x.facts.instructions, y.facts.instructions, _EQUAL)


def _same_stores(x: LaunchClass, y: LaunchClass) -> bool:
    return bool(x.facts.stores) and x.facts.stores == y.facts.stores and _same_version(x, y)


def _same_stores_alone(x: LaunchClass, y: LaunchClass) -> bool:
    return bool(x.facts.stores) and x.facts.stores == y.facts.stores


def _same_build(x: LaunchClass, y: LaunchClass) -> bool:
    known = x.facts.build[0] is not None
    return known and x.facts.build == y.facts.build and _same_version(x, y)


def _same_line(x: LaunchClass, y: LaunchClass) -> bool:
    """Whether both are named by one line, of whatever file. Lines move, so facts come first."""
    lines = [_LINE.findall(of.name) for of in (x, y) if is_named_by_line(of.name)]
    return len(lines) == 2 and lines[0] == lines[1] and _same_version(x, y)


def _same_held(x: LaunchClass, y: LaunchClass) -> bool:
    """Whether the program held as much memory, to the byte. It tells the layers of a network apart."""
    return bool(x.facts.held) and x.facts.held == y.facts.held and x.template == y.template


def _same_grid(x: LaunchClass, y: LaunchClass) -> bool:
    return x.size[0] is not None and x.size[0] == y.size[0] and x.template == y.template


def _same_template(x: LaunchClass, y: LaunchClass) -> bool:
    return x.template == y.template


def _same_size(x: LaunchClass, y: LaunchClass) -> bool:
    return x.size == y.size


# From the strictest to the loosest, each for what the rules before it left. Before the loose ones, and after
# them, what is left on each side is one class where its launches differ by their data alone.
_Rules = tuple[Callable[[LaunchClass, LaunchClass], bool], ...]
_MERGE: _Rules = ()
_RULES: tuple[_Rules, ...] = (
    (_same_all,),
    (_same_but_name,),
    (_same_version,),
    (_same_facts_and_size,),
    (_same_work, _same_stores, _same_build),
    (_same_line,),
)
_LOOSE_RULES: tuple[_Rules, ...] = (
    (_same_held, _same_grid),
    (_same_template, _same_size),
    (_same_stores_alone,),
)


def _near_facts(x: LaunchClass, y: LaunchClass) -> bool:
    """Whether both know a fact, and no fact that both know differs."""
    known = [
        (of_x, of_y)
        for of_x, of_y in zip(x.facts.build, y.facts.build, strict=True)
        if of_x is not None and of_y is not None
    ]
    work = [
        (of_x, of_y)
        for of_x, of_y in zip(x.facts.work, y.facts.work, strict=True)
        if of_x is not None and of_y is not None
    ]
    return bool(known or work) and all(p == q for p, q in known) and all(_near(p, q) for p, q in work)


def _near(x: float | None, y: float | None, share: float = _NEAR) -> bool:
    return x is not None and y is not None and abs(x - y) <= share * min(abs(x), abs(y))


def _split(launches: Sequence[Launch], number: Callable[[LaunchFacts], float | None]) -> list[list[Launch]]:
    """The launches by a count: within _NEAR of a class's least."""
    counted = [(number(_facts(launch)), launch) for launch in launches]
    if any(count is None for count, _ in counted):
        return [list(launches)]
    classes: list[list[Launch]] = []
    least = -math.inf
    for count, launch in sorted(counted, key=lambda entry: entry[0] or 0.0):
        if not classes or not _near(least, count):
            classes.append([])
            least = count or 0.0
        classes[-1].append(launch)
    place = {id(launch): index for index, launch in enumerate(launches)}
    return [sorted(of, key=lambda launch: place[id(launch)]) for of in classes]


def _facts(launch: Launch) -> LaunchFacts:
    number = launch.values.number
    instructions, stores, loads = (
        next((n for name in names if (n := number(name)) is not None), None) for names in _WORK
    )
    return LaunchFacts(build_facts(launch), instructions, stores, loads, number(_HELD))
