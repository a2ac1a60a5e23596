"""The functions of the library that follow from the declaration of an answer."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from profiler.documents.declared import LIBRARY, declaration, load_answer

# What a function of the library takes besides what is asked, where its answer takes one of these.
_SOURCES = {
    "metrics": {"table"},
    "store": {"store", "store_opener"},
    "data": {"store", "store_opener", "data"},
}
_CALLED = {"name": "subject"}  # in the library, where a report that was read may stand for its name


def library_function(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the library by its name; `ask` asks an answer with the arguments that were given.

    Raises KeyError for a name that is not declared.
    """
    command = LIBRARY[name]
    declared = declaration(command)
    positional = [
        Parameter(_CALLED.get(one.name, one.name), Parameter.POSITIONAL_OR_KEYWORD)
        for one in declared.parameters
        if one.required
    ]
    chosen = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=() if one.kind == "texts" else one.default)
        for one in declared.parameters
        if not one.required
    ]
    sources = [
        Parameter(source, Parameter.KEYWORD_ONLY, default=None)
        for source, taken in _SOURCES.items()
        if taken & declared.sources
    ]
    signature = Signature([*positional, *sources, *chosen])

    def function(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        called = {own: bound.arguments[other] for own, other in _CALLED.items() if other in bound.arguments}
        return ask(load_answer(command), bound.arguments, **called)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "profiler"
    function.__doc__ = declared.text
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
