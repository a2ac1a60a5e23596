"""One launch's machine code as markup: a heat map of its instructions, and where the samples fall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import PurePath

from profiler.build import function_name, template_integer
from profiler.evidence import formatting
from profiler.sass import HotSpot, Listing, hotspots
from profiler.store import ResultInfo
from profiler.ui import markup
from profiler.ui.addresses import CodeReport
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.part_names import short_names

ORDERS = ("line", "address", "hottest")  # the first is offered where there is line info
VIEWS = ("sass", "source")
PAGE = 6_000  # rows drawn at once: a listing of 5,000 lines stands whole
BINS = 160  # of the strip over the whole listing
REASONS = 5
UNREAD = "The report holds no SASS text (it prints ???): the counts stand at their places all the same."
NO_CODE = "{}: the report holds no instructions; collect with --set full or --section SourceCounters"
AT = code_grid.Column("at", "98px")
COUNTS = (
    code_grid.Column("samples", "64px", right=True),
    code_grid.Column("waiting for", "196px", wide=True),
    code_grid.Column("executed", "74px", wide=True, right=True),
)
EXCESS = code_grid.Column("excess", "62px", wide=True, right=True)  # shared-memory wavefronts over the ideal


def report_titles(reports: Mapping[str, CodeReport], optional: bool = False) -> dict[str, str]:
    """What the reports are called; with an empty choice first where one need not be chosen."""
    titles = {key: report.title for key, report in reports.items()}
    return {"": "none", **titles} if optional else titles


def launch_labels(launches: Mapping[str, ResultInfo]) -> dict[str, str]:
    """What the launches of a report are called, longest first."""
    names = short_names(launch.part for launch in launches.values())
    order = sorted(launches, key=lambda key: -(launches[key].duration_ns.number or 0))
    return {
        key: f"{names[launches[key].part]} · {formatting.quantity(launches[key].duration_ns)}"
        for key in order
    }


def first_launch(launches: Mapping[str, ResultInfo], like: ResultInfo | None) -> str | None:
    """The launch to open with: the longest of the other side's kernel where there is one."""
    order = sorted(launches, key=lambda key: -(launches[key].duration_ns.number or 0))
    same = [key for key in order if like and launches[key].part == like.part]
    alike = [key for key in order if like and launches[key].base_name == like.base_name]
    return next(iter((*same, *alike, *order)), None)


def unknown(asked: Sequence[str], reports: Mapping[str, CodeReport]) -> list[Html]:
    """A line for each report that an address names and nobody has."""
    lost = [key for key in asked if key and key not in reports]
    return [
        markup.error_box(f"There is no report {key} here: import it, or choose another above.")
        for key in lost
    ]


def unknown_launch(asked: str, chosen: str, launches: Mapping[str, ResultInfo], side: str) -> Html:
    """A line where an address names a launch that its report does not have; another one is shown then."""
    if not asked or asked in launches:
        return Html("")
    last = max(map(int, launches))
    return markup.error_box(
        f"Report {side} has no launch {asked}: it has 0 to {last}. Launch {chosen} is shown instead."
    )


def without_counts(versions: Sequence[str]) -> list[Html]:
    """The command that measures counts by instruction of versions of the catalogue; nothing of none."""
    if not versions:
        return []
    counts = f"profiler collect {' '.join(versions)} --full {','.join(versions)}"
    return [markup.note(markup.backticks_as_code(f"Counts by instruction are measured on a GPU: `{counts}`"))]


def by_compiler(*versions: str, arch: str | None = None) -> str:
    """The command that builds versions of the catalogue here and prints their machine code."""
    return " ".join(["profiler sass", *versions, *(["--arch", arch] if arch else [])])


def no_launch(title: str) -> Html:
    """What is said of a report of which no launch was kept: its version was wrong, say."""
    return markup.note(
        markup.state(f"{title}: no launch of this report is kept, so there is no code to show")
    )


def without_code(code: Sequence[Listing]) -> list[Html]:
    """A line for each launch of which the report holds no instructions."""
    return [markup.note(markup.state(NO_CODE.format(one.label))) for one in code if not one.lines]


def orders(listing: Listing) -> tuple[str, ...]:
    """How the instructions may be ordered: by source line where there is line info, by heat where counted."""
    kept = ORDERS if listing.has_sources else ORDERS[1:]
    return kept if listing.counts else kept[:-1]


def head(code: Sequence[Listing], context: Sequence[str]) -> Html:
    """The title: one kernel, or A → B."""
    names = [one.label.partition(" ")[::2] for one in code]  # version and kernel, as data.listing says them
    kernels = list(dict.fromkeys(kernel for _, kernel in names))
    shown = [version if len(kernels) == 1 else f"{version} {kernel}" for version, kernel in names]
    sides = [
        markup.join((markup.muted(side), markup.code(name))) for side, name in zip("AB", shown, strict=False)
    ]
    title = markup.join(sides, " → ") if len(names) == 2 else markup.join(map(markup.code, shown))
    return markup.page_head(
        title or "Code", markup.join([*kernels[: len(kernels) == 1], *dict.fromkeys(context)], " · ")
    )


def function_label(mangled: str) -> str:
    """A function as it is called on screen: `v2d<64>`."""
    name, size = function_name(mangled), template_integer(mangled)
    return name if size is None else f"{name}<{size}>"


def function_labels(functions: Iterable[str]) -> dict[str, str]:
    """What each of several functions is called on screen: mangled where others would be called the same."""
    labels = {name: function_label(name) for name in functions}
    shared = Counter(labels.values())
    return {name: label if shared[label] == 1 else name for name, label in labels.items()}


def tab(code: Sequence[Listing]) -> str:
    """What the browser's tab calls the view: `Code of v2d_a → v2d_b`."""
    return f"Code of {' → '.join(one.label.partition(' ')[0] for one in code)}"


def strip(listing: Listing, places: Sequence[HotSpot]) -> Html:
    """How much there is, what the warps waited for, and what the report does not hold."""
    samples = sum(hot.samples or 0 for hot in places)
    parts: list[object] = [f"{code_grid.count(len(listing.lines))} instructions"]
    if len(listing.functions) > 1:
        parts.append(f"{len(listing.functions)} code regions")
    if hotspots.SAMPLES in listing.counts:
        parts.append(f"{code_grid.count(samples)} samples")
    for reason, count in list(hotspots.stall_totals(places).items())[:REASONS]:
        parts.append(markup.muted(f"{reason} {100 * count / samples:.0f} %"))
    if not listing.has_sources:
        parts.append(markup.muted("no line info: compile with -lineinfo"))
    elif not listing.texts:
        parts.append(markup.muted("no source text: collect with --import-source yes"))
    return markup.grey_strip(parts)


def unread(code: Sequence[Listing]) -> Html:
    """A line that says so where a report has no text for its instructions."""
    if all(one.has_text for one in code):
        return Html("")
    return markup.note(markup.state(UNREAD))


def map_strip(places: Sequence[HotSpot]) -> Html:
    """Where in the listing, from its first to its last instruction, the samples fall."""
    if len(places) < 2 or not any(hot.samples for hot in places):
        return Html("")
    bins = min(BINS, len(places))
    cuts = [index * len(places) // bins for index in range(bins + 1)]
    counts = [sum(hot.samples or 0 for hot in places[i:j]) for i, j in pairwise(cuts)]
    largest = max(counts)
    cells = "".join(
        f'<i class="{code_grid.level(count, largest)}" title="{places[i].location.words} to '
        f'{places[j - 1].location.words}: {code_grid.count(count)} samples"></i>'
        for (i, j), count in zip(pairwise(cuts), counts, strict=True)
    )
    return Html(f'<div class="k heat" role="img" aria-label="samples over the listing">{cells}</div>')


def ordered(listing: Listing, places: Sequence[HotSpot], order: str, words: str) -> list[HotSpot | str]:
    """The instructions that hold every word, under heads: functions or source lines."""
    wanted = words.lower().split()
    kept = [hot for hot in places if all(word in _searched(listing, hot) for word in wanted)]
    if order == "hottest":
        return list(hotspots.hottest(kept, len(kept)))
    if order == "line" and listing.has_sources:
        kept.sort(key=lambda hot: _line_order(listing, hot))
        return _under_heads(kept, lambda hot: _line_head(listing, hot))
    several = len(listing.functions) > 1
    called = function_labels(listing.functions)
    return _under_heads(kept, lambda hot: called[listing.functions[hot.location.function]] if several else "")


def table(listing: Listing, rows: Sequence[HotSpot | str], shown: code_grid.Window, order: str) -> Html:
    """The heat map: a row an instruction, counts before the text."""
    hots = [row for row in rows if isinstance(row, HotSpot)]
    if not hots:
        return markup.note("No instruction holds these words.")
    excess = any(hot.excess for hot in hots)
    with_source = listing.has_sources and order != "line"
    samples, executed = (
        code_grid.heat(hot.samples for hot in hots),
        code_grid.heat(hot.executed for hot in hots),
    )
    lost = code_grid.heat(hot.excess for hot in hots)
    counted = bool(listing.counts)
    columns = [AT, *COUNTS] if counted else [AT]
    columns += [*[EXCESS] * excess, code_grid.Column("SASS", "minmax(300px,1fr)")]
    columns += [code_grid.Column("source", "220px", wide=True)] * with_source
    lines, last = [], ""
    for hot in rows[shown.start : shown.stop]:
        if isinstance(hot, str):
            lines.append(code_grid.head(hot))
            continue
        cells = [code_grid.cell(hot.location.words)]
        if counted:
            cells += [samples(hot.samples), code_grid.cell(mostly(hot), "w m"), executed(hot.executed, " w")]
        if excess:
            cells.append(lost(hot.excess, " w"))
        cells.append(code_grid.text(hot.text, source_words(listing, hot)))
        if with_source:
            origin = source_words(listing, hot)
            cells.append(code_grid.cell(origin if origin != last else "", "w m"))  # where it changes
            last = origin
        lines.append(code_grid.row(cells))
    return code_grid.table(columns, lines)


def _under_heads(rows: Sequence[HotSpot], head_of: Callable[[HotSpot], str]) -> list[HotSpot | str]:
    """The rows with a head before each group of them, which says how many samples fell into it."""
    found: list[HotSpot | str] = []
    for words, group in groupby(rows, head_of):
        several = list(group)
        samples = sum(hot.samples or 0 for hot in several)
        if words:
            found.append(
                words + (f"  · {code_grid.count(samples)} sample{'s' * (samples != 1)}" if samples else "")
            )
        found += several
    return found


def _line_order(listing: Listing, hot: HotSpot) -> tuple[bool, str, int, int]:
    at = hot.lines[0]
    name, line = listing.lines[at].source or ("", 0)
    return not name, name, line, at


def _line_head(listing: Listing, hot: HotSpot) -> str:
    origin = listing.lines[hot.lines[0]].source
    if origin is None:
        return f"no line info: {listing.functions[hot.location.function]}"
    text = (listing.source_text(origin) or "").strip()
    return f"{PurePath(origin[0]).name}:{origin[1]}  {text}"


def source_words(listing: Listing, hot: HotSpot) -> str:
    origin = listing.lines[hot.lines[0]].source
    return f"{PurePath(origin[0]).name}:{origin[1]}" if origin else ""


def _searched(listing: Listing, hot: HotSpot) -> str:
    return (
        f"{hot.location.words} {hot.text or ''} {source_words(listing, hot)} {' '.join(hot.reasons)}".lower()
    )


def mostly(hot: HotSpot) -> str:
    if not hot.reasons:
        return ""
    reason = max(hot.reasons, key=lambda name: hot.reasons[name])
    return f"{reason} {100 * hot.reasons[reason] / (hot.samples or 1):.0f}\N{NO-BREAK SPACE}%"
