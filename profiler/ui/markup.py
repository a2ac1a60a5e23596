"""The HTML of the pages: every value escaped, every verdict with its sign, every state with its hatch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from profiler.evidence import formatting
from profiler.evidence.values import State, Value
from profiler.statistics.verdict import Verdict

_NAME_END = 6  # letters of a name that are always seen: as many as `.mid` leaves room for
_NARROW_UNIT = 12  # letters; of longer ones the label or the tooltip of the row speaks
_SHORT_UNIT = 3  # letters: ns, GB/s … and Hz are symbols, longer ones are words
_SHORT_STATES = {State.NOT_AVAILABLE: "not available"}
_WITH_UNIT = re.compile(r"[+−]?[\d.]+ (?:ns|µs|ms|s|%)(?!\w)")


class Html(str):
    """Text that is markup already; any other string is escaped on its way into a page."""

    __slots__ = ()


def escaped(text: object) -> Html:
    """The text as markup on one line: escaped unless it is Html already."""
    if isinstance(text, Html):
        return text
    return Html(escape(" ".join(str(text).split()), quote=True))


def join(parts: Iterable[object], separator: str = " ") -> Html:
    """The parts as one piece of markup, each escaped unless it is Html."""
    return Html(separator.join(escaped(part) for part in parts if str(part)))


def tag(name: str, text: object, css: str = "", title: str = "") -> Html:
    """One element; `title` is what a pointer resting on it reads."""
    attributes = (f' class="{css}"' if css else "") + (
        f' title="{escape(title, quote=True)}"' if title else ""
    )
    return Html(f"<{name}{attributes}>{escaped(text)}</{name}>")


def code(text: object, title: str = "") -> Html:
    """A version, kernel, metric or opcode name, or a command."""
    return tag("span", text, "c", title)


def cut_name(text: object, title: str = "") -> Html:
    """A name in code that, where it lacks room, is cut in its middle: kernels differ in their `#n`."""
    words = " ".join(str(text).split())
    if len(words) <= 2 * _NAME_END:
        return code(words, title)
    parts = (tag("span", words[:-_NAME_END]), tag("span", words[-_NAME_END:], "end"))
    return tag("span", Html("".join(parts)), "c mid", title)


def muted(text: object) -> Html:
    """Words beside the value: labels, units, captions."""
    return tag("span", text, "m")


def href(page: str, parameters: Mapping[str, str | Sequence[str] | None]) -> str:
    """The address of a view: the page and its whole state as plain query parameters; None is left out."""
    present = {name: value for name, value in parameters.items() if value not in (None, "", (), [])}
    return f"./{page}" + ("?" + urlencode(present, doseq=True) if present else "")


def link(address: str, text: object, title: str = "", key: str = "") -> Html:
    """A link that stays in its tab (Streamlit opens a new one otherwise); `key`: the key that follows it."""
    attributes = "".join(
        f' {name}="{escape(words, quote=True)}"'
        for name, words in (("title", title), ("data-key", key))
        if words
    )
    return Html(f'<a href="{escape(address, quote=True)}" target="_self"{attributes}>{escaped(text)}</a>')


def view_state(address: str, context: Mapping[str, str]) -> Html:
    """What the toolbar reads of a view, unseen: its context, its whole address ("" where the URL is it)."""
    data = "".join(f' data-{name}="{escape(text, quote=True)}"' for name, text in context.items())
    shown = f'<span class="k-address">{link(address, "link to this view")}</span>' if address else ""
    return Html(f'<div class="k-view k-context"{data}>{shown}</div>')


def quantity(number: str, unit: str = "") -> Html:
    """A formatted number with its small, muted unit; on a phone a unit that is a word goes (`M inst`)."""
    prefix, _, word = unit.rpartition(" ")
    if len(word) <= _SHORT_UNIT or not word.islower():  # GB/s, TFLOP/s: they hold the scale
        prefix, word = unit, ""
    parts = [(prefix, "u"), (word, "u wide")]
    units = "".join(
        f'<span class="{css}">{formatting.THIN}{escaped(text)}</span>' for text, css in parts if text
    )
    return Html(escaped(number) + units)


def value(metric: Value, scale: formatting.Scale | None = None) -> Html:
    """A value as a number with its unit, as its text, or as the state that stands in its place.

    One that the report does not carry as it is has dots below it, and says on hover how it is derived.
    """
    if metric.state is not State.PRESENT:
        return state(formatting.state_words(metric))
    shown = quantity(*formatting.quantity(metric, scale))
    if metric.derivation is not None:
        shown = tag("span", shown, "derived", metric.derivation.words)
    return _with_number(shown, metric)


def _with_number(shown: Html, metric: Value) -> Html:
    """The shown value with the whole number in its base unit, which an export of the table writes."""
    if not isinstance(metric.number, int | float):
        return shown
    unit = f' data-unit="{escape(metric.unit, quote=True)}"' if metric.unit else ""
    return Html(f'<span data-value="{metric.number!r}"{unit}>{shown}</span>')


def short_value(metric: Value, *, with_long_unit: bool = True) -> Html:
    """A value for a narrow column: of a state, or where it must be of a unit, what has room there."""
    if metric.state is State.PRESENT:
        unit = formatting.quantity(metric).unit
        is_long = unit == metric.unit and len(unit) > _NARROW_UNIT
        return value(metric if with_long_unit or not is_long else metric._replace(unit=""))
    words = _SHORT_STATES.get(metric.state) or formatting.state_words(metric)
    return tag("span", state(words))


def change(a: Value, b: Value) -> Html:
    """How b differs from a; only percentage points are set apart from their number."""
    difference = formatting.change_quantity(a, b)
    return quantity(*difference) if difference.unit == "pp" else escaped(difference)


def verdict(word: Verdict, change: str = "", reason: str = "") -> Html:
    """The verdict: sign and word, coloured only where it judges; `change` follows the word."""
    css = word.traits.colour or "quiet"
    # On a phone the words may break, but none from its sign and no number from its unit.
    words = join((word.words, tag("span", change, "nw") if change else ""))
    return tag("span", Html(f"<i>{word.traits.sign}</i>&nbsp;{words}"), f"v {css}", reason)


def verdict_count(word: Verdict, number: int) -> Html:
    """How many have a verdict: its sign and the number, coloured only where there are any."""
    css = (word.traits.colour if number else "") or "quiet"
    return tag("span", Html(f"<i>{word.traits.sign}</i> {number}"), f"v {css}")


def state(words: str) -> Html:
    """What stands where a number does not: a hatched swatch and the word for why."""
    return Html(f'<span class="st"><span class="hatch"></span>{escaped(words)}</span>')


def status_tag(words: str) -> Html:
    """A state that replaces a speed: wrong or rejected."""
    return tag("span", f"⊘ {words}", "tag")


def evidence_badge(kind: str, present: bool = True) -> Html:
    """A badge, told apart by shape and text and never by colour."""
    return tag("span", kind, f"ev {kind}" + ("" if present else " absent"))


def change_bar(share: float | None, colour: str = "") -> Html:
    """A bar from the centre line over `share` (−1 to 1) of the half width; nothing where it is None.

    A larger share is marked as going over the end. `colour` is that of a verdict; "" where nobody judges.
    """
    if share is None:
        return Html("")
    width = min(abs(share), 1.0) * 50
    left = 50 - width if share < 0 else 50
    css = f' class="{colour}"' if colour else ""
    over = " over" * (abs(share) > 1)
    return Html(
        f'<span class="bar{over}"><i{css} style="left:{left:.2f}%;width:max(1px,{width:.2f}%)"></i></span>'
    )


@dataclass(frozen=True)
class Column:
    """A table column: `wide` ones go on a phone, `phone` ones are only there, `cut` ones end in an ellipsis.

    `cut` is 1 to 3: more room. What stands in a `phone` column stands in wide ones too. `cell` gives what of
    a subject stands there, for `rows_of`.
    """

    head: object
    right: bool = False
    wide: bool = False
    cut: int = 0
    wrap: bool = False
    phone: bool = False
    cell: Callable[[Any], object] = str

    @property
    def css(self) -> str:
        names = (
            "r" * self.right,
            "wide" * self.wide,
            "phone" * self.phone,
            f"cut w{self.cut}" if self.cut else "",
            "wrap" * self.wrap,
        )
        return " ".join(name for name in names if name)


@dataclass(frozen=True)
class Row:
    """A table row: cells in column order, or one head or closing line that spans the table."""

    cells: tuple[object, ...]
    selected: bool = False
    kind: str = ""  # "" a row, "g" a group head ("g phone": on a phone alone), "last" a closing line


def rows_of(
    columns: Sequence[Column], subjects: Iterable[Any], is_selected: Callable[[Any], bool] = lambda _: False
) -> list[Row]:
    """A row a subject, in which each column has its own cell."""
    return [Row(tuple(column.cell(one) for column in columns), is_selected(one)) for one in subjects]


def group_row(text: object) -> Row:
    """The head of a group of rows."""
    return Row((text,), kind="g")


def phone_head(text: object) -> Row:
    """The head of a group of rows on a phone, whose first column says it elsewhere."""
    return Row((text,), kind="g phone")


def closing_row(text: object) -> Row:
    """The last line of a group: what has no number, in one place."""
    return Row((text,), kind="last")


def table(name: str, columns: Sequence[Column], rows: Iterable[Row], css: str = "") -> Html:
    """A table in its own scrolling box, so the page never scrolls sideways; a screen reader says its name.

    `css` is a class of the box.
    """
    heads = "".join(_cell("th", column.css, column.head) for column in columns)
    body = []
    for row in rows:
        row_css = "sel" if row.selected else row.kind
        if row.kind:
            cells = f'<td colspan="{len(columns)}">{escaped(row.cells[0])}</td>'
        else:
            cells = "".join(
                _cell("td", column.css, cell) for column, cell in zip(columns, row.cells, strict=True)
            )
        body.append(f'<tr class="{row_css}">{cells}</tr>' if row_css else f"<tr>{cells}</tr>")
    head = f"<thead><tr>{heads}</tr></thead>" if any(str(column.head) for column in columns) else ""
    box = f"k k-box {css}".rstrip()
    return Html(f'<div class="{box}">{table_start(name)}{head}<tbody>{"".join(body)}</tbody></table></div>')


def table_start(name: str) -> str:
    """The start of a table with the name that a screen reader says."""
    return f'<table aria-label="{escape(name, quote=True)}">'


def _cell(name: str, css: str, text: object) -> str:
    return f'<{name} class="{css}">{escaped(text)}</{name}>' if css else f"<{name}>{escaped(text)}</{name}>"


def tick(value: str, label: str) -> Html:
    """A box in a row of `tickable`, which takes the row along to the page Compare."""
    attributes = f'value="{escape(value, quote=True)}" aria-label="compare {escape(label, quote=True)}"'
    return Html(f'<input type="checkbox" name="versions" {attributes}>')


def tickable(table: Html) -> Html:
    """A table whose ticked rows its button compares; the button shows once one is ticked."""
    button = '<button type="submit">compare the ticked</button>'
    return Html(f'<form class="k-ticks" action="./compare" method="get">{table}<div>{button}</div></form>')


def fact_table(name: str, rows: Iterable[tuple[object, object]]) -> Html:
    """Facts as label and value, in the order given."""
    return table(
        name, (Column(""), Column("", wrap=True)), [Row((muted(label), value)) for label, value in rows]
    )


def page_head(title: object, context: object = "") -> Html:
    """The top line of a page: title left, context and links right."""
    left = f'<span class="t" role="heading" aria-level="1">{escaped(title)}</span>'
    return Html(f'<div class="k k-head">{left}{tag("span", context, "x")}</div>')


def section_head(title: object, caption: object = "") -> Html:
    """The head of a block, with what its numbers are in small words beside it."""
    small = f"<small>{escaped(caption)}</small>" if str(caption) else ""
    return Html(
        f'<div class="k k-h"><span role="heading" aria-level="2">{escaped(title)}</span>{small}</div>'
    )


def long_section(title: object, caption: object, body: Iterable[Html]) -> Html:
    """A block with its head that a phone shows folded, for it is long and read rarely."""
    head = section_head(title, caption)
    return Html(f'<details class="k k-long" open><summary>{head}</summary>{"".join(body)}</details>')


def grey_strip(parts: Iterable[object]) -> Html:
    """The grey strip: the first part in bold, what explains it after it."""
    first, *rest = parts
    spans = "".join(f"<span>{escaped(part)}</span>" for part in rest if str(part))
    return Html(f'<div class="k k-strip"><b>{escaped(first)}</b>{spans}</div>')


def paragraph(text: object) -> Html:
    """A sentence that answers a block's question."""
    return Html(f'<div class="k">{escaped(text)}</div>')


def note(text: object) -> Html:
    """A caption under the thing it explains."""
    return Html(f'<div class="k k-note">{escaped(text)}</div>')


def big_verdict(parts: Iterable[object], caption: object = "") -> Html:
    """The one big verdict of a page."""
    spans = "".join(f"<span>{escaped(part)}</span>" for part in parts if str(part))
    return Html(f'<div class="k k-big">{spans}<small>{escaped(caption)}</small></div>')


@dataclass(frozen=True)
class Tile:
    """A count, what it counts, and one sentence or link."""

    label: str
    value: object
    unit: object
    sentence: object


def fold(summary: object, content: Iterable[Html], *, is_open: bool = False, css: str = "") -> Html:
    """What a click on its summary opens; a browser's search opens it by itself where it finds something."""
    classes = f"k k-fold {css}".rstrip()
    body = "".join(content)
    opened = " open" if is_open else ""
    return Html(f'<details class="{classes}"{opened}><summary>{escaped(summary)}</summary>{body}</details>')


def tiles(items: Sequence[Tile], css: str = "") -> Html:
    """The row of tiles that answers a page's question first; `css` is a class of the row."""
    cells = "".join(
        f'<div><div class="l">{escaped(item.label)}</div>'
        f'<div class="n">{escaped(item.value)}<small>{escaped(item.unit)}</small></div>'
        f'<div class="s">{escaped(item.sentence)}</div></div>'
        for item in items
    )
    return Html(f'<div class="{f"k k-tiles {css}".rstrip()}">{cells}</div>')


def empty_page(sentence: str, command: str) -> Html:
    """An empty page: one sentence and the command that fills it."""
    return Html(f'<div class="k k-empty">{escaped(sentence)} <span class="c">{escaped(command)}</span></div>')


def field_place(labels: Sequence[str], token: str) -> Html:
    """What nobody sees, as high as a field of a line or, with their labels, as a row of buttons.

    `token` is what the browser says when the first chart is drawn.
    """
    buttons = "".join(f"<i>{escaped(label)}</i>" for label in labels)
    return Html(f'<div class="k-place" data-waits="{token}">{buttons}</div>')


def error_box(message: str) -> Html:
    """What happened, where, and the way out, in the place of the thing that failed."""
    return Html(f'<div class="k k-error">{backticks_as_code(message)}</div>')


def backticks_as_code(text: str) -> Html:
    """Words in which `what stands in backticks` is code."""
    return _with_code(text, lambda part: Html(escape(part)))


def sentence(text: str) -> Html:
    """Words with code in backticks, in which no line breaks between a time or percentage and its unit."""
    return _with_code(text, _unbroken_quantities)


def _with_code(text: str, words: Callable[[str], Html]) -> Html:
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner is a backtick
        return words("`".join(parts))
    return Html("".join(code(part) if at % 2 else words(part) for at, part in enumerate(parts)))


def _unbroken_quantities(text: str) -> Html:
    def pieces() -> Iterator[Html]:
        end = 0
        for match in _WITH_UNIT.finditer(text):
            yield Html(escape(text[end : match.start()]))
            yield tag("span", match[0], "nw")
            end = match.end()
        yield Html(escape(text[end:]))

    return Html("".join(pieces()))
