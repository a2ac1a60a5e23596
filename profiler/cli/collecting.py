"""What a collection tells a person while it runs, and of its run afterwards."""

from __future__ import annotations

import argparse
import sys

from profiler.cli.output import escape_controls, say, write_styled
from profiler.collect.collection import Collection, Listener
from profiler.collect.failure_logs import failed_jobs
from profiler.collect.measurement import Sealed
from profiler.collect.ncu_command import TIERS


class TerminalListener(Listener):
    """Says how a collection goes on: results on standard output, the rest on standard error."""

    def __init__(self, command: str, arguments: argparse.Namespace) -> None:
        self._command, self._as_json, self._out = command, arguments.json, arguments.out

    def planned(self, collection: Collection) -> None:
        """Which run begins, on which GPU, with how many jobs, and what is missing here."""
        passes = collection.machine.passes
        counts = ", ".join(f"{tier} {passes.get(tier) or 'unknown'}" for tier in TIERS)
        gpu = (collection.machine.gpu and collection.machine.gpu.name) or "no GPU"
        replays = f"; replay passes per launch: {counts}" if collection.settings.counters else ""
        print(
            f"{collection.staging.run_id} on {gpu}: {len(collection.planned)} jobs{replays}",
            file=sys.stderr if self._as_json else sys.stdout,
        )
        for words in collection.machine.missing:
            print(f"profiler: {words}", file=sys.stderr)

    def progress(self, done: int, total: int, what: str, left_s: float | None) -> None:
        """One line, written over while a terminal looks on."""
        left = "" if not left_s else f", about {int(left_s // 60)}:{int(left_s % 60):02d} left"
        line = f"[{done}/{total}] {what}{left}"
        if done == total or not sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)
        else:
            write_styled(f"{escape_controls(line)}\033[K\r", sys.stderr)
            sys.stderr.flush()

    def ended(self, collection: Collection) -> None:
        """What the processes of failed jobs printed, since their logs go with the staging folder."""
        for job in failed_jobs(collection):
            print(f"\nfailed: {job.key}: {job.reason}", file=sys.stderr)
            for name, lines in job.logs:
                print("\n".join([f"  {name}:", *(f"    {line}" for line in lines)]), file=sys.stderr)

    def interrupted(self, collection: Collection) -> None:
        """How it goes on."""
        resume = f"profiler {self._command} --resume {collection.staging.run_id}"
        say(f"\ninterrupted; to continue: {resume}, or to keep what is done: … --seal")
        if self._out:
            say(f"{self._out} has the jobs that had ended")


def print_sealed(sealed: Sealed, as_json: bool) -> None:
    """Where the file is that was asked for."""
    if sealed.file:
        print(f"written: {sealed.file}", file=sys.stderr if as_json else sys.stdout)
