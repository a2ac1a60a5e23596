"""How calls were timed: by `profiler collect`, or by another tool whose file was imported."""

from __future__ import annotations

# How the modes of `profiler collect` begin: the timer. `events; cache warm; clock none`
OWN_TIMERS = ("events", "graph replay")
PAIRS_OF_FILES = "profiler import --noise FILES"  # 40 files or more of one unchanged build


def noise_command(words: str, mode: str) -> str:
    """The command that gives the A/A pairs of a mode; words: what `profiler collect --noise` would time."""
    return f"profiler collect --noise {words}" if is_own_mode(mode) else PAIRS_OF_FILES


def is_own_mode(mode: str) -> bool:
    """Whether `profiler collect` times calls in this mode."""
    return mode.startswith(OWN_TIMERS)
