"""What the GPU tests share: the lineage built for this GPU, and every check made once, side by side."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from profiler.build import library, toolchain
from profiler.build.kernel_names import function_name
from profiler.catalog import catalog
from profiler.catalog.attention import ACCEPTANCE, ATTENTION, AttentionWorkload
from profiler.catalog.version import Version
from profiler.collect import gpu_process, subprocesses
from profiler.collect.gpu import device
from profiler.collect.gpu.messages import CORRECTNESS, CheckRequest, CheckResult, ProblemSetup, VersionCode
from profiler.collect.gpu.properties import Gpu

TOGETHER = max(4, min(16, os.cpu_count() or 1))  # at a time: most of a check's time is torch's import
BUILD_S = 120  # of one version; a compiler that hangs costs its version
LINEAGE = catalog.load_catalog()
A, B = TypeVar("A"), TypeVar("B")
GOOD = [version for version in LINEAGE.versions if version.buildable and version.state == "good"]
REJECTED = [version for version in LINEAGE.versions if version.buildable and version.state == "rejected"]


def pytest_collection_modifyitems(config, items):
    """All of this folder needs a GPU, with torch and nvcc."""
    here = Path(__file__).parent
    inside = {path: here in path.parents for path in {item.path for item in items}}
    mine = [item for item in items if inside[item.path]]
    if not mine:
        return
    missing = []
    if device.describe() is None:
        missing.append("no GPU")
    if toolchain.find_tool("nvcc") is None:
        missing.append("no nvcc")
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in mine:
        item.add_marker(pytest.mark.gpu)
        if item.config.pluginmanager.hasplugin("timeout"):  # a bare machine may have pytest alone
            item.add_marker(pytest.mark.timeout(1200))
        cases.setdefault((item.path, item.originalname), []).append(item)
    if missing:  # one skip says it for all cases of a test
        for first, *others in cases.values():
            first.add_marker(pytest.mark.skip(reason=f"{' and '.join(missing)}; {len(others) + 1} cases"))
            for item in others:
                items.remove(item)
            config.hook.pytest_deselected(items=others)


def workloads_of(version: Version) -> list[AttentionWorkload]:
    """The acceptance workloads in the version's dtype that it takes."""
    sizes = [{**one.sizes(), "dtype": version.dtype} for one in ACCEPTANCE]
    return [ATTENTION.workload(**one) for one in sizes if one["head_dim"] in version.head_dims]


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """The first Ctrl-C raises KeyboardInterrupt; any after it is ignored, from then on.

    The handler itself turns the others off: in an `except` it could be too late, and the ending be ended.
    """
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class GpuBench:
    """The libraries of the lineage, and a folder for what runs on them."""

    folder: Path
    libraries: dict[str, Path]
    kernels: dict[str, set[str]]  # function names of each version
    failed: dict[str, str]  # why a version could not be built
    gpu: Gpu
    interrupted: threading.Event = field(default_factory=threading.Event)  # what ends now was ended by us

    def need(self, name: str) -> None:
        """Skip a test of a version that is not there; that it could not be built is a test of its own."""
        if name not in self.libraries:
            pytest.skip(self.failed.get(name) or f"{name} does not run on this architecture")

    def side_by_side(self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """All of them, TOGETHER at a time. Ctrl-C, which is what `timeout -s INT` sends, waits for none.

        Once: `timeout` signals its program and then the program's group, and the second must not end the
        ending, or the summary.
        """
        pool = ThreadPoolExecutor(TOGETHER)
        jobs: list[Future[B]] = []
        with interrupted_once():
            try:
                jobs += (pool.submit(work, item) for item in items)
                return [job.result() for job in jobs]
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    self.interrupted.set()
                pool.shutdown(wait=False, cancel_futures=True)
                subprocesses.kill_leftovers(self.folder)
                while not all(job.done() for job in jobs):  # a job may just have been starting its program
                    time.sleep(0.1)
                    subprocesses.kill_leftovers(self.folder)
                raise
            finally:
                pool.shutdown()

    @property
    def cases(self) -> str:
        """Where inputs and references are kept, which all versions share."""
        return str(self.folder / "cases")

    def version(self, name: str) -> VersionCode:
        """What is called of the version."""
        return VersionCode(name, library=str(self.libraries[name]))

    def check(
        self, name: str, workload: AttentionWorkload, seed: int = 0, save: str | None = None
    ) -> CheckResult:
        """One check in a process of its own."""
        label = workload.label.replace(" ", "-").replace(":", "-")
        setup = ProblemSetup(seed=seed, cases=self.cases)
        request = CheckRequest(self.version(name), workload.sizes(), setup, save=save)
        folder = self.folder / "check" / name / f"{label}-{seed}"
        return gpu_process.run_program(CORRECTNESS, request, folder, timeout_s=120)


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Iterator[GpuBench]:
    """The lineage, built for this GPU; what runs of it does not outlive the tests, killed or not."""
    gpu = device.describe()
    assert gpu is not None
    assert gpu.compute_capability is not None
    plain = f"sm_{gpu.compute_capability.replace('.', '')}"
    by_arch: dict[str, list[Version]] = {}
    for version in (*GOOD, *REJECTED):
        arch = next((one for one in (f"{plain}a", plain) if version.supports(one)), None)
        if arch is not None:
            by_arch.setdefault(arch, []).append(version)
    libraries, kernels, failed = {}, {}, {}
    for arch, versions in by_arch.items():  # all of an architecture side by side
        for made in library.build(LINEAGE, versions, (arch,), limit_s=BUILD_S):
            if isinstance(made, library.FailedBuild):
                failed[made.version] = made.error
                continue
            libraries[made.version] = made.library
            kernels[made.version] = {function_name(one.function) for one in made.resources}
    folder = tmp_path_factory.mktemp("gpu")
    with subprocesses.kill_on_exit(folder):
        yield GpuBench(folder, libraries, kernels, failed, gpu)


@pytest.fixture(scope="session")
def checked(bench) -> dict[tuple[str, str], CheckResult]:
    """Every version on every workload it is asked for; rejected ones on the first."""
    cells = [(version.id, workload) for version in GOOD for workload in workloads_of(version)]
    cells += [(version.id, workload) for version in REJECTED for workload in workloads_of(version)[:1]]
    cells = [cell for cell in cells if cell[0] in bench.libraries]
    results = bench.side_by_side(lambda cell: bench.check(*cell), cells)
    return {(name, workload.label): found for (name, workload), found in zip(cells, results, strict=True)}


@pytest.fixture(scope="session")
def kept() -> Path | None:
    """Where tables for the README are written: $OUT, if it is set."""
    if not os.environ.get("OUT"):
        return None
    folder = Path(os.environ["OUT"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep(folder: Path | None, name: str, table: object) -> None:
    """Write a table, and print it."""
    print(write(folder, name, table))


def write(folder: Path | None, name: str, table: object) -> str:
    """Write a table; its text."""
    text = json.dumps(table, indent=1)
    if folder is not None:
        (folder / name).write_text(text, encoding="utf-8")
    return text
