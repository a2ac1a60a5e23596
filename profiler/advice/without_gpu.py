"""Rules on facts that need no GPU: budget, spills, opcodes, and conflicts of a run on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from profiler.advice.levers import (
    FEWER_REGISTERS,
    IN_REGISTERS,
    LESS_SHARED,
    ONE_MORE_STAGE,
    SECOND_PRODUCT,
    SWIZZLE,
    WGMMA,
    WIDER_ACCESSES,
    tensor_cores_lever,
)
from profiler.advice.rules import known_steps_words
from profiler.advice.statement import (
    BOTTLENECK,
    CHANGE,
    LEVER,
    UNKNOWN,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
    all_valid,
    format_share,
)
from profiler.advice.subject import ComparedSide, TrafficByWorkload
from profiler.advice.techniques import techniques_of
from profiler.build.occupancy import occupancy
from profiler.compare.pair_comparison import MetricChange
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import ARCHITECTURES, find_architecture
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list, natural_key
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.history.lineage import MAIN
from profiler.statistics.verdict import Verdict

LOW_OCCUPANCY_PCT = 25.0  # theoretical occupancy at which room for another block is worth a word
MAX_CUT = 0.25  # a cut in registers or shared memory that is larger than this is another kernel
_GROUP_PRODUCTS = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
_ONE_MORE_STAGE = 1.5  # times the shared memory of two stages
_ASYNC_COPIES = ("LDGSTS", "UTMALDG", "UBLKCP")  # to shared memory past the registers
_EXACT = "exact, by the compiler"
# What a measurement would show if a lever on facts were wrong, by the id of its statement.
REFUTED_BY = {
    "spills": "without spills the time is the same",
    "room": "with one more block on an SM the time is the same",
    "tensor:unused": "the products on tensor cores take as long",
    "tensor:partly": "the remaining products on tensor cores take as long",
    "tensor:wgmma": "wgmma in place of mma.sync takes as long",
    "registers": "shared-memory wavefronts fall and the time does not",
    "narrow": "loads of 16 bytes per lane take as long",
    "stages": "an extra stage does not reduce copy stalls",
    "copies": "copies past the registers take as long",
    "local": "without local memory the time is the same",
    "conflicts": "wavefronts of shared memory fall and the time does not",
}
_BY_MODEL = "by the model of the banks, on small workloads"
_MAX_CHANGES = 8  # that a statement names
# What of a version's static facts a reader asks for first.
_COMPARED = (
    "static_registers",
    "static_spills",
    "static_shared",
    "static_occupancy",
    "static_hmma",
    "static_ldsm",
    "static_ldgsts",
    "static_bar",
    "static_ldl",
    "static_stl",
    "static_instructions",
    "modelled_conflicts",
    "modelled_wavefronts",
)
_SOURCES = {Evidence.STATIC: "Compiled facts", Evidence.MODELLED: "Modelled results"}


class _Fact(NamedTuple):
    """The answer of a rule for one side, and its severity, by which sides with the same answer are ranked."""

    answer: Statement | OpenQuestion
    severity: float = 0.0


class _SideMetrics(NamedTuple):
    """A side with its comparison, and the metrics of its main launch."""

    compared: ComparedSide
    metrics: LaunchMetrics


def fact_statements(
    sides: Sequence[ComparedSide], table: MetricTable, traffic: TrafficByWorkload
) -> tuple[Statement | OpenQuestion, ...]:
    """Every statement that static and modelled facts support; one for all places, about the worst of them."""
    ordered = sorted(sides, key=lambda compared: natural_key(compared.place))
    pairs = [_SideMetrics(compared, _launch_metrics(compared, table)) for compared in ordered]
    static = [pair for pair in pairs if pair.compared.side.evidence is Evidence.STATIC]
    modelled = [pair for pair in pairs if pair.compared.side.evidence is Evidence.MODELLED]
    answers: list[Statement | OpenQuestion] = []
    rules: tuple[Callable[[LaunchMetrics], Iterator[_Fact]], ...] = (
        _over_budget,
        _spills,
        _room_for_a_block,
        _tensor_cores,
        _scalar_beside_matrix,
        _warpgroup_products,
        _through_shared_memory,
        _copies,
        _narrow_loads,
        _few_stages,
        _local_arrays,
    )
    for rule in rules:
        answers += _worst([(compared, fact) for compared, metrics in static for fact in rule(metrics)])
    answers += _worst(
        [
            (compared, fact)
            for compared, metrics in modelled
            for fact in _bank_conflicts(compared, metrics, traffic)
        ]
    )
    for of_one_kind in (static, modelled):
        answers += _changes(of_one_kind)
    return tuple(answers)


def main_launch(side: Side) -> Launch:
    """The main function of a version that has several functions. Facts of a run on the CPU have one."""
    return next((launch for launch in side.launches if launch.base_name == MAIN), side.launches[0])


def _launch_metrics(compared: ComparedSide, table: MetricTable) -> LaunchMetrics:
    launch, gpu = main_launch(compared.side), compared.side.gpu
    pairs = compared.comparison.pairs if compared.comparison else ()
    baseline = next((pair.a for pair in pairs if pair.holds(launch)), None)
    chip = gpu.rstrip("af") if gpu and gpu.startswith("sm_") else None
    return LaunchMetrics(launch, table, chip, baseline, opcode_mix="static__opcode")


def _worst(facts: Sequence[tuple[ComparedSide, _Fact]]) -> Iterator[Statement | OpenQuestion]:
    """Of equal statements from several places the most severe one, with the number of other places."""
    by_id: dict[str, list[tuple[float, ComparedSide, Statement]]] = {}
    questions: dict[str, OpenQuestion] = {}
    for compared, (answer, severity) in facts:
        if isinstance(answer, OpenQuestion):
            questions.setdefault(answer.id, answer)
        else:
            by_id.setdefault(answer.id, []).append((severity, compared, answer))
    for entries in by_id.values():
        _, compared, statement = max(entries, key=lambda entry: entry[0])
        where = f"worst of {len(entries)}: {compared.place}" if len(entries) > 1 else compared.place
        yield replace(statement, text=f"{statement.text} ({where})")
    yield from (question for name, question in questions.items() if name not in by_id)


def _static(
    name: str,
    kind: str,
    text: str,
    inputs: tuple[MetricInput, ...],
    weight: float,
    lever: str = "",
    confidence: str = _EXACT,
) -> Statement:
    """A statement on static facts; it has no lever where an input is invalid."""
    valid_lever = lever if lever and all_valid(inputs) else None
    return Statement(
        name,
        kind,
        text,
        inputs,
        Evidence.STATIC,
        _with_record(name, confidence) if valid_lever else confidence,
        valid_lever,
        weight=weight,
        techniques=techniques_of(valid_lever or ""),
        refuted_by=REFUTED_BY[name] if valid_lever else "",
    )


def _with_record(name: str, confidence: str) -> str:
    """The confidence in a lever, with the known steps that it helped in and what would refute it."""
    return f"{confidence}; {known_steps_words(name)}; refuted if {REFUTED_BY[name]}"


def _over_budget(metrics: LaunchMetrics) -> Iterator[_Fact]:
    budget = metrics.named("static__over_budget", "over budget")
    if budget.value.text not in (None, "", "nothing"):  # a text, so never a valid number
        yield _Fact(_static("budget", BOTTLENECK, f"Over its budget: {budget.value.text}", (budget,), 0.9))


def _spills(metrics: LaunchMetrics) -> Iterator[_Fact]:
    spills, registers = inputs = metrics.of("static_spills", "static_registers")
    if not spills.valid:
        yield _Fact(OpenQuestion("spills", "whether registers spill", (spills,)))
    elif spills.number:
        text = f"{spills.text} of registers spill at {registers.text} per thread"
        yield _Fact(_static("spills", LEVER, text, inputs, 0.8, FEWER_REGISTERS), spills.number)


def _room_for_a_block(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """How much smaller a block would have to be for one more to fit onto an SM."""
    names = ("static_registers", "static_threads", "static_shared", "static_occupancy", "static_blocks")
    registers, threads, shared, share, blocks = inputs = metrics.of(*names)
    chip = metrics.chip
    if not all_valid(inputs) or chip not in ARCHITECTURES:
        yield _Fact(OpenQuestion("room", "how many blocks fit on an SM", inputs))
        return
    if share.number > LOW_OCCUPANCY_PCT or not blocks.number:
        return
    block = _Block(chip, int(registers.number), int(threads.number), int(shared.number))
    fits = occupancy(*block)
    if fits.blocks != blocks.number:  # the facts were made with other limits than this table's
        return
    limit = "limits" if len(fits.limiters) == 1 and not fits.limiters[0].endswith("s") else "limit"
    few = f"{fits.blocks} block{'s' * (fits.blocks > 1)} ({block.threads} threads) per SM"
    text = f"Occupancy is {share.text} at most: {' and '.join(fits.limiters)} {limit} it to {few}"
    lever = ""
    if fewer := _fewer_registers(block, fits.blocks):
        text += f"; {_in_place_of(fewer, block.registers, 'registers')}"
        lever = FEWER_REGISTERS
    elif less := _less_shared(block, fits.blocks):
        text += f"; {_in_place_of(less, block.shared_bytes, 'bytes of shared memory')}"
        lever = LESS_SHARED
    confidence = "the occupancy limit is exact; whether more warps help needs a measurement"
    kind = LEVER if lever else BOTTLENECK
    yield _Fact(_static("room", kind, text, inputs, 0.3, lever, confidence), -share.number)


class _Block(NamedTuple):
    """What a block takes of an SM, in the order of the arguments of `occupancy`."""

    chip: str
    registers: int  # a thread
    threads: int
    shared_bytes: int


def _in_place_of(less: int, own: int, name: str) -> str:
    return f"{formatting.digits(less)} {name} in place of {formatting.digits(own)} would fit one more"


def _fewer_registers(block: _Block, blocks: int) -> int | None:
    """The most registers with which one more block fits, within MAX_CUT; None where that is not enough."""
    for fewer in range(block.registers - 1, int(block.registers * (1 - MAX_CUT)) - 1, -1):
        if occupancy(*block._replace(registers=fewer)).blocks > blocks:
            return fewer
    return None


def _less_shared(block: _Block, blocks: int) -> int | None:
    """The most shared memory with which one more block fits, within MAX_CUT; None if that is not enough."""
    unit, own = ARCHITECTURES[block.chip].shared_unit, block.shared_bytes
    for less in range(own - own % unit, int(own * (1 - MAX_CUT)) - 1, -unit):
        if less < own and occupancy(*block._replace(shared_bytes=less)).blocks > blocks:
            return less
    return None


def _tensor_cores(metrics: LaunchMetrics) -> Iterator[_Fact]:
    matrix, fused, total = metrics.matrix_opcodes, metrics.opcodes("FFMA", "HFMA2"), metrics.every_opcode
    if not total.valid:
        yield _Fact(OpenQuestion("tensor", "whether the code has tensor-core instructions", (total,)))
    elif not matrix.number and fused.number:
        text = f"No tensor-core instruction in the code, but FFMA and HFMA2 in {fused.number:.0f} places"
        inputs = (matrix, fused, total)
        lever = tensor_cores_lever(metrics.chip)
        yield _Fact(_static("tensor:unused", LEVER, text, inputs, 0.7, lever), fused.number)


def _scalar_beside_matrix(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Products that are still scalar in a kernel that has tensor-core instructions.

    One matrix instruction does the work of at least 64 FFMA: as many FFMA as those are no softmax alone.
    """
    matrix, fused = inputs = (metrics.matrix_opcodes, metrics.opcodes("FFMA", "HFMA2"))
    if all_valid(inputs) and matrix.number and fused.number >= matrix.number:
        text = (
            f"FFMA and HFMA2 in {fused.number:.0f} places beside {matrix.number:.0f} tensor-core instructions"
        )
        yield _Fact(_static("tensor:partly", LEVER, text, inputs, 0.6, SECOND_PRODUCT), fused.number)


def _warpgroup_products(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Products of single warps on a chip whose tensor cores reach their peak by warp groups alone."""
    single, group = inputs = (metrics.opcodes("HMMA", "QMMA", "IMMA"), metrics.opcodes(*_GROUP_PRODUCTS))
    chip = find_architecture(metrics.chip)
    has_groups = chip is not None and chip.matrix_instruction == "wgmma"
    if has_groups and all_valid(inputs) and single.number and not group.number:
        text = f"mma.sync in {single.number:.0f} places and no wgmma: mma.sync reaches two thirds of the peak"
        yield _Fact(_static("tensor:wgmma", LEVER, text, inputs, 0.45, WGMMA), single.number)


def _through_shared_memory(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Intermediate results that go from one product to the next through shared memory."""
    matrix, stores = inputs = (metrics.matrix_opcodes, metrics.opcodes("STS"))
    if all_valid(inputs) and matrix.number and stores.number >= matrix.number:
        text = (
            f"STS in {stores.number:.0f} places beside {matrix.number:.0f} tensor-core instructions: results "
            "pass through shared memory between them"
        )
        yield _Fact(_static("registers", LEVER, text, inputs, 0.55, IN_REGISTERS), stores.number)


def _narrow_loads(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Global loads of fewer than 16 bytes per lane, where nothing is copied asynchronously."""
    copies, loads = metrics.opcodes(*_ASYNC_COPIES), metrics.opcodes("LDG")
    chip = find_architecture(metrics.chip)
    wide = [metrics.named("static__opcode_LDG.128", "LDG of 16 bytes")]
    if chip is None or chip.lane_bytes > 16:  # facts of an older profiler lack it, which matters only there
        wide.append(metrics.named("static__opcode_LDG.256", "LDG of 32 bytes"))
    inputs = (copies, loads, *wide)
    if all_valid(inputs) and loads.number and not copies.number and not any(one.number for one in wide):
        text = f"LDG in {loads.number:.0f} places, none of 16 bytes per lane or more"
        yield _Fact(_static("narrow", LEVER, text, inputs, 0.4, WIDER_ACCESSES), loads.number)


def _few_stages(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Few warps beside asynchronous copies: then copies in flight have to hide the latency."""
    copies, shared, threads, registers, share = inputs = (
        metrics.opcodes(*_ASYNC_COPIES),
        *metrics.of("static_shared", "static_threads", "static_registers", "static_occupancy"),
    )
    if not all_valid(inputs) or not copies.number or share.number > LOW_OCCUPANCY_PCT:
        return
    if metrics.chip not in ARCHITECTURES:
        return
    more = int(shared.number * _ONE_MORE_STAGE)
    if occupancy(metrics.chip, int(registers.number), int(threads.number), more).blocks:
        text = f"Occupancy is {share.text} at most, so copies in flight have to hide the latency"
        confidence = "a guess: whether warps wait for copies needs a measurement"
        statement = _static("stages", LEVER, text, inputs, 0.25, ONE_MORE_STAGE, confidence)
        yield _Fact(statement, -share.number)


def _copies(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Tiles that are copied through registers, on chips that can copy without."""
    copies, loads, stores = inputs = (
        metrics.opcodes(*_ASYNC_COPIES),
        metrics.opcodes("LDG"),
        metrics.opcodes("STS"),
    )
    if not all_valid(inputs):
        yield _Fact(OpenQuestion("copies", "whether tiles are copied asynchronously", inputs))
    elif not copies.number and loads.number and stores.number and _has_async_copy(metrics.chip):
        text = "Tiles go through registers: LDG and STS, and no asynchronous copy in the code"
        lever = "copy tiles with cp.async (or TMA), and compute on one while the next arrives"
        yield _Fact(_static("copies", LEVER, text, inputs, 0.5, lever), loads.number)


def _has_async_copy(chip: str | None) -> bool:
    """Whether the chip has cp.async. A chip that the table of architectures lacks is a newer one."""
    architecture = find_architecture(chip)
    return chip is not None and (architecture is None or architecture.async_copy)


def _local_arrays(metrics: LaunchMetrics) -> Iterator[_Fact]:
    """Local arrays, where no spills use local memory: for those there is another rule."""
    local, spills = inputs = (metrics.opcodes("LDL", "STL"), metrics["static_spills"])
    if all_valid(inputs) and local.number and not spills.number:
        text = f"LDL and STL in {local.number:.0f} places without a spill: an array lies in local memory"
        lever = "index the array with constants only (unroll its loops), so that it stays in registers"
        yield _Fact(_static("local", LEVER, text, inputs, 0.6, lever), local.number)


def _bank_conflicts(
    compared: ComparedSide, metrics: LaunchMetrics, traffic: TrafficByWorkload
) -> Iterator[_Fact]:
    """Conflicts by the model of the banks, with the source line that has most of them."""
    inputs = metrics.of("modelled_conflicts", "modelled_wavefronts", "modelled_ideal")
    conflicts, wavefronts, _ = inputs
    if not all_valid(inputs):
        question = "whether shared memory is accessed without conflicts"
        yield _Fact(OpenQuestion("conflicts", question, inputs))
        return
    if not conflicts.number or not wavefronts.number:
        return
    share = conflicts.number / wavefronts.number
    text = (
        f"{conflicts.text} of {wavefronts.text} shared-memory wavefronts are bank conflicts "
        f"({format_share(share)})"
    )
    accesses = traffic.get(compared.side.workload or "", ())
    worst = max(accesses, key=lambda access: access.wavefronts - access.ideal_wavefronts, default=None)
    if worst and worst.wavefronts > worst.ideal_wavefronts:
        times = worst.wavefronts / worst.ideal_wavefronts
        text += (
            f"; most by the {worst.kind} at {worst.file}:{worst.line}, {times:.2g} wavefronts for each that "
            "it needs"
        )
    statement = Statement(
        "conflicts",
        LEVER,
        text,
        inputs,
        Evidence.MODELLED,
        _with_record("conflicts", _BY_MODEL),
        SWIZZLE,
        weight=0.2 + 0.5 * share,
        techniques=techniques_of(SWIZZLE),
        refuted_by=REFUTED_BY["conflicts"],
    )
    yield _Fact(statement, share)


class _SideChanges(NamedTuple):
    """The facts of one side that differ from those of the baseline."""

    compared: ComparedSide
    metrics: LaunchMetrics
    changes: list[MetricChange]

    @property
    def has_worse(self) -> bool:
        return any(change.verdict is Verdict.WORSE for change in self.changes)


def _changes(sides: Sequence[_SideMetrics]) -> Iterator[Statement]:
    """What changed against the baseline, at the place where something got worse, else where most changed."""
    by_side = [changed for side in sides if (changed := _side_changes(side)) is not None]
    if not by_side:
        blocked = (side.compared for side in sides if _blocked_by(side.compared))
        if compared := next(blocked, None):
            yield _not_comparable(compared)
        return
    chosen = max(by_side, key=lambda side: (side.has_worse, len(side.changes)))
    compared, metrics, changes = chosen
    assert compared.comparison is not None
    evidence, against = compared.side.evidence, compared.comparison.a.label
    if changes:
        changes = sorted(
            changes, key=lambda change: (change.verdict is not Verdict.WORSE, _COMPARED.index(change.concept))
        )
        named = changes[:_MAX_CHANGES]
        inputs = metrics.of(*(change.concept for change in named))
        words = [f"{change.label} {formatting.from_to(change.a, change.b)}" for change in named]
        more = len(changes) - len(named)
        text = f"Against {against}: {', '.join(words)}{f' and {more} more' if more else ''}"
    else:
        concepts = [concept for concept in _COMPARED if concept.startswith(evidence.value)]
        inputs = metrics.of(*concepts)[:_MAX_CHANGES]
        text = f"{_SOURCES[evidence]} equal {against}'s"
    where = compared.place
    if others := [side.compared.place for side in by_side if side is not chosen]:
        where += f"; same comparison for: {brief_list(others)}"
    yield Statement(
        f"change:{evidence.value}",
        CHANGE,
        f"{text} ({where})",
        inputs,
        evidence,
        _EXACT if evidence is Evidence.STATIC else _BY_MODEL,
        weight=0.75 if chosen.has_worse else 0.4 if changes else 0.05,
    )


def _side_changes(side: _SideMetrics) -> _SideChanges | None:
    """The changes of one side; None where no launch pairs, or the two are not comparable."""
    compared, metrics = side
    pairs = compared.comparison.pairs if compared.comparison else ()
    pair = next((pair for pair in pairs if pair.holds(metrics.launch)), None)
    if pair is None or _blocked_by(compared):
        return None
    changes = [
        change for change in pair.metrics if change.concept in _COMPARED and not change.verdict.traits.quiet
    ]
    return _SideChanges(compared, metrics, changes)


def _blocked_by(compared: ComparedSide) -> str:
    """Why a side and the baseline are not comparable; "" where they are, or there is no baseline."""
    comparison = compared.comparison
    if comparison is None or comparison.comparable:
        return ""
    return "; ".join(difference.words for difference in comparison.blocked_by)


def _not_comparable(compared: ComparedSide) -> Statement:
    assert compared.comparison is not None
    evidence = compared.side.evidence
    question = (
        f"what changed against {compared.comparison.a.label} ({compared.place}): not comparable, "
        f"{_blocked_by(compared)}"
    )
    return Statement(
        f"change:{evidence.value}",
        UNKNOWN,
        f"Unknown: {question}.",
        (),
        evidence,
        "not comparable",
        question=question,
    )
