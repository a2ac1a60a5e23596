"""Texts that files and indexes bring: made printable, and in quotes wherever a sentence names them.

A kernel's name, a source line or a rule's message can say anything, also what reads like an instruction to
the language model that gets the answer. What the server says itself therefore never holds such a text bare.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# What a document is made of, for isinstance, which is asked of every value: dict first, as it is quickest.
NUMBERS = (int, float)
LEAVES = frozenset((str, *NUMBERS, bool, type(None)))  # types of most values: one look-up tells them
MAPPINGS = (dict, Mapping)
_LISTS = (list, tuple)
LONGEST_TEXT = 400  # characters of one text of an answer
_PLAIN = re.compile(r"[\w.:/~#@+\-]{1,48}", re.ASCII)  # what may stand in a sentence, in quotes
_NAME_KEYS = {
    "kernel",
    "part",
    "demangled",
    "function",
    "functions",
    "launch",
    "label",
    "nvtx",
    "place",
    "file",
}
_NAME_KEYS |= {"version", "versions", "family", "subject", "baseline", "against", "workload", "workloads"}
_NAME_KEYS |= {"source", "name", "elite", "gpu", "host", "command_line"}
_LABEL = re.compile(r"(?=.{1,32}$)[\w.:/+\-]+( [\w.:/+\-]+){1,2}", re.ASCII)  # "head dim 64", with a digit
_COUNT = re.compile(r"\d+ [a-z]+", re.ASCII)  # "6 workloads": what stands for several names
_LEAST_NAME = 3  # characters: a shorter one says nothing, and is in many a word


def printable(text: str) -> str:
    """A text as one line in which nothing is hidden: spaces for line ends, escapes for what has no sign."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


def clean(value: Any) -> Any:
    """The same document with every text printable and no longer than LONGEST_TEXT, whatever its depth."""
    if isinstance(value, str):
        text = printable(value)
        hidden = len(text) - LONGEST_TEXT
        return text if hidden <= 0 else f"{text[:LONGEST_TEXT]}… ({hidden} characters more)"
    if type(value) in LEAVES:  # before what takes longer to find out
        return value
    if isinstance(value, MAPPINGS):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, _LISTS):
        return [clean(item) for item in value]
    return value


def names_in(document: Any) -> set[str]:
    """The names that a document got from files: kernels, functions, versions, workloads, labels."""
    names: set[str] = set()
    _collect(document, False, names)
    return names


def _collect(value: Any, is_name: bool, names: set[str]) -> None:
    if isinstance(value, str):
        if is_name:
            names.add(value)
    elif isinstance(value, MAPPINGS):
        is_metric = "concept" in value  # its label is a word of metrics.txt
        for key, item in value.items():
            is_of_name = key in _NAME_KEYS and not (is_metric and key in ("label", "name"))
            # Of other keys only what holds keys of its own can have names.
            if is_of_name or type(item) not in LEAVES:
                _collect(item, is_of_name, names)
    elif isinstance(value, _LISTS):
        for item in value:
            _collect(item, is_name, names)


def quote_names(
    sentences: Sequence[str], names: Iterable[str], aliases: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """The sentences with each name in quotes, and the table of names that they only refer to.

    A name that is long, or holds more than letters, digits and a few signs, becomes "name 1" and stands in
    the table alone. `aliases` are names that have a short word of the caller's own, such as A and B.
    """
    aliases = aliases or {}
    text = "\n".join(sentences)
    possible = {name for name in names if len(name) >= _LEAST_NAME and not _COUNT.fullmatch(name)}
    known = sorted(
        (name for name in {*possible, *aliases} if name in text), key=lambda name: (-len(name), name)
    )
    if not known:
        return list(sentences), {}
    pattern = re.compile("|".join(rf"(?<![\w/-]){re.escape(name)}(?![\w/-]|\.\w)" for name in known))
    table: dict[str, str] = {}

    def quoted(found: re.Match[str]) -> str:
        name = found[0]
        if name in aliases:
            return aliases[name]
        if _PLAIN.fullmatch(name) or (_LABEL.fullmatch(name) and any(map(str.isdigit, name))):
            return f'"{name}"'
        return f'"{table.setdefault(name, f"name {len(table) + 1}")}"'

    replaced = [pattern.sub(quoted, sentence) for sentence in sentences]
    return replaced, {word: clean(name) for name, word in table.items()}
