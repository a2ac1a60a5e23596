"""How a comparison reads: for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from profiler.cli.comparison_json import warnings
from profiler.cli.latency_text import LATENCY_HEAD, latency_notes, latency_rows
from profiler.cli.output import print_table, say
from profiler.compare import Comparison, MetricChange, PairComparison
from profiler.evidence import NCU_DURATION, Launch, brief_list, formatting
from profiler.statistics import Verdict

NOT_LATENCY = "ncu duration, not latency; one launch a side: unreplicated where no A/A pairs judge"
SHOWN = 25  # pairs that a terminal or a pull request gets unasked
DETAILED = 5  # pairs whose counters are listed unasked
LISTED = 6  # launches without a partner that a line describes
NAMED = 10  # missing concepts that a line names


def print_text(comparison: Comparison, *, everything: bool) -> None:
    """Print the comparison: every metric of every pair with `everything`, else what moved where time did."""
    print_head(comparison)
    if comparison.latency:
        say("\nlatency of calls")
        print_table(LATENCY_HEAD, latency_rows(comparison), right=(1, 2, 3, 4))
        _print_lines(latency_notes(comparison), "  ")
    if comparison.pairs:
        say(f"\n{NOT_LATENCY}")
        print_table(("kernel", "A", "B", "change", "verdict"), kernel_rows(comparison), right=(1, 2, 3))
        _print_lines(reasons(comparison), "  ")
    elif comparison.a.launches or comparison.b.launches or not comparison.latency:
        say("\nno launch of A has a partner in B")
    if comparison.hidden_pairs:
        say(f"  {hidden(comparison)}: --top N")
    print_unmatched(comparison)
    detailed = comparison.pairs if everything else _moved(comparison.pairs)
    for pair in detailed if everything else detailed[:DETAILED]:
        _print_pair(pair, everything)
    if not everything and len(detailed) > DETAILED:
        say(f"\nand the counters of {len(detailed) - DETAILED} more that moved: --all, or --kernel PATTERN")
    elif comparison.pairs and not detailed:
        say("\nno duration is better or worse; the counters: --all, or --kernel PATTERN")


def markdown(comparison: Comparison) -> str:
    """The comparison for a pull request: verdicts on top, the counters that moved folded below."""
    counted = tally((*(pair.verdict for pair in comparison.pairs), *comparison.hidden_verdicts))
    if comparison.latency:
        counted = f"latency {tally(one.verdict for one in comparison.latency)}"
    lines = [f"### {code(comparison.a.label)} → {code(comparison.b.label)}: {counted}", ""]
    if not comparison.comparable:
        blocked = "; ".join(difference.words for difference in comparison.blocked_by)
        lines += [f"**Not comparable:** {cell(blocked)}", ""]
    if comparison.latency:
        lines += markdown_table(LATENCY_HEAD, latency_rows(comparison), first_is_code=False)
        lines += ["", *(f"- {cell(line)}" for line in latency_notes(comparison)), ""]
    if comparison.pairs or not comparison.latency:
        lines += markdown_table(
            ("kernel", "A", "B", "change", "verdict"), kernel_rows(comparison), first_is_code=True
        )
        lines += ["", f"{comparison.a.gpu or 'GPU unknown'}. {NOT_LATENCY}.", ""]
    lines += [f"- {cell(line)}" for line in reasons(comparison)]
    lines += [f"- {cell(line)}" for line in (*unmatched(comparison), *warnings(comparison))]
    if comparison.hidden_pairs:
        lines.append(f"- {hidden(comparison)}")
    rows = [
        (
            pair.kernel,
            f"{change.group}: {change.label}",
            *change_numbers(change),
            change.verdict.label,
        )
        for pair in comparison.pairs
        for change in pair.metrics
        if change.verdict.traits.moved and change is not pair.headline
    ]
    if rows:
        summary = f"<details><summary>{len(rows)} judged counters moved</summary>"
        header = ("kernel", "metric", "A", "B", "change", "verdict")
        lines += ["", summary, "", *markdown_table(header, rows, first_is_code=True), "", "</details>"]
    return "\n".join(lines) + "\n"


def print_head(comparison: Comparison) -> None:
    """Print which sides they are, and whether they may be compared."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        ncu = side.session.ncu_version or "version unknown"
        say(f"{name}  {side.label}  ({side.gpu or 'GPU unknown'}, ncu {ncu})")
    noted = warnings(comparison)
    if comparison.comparable:
        say(f"Comparable: yes{', but note' if noted else ''}")
    else:
        say("Comparable: no")
    say(
        "  same: "
        + ", ".join(f"{field} {value}" for field, value in comparison.same if field != "command line")
    )
    _print_lines(noted, "  ")


def kernel_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a pair: kernel, both durations, the change, the verdict."""
    rows: list[tuple[str, ...]] = []
    for pair in comparison.pairs:
        change = pair.headline
        numbers = change_numbers(change) if change else ("–", "–", "")
        rows.append((pair.kernel, *numbers, pair.verdict.label))
    return rows


def reasons(comparison: Comparison) -> list[str]:
    """The reason of each verdict that judges nothing, once, and what differs in the launches themselves."""
    by_reason: dict[tuple[Verdict, str], int] = Counter(
        (pair.verdict, pair.headline.reason if pair.headline else "metrics.txt has no duration")
        for pair in comparison.pairs
        if not pair.verdict.traits.decided
    )
    found = [f"{word.label}: {reason}" for word, reason in by_reason]
    for pair in comparison.pairs:
        if pair.differs:
            found.append(f"{pair.kernel}: {_differing(pair)}")
    return found


def _differing(pair: PairComparison) -> str:
    sizes = {"grid": (pair.a.grid, pair.b.grid), "block": (pair.a.block, pair.b.block)}
    words = []
    for name in pair.differs:
        a, b = sizes.get(name, (None, None))
        words.append(
            f"{name} {formatting.dimensions(a)} → {formatting.dimensions(b)}"
            if name in sizes
            else f"{name} differs"
        )
    return ", ".join(words)


def hidden(comparison: Comparison) -> str:
    """How many pairs `--top` left out, and their verdicts."""
    return f"and {comparison.hidden_pairs} shorter pairs: {tally(comparison.hidden_verdicts)}"


def tally(verdicts: Iterable[Verdict]) -> str:
    """How many of each verdict, in the order of the vocabulary."""
    counts = Counter(verdicts)
    told = [f"{counts[word]} {word.replace('_', ' ')}" for word in Verdict if counts[word]]
    return ", ".join(told) or "nothing matched"


def unmatched(comparison: Comparison) -> list[str]:
    """The launches that one side alone has."""
    found = []
    for name, launches in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if launches:
            shown = ", ".join(_described(comparison, launch) for launch in launches[:LISTED])
            more = f" and {len(launches) - LISTED} more: --json" if len(launches) > LISTED else ""
            found.append(f"only in {name}: {shown}{more}")
    return found


def print_unmatched(comparison: Comparison) -> None:
    """Print the launches that have no partner, and those that are ambiguous."""
    _print_lines(unmatched(comparison), "")
    for group in comparison.ambiguous:
        sides = (
            brief_list([_described(comparison, launch) for launch in side]) for side in (group.a, group.b)
        )
        say(f"ambiguous: {group.base_name}: {group.why}\n  A: {next(sides)}\n  B: {next(sides)}")


def _described(comparison: Comparison, launch: Launch) -> str:
    duration = launch.values.value(NCU_DURATION)
    size = f"grid {formatting.dimensions(launch.grid)}, block {formatting.dimensions(launch.block)}"
    return f"{comparison.label(launch)} ({size}, {formatting.quantity(duration)})"


def _moved(pairs: Sequence[PairComparison]) -> Sequence[PairComparison]:
    return pairs if len(pairs) == 1 else [p for p in pairs if p.verdict.traits.moved]


def _print_pair(pair: PairComparison, everything: bool) -> None:
    shown = [c for c in pair.metrics if everything or not c.verdict.traits.quiet]
    groups = list(dict.fromkeys(change.group for change in shown))
    shown.sort(key=lambda change: (groups.index(change.group), -_size(change)))
    what = "every metric" if everything else "what moved"
    say(f"\n{pair.kernel}: {what}, largest change first within a group")
    rows, last = [], None
    for change in shown:
        group = "" if change.group == last else change.group
        rows.append((group, change.label, *change_numbers(change), change.verdict.label))
        last = change.group
    if rows:
        print_table(("group", "metric", "A", "B", "change", "verdict"), rows, right=(2, 3, 4))
    else:
        say("  nothing beyond its threshold")
    if not everything:
        _print_missing(pair)


def _print_missing(pair: PairComparison) -> None:
    by_reason: dict[str, list[str]] = {}
    for change in pair.metrics:
        if change.verdict is Verdict.MISSING:
            by_reason.setdefault(change.reason, []).append(change.concept)
    for reason, names in by_reason.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        say(f"  – {reason}: {', '.join(names[:NAMED])}{more}")


def _size(change: MetricChange) -> float:
    """The size of a change as it is shown: points for percentages, else per cent."""
    if change.a.number is None or change.b.number is None:
        return -1.0
    if change.unit == "%":
        return abs(change.b.number - change.a.number)
    return math.inf if change.change_pct is None else abs(change.change_pct)


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


def _print_lines(lines: Iterable[str], indent: str) -> None:
    for line in lines:
        say(indent + line)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, first_is_code: bool) -> list[str]:
    """The lines of a Markdown table; columns of numbers stand at the right."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append(
        "|" + "|".join(" ---: " if name in ("A", "B", "change") else " --- " for name in header) + "|"
    )
    for first, *others in rows:
        cells = [code(first) if first_is_code else cell(first), *map(cell, others)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def cell(text: str) -> str:
    """The text as a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def code(text: str) -> str:
    """The text as code in a cell of a Markdown table."""
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"
