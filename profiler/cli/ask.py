"""`profiler runs | versions | workloads | show | trend`: what the index holds, and a launch's numbers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, evidence_of, positive, print_json

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_SHOW = """\
The metrics of every launch in a report file, run or version, by group; what has no number is named last, with
the reason. A file is read as it is, without a store. With --all --json the numbers are in base units under
their exact ncu names."""

_TREND = """\
One metric over the versions of each kernel, on each workload and GPU. CONCEPT is a concept of metrics.txt or
an exact ncu name. A | stands before a value that must not be joined to the one on its left (the driver, ncu
version, counter or unit changed); a state where there is no number, · where the kernel did not run, ⊘ before
the value of a version that is wrong. Versions come in the order of the catalogue that the family's newest run
keeps, else in the order in which they first appeared."""


def add(commands: Commands) -> None:
    """Add the five commands."""
    runs = commands.add_parser("runs", help="list the runs of the index")
    runs.add_argument("--hidden", action="store_true", help="also runs that were forgotten")
    versions = commands.add_parser("versions", help="list the versions, in the order they first appeared")
    workloads = commands.add_parser("workloads", help="list the workloads")
    for command, handler in ((runs, list_runs), (versions, list_versions), (workloads, list_workloads)):
        add_filters(command, "family")
        add_json(command)
        command.set_defaults(handler=handler)

    show = commands.add_parser("show", help="print the metrics of each launch", description=_SHOW)
    show.add_argument(
        "name", metavar="REPORT_OR_VERSION", help="a report file, run id, family/version or version"
    )
    show.add_argument(
        "--all", action="store_true", help="every metric of the report, not those of metrics.txt"
    )
    add_filters(show, "kernel", "top", "workload", "gpu")
    add_json(show)
    show.set_defaults(handler=show_launches)

    trend = commands.add_parser("trend", help="print one metric over the versions", description=_TREND)
    trend.add_argument("concept", metavar="CONCEPT", help="a concept such as duration, or an exact ncu name")
    add_filters(trend, "family", "workload", "gpu", "kernel")
    add_evidence(trend)
    trend.add_argument("--over", choices=("versions", "time"), default="versions", help="time: every run")
    trend.add_argument(
        "--across", action="append", choices=("driver", "ncu"), default=[], help="no break where this changes"
    )
    trend.add_argument(
        "--last", type=positive, default=8, metavar="N", help="the newest N versions (default 8)"
    )
    add_json(trend)
    trend.set_defaults(handler=show_trend)


def list_runs(arguments: argparse.Namespace) -> int:
    """List the runs, newest first."""
    from profiler.cli import listing, output

    store = output.open_store()
    runs = store.runs(arguments.family, hidden=arguments.hidden)
    if not runs:
        output.check_family(store, arguments.family)
    if arguments.json:
        print_json({"runs": [listing.run(one) for one in runs]})
    else:
        listing.print_runs(runs)
    return 0


def list_versions(arguments: argparse.Namespace) -> int:
    """List the versions of each family."""
    from profiler.cli import listing, output

    store = output.open_store()
    output.check_family(store, arguments.family)
    versions = store.versions(arguments.family)
    if arguments.json:
        print_json({"versions": [listing.version(one) for one in versions]})
    else:
        listing.print_versions(versions)
    return 0


def list_workloads(arguments: argparse.Namespace) -> int:
    """List the workloads of each family."""
    from profiler.cli import listing, output

    store = output.open_store()
    output.check_family(store, arguments.family)
    workloads = store.workloads(arguments.family)
    if arguments.json:
        print_json({"workloads": [listing.workload(one) for one in workloads]})
    else:
        listing.print_workloads(workloads)
    return 0


def show_launches(arguments: argparse.Namespace) -> int:
    """Print the launches of one report, run or version."""
    from profiler.cli import output, showing
    from profiler.compare import resolve_names
    from profiler.evidence import metric_table
    from profiler.history.without_results import versions_without_results_explained

    table = metric_table.load_metrics()
    with versions_without_results_explained((arguments.name,), output.open_store):
        side = resolve_names.resolve(arguments.name, output.open_store, arguments.workload, arguments.gpu)
    output.note_forgotten((arguments.name,), output.open_store)
    chosen = showing.choose(side, arguments.kernel, arguments.top)
    if arguments.json:
        print_json(showing.document(chosen, table, everything=arguments.all))
    else:
        showing.print_launches(chosen, table, everything=arguments.all)
    return 0


def show_trend(arguments: argparse.Namespace) -> int:
    """Print one metric over versions or runs."""
    from profiler.bundles import location
    from profiler.cli import output, trending
    from profiler.evidence import metric_table
    from profiler.history import lineage
    from profiler.history import trend as history_trend

    filters = {
        name: getattr(arguments, name) for name in ("family", "workload", "gpu", "kernel", "over", "across")
    }
    store, table = output.open_store(), metric_table.load_metrics()
    stands = lineage.load_lineages(location.open_root(), store, arguments.family)
    series = history_trend.load_trends(
        store,
        arguments.concept,
        table,
        **filters,
        evidence=evidence_of(arguments),
        orders={family: one.order for family, one in stands.items()},
        wrong={family: one.wrong for family, one in stands.items()},
    )
    trending.check(series, arguments.concept)
    if arguments.json:
        print_json({"concept": arguments.concept, "series": [trending.document(one) for one in series]})
    else:
        trending.print_trends(series, arguments.last)
    return 0
