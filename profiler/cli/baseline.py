"""`profiler decide baseline set | show | list | unset`: what a family's versions are held against."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, print_json, print_table, say

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.history.baselines import Baseline, LostPin, Pin

_DESCRIPTION = """\
A baseline is set for a family, or for one workload or GPU of it (--workload, --gpu), which then takes
precedence over the family's. It is kept as a decision record beside the bundles, with who, when and why.
Some baselines need not be set: the nearest correct ancestor in the catalogue (parent), the fastest correct
version (best), and every torch backend that was collected (torch:sdpa_flash)."""


def add(commands: Commands) -> None:
    """Add `baseline` and its four actions."""
    command = commands.add_parser(
        "baseline", help="set, show, list or unset the baselines of versions", description=_DESCRIPTION
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    setting = actions.add_parser("set", help="pin a run or version as the baseline of a family")
    setting.add_argument("family", metavar="FAMILY")
    setting.add_argument("name", metavar="RUN_OR_VERSION", help="a run id, a version, or torch:sdpa_flash")
    showing = actions.add_parser("show", help="which baselines a version has on each workload and GPU")
    showing.add_argument("name", metavar="VERSION", help="family/version, or version where it is unique")
    listing = actions.add_parser("list", help="every baseline that is set")
    unsetting = actions.add_parser("unset", help="remove a family's baseline")
    unsetting.add_argument("family", metavar="FAMILY")
    add_filters(listing, "family", files=False)
    for action, handler in (
        (setting, set_),
        (showing, show),
        (listing, list_),
        (unsetting, unset),
    ):
        action.set_defaults(handler=handler)
        if action is not listing:
            add_filters(action, "workload", "gpu", files=False)
        if action in (setting, unsetting):
            action.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with it")
        else:
            add_json(action)


def set_(arguments: argparse.Namespace) -> int:
    """Pin, and say what is pinned now."""
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.gate.pins import set_baseline

    place = {"workload": arguments.workload, "gpu": arguments.gpu}
    root, store = location.open_root(), open_store()
    pin = set_baseline(root, store, arguments.family, arguments.name, why=arguments.why, **place)
    say(f"the baseline of {pin.family} is {pin.name} ({pin.scope})")
    return 0


def unset(arguments: argparse.Namespace) -> int:
    """Take a pin away, and say which."""
    from profiler.bundles import location
    from profiler.gate.pins import unset_baseline

    place = {"workload": arguments.workload, "gpu": arguments.gpu}
    pin = unset_baseline(location.open_root(), arguments.family, why=arguments.why, **place)
    say(f"{pin.name} is no longer a baseline of {pin.family} ({pin.scope})")
    return 0


def list_(arguments: argparse.Namespace) -> int:
    """Every pin with who, when and why; below, of those that are lost the way out."""
    from profiler.bundles import decisions, location
    from profiler.cli.output import open_store
    from profiler.history.baselines import find_loss, list_pins

    pins = list_pins(decisions.load_decisions(location.open_root()))
    pins = [pin for pin in pins if arguments.family in (None, pin.family)]
    store = open_store() if pins else None
    losses = [find_loss(pin, store) if store else None for pin in pins]
    if arguments.json:
        print_json({"baselines": list(map(_pin_document, pins, losses))})
    elif pins:
        _print_pins(pins, losses)
    else:
        say(
            "no baseline is set: parent, best and collected torch:… need none; "
            "`profiler decide baseline set` pins one"
        )
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Every baseline of a version, place by place."""
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.compare import resolve_names
    from profiler.history.baselines import Baselines

    root, store = location.open_root(), open_store()
    family, version = resolve_names.resolve_family_version(store, arguments.name)
    baselines = Baselines.load(root, store, family).by_place(version, arguments.workload, arguments.gpu)
    if arguments.json:
        documents = [_baseline_document(*place, baseline) for place, baseline in baselines]
        print_json({"version": f"{family}/{version}", "baselines": documents})
    elif baselines:
        rows = [(*place, baseline.how, baseline.name, baseline.words) for place, baseline in baselines]
        print_table(("workload", "gpu", "by", "baseline", "from"), rows)
    else:
        say(f"{family}/{version} has no baseline: `profiler decide baseline set {family} RUN_OR_VERSION`")
    return 0


def _print_pins(pins: Sequence[Pin], losses: Sequence[LostPin | None]) -> None:
    rows = [
        (
            pin.family,
            pin.workload or "",
            pin.gpu or "",
            f"{pin.name} (lost)" if loss else pin.name,
            pin.words,
        )
        for pin, loss in zip(pins, losses, strict=True)
    ]
    print_table(("family", "workload", "gpu", "baseline", "set"), rows)
    for pin, loss in zip(pins, losses, strict=True):
        if loss:
            say(f"! nothing can be compared with the baseline of {pin.family} ({pin.scope}): {loss.words}")


def _pin_document(pin: Pin, loss: LostPin | None) -> dict[str, object]:
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
        "lost": loss and loss.words,
    }


def _baseline_document(workload: str, gpu: str, baseline: Baseline) -> dict[str, object]:
    return {
        "workload": workload or None,
        "gpu": gpu or None,
        "how": baseline.how,
        "run": baseline.run_id,
        "version": baseline.version,
        "from": baseline.words,
    }
