"""`profiler metrics`: what metrics.txt declares, the exact list for ncu, and whether its names exist."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.cli.output import add_json, print_json, print_table, say
from profiler.errors import Exit
from profiler.evidence import ARCHITECTURES, Evidence, chip_metrics, metric_table, ncu_names, nvperf

if TYPE_CHECKING:
    from profiler.cli.output import Commands

DESCRIPTION = """\
List what metrics.txt declares. With --chip, print the comma list for `ncu --metrics` alone on stdout, and
what collecting it costs on stderr. With --check, hold every name against NVIDIA's lists: exit 0 where all
exist, 2 where some do not, 3 where NVIDIA's library does not load."""


def add(commands: Commands) -> None:
    """Add `metrics`."""
    command = commands.add_parser(
        "metrics", help="list the metrics, print the list for ncu, check the names", description=DESCRIPTION
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--chip", choices=tuple(ARCHITECTURES), metavar="sm_NN", help=f"one of {', '.join(ARCHITECTURES)}"
    )
    what.add_argument(
        "--check", nargs="?", const="", metavar="FILE", help="check the names in FILE (default: metrics.txt)"
    )
    command.add_argument(
        "--tier",
        choices=metric_table.TIERS,
        default="full",
        help="lean metrics only, or all (full, the default)",
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Do one of the three."""
    if arguments.check is not None:
        return _check(Path(arguments.check) if arguments.check else None, arguments.json)
    table = metric_table.load_metrics()
    if arguments.chip:
        _print_request(table, arguments.chip, arguments.tier, arguments.json)
    elif arguments.json:
        print_json(_listing(table, arguments.tier))
    else:
        _print_listing(table, arguments.tier)
    return Exit.PASS


def _check(path: Path | None, as_json: bool) -> int:
    table, problems = metric_table.load_with_problems(path)
    if (
        chip_metrics.is_library_available() or not problems
    ):  # without NVIDIA's library what is certain is still said
        problems += chip_metrics.check_names(table)
    start = len(f"{table.path}:")  # a path may hold colons itself
    by_line = sorted(problems, key=lambda text: int(text[start:].split(":")[0]))
    if as_json:
        print_json({"file": str(table.path), "ok": not by_line, "problems": by_line})
    for problem in () if as_json else by_line:
        print(problem, file=sys.stderr)
    if not by_line and not as_json:
        say(f"{table.path}: {len(table.metrics)} metrics, {len(table.captured)} captured: every name exists")
    return Exit.UNUSABLE_INPUT if by_line else Exit.PASS


def _print_request(table: metric_table.MetricTable, chip: str, tier: str, as_json: bool) -> None:
    wanted = chip_metrics.names_to_collect(table, chip, tier)
    absent = [
        metric.concept
        for metric in _chosen(table, tier)
        if metric.concept not in wanted.values() and metric.evidence is Evidence.MEASURED
    ]
    passes = chip_metrics.replay_passes(wanted, chip)
    if as_json:
        named = [
            {"metric": name, "concept": concept or None, "cost": ncu_names.collection_cost(name) or "counted"}
            for name, concept in wanted.items()
        ]
        document = {"chip": chip, "tier": tier, "passes": passes, "metrics": named, "not_available": absent}
        print_json(document)
        return
    say(",".join(wanted))
    print(_cost_line(list(wanted), chip, tier, passes), file=sys.stderr)
    if absent:
        print(f"not available on {chip}: {', '.join(absent)}", file=sys.stderr)


def _cost_line(wanted: list[str], chip: str, tier: str, passes: int | None) -> str:
    """What collecting costs, and what of it NVIDIA's library cannot count."""
    if passes is None:
        reason = f"{nvperf.LIBRARY} of the wheel ncu-report does not load here"
        return f"{chip}, {tier}: {len(wanted)} metrics, replay passes unknown: {reason}"
    costs = [ncu_names.collection_cost(name) for name in wanted]
    counted, free = costs.count(None), costs.count(ncu_names.CollectionCost.NONE)
    text = f"{chip}, {tier}: {passes} replay passes for {counted} hardware metrics; {free} facts cost none"
    own = len(wanted) - counted - free
    return text + (f"; ncu adds passes of its own (instrumented code) for {own}" if own else "")


def _chosen(table: metric_table.MetricTable, tier: str) -> list[metric_table.Metric]:
    return [metric for metric in table.metrics if tier == "full" or metric.tier == "lean"]


def _listing(table: metric_table.MetricTable, tier: str) -> dict[str, Any]:
    rows = [
        {
            "concept": metric.concept,
            "label": metric.label,
            "unit": metric.unit,
            "better": metric.better,
            "threshold": metric.threshold,
            "threshold_pp": metric.threshold_pp,
            "group": metric.group,
            "tier": metric.tier,
            "metrics": [
                {
                    "metric": one.name,
                    "chips": [chip for chip in ARCHITECTURES if chip in one.chips] or None,
                }
                for one in metric.alternatives
            ],
        }
        for metric in _chosen(table, tier)
    ]
    return {"file": str(table.path), "metrics": rows, "captured": list(table.captured)}


def _print_listing(table: metric_table.MetricTable, tier: str) -> None:
    rows = []
    group = ""
    for metric in _chosen(table, tier):
        names = "\n".join(_spelling(one) for one in metric.alternatives)
        shown = metric.group if metric.group != group else ""
        group = metric.group
        facts = (metric.unit, metric.better, _threshold(metric), metric.tier)
        rows.append((shown, metric.concept, metric.label, *facts, names))
    rows += [("captured", "", "", "", "", "", "", name) for name in table.captured]
    print_table(("group", "concept", "label", "unit", "better", "threshold", "tier", "ncu metric"), rows)


def _spelling(one: metric_table.Alternative) -> str:
    limits = " ".join(chip for chip in ARCHITECTURES if chip in one.chips)
    return f"{one.name} @{limits}" if limits else one.name


def _threshold(metric: metric_table.Metric) -> str:
    if metric.threshold_pp is not None:
        return f"{metric.threshold_pp:g}pp"
    return f"{metric.threshold * 100:g}%"
