"""What metrics.txt declares: which concept has which ncu name on which chip, and how its change is judged."""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from profiler.errors import BadMetricsFile
from profiler.evidence.derived_forms import DerivedForm, is_between_units, parse_form
from profiler.evidence.gpu_arch import ARCHITECTURES, holds_on
from profiler.evidence.plain_file import read_plain
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value
from profiler.package import shipped

DIRECTIONS = ("lower", "higher", "-")
TIERS = ("lean", "full")
GROUPS = (
    "time",
    "clock",
    "speed of light",
    "tensor core",
    "shared memory",
    "occupancy",
    "instructions",
    "memory",
    "roofline",
    "scheduler",
    "stalls",
    "spills",
    "launch",
    "static",
    "modelled",
)
# Wholes that no counter holds: `profiler/compare/wholes.py` computes them from several.
COMPUTED_WHOLES = ("dram_capacity", "dram_rate")
DEFAULT_PATH = shipped("metrics.txt")

# Of a metrics file; the one that ships has 50 kB in 393 lines of at most 468 characters.
MAX_BYTES = 1 << 20
MAX_LINES = 5000
MAX_LINE_LENGTH = 4096
_MOST_HINTED = 100  # mistakes of a file that are told what was meant: looking for it takes time

_COLUMNS = ("concept", "label", "unit", "better", "threshold", "group", "tier", "ncu metric")
_CONCEPT = re.compile(r"[a-z][a-z0-9_]*")
_NCU_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_THRESHOLD = re.compile(r"(\d+(?:\.\d+)?)\s*(%|pp|)")
# concept = formula @sm_NN …, or concept ~ 8.4% = formula for a stand-in.
_FORM = re.compile(r"(?P<concept>[^=~|]*)(?:~(?P<off>[^=|]*))?=(?P<formula>[^@|]*)(?P<chips>@.*)?")
_OFF = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SHARE_OF_WHOLE = re.compile(r"(\d+(?:\.\d+)?)\s*%\s+of\s+(\w+)")
_COMMENT = re.compile(r"(^|\s)#.*$")
_SCALED = re.compile(r"(us|ms|s|usecond|msecond|second|[KMGT]i?(byte|B|hz|Hz).*|[kmgt]hz)")


@dataclass(frozen=True)
class Alternative:
    """One spelling of a concept; `chips` limits it, empty means every chip."""

    name: str
    chips: frozenset[str] = frozenset()

    def allowed(self, chip: str | None) -> bool:
        """Whether this spelling holds on the chip; a chip that no table knows excludes nothing."""
        return holds_on(self.chips, chip)


def evidence_of_name(name: str) -> Evidence:
    """What kind of evidence carries it: static__ and modelled__ names are our own, the rest is ncu's."""
    prefix = name.partition("__")[0]
    return Evidence(prefix) if prefix in (Evidence.STATIC, Evidence.MODELLED) else Evidence.MEASURED


@dataclass(frozen=True)
class Metric:
    """One line of metrics.txt."""

    concept: str
    label: str
    unit: str  # ncu's base unit, "" for a bare count
    better: str  # lower, higher or -
    threshold: float  # fraction of the old value: 0.02 = 2 %; 0 where threshold_pp stands
    threshold_pp: float | None  # percentage points, for a metric in %
    group: str
    tier: str  # lean or full
    alternatives: tuple[Alternative, ...]
    line: int
    forms: tuple[DerivedForm, ...] = ()  # best first: how to compute it where a report has none of the names
    whole: str = ""  # the concept, or one of COMPUTED_WHOLES, that it is a part of; "" where it is of none
    whole_share: float = 0.0  # fraction of the whole that a change must exceed besides the threshold

    @cached_property
    def evidence(self) -> Evidence:
        """What kind of evidence carries it."""
        return evidence_of_name(self.alternatives[0].name)

    @cached_property
    def _on_chips(self) -> dict[str | None, tuple[tuple[str, ...], tuple[DerivedForm, ...]]]:
        """The names and forms of the chips asked for so far: each launch asks for those of every metric."""
        return {}

    def _on(self, chip: str | None) -> tuple[tuple[str, ...], tuple[DerivedForm, ...]]:
        if (known := self._on_chips.get(chip)) is not None:
            return known
        names = tuple(alternative.name for alternative in self.alternatives if alternative.allowed(chip))
        forms = tuple(form for form in self.forms if form.allowed(chip)) if names else ()
        self._on_chips[chip] = names, forms
        return names, forms

    @cached_property
    def needed_names(self) -> frozenset[str]:
        """Every name that it may be read by or computed from, on any chip."""
        names = {alternative.name for alternative in self.alternatives}
        for form in self.forms:
            names.update(form.names, form.size_names)
        return frozenset(names)

    def names_for(self, chip: str | None) -> tuple[str, ...]:
        """The ncu names allowed on the chip, best first; all of them where the chip is not in the table."""
        return self._on(chip)[0]

    def forms_for(self, chip: str | None) -> tuple[DerivedForm, ...]:
        """The derived forms allowed on the chip, best first; none where the chip lacks the concept itself."""
        return self._on(chip)[1]

    def read(self, name: str, values: Mapping[str, Value], chip: str | None) -> Value:
        """The value by one of the names that `resolve` gives, an ncu name or a form's; else NOT_COLLECTED."""
        form = next((form for form in self.forms_for(chip) if form.name == name), None)
        if form is not None:
            return form.read(values, self.unit) or NOT_COLLECTED
        return values.get(name, NOT_COLLECTED)

    def is_in(self, names: Container[str], chip: str | None) -> bool:
        """Whether values with these names can have the concept, by a name of its own or by a form."""
        own, forms = self._on(chip)
        for name in own:  # loops: there are one or two of each, and a generator costs more than it saves
            if name in names:
                return True
        return any(all(map(names.__contains__, form.names)) for form in forms)

    def resolve(self, values: Mapping[str, Value], chip: str | None) -> tuple[str, Value]:
        """The name by which values have the concept, and its value: see MetricTable.resolve."""
        names, forms = self._on(chip)
        if not names:
            return self.alternatives[0].name, Value(None, self.unit, state=State.NOT_AVAILABLE)
        carried: tuple[str, Value] | None = None
        for name in names:
            if name in values:
                value = values[name]
                if value.number is not None:
                    return name, value
                carried = carried or (name, value)
        # A counter that failed says so: no other number takes its place.
        if carried is None or carried[1].state is State.NOT_COLLECTED:
            for form in forms:
                if (derived := form.read(values, self.unit)) is not None:
                    return form.name, derived
        return carried or (names[0], NOT_COLLECTED)


@dataclass(frozen=True)
class MetricTable:
    """A metrics file: metrics in display order, and the names that are captured without being judged."""

    path: Path
    metrics: tuple[Metric, ...]
    captured: tuple[str, ...] = ()
    captured_lines: tuple[int, ...] = ()  # where each captured name stands

    @cached_property
    def by_concept(self) -> dict[str, Metric]:
        """The metric of each concept."""
        return {metric.concept: metric for metric in self.metrics}

    def of(self, evidence: Evidence) -> tuple[Metric, ...]:
        """The metrics that values of this evidence can carry, in display order."""
        return tuple(metric for metric in self.metrics if metric.evidence == evidence)

    @cached_property
    def measured_names(self) -> frozenset[str]:
        """Every ncu name that a measured metric may be read by or computed from, on any chip."""
        return frozenset().union(*(metric.needed_names for metric in self.of(Evidence.MEASURED)))

    @cached_property
    def sharing_names(self) -> frozenset[str]:
        """The concepts that may be read by a name, or computed by a form, that is also another one's."""
        owners: dict[str, list[str]] = {}
        for metric in self.metrics:
            names = (alternative.name for alternative in metric.alternatives)
            for name in {*names, *(form.name for form in metric.forms)}:
                owners.setdefault(name, []).append(metric.concept)
        return frozenset().union(*(concepts for concepts in owners.values() if len(concepts) > 1))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that occur, in display order."""
        return tuple(dict.fromkeys(metric.group for metric in self.metrics))

    @cached_property
    def by_name(self) -> dict[str, tuple[Metric, ...]]:
        """The metrics that may be read by each ncu name."""
        metrics: dict[str, list[Metric]] = {}
        for metric in self.metrics:
            for alternative in metric.alternatives:
                metrics.setdefault(alternative.name, []).append(metric)
        return {name: tuple(of_name) for name, of_name in metrics.items()}

    @staticmethod
    def resolve(metric: Metric, values: Mapping[str, Value], chip: str | None) -> tuple[str, Value]:
        """The name by which a launch has the concept, and its value.

        The first ncu name with a number wins, then the first derived form that the launch has the numbers
        for; its name is the words of the derivation. Then the first name that the report mentions, with its
        state. Where it mentions none, the value says whether the chip has the concept (not collected) or not
        (not available).
        """
        return metric.resolve(values, chip)

    @staticmethod
    def resolve_pair(
        metric: Metric,
        a: Mapping[str, Value],
        chip_a: str | None,
        b: Mapping[str, Value],
        chip_b: str | None,
    ) -> tuple[tuple[str, Value], tuple[str, Value]]:
        """Name and value on both sides: by the best name or form that both have, else each by its own.

        The first that a side has may differ between two chips, two versions of ncu or two sets of counters.
        """
        of_a, of_b = metric.resolve(a, chip_a), metric.resolve(b, chip_b)
        if of_a[0] != of_b[0]:
            on_a = (*metric.names_for(chip_a), *(form.name for form in metric.forms_for(chip_a)))
            on_b = {*metric.names_for(chip_b), *(form.name for form in metric.forms_for(chip_b))}
            for name in on_a:
                if name in on_b:
                    value_a, value_b = metric.read(name, a, chip_a), metric.read(name, b, chip_b)
                    if value_a.state is State.PRESENT and value_b.state is State.PRESENT:
                        return (name, value_a), (name, value_b)
        return of_a, of_b


def load_metrics(path: Path | None = None) -> MetricTable:
    """Read a metrics file; without a path, the metrics.txt beside the package. Raises BadMetricsFile."""
    table, problems = load_with_problems(path)
    if problems:
        more = len(problems) - 1
        ending = f" (and {more} more: profiler list metrics --check {table.path})" if more else ""
        raise BadMetricsFile(problems[0] + ending)
    return table


def load_with_problems(path: Path | None = None) -> tuple[MetricTable, list[str]]:
    """Read a metrics file as far as it can be used, and a message `FILE:LINE: …` for each line that cannot.

    Raises BadMetricsFile where the file itself cannot be read.
    """
    shown_path = Path("metrics.txt") if path is None else path
    try:
        raw = read_plain(path or DEFAULT_PATH, MAX_BYTES)
        if len(raw) > MAX_BYTES:
            raise BadMetricsFile(
                f"{shown_path}: over {MAX_BYTES >> 20} MiB, so no metrics file: name another one"
            )
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise BadMetricsFile(
            f"{path or DEFAULT_PATH}: {error.strerror}: name a metrics file, or run from a checkout"
        ) from None
    except UnicodeDecodeError:
        raise BadMetricsFile(f"{shown_path}: not UTF-8 text: name a metrics file") from None
    except ValueError as error:  # a NUL in the path
        raise BadMetricsFile(f"{shown_path}: {error}: name a metrics file") from None
    table, problems = _parse(shown_path, text)
    return table, list(problems)


def _check_size(shown_path: Path, text: str) -> None:
    """Raise BadMetricsFile for a text of too many lines, or a line that is too long to be one of metrics."""
    for number, line in enumerate(text.split("\n"), 1):
        if number > MAX_LINES:
            raise BadMetricsFile(
                f"{shown_path}:{number}: a metrics file has at most {MAX_LINES:,} lines: name another one"
            )
        if len(line) > MAX_LINE_LENGTH:
            raise BadMetricsFile(
                f"{shown_path}:{number}: a line of {len(line):,} characters, and {MAX_LINE_LENGTH:,} are "
                "read: write one metric a line, or name another file"
            )


@functools.lru_cache(maxsize=8)
def _parse(shown_path: Path, text: str) -> tuple[MetricTable, tuple[str, ...]]:
    """The table in a file's text. An index reads it again for every run that it takes in."""
    _check_size(shown_path, text)
    metrics: dict[str, Metric] = {}
    captured: dict[str, int] = {}
    forms: list[tuple[str, DerivedForm]] = []
    problems: list[tuple[int, str]] = []
    for line, content in _lines(text):
        try:
            if "|" not in content and "=" in content:
                forms.append(_form(content, line))
                continue
            if "|" not in content:
                captured.setdefault(_ncu_name(content), line)
                continue
            metric = _metric(content, line)
            if metric.concept in metrics:
                first = metrics[metric.concept].line
                raise ValueError(
                    f"concept {metric.concept} stands on line {first} already: a concept is one line"
                )
            metrics[metric.concept] = metric
        except ValueError as error:
            problems.append((line, str(error)))
    for concept, form in forms:  # a form may stand above its metric
        try:
            metrics[concept] = _with_form(metrics, concept, form, hint=len(problems) < _MOST_HINTED)
        except ValueError as error:
            problems.append((form.line, str(error)))
    problems += [(metric.line, words) for metric, words in _unknown_wholes(metrics)]
    if not metrics and not captured and not problems:
        problems.append((1, f"no metric in this file: write a line {' | '.join(_COLUMNS)}"))
    problems.sort(key=lambda problem: problem[0])
    table = MetricTable(shown_path, tuple(metrics.values()), tuple(captured), tuple(captured.values()))
    return table, tuple(f"{shown_path}:{line}: {message}" for line, message in problems)


def _unknown_wholes(metrics: Mapping[str, Metric]) -> Iterator[tuple[Metric, str]]:
    """Each metric whose whole nobody declares or computes, with what is wrong; a whole may stand below it."""
    hinted = 0
    for metric in metrics.values():
        if metric.whole and metric.whole not in (*metrics, *COMPUTED_WHOLES):
            others = (*metrics, *COMPUTED_WHOLES)
            nearest = get_close_matches(metric.whole, others, 1, 0.5) if hinted < _MOST_HINTED else []
            hinted += 1
            way_out = f"did you mean {nearest[0]}?" if nearest else "name a concept of this file"
            yield metric, f"{metric.concept} is a part of {metric.whole}, which is no concept: {way_out}"


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and content of every line that is more than a comment or blank."""
    for number, line in enumerate(text.split("\n"), 1):
        if content := _COMMENT.sub("", line).strip():
            yield number, content


def _form(content: str, line: int) -> tuple[str, DerivedForm]:
    """Concept and form of a line `concept = formula @sm_NN …`; with `~ 8.4%` before the `=` a stand-in."""
    match = _FORM.fullmatch(content)
    concept = match["concept"].strip() if match else ""
    if not match or not _CONCEPT.fullmatch(concept):
        raise ValueError(f"{content!r}: write concept = formula, or concept ~ 5% = formula for a stand-in")
    off_text = None if match["off"] is None else match["off"].strip()
    off = None if off_text is None else _OFF.fullmatch(off_text)
    if off_text is not None and off is None:
        raise ValueError(f"~ {off_text!r}: write how far the stand-in can be off: ~ 5%")
    chips = (match["chips"] or "").removeprefix("@").split()
    if match["chips"] and not chips:
        raise ValueError("@ names no chip: write @sm_90, or leave the @ out")
    form = parse_form(
        match["formula"],
        None if off is None else float(off[1]),
        frozenset(_word("chip", chip, tuple(ARCHITECTURES), hint=False) for chip in chips),
        line,
    )
    for name in form.names:
        _ncu_name(name)
    return concept, form


def _with_form(metrics: Mapping[str, Metric], concept: str, form: DerivedForm, *, hint: bool) -> Metric:
    """The metric with one more form. Raises ValueError where there is no such metric, or it has the form."""
    if concept not in metrics:
        near = get_close_matches(concept, metrics, 1, 0.5) if hint else []
        raise ValueError(f"no concept {concept!r}: {f'did you mean {near[0]}?' if near else 'declare it'}")
    metric = metrics[concept]
    if metric.evidence is not Evidence.MEASURED:
        raise ValueError(f"{concept} is {metric.evidence}: only what ncu measures has derived forms")
    for other in metric.forms:
        if other.name == form.name and (not other.chips or not form.chips or other.chips & form.chips):
            raise ValueError(f"{concept} has this form on line {other.line} already")
    own_names = [alternative.name for alternative in metric.alternatives]
    form = replace(form, between_units=is_between_units(own_names, form))
    return replace(metric, forms=(*metric.forms, form))


def _metric(content: str, line: int) -> Metric:
    cells = [cell.strip() for cell in content.split("|")]
    if len(cells) != len(_COLUMNS):
        raise ValueError(f"{len(cells)} cells, not {len(_COLUMNS)}: write {' | '.join(_COLUMNS)}")
    concept, label, unit, better, threshold, group, tier, names = cells
    if not _CONCEPT.fullmatch(concept):
        raise ValueError(f"concept {concept!r}: write small letters, digits and _")
    if not label:
        raise ValueError(f"{concept} has no label")
    if _SCALED.fullmatch(unit):
        raise ValueError(f"unit {unit!r} is scaled: write ncu's base unit (ns, hz, byte, byte/s)")
    threshold, comma, part = (text.strip() for text in threshold.partition(","))
    fraction, points = _threshold(threshold, unit)
    whole_share, whole = _share_of_whole(part, points) if comma else (0.0, "")
    if whole == concept:
        raise ValueError(f"{concept} is no part of itself: leave `, {part}` out, or name another concept")
    return Metric(
        concept,
        label,
        unit,
        _word("better", better, DIRECTIONS),
        fraction,
        points,
        _word("group", group, GROUPS),
        _word("tier", tier, TIERS),
        _alternatives(names),
        line,
        whole=whole,
        whole_share=whole_share,
    )


def _threshold(cell: str, unit: str) -> tuple[float, float | None]:
    """Fraction, and percentage points or None: of `2%` or `0.02` the former, of `1pp` the latter."""
    match = _THRESHOLD.fullmatch(cell)
    if not match or (not match[2] and float(match[1]) >= 1):
        raise ValueError(f"threshold {cell!r}: write 2% of the old value, or 1pp for percentage points")
    if match[2] == "pp":
        if unit != "%":
            raise ValueError(
                f"threshold {cell!r}: percentage points need the unit %, and the unit is {unit!r}"
            )
        return 0.0, float(match[1])
    return float(match[1]) / (100 if match[2] else 1), None


def _share_of_whole(text: str, points: float | None) -> tuple[float, str]:
    """Fraction and whole of `1% of shared_wavefronts`."""
    if points is not None:
        raise ValueError(f"`{text}` beside percentage points: a point already has one size, write only that")
    match = _SHARE_OF_WHOLE.fullmatch(text)
    if not match or not 0 < float(match[1]) < 100:
        raise ValueError(f"{text!r} after the threshold: write 1% of CONCEPT, which the metric is a part of")
    return float(match[1]) / 100, match[2]


def _alternatives(cell: str) -> tuple[Alternative, ...]:
    alternatives: dict[str, Alternative] = {}
    for part in cell.split(","):
        name, at, chips = part.partition("@")
        name = _ncu_name(name.strip())
        if at and not chips.split():
            raise ValueError(f"{name}@ names no chip: write {name}@sm_90, or leave the @ out")
        if name in alternatives:
            raise ValueError(f"{name} stands twice: write its chips after one @")
        alternatives[name] = Alternative(
            name, frozenset(_word("chip", chip, tuple(ARCHITECTURES), hint=False) for chip in chips.split())
        )
    return tuple(alternatives.values())


def _ncu_name(text: str) -> str:
    if ":" in text:
        prefix = text.split(":")[0]
        raise ValueError(
            f"{text}: {prefix}: stands for several metrics or for a timeline: write each exact name"
        )
    if not text:
        raise ValueError("an ncu metric is missing: write at least one exact name")
    if not _NCU_NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is not an ncu metric name: write one exact name, alternatives between commas"
        )
    return text


def _word(column: str, word: str, choices: Sequence[str], hint: bool = True) -> str:
    """The word if it is one of the choices. Raises ValueError that names the nearest of them, or all."""
    if word in choices:
        return word
    nearest = get_close_matches(word, choices, 1, 0.5) if hint else []
    way_out = f"did you mean {nearest[0]}?" if nearest else f"write one of {', '.join(choices)}"
    raise ValueError(f"unknown {column} {word!r}: {way_out}")
