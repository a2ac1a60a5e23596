"""`profiler list metrics`: what metrics.txt declares, the exact list for ncu, and whether its names exist."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, say
from profiler.evidence import metric_table
from profiler.evidence.gpu_arch import ARCHITECTURES, find_architecture

if TYPE_CHECKING:
    from profiler.cli.output import Commands

DESCRIPTION = """\
List the metrics of metrics.txt. With --chip, print the comma-separated list for `ncu --metrics` on stdout,
and what collecting it costs on stderr. With --check, look up every name in NVIDIA's lists: exit code 0 if
all exist, 2 if some do not, 3 if NVIDIA's library does not load."""


def add(commands: Commands) -> None:
    """Add `metrics`."""
    command = commands.add_parser(
        "metrics", help="list the metrics, print the list for ncu, check the names", description=DESCRIPTION
    )
    what = command.add_mutually_exclusive_group()
    chips = tuple(name for name, architecture in ARCHITECTURES.items() if architecture.ncu_chip)
    what.add_argument("--chip", type=_chip, choices=chips, metavar="sm_NN", help=f"one of {', '.join(chips)}")
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
    from profiler.documents.metrics import MetricsDocument, check_metrics, metrics_for_chip

    if arguments.check is not None:
        path = Path(arguments.check) if arguments.check else None
        return print_document(check_metrics(path), arguments)
    table = metric_table.load_metrics()
    if arguments.chip:
        request = metrics_for_chip(table, arguments.chip, arguments.tier)
        if arguments.json:
            return print_document(request, arguments)
        say(",".join(request.names))  # alone on standard output, so that it can be handed to ncu
        print("\n".join(request.sentences), file=sys.stderr)
        return request.exit_code
    return print_document(MetricsDocument(table, arguments.tier), arguments)


def _chip(name: str) -> str:
    """The chip of an architecture as nvcc writes it: sm_121 of sm_121a; what is none as it is."""
    row = find_architecture(name)
    return row.name if row else name
