"""The route of a collection: settings become a plan, its jobs are run, and what has ended is sealed."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.bundles.bundle import load_run
from profiler.bundles.location import LocalRoot, open_root
from profiler.bundles.run import Run
from profiler.bundles.zip_file import pack
from profiler.catalog.catalog import Catalog
from profiler.collect import checkpoint, seal
from profiler.collect.collection import Collection, Listener
from profiler.collect.machine import Machine, detect_machine
from profiler.collect.plan import parse_budget
from profiler.collect.run_inputs import begin_run, resume_run
from profiler.collect.settings import Settings
from profiler.errors import CannotJudge, ProfilerError

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class CollectionLimits:
    """The time that a collection may take, and where its file goes; validated before anything runs."""

    begun: float  # monotonic: when the command began, before it examined the machine
    budget_s: float | None = None
    out: Path | None = None  # a file, or the folder for it

    @staticmethod
    def parse(budget: str | None, out: Path | None) -> CollectionLimits:
        """Limits that begin now, from what a person wrote. Raises ProfilerError."""
        begun = time.monotonic()
        if out and not out.resolve().parent.is_dir():
            raise ProfilerError(f"--out {out}: there is no folder {out.resolve().parent}")
        return CollectionLimits(begun, parse_budget(budget) if budget else None, out)


def local_root() -> LocalRoot:
    """The folder in which bundles are made. Raises ProfilerError where the root is no folder."""
    root = open_root(for_runs=True)
    if not isinstance(root, LocalRoot):
        raise ProfilerError(f"PROFILER_DATA={root.url}: collect into a folder, then import the bundle there")
    return root


# ---------------------------------------------------------------- beginning and going on


def begin_collection(
    root: LocalRoot, catalog: Catalog, settings: Settings, listener: Listener | None = None
) -> Collection:
    """Begin a new run on this machine. Raises CannotJudge for a noise run without a GPU; none is begun."""
    machine = detect_machine(settings.counters)
    if settings.pairs:
        _need_gpu(machine)
    return Collection(begin_run(root, catalog, settings), machine, listener)


def resume_collection(
    root: LocalRoot,
    run_id: str,
    listener: Listener | None = None,
    *,
    seal_only: bool = False,
    need_gpu: bool = False,
) -> Collection:
    """Resume an unfinished run on this machine.

    seal_only: nothing is to be measured. need_gpu: raises CannotJudge where there is none.
    """
    run = resume_run(root, run_id, sealing=seal_only)
    try:
        machine = Machine(None, None) if seal_only else detect_machine(run.inputs.settings.counters)
        if need_gpu and not seal_only:
            _need_gpu(machine)
        return Collection(run, machine, listener)
    except BaseException:
        run.staging.close()
        raise


def _need_gpu(machine: Machine) -> None:
    if machine.gpu is None:
        raise CannotJudge(
            "no GPU here, where A/A pairs are collected: `profiler list noise` lists what is missing"
        )


# ---------------------------------------------------------------- measuring and sealing


@dataclass(frozen=True)
class Sealed:
    """A run that is sealed."""

    run: Run
    file: Path | None  # the zip, where Limits.out asks for one


def measure(
    collection: Collection, root: LocalRoot, limits: CollectionLimits, *, seal_only: bool = False
) -> Sealed | None:
    """Run the jobs, seal what has ended, write the file; None: it was interrupted, and can be resumed.

    While the jobs run, the file is kept up to date: even if everything is killed, it holds what had ended.
    """
    with contextlib.closing(collection.staging), interrupted_by_signals():
        try:
            if not seal_only:
                collection.listener.planned(collection)
                with checkpoint.keep_file(collection, limits.out):
                    collection.run_jobs(limits.budget_s, time.monotonic() - limits.begun)
                collection.listener.ended(collection)
        except KeyboardInterrupt:
            collection.listener.interrupted(collection)
            return None
        for kind in _ENDINGS:  # everything is measured: use the seconds before a SIGKILL to seal it
            signal.signal(kind, signal.SIG_IGN)
        run_id = seal.seal(root, collection, zip_bytes=seal.ZIP_BYTES if limits.out else None)
        file = pack(root, run_id, limits.out) if limits.out else None
        return Sealed(load_run(root, run_id), file)


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let `kill`, `timeout` and a closed terminal end a collection as Ctrl-C does, leaving nothing running.

    Only the first signal counts: `timeout` signals its program and then the group, and the second must not
    interrupt the clean-up.
    """

    def interrupt(_number: int, _frame: object) -> None:
        for kind in _ENDINGS:
            signal.signal(kind, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [signal.signal(kind, interrupt) for kind in _ENDINGS]
    try:
        yield
    finally:
        for kind, handler in zip(_ENDINGS, before, strict=True):
            signal.signal(kind, handler)
