"""Which metric names each chip has, their replay passes together, and the right name for a wrong one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache

from profiler.errors import CannotJudge
from profiler.evidence import ncu_names, nvperf
from profiler.evidence.gpu_arch import ARCHITECTURES, find_architecture
from profiler.evidence.metric_table import Metric, MetricTable

# The suffixes of each kind of metric, the usual first. Source: nvperf_host.h, NVPW_RollupOp, NVPW_Submetric.
_ROLLUPS = ("sum", "avg", "max", "min")
_SUBMETRICS = (
    "",
    ".pct_of_peak_sustained_active",
    ".pct_of_peak_sustained_elapsed",
    ".per_second",
    ".per_cycle_active",
    ".per_cycle_elapsed",
    ".peak_sustained",
    ".peak_sustained_active",
    ".peak_sustained_elapsed",
    ".peak_sustained_active.per_second",
    ".peak_sustained_elapsed.per_second",
)
_SUFFIXES = {
    nvperf.COUNTER: tuple(f"{rollup}{sub}" for rollup in _ROLLUPS for sub in _SUBMETRICS),
    nvperf.RATIO: ("ratio", "pct", "max_rate"),
    nvperf.THROUGHPUT: tuple(
        f"{rollup}.pct_of_peak_sustained_{over}"
        for rollup in ("avg", "sum", "max", "min")
        for over in ("elapsed", "active")
    ),
}
_CLOSE = 0.55  # below this a proposal would be a guess
_TYPO = 0.93  # from this on, a name of an open list is a mistyped known one


def is_library_available() -> bool:
    """Whether NVIDIA's library can be loaded here."""
    return nvperf.load() is not None


def exists(name: str, chip: str) -> bool | None:
    """Whether the chip has the metric, suffix included; None where nothing here can tell."""
    if ncu_names.collection_cost(name) is not None:
        return not _mistyped(name)
    known = _chip(chip)
    return None if known is None else known.exists(name)


def replay_passes(names: Iterable[str], chip: str) -> int | None:
    """Replay passes of the hardware counters among the names, as the library schedules them in this order.

    An estimate: ncu adds passes of its own for names it computes from instrumented SASS or from samples
    (`ncunames.cost`). None where nothing here can tell.
    """
    known = _chip(chip)
    return (
        None
        if known is None
        else known.passes(name for name in names if ncu_names.collection_cost(name) is None)
    )


def names_to_collect(table: MetricTable, chip: str, tier: str = "full") -> dict[str, str]:
    """The ncu names to collect on the chip, each with its concept, "" for a captured one; full includes lean.

    A concept without a name on the chip is left out, and so is a name that the library says the chip has not.
    """
    wanted: dict[str, str] = {}
    for metric in table.metrics:
        if metric.tier == "lean" or tier == "full":
            name = _first(metric, chip)
            if name and ncu_names.collection_cost(name) is not ncu_names.CollectionCost.OWN:
                wanted.setdefault(name, metric.concept)
    for name in table.captured:
        if (
            exists(name, chip) is not False
            and ncu_names.collection_cost(name) is not ncu_names.CollectionCost.OWN
        ):
            wanted.setdefault(name, "")
    return wanted


def check_names(table: MetricTable) -> list[str]:
    """What is wrong with the names of a table: one message `FILE:LINE: …` each, in the order of the lines.

    Raises CannotJudge where NVIDIA's library cannot be loaded.
    """
    if not is_library_available():
        raise CannotJudge(
            f"cannot check names: {nvperf.LIBRARY} of the wheel ncu-report is missing or does not load here: "
            "pip install ncu-report, on Linux"
        )
    found: list[tuple[int, str]] = []
    for metric in table.metrics:
        for one in metric.alternatives:
            chips = [chip for chip in ARCHITECTURES if chip in one.chips] or list(ARCHITECTURES)
            missing = [chip for chip in chips if exists(one.name, chip) is False]
            if (one.chips and missing) or not any(exists(one.name, chip) for chip in chips):
                found.append((metric.line, _refusal(one.name, missing if one.chips else ())))
    for name, line in zip(table.captured, table.captured_lines, strict=True):
        if not any(exists(name, chip) for chip in ARCHITECTURES):
            found.append((line, _refusal(name, ())))
    return [f"{table.path}:{line}: {message}" for line, message in sorted(found, key=lambda pair: pair[0])]


def nearest_name(name: str, chip: str | None = None) -> str | None:
    """The existing name that was most likely meant, on the chip or on any; None where nothing is close."""
    base, _, suffix = name.partition(".")
    base = ncu_names.RENAMED.get(base, base)
    if "." in base:
        return base
    kinds = _bases(chip)
    if base not in kinds:
        base = _closest_base(base, (*kinds, *ncu_names.OWN_METRICS)) or ""
    if base in ncu_names.OWN_METRICS:
        return base
    if base not in kinds:
        return None
    return f"{base}.{_closest_suffix(suffix, _SUFFIXES[kinds[base]])}"


@cache
def _chip(chip: str) -> nvperf.Chip | None:
    library, architecture = nvperf.load(), find_architecture(chip)
    if library is None or architecture is None:
        return None
    try:
        return nvperf.Chip(library, architecture.library_chip)
    except LookupError:  # a newer library may have dropped an old chip
        return None


@cache
def _bases(chip: str | None) -> dict[str, int]:
    """Every name without suffix that the chip, or any chip, has, with its kind."""
    found: dict[str, int] = {}
    for one in (chip,) if chip else ARCHITECTURES:
        known = _chip(one)
        for kind in _SUFFIXES:
            found.update(dict.fromkeys(known.base_names(kind) if known else (), kind))
    return found


def _first(metric: Metric, chip: str) -> str | None:
    return next((name for name in metric.names_for(chip) if exists(name, chip) is not False), None)


def _mistyped(name: str) -> bool:
    """Whether a name of ncu's own is unknown but all but a known one: `derived__` has no closed list."""
    return ncu_names.collection_cost(name) is ncu_names.CollectionCost.UNKNOWN and any(
        SequenceMatcher(None, name, known).ratio() >= _TYPO
        for known in ncu_names.OWN_METRICS
        if known.startswith("derived__")
    )


def _refusal(name: str, missing: Iterable[str]) -> str:
    """What to say of a name that no chip has, or that the chips it was limited to have not."""
    only = tuple(missing)
    near = nearest_name(name, only[0] if only else None)
    where = ", ".join(only) or "no chip"
    has = f"{where} {'have' if len(only) > 1 else 'has'} no metric" if only else "no chip has a metric"
    return f"{has} {name}: {f'did you mean {near}?' if near else 'see ncu --query-metrics'}"


def _closest_base(base: str, known: Iterable[str]) -> str | None:
    """By shared words first, since a wrong name usually lacks or adds one, then letter by letter."""
    words = set(base.lower().split("_"))
    ranked = sorted(known, key=lambda one: -_overlap(words, set(one.split("_"))))[:150]
    best = max(ranked, key=lambda one: _likeness(base.lower(), words, one), default=None)
    return best if best and _likeness(base.lower(), words, best) >= _CLOSE else None


def _likeness(base: str, words: set[str], other: str) -> float:
    return (SequenceMatcher(None, base, other).ratio() + _overlap(words, set(other.split("_")))) / 2


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def _closest_suffix(suffix: str, known: tuple[str, ...]) -> str:
    """The suffix that goes on as the wrong one began, or holds it after a roll-up; else the usual one."""
    suffix = suffix.lower()
    if suffix in known or not suffix:
        return suffix or known[0]
    wanted = (suffix, f"avg.{suffix}", f"sum.{suffix}")
    longer = next((one for start in wanted for one in known if one.startswith(start)), None)
    best = max(known, key=lambda one: SequenceMatcher(None, suffix, one).ratio())
    return longer or (best if SequenceMatcher(None, suffix, best).ratio() >= _CLOSE else known[0])
