"""Cuts an answer to a number of characters, and says what was left out and how to ask for it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from profiler.agents.tool import RefusedArgument, echo
from profiler.agents.untrusted import LEAVES, MAPPINGS, NUMBERS

LEAST_BUDGET, DEFAULT_BUDGET, MOST_BUDGET = 1_000, 4_000, 40_000
_INNER = (
    10**9,
    40,
    20,
    12,
    8,
    6,
    5,
    4,
    3,
    2,
    1,
    0,
)  # how much of lists within lists is shown, tried in order
_WANTED = 3  # items of the outermost lists that are worth fewer within each
_SHORT_TEXT = 120
_STEP = re.compile(r"([^.\[\]]+)((?:\[\d+\])*)")
_DIGITS = 5  # significant ones of a number that is no whole one


LeftOut = dict[str, dict[str, Any]]  # lists by path without numbers: how many items are shown, of how many


class Selected(list[Any]):
    """The items of a list that are worth showing, and how many the whole list has."""

    def __init__(self, items: Sequence[Any], total: int) -> None:
        super().__init__(items)
        self.total = total


def dumps(value: Any) -> str:
    """JSON without spaces, as it is sent."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def compact(value: Any) -> Any:
    """A document without empty entries, numbers to five significant digits where they are not whole.

    An entry that is null, empty or a list of nothing says no more than its absence.
    """
    kind = type(value)
    if kind is float:
        return _shorter(value)
    if kind in LEAVES:  # before what takes longer to find out
        return value
    if isinstance(value, MAPPINGS):
        shorter = {key: compact(item) for key, item in value.items()}
        return {key: item for key, item in shorter.items() if item or item == 0}
    if isinstance(value, Selected):
        return Selected([compact(item) for item in value], value.total)
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    return _shorter(value) if isinstance(value, float) else value


def _shorter(number: float) -> float | int | None:
    if not math.isfinite(number):
        return None
    rounded = number if number == int(number) else float(f"{number:.{_DIGITS}g}")
    return int(rounded) if rounded == int(rounded) else rounded


def select(document: Any, part: str) -> Any:
    """The part of a document that a path names: `launches[0].metrics`. Raises Refused, with what there is."""
    value, done = document, ""
    for step in part.split("."):
        parsed = _STEP.fullmatch(step)
        if parsed is None:
            raise RefusedArgument(f'part {echo(part)}: a path such as "launches[0].metrics" is needed')
        if not isinstance(value, Mapping) or parsed[1] not in value:
            there = ", ".join(map(str, value)) if isinstance(value, Mapping) else "nothing below it"
            raise RefusedArgument(f"part {echo(part)}: {done or 'the answer'} has {there[:200]}")
        value, done = value[parsed[1]], f"{done}.{parsed[1]}".lstrip(".")
        for index in map(int, re.findall(r"\[(\d+)\]", parsed[2])):
            if not isinstance(value, list) or index >= len(value):
                size = f"{len(value)} items" if isinstance(value, list) else "no items"
                raise RefusedArgument(f"part {echo(part)}: {done} has {size}")
            value, done = value[index], f"{done}[{index}]"
    return value


def holds_words(item: Any, words: Sequence[str]) -> bool:
    """Whether an item's texts hold all words, case aside."""
    text = dumps(item).lower()
    return all(word.lower() in text for word in words)


def cut(envelope: Mapping[str, Any], key: str, budget: int) -> dict[str, Any]:
    """The envelope with what stands under `key` cut so that all of it has at most `budget` characters.

    Lists within lists are cut first, then the outermost; `left_out` counts what is not shown, by the path of
    the list, and says with which arguments it comes. Sentences are cut last, and counted too.
    """
    document = envelope[key]
    longest = max((len(items) for items in _outermost(document)), default=0)
    cutter = None
    for inner in _INNER:
        if cutter is not None and inner > _WANTED and inner >= cutter.longest:
            continue  # it would cut nothing more than the last one, which was too much
        cutter = _Cutter(inner)

        def shown(outer: int, cutter: _Cutter = cutter) -> dict[str, Any] | None:
            made = _assemble(envelope, key, document, outer, cutter)
            return made if len(dumps(made)) <= budget else None

        # The less there is within each item, the fewer items are worth showing.
        fewest = 0 if inner == 0 else min(longest, 2 * _WANTED if inner > _WANTED else _WANTED)
        best, most = shown(fewest), longest
        if best is None:
            continue
        while fewest < most:
            middle = (fewest + most + 1) // 2
            larger = shown(middle)
            if larger is None:
                most = middle - 1
            else:
                best, fewest = larger, middle
        return best
    return _barest(envelope, key, document, budget)


def _outermost(document: Any) -> list[list[Any]]:
    if isinstance(document, list):
        return [document]
    if isinstance(document, Mapping):
        return [found for item in document.values() for found in _outermost(item)]
    return []


def _assemble(
    envelope: Mapping[str, Any], key: str, document: Any, outer: int, cutter: _Cutter
) -> dict[str, Any]:
    left_out: LeftOut = {}
    first = int(envelope.get("offset", 0)) if key == "items" else 0
    base = str(envelope.get("part", "")) if key == "items" else ""
    shown = cutter.cut(document, base, outer, left_out, first)
    return _ordered({**envelope, key: shown, "left_out": [*left_out.values()]})


def _ordered(envelope: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in envelope.items() if value not in ("", [], {}, None)}


class _Cutter:
    """Cuts a document to some items of its outermost lists, each with `inner` items of the lists in it.

    What becomes of an item is found out once, however many of them are then shown.
    """

    def __init__(self, inner: int) -> None:
        self._inner = inner
        self.longest = 0  # items of a list within those that were cut
        self._items: dict[str, tuple[Any, LeftOut]] = {}  # by path

    def cut(self, value: Any, path: str, outer: int, left_out: LeftOut, first: int) -> Any:
        """The value with `outer` items of its outermost lists. first: items that the list at path lacks."""
        if isinstance(value, MAPPINGS):
            return {
                name: self.cut(item, f"{path}.{name}".lstrip("."), outer, left_out, 0)
                for name, item in value.items()
            }
        if not isinstance(value, list):
            return value
        shown = []
        for index, item in enumerate(value[: _limit(value, outer)]):
            place = f"{path}[{index + first}]"
            if place not in self._items:
                own: LeftOut = {}
                self._items[place] = self._within(item, place, own), own
            cut_item, own = self._items[place]
            shown.append(cut_item)
            for counted in own.values():
                _count(left_out, counted["part"], counted["shown"], counted["of"], counted.get("get"))
        _count_list(left_out, value, path, len(shown), first)
        return shown

    def _within(self, value: Any, path: str, left_out: LeftOut) -> Any:
        if isinstance(value, MAPPINGS):
            if type(value) is dict and LEAVES.issuperset(map(type, value.values())):
                return value
            return {
                name: item if type(item) in LEAVES else self._within(item, f"{path}.{name}", left_out)
                for name, item in value.items()
            }
        if not isinstance(value, list):
            return value
        self.longest = max(self.longest, len(value))
        kept = value[: _limit(value, self._inner)]
        shown = [
            item if type(item) in LEAVES else self._within(item, f"{path}[{index}]", left_out)
            for index, item in enumerate(kept)
        ]
        _count_list(left_out, value, path, len(shown), 0)
        return shown


def _limit(items: list[Any], limit: int) -> int:
    if limit >= len(items):
        return limit
    return max(limit, 4) if all(isinstance(item, NUMBERS) for item in items) else limit  # a grid, an interval


def _count_list(left_out: LeftOut, items: list[Any], path: str, shown: int, first: int) -> None:
    """Note what a list has besides the items that are shown."""
    total = items.total if isinstance(items, Selected) else len(items) + first
    if shown + first < total:
        offset = {} if isinstance(items, Selected) else {"offset": first + shown}
        get = {"part": path, **offset} if path else None
        _count(left_out, re.sub(r"\[\d+\]", "[]", path), shown, total, get)


def _count(left_out: LeftOut, part: str, shown: int, total: int, get: dict[str, Any] | None) -> None:
    counted = left_out.setdefault(part, {"part": part, "shown": 0, "of": 0})
    counted["shown"] += shown
    counted["of"] += total
    if get is not None and "get" not in counted:
        counted["get"] = get


def _barest(envelope: Mapping[str, Any], key: str, document: Any, budget: int) -> dict[str, Any]:
    """The answer where even empty lists are too much: fewer sentences, shorter texts, at last no document."""
    shown = _assemble(envelope, key, document, 0, _Cutter(0))
    sentences = list(shown.get("answer", ()))
    for most, keeps_document in ((6, True), (3, True), (3, False), (1, False)):
        short = dict(shown)
        short["answer"] = [_shortened(text) for text in sentences[:most]]
        if len(sentences) > most:
            short["sentences_left_out"] = len(sentences) - most
        if not keeps_document:
            short[key] = {}
            short["left_out"] = [{"part": key, "shown": 0, "of": 1, "get": {"budget": MOST_BUDGET}}]
            short.pop("names", None)
            short["next"] = short.get("next", [])[:1]
        short = _ordered(short)
        if len(dumps(short)) <= budget:
            return short
    return _ordered({**short, "next": []})


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT_TEXT else f"{text[:_SHORT_TEXT]}…"
