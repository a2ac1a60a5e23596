"""What a collection is asked for and of which machine, and what of both may not change until it is sealed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a collection is asked for. Kept with the run, so that going on means the same."""

    versions: tuple[str, ...]
    workloads: tuple[Json, ...]  # sizes, the most important first
    rounds: int = 25
    samples: int = 4
    processes: int = 3  # fresh ones that the rounds are spread over
    clock_control: str = "none"
    cache_control: str = "none"
    full: tuple[str, ...] = ()
    full_on: tuple[str, ...] = ()  # workload labels; none: all
    sanitize: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    counters: bool = True
    keep_session: bool = False  # reports keep host names, users and paths
    seed: int = 0
    command_line: str = ""
    pairs: int = 0  # A/A pairs of a noise run: twice as many sessions of `rounds`, a process each; 0: no such

    def as_json(self) -> Json:
        """For the plan of the staging folder."""
        return asdict(self)

    @staticmethod
    def parse(content: Mapping[str, Any]) -> Settings:
        """What as_json gave. Raises TypeError for the settings of another version of this program."""
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
        }
        return Settings(**known)


# ---------------------------------------------------------------- beginning and going on


def command_line(argv: Sequence[str]) -> str:
    """A command line as it may be published: file names without their folders."""

    def plain(word: str) -> str:
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        return f"{option}{equals}{Path(value).name if value.startswith('/') else value}"

    return shlex.join(plain(word) for word in argv)
