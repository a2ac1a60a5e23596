"""`profiler decide acknowledge`: let a known regression pass, for a reason and until some day or run."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, print_table, say
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.gate.acknowledgement import Acknowledgement

_DESCRIPTION = """\
Let a known regression of a version pass: the gate lists it and does not fail. It is kept as a decision record
beside the bundles, with who, when and why. Without --workload, --gpu or --concept it covers all of them;
without --until it has no end, without --up-to no limit. --list shows what is acknowledged, --undo ID removes
one."""


def add(commands: Commands) -> None:
    """Add `acknowledge`."""
    command = commands.add_parser(
        "acknowledge", help="let a known regression pass, until a day or run", description=_DESCRIPTION
    )
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="VERSION", help="family/version, or version where unique")
    which.add_argument("--list", action="store_true", help="what is acknowledged")
    which.add_argument(
        "--undo", metavar="ID", help="remove an acknowledgement; the start of its id is enough"
    )
    add_filters(command, "workload", "gpu", files=False)
    command.add_argument(
        "--concept", metavar="CONCEPT", help="only this metric: latency, or a concept of metrics.txt"
    )
    command.add_argument("--until", metavar="DAY_OR_RUN", help="the last day (2026-12-31), or the last run")
    command.add_argument(
        "--up-to",
        type=_percent,
        metavar="PERCENT",
        help="only a change up to this size, such as 8%%; a larger one fails",
    )
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with it (needed)")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Acknowledge, list or take back."""
    about = (arguments.workload, arguments.gpu, arguments.concept, arguments.until, arguments.up_to)
    if not arguments.name and any(about):
        raise ProfilerError("--workload, --gpu, --concept, --until and --up-to need a VERSION")
    action = _list if arguments.list else _undo if arguments.undo is not None else _acknowledge
    return action(arguments)


def _acknowledge(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.compare import resolve_names
    from profiler.evidence import metric_table
    from profiler.gate.acknowledgement import acknowledge, others_of

    store, root = open_store(), location.open_root()
    values = ("why", "workload", "gpu", "concept", "until", "up_to")
    acknowledgement = acknowledge(
        root,
        store,
        metric_table.load_metrics(),
        *resolve_names.resolve_family_version(store, arguments.name),
        **{name: getattr(arguments, name) for name in values},
    )
    others = others_of(root, acknowledgement)
    if arguments.json:
        print_json({**_document(acknowledgement), "others": list(map(_document, others))})
    else:
        undo = f"`profiler decide acknowledge --undo {acknowledgement.id}` removes it"
        say(f"{acknowledgement.scope}: acknowledged {acknowledgement.until}; {undo}")
        for other in others:
            undo = f"`profiler decide acknowledge --undo {other.id}` ends it"
            say(f"already acknowledged by {other.words}: both hold; {undo}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from profiler.bundles import decisions, location
    from profiler.gate.acknowledgement import list_acknowledgements

    acknowledgements = list_acknowledgements(decisions.load_decisions(location.open_root()))
    if arguments.json:
        print_json({"acknowledged": list(map(_document, acknowledgements))})
    elif acknowledgements:
        print_table(("id", "what", "until", "who", "why"), list(map(_row, acknowledgements)))
    else:
        say("nothing is acknowledged")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.gate.acknowledgement import withdraw

    acknowledgement = withdraw(location.open_root(), arguments.undo, why=arguments.why)
    if arguments.json:
        print_json(_document(acknowledgement))
    else:
        say(f"{acknowledgement.scope}: no longer acknowledged")
    return 0


def _percent(text: str) -> float:
    """A share from a text such as 8% or 8, for argparse."""
    from profiler.gate.acknowledgement import parse_limit

    try:
        return parse_limit(text)
    except ProfilerError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _row(acknowledgement: Acknowledgement) -> tuple[str, ...]:
    until = acknowledgement.until
    if acknowledgement.is_over(datetime.now(UTC)):
        until = f"{until} (ended)"
    return acknowledgement.id, acknowledgement.scope, until, acknowledgement.who, acknowledgement.why


def _document(acknowledgement: Acknowledgement) -> dict[str, object]:
    until_day = acknowledgement.until_day
    return {
        "id": acknowledgement.id,
        "family": acknowledgement.family,
        "version": acknowledgement.version,
        "workload": acknowledgement.workload,
        "gpu": acknowledgement.gpu,
        "concept": acknowledgement.concept,
        "why": acknowledgement.why,
        "who": acknowledgement.who,
        "created": acknowledgement.created.isoformat(),
        "until_day": None if until_day is None else until_day.isoformat(),
        "until_run": acknowledgement.until_run,
        "up_to": acknowledgement.up_to,
        "ended": acknowledgement.is_over(datetime.now(UTC)),
    }
