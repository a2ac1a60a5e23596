"""The names that commands had before they were grouped, each of which works for one more release."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

OLD_NAMES: Mapping[str, tuple[str, ...]] = {
    **{name: ("list", name) for name in ("runs", "versions", "workloads", "metrics")},
    **{name: ("data", name) for name in ("index", "relabel", "forget", "export", "backup", "restore")},
    **{name: ("data", name) for name in ("verify", "delete", "prune")},
    **{name: ("decide", name) for name in ("baseline", "acknowledge", "pair", "note")},
    "history": ("trend", "--steps"),
    "noise": ("collect", "--noise"),
    "build": ("static", "--build-only"),
    "dissect": ("static", "--check"),
}


def renamed(words: Sequence[str]) -> list[str]:
    """The words of a command line under today's names; an old one is told on stderr, in a line."""
    given = list(words)
    if not given or given[0] not in OLD_NAMES:
        return given
    old, new, rest = given[0], OLD_NAMES[given[0]], given[1:]
    if old == "noise" and "--list" in rest:
        old, new, rest = "noise --list", ("list", "noise"), [word for word in rest if word != "--list"]
    print(f"profiler: `profiler {old}` is now `profiler {' '.join(new)}`", file=sys.stderr)
    return [*new, *rest]
