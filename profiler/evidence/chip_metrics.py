"""Which metric names each chip has, their replay passes together, and the right name for a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
# Likeness of two names, from 0 to 1, tried out on mistyped names of ncu.
_CLOSE = 0.55  # below this a proposal would be a guess
_MOST_LETTERS = 200  # of a name that could be a known one: comparing takes the square of them
_MOST_HINTED = 100  # names of a table that are told what was meant
_TYPO = 0.93  # from this on, a name that no list has is a known one mistyped


def is_library_available() -> bool:
    """Whether NVIDIA's library can be loaded here."""
    return nvperf.load() is not None


def exists(name: str, chip: str) -> bool | None:
    """Whether the chip has the metric, suffix included; None where nothing here can tell."""
    if ncu_names.collection_cost(name) is not None:
        return not _mistyped(name)
    library_chip = _library_chip(chip)
    return None if library_chip is None else library_chip.exists(name)


def replay_passes(names: Iterable[str], chip: str) -> int | None:
    """Replay passes of the hardware counters among the names, as the library schedules them in this order.

    An estimate: ncu adds passes of its own for names that it computes from instrumented SASS or from samples
    (`ncu_names.collection_cost`). None where nothing here can tell.
    """
    library_chip = _library_chip(chip)
    if library_chip is None:
        return None
    return library_chip.passes(name for name in names if ncu_names.collection_cost(name) is None)


def names_to_collect(table: MetricTable, chip: str, tier: str = "full") -> dict[str, str]:
    """The concept by ncu name of what to collect on the chip; "" for a captured name. Full includes lean.

    Left out are concepts without a name on the chip, names that the library says the chip does not have, and
    static__ and modelled__ names, which ncu does not know.
    """
    concepts: dict[str, str] = {}
    for metric in table.metrics:
        if metric.tier == "lean" or tier == "full":
            name = _first_existing(metric, chip)
            if name and ncu_names.collection_cost(name) is not ncu_names.CollectionCost.OWN:
                concepts.setdefault(name, metric.concept)
    for name in table.captured:
        if (
            exists(name, chip) is not False
            and ncu_names.collection_cost(name) is not ncu_names.CollectionCost.OWN
        ):
            concepts.setdefault(name, "")
    return concepts


def check_names(table: MetricTable) -> list[str]:
    """What is wrong with the names of a table: one message `FILE:LINE: …` each, in the order of the lines.

    Raises CannotJudge where NVIDIA's library cannot be loaded.
    """
    if not is_library_available():
        raise CannotJudge(
            f"cannot check names: {nvperf.LIBRARY} of the wheel ncu-report is missing or does not load here: "
            "pip install ncu-report, on Linux"
        )
    problems: list[tuple[int, str]] = []

    def missing_message(name: str, chips: Sequence[str]) -> str:
        return _missing_message(name, chips, hint=len(problems) < _MOST_HINTED)

    for metric in table.metrics:
        for place, alternative in enumerate(metric.alternatives):
            # A name that is limited to chips must be on all of them, but for those with a better name, whose
            # older ncu had this one; any other name only somewhere.
            chips = [chip for chip in ARCHITECTURES if chip in alternative.chips] or list(ARCHITECTURES)
            renamed = {chip for better in metric.alternatives[:place] for chip in better.chips}
            missing = [
                chip for chip in chips if chip not in renamed and exists(alternative.name, chip) is False
            ]
            is_on_any = any(exists(alternative.name, chip) for chip in chips)
            if (alternative.chips and missing) or not is_on_any:
                message = missing_message(alternative.name, missing if alternative.chips else ())
                problems.append((metric.line, message))
        for form in metric.forms:
            for name in form.names:
                # A form may need a name of an old ncu alone, so it is enough that some chip has it.
                if not any(exists(name, chip) for chip in sorted(form.chips) or ARCHITECTURES):
                    problems.append((form.line, missing_message(name, sorted(form.chips))))
    for name, line in zip(table.captured, table.captured_lines, strict=True):
        if not any(exists(name, chip) for chip in ARCHITECTURES):
            problems.append((line, missing_message(name, ())))
    return [f"{table.path}:{line}: {message}" for line, message in sorted(problems, key=lambda pair: pair[0])]


def nearest_name(name: str, chip: str | None = None) -> str | None:
    """The existing name that was most likely meant, on the chip or on any; None where nothing is close."""
    if len(name) > _MOST_LETTERS:
        return None
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
def _library_chip(chip: str) -> nvperf.Chip | None:
    library, architecture = nvperf.load(), find_architecture(chip)
    if library is None or architecture is None or not architecture.ncu_chip:
        return None
    try:
        return nvperf.Chip(library, architecture.library_chip)
    except LookupError:  # a newer library may have dropped an old chip
        return None


@cache
def _bases(chip: str | None) -> dict[str, int]:
    """The kind of every name without suffix that the chip, or for None any chip, has."""
    kinds: dict[str, int] = {}
    for name in (chip,) if chip else ARCHITECTURES:
        library_chip = _library_chip(name)
        for kind in _SUFFIXES:
            kinds.update(dict.fromkeys(library_chip.base_names(kind) if library_chip else (), kind))
    return kinds


def _first_existing(metric: Metric, chip: str) -> str | None:
    return next((name for name in metric.names_for(chip) if exists(name, chip) is not False), None)


def _mistyped(name: str) -> bool:
    """Whether an unknown name is almost one of ncu's own: there is no complete list of `derived__` names."""
    return (
        len(name) <= _MOST_LETTERS
        and ncu_names.collection_cost(name) is ncu_names.CollectionCost.UNKNOWN
        and any(
            SequenceMatcher(None, name, listed).ratio() >= _TYPO
            for listed in ncu_names.OWN_METRICS
            if listed.startswith("derived__")
        )
    )


def _missing_message(name: str, chips: Sequence[str], *, hint: bool) -> str:
    """The message about a name that these chips lack; without chips, about one that every chip lacks."""
    nearest = nearest_name(name, chips[0] if chips else None) if hint else None
    if chips:
        problem = f"{', '.join(chips)} {'have' if len(chips) > 1 else 'has'} no metric"
    else:
        problem = "no chip has a metric"
    return f"{problem} {name}: {f'did you mean {nearest}?' if nearest else 'see ncu --query-metrics'}"


def _closest_base(base: str, names: Iterable[str]) -> str | None:
    """The closest name by shared words, since a wrong name usually lacks or adds one, and by letters."""
    words = set(base.lower().split("_"))
    # Comparing letters is slow, and a chip has thousands of names: only those with most words in common.
    candidates = sorted(names, key=lambda name: -_overlap(words, set(name.split("_"))))[:150]
    best = max(candidates, key=lambda name: _likeness(base.lower(), words, name), default=None)
    return best if best and _likeness(base.lower(), words, best) >= _CLOSE else None


def _likeness(base: str, words: set[str], other: str) -> float:
    return (SequenceMatcher(None, base, other).ratio() + _overlap(words, set(other.split("_")))) / 2


def _overlap(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)


def _closest_suffix(wrong: str, suffixes: tuple[str, ...]) -> str:
    """The first suffix that begins with the wrong one, maybe after a roll-up; else the most similar one.

    Where none is similar: the first, which is the usual one.
    """
    wrong = wrong.lower()
    if wrong in suffixes or not wrong:
        return wrong or suffixes[0]
    starts = (wrong, f"avg.{wrong}", f"sum.{wrong}")
    longer = next((suffix for start in starts for suffix in suffixes if suffix.startswith(start)), None)
    best = max(suffixes, key=lambda suffix: SequenceMatcher(None, wrong, suffix).ratio())
    return longer or (best if SequenceMatcher(None, wrong, best).ratio() >= _CLOSE else suffixes[0])
