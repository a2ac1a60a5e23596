"""Whether two launches did the same work, by what a report says: grid and block, code, what they executed.

A report does not hold a kernel's arguments, so the problem size has to be concluded from what it does hold.
`docs/calibration.md` has the cases as a table.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Protocol

from profiler.compare.launch_facts import generated_stem
from profiler.compare.match_launches import plain_template
from profiler.compare.same_code import CHANGED, SAME, UNKNOWN, CodeChange
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.naming import plain_template_arguments
from profiler.evidence.values import Value
from profiler.statistics.decision import change_text
from profiler.statistics.verdict import Verdict

# What is counted, by the formulas that give it: each a sum of products of exact ncu names.
_Formula = tuple[tuple[str, ...], ...]
_Counters = dict[str, tuple[_Formula, ...]]

_ELAPSED, _TIME = "gpc__cycles_elapsed.max", "gpu__time_duration.sum"
_CLOCK = "gpc__cycles_elapsed.avg.per_second"


def _sums(*names: str) -> tuple[_Formula, ...]:
    """Formulas of one counter each."""
    return tuple(((name,),) for name in names)


def _over(beside: str, *names: str) -> tuple[_Formula, ...]:
    """Formulas of one rate or share each, times what it is a rate or share of."""
    return tuple(((name, beside),) for name in names)


# What grows with the problem. Of several kinds the first that both launches carry counts.
_INSTRUCTIONS: _Counters = {
    "instructions": _sums("smsp__inst_executed.sum"),
    "instructions executed": _sums("sm__inst_executed.sum"),
    "instructions issued": _sums("smsp__inst_issued.sum", "sm__inst_issued.sum"),
}
_TRAFFIC: _Counters = {
    "L2 sectors": _sums("lts__t_sectors.sum"),
    "global load sectors": _sums("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "DRAM bytes": ((("dram__bytes_read.sum",), ("dram__bytes_write.sum",)), *_sums("dram__bytes.sum")),
}
# Multiplications of matrices: an edit of a kernel leaves their number alone, and more data does not.
_MATRIX_OPCODES = re.compile(r"(?:[BDHIOQ]|[BHIQ]G|UTC[A-Z]*)MMA\b")
_MATRIX_COUNTERS: _Counters = {
    "tensor instructions": _sums(
        "sm__inst_executed_pipe_tensor.sum",
        "sm__inst_executed_pipe_tensor_op_hmma.sum",
        "sm__inst_executed_pipe_tensor_op_gmma.sum",
        "sm__inst_executed_pipe_tensor_op_imma.sum",
        "sm__inst_executed_pipe_tensor_op_dmma.sum",
    )
}
_READ = "dram__bytes_read.sum"
_HELD = "profiler__replayer_bytes_mem_accessible.sum"  # by the program; ncu notes it to replay a launch
# What stands in where no sum was collected: averages over units, and rates and shares times cycles or time.
# The sets that collect no more than the speed of light carry these alone. Both sides must have run on one
# GPU: then units and peaks cancel in the ratio of the two.
_PER_CYCLE = (
    "sm__inst_executed.sum.per_cycle_elapsed",
    "sm__inst_executed.avg.per_cycle_elapsed",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
)
_INSTRUCTIONS_BY_RATE: _Counters = {
    "instructions per unit": _sums(
        "smsp__inst_executed.avg", "sm__inst_executed.avg", "smsp__inst_issued.avg"
    ),
    "instructions by rate": (
        *_over(
            _ELAPSED,
            *_PER_CYCLE,
            "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
        ),
        *_over("sm__cycles_active.avg", "sm__inst_executed.avg.per_cycle_active"),
        *_over(
            "smsp__cycles_active.avg",
            "smsp__issue_active.avg.per_cycle_active",
            "smsp__issue_active.avg.pct_of_peak_sustained_active",
            "smsp__inst_executed.avg.per_cycle_active",
        ),
        *_over(
            "sm__cycles_active.avg",
            "sm__inst_issued.avg.per_cycle_active",
            "sm__inst_issued.avg.pct_of_peak_sustained_active",
            "sm__issue_active.avg.pct_of_peak_sustained_active",
        ),
        # Without cycles: the clock times the time, else the time alone.
        *(((rate, _CLOCK, _TIME),) for rate in _PER_CYCLE),
        *_over(_TIME, *_PER_CYCLE),
    ),
}
_TRAFFIC_BY_RATE: _Counters = {
    "L2 sectors per unit": _sums("lts__t_sectors.avg"),
    "L2 sectors by rate": _over(
        _TIME, "lts__t_sectors.sum.per_second", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
    ),
    "L2 traffic by throughput": _over(_TIME, "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    "DRAM bytes by rate": _over(
        _TIME,
        "dram__bytes.sum.per_second",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
}
_OUTPUT: _Counters = {"global store sectors": _sums("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")}
# Equal to the last, they are one output: sectors whatever the block, instructions in blocks of one shape.
_STORES = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "smsp__inst_executed_op_global_st.sum",
    "sass__inst_executed_global_stores",
)
_CYCLES: _Counters = {"cycles": _sums(_ELAPSED)}
_COMPUTE: _Counters = {"compute throughput": _sums("sm__throughput.avg.pct_of_peak_sustained_elapsed")}
_MEMORY: _Counters = {
    "memory throughput": _sums("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")
}
_CODE_FACTS = {
    "registers": "launch__registers_per_thread",
    "static shared memory": "launch__shared_mem_per_block_static",
}

_STAYED = 1.1  # up to this ratio, or its inverse, it is the same amount of work
_STAYED_BY_RATE = 1.25  # rate and cycles come from two replay passes, and were seen 10 % off the count
_THROUGHPUT_STAYED = 1.05
_CYCLES_MOVED = 1.25  # cycles move by themselves, which counts do not
_TWICE = 2.0  # other code may well execute more: it is doubted from here on
# Other code on the same grid seldom does this many times the work. Between 120 neighbouring public reports no
# edit of a kernel did: the furthest was 2.1 times the instructions, at the same traffic.
_MANYFOLD = 8.0
_TIMES_FROM = 100.0  # a larger factor is written as one: ×256, not +25500 %, and ÷256, not −100 %
_MATRIX_MOVED = 1.5
# Bytes beyond every L2: of an input this large DRAM delivers each at least once, whatever the kernel does.
_BEYOND_CACHES, _READS_VANISHED = 128e6, 100.0
_ALIKE = 1.25  # of two ratios, how many times the logarithm of the one may be that of the other
_SAME_MIX, _OTHER_MIX = 0.02, 0.1  # shares of the executed instructions that are of other opcodes

_LENGTH = re.compile(r"\[(\d+)(?:[uU]?[lL]*)\]")  # of an array, in a signature

_Size = tuple[int, int, int]


class Sized(Protocol):
    """A launch, or a point of a series that says how its launch was made."""

    @property
    def grid(self) -> _Size | None:
        """In blocks; None where the report does not say."""

    @property
    def block(self) -> _Size | None:
        """In threads; None where the report does not say."""


class WorkloadChange(NamedTuple):
    """Why a pair of launches has no verdict on speed: the two did other work, or may have."""

    verdict: Verdict  # NOT_COMPARABLE: another workload; UNCLEAR: perhaps
    reason: str
    sizes: str  # grid and block where they differ, as in the reason; "" where they do not
    code: CodeChange  # as far as the reports tell
    whatever_the_code: bool = False  # whether no edit of a kernel is known to do this


class WorkRatio(NamedTuple):
    """How many times as much B has of something."""

    label: str
    times: float
    is_by_rate: bool = False  # not counted: a rate or share times cycles or time

    @property
    def words(self) -> str:
        """What was counted, with its change: `L2 sectors (+143 %)`."""
        if self.times >= _TIMES_FROM:
            return f"{self.label} ({formatting.TIMES}{formatting.quantity(Value(self.times))})"
        if self.times <= 1 / _TIMES_FROM:
            return f"{self.label} (÷{formatting.quantity(Value(1 / self.times))})"
        return f"{self.label} ({change_text(self.times - 1)})"

    def stayed(self, limit: float | None = None) -> bool:
        """Whether it is within the limit, in either direction; by default within that of its kind."""
        limit = limit or (_STAYED_BY_RATE if self.is_by_rate else _STAYED)
        return abs(math.log(self.times)) <= math.log(limit)

    def moved(self, limit: float) -> bool:
        """Whether it grew or shrank at least so many times."""
        return max(self.times, 1 / self.times) >= limit

    def is_like(self, other: WorkRatio) -> bool:
        """Whether both moved in one direction, and about equally far."""
        x, y = math.log(self.times), math.log(other.times)
        return x * y > 0 and max(x / y, y / x) <= _ALIKE


def find_workload_change(a: Launch, b: Launch) -> WorkloadChange | None:
    """Whether b is another workload than a; None where the two are compared.

    Not to be asked where somebody declared that both do the same work, by a workload or as a pair.
    """
    code = launch_code_change(a, b)
    sizes = describe_sizes(a, b) if is_other_grid(a, b) else ""
    if doubt := _other_lengths(a, b) or _matrix_work_moved(a, b) or _reads_vanished(a, b):
        reason = f"{sizes}; {doubt}" if sizes else doubt
        return WorkloadChange(Verdict.UNCLEAR, reason, sizes, code, whatever_the_code=True)
    if doubt := _matrix_work_on_one_side(a, b):
        return WorkloadChange(Verdict.UNCLEAR, f"{sizes}; {doubt}" if sizes else doubt, sizes, code)
    if not sizes:
        alike = _moved_manyfold(a, b) if code.word == CHANGED else _moved_alike(a, b)
        return WorkloadChange(Verdict.UNCLEAR, alike, "", code) if alike else None
    if code.word == CHANGED:  # other code may share out the same work otherwise
        more = (
            _at_least_twice(a, b)
            or _moved_manyfold(a, b)
            or _all_moved(a, b)
            or _threads_moved_manyfold(a, b)
        )
        return WorkloadChange(Verdict.UNCLEAR, f"{sizes}; {more}", sizes, code) if more else None
    if _work_stayed(a, b):  # a kernel whose threads loop over the data takes any grid
        return None
    if code.word != SAME and _is_shared_out_otherwise(a, b):
        return None
    return WorkloadChange(Verdict.NOT_COMPARABLE, f"another workload: {sizes}", sizes, code)


def launch_code_change(a: Launch, b: Launch) -> CodeChange:
    """Whether two launches ran the same code, by what reports say of every launch.

    Another name, signature, number of registers or size of static shared memory is other code. Else the mix
    of the executed opcodes decides; as other data shift it somewhat, a small difference leaves it unknown.
    """
    if changed := build_change(a, b):
        return changed
    distance = mix_distance(a, b)
    if distance is None:
        return CodeChange(UNKNOWN, "no opcodes on both sides; what else is known of the code is the same")
    why = f"{100 * distance:.1f} % of the executed instructions are of other opcodes"
    if distance >= _OTHER_MIX:
        return CodeChange(CHANGED, why)
    return CodeChange(SAME if distance <= _SAME_MIX else UNKNOWN, why)


def build_change(a: Launch, b: Launch) -> CodeChange | None:
    """That name, signature, registers or static shared memory tell other code; None where they do not."""
    if generated_stem(a.base_name) != generated_stem(b.base_name):
        return CodeChange(CHANGED, f"{a.base_name} and {b.base_name}")
    if plain_template(a) != plain_template(b):
        return CodeChange(CHANGED, "template arguments differ")
    signatures = [_LENGTH.sub("[]", plain_template_arguments(x.demangled)) for x in (a, b) if x.demangled]
    if a.base_name == b.base_name and len(signatures) == 2 and signatures[0] != signatures[1]:
        return CodeChange(CHANGED, "signatures differ")
    for label, name in _CODE_FACTS.items():
        fact_a, fact_b = a.values.number(name), b.values.number(name)
        if fact_a is not None and fact_b is not None and fact_a != fact_b:
            return CodeChange(CHANGED, f"{label} {fact_a:g} → {fact_b:g}")
    return None


def describe_sizes(a: Sized, b: Sized) -> str:
    """Grid and block where they differ: `grid 8 × 8 → 32 × 32`. An unknown size does not differ."""
    sizes = {"grid": (a.grid, b.grid), "block": (a.block, b.block)}
    return ", ".join(
        f"{name} {formatting.dimensions(size_a)} → {formatting.dimensions(size_b)}"
        for name, (size_a, size_b) in sizes.items()
        if size_a and size_b and size_a != size_b
    )


def is_other_grid(a: Sized, b: Sized) -> bool:
    """Whether the grid changed, and not only because another block covers the same threads."""
    if not a.grid or not b.grid or a.grid == b.grid:
        return False
    return not (a.block and b.block and _covers_same_threads((a.grid, a.block), (b.grid, b.block)))


def _covers_same_threads(a: tuple[_Size, _Size], b: tuple[_Size, _Size]) -> bool:
    """Whether two launches, each grid and block, were made for one number of threads.

    Threads come in whole blocks, so that another block rounds them otherwise. They are compared in each
    dimension, and all together, since they may be laid out otherwise.
    """
    # g blocks of n threads are made for more than (g - 1) n and at most g n, or from (g - 1) n on where the
    # source adds a block to a whole quotient (`size / n + 1`). That one of two blocks is rounded so shows.
    ranges_a, ranges_b = ([((g - 1) * n, g * n, n) for g, n in zip(*side, strict=True)] for side in (a, b))
    pairs = zip(ranges_a, ranges_b, strict=True)
    if all(
        (low_a < high_b and low_b < high_a) or (n_a != n_b and (low_a == high_b or low_b == high_a))
        for (low_a, high_a, n_a), (low_b, high_b, n_b) in pairs
    ):
        return True
    total_a, total_b = (math.prod(grid) * math.prod(block) for grid, block in (a, b))
    return abs(total_a - total_b) < max(math.prod(a[1]), math.prod(b[1]))


def mix_distance(a: Launch, b: Launch) -> float | None:
    """The share of the executed instructions that are of other opcodes; None where a side has no opcodes."""
    total_a, total_b = sum(a.opcodes.values()), sum(b.opcodes.values())
    if not total_a or not total_b:
        return None
    names = {*a.opcodes, *b.opcodes}
    shares = ((a.opcodes.get(name, 0.0) / total_a, b.opcodes.get(name, 0.0) / total_b) for name in names)
    return sum(abs(share_a - share_b) for share_a, share_b in shares) / 2


def _ratio(a: Launch, b: Launch, counters: _Counters, *, is_by_rate: bool = False) -> WorkRatio | None:
    """The ratio of the first kind of which both launches have numbers above 0 by one formula."""
    for label, formulas in counters.items():
        for formula in formulas:
            total_a, total_b = _total(a, formula), _total(b, formula)
            if total_a and total_b:
                return WorkRatio(label, total_b / total_a, is_by_rate)
    return None


def _total(launch: Launch, formula: _Formula) -> float | None:
    """The sum of products of a formula; None where a counter has no number, or the sum is not above 0."""
    total = 0.0
    for product in formula:
        numbers = [launch.values.number(name) for name in product]
        if None in numbers:
            return None
        total += math.prod(float(number) for number in numbers if number is not None)
    return total if total > 0 and math.isfinite(total) else None


def instructions_ratio(a: Launch, b: Launch) -> WorkRatio | None:
    """How many times as many instructions B executed; None where nothing on both sides says."""
    return _ratio(a, b, _INSTRUCTIONS) or _stand_in(a, b, _INSTRUCTIONS_BY_RATE)


def traffic_ratio(a: Launch, b: Launch) -> WorkRatio | None:
    """How many times as much memory traffic B had; None where nothing on both sides says."""
    return _ratio(a, b, _TRAFFIC) or _stand_in(a, b, _TRAFFIC_BY_RATE)


def _stand_in(a: Launch, b: Launch, counters: _Counters) -> WorkRatio | None:
    """The ratio by rates and shares; None on two GPUs, whose peaks differ."""
    gpus, capabilities = {a.gpu, b.gpu} - {None}, {a.compute_capability, b.compute_capability} - {None}
    is_one_gpu = len(gpus) < 2 and len(capabilities) < 2
    return _ratio(a, b, counters, is_by_rate=True) if is_one_gpu else None


def _work_stayed(a: Launch, b: Launch) -> bool:
    """Whether both executed as much, and moved as much or stored exactly the same.

    Another block may read the same data more often, or with worse locality: that is no other work.
    """
    instructions, traffic = instructions_ratio(a, b), traffic_ratio(a, b)
    if instructions is None or not instructions.stayed(_STAYED):
        return False
    return stored_the_same(a, b) or (traffic is not None and traffic.stayed(_STAYED))


def _is_shared_out_otherwise(a: Launch, b: Launch) -> bool:
    """Whether other threads executed more or less for as much traffic, and the program holds the same memory.

    Threads that load two elements each are half as many and execute less, and read what was read before. Half
    the data would halve the traffic as well.
    """
    threads, instructions, traffic = _threads(a, b), instructions_ratio(a, b), traffic_ratio(a, b)
    held = [launch.values.number(_HELD) for launch in (a, b)]
    if (
        not (threads and instructions and traffic and held[0])
        or held[0] != held[1]
        or not instructions.moved(_CYCLES_MOVED)
    ):
        return False
    grew = threads.times > 1
    return (instructions.times > 1) is grew and (traffic.stayed(_STAYED) or (traffic.times > 1) is not grew)


def stored_the_same(a: Launch, b: Launch) -> bool:
    """Whether a count of stores is equal to the last: of what both launches carry, the first."""
    for name in _STORES:
        stores_a, stores_b = a.values.number(name), b.values.number(name)
        if stores_a and stores_b:
            return stores_a == stores_b
    return False


def _other_lengths(a: Launch, b: Launch) -> str:
    """That the signatures name arrays of other lengths, in words; "" where they do not, or the work stayed.

    Such a length is a constant of the source: the size of the data, or of a tile, which moves no work.
    """
    lengths = [_LENGTH.findall(x.demangled or "") for x in (a, b)]
    if len(lengths[0]) != len(lengths[1]) or lengths[0] == lengths[1] or _work_stayed(a, b):
        return ""
    moved = dict.fromkeys(pair for pair in zip(*lengths, strict=True) if pair[0] != pair[1])
    words = ", ".join(f"[{before}] → [{after}]" for before, after in moved)
    return f"arrays of other lengths in the signature, {words}: perhaps another problem size"


def _matrix_work_moved(a: Launch, b: Launch) -> str:
    """That matrix instructions and something else grew or shrank alike, in words; "" where not.

    An edit may halve them by a larger shape of the instruction: then nothing else halves with them.
    """
    sums = [_matrix_instructions(launch) for launch in (a, b)]
    matrix = (
        WorkRatio("tensor instructions", sums[1] / sums[0]) if all(sums) else _ratio(a, b, _MATRIX_COUNTERS)
    )
    if matrix is None or not matrix.moved(_MATRIX_MOVED):
        return ""
    others = (
        instructions_ratio(a, b),
        *(_ratio(a, b, {label: formulas}) for label, formulas in (*_TRAFFIC.items(), *_OUTPUT.items())),
    )
    return next((_alike_words(matrix, other) for other in others if other and other.is_like(matrix)), "")


def _matrix_work_on_one_side(a: Launch, b: Launch) -> str:
    """That the side which alone multiplies matrices takes at least twice as long, in words; "" where not.

    Matrix instructions in place of others make a kernel faster: what takes longer with them does more.
    """
    counts, time = _matrix_counts(a, b), _ratio(a, b, {"the time": _sums(_TIME)})
    if counts is None or all(counts) or time is None or not time.moved(_TWICE):
        return ""
    if (counts[0] < counts[1]) is not (time.times > 1) or counts[0] == counts[1]:
        return ""
    before, after = (formatting.quantity(Value(count)) for count in counts)
    return f"tensor instructions {before} → {after} and {time.words}: perhaps other work"


def _matrix_counts(a: Launch, b: Launch) -> tuple[float, float] | None:
    """The matrix instructions of both, by opcodes or the first counter that both have; None without."""
    if a.opcodes and b.opcodes:
        return _matrix_instructions(a), _matrix_instructions(b)
    names = (name for formulas in _MATRIX_COUNTERS.values() for ((name,),) in formulas)
    pairs = ((a.values.number(name), b.values.number(name)) for name in names)
    return next(((x, y) for x, y in pairs if x is not None and y is not None), None)


def _matrix_instructions(launch: Launch) -> float:
    return sum(count for opcode, count in launch.opcodes.items() if _MATRIX_OPCODES.match(opcode))


def _reads_vanished(a: Launch, b: Launch) -> str:
    """That one side reads next to nothing of what the other reads from DRAM, in words; "" where not."""
    reads = _ratio(a, b, {"DRAM bytes read": _sums(_READ)})
    numbers = [launch.values.number(_READ) or 0 for launch in (a, b)]
    if reads is None or not reads.moved(_READS_VANISHED) or max(numbers) < _BEYOND_CACHES:
        return ""
    return f"{reads.words}, which no cache accounts for: perhaps other data"


def _moved_alike(a: Launch, b: Launch) -> str:
    """That instructions and traffic grew or shrank alike, in words; "" where they did not."""
    instructions, traffic = instructions_ratio(a, b), traffic_ratio(a, b)
    if instructions and traffic:
        moved = not instructions.stayed() and not traffic.stayed()
        return _alike_words(instructions, traffic) if moved and instructions.is_like(traffic) else ""
    # Without counts: as much per cycle of both, in other cycles, is as much more or less of both.
    compute, memory, cycles = (_ratio(a, b, counters) for counters in (_COMPUTE, _MEMORY, _CYCLES))
    if not (compute and memory and cycles) or cycles.stayed(_CYCLES_MOVED):
        return ""
    if not (compute.stayed(_THROUGHPUT_STAYED) and memory.stayed(_THROUGHPUT_STAYED)):
        return ""
    return f"{cycles.words} at the same compute and memory throughput: perhaps another problem size"


def _at_least_twice(a: Launch, b: Launch) -> str:
    """That B executed and moved at least twice as much, and both alike, in words; "" where it did not."""
    instructions = instructions_ratio(a, b)
    beside = traffic_ratio(a, b) or _ratio(a, b, _CYCLES)
    # Code that stores what the other does may load it again and again: many times over it is doubted too.
    limit = _MANYFOLD if stored_the_same(a, b) else _TWICE
    if not instructions or not beside or min(instructions.times, beside.times) < limit:
        return ""
    return _alike_words(instructions, beside) if instructions.is_like(beside) else ""


def _moved_manyfold(a: Launch, b: Launch) -> str:
    """That instructions and traffic grew or shrank alike and many times over, in words; "" where not."""
    instructions, traffic = instructions_ratio(a, b), traffic_ratio(a, b)
    if not (instructions and traffic and instructions.moved(_MANYFOLD) and traffic.moved(_MANYFOLD)):
        return ""
    return _alike_words(instructions, traffic) if instructions.is_like(traffic) else ""


def _threads_moved_manyfold(a: Launch, b: Launch) -> str:
    """That threads and traffic grew or shrank alike and many times over; "" where not, or stores stayed.

    Other code may execute less for each of them, as one that skips zeros does.
    """
    threads, traffic, stores = _threads(a, b), traffic_ratio(a, b), _ratio(a, b, _OUTPUT)
    if not (threads and traffic and threads.moved(_MANYFOLD) and traffic.moved(_MANYFOLD)):
        return ""
    if not threads.is_like(traffic) or (stores and not (stores.moved(_TWICE) and stores.is_like(threads))):
        return ""
    return _alike_words(threads, traffic)


def _all_moved(a: Launch, b: Launch) -> str:
    """That threads, instructions, traffic and what is stored all grew or shrank twice or more; "" where not.

    Another tile shares out one output to more threads or fewer, which store as much as before. Where all
    shrank, the stores must have gone with the threads, as coarser threads may also store in wider accesses.
    """
    ratios = [_threads(a, b), instructions_ratio(a, b), traffic_ratio(a, b), _ratio(a, b, _OUTPUT)]
    known = [ratio for ratio in ratios if ratio is not None]
    grew = [ratio.times > 1 for ratio in known]
    if len(known) < len(ratios) or not all(ratio.moved(_TWICE) for ratio in known) or len(set(grew)) > 1:
        return ""
    threads, *_, stores = known
    if not grew[0] and not threads.is_like(stores):
        return ""
    words = f"{', '.join(ratio.words for ratio in known[:-1])} and {stores.words}"
    return f"{words} all {'grew' if grew[0] else 'shrank'}: perhaps another problem size"


def _threads(a: Launch, b: Launch) -> WorkRatio | None:
    totals = [
        math.prod(launch.grid) * math.prod(launch.block) if launch.grid and launch.block else 0
        for launch in (a, b)
    ]
    return WorkRatio("threads", totals[1] / totals[0]) if min(totals) > 0 else None


def _alike_words(instructions: WorkRatio, beside: WorkRatio) -> str:
    moved = "grew" if instructions.times > 1 else "shrank"
    return f"{instructions.words} and {beside.words} {moved} alike: perhaps another problem size"
