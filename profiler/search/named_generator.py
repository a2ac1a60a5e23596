"""Finds the generator that words name."""

from __future__ import annotations

from profiler.search.command import CommandGenerator, callable_command, is_callable_name
from profiler.search.flag_steps import FlagSteps
from profiler.search.generator import Generator
from profiler.search.rewrites import SourceRewrites


def load_generator(words: str, seconds: float) -> Generator:
    """The generator that words name: flags, rewrites, module:function, file.py:function, or a command.

    Raises ProfilerError for one that is nothing.
    """
    if words == FlagSteps.name:
        return FlagSteps()
    if words == SourceRewrites.name:
        return SourceRewrites()
    if is_callable_name(words):
        return CommandGenerator(callable_command(words), seconds, words)
    return CommandGenerator(words, seconds)
