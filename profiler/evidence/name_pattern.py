"""Patterns that a user writes for names, matched by RE2 in time linear in the name, whatever the pattern is.

Python's `re` tries every way in which a pattern can fit: `^(\\w+\\W*)+\\d$` holds the interpreter for hours
on a name of forty letters, and an address of the dashboard can carry such a pattern. RE2 has no backtracking,
and therefore neither backreferences nor lookahead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

MAX_LENGTH = 1000  # characters of a pattern
# Instructions of RE2's program, up to which a name of 4,000 characters takes tens of milliseconds:
# `.{0,500}x.{0,500}y` has 9,000 and takes seconds.
MAX_PROGRAM = 2500


class Expression(Protocol):
    """A compiled pattern: the part of `re.Pattern` that RE2 has too."""

    groups: int
    programsize: int  # instructions of RE2's program
    groupindex: Mapping[str, int]

    def search(self, text: str) -> Any:
        """The first match, as `re.Match`, or None."""


class BadPattern(ValueError):
    """A pattern that is no regular expression, or one that could take long; the message says which."""


@lru_cache(maxsize=512)
def compile_expression(
    expression: str, *, ignore_case: bool = False, dot_matches_newline: bool = False
) -> Expression:
    """A regular expression in RE2's syntax, with the methods of `re.Pattern`. Raises BadPattern."""
    import re2  # here, since few commands are given a pattern

    if len(expression) > MAX_LENGTH:
        raise BadPattern(f"it has {len(expression):,} characters; at most {MAX_LENGTH:,} are read")
    try:
        expression.encode()  # a shell may hand on any bytes, which Python keeps as what is no text
    except UnicodeEncodeError:
        raise BadPattern("it is not UTF-8 text") from None
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.dot_nl = dot_matches_newline
    options.log_errors = False
    try:
        compiled: Expression = re2.compile(expression, options)
    except re2.error as error:
        raise BadPattern(_reason(expression, error)) from None
    if compiled.programsize > MAX_PROGRAM:
        raise BadPattern("its repetitions make it too large to match in reasonable time")
    return compiled


@lru_cache(maxsize=512)
def compile_wildcards(pattern: str) -> Expression:
    """A pattern with * and ?, which become groups, for a whole name in any case. Raises BadPattern."""
    pieces = {"*": "(.*)", "?": "(.)"}
    text = "".join(pieces.get(character) or re.escape(character) for character in pattern)
    return compile_expression(rf"\A{text}\z", ignore_case=True, dot_matches_newline=True)


def _reason(expression: str, error: Exception) -> str:
    """What RE2 says, and what of Python's syntax it leaves out, where that is the reason."""
    said = error.args[0]
    reason = f"not a regular expression: {said.decode(errors='replace') if isinstance(said, bytes) else said}"
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError):
        return reason
    return f"{reason} (backreferences and lookaround, which can take for ever, are not read)"
