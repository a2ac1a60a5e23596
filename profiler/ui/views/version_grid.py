"""Versions by workloads as a table of numbers: change over the range, tinted where there is a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape

from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.naming import natural_key
from profiler.history import step_words
from profiler.history.version_grid import GridCell
from profiler.statistics.verdict import Verdict
from profiler.ui import markup
from profiler.ui.markup import Html

ROWS_SHOWN = 30
NOT_MEASURED = "not measured"
_LEAST_TINT, _MOST_TINT = 12, 45  # per cent of the verdict's colour
_TINT_PER_SHARE = 250  # per cent of colour for a change of all of it: 10 % more is a quarter of the colour
CellAddress = Callable[[Cell], str]


def table(cells: Mapping[Cell, GridCell], versions: Sequence[str], shown: Cell, address: CellAddress) -> Html:
    """A row a version, a column a workload by GPU; `shown` is what the chart above shows and isolates."""
    places = sorted(
        {(place.gpu, place.workload) for place in cells},
        key=lambda pair: (natural_key(pair[0]), natural_key(pair[1])),
    )
    with_cells = [version for version in versions if any(place.version == version for place in cells)]
    gpus = Counter(gpu for gpu, _ in places)
    groups = "".join(
        f'<th colspan="{count}">{markup.escaped(gpu or "–")}</th>' for gpu, count in gpus.items()
    )
    group_row = f"<tr><th></th>{groups}<th></th></tr>" if any(gpus) else ""  # a model on the CPU has no GPU
    heads = "".join(f'<th class="r">{markup.escaped(workload or "–")}</th>' for _, workload in places)
    rows = "".join(
        _row(version, places, cells, version == shown.version, address, shown)
        for version in with_cells[:ROWS_SHOWN]
    )
    return Html(
        f'<div class="k k-box grid">{markup.table_start("version by workload")}<thead>'
        f"{group_row}<tr><th>version</th>{heads}<th>state</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def caption(cells: Mapping[Cell, GridCell], versions: Sequence[str]) -> str:
    """What the numbers are, and what is cut off."""
    rows = sum(any(place.version == version for place in cells) for version in versions)
    cut = f"the first {ROWS_SHOWN} of {rows} versions; " if rows > ROWS_SHOWN else ""
    return (
        f"{cut}change from the first to the last number of the range, or the number itself if there is just "
        "one. Coloured where a step was found. A click shows that workload and isolates the version"
    )


def _row(
    version: str,
    places: Sequence[tuple[str, str]],
    cells: Mapping[Cell, GridCell],
    is_shown: bool,
    address: CellAddress,
    shown: Cell,
) -> str:
    row = [cells.get(Cell(version=version, workload=workload, gpu=gpu)) for gpu, workload in places]
    shown_cell = markup.link(
        address(Cell(version=version, workload=shown.workload, gpu=shown.gpu)), markup.code(version)
    )
    tds = "".join(
        _cell(cell, address(Cell(version=version, workload=workload, gpu=gpu)))
        for cell, (gpu, workload) in zip(row, places, strict=True)
    )
    css = ' class="sel"' if is_shown else ""
    return f"<tr{css}><th>{shown_cell}</th>{tds}<td>{_state(row)}</td></tr>"


def _cell(cell: GridCell | None, href: str) -> str:
    if cell is None or cell.gap:
        reason = escape(cell.gap if cell else NOT_MEASURED, quote=True)
        return f'<td class="miss" title="{reason}"><span class="sr">{reason}</span></td>'
    if cell.change is None:
        number = markup.value(cell.last)
        return f'<td class="r">{markup.link(href, number, "one run")}</td>'
    text = _percent(cell.change)
    verdict = cell.verdict
    if verdict is None or not verdict.traits.colour or cell.step is None:
        mark = "" if not cell.not_judged and cell.step is None else f"{_sign(cell)} "
        title = cell.not_judged or (_step_words(cell) if cell.step else "no step")
        return f'<td class="r">{markup.link(href, markup.muted(f"{mark}{text}"), title)}</td>'
    tint = min(_MOST_TINT, _LEAST_TINT + round(_TINT_PER_SHARE * abs(cell.change)))
    colour = verdict.traits.colour
    words = markup.tag("span", f"{verdict.traits.sign} {text}", colour)
    return (
        f'<td class="r" style="background:color-mix(in srgb,var(--k-{colour}) {tint}%,transparent)">'
        f"{markup.link(href, words, _step_words(cell))}</td>"
    )


def _sign(cell: GridCell) -> str:
    """Unclear where nothing could be judged; the sign of a step that is no verdict."""
    return cell.step.verdict.traits.sign if cell.step else Verdict.UNCLEAR.traits.sign


def _step_words(cell: GridCell) -> str:
    step = cell.step
    if step is None:
        return ""
    return (
        f"{step_words.verdict_words(step)} {step_words.size_words(step)} "
        f"since {step_words.where_words(step)}; {step_words.brief_circumstances(step)}"
    )


def _percent(share: float) -> str:
    number = f"{100 * share:+.1f}".replace("-", formatting.MINUS)
    return "±0" if number[1:] == "0.0" else number


def _state(row: Sequence[GridCell | None]) -> Html:
    """The row in words: how many cells got better or worse, how many are missing."""
    measured = [cell for cell in row if cell is not None and not cell.gap]
    if not measured:
        reasons = dict.fromkeys(cell.gap for cell in row if cell is not None)
        return markup.state(", ".join(reasons) or NOT_MEASURED)
    steps = (cell.verdict or cell.step.verdict for cell in measured if cell.step is not None)
    verdicts = Counter(steps)
    parts: list[object] = [
        markup.tag(
            "span", f"{word.traits.sign} {word.words} in {count} of {len(row)}", word.traits.colour or "m"
        )
        for word, count in sorted(verdicts.items(), key=lambda pair: pair[0] is not Verdict.WORSE)
    ]
    if not parts:
        is_judged = any(not cell.not_judged for cell in measured)
        parts = [markup.muted("= no step for better or worse" if is_judged else "? too few runs to judge")]
    if missing := len(row) - len(measured):
        parts.append(markup.muted(f"{missing} not measured"))
    return markup.join(parts, "; ")
