"""A comparison in words: the rows and lines that a terminal and a pull request share."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from profiler.compare import latency_words
from profiler.compare.comparison import Comparison
from profiler.compare.match_launches import PairedBy
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.naming import brief_list
from profiler.evidence.values import NCU_DURATION, Value
from profiler.statistics.decision import change_text, share_text
from profiler.statistics.verdict import Verdict

_NO_PARTNER = "no launch of A has a partner in B"
_SAY_WHICH = "--pair A=B says which kernels are one under two names"
LATENCY_HEAD = ("mode", "A", "B", "change", "interval", "verdict")
PAIRS_SHOWN = 25  # that a terminal or a pull request gets unasked
_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".csv")
_LAUNCHES_LISTED = 6  # without a partner, that a line describes


def no_partner(comparison: Comparison) -> str:
    """`why_no_pair`, and the option that helps where no launch has a partner."""
    return why_no_pair(comparison) if comparison.ambiguous else f"{_NO_PARTNER}: {_SAY_WHICH}"


def why_no_pair(comparison: Comparison) -> str:
    """Why there is no pair: no launch of A has a partner, or those that may be partners are ambiguous."""
    if not comparison.ambiguous:
        return _NO_PARTNER
    names = brief_list(list(dict.fromkeys(group.base_name for group in comparison.ambiguous)))
    return f"no pair is certain: which launches of {names} are partners is ambiguous"


def latency_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a mode: mode, both latencies in one unit, the change with its interval, the verdict."""
    rows: list[tuple[str, ...]] = []
    for latency in comparison.latency:
        numbers = [number for number in (latency.a_ns, latency.b_ns) if number is not None]
        scale = formatting.scale_for("ns", max(numbers)) if numbers else None
        a, b = (
            "–" if number is None else str(formatting.quantity(Value(number, "ns"), scale))
            for number in (latency.a_ns, latency.b_ns)
        )
        decision = latency.decision
        change = "" if decision.effect is None else change_text(decision.effect)
        interval = "" if decision.interval is None else str(decision.interval)
        rows.append((latency.mode, a, b, change, interval, decision.verdict.label))
    return rows


def latency_notes(comparison: Comparison) -> list[str]:
    """Why each verdict is what it is, what it could have seen, what to doubt, and what would settle it."""
    modes_by_words: dict[str, list[str]] = {}
    for latency in comparison.latency:
        detectable = latency.decision.detectable
        could = f"; a change of {share_text(detectable)} would have shown" if detectable is not None else ""
        warnings = (f"note: {warning}" for warning in latency.decision.warnings)
        for words in (latency.decision.reason + could, *warnings):
            modes_by_words.setdefault(words, []).append(latency.mode)
    commands = dict.fromkeys(latency.settle for latency in comparison.latency if latency.settle)
    return [
        *_with_mode(modes_by_words),
        *(f"to settle it: {command}" for command in commands),
        *floor_notes(comparison),
    ]


def floor_notes(comparison: Comparison) -> list[str]:
    """How far equal builds lie apart in each mode, or the command that makes that known."""
    modes_by_words: dict[str, list[str]] = {}
    version, workload = comparison.b.version, comparison.b.workload
    for latency in comparison.latency:
        if latency.floor or latency.floor_command:
            words = latency_words.aa_floor(latency.floor, version, workload, latency.mode)
            modes_by_words.setdefault(words, []).append(latency.mode)
    return _with_mode(modes_by_words)


def _with_mode(modes_by_words: dict[str, list[str]]) -> list[str]:
    """Words that hold for one mode alone begin with it."""
    return [words if len(modes) > 1 else f"{modes[0]}: {words}" for words, modes in modes_by_words.items()]


def about_durations(comparison: Comparison) -> str:
    """What the durations are, and what a change of one launch per side lacks."""
    words = "ncu duration, not latency"
    if any(len(a) == len(b) == 1 for a, b in (pair.launches for pair in comparison.pairs)):
        words += "; a change of one launch per side is unreplicated unless there are A/A pairs"
    if _has_intervals(comparison):
        words += "; intervals are 99 %, of medians of several launches, without noise between runs"
    return words


def duration_head(comparison: Comparison) -> tuple[str, ...]:
    """The columns of `duration_rows`."""
    return ("kernel", "A", "B", "change", *(["interval"] if _has_intervals(comparison) else []), "verdict")


def _has_intervals(comparison: Comparison) -> bool:
    """Whether several launches per side judged the duration of some pair."""
    return any(pair.headline and pair.headline.sampled for pair in comparison.pairs)


def duration_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a pair: kernel, both durations, the change, its interval where a pair has one, the verdict."""
    rows: list[tuple[str, ...]] = []
    has_intervals = _has_intervals(comparison)
    for pair in comparison.pairs:
        change = pair.headline
        numbers: tuple[str, ...] = change_numbers(change) if change else ("–", "–", "")
        if has_intervals:
            numbers += (str(change.sampled) if change and change.sampled else "",)
        is_by_clock = change is not None and change.judged_by and pair.verdict.traits.decided
        rows.append((pair.kernel, *numbers, f"{pair.verdict.label}{' (clock)' if is_by_clock else ''}"))
    return rows


def head_names(comparison: Comparison) -> tuple[str, str]:
    """What a head calls the sides: files by their names, with as much of the path as tells them apart."""
    a, b = comparison.a.label, comparison.b.label
    paths = [Path(label) for label in (a, b)]
    parts = 1
    while a != b and paths[0].parts[-parts:] == paths[1].parts[-parts:]:
        parts += 1
    short_a, short_b = (
        "/".join(path.parts[-parts:]) if path.suffix in _REPORT_SUFFIXES else label
        for path, label in zip(paths, (a, b), strict=True)
    )
    return short_a, short_b


def change_numbers(change: MetricChange) -> tuple[str, str, str]:
    """A, B and the change; both sides in one unit."""
    numbers = [abs(value.number) for value in (change.a, change.b) if value.number is not None]
    scale = (
        formatting.scale_for(change.unit, max(numbers))
        if change.a.unit == change.b.unit and numbers
        else None
    )
    a, b = (str(formatting.quantity(value, scale)) for value in (change.a, change.b))
    return a, b, formatting.change(change.a, change.b)


def derivations(changes: Iterable[MetricChange]) -> list[str]:
    """How each number was computed that a report does not carry as it is, a line a metric."""
    return [f"{change.label}: {change.derivation}" for change in changes if change.derivation]


def repeated(changes: Sequence[MetricChange]) -> list[str]:
    """Names the derived numbers that a list leaves out, since another row says what they say."""
    if not changes:
        return []
    return [f"omitted, duplicates of rows above: {', '.join(change.label for change in changes)}"]


def undecided_reasons(comparison: Comparison) -> list[str]:
    """The reason of each verdict that judges nothing, once, and what differs in the launches themselves.

    Launches that did other work, or may have, have a reason each: grid and block are of that launch.
    A duration that was judged by cycles is named too: its change is large, and its verdict is same.
    """
    reasons = dict.fromkeys(
        (pair.verdict, pair.headline.reason if pair.headline else "metrics.txt has no duration")
        for pair in comparison.pairs
        if not pair.verdict.traits.decided and not pair.workload_change
    )
    lines = [f"{verdict.label}: {reason}" for verdict, reason in reasons]
    for pair in comparison.pairs:
        if pair.workload_change:
            lines.append(
                f"{pair.workload_change.verdict.label}: {pair.kernel}: {pair.workload_change.reason}"
            )
        if pair.headline and pair.headline.judged_by and pair.verdict.traits.decided:
            lines.append(f"{pair.kernel}: {pair.headline.reason}")
        if words := _differing(pair):
            lines.append(f"{pair.kernel}: {words}")
    if doubted := next((pair for pair in comparison.pairs if pair.workload_change), None):
        option = shlex.quote(f"{doubted.a.base_name}={doubted.b.base_name}")
        lines.append(f"to compare them anyway: --pair {option}, or a workload declared for both at import")
    return lines


def paired_names(comparison: Comparison) -> list[str]:
    """How launches of different names came to be pairs, a line for two names."""
    pairs = comparison.pairs
    return words_of_paired_names((pair.a.base_name, pair.b.base_name, pair.paired_by) for pair in pairs)


def words_of_paired_names(pairs: Iterable[tuple[str, str, PairedBy]]) -> list[str]:
    """The same of the names of each pair, with what makes it one."""
    launches = Counter((a, b, paired_by.words) for a, b, paired_by in pairs if paired_by.words)
    return [
        f"{' → '.join(dict.fromkeys(names))}: {words}{f' ({count} launches)' if count > 1 else ''}"
        for (*names, words), count in launches.items()
    ]


def pairing_notes(comparison: Comparison) -> list[str]:
    """`paired_names`, and how to declare or refuse what was proposed."""
    lines = paired_names(comparison)
    if any(pair.paired_by.is_proposed for pair in comparison.pairs):
        lines.append("not declared to be one kernel: --pair A=B declares it, --no-guess refuses it")
    return lines


def other_ranges(comparison: Comparison) -> dict[str, str]:
    """The kernels that both sides have left since their NVTX ranges have other names, and these in words."""
    left = [
        {
            name: {x.nvtx for x in side if x.base_name == name}
            for name in dict.fromkeys(x.base_name for x in side)
        }
        for side in (comparison.only_in_a, comparison.only_in_b)
    ]
    words = {}
    for name in left[0].keys() & left[1].keys():
        if left[0][name].isdisjoint(left[1][name]):
            a, b = (
                brief_list(["/".join(nvtx) or "no range" for nvtx in sorted(side[name])]) for side in left
            )
            words[name] = f"launches pair within a range: NVTX {a} in A, {b} in B"
    return dict(sorted(words.items()))


def pair_options(comparison: Comparison) -> list[str]:
    """The option that pairs what is ambiguous, or what may be one kernel under two names; a line each."""
    lines = [
        f"--pair {_option(group.base_name, group.base_name)} pairs what is ambiguous in order"
        for group in comparison.ambiguous
    ]
    ranges = other_ranges(comparison)
    lines += [
        f"{name}: {words}; --pair {_option(name, name)} pairs them in order" for name, words in ranges.items()
    ]
    return lines + [
        f"--pair {_option(*names)} compares the two, if they are one kernel"
        for names in _only_names(comparison)
        if names[0] not in ranges
    ]


def pair_commands(comparison: Comparison) -> list[str]:
    """The command that pairs what is proposed, doubted, ambiguous or left over; a line each, as Markdown.

    Two names of one kernel are kept for a family; that launches of one name are a pair is said of two sides.
    """
    pairs = comparison.pairs
    proposed = {(pair.a.base_name, pair.b.base_name) for pair in pairs if pair.paired_by.is_proposed}
    of_launchers = {(a, b) for a, b in proposed if a == b}
    doubted = {(pair.a.base_name, pair.b.base_name) for pair in pairs if pair.workload_change}
    ambiguous = {(group.base_name, group.base_name) for group in comparison.ambiguous}
    family = comparison.a.family if comparison.a.family == comparison.b.family else None
    keep = ("profiler", "decide", "pair", family) if family else ()
    compare = ("profiler", "compare", comparison.a.label, comparison.b.label)
    reasons = (
        ("not declared to be one kernel", keep, proposed - of_launchers),
        ("not declared to run one function", compare, of_launchers),
        ("if they are one kernel", keep, {(a, b) for a, b in _only_names(comparison) if a != b}),
        ("to compare them anyway", compare, doubted - proposed),
        ("to pair in order what is ambiguous", compare, ambiguous),
        (
            "to pair in order what ran in other NVTX ranges",
            compare,
            {(k, k) for k in other_ranges(comparison)},
        ),
    )
    lines = []
    for words, command, names in reasons:
        options = [f"{a}={b}" for a, b in sorted(names)]
        if command == compare:
            options = [word for option in options for word in ("--pair", option)]
        if names and command:
            lines.append(f"{words}: `{shlex.join((*command, *options))}`")
    return lines


def _only_names(comparison: Comparison) -> set[tuple[str, str]]:
    """The two kernels without a partner, where each side has one."""
    only_a, only_b = (
        {launch.base_name for launch in launches} for launches in (comparison.only_in_a, comparison.only_in_b)
    )
    return {(a, b) for a in only_a for b in only_b if len(only_a) == len(only_b) == 1}


def _option(a: str, b: str) -> str:
    return shlex.quote(f"{a}={b}")


def _differing(pair: PairComparison) -> str:
    sizes = {"grid": (pair.a.grid, pair.b.grid), "block": (pair.a.block, pair.b.block)}
    words = []
    has_sizes = bool(pair.workload_change and pair.workload_change.sizes)  # said with its reason
    for name in pair.differs:
        if name in sizes and has_sizes:
            continue
        if name in sizes:
            a, b = map(formatting.dimensions, sizes[name])
            words.append(f"{name} {a} → {b}")
        else:
            words.append(f"{name} differs")
    return ", ".join(words)


def hidden_pairs(comparison: Comparison) -> str:
    """How many pairs `--top` left out, and their verdicts."""
    return f"and {comparison.hidden_pairs} shorter pairs: {tally(comparison.hidden_verdicts)}"


def tally(verdicts: Iterable[Verdict]) -> str:
    """How many of each verdict, in the order of the vocabulary."""
    counts = Counter(verdicts)
    return (
        ", ".join(f"{counts[word]} {word.words}" for word in Verdict if counts[word]) or "no kernel matched"
    )


def unmatched(comparison: Comparison) -> list[str]:
    """The launches that one side alone has, a line a side."""
    lines = []
    for name, launches in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if launches:
            shown = ", ".join(describe_launch(comparison, launch) for launch in launches[:_LAUNCHES_LISTED])
            left = len(launches) - _LAUNCHES_LISTED
            lines.append(f"only in {name}: {shown}{f' and {left} more: --json' if left > 0 else ''}")
    return lines


def describe_launch(comparison: Comparison, launch: Launch) -> str:
    """A launch with its size and duration: `kernel#0 (grid 8×1×1, block 256×1×1, 12.3 µs)`."""
    duration = launch.values.value(NCU_DURATION)
    size = f"grid {formatting.dimensions(launch.grid)}, block {formatting.dimensions(launch.block)}"
    return f"{comparison.label(launch)} ({size}, {formatting.quantity(duration)})"


def earlier_counters(comparison: Comparison) -> list[str]:
    """Of which earlier run the counters of a side are, where its newest run was only timed."""
    lines = []
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        earlier = side.earlier_counters
        if earlier is not None:
            code = "the same code" if earlier.is_same_code else "the same version, its code not recorded"
            made = formatting.timestamp(earlier.created)
            lines.append(
                f"counters of {name}: run {earlier.run_id} of {made}, {code}; the newest run was only timed"
            )
    return lines


def warnings(comparison: Comparison) -> list[str]:
    """What a reader should check before trusting a verdict, one sentence each."""
    sentences = [
        difference.words for difference in comparison.differences if difference.kind in ("differs", "same")
    ]
    unknown_on_both = [d.field for d in comparison.unknown if d.a is None and d.b is None]
    if unknown_on_both:
        sentences.append(f"unknown on both sides: {', '.join(unknown_on_both)}")
    sentences += [d.words for d in comparison.unknown if d.a is not None or d.b is not None]
    sentences += [f"{group.base_name} is ambiguous: {group.why}" for group in comparison.ambiguous]
    return sentences + earlier_counters(comparison)
