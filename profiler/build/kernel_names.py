"""What the mangled name of a kernel function says: its plain name and its first template integer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

# A part of a name with hashes in it, behind its length where it has one; a hash, with what follows a second.
_HASHED = re.compile(r"(?:(?<!\d)(\d+))?(_GLOBAL__N__|_INTERNAL_|__nv_static_)")
_HASH = re.compile(r"_[0-9a-f]{8}(?:_\d+$|(?=_|$))")
# In the name of a variable: the number that a compiler gives a static one of a function, of a file.
_COUNTER = re.compile(
    r"(?<=^\$___).*__(\d+)$|_INTERNAL_.*_[0-9a-f]{8}_(\d+)_|__nv_static_.*_[0-9a-f]{8}_(\d+)_"
)
_UNNAMED = re.compile(r"(?<=E)\d*_(?=\w)|(?<=Ut)\d*_")
# Abbreviations, with what may stand in place of a name: the number of an earlier part, of a parameter.
_SUBSTITUTION = re.compile(r"S[0-9A-Z]*_|S[tabsiod]|TL?[0-9_]*_")
# Source: Itanium C++ ABI, "Builtin types" and "Qualifiers"; of several letters first.
_BUILTIN = re.compile(
    r"DF\d*[bx_]|D[BU]\d+_|D[defhiusanckN]|[vwbcahstijlmxynofdegz]|"
    r"[PROKVCG]|D[opOwx]|A\d*_|M"  # before a type: none of them ends one
)


def function_name(mangled: str) -> str:
    """The plain function name of an Itanium-mangled one, without namespace and template."""
    return _split(mangled)[0]


def template_integer(mangled: str) -> int | None:
    """The first integer template argument of an Itanium-mangled name, or None: `_Z1kILi64EE…` gives 64.

    By convention that is the head dimension.
    """
    match = re.search(r"L[ijlm](\d+)E", _split(mangled)[1])
    return int(match[1]) if match else None


def instance_name(mangled: str) -> str:
    """The plain name with the numbers among its template arguments: `v2d<64>`."""
    name, arguments = _split(mangled)
    numbers = [text.replace("n", "-") for text in re.findall(r"L[a-z](n?\d+)E", arguments)]
    return f"{name}<{', '.join(numbers)}>" if numbers else name


@lru_cache(maxsize=100_000)
def stable_name(mangled: str) -> str:
    """The name without the hashes that a compiler makes of a source's path: builds in two folders then agree.

    For comparison alone: of `_ZN30_GLOBAL__N__69f9bab9_4_a_cu_go1kEv` the part of 30 characters becomes
    `_GLOBAL__N__4_a_cu_go`, and so `_INTERNAL_…` and `__nv_static_…`.
    """
    parts, at = [], 0
    while found := _HASHED.search(mangled, at):
        length, begin = int(found[1] or 0), found.start(2)
        end = begin + length if found[1] and begin + length <= len(mangled) else len(mangled)
        parts += [mangled[at : found.start()], _HASH.sub("", mangled[begin:end])]
        at = end
    return "".join(parts) + mangled[at:]


def stable_symbols(names: Sequence[str]) -> list[str]:
    """The names of variables as stable_name has them, and without the numbers that a compiler counts them by.

    Names that differ by that number alone are numbered from 0 in its order: `$___ZZ1kPfE1s__1821` becomes
    `$___ZZ1kPfE1s__0`. For comparison alone.
    """
    parts = [_without_counter(name) for name in names]
    numbers: dict[str, list[int]] = {}
    for stem, _, number in parts:
        numbers[stem] = sorted({*numbers.get(stem, ()), number})
    return [
        stem if number < 0 else f"{stem}{numbers[stem].index(number)}{rest}" for stem, rest, number in parts
    ]


@lru_cache(maxsize=100_000)
def _without_counter(name: str) -> tuple[str, str, int]:
    """What stands before and behind the number of a compiler, and the number; -1 where it has none."""
    found = _COUNTER.search(name)
    if found is None:
        return stable_name(name), "", -1
    begin, end = found.span(found.lastindex or 0)
    return stable_name(name[:begin]), name[end:], int(name[begin:end])


def without_lambda_numbers(mangled: str) -> str:
    """The name without the numbers that lambdas and types without a name have by their order."""
    return _UNNAMED.sub("_", mangled)


@lru_cache(maxsize=100_000)
def _split(mangled: str) -> tuple[str, str]:
    """The function's name and its template arguments. Source: Itanium C++ ABI, "External Names"."""
    if not mangled.startswith("_Z"):
        return mangled, ""  # extern "C"
    try:
        reader = _NameReader(mangled, 2)
        reader.name()
    except (IndexError, ValueError, RecursionError):
        return mangled, ""  # no name of the ABI, though it begins like one
    return (reader.last, reader.arguments) if reader.last else (mangled, "")


class _NameReader:
    """Reads over a mangled name as far as the end of the function's own name."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.last, self.arguments = "", ""  # the innermost name of what was read, its template arguments

    def name(self) -> None:
        """<name>: nested, local to a function, or plain; with template arguments."""
        if self._skip("Z"):  # local: the encoding of the function, E, and what is in it
            self.name()
            while not self._skip("E"):
                self._type()
            if self._skip("s"):
                self.last = "string literal"
            else:
                if self._skip("d"):
                    self._digits_and("_")
                self.name()
            self._discriminator()
            return
        if self._skip("N"):
            while self._peek() in "rVKRO":
                self.at += 1
            while not self._skip("E"):
                self._part()
            return
        if self.text.startswith("St", self.at):
            self.at += 2
        self._part()
        if self._peek() == "I":
            self._part()

    def _part(self) -> None:
        """One part of a name: a source name, an operator, template arguments, a substitution."""
        letter = self._peek()
        if letter == "I":
            begin = self.at
            self._arguments()
            self.arguments = self.text[begin : self.at]
        elif substitution := _SUBSTITUTION.match(self.text, self.at):
            self.at = substitution.end()
        elif letter == "L":  # internal linkage
            self.at += 1
            self._part()
        elif letter.isdigit():
            self._set(self._source_name())
            while self._skip("B"):  # an ABI tag
                self._source_name()
        elif letter == "U":  # a lambda, or a type without a name
            kind = self.text[self.at : self.at + 2]
            self.at += 2
            if kind == "Ul":
                while not self._skip("E"):
                    self._type()
            elif kind != "Ut":
                raise ValueError(kind)
            self._digits_and("_")
            self._set("{lambda}" if kind == "Ul" else "{unnamed}")
        elif letter in "CD" and self.text[self.at + 1].isdigit():  # a constructor or destructor
            self.at += 2
        elif self.text.startswith("cv", self.at):
            self.at += 2
            self._type()
            self._set("operator")
        elif letter.islower() and self.text[self.at + 1].isalpha():
            self._set(f"operator {self.text[self.at : self.at + 2]}")
            self.at += 2
        else:
            raise ValueError(letter)

    def _set(self, name: str) -> None:
        self.last, self.arguments = name, ""

    def _arguments(self) -> None:
        """Template arguments, or a pack of them, from I or J to E."""
        self.at += 1
        while not self._skip("E"):
            if not self._argument():
                self._type()

    def _argument(self) -> bool:
        """A template argument that is no type, where one stands here."""
        letter = self._peek()
        if letter == "L":
            self._literal()
        elif letter in "IJ":
            self._arguments()
        elif letter == "X":
            self._expression()
        else:
            return False
        return True

    def _literal(self) -> None:
        self.at += 1
        if self._skip("_Z"):
            inner = _NameReader(self.text, self.at)
            inner.name()
            self.at = inner.at
            while not self._skip("E"):
                self._type()
            return
        self._type()
        self.at = self.text.index("E", self.at) + 1

    def _expression(self) -> None:
        """An expression, or a decltype, as far as its own end."""
        self.at += 1
        while not self._skip("E"):
            if self._argument():
                continue
            if self._peek().isdigit():
                self._source_name()
            elif substitution := _SUBSTITUTION.match(self.text, self.at):
                self.at = substitution.end()
            else:
                self.at += 1

    def _type(self) -> None:
        letter = self._peek()
        if letter.isdigit() or letter in "NZ" or self.text.startswith("St", self.at):
            inner = _NameReader(self.text, self.at)
            inner.name()
            self.at = inner.at
        elif substitution := _SUBSTITUTION.match(self.text, self.at):
            self.at = substitution.end()
            if self._peek() == "I":
                self._arguments()
        elif letter == "F":
            self.at += 1
            self._skip("Y")
            while not self._skip("E"):
                self._type()
        elif self._argument():
            return
        elif letter in "uU":
            self.at += 1
            self._source_name()
        elif self.text[self.at : self.at + 2] in ("DT", "Dt"):
            self.at += 1
            self._expression()
        elif builtin := _BUILTIN.match(self.text, self.at):
            self.at = builtin.end()
        else:
            raise ValueError(letter)

    def _source_name(self) -> str:
        match = re.compile(r"\d+").match(self.text, self.at)
        if match is None:
            raise ValueError("no length")
        end = match.end() + int(match[0])
        if end > len(self.text):
            raise ValueError("a name ends behind its text")
        self.at = end
        return self.text[match.end() : end]

    def _discriminator(self) -> None:
        if match := re.compile(r"_\d|__\d+_").match(self.text, self.at):
            self.at = match.end()

    def _digits_and(self, mark: str) -> None:
        self.at = self.text.index(mark, self.at) + 1

    def _peek(self) -> str:
        return self.text[self.at]

    def _skip(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            if self.at >= len(self.text):
                raise IndexError
            return False
        self.at += len(word)
        return True
