"""How insights read: for a terminal, and as short Markdown for a pull request."""

from __future__ import annotations

import textwrap

from profiler.advice import Insights, MetricInput, Statement
from profiler.advice.statement import UNKNOWN, format_from_to
from profiler.cli.output import say
from profiler.evidence import formatting

_WIDTH = 110
_SHOWN = 6  # metrics of a statement in words; --json has them all


def print_text(found: Insights) -> None:
    """Print the statements, each with its lever and its numbers."""
    for line in _head(found):
        say(line)
    for number, one in enumerate(found.statements, 1):
        say(f"\n{number}. {one.kind.replace('_', ' ')}{_share(one)}, {one.evidence}")
        _say_wrapped(one.text)
        if one.lever:
            _say_wrapped(f"→ {one.lever}")
        if numbers := _numbers(one):
            _say_wrapped(numbers)
        _say_wrapped(f"({one.confidence})")
    if found.hidden:
        say(f"\nand {found.hidden} more that concern less")


def markdown(found: Insights) -> str:
    """The statements as a list, the metrics folded below."""
    case = found.subject
    title = f"### `{case.label}`" + (f" against `{case.baseline}`" if case.baseline else "")
    lines = [title, ""]
    if found.launch:
        lines += [f"`{_tick(found.launch)}`: {found.launch_why}.", ""]
    for one in found.statements:
        lever = f" **→ {_cell(one.lever)}**" if one.lever else ""
        lines.append(
            f"- **{one.kind.replace('_', ' ')}**{_share(one)} ({one.evidence}): {_cell(one.text)}{lever}"
        )
    if found.hidden:
        lines.append(f"- and {found.hidden} more that concern less")
    rows = [
        f"| {number} | `{_tick(metric.name)}` | {_cell(_value(metric))} | {_cell(_baseline(metric))} |"
        for number, one in enumerate(found.statements, 1)
        for metric in one.inputs
        if one.kind != UNKNOWN
    ]
    if rows:
        head = ["| # | metric | value | baseline |", "| --- | --- | ---: | ---: |"]
        lines += [
            "",
            "<details><summary>the numbers they rest on</summary>",
            "",
            *head,
            *rows,
            "",
            "</details>",
        ]
    if not case.baseline and case.baseline_why:
        lines += ["", f"{case.baseline_why[:1].upper()}{case.baseline_why[1:]}."]
    return "\n".join(lines) + "\n"


def _head(found: Insights) -> list[str]:
    case, lines = found.subject, []
    measured = case.measured.side if case.measured else None
    where = ", ".join(filter(None, (measured.gpu, measured.workload))) if measured else ""
    lines.append(f"{case.label}{f'  ({where})' if where else ''}")
    lines.append(f"against {case.baseline}: {case.baseline_why}" if case.baseline else case.baseline_why)
    if found.launch:
        lines.append(f"{found.launch}: {found.launch_why}")
    return [line for line in lines if line]


def _numbers(one: Statement) -> str:
    if one.kind == UNKNOWN:
        return ""
    told = []
    for metric in one.inputs[:_SHOWN]:
        both = metric.valid and metric.baseline is not None and metric.baseline.number is not None
        shown = format_from_to(metric.baseline, metric.value) if both and metric.baseline else _value(metric)
        told.append(f"{metric.concept or metric.name} {shown}")
    more = len(one.inputs) - _SHOWN
    return "; ".join((*told, *([f"and {more} more: --json"] if more > 0 else [])))


def _value(metric: MetricInput) -> str:
    return metric.state if not metric.valid else metric.text


def _baseline(metric: MetricInput) -> str:
    return "–" if metric.baseline is None else str(formatting.quantity(metric.baseline))


def _share(one: Statement) -> str:
    return "" if not one.share else f", {one.share:.0%} of the time at most".replace("%", " %")


def _say_wrapped(text: str) -> None:
    for line in textwrap.wrap(
        text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False
    ):
        say(line)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _tick(text: str) -> str:
    return text.replace("`", "'").replace("|", "\\|")
