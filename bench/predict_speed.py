"""How long `profiler predict REPORT` takes, processor and wall time: alone, or beside an earlier checkout.

    python bench/predict_speed.py REPORT…                       this checkout alone
    python bench/predict_speed.py REPORT… --before CHECKOUT     beside another one

Each report is first repeated until it has `--launches`, which differ in their stream alone: launches that
share a kernel and a grid, as those of a loop do. The checkouts alternate within one run, and what they print
has to be the same. Processor time is that of all processes. The package's modules are compiled first, as
those of an installed one are, and so is what numba keeps on disk.
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.reports.reader_process import after, fields, varint, varint_bytes

ROOT = Path(__file__).resolve().parent.parent
_STREAM = b"\xb8\x01"  # ProfileResult.StreamId: of a field that stands twice, the later one counts
_OF_FIRST_BLOCK = (3, 4)  # BlockHeader: session and names


def repeated(report: bytes, count: int) -> bytes:
    """The report with at least so many launches: its own, then them again, each as a block of its own."""
    at = 8 + int.from_bytes(report[4:8], "little")
    blocks = []  # header without what stands once in a report, and the launch
    while at < len(report):
        payload = at + 4 + int.from_bytes(report[at : at + 4], "little")
        number_of = {
            number: value for number, value in fields(report, at + 4, payload) if isinstance(value, int)
        }
        end = payload + number_of.get(5, 0)
        if number_of.get(2) == 1 and not number_of.get(1):
            kept = []
            start = at + 4
            for number, _ in fields(report, at + 4, payload):
                stop = start_of_next(report, start)
                if number not in _OF_FIRST_BLOCK:
                    kept.append(report[start:stop])
                start = stop
            blocks.append((b"".join(kept), report[payload + 4 : end]))
        at = end
    if not blocks:
        raise SystemExit("the report has no block of a single launch, as ncu writes them")
    pieces = [report]
    for number in range(count - len(blocks)):
        header, launch = blocks[number % len(blocks)]
        launch += _STREAM + varint_bytes(1000 + number)
        header += b"\x28" + varint_bytes(4 + len(launch))
        pieces += [len(header).to_bytes(4, "little"), header, len(launch).to_bytes(4, "little"), launch]
    return b"".join(pieces)


def start_of_next(message: bytes, at: int) -> int:
    """Where the field ends that starts here."""
    tag, at = varint(message, at)
    return after(message, tag & 7, at)


def measure(checkout: Path, report: Path) -> tuple[float, float, bytes]:
    """Processor and wall seconds of one prediction, and what it printed. Raises for one that fails."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "profiler", "predict", str(report), "--json"]
    begin_s, start = time.perf_counter(), os.times()
    # In a folder of its own: python -m looks for the package beside it first, before PYTHONPATH.
    done = subprocess.run(command, env=environment, cwd=report.parent, stdout=subprocess.PIPE)
    wall_s, end = time.perf_counter() - begin_s, os.times()
    if done.returncode not in (0, 3):  # 3: there is a model of nothing
        raise SystemExit(f"{checkout}: predict {report.name} ends with {done.returncode}")
    busy_s = end.children_user + end.children_system - start.children_user - start.children_system
    return busy_s, wall_s, done.stdout


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a report, round and checkout, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="of an earlier commit")
    parser.add_argument("--launches", type=int, default=100, help="of each report, at least")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    checkouts = {"now": ROOT}
    if arguments.before:
        checkouts["before"] = arguments.before.resolve()
    for checkout in checkouts.values():
        compileall.compile_dir(checkout / "profiler", quiet=1)
    with tempfile.TemporaryDirectory() as name:
        for path in arguments.reports:
            report = Path(name) / path.name
            report.write_bytes(path.read_bytes())
            for checkout in checkouts.values():
                measure(checkout, report)  # numba compiles what it has not kept yet
            report.write_bytes(repeated(path.read_bytes(), arguments.launches))
            rounds = [measure_all(checkouts, report) for _ in range(arguments.rounds)]
            for number, what in enumerate(("processor", "wall")):
                for checkout in checkouts:
                    seconds = ", ".join(f"{times[checkout][number]:.1f}" for times in rounds)
                    print(f"{path.name}: {what} time {checkout} {seconds} s")
                if arguments.before:
                    ratios = [times["before"][number] / times["now"][number] for times in rounds]
                    print(
                        f"{path.name}: {statistics.median(ratios):.1f} times as fast in {what} time",
                        flush=True,
                    )
    return 0


def measure_all(checkouts: Mapping[str, Path], report: Path) -> dict[str, tuple[float, float]]:
    """Processor and wall seconds of each checkout. Raises SystemExit where they print different things."""
    measured = {name: measure(checkout, report) for name, checkout in checkouts.items()}
    if len({printed for _, _, printed in measured.values()}) > 1:
        raise SystemExit(f"predict {report.name} --json is not the same in both checkouts")
    return {name: (busy_s, wall_s) for name, (busy_s, wall_s, _) in measured.items()}


if __name__ == "__main__":
    sys.exit(main())
