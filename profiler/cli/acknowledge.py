"""`profiler acknowledge`: let a known regression pass, for a reason and until some day or run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, print_table, say
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.gate import Acknowledgement

_DESCRIPTION = """\
Let a known regression of a version pass: the gate lists it and does not fail. Kept as a decision record
beside the bundles, with who, when and why. Without --workload, --gpu or --concept it is about every one;
without --until it has no end, without --up-to no limit. --list shows what is acknowledged, --undo ID takes
one back."""


def add(commands: Commands) -> None:
    """Add `acknowledge`."""
    command = commands.add_parser(
        "acknowledge", help="let a known regression pass, until some day or run", description=_DESCRIPTION
    )
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="VERSION", help="family/version, or version where unique")
    which.add_argument("--list", action="store_true", help="what is acknowledged")
    which.add_argument(
        "--undo", metavar="ID", help="take an acknowledgement back; the start of its id will do"
    )
    add_filters(command, "workload", "gpu")
    command.add_argument(
        "--concept", metavar="CONCEPT", help="only this: latency, or a concept of metrics.txt"
    )
    command.add_argument("--until", metavar="DAY_OR_RUN", help="the last day (2026-12-31), or the last run")
    command.add_argument(
        "--up-to",
        type=_percent,
        metavar="PERCENT",
        help="only a change up to this, such as 8%%; a larger one fails again",
    )
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with it")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Acknowledge, list or take back."""
    about = (arguments.workload, arguments.gpu, arguments.concept, arguments.until, arguments.up_to)
    if not arguments.name and any(about):
        raise ProfilerError("--workload, --gpu, --concept, --until and --up-to are about a VERSION: name one")
    action = _list if arguments.list else _undo if arguments.undo is not None else _acknowledge
    return action(arguments)


def _acknowledge(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.compare import resolve_names
    from profiler.evidence import metric_table
    from profiler.gate import acknowledgement

    store = open_store()
    made = acknowledgement.acknowledge(
        location.open_root(),
        store,
        metric_table.load_metrics(),
        *resolve_names.resolve_family_version(store, arguments.name),
        why=arguments.why,
        workload=arguments.workload,
        gpu=arguments.gpu,
        concept=arguments.concept,
        until=arguments.until,
        up_to=arguments.up_to,
    )
    if arguments.json:
        print_json(_json(made))
    else:
        say(f"{made.place}: let pass {made.until}; `profiler acknowledge --undo {made.id}` takes it back")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from profiler.bundles import decisions, location
    from profiler.gate import acknowledgement

    found = acknowledgement.list_acknowledgements(decisions.load_decisions(location.open_root()))
    if arguments.json:
        print_json({"acknowledged": [_json(one) for one in found]})
    elif found:
        rows = [(one.id, one.place, _until(one), one.who, one.why) for one in found]
        print_table(("id", "what", "until", "who", "why"), rows)
    else:
        say("nothing is acknowledged")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.gate import acknowledgement

    gone = acknowledgement.withdraw(location.open_root(), arguments.undo, why=arguments.why)
    if arguments.json:
        print_json(_json(gone))
    else:
        say(f"{gone.place}: not let pass any more")
    return 0


def _percent(text: str) -> float:
    """A share from a text such as 8% or 8, for argparse."""
    try:
        number = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        number = 0.0
    if not 0 < number < 1000:
        raise argparse.ArgumentTypeError(f"{text} is no percentage above 0, such as 8%")
    return number


def _until(one: Acknowledgement) -> str:
    return f"{one.until} (ended)" if _ended(one) else one.until


def _ended(one: Acknowledgement) -> bool:
    """Whether its day is over; one until a run ends with the results it is asked about."""
    from datetime import UTC, datetime

    return one.until_day is not None and datetime.now(UTC).date() > one.until_day


def _json(one: Acknowledgement) -> dict[str, object]:
    return {
        "id": one.id,
        "family": one.family,
        "version": one.version,
        "workload": one.workload,
        "gpu": one.gpu,
        "concept": one.concept,
        "why": one.why,
        "who": one.who,
        "created": one.created.isoformat(),
        "until_day": None if one.until_day is None else one.until_day.isoformat(),
        "until_run": one.until_run,
        "up_to": one.up_to,
        "ended": _ended(one),
    }
