"""What the compiler's code and a run on the CPU say of a version: budgets, spills, opcodes, conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profiler.advice import stall_levers
from profiler.advice.statement import (
    BOTTLENECK,
    CHANGE,
    LEVER,
    UNKNOWN,
    LaunchInputs,
    MetricInput,
    OpenQuestion,
    Statement,
    between,
    valid,
)
from profiler.advice.subject import ComparedSide, SharedTraffic
from profiler.build.occupancy import occupancy
from profiler.compare import MetricChange
from profiler.evidence import (
    ARCHITECTURES,
    Evidence,
    Launch,
    MetricTable,
    Side,
    brief_list,
    find_architecture,
    formatting,
    natural_key,
)
from profiler.statistics import Verdict

LOW_PCT = 25.0  # theoretical occupancy at which room for another block is worth a word
STEP = 0.25  # a cut in registers or shared memory that is larger than this is another kernel
_ASYNC = ("LDGSTS", "UTMALDG", "UBLKCP")  # copies to shared memory that pass no register
_EXACT = "exact, by the compiler"
_BY_MODEL = "by the model of the banks, on small workloads"
_SHOWN_CHANGES = 8
# What of a version's static facts a reader asks for first.
_CHANGES = (
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


def fact_statements(
    cells: Sequence[ComparedSide], table: MetricTable, traffic: SharedTraffic
) -> tuple[Statement | OpenQuestion, ...]:
    """Every statement that static and modelled facts carry; each stands for all places, naming the worst."""
    ordered = sorted(cells, key=lambda cell: natural_key(cell.place))
    static = [(cell, _reading(cell, table)) for cell in ordered if cell.side.evidence is Evidence.STATIC]
    modelled = [(cell, _reading(cell, table)) for cell in ordered if cell.side.evidence is Evidence.MODELLED]
    found: list[Statement | OpenQuestion] = []
    for rule in (_budget, _spills, _room, _tensor, _copies, _local):
        found += _worst([(cell, *one) for cell, reading in static for one in rule(reading)])
    found += _worst(
        [(cell, *one) for cell, reading in modelled for one in _conflicts(cell, reading, traffic)]
    )
    for kind in (static, modelled):
        found += _changes(kind)
    return tuple(found)


def main_launch(side: Side) -> Launch:
    """The main function of a version that has several; the facts of a run on the CPU are one."""
    return next((one for one in side.launches if one.base_name == "main"), side.launches[0])


def _reading(cell: ComparedSide, table: MetricTable) -> LaunchInputs:
    launch = main_launch(cell.side)
    pairs = cell.comparison.pairs if cell.comparison else ()
    before = next((pair.a for pair in pairs if pair.b is launch), None)
    chip = cell.side.gpu.rstrip("af") if cell.side.gpu and cell.side.gpu.startswith("sm_") else None
    return LaunchInputs(launch, table, chip, before, mix="static__opcode")


def _worst(
    found: Sequence[tuple[ComparedSide, Statement | OpenQuestion, float]],
) -> Iterator[Statement | OpenQuestion]:
    """Of equal statements from several places the one with the highest severity, which names the others."""
    by_id: dict[str, list[tuple[float, ComparedSide, Statement]]] = {}
    gaps: dict[str, OpenQuestion] = {}
    for cell, one, severity in found:
        if isinstance(one, OpenQuestion):
            gaps.setdefault(one.id, one)
        else:
            by_id.setdefault(one.id, []).append((severity, cell, one))
    for several in by_id.values():
        _, cell, one = max(several, key=lambda entry: entry[0])
        more = len(several) - 1
        where = cell.place + (f" and {more} more place{'s' * (more > 1)}" if more else "")
        yield Statement(
            one.id,
            one.kind,
            f"{one.text} ({where})",
            one.inputs,
            one.evidence,
            one.confidence,
            one.lever,
            weight=one.weight,
        )
    yield from (gap for name, gap in gaps.items() if name not in by_id)


def _static(
    name: str, kind: str, text: str, inputs: tuple[MetricInput, ...], weight: float, lever: str = ""
) -> Statement:
    known = lever if lever and valid(inputs) else None
    return Statement(name, kind, text, inputs, Evidence.STATIC, _EXACT, known, weight=weight)


_Rule = Iterator[tuple[Statement | OpenQuestion, float]]  # with a severity among places


def _budget(reading: LaunchInputs) -> _Rule:
    told = reading.named("static__over_budget", "over budget")
    if told.value.text not in (None, "", "nothing"):  # a text, so never a valid number
        text = f"Over its budget: {told.value.text}"
        yield _static("budget", BOTTLENECK, text, (told,), 0.9), 0.0


def _spills(reading: LaunchInputs) -> _Rule:
    spills, registers = reading.of("static_spills", "static_registers")
    if not spills.valid:
        yield OpenQuestion("spills", "whether registers spill", (spills,)), 0.0
    elif spills.number:
        text = f"{spills.shown} of registers spill at {registers.shown} a thread"
        yield (
            _static("spills", LEVER, text, (spills, registers), 0.8, stall_levers.FEWER_REGISTERS),
            spills.number,
        )


def _room(reading: LaunchInputs) -> _Rule:
    """How far the kernel is from one more block on an SM."""
    names = ("static_registers", "static_threads", "static_shared", "static_occupancy", "static_blocks")
    registers, threads, shared, pct, blocks = inputs = reading.of(*names)
    if not valid(inputs) or reading.chip not in ARCHITECTURES:
        yield OpenQuestion("room", "how many blocks fit on an SM", inputs), 0.0
        return
    if pct.number > LOW_PCT or not blocks.number:
        return
    has = (int(registers.number), int(threads.number), int(shared.number))
    fits = occupancy(reading.chip, *has)
    if fits.blocks != blocks.number:
        return
    cuts = [
        (name, step, lever)
        for name, step, lever in (
            ("registers", _registers_for(reading.chip, *has, fits.blocks), stall_levers.FEWER_REGISTERS),
            (
                "bytes of shared memory",
                _shared_for(reading.chip, *has, fits.blocks),
                stall_levers.LESS_SHARED,
            ),
        )
        if step
    ]
    let = "lets" if len(fits.limiters) == 1 and not fits.limiters[0].endswith("s") else "let"
    few = f"{fits.blocks} block{'s' * (fits.blocks > 1)} of {has[1]} threads"
    limited = f"{' and '.join(fits.limiters)} {let} {few}"
    text = f"Occupancy is {pct.shown} at most: {limited} onto an SM"
    lever = ""
    if cuts:
        name, step, lever = cuts[0]
        now = has[0] if name == "registers" else has[2]
        text += f"; {formatting.digits(step)} {name} in place of {formatting.digits(now)} would fit one more"
    sure = "exact for the room; whether more warps help only a measurement tells"
    one = _static("room", LEVER if lever else BOTTLENECK, text, inputs, 0.3, lever)
    yield Statement(one.id, one.kind, text, inputs, one.evidence, sure, one.lever, weight=0.3), -pct.number


def _registers_for(chip: str, registers: int, threads: int, shared: int, blocks: int) -> int | None:
    """The most registers with which one block more fits, within STEP; None where that alone does not do."""
    for less in range(registers - 1, int(registers * (1 - STEP)) - 1, -1):
        if occupancy(chip, less, threads, shared).blocks > blocks:
            return less
    return None


def _shared_for(chip: str, registers: int, threads: int, shared: int, blocks: int) -> int | None:
    """The most bytes of shared memory with which one block more fits, within STEP, in steps of its unit."""
    unit = ARCHITECTURES[chip].shared_unit
    for less in range(shared - shared % unit, int(shared * (1 - STEP)) - 1, -unit):
        if less < shared and occupancy(chip, registers, threads, less).blocks > blocks:
            return less
    return None


def _tensor(reading: LaunchInputs) -> _Rule:
    matrix, fused, every = inputs = (
        reading.opcodes(),
        reading.opcodes("FFMA", "HFMA2"),
        reading.every_opcode,
    )
    if not every.valid:
        yield OpenQuestion("tensor", "whether the code has tensor-core instructions", (every,)), 0.0
    elif not matrix.number and fused.number:
        text = f"No tensor-core instruction in the code, but FFMA and HFMA2 in {fused.number:.0f} places"
        yield _static("tensor:unused", LEVER, text, inputs, 0.7, stall_levers.MATRIX), fused.number


def _copies_past_registers(chip: str | None) -> bool:
    """Whether the chip has cp.async; one that the table of architectures lacks is newer than those."""
    architecture = find_architecture(chip)
    return chip is not None and (architecture is None or architecture.async_copy)


def _copies(reading: LaunchInputs) -> _Rule:
    """Tiles that travel through registers, on chips that can copy past them."""
    copies, loads, stores = inputs = (
        reading.opcodes(*_ASYNC),
        reading.opcodes("LDG"),
        reading.opcodes("STS"),
    )
    if not valid(inputs):
        yield OpenQuestion("copies", "whether tiles are copied asynchronously", inputs), 0.0
    elif not copies.number and loads.number and stores.number and _copies_past_registers(reading.chip):
        text = "Tiles go through registers: LDG and STS, and no asynchronous copy in the code"
        lever = "copy tiles with cp.async (or TMA), and compute on one while the next arrives"
        yield _static("copies", LEVER, text, inputs, 0.5, lever), loads.number


def _local(reading: LaunchInputs) -> _Rule:
    """Local arrays; what spills is said by the spills."""
    local, spills = inputs = (reading.opcodes("LDL", "STL"), reading["static_spills"])
    if valid(inputs) and local.number and not spills.number:
        text = f"LDL and STL in {local.number:.0f} places without a spill: an array lies in local memory"
        lever = "index the array with constants only (unroll its loops), so that it stays in registers"
        yield _static("local", LEVER, text, inputs, 0.6, lever), local.number


def _conflicts(cell: ComparedSide, reading: LaunchInputs, traffic: SharedTraffic) -> _Rule:
    conflicts, wavefronts, _ = inputs = reading.of(
        "modelled_conflicts", "modelled_wavefronts", "modelled_ideal"
    )
    if not valid(inputs):
        yield OpenQuestion("conflicts", "whether shared memory is accessed without conflicts", inputs), 0.0
        return
    if not conflicts.number or not wavefronts.number:
        return
    share = conflicts.number / wavefronts.number
    text = f"{conflicts.shown} of {wavefronts.shown} shared-memory wavefronts are bank conflicts"
    text = f"{text} ({share:.0%})".replace("%", " %")
    rows = traffic.get(cell.side.workload or "", ())
    worst = max(rows, key=lambda row: row[4] - row[5], default=None)
    if worst and worst[4] > worst[5]:
        file, line, kind, _, took, best = worst
        text += f"; most by the {kind} at {file}:{line}, {took / best:.2g} wavefronts for each that it needs"
    lever = stall_levers.SWIZZLE
    one = Statement(
        "conflicts", LEVER, text, inputs, Evidence.MODELLED, _BY_MODEL, lever, weight=0.2 + 0.5 * share
    )
    yield one, share


def _changes(found: Sequence[tuple[ComparedSide, LaunchInputs]]) -> Iterator[Statement]:
    """What moved against the baseline, at the place where something got worse, else where most moved."""
    moved: list[tuple[tuple[bool, int], ComparedSide, LaunchInputs, list[MetricChange]]] = []
    for cell, reading in found:
        pairs = cell.comparison.pairs if cell.comparison else ()
        pair = next((pair for pair in pairs if pair.b is reading.launch), None)
        if pair is None or cell.comparison is None or not cell.comparison.comparable:
            continue
        changes = [one for one in pair.metrics if one.concept in _CHANGES and not one.verdict.traits.quiet]
        worse = any(one.verdict is Verdict.WORSE for one in changes)
        moved.append(((worse, len(changes)), cell, reading, changes))
    blocked = next((cell for cell, _ in found if cell.comparison and not cell.comparison.comparable), None)
    if not moved and blocked and blocked.comparison:
        why = "; ".join(one.words for one in blocked.comparison.blocked_by)
        kind = blocked.side.evidence
        what = f"what changed against {blocked.comparison.a.label} ({blocked.place})"
        text = f"Unknown: {what}: not comparable, {why}."
        yield Statement(f"change:{kind.value}", UNKNOWN, text, (), kind, "not comparable")
    if not moved:
        return
    _, cell, reading, changes = max(moved, key=lambda entry: entry[0])
    assert cell.comparison is not None
    evidence = cell.side.evidence
    name, against = f"change:{evidence.value}", cell.comparison.a.label
    if not changes:
        inputs = reading.of(*(one for one in _CHANGES if one.startswith(evidence.value)))[:_SHOWN_CHANGES]
        text = f"Nothing moved against {against} in what {_WHO[evidence]} says"
    else:
        changes.sort(key=lambda one: (one.verdict is not Verdict.WORSE, _CHANGES.index(one.concept)))
        shown = changes[:_SHOWN_CHANGES]
        inputs = reading.of(*(one.concept for one in shown))
        told = [f"{one.label} {between(one.a, one.b)}" for one in shown]
        more = len(changes) - len(shown)
        text = f"Against {against}: {', '.join(told)}{f' and {more} more' if more else ''}"
    others = [other.place for _, other, _, _ in moved if other is not cell]
    where = f"{cell.place}; also held against each other: {brief_list(others)}" if others else cell.place
    sure = _EXACT if evidence is Evidence.STATIC else _BY_MODEL
    worse = any(one.verdict is Verdict.WORSE for one in changes)
    weight = 0.75 if worse else 0.4 if changes else 0.05
    yield Statement(name, CHANGE, f"{text} ({where})", inputs, evidence, sure, weight=weight)


_WHO = {Evidence.STATIC: "the compiler", Evidence.MODELLED: "the run on the CPU"}
