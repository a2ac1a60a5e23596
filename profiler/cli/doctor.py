"""`profiler doctor`: what this machine can measure, on one screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Report what this machine can measure: GPU and its clocks, driver, CUDA, nvcc, ncu and whether it may read
counters, compute-sanitizer, torch and its attention backends; and, where something is missing, what works
without it. Nothing is changed: clocks and settings are only read."""

_EPILOG = "exit codes: 0 something can be measured · 3 nothing can be measured here"


def add(commands: Commands) -> None:
    """Add `doctor`."""
    command = commands.add_parser(
        "doctor",
        help="what this machine can measure, and what is missing",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print."""
    from profiler.collect import doctor
    from profiler.documents.doctor import DoctorDocument

    return print_document(DoctorDocument(doctor.examine_machine()), arguments)
