"""How long an agent waits for 100 reports: `profiler mcp`, beside another server of the protocol.

    python bench/mcp_reports.py FOLDER                                    our server alone
    python bench/mcp_reports.py FOLDER --other VENV/bin/perfdigest-mcp    perfdigest-mcp 1.3.0 and ncu-report
    python bench/mcp_reports.py FOLDER --before CHECKOUT                  ours as it was, in another checkout

Every report of FOLDER is asked for once, in turn until there are `--count` of them, each as a file of its own
(`show` of ours, `list_kernels` or `--tool` of the other). The servers alternate within one run. Time is from
the first call on; memory is what a server and all its processes hold together at most; processor time is that
of all, starting included. The package's modules are compiled first, as those of an installed one are.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One server over all reports."""

    start_s: float
    calls_s: float
    processor_s: float
    peak_mb: float


class Watched:
    """The memory of a process and of all that it started, looked at 20 times a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self.peak_mb = 0.0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.05):
            self.peak_mb = max(self.peak_mb, sum(map(_resident_mb, _family(self._pid))))

    def processor_s(self) -> float:
        """Seconds of processor time of all processes that live, and of those that they waited for."""
        return sum(_processor_s(pid) for pid in _family(self._pid))

    def end(self) -> None:
        """Look no longer."""
        self._end.set()
        self._thread.join()


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        children = [Path(f"/proc/{pid}/task/{thread}/children").read_text().split() for thread in threads]
    except OSError:
        return
    for child in {int(number) for numbers in children for number in numbers}:
        yield from _family(child)


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _processor_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class Client:
    """One client of a server on its stdin and stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def send(self, message: dict[str, Any]) -> None:
        """Send one message of the protocol."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request. Raises RuntimeError where it is an error."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": parameters})
        assert self._process.stdout
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer or answer["result"].get("isError"):
                    raise RuntimeError(str(answer)[:300])
                return answer
        raise RuntimeError("the server ended")


def measure(
    command: Sequence[str], tool: str, calls: Sequence[dict[str, str]], folder: Path, checkout: Path
) -> Measured:
    """Start a server, ask it for everything, end it. checkout: where the package is imported from."""
    environment = {**os.environ, "PROFILER_DATA": str(folder / "data"), "PYTHONPATH": str(checkout)}
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder
    ) as process:
        watched = Watched(process.pid)
        try:
            client = Client(process)
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
            client.ask("initialize", {**hello, "clientInfo": {"name": "bench", "version": "1"}})
            client.send({"method": "notifications/initialized"})
            ready = time.perf_counter()
            for arguments in calls:
                client.ask("tools/call", {"name": tool, "arguments": arguments})
            done = time.perf_counter()
            processor_s = watched.processor_s()
        finally:
            watched.end()
            assert process.stdin
            process.stdin.close()
    return Measured(ready - begin, done - ready, processor_s, watched.peak_mb)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a server and round, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="reports, in folders below it too")
    parser.add_argument("--other", metavar="PROGRAM", help="perfdigest-mcp")
    parser.add_argument("--tool", default="list_kernels", help="of perfdigest-mcp; summarize_report")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="of an earlier commit")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    found = [path for path in sorted(arguments.folder.rglob("*.ncu-rep")) if path.parent.name != "bad"]
    if not found:
        print(f"no reports below {arguments.folder}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number:03d}.ncu-rep" for number in range(arguments.count)]
        for number, path in enumerate(paths):
            shutil.copyfile(found[number % len(found)], path)
        own = [sys.executable, "-m", "profiler", "mcp", "--root", name]
        servers = {"profiler": (own, "show", [{"name": str(path)} for path in paths])}
        if arguments.other:
            asked = [{"report_ref": str(path), "format": "ncu-rep"} for path in paths]
            servers["other"] = ([arguments.other], arguments.tool, asked)
        if arguments.before:
            servers["before"] = (own, "show", [{"name": str(path)} for path in paths])
        for checkout in {ROOT, arguments.before or ROOT}:
            compileall.compile_dir(checkout / "profiler", quiet=1)
        rounds: dict[str, list[Measured]] = {server: [] for server in servers}
        for _ in range(arguments.rounds):
            for server, (command, tool, calls) in servers.items():
                checkout = arguments.before if server == "before" else ROOT
                one = measure(command, tool, calls, folder, checkout)
                rounds[server].append(one)
                print(
                    f"{server:<9} start {one.start_s:.2f} s, {len(calls)} reports {one.calls_s:.2f} s, "
                    f"processor {one.processor_s:.2f} s, at most {one.peak_mb:.0f} MB",
                    flush=True,
                )
        for server, of_others in rounds.items():
            if server == "profiler":
                continue
            pairs = list(zip(rounds["profiler"], of_others, strict=True))
            wall = statistics.median(ours.calls_s / theirs.calls_s for ours, theirs in pairs)
            busy = statistics.median(ours.processor_s / theirs.processor_s for ours, theirs in pairs)
            print(f"of {server}: {wall:.2f} times the time, {busy:.2f} times the processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
