"""What metrics.txt declares, what collecting it costs on a chip, and whether its names exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.documents.blocks import Block, Line, Table
from profiler.documents.document import Document
from profiler.errors import Exit
from profiler.evidence import chip_metrics, ncu_names, nvperf
from profiler.evidence.derived_forms import DerivedForm
from profiler.evidence.gpu_arch import ARCHITECTURES
from profiler.evidence.metric_table import Alternative, Metric, MetricTable, load_with_problems
from profiler.evidence.values import Evidence


@dataclass(frozen=True, repr=False)
class MetricsDocument(Document):
    """The metrics of a table that are of a tier."""

    table: MetricTable
    tier: str = "full"

    title = "Metrics"
    columns = (
        "group",
        "concept",
        "label",
        "unit",
        "better",
        "threshold",
        "threshold_pp",
        "tier",
        "ncu_names",
        "derived_forms",
        "whole",
        "whole_share",
    )

    @property
    def metrics(self) -> list[Metric]:
        """In the table's order; the lean ones, or all."""
        return _of_tier(self.table, self.tier)

    @property
    def sentences(self) -> Sequence[str]:
        """How many there are, and what is captured besides."""
        captured = len(self.table.captured)
        return (f"{self.table.path}: {len(self.metrics)} metrics, {captured} captured",)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a metric; the threshold is a share, or in points where `threshold_pp` has one.

        A change must exceed `whole_share` of `whole` too, where there is one.
        """
        return [
            (
                metric.group,
                metric.concept,
                metric.label,
                metric.unit,
                metric.better,
                metric.threshold,
                metric.threshold_pp,
                metric.tier,
                ", ".join(alternative.name for alternative in metric.alternatives),
                "; ".join(form.name for form in metric.forms),
                metric.whole or None,
                metric.whole_share if metric.whole else None,
            )
            for metric in self.metrics
        ]

    def _content(self) -> dict[str, object]:
        """The metrics, each with its ncu names, its derived forms, and the chips of these; null: every chip.

        `most_off_pct` is null where a form gives the counter's own number, else how far it may be off.
        """
        metrics = [
            {
                "concept": metric.concept,
                "label": metric.label,
                "unit": metric.unit,
                "better": metric.better,
                "threshold": metric.threshold,
                "threshold_pp": metric.threshold_pp,
                "whole": metric.whole or None,
                "whole_share": metric.whole_share if metric.whole else None,
                "group": metric.group,
                "tier": metric.tier,
                "metrics": [
                    {
                        "metric": alternative.name,
                        "chips": [chip for chip in ARCHITECTURES if chip in alternative.chips] or None,
                    }
                    for alternative in metric.alternatives
                ],
                "derived": [
                    {
                        "derived_from": form.derivation.formula,
                        "most_off_pct": form.derivation.most_off_pct,
                        "chips": [chip for chip in ARCHITECTURES if chip in form.chips] or None,
                    }
                    for form in metric.forms
                ],
            }
            for metric in self.metrics
        ]
        return {"file": str(self.table.path), "metrics": metrics, "captured": list(self.table.captured)}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table of the metrics by group: a row each, and one more for each further ncu name."""
        rows: list[tuple[str, ...]] = []
        group = ""
        for metric in self.metrics:
            shown_group = metric.group if metric.group != group else ""
            facts = (metric.label, metric.unit, metric.better, _threshold(metric), metric.tier)
            first, *others = [
                *map(_with_chips, metric.alternatives),
                *map(_with_chips, metric.forms),
            ]
            rows.append((shown_group, metric.concept, *facts, first))
            rows += [(*[""] * 7, name) for name in others]
            group = metric.group
        rows += [("captured", *[""] * 6, name) for name in self.table.captured]
        yield Table(("group", "concept", "label", "unit", "better", "threshold", "tier", "ncu metric"), rows)


@dataclass(frozen=True, repr=False)
class MetricRequestDocument(Document):
    """What ncu is to collect on a chip, and what that costs."""

    chip: str
    tier: str
    names: Mapping[str, str]  # ncu name -> concept, "" for none
    passes: int | None  # replay passes; None: NVIDIA's library does not load here
    not_available: tuple[str, ...]  # concepts that the chip has no metric for

    columns = ("metric", "concept", "cost")

    @property
    def title(self) -> str:
        """The chip and the tier."""
        return f"Metrics for {self.chip}, {self.tier}"

    @property
    def sentences(self) -> Sequence[str]:
        """What collecting costs, and what the chip does not have."""
        absent = f"not available on {self.chip}: {', '.join(self.not_available)}"
        return (self.cost, *([absent] if self.not_available else []))

    @property
    def cost(self) -> str:
        """What collecting costs, and what of it NVIDIA's library cannot count."""
        if self.passes is None:
            reason = f"{nvperf.LIBRARY} of the wheel ncu-report does not load here"
            return f"{self.chip}, {self.tier}: {len(self.names)} metrics, replay passes unknown: {reason}"
        costs = [ncu_names.collection_cost(name) for name in self.names]
        counted, free = costs.count(None), costs.count(ncu_names.CollectionCost.NONE)
        words = (
            f"{self.chip}, {self.tier}: {self.passes} replay passes for {counted} hardware metrics; "
            f"{free} facts cost none"
        )
        own = len(costs) - counted - free
        return words + (f"; ncu adds passes of its own (instrumented code) for {own}" if own else "")

    def rows(self) -> list[tuple[object, ...]]:
        """A row a metric; its cost is `counted` where hardware counts it."""
        return [(name, concept or None, _cost(name)) for name, concept in self.names.items()]

    def _content(self) -> dict[str, object]:
        """The metrics by their exact ncu names."""
        return {
            "chip": self.chip,
            "tier": self.tier,
            "passes": self.passes,
            "metrics": [
                {"metric": name, "concept": concept or None, "cost": _cost(name)}
                for name, concept in self.names.items()
            ],
            "not_available": list(self.not_available),
        }


@dataclass(frozen=True, repr=False)
class MetricCheckDocument(Document):
    """Whether every name of a table exists, by NVIDIA's lists."""

    table: MetricTable
    problems: tuple[str, ...]  # in the order of lines

    title = "Names of metrics"
    columns = ("problem",)

    @property
    def sentences(self) -> Sequence[str]:
        """That every name exists; else how many problems there are."""
        if self.problems:
            return (f"{self.table.path}: {len(self.problems)} problems",)
        metrics, captured = len(self.table.metrics), len(self.table.captured)
        return (f"{self.table.path}: {metrics} metrics, {captured} captured: every name exists",)

    @property
    def exit_code(self) -> Exit:
        """2 where a name does not exist."""
        return Exit.UNUSABLE_INPUT if self.problems else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row a problem, with file and line."""
        return [(problem,) for problem in self.problems]

    def _content(self) -> dict[str, object]:
        """The problems."""
        return {"file": str(self.table.path), "ok": not self.problems, "problems": list(self.problems)}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A line a problem, then how many there are."""
        yield from map(Line, (*self.problems, *self.sentences))


def metrics_for_chip(table: MetricTable, chip: str, tier: str = "full") -> MetricRequestDocument:
    """What ncu is to collect on a chip: every metric by the first of its names that the chip has."""
    names = chip_metrics.names_to_collect(table, chip, tier)
    collected = set(names.values())
    not_available = tuple(
        metric.concept
        for metric in _of_tier(table, tier)
        if metric.concept not in collected and metric.evidence is Evidence.MEASURED
    )
    return MetricRequestDocument(chip, tier, names, chip_metrics.replay_passes(names, chip), not_available)


def check_metrics(path: Path | None = None) -> MetricCheckDocument:
    """Look up every name of a table in NVIDIA's lists; None: the metrics.txt that is in use.

    Raises CannotJudge where NVIDIA's library does not load and nothing is wrong without it.
    """
    table, problems = load_with_problems(path)
    # Without NVIDIA's library what is certain is still said.
    if chip_metrics.is_library_available() or not problems:
        problems += chip_metrics.check_names(table)
    start = len(f"{table.path}:")  # a path may hold colons itself
    return MetricCheckDocument(
        table, tuple(sorted(problems, key=lambda problem: int(problem[start:].split(":")[0])))
    )


def _of_tier(table: MetricTable, tier: str) -> list[Metric]:
    return [metric for metric in table.metrics if tier == "full" or metric.tier == "lean"]


def _cost(name: str) -> str:
    return ncu_names.collection_cost(name) or "counted"


def _with_chips(named: Alternative | DerivedForm) -> str:
    """The name or formula, with the chips where it is not of every chip."""
    chips = " ".join(chip for chip in ARCHITECTURES if chip in named.chips)
    return f"{named.name} @{chips}" if chips else named.name


def _threshold(metric: Metric) -> str:
    if metric.threshold_pp is not None:
        return f"{metric.threshold_pp:g}pp"
    of_whole = f", {metric.whole_share * 100:g}% of {metric.whole}" if metric.whole else ""
    return f"{metric.threshold * 100:g}%{of_whole}"
