"""How an explanation reads: for a terminal, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

from profiler.cli.comparison import (
    NOT_LATENCY,
    cell,
    code,
    hidden,
    kernel_rows,
    markdown_table,
    print_head,
    print_unmatched,
    reasons,
    unmatched,
)
from profiler.cli.comparison_json import latency_document, warnings
from profiler.cli.latency_text import LATENCY_HEAD, latency_notes, latency_rows
from profiler.cli.output import print_table, say
from profiler.compare import Comparison
from profiler.evidence import formatting
from profiler.explain import Explanation, counters_to_collect
from profiler.explain.explanation import count_launches, describe_depth
from profiler.explain.sentence import format_change, format_side, split_notes
from profiler.explain.time_identity import NO_SPLIT, largest_step_us, waterfall_steps
from profiler.statistics import Verdict

_NO_COUNTERS = "no counters of these launches on both sides: nothing to explain the latency by"
_DURATIONS = ("kernel", "A", "B", "change", "verdict")
_CAUSES = ("cause", "change", "of A's time")
_TO_COLLECT = ("metrics.txt", "what", "ncu metric", "why it is missing")


def document(comparison: Comparison, explanations: Sequence[Explanation]) -> dict[str, object]:
    """The explanation for JSON: times in microseconds, null where there is none.

    Wherever both sides have a time, terms and residue add up to delta_us.
    """
    return {
        "comparable": comparison.comparable,
        "a": comparison.a.label,
        "b": comparison.b.label,
        "warnings": warnings(comparison),
        "latency": [latency_document(one) for one in comparison.latency],
        "launches": [_launch(told) for told in explanations],
        "hidden_launches": comparison.hidden_pairs,
        "unmatched": unmatched(comparison),
    }


def without_time(a: str, b: str, kinds: Sequence[str]) -> tuple[str, dict[str, object]]:
    """Two versions that no GPU measured: the line that says so, and its JSON."""
    words = f"{' and '.join(kinds)} evidence has no duration: there is no time to split"
    return words, {"a": a, "b": b, "launches": [], "reason": words}


def print_text(comparison: Comparison, explanations: Sequence[Explanation], *, everything: bool) -> None:
    """Print the causes of every pair that moved; with `everything` the split of the unclear ones too."""
    print_head(comparison)
    if comparison.latency:
        say("\nlatency of calls, which decides")
        print_table(LATENCY_HEAD, latency_rows(comparison), right=(1, 2, 3, 4))
        _print_lines(iter(latency_notes(comparison)))
    if comparison.pairs:
        say(f"\n{NOT_LATENCY}")
        print_table(_DURATIONS, kernel_rows(comparison), right=(1, 2, 3))
    elif comparison.a.launches or comparison.b.launches or not comparison.latency:
        say("\nno launch of A has a partner in B")
    else:
        say(f"\n{_NO_COUNTERS}")
    for line in (*reasons(comparison), *_without_causes(explanations, everything)):
        say(f"  {line}")
    if comparison.hidden_pairs:
        say(f"  {hidden(comparison)}: --top N")
    print_unmatched(comparison)
    for told in _shown(explanations, everything):
        say(f"\n{told.kernel}: {told.sentence}")
        if told.split:
            print_table(_CAUSES, _rows(told), right=(1, 2))
            _print_lines(split_notes(told.split, bool(told.causes)))
    if lacking := counters_to_collect(explanations):
        say(f"\n{_collect(explanations)}")
        print_table(_TO_COLLECT, [astuple(one) for one in lacking])


def markdown(comparison: Comparison, explanations: Sequence[Explanation]) -> str:
    """The explanation for a pull request: a sentence a pair that moved, its causes folded below."""
    lines = [f"### Why {code(comparison.b.label)} differs from {code(comparison.a.label)}", ""]
    if comparison.latency:
        lines += markdown_table(LATENCY_HEAD, latency_rows(comparison), first_is_code=False)
        lines += ["", *(f"- {cell(line)}" for line in latency_notes(comparison)), ""]
    if comparison.pairs:
        lines += markdown_table(_DURATIONS, kernel_rows(comparison), first_is_code=True)
        lines += ["", f"{comparison.a.gpu or 'GPU unknown'}. {NOT_LATENCY}.", ""]
    elif comparison.latency:
        lines += [f"{_NO_COUNTERS}.", ""]
    told_why = (*reasons(comparison), *_without_causes(explanations, False))
    lines += [f"- {cell(line)}" for line in (*told_why, *unmatched(comparison), *warnings(comparison))]
    if comparison.hidden_pairs:
        lines.append(f"- {hidden(comparison)}")
    for told in _shown(explanations, False):
        lines += ["", f"**{code(told.kernel)}**: {cell(told.sentence)}"]
        if told.split:
            lines += ["", f"<details><summary>{len(_rows(told)) - 2} causes</summary>", ""]
            lines += markdown_table(_CAUSES, _rows(told), first_is_code=False)
            lines += [
                "",
                *(f"- {cell(note)}" for note in split_notes(told.split, bool(told.causes))),
                "",
                "</details>",
            ]
    if lacking := counters_to_collect(explanations):
        lines += ["", cell(_collect(explanations)), ""]
        lines += markdown_table(_TO_COLLECT, [astuple(one) for one in lacking], first_is_code=False)
    return "\n".join(lines) + "\n"


def _launch(told: Explanation) -> dict[str, object]:
    found, pair = told.split, told.pair
    return {
        "kernel": pair.b.base_name,
        "part": told.kernel,
        "a_us": told.a_us,
        "b_us": told.b_us,
        "delta_us": told.delta_us,
        "verdict": told.verdict.value,
        "reason": told.reason,
        "sentence": told.sentence,
        "depth": found.depth if found else NO_SPLIT,
        "terms": [{"cause": term.cause, "us": term.us} for term in found.terms] if found else [],
        "terms_are_causes": bool(told.causes),
        "residue_us": found.residue_us if found else told.delta_us,  # without terms it is all of the change
        "residue_flagged": found.flagged if found else "",
        "stall_ratio": {"a": found.stall_ratio_a, "b": found.stall_ratio_b} if found else None,
        "stall_skew_us": found.stall_skew_us if found else 0.0,
        "reasons_flagged": found.reasons_flagged if found else "",
        "clock_from_time": found.clock_from_time if found else False,
        "missing": [
            {
                "concept": one.concept,
                "label": one.label,
                "metrics": one.names,
                "line": one.line or None,
                "why": one.why,
            }
            for one in told.missing
        ],
    }


def _shown(explanations: Sequence[Explanation], everything: bool) -> list[Explanation]:
    """The pairs that moved; with `everything` those that may have as well."""
    return [
        told
        for told in explanations
        if told.verdict.traits.moved or (everything and told.verdict is Verdict.UNCLEAR)
    ]


def _without_causes(explanations: Sequence[Explanation], everything: bool) -> Iterator[str]:
    same = sum(told.verdict is Verdict.SAME for told in explanations)
    if same:
        yield f"{Verdict.SAME.label}: {count_launches(same)} unchanged, so without causes"
    unclear = sum(told.verdict is Verdict.UNCLEAR and told.split is not None for told in explanations)
    if unclear and not everything:
        sign = Verdict.UNCLEAR.label
        yield f"{sign}: no causes; --all shows how the counters split {unclear}"


def _rows(told: Explanation) -> list[tuple[str, str, str]]:
    """From A's time through the causes to B's, all in one unit."""
    if told.split is None or told.a_us is None or told.b_us is None:
        return []
    largest = max(told.a_us, told.b_us)
    rows = [("A", format_side(told.a_us, largest), "")]
    found = waterfall_steps(told.a_us, told.split)
    for step in found:
        change = format_change(step.us, largest, largest_step_us(found))
        rows.append((step.label, change, formatting.percent_change(100 * step.us / told.a_us)))
    return [
        *rows,
        (
            "B",
            format_side(told.b_us, largest),
            formatting.percent_change(100 * (told.delta_us or 0) / told.a_us),
        ),
    ]


def _collect(explanations: Sequence[Explanation]) -> str:
    depth = describe_depth(explanations)
    return f"{depth}. Lines of metrics.txt to collect (`profiler metrics` prints them for ncu):"


def _print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        say(f"  {line}")
