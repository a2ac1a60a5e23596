"""Whether a problem's case fits the C function that a version's sources declare, argument by argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiler.catalog.problem import Argument
from profiler.errors import BadCatalog

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict|struct|register)\b")
_INTS = {"int", "unsigned", "signed", "bool", "short", "char", "long", "size_t", "ptrdiff_t"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
# What an array may be of, by the type of a pointer to it: size in bytes and NumPy's kinds. Of other types,
# as void and vectors, nothing is known.
_ELEMENTS = {
    "float": (4, "f"),
    "double": (8, "f"),
    "__half": (2, "fiu"),
    "half": (2, "fiu"),
    "int": (4, "iu"),
    "unsigned": (4, "iu"),
    "unsigned int": (4, "iu"),
    "int32_t": (4, "iu"),
    "uint32_t": (4, "iu"),
    "int64_t": (8, "iu"),
    "uint64_t": (8, "iu"),
    "long long": (8, "iu"),
}


class UnfitCase(BadCatalog):
    """A C function that cannot be called with what the problem's case passes."""


@dataclass(frozen=True)
class CParameter:
    """A parameter of a C function."""

    kind: str  # pointer, int, float or double; "" where it is of another type
    name: str  # "" where it has none
    element: str  # what a pointer points to, without qualifiers; "" otherwise


@dataclass(frozen=True)
class Signature:
    """The C function as a source defines or declares it."""

    place: str  # FILE:LINE
    symbol: str
    parameters: tuple[CParameter, ...]  # the stream too, which comes last
    code: str  # of its file, without comments


def find_signature(files: Sequence[Path], symbol: str) -> Signature | None:
    """The function as the first file that defines it has it, else as one declares it; None: none does."""
    declared: Signature | None = None
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in re.finditer(rf"\bint\s+{re.escape(symbol)}\s*\(([^()]*)\)\s*([{{;])", code):
            place = f"{path.name}:{code.count(chr(10), 0, match.start()) + 1}"
            found = Signature(place, symbol, tuple(map(_parameter, match[1].split(","))), code)
            if match[2] == "{":
                return found
            declared = declared or found
    return declared


def check_arguments(signature: Signature, arguments: Sequence[Argument], check_elements: bool = True) -> None:
    """Raise UnfitCase, in a line that names the argument, where the function cannot be called with these.

    check_elements: whether arrays are also compared with what the function takes their pointers for.
    """
    parameters = signature.parameters
    head = f"{signature.place}: {signature.symbol}"
    for number, (parameter, value) in enumerate(zip(parameters[:-1], arguments, strict=False), 1):
        kind = _kind_of(value)
        name = f" ({parameter.name})" if parameter.name else ""
        if parameter.kind and parameter.kind != kind:
            raise UnfitCase(
                f"{head} takes {_article(parameter.kind)} as argument {number}{name}, and the problem's case "
                f"passes {_words(value)} (of {len(parameters)} arguments with the stream it passes "
                f"{len(arguments) + 1})"
            )
        if check_elements and isinstance(value, np.ndarray):
            _check_elements(signature, parameter, value, f"{head}: argument {number}{name}")
    if len(parameters) > len(arguments) + 1:
        parameter = parameters[len(arguments)]
        raise UnfitCase(
            f"{head} takes {len(parameters) - 1} arguments and the stream, and the problem's case has "
            f"{len(arguments)}: none for {parameter.name or f'number {len(arguments) + 1}'}"
        )
    if len(parameters) < len(arguments) + 1:
        raise UnfitCase(
            f"{head} takes {len(parameters) - 1} arguments and the stream, and the problem's case has "
            f"{len(arguments)}: {_words(arguments[len(parameters) - 1])} is too many"
        )


def _check_elements(signature: Signature, parameter: CParameter, value: np.ndarray, head: str) -> None:
    """Compare an array with its parameter's type; of a void pointer with what the code casts it to."""
    elements = {parameter.element}
    is_declared = parameter.element in _ELEMENTS
    if not is_declared and parameter.name:
        cast = rf"(?:\(|_cast\s*<)([^()<>]*)\*\s*(?:\)|>\s*\()\s*{re.escape(parameter.name)}\b"
        elements = {_plain(words) for words in re.findall(cast, signature.code)}
    known = {_ELEMENTS[element] for element in elements if element in _ELEMENTS}
    if not known or any(element not in _ELEMENTS for element in elements):
        return
    if not any(value.dtype.itemsize == size and value.dtype.kind in kinds for size, kinds in known):
        types = " or ".join(sorted(elements))
        raise UnfitCase(f"{head} is read as {types}, and the problem's case passes an array of {value.dtype}")


def _parameter(text: str) -> CParameter:
    words = _plain(text)
    if "*" in text or "[" in text:
        before, _, after = re.sub(r"\[.*", "", _QUALIFIER.sub(" ", text)).rpartition("*")
        if not before:  # an array without a star
            before, _, after = after.rpartition(" ")
        return CParameter("pointer", after.strip(), _plain(before))
    tokens = words.split()
    types = [token for token in tokens if token in _INTS]
    if "double" in tokens or "float" in tokens:
        kind = "double" if "double" in tokens else "float"
        return CParameter(kind, tokens[-1] if tokens[-1] != kind else "", "")
    if tokens[:1] == ["cudaStream_t"]:
        return CParameter("pointer", tokens[1] if len(tokens) > 1 else "", "void")
    if types:
        return CParameter("int", tokens[-1] if tokens[-1] not in _INTS else "", "")
    return CParameter("", tokens[-1] if len(tokens) > 1 else "", "")


def _plain(words: str) -> str:
    return " ".join(_QUALIFIER.sub(" ", words).split())


def _kind_of(value: Argument) -> str:
    if value is None or isinstance(value, np.ndarray):
        return "pointer"
    return "float" if isinstance(value, float) else "int"


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "int" else f"a {kind}"


def _words(value: Argument) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return "None" if value is None else f"{value}, {_article(_kind_of(value))}"
