"""`profiler collect --noise`: A/A pairs, by which runs of different days are judged."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from profiler.cli.build import INTERRUPTED, split_list, trusted_catalog
from profiler.cli.output import print_document
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.catalog.catalog import Catalog
    from profiler.collect.collection import Collection, Listener
    from profiler.collect.settings import Settings

PAIRS = 50  # A/A pairs per workload where none are asked for


def collect_pairs(arguments: argparse.Namespace) -> int:
    """Measure, seal, print."""
    from profiler.cli.collecting import TerminalListener, print_sealed
    from profiler.collect.measurement import CollectionLimits, local_root, measure
    from profiler.documents.noise import floors_of_run

    limits, root = CollectionLimits.parse(arguments.budget, arguments.out), local_root()
    collection = _open(arguments, TerminalListener("collect --noise", arguments))
    sealed = measure(collection, root, limits, seal_only=arguments.seal)
    if sealed is None:
        return INTERRUPTED
    print_sealed(sealed, arguments.json)
    return print_document(floors_of_run(sealed.run), arguments)


def _open(arguments: argparse.Namespace, listener: Listener) -> Collection:
    from profiler.collect.measurement import begin_collection, local_root, resume_collection

    if not (arguments.versions or arguments.resume):
        raise ProfilerError("which version? `profiler collect --noise VERSION`, or `profiler list noise`")
    if arguments.resume:
        return resume_collection(
            local_root(), arguments.resume, listener, seal_only=arguments.seal, need_gpu=True
        )
    if arguments.seal:
        raise ProfilerError("--seal needs --resume RUN: a run that begins now has nothing to keep")
    catalog = trusted_catalog(arguments)
    return begin_collection(local_root(), catalog, _settings(arguments, catalog), listener)


def _settings(arguments: argparse.Namespace, catalog: Catalog) -> Settings:
    from profiler.collect.settings import noise_settings, publishable_command_line

    workloads = split_list(arguments.workloads or "")
    return replace(
        noise_settings(catalog, arguments.versions, workloads=workloads, pairs=arguments.pairs or PAIRS),
        rounds=arguments.rounds,
        samples=arguments.samples,
        command_line=publishable_command_line(["profiler", *sys.argv[1:]]),
    )
