"""`profiler decide pair`: keep that two kernels of a family are one under two names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_json, print_table, say
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.compare.kernel_pairs import KeptPair

_DESCRIPTION = """\
Record that two kernels of a family are one under two names, such as gemm_v6 and gemm_v7. From then on
compare, explain, insights, gate, trend, regressions and the pages pair their launches where equal
names leave them without a partner, and join their series. A name is a kernel's full name, a pattern with *
or ?, or regex:EXPR; of two patterns the wildcards must match the same text (*_v6=*_v7). It is kept as a
decision record beside the bundles, with who, when and why. --list shows the recorded pairs, --undo ID
removes one. For a single comparison: `profiler compare --pair A=B`."""


def add(commands: Commands) -> None:
    """Add `pair`."""
    command = commands.add_parser(
        "pair", help="record that two kernels of a family are one under two names", description=_DESCRIPTION
    )
    command.add_argument("family", nargs="?", default="", metavar="FAMILY")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the recorded pairs, all or those of FAMILY")
    which.add_argument("--undo", metavar="ID", help="remove a pair; the start of its id is enough")
    command.add_argument("pairs", nargs="*", metavar="A=B", help="two names of one kernel")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with it")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Keep, list or take back."""
    if arguments.undo is not None and arguments.family:
        raise ProfilerError("--undo takes only an id: profiler decide pair --undo ID")
    if arguments.list and arguments.pairs:
        raise ProfilerError("--list takes no pair: profiler decide pair --list FAMILY")
    if not (arguments.list or arguments.undo is not None or arguments.pairs):
        family = arguments.family or "FAMILY"
        raise ProfilerError(f"which kernels of {family} are one: profiler decide pair {family} A=B")
    action = _list if arguments.list else _undo if arguments.undo is not None else _keep
    return action(arguments)


def _keep(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.compare.kernel_pairs import keep_pair, pairs_of

    pairs, root, store = pairs_of(arguments.pairs), location.open_root(), open_store()
    kept = [keep_pair(root, store, arguments.family, pair, why=arguments.why.strip()) for pair in pairs]
    if arguments.json:
        print_json({"pairs": list(map(_document, kept))})
        return 0
    for pair in kept:
        undo = f"`profiler decide pair --undo {pair.id}` removes it"
        say(f"{pair.family}: {pair.pair.a} and {pair.pair.b} are one kernel; {undo}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from profiler.bundles import decisions, location
    from profiler.compare.kernel_pairs import list_kept_pairs

    kept = list_kept_pairs(decisions.load_decisions(location.open_root()))
    if arguments.family:
        kept = [pair for pair in kept if pair.family == arguments.family]
    if arguments.json:
        print_json({"pairs": list(map(_document, kept))})
    elif kept:
        rows = [(pair.id, pair.family, pair.pair.a, pair.pair.b, pair.who, pair.why) for pair in kept]
        print_table(("id", "family", "kernel", "is", "who", "why"), rows)
    else:
        family = arguments.family or "FAMILY"
        say(f"no pair is recorded: `profiler decide pair {family} A=B` records one")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.compare.kernel_pairs import withdraw_pair

    pair = withdraw_pair(location.open_root(), arguments.undo, why=arguments.why.strip())
    if arguments.json:
        print_json({"pairs": [_document(pair)]})
    else:
        say(f"{pair.family}: {pair.pair.a} and {pair.pair.b} are two kernels again")
    return 0


def _document(kept: KeptPair) -> dict[str, object]:
    return {
        "id": kept.id,
        "family": kept.family,
        "a": kept.pair.a,
        "b": kept.pair.b,
        "who": kept.who,
        "created": kept.created.isoformat(),
        "why": kept.why,
    }
