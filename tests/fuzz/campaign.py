"""Damaged input by the thousand, and what became of it.

    python -m tests.fuzz.campaign --count 20000 --seed 1

Every mutation goes to the part of the program that takes such a file from a user. What may come of it is an
answer, or one line that says what is wrong (ProfilerError). Counted are crashes (any other exception), hangs
(over a limit of time), growth of this process, and accepted files whose launches or metrics differ from those
of the undamaged file, by kind: with a warning, or without a word, those nobody can see the damage of.
Ctrl-C, or SIGTERM, prints the counts so far.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from profiler.bundles import decisions
from profiler.bundles.bundle import load_run
from profiler.bundles.decisions import load_decisions
from profiler.bundles.location import open_root
from profiler.bundles.run import Run
from profiler.catalog.catalog import load_catalog
from profiler.cli import main as command
from profiler.errors import ProfilerError
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.reports.read import read_report
from profiler.store.begin_import import import_paths
from tests.conftest import FAMILIES, ROOT
from tests.fuzz.mutations import change_bytes, change_json, change_lines, change_zip, lengthen_field
from tests.reportfiles import made_reports

COMMANDS = ("show", "compare", "trend", "list runs", "gate", "trend --steps", "regressions", "explain")
LIMIT_S = 20.0  # of one mutation, on a machine that does nothing else; a report's own limit is higher
GROWTH_MIB = 100  # of this process over one mutation
VALUES = "value flips"  # nothing can see them: a report stores its values without check sums
WARNED = "warned"  # in place of the kind of a change: it was said
_CASES = 12  # of a kind of silent change that are named


@dataclass
class Result:
    """What became of all mutations of a campaign."""

    tried: Counter[str] = field(default_factory=Counter)  # by target
    refused: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)  # accepted with a warning
    silent: Counter[str] = field(default_factory=Counter)  # accepted with other content: by target and kind
    silent_cases: dict[str, list[str]] = field(
        default_factory=dict
    )  # the first few of each kind, as SEED/NUMBER
    crashes: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    growths: list[str] = field(default_factory=list)

    def table(self) -> Iterator[str]:
        """The counts, a line a target, then what should not have been."""
        for target, tried in sorted(self.tried.items()):
            own = [(kind, count) for kind, count in self.silent.items() if kind.startswith(f"{target}: ")]
            kinds = ", ".join(f"{count} {kind.partition(': ')[2]}" for kind, count in sorted(own))
            counts = f"{tried:6} tried {self.refused[target]:6} refused {self.warned[target]:6} warned"
            yield f"{target:10} {counts}   {kinds or 'no silent change'}"
        for kind, cases in sorted(self.silent_cases.items()):
            if not kind.endswith(VALUES):
                yield f"{kind}: {' '.join(cases)}"
        for what, cases in (("crash", self.crashes), ("hang", self.hangs), ("growth", self.growths)):
            yield f"{what}: {len(cases)}"
            yield from (f"  {case}" for case in cases[:20])

    @property
    def is_sound(self) -> bool:
        """Whether nothing crashed, hung or took memory."""
        return not (self.crashes or self.hangs or self.growths)


Target = Callable[[Random, Path], "str | None"]  # takes one mutation; None, or the kind of a silent change


class Targets:
    """What takes files from users, each with a mutation of a good one."""

    def __init__(self, reports: Path, folder: Path) -> None:
        self._folder = folder
        good = (path for family in FAMILIES for path in (reports / family).glob("*.ncu-rep"))
        self._reports = sorted(good, key=lambda path: path.stat().st_size)[:6]
        self._csvs = sorted(reports.rglob("*.csv"), key=lambda path: path.stat().st_size)[:6]
        self._good: dict[Path, list[Any]] = {}
        data = folder / "good"
        with contextlib.redirect_stdout(io.StringIO()):
            import_paths([self._reports[0]], family="fuzz", data=str(data))
            run_id = next(path.name for path in (data / "runs").iterdir())
        self._bundle = data / "runs" / run_id
        self._run = load_run(open_root(str(data)), run_id)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self._bundle.rglob("*")):
                if path.is_file():
                    archive.write(path, f"{run_id}/{path.relative_to(self._bundle)}")
        self._zip = packed.getvalue()
        self._decision = self._write_decision()
        self._metrics = (ROOT / "metrics.txt").read_bytes()
        self._catalog = (ROOT / "kernels" / "catalog.toml").read_bytes()
        shutil.copytree(ROOT / "kernels", folder / "kernels")

    def _write_decision(self) -> bytes:
        root = open_root(str(self._folder / "decided"))
        made = decisions.write_decision(
            root, decisions.RELABEL, "run", {"version": "v2"}, why="why", who="who"
        )
        return root.read(f"decisions/{made.id}.json")

    def all(self) -> dict[str, Target]:
        """The targets by name."""
        return {
            "report": self.report,
            "csv": self.csv,
            "bundle": self.bundle,
            "zip": self.zip,
            "metrics": self.metrics,
            "catalog": self.catalog,
            "decision": self.decision,
            "address": self.address,
        }

    def report(self, random: Random, folder: Path) -> str | None:
        """A binary report."""
        source = random.choice(self._reports)
        change = random.choice((change_bytes, change_bytes, lengthen_field))
        return self._read(source, change(source.read_bytes(), random), folder)

    def csv(self, random: Random, folder: Path) -> str | None:
        """A CSV from ncu."""
        source = random.choice(self._csvs)
        return self._read(source, change_lines(source.read_bytes(), random), folder)

    def _read(self, source: Path, content: bytes, folder: Path) -> str | None:
        path = folder / source.name
        path.write_bytes(content)
        report = read_report(path)
        if report.warnings:
            return WARNED
        if source not in self._good:
            self._good[source] = list(map(_content, read_report(source).launches))
        return _difference(self._good[source], list(map(_content, report.launches)))

    def bundle(self, random: Random, folder: Path) -> str | None:
        """A bundle's folder."""
        copy = folder / self._bundle.name
        shutil.copytree(self._bundle, copy)
        path = random.choice([path for path in copy.rglob("*") if path.is_file()])
        if random.random() < 0.1:
            path.unlink()
        else:
            change = change_json if path.suffix == ".json" else change_bytes
            path.write_bytes(change(path.read_bytes(), random))
        return self._imported(copy, folder)

    def zip(self, random: Random, folder: Path) -> str | None:
        """A bundle's zip."""
        path = folder / "run.zip"
        path.write_bytes(change_zip(self._zip, random))
        return self._imported(path, folder)

    def _imported(self, path: Path, folder: Path) -> str | None:
        summary = import_paths([path], data=str(folder / "data"))
        if summary.refused:
            raise ProfilerError(summary.refused[0][1])
        if not summary.imported:
            raise ProfilerError("nothing to import there")
        if summary.warnings:
            return WARNED
        if [run.run_id for run in summary.imported] != [self._bundle.name]:
            return f"imported as {len(summary.imported)} other runs"
        run = load_run(open_root(str(folder / "data")), self._bundle.name)
        if run == self._run:
            return None
        has_same = _results(run) == _results(self._run)
        return VALUES if has_same else "other results, reports or captures"

    def metrics(self, random: Random, folder: Path) -> str | None:
        """A metrics.txt."""
        path = folder / "metrics.txt"
        path.write_bytes(change_lines(self._metrics, random))
        load_metrics(path)
        return None

    def catalog(self, random: Random, folder: Path) -> str | None:
        """A catalogue, with its sources beside it."""
        path = self._folder / "kernels" / "catalog.toml"
        path.write_bytes(change_lines(self._catalog, random))
        load_catalog(path)
        return None

    def decision(self, random: Random, folder: Path) -> str | None:
        """A decision record in a data folder."""
        path = folder / "data" / "decisions" / "20250101T000000000000-relabel-00000000.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(change_json(self._decision, random))
        root = open_root(str(folder / "data"))
        decisions.current_labels(load_decisions(root))
        decisions.write_decision(root, decisions.FORGET, "run")
        load_decisions(root)
        return None

    def address(self, random: Random, folder: Path) -> str | None:
        """Words of a command line or an address: names, filters, patterns, numbers."""
        patterns = ["(a+)+$", r"regex:^(\w+\W*)+\d\d\dzz$", "*a" * 8 + "*b", "regex:(", "regex:" + "a?" * 300]
        names = [self._bundle.name, "fuzz", "fuzz/x", str(self._reports[0]), "../..", "\x00", "é", "a" * 5000]
        words = [*patterns, *names, "--top", "-1", "%"]
        name = random.choice(
            ["show", "compare", "trend", "list runs", "gate", "trend --steps", "regressions", "explain"]
        )
        given = [random.choice(words) for _ in range(random.randint(0, 3))]
        if random.random() < 0.5:
            given += ["--kernel", random.choice(words)]
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as said,
            _environment(PROFILER_DATA=str(self._folder / "good")),
        ):
            try:
                code = command([*name.split(), *given])
            except SystemExit as ended:  # argparse
                code = ended.code
        if code not in (0, 1, 2, 3) or "Traceback" in said.getvalue():
            raise AssertionError(f"{name} {given}: exit {code}: {said.getvalue()[-300:]}")
        return None


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


def _results(run: Run) -> list[Any]:
    """What decides which launches of which report a run shows under which name."""
    results = [(result.family, result.version, result.workload, result.captures) for result in run.results]
    return [run.kind, run.reports, results]


def _content(launch: Launch) -> tuple[Any, ...]:
    """What a user sees of a launch, to be compared."""
    values = {name: repr(launch.values.value(name)) for name in launch.values}
    return launch.names, launch.grid, launch.block, values


def _difference(good: list[Any], read: list[Any]) -> str | None:
    """The kind of change of an accepted file; None for none."""
    if len(good) != len(read):
        return "launches lost" if len(read) < len(good) else "launches added"
    for before, after in zip(good, read, strict=True):
        if before == after:
            continue
        if before[3].keys() != after[3].keys():
            return "metrics lost or renamed" if before[3].keys() - after[3].keys() else "metrics added"
        return VALUES if before[:3] == after[:3] else "names or sizes of launches"
    return None


def _resident_mib(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) // 1024


def run(count: int, seed: int, reports: Path, limit_s: float = LIMIT_S, first: int = 0) -> Result:
    """A campaign of `count` mutations from the one of number `first` on, in turns over the targets."""
    with tempfile.TemporaryDirectory() as name:
        targets = Targets(reports, Path(name)).all()
        return run_targets(targets, count, seed, Path(name), limit_s, first)


def run_targets(
    by_name: Mapping[str, Target],
    count: int,
    seed: int,
    parent: Path,
    limit_s: float = LIMIT_S,
    first: int = 0,
) -> Result:
    """A campaign over some targets, each mutation in a folder of its own below `parent`."""
    result = Result()
    for number in range(first, first + count):
        target = list(by_name)[number % len(by_name)]
        case = f"{target} {seed}/{number}"
        folder = parent / "case"
        folder.mkdir()
        gc.collect() if number % 100 == 0 else None
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        before, start = _resident_mib("VmRSS"), time.process_time()
        result.tried[target] += 1
        try:
            kind = by_name[target](Random(f"{seed}/{number}"), folder)
            if kind == WARNED:
                result.warned[target] += 1
            elif kind is not None:
                result.silent[f"{target}: {kind}"] += 1
                result.silent_cases.setdefault(f"{target}: {kind}", []).append(f"{seed}/{number}")
                del result.silent_cases[f"{target}: {kind}"][_CASES:]
        except KeyboardInterrupt:
            break
        except ProfilerError as refusal:
            result.refused[target] += 1
            if "\n" in str(refusal):
                result.crashes.append(f"{case}: not one line: {str(refusal)[:200]!r}")
        except Exception:
            result.crashes.append(f"{case}: {traceback.format_exc()[-600:]}")
        took, grown = time.process_time() - start, _resident_mib("VmHWM") - before
        if took > limit_s:
            result.hangs.append(f"{case}: {took:.1f} s")
        if grown > GROWTH_MIB:
            result.growths.append(f"{case}: {grown} MiB")
        shutil.rmtree(folder)
    return result


def main() -> int:
    """Run a campaign and print what became of it; exit 1 where something crashed, hung or took memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--first", type=int, default=0, help="number of the first mutation, to repeat a case"
    )
    arguments = options.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):  # shells start programs in the background deaf to Ctrl-C
        signal.signal(ending, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name:
        made_reports.write(Path(name))
        result = run(arguments.count, arguments.seed, Path(name), first=arguments.first)
    print("\n".join(result.table()))
    return 0 if result.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
