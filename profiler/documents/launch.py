"""One launch in the sections of Nsight Compute, beside a baseline launch if one is named, as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from profiler.advice.insights import Insights, find_insights
from profiler.advice.statement import Statement
from profiler.advice.subject import ComparedSide, Subject
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.resolve_code import open_report_of_launch
from profiler.compare.resolve_names import refuse_unused_filters
from profiler.documents.asking import side_of
from profiler.documents.blocks import (
    Block,
    Findings,
    Fold,
    Gap,
    Heading,
    Hinted,
    Item,
    Line,
    Name,
    Notes,
    Number,
    Phrase,
    Table,
    plain,
)
from profiler.documents.document import Document
from profiler.documents.insights import head_words
from profiler.documents.launch_inside import HotPlaces, InsideLaunch, dominant_stall, hot_table, inside_launch
from profiler.documents.launches import select_launches
from profiler.errors import CannotJudge, ProfilerError, UnknownName
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch, place_of_most_time
from profiler.evidence.library_kernels import is_library_launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import NCU_DURATION, Evidence, State, Value
from profiler.explain.launch_numbers import LaunchNumber
from profiler.explain.memory_traffic import MemoryLink, MemoryTraffic
from profiler.explain.ncu_sections import LaunchSections, launch_sections
from profiler.explain.occupancy_whatif import OccupancyAnalysis
from profiler.reports.read import launch_detail
from profiler.reports.rule_changes import plain_message, rank_rules, rule_title

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

_OPCODES_SHOWN = 12
_RULES_SHOWN = 12  # JSON has all


@dataclass(frozen=True)
class LaunchOfSide:
    """One launch, its label (range/kernel#n) among those of its side, and the side."""

    side: Side
    label: str
    launch: Launch

    @property
    def chip(self) -> str | None:
        """The chip it ran on ("sm_90"); of a compiled function the architecture, None where nobody says."""
        if self.side.evidence is Evidence.MEASURED:
            return chip_of(self.side.capability_of(self.launch))
        return None

    @property
    def own_side(self) -> Side:
        """The side as if it held this launch alone."""
        place = self.side.launches.index(self.launch)
        ids = self.side.result_ids[place : place + 1]
        return replace(self.side, launches=(self.launch,), result_ids=ids)


@dataclass(frozen=True, repr=False)
class LaunchDocument(Document):
    """The sections of one launch, what they say, and what was not collected."""

    subject: LaunchOfSide
    sections: LaunchSections
    insights: Insights
    baseline: LaunchOfSide | None = None
    comparison: Comparison | None = None  # of this pair alone
    inside: InsideLaunch = field(default_factory=InsideLaunch)
    total: int = 1  # launches of the side

    columns = ("section", "name", "metric", "value", "unit", "state", "baseline", "derived_from")

    @property
    def title(self) -> str:
        """The launch, its side and its GPU."""
        return plain(self.heading)

    @property
    def heading(self) -> tuple[str, ...]:
        """The title with its names as names."""
        side = self.subject.side
        gpu = f": {side.gpu_of(self.subject.launch) or 'GPU unknown'}"
        against = (", against ", Name(self.baseline_name)) if self.baseline else ()
        return (Name(self.subject.label), " of ", Name(side.label), gpu, *against)

    @property
    def baseline_name(self) -> str:
        """What the baseline launch is called: its side, and its label where that differs."""
        if self.baseline is None:
            return ""
        same = self.baseline.label == self.subject.label
        return self.baseline.side.label + ("" if same else f" {self.baseline.label}")

    @property
    def statements(self) -> tuple[Statement, ...]:
        """At most six statements, what concerns most of the time first."""
        return self.insights.statements

    @property
    def sentences(self) -> Sequence[str]:
        """The statements in words."""
        return [statement.text for statement in self.statements]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a number, in base units; a state other than present has no value."""
        return [
            (
                section,
                number.label,
                number.metric,
                number.value.text if number.value.number is None else number.value.number,
                number.value.unit,
                formatting.state_words(number.value),
                None if number.baseline is None else number.baseline.number,
                None if number.value.derivation is None else number.value.derivation.name,
            )
            for section, number in self.numbers()
        ]

    def numbers(self) -> Iterator[tuple[str, LaunchNumber]]:
        """Every number with the name of its section, in the order of the page."""
        sections = self.sections
        for name, numbers in (
            ("facts", sections.facts),
            ("speed of light", sections.speed_of_light),
            ("memory", tuple(memory_numbers(sections.memory))),
            ("warp states", (sections.warp_states.total, *sections.warp_states.states)),
            ("instruction mix", sections.instruction_mix),
            ("schedulers", sections.schedulers),
        ):
            if sections.evidence is Evidence.MEASURED or name in ("facts", "instruction mix"):
                yield from ((name, number) for number in numbers)

    def _content(self) -> dict[str, object]:
        """Numbers are in base units; null with a state where there is none."""
        sections, launch, side = self.sections, self.subject.launch, self.subject.side
        occupancy = sections.occupancy
        pair = self.comparison.pairs[0] if self.comparison and self.comparison.pairs else None
        return {
            "source": side.label,
            "gpu": side.gpu_of(self.subject.launch),
            "chip": self.subject.chip,
            "ncu_version": side.launch_session.ncu_version,
            "evidence": sections.evidence,
            "launch": {
                "kernel": launch.base_name,
                "part": self.subject.label,
                "demangled": launch.demangled,
                "ordinal": launch.ordinal,
                "of": self.total,
                "grid": launch.grid,
                "block": launch.block,
            },
            "baseline": None
            if self.baseline is None
            else {
                "source": self.baseline.side.label,
                "part": self.baseline.label,
                "ordinal": self.baseline.launch.ordinal,
                "verdict": pair.verdict.value if pair else None,
            },
            "statements": [statement.to_dict() for statement in self.statements],
            "hidden_statements": self.insights.hidden,
            "facts": _numbers(sections.facts),
            "nearest_peak": sections.nearest_peak.metric if sections.nearest_peak else None,
            "speed_of_light": _numbers(sections.speed_of_light),
            "memory": _memory_dict(sections.memory) if sections.evidence is Evidence.MEASURED else None,
            "warp_states": {
                "by": "samples" if sections.warp_states.is_sampled else "counters",
                "total": _number_dict(sections.warp_states.total),
                "states": _numbers(sections.warp_states.states),
            },
            "instruction_mix": _numbers(sections.instruction_mix),
            "occupancy": None
            if occupancy is None
            else {
                "achieved": formatting.as_json(occupancy.achieved),
                "theoretical": formatting.as_json(occupancy.theoretical),
                "max_warps": occupancy.max_warps,
                "limits": [
                    {
                        "name": limiter.name,
                        "metric": limiter.metric,
                        **formatting.as_json(limiter.blocks),
                        "binds": limiter.binds,
                    }
                    for limiter in occupancy.limiters
                ],
            },
            "schedulers": _numbers(sections.schedulers),
            "timelines": {
                name: {
                    "unit": timeline.unit,
                    "times_ns": timeline.times_ns.tolist(),
                    "values": [_finite(value) for value in timeline.values.tolist()],
                }
                for name, timeline in self.inside.timelines.items()
            },
            "rules": [
                {
                    "rule": rule.identifier,
                    "title": rule_title(rule),
                    "section": rule.section,
                    "kind": rule.kind,
                    "message": plain_message(rule.message),
                    "speedup_pct": rule.speedup_pct,
                    "speedup_scope": rule.speedup_scope,
                }
                for rule in rank_rules(launch.rules)
            ],
            "hot_places": None if self.inside.hot is None else _hot_dict(self.inside.hot),
            "missing": [
                {
                    "what": section.what,
                    "state": section.state,
                    "command": section.command or None,
                    "note": section.note or None,
                }
                for section in sections.missing
            ],
            "not_read": self.inside.reason or None,
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What the launch says, then its sections folded, then what was not collected.

        With `everything` every opcode and rule.
        """
        yield from _blocks(self, everything=everything)


def launch_of_name(
    name: str,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    against: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    data: str | None = None,
) -> LaunchDocument:
    """The longest launch that fits `kernel` of a report file, run or version.

    With `against` beside the longest launch of that kernel there. Raises UnknownName, UnreadableReport, and
    CannotJudge for a version without results.
    """
    refuse_unused_filters((name,) if against is None else (name, against), workload)
    side = side_of(name, store_opener, workload, gpu, data)
    subject = longest_launch(side, kernel)
    baseline = None
    noise, pairing = UNKNOWN_NOISE, NO_PAIRS
    if against is not None:
        baseline_side = side_of(against, store_opener, workload, gpu, data)
        baseline = launch_like(baseline_side, subject.launch, kernel)
        noise, pairing = NoiseModel.of_store(store_opener, data), Pairing.of_data(data)
    inside = InsideLaunch()
    if side.evidence is Evidence.MEASURED:
        try:
            with open_report_of_launch(side, name, subject.launch, store_opener) as path:
                if path.suffix.lower() != ".csv":
                    inside = inside_launch(launch_detail(path, subject.launch.ordinal))
        except ProfilerError as error:
            inside = InsideLaunch(reason=str(error))
    return launch_document(subject, table, baseline, noise=noise, pairing=pairing, inside=inside)


def launch_document(
    subject: LaunchOfSide,
    table: MetricTable,
    baseline: LaunchOfSide | None = None,
    *,
    noise: NoiseModel = UNKNOWN_NOISE,
    pairing: Pairing = NO_PAIRS,
    inside: InsideLaunch | None = None,
) -> LaunchDocument:
    """The document of a launch beside a baseline launch.

    Two launches of kernels with different names stand side by side, and only those that `pairing` holds for
    one get a verdict. Raises CannotJudge where the two are of different evidence.
    """
    side = subject.side
    is_measured = side.evidence is Evidence.MEASURED
    comparison = None
    if baseline is not None:
        if baseline.side.evidence is not side.evidence:
            raise CannotJudge(
                f"{subject.label} is {side.evidence} and {baseline.label} {baseline.side.evidence}: "
                "kinds of evidence are not mixed"
            )
        sides = baseline.own_side, subject.own_side
        comparison = Judge(table, noise, pairing).sides(*sides)
    own = ComparedSide(subject.own_side, comparison)
    advised = Subject(
        side.label,
        own if is_measured else None,
        () if is_measured else (own,),
        side.wrong,
        baseline.side.label if baseline else None,
        "asked for" if baseline else "no baseline was given",
    )
    sections = launch_sections(
        subject.launch,
        table,
        subject.chip,
        baseline=baseline.launch if baseline else None,
        baseline_chip=baseline.chip if baseline else None,
        evidence=side.evidence,
        architecture=side.gpu if side.evidence is Evidence.STATIC else None,
    )
    insights = find_insights(advised, table)
    total = len(side.launches)
    return LaunchDocument(subject, sections, insights, baseline, comparison, inside or InsideLaunch(), total)


def longest_launch(side: Side, kernel: str | None = None) -> LaunchOfSide:
    """The longest launch of the kernel with most time, of those that fit `kernel`.

    Kernels of libraries that stand beside a side's own are passed over where `kernel` is None. Raises
    UnknownName where there is none.
    """
    launches = select_launches(side, kernel).launches
    own = [item for item in launches if kernel is not None or not is_library_launch(item[1])] or launches
    if not own:
        raise UnknownName(f"{side.label} has no launch with counters: profile it, or name another")
    times = [launch.values.number(NCU_DURATION) for _, launch in own]
    return LaunchOfSide(side, *own[place_of_most_time([launch.base_name for _, launch in own], times)])


def launch_like(side: Side, launch: Launch, kernel: str | None = None) -> LaunchOfSide:
    """The launch of a side that another one is compared with: of the same kernel, by label or the longest.

    Without such a kernel the longest that fits `kernel`; UnknownName where that is not given.
    """
    selection = select_launches(side)
    same_kernel = [item for item in selection.launches if item[1].base_name == launch.base_name]
    if same_kernel:
        same_place = [item for item in same_kernel if item[1].nvtx == launch.nvtx] or same_kernel
        chosen = replace(selection, launches=tuple(same_place)).longest(1)
        return LaunchOfSide(side, *chosen.launches[0])
    if kernel is not None:
        return longest_launch(side, kernel)
    names = sorted({other.base_name for other in side.launches})
    raise UnknownName(f"{side.label} has no launch of {launch.base_name}; there are {brief_list(names)}")


def memory_numbers(memory: MemoryTraffic) -> Iterator[LaunchNumber]:
    """Every number of the memory hierarchy, link by link, then level by level."""
    for link in memory.links:
        yield replace(
            link.moved, label=f"{link.name}: {'bytes' if link.is_counted_in_bytes else 'wavefronts'}"
        )
        for number in (link.rate, link.share, *link.details):
            if number is not None:
                yield replace(number, label=f"{link.name}: {number.label}")
    for level in memory.levels:
        for number in (level.hit, level.throughput, *level.details):
            if number is not None:
                yield replace(number, label=f"{level.name}: {number.label}")
    yield from (*memory.beyond, *memory.notes)


def _numbers(numbers: Sequence[LaunchNumber]) -> list[dict[str, object]]:
    return [_number_dict(number) for number in numbers]


def _number_dict(number: LaunchNumber) -> dict[str, object]:
    return {
        "label": number.label,
        "metric": number.metric,
        "concept": number.concept or None,
        **formatting.as_json(number.value),
        "baseline": None if number.baseline is None else formatting.as_json(number.baseline),
    }


def _memory_dict(memory: MemoryTraffic) -> dict[str, object]:
    return {
        "levels": [
            {
                "name": level.name,
                "hit": level.hit and _number_dict(level.hit),
                "throughput": level.throughput and _number_dict(level.throughput),
                "details": _numbers(level.details),
            }
            for level in memory.levels
        ],
        "links": [_link_dict(link) for link in memory.links],
        "beyond": _numbers(memory.beyond),
        "notes": _numbers(memory.notes),
    }


def _link_dict(link: MemoryLink) -> dict[str, object]:
    return {
        "name": link.name,
        "from": link.source,
        "to": link.target,
        "moved": _number_dict(link.moved),
        "rate": link.rate and _number_dict(link.rate),
        "share_of_peak": link.share and _number_dict(link.share),
        "details": _numbers(link.details),
    }


def _hot_dict(hot: HotPlaces) -> dict[str, object]:
    return {
        "places": [
            {
                "place": spot.location.words,
                "text": spot.text,
                "samples": spot.samples,
                "share": (spot.samples or 0.0) / hot.samples,
                "waits_for": stall[0] if (stall := dominant_stall(spot)) else None,
                "executed": spot.executed,
            }
            for spot in hot.places
        ],
        "samples": hot.samples,
        "hidden": hot.hidden,
    }


def _finite(value: float) -> float | None:
    """A sample for JSON, which knows no NaN."""
    return value if math.isfinite(value) else None


def _blocks(document: LaunchDocument, *, everything: bool) -> Iterator[Block]:
    """What the launch says, then each section that has numbers, then what was not collected."""
    yield Heading(document.heading, 1)
    for number, statement in enumerate(document.statements, 1):
        yield Heading(f"{number}. {head_words(statement)}")
        yield Line(statement.text)
        if statement.lever:
            yield Line(f"→ {statement.lever}")
    yield Fold("sections", [*_section_blocks(document, everything)])
    if document.sections.missing:
        yield Heading("not here")
        yield missing_table(document)


def missing_table(document: LaunchDocument) -> Table:
    """What the answer has no numbers for, why, and the command that collects it."""
    rows = [
        (section.what, Gap(section.state), Name(section.command), section.note)
        for section in document.sections.missing
    ]
    return Table(("what", "state", "what collects it", ""), rows)


def _section_blocks(document: LaunchDocument, everything: bool) -> Iterator[Block]:
    sections = document.sections
    yield from _number_blocks(document, "facts", sections.facts)
    yield from _number_blocks(document, "speed of light", sections.speed_of_light)
    if sections.memory.is_collected:
        yield from _number_blocks(document, "memory", tuple(memory_numbers(sections.memory)))
    states = sections.warp_states
    if states.states:
        words = "samples by warp state" if states.is_sampled else "warp states, cycles per issue"
        yield from _number_blocks(document, words, (states.total, *map(_in_cycles, states.states)))
    mix = sections.instruction_mix
    shown = len(mix) if everything else _OPCODES_SHOWN
    yield from _number_blocks(document, "instruction mix", mix[:shown])
    if hidden := len(mix[shown:]):
        yield Notes([f"and {hidden} opcodes that are executed less"])
    yield from _occupancy_blocks(document)
    yield from _number_blocks(document, "schedulers, per scheduler and cycle", sections.schedulers)
    yield from _inside_blocks(document.inside)
    yield from _rule_blocks(document, everything)


def _number_blocks(document: LaunchDocument, name: str, numbers: Sequence[LaunchNumber]) -> Iterator[Block]:
    shown = [number for number in numbers if number.value.state is State.PRESENT]
    if not shown:
        return
    has_baseline = document.baseline is not None
    beside = ("baseline", "change") if has_baseline else ()
    yield Heading(name)
    rows = [_number_row(number, has_baseline=has_baseline) for number in shown]
    yield Table(("", "value", *beside, "ncu metric"), rows, right=(1, 2, 3)[: 1 + len(beside)])


def _in_cycles(number: LaunchNumber) -> LaunchNumber:
    """A stall in the unit of its heading: ncu calls that of these ratios "inst", and they are cycles."""
    value, baseline = (
        Value(one.number, "cycle", state=one.state) if one is not None and one.unit == "inst" else one
        for one in (number.value, number.baseline)
    )
    return replace(number, value=value or number.value, baseline=baseline)


def _number_row(number: LaunchNumber, *, has_baseline: bool) -> tuple[str, ...]:
    """Label, value, baseline and change where there is a baseline, and metric, for a table of text."""
    label = "  " * number.is_part + formatting.label(number.label, number.value)
    beside: tuple[str, ...] = ()
    if has_baseline:
        known = number.baseline is not None
        baseline = str(formatting.quantity(number.baseline)) if known and number.baseline else "–"
        change = formatting.change(number.baseline, number.value) if known and number.baseline else ""
        beside = (baseline, change)
    return (label, str(formatting.quantity(number.value)), *beside, number.metric)


def _occupancy_blocks(document: LaunchDocument) -> Iterator[Block]:
    if document.sections.occupancy is not None:
        yield Heading("occupancy")
        yield occupancy_table(document.sections.occupancy)


def occupancy_table(occupancy: OccupancyAnalysis) -> Table:
    """Achieved and theoretical occupancy, then how many blocks an SM each resource allows."""
    is_measured = occupancy.evidence is Evidence.MEASURED
    percent, max_warps = occupancy.theoretical.number, occupancy.max_warps
    warps = ""
    if percent is not None and max_warps is not None:
        warps = f"{formatting.digits(percent * max_warps / 100)} of {formatting.digits(max_warps)} warps"
    rows: list[Sequence[Phrase]] = [
        ("achieved", Number(occupancy.achieved) if is_measured else Gap("not measured"), ""),
        ("theoretical", Number(occupancy.theoretical), warps),
    ]
    limits = "limits, tied" if len(occupancy.binding) > 1 else "limits"
    for limiter in occupancy.limiters:
        word = limits if limiter.binds else ""
        if limiter.blocks.number is None and occupancy.binding:  # it may be the lowest
            word = "may limit as well"
        rows.append((Hinted(f"block limit: {limiter.name}", limiter.metric), Number(limiter.blocks), word))
    return Table(("", "", ""), rows, right=(1,))


def _inside_blocks(inside: InsideLaunch) -> Iterator[Block]:
    """Hot places and timelines, which are read from the report's file."""
    if inside.reason:
        yield Line(f"not read from the report: {inside.reason}")
    if inside.timelines:
        points = max(len(timeline.values) for timeline in inside.timelines.values())
        yield Line(f"timeline: {len(inside.timelines)} metrics, up to {points} points (--json has them)")
    if inside.hot is None:
        return
    yield Heading(f"hot places, of {formatting.digits(inside.hot.samples)} samples")
    yield hot_table(inside.hot)
    if inside.hot.hidden:
        yield Notes([f"and {inside.hot.hidden} places with fewer: profiler sass"])


def _rule_blocks(document: LaunchDocument, everything: bool) -> Iterator[Block]:
    rules = rank_rules(document.subject.launch.rules)
    if not rules:
        return
    yield Heading("NVIDIA's rules")
    shown = len(rules) if everything else _RULES_SHOWN
    items = []
    for rule in rules[:shown]:
        gain = "" if rule.speedup_pct is None else f", {rule.speedup_pct:.1f} % {rule.speedup_scope or ''}"
        subject = f"{rule.kind}: {rule_title(rule)}{gain.rstrip()}"
        items.append(Item(subject, [plain_message(rule.message).strip()]))
    yield Findings(items)
    if hidden := len(rules[shown:]):
        yield Notes([f"and {hidden} more: --json"])
