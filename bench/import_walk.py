"""How long reading and importing the public reports takes, against a bare walk over the same metrics.

Usage: python bench/import_walk.py [ROUNDS] [REPORTS_FOLDER] [--no-limits]

Every measurement is a process of its own, start included, and the kinds alternate within one run. The bare
walk asks NVIDIA's `ncu_report` for the value of every metric of every launch and keeps nothing. Memory is the
peak of the process plus the peak of its largest child, which is never less than what the two held together;
the reading process, which waits for another report, counts as one that has ended.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT.parent / "shared" / "reports"
FAMILIES = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")
READ_LIMIT, IMPORT_LIMIT, MEMORY_LIMIT_MB = 2.0, 1.5, 400

PEAK = """
import resource, sys
if "profiler" in sys.modules:
    from profiler.reports import reader_client
    reader_client._spare.close()
peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(peak)
"""
WALK = """
import sys
import ncu_report
for path in sys.argv[1:]:
    context = ncu_report.load_report(path)
    for actions in context:
        for action in actions:
            for name in action.metric_names():
                action[name].value()
"""
READ = """
import pathlib, sys
from profiler.reports.read import read_reports
values = 0
for found in read_reports(map(pathlib.Path, sys.argv[1:])):
    if isinstance(found, Exception): raise found
    values += sum(len(launch.values) for launch in found.launches)
"""
IMPORT = """
import contextlib, io, sys
from profiler.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(["import", *sys.argv[1:]])
if code: sys.exit(code)
"""


def measure(code: str, paths: list[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of one process."""
    with tempfile.TemporaryDirectory() as data:
        environment = {**os.environ, "PROFILER_DATA": data}
        for name in ("PROFILER_DB", "PYTHONDONTWRITEBYTECODE"):  # installed programs have bytecode
            environment.pop(name, None)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code + PEAK, *paths],
            env=environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds = time.perf_counter() - begin
    return seconds, int(done.stdout.split()[-1]) * 1024 / 1e6


def main() -> int:
    """Print the medians and ratios; 1 where a limit is not kept."""
    words = [word for word in sys.argv[1:] if word != "--no-limits"]
    rounds = int(words[0]) if words else 7
    folder = Path(words[1]) if len(words) > 1 else REPORTS
    paths = [str(path) for family in FAMILIES for path in sorted((folder / family).glob("*.ncu-rep"))]
    if not paths:
        print(f"no reports under {folder}", file=sys.stderr)
        return 2
    kinds = {"bare walk": WALK, "read": READ}
    if importlib.util.find_spec("profiler.store"):
        kinds["import"] = IMPORT
    for code in kinds.values():  # once unmeasured: files and bytecode into the caches
        measure(code, paths)
    results: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, code in kinds.items():
            results[kind].append(measure(code, paths))
    walk_s = [seconds for seconds, _ in results["bare walk"]]
    kept = True
    print(f"{len(paths)} reports, {rounds} rounds, kinds alternating; median (fastest)")
    for kind, measured in results.items():
        seconds = [s for s, _ in measured]
        ratio = statistics.median(s / w for s, w in zip(seconds, walk_s, strict=True))
        megabytes = max(m for _, m in measured)
        limit = {"read": READ_LIMIT, "import": IMPORT_LIMIT}.get(kind)
        told = f"  limit {limit:g}×" if limit else ""
        print(
            f"{kind:<10} {statistics.median(seconds):6.3f} s ({min(seconds):.3f})  "
            f"{ratio:5.2f}× the bare walk  {megabytes:5.0f} MB{told}"
        )
        kept &= (limit is None or ratio <= limit) and (limit is None or megabytes < MEMORY_LIMIT_MB)
    return 0 if kept or "--no-limits" in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())
