"""The text of a source file as compilers count its lines."""

from __future__ import annotations


def source_lines(text: str) -> list[str]:
    """The lines of a source file as compilers count them: no form feed and no U+2028 ends one."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
