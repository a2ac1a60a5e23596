"""`profiler baseline set | show | list | unset`: what a family's versions are held against."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, print_table, say

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.history import Baseline, Pin

_DESCRIPTION = """\
A baseline is set for a family, or for one workload or GPU of it (--workload, --gpu), which then counts there
before the one of the family. It is kept as a decision record beside the bundles, with who, when and why. The
nearest correct ancestor (parent), the fastest correct version (best) and every torch backend that was
collected (torch:sdpa_flash) are always there and need no setting."""


def add(commands: Commands) -> None:
    """Add `baseline` and its four actions."""
    command = commands.add_parser(
        "baseline", help="set, show, list or unset what versions are held against", description=_DESCRIPTION
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    setting = actions.add_parser("set", help="pin a run or version as the baseline of a family")
    setting.add_argument("family", metavar="FAMILY")
    setting.add_argument("name", metavar="RUN_OR_VERSION", help="a run id, a version, or torch:sdpa_flash")
    showing = actions.add_parser("show", help="which baselines a version has in each place")
    showing.add_argument("name", metavar="VERSION", help="family/version, or version where it is unique")
    listing = actions.add_parser("list", help="every baseline that is set")
    unsetting = actions.add_parser("unset", help="take a family's baseline away")
    unsetting.add_argument("family", metavar="FAMILY")
    add_filters(listing, "family")
    for action, handler in (
        (setting, set_),
        (showing, show),
        (listing, list_),
        (unsetting, unset),
    ):
        action.set_defaults(handler=handler)
        if action is not listing:
            add_filters(action, "workload", "gpu")
        if action in (setting, unsetting):
            action.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with it")
        else:
            add_json(action)


def set_(arguments: argparse.Namespace) -> int:
    """Pin, and say what is pinned now."""
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.gate import pins

    place = {"workload": arguments.workload, "gpu": arguments.gpu}
    root, store = location.open_root(), open_store()
    pin = pins.set_baseline(root, store, arguments.family, arguments.name, why=arguments.why, **place)
    say(f"the baseline of {pin.family} is {pin.name} ({pin.scope})")
    return 0


def unset(arguments: argparse.Namespace) -> int:
    """Take a pin away, and say which."""
    from profiler.bundles import location
    from profiler.gate import pins

    place = {"workload": arguments.workload, "gpu": arguments.gpu}
    pin = pins.unset_baseline(location.open_root(), arguments.family, why=arguments.why, **place)
    say(f"{pin.name} is no baseline of {pin.family} any more ({pin.scope})")
    return 0


def list_(arguments: argparse.Namespace) -> int:
    """Every pin with who, when and why; below, of those that are lost the way out."""
    from profiler.bundles import decisions, location
    from profiler.cli.output import open_store
    from profiler.history import baselines

    found = baselines.list_pins(decisions.load_decisions(location.open_root()))
    found = [one for one in found if arguments.family in (None, one.family)]
    store = open_store() if found else None
    told = [(one, baselines.find_loss(one, store) if store else None) for one in found]
    if arguments.json:
        print_json({"baselines": [{**pin_json(one), "lost": lost and lost.words} for one, lost in told]})
    elif told:
        rows = [
            (
                one.family,
                one.workload or "",
                one.gpu or "",
                f"{one.name} (lost)" if lost else one.name,
                one.words,
            )
            for one, lost in told
        ]
        print_table(("family", "workload", "gpu", "baseline", "set"), rows)
        for one, lost in told:
            if lost:
                say(f"! nothing can be held against the baseline of {one.family} ({one.scope}): {lost.words}")
    else:
        say("no baseline is set: parent, best and torch:… are always there; `profiler baseline set` pins one")
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Every baseline of a version, place by place."""
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.compare import resolve_names
    from profiler.history import baselines

    root, store = location.open_root(), open_store()
    family, version = resolve_names.resolve_family_version(store, arguments.name)
    held = baselines.Baselines.load(root, store, family)
    found = [
        (workload, gpu, one)
        for workload, gpu in held.places(version)
        if arguments.workload in (None, workload) and arguments.gpu in (None, gpu)
        for one in held.available(version, workload, gpu)
    ]
    if arguments.json:
        print_json({"version": f"{family}/{version}", "baselines": [_json(*one) for one in found]})
    elif found:
        rows = [(workload, gpu, one.how, one.name, one.words) for workload, gpu, one in found]
        print_table(("workload", "gpu", "by", "baseline", "from"), rows)
    else:
        say(f"{family}/{version} has no baseline: `profiler baseline set {family} RUN_OR_VERSION`")
    return 0


def pin_json(pin: Pin) -> dict[str, object]:
    """A pin as JSON."""
    return {
        "family": pin.family,
        "workload": pin.workload,
        "gpu": pin.gpu,
        "run": pin.run_id,
        "version": pin.version,
        "who": pin.who,
        "created": pin.created.isoformat(),
        "why": pin.why,
        "id": pin.id,
    }


def _json(workload: str, gpu: str, one: Baseline) -> dict[str, object]:
    told = {"how": one.how, "run": one.run_id, "version": one.version, "from": one.words}
    return {"workload": workload or None, "gpu": gpu or None, **told}
