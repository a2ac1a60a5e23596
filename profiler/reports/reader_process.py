"""The worker process that reads `.ncu-rep` files; the only place that imports NVIDIA's `ncu_report`.

Runs in a bare interpreter (`python -I -S`): one JSON request a line on stdin, one framed answer each on
stdout. Standard library only: a start without site-packages takes a third of the time.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import math
import mmap
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from types import NoneType, TracebackType
from typing import Any, BinaryIO

READER_VERSION = 5  # raised whenever the second depth extracts something else
HEAD = struct.Struct("<4sIQ")  # magic, bytes of JSON, bytes of binary columns
MAGIC = b"NCUR"
LAST_MAGIC = b"NCUL"  # of the last answer before this process ends
UNITS_BYTES = 200 << 20  # what the library's tables of metrics and units take
FILE_MAGIC = b"NVR\0"
FILE_VERSION = 7  # profiler.evidence.ncu_release.REPORT_FILE_VERSION
INSTRUCTION_BYTES = 16  # from CC 7.0 on
LARGEST_HOLE = 1 << 20  # bytes; functions may lie gigabytes apart
# Keys below are indices. A module's functions that were never loaded have address 0, and the library finds
# their code at 0, 16, …: what has code is not yet an address of the launch.
LOWEST_ADDRESS = 1 << 20
LONGEST_FUNCTION = 1 << 22  # bytes that are read of a function of which nothing is counted
NO_TEXTS = ("", "N/A", "???")  # no code; between two instructions; code that cannot be disassembled
RETIRE_KIB = 300 * 1024  # the library never frees a report: past this, a fresh process takes over

# The states of profiler.evidence.values.State, which this process does not import.
PRESENT, FAILED, INSTANCES_ONLY, NO_DATA, INFINITE = 0, 3, 4, 5, 6
RULE_KINDS = {0: "ok", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
SPEEDUP_SCOPES = {1: "local", 2: "global"}
LAYOUT = str.maketrans("fus", "dQQ")
CHIP = "device__attribute_chip"
FUNCTIONS = "launch__function_pcs"
OPCODES = "sass__inst_executed_per_opcode"
EXECUTED, SAMPLED = "inst_executed", "smsp__pcsamp_"
# What names the instructions of a launch, where not all metrics are read: samples also those behind the last
# one that is executed. ncu 2021.1 stores them by reason alone.
NAME_INSTRUCTIONS = (EXECUTED, f"{SAMPLED}sample_count", f"{SAMPLED}warps_issue_stalled_selected")
# Units that the library (2026.3.1) guesses from what it was asked before, or has wrong: in reports of ncu
# 2022.2 it calls instructions per cycle `cycle` or `inst`. Here they are as ncu prints them, which reads one
# report a process; the library is not asked for them at all, as that would change other guesses. But for the
# first, which ncu prints in `byte`: it is the difference of two counters that ncu prints in sectors.
UNITS = {
    "derived__memory_l2_theoretical_sectors_global_excessive": "sector",
    "derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2": "thread",
    "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": "thread",
    "derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2": "thread",
    "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2": "thread",
    "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": "inst/cycle",
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum.per_cycle_elapsed": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum.per_cycle_elapsed": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum.per_cycle_elapsed": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": "inst/cycle",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": "inst/cycle",
}
# Of a ProfileResult, beside what is of metrics: sections, which say how ncu shows them, and rules. Both are
# as much of a report as its metrics are, and of the library's time.
LEFT_OUT_FIELDS = frozenset({17, 19})
BREAKDOWN = "breakdown:"  # a list of names, as text; its unit is unsteady too

Json = dict[str, Any]


class RefusedReport(Exception):
    """The report is not whole; the message says what is wrong with it."""


class Unreadable(Exception):
    """One metric holds what this reader does not know; the message says what."""


def serve(site: str, memory_bytes: int, respond: Callable[[Json], tuple[Json, bytes]] | None = None) -> None:
    """Answer requests until stdin ends; each says how much memory it may take, and its answer.

    A request has an answer for each of its `ordinals`, unless this process is retired after an earlier one.
    """
    is_of_reports = respond is None
    respond = respond or answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_memory(memory_bytes)
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever the native library prints must not end up between the answers
    gc.disable()
    sys.path.append(site)
    if is_of_reports:
        with contextlib.suppress(Exception):  # whoever asks is told what is wrong with it
            import ncu_report  # noqa: F401  # before anybody asks
    for line in sys.stdin:
        request = json.loads(line)
        if "end_after_s" in request:  # nobody waits: without another request SIGALRM ends this process
            signal.alarm(request["end_after_s"])
            continue
        limit_memory(request["memory_bytes"])
        is_retired = False
        left = len(request["ordinals"])
        for ordinal in request["ordinals"]:
            signal.alarm(math.ceil(request["timeout_s"]) + 5)  # the parent kills first, unless it is gone
            try:
                head, blob = respond({**request, "ordinal": ordinal})
                body = json.dumps(head).encode("ascii")
            except MemoryError:
                body, blob = json.dumps({"error": "", "out_of_memory": True}).encode(), b""
            if len(body) + len(blob) > request["answer_bytes"]:
                error = f"what it says takes more than {request['answer_bytes']:,} bytes"
                body, blob = json.dumps({"error": error}).encode(), b""
            signal.alarm(0)
            left -= 1
            # Between launches of one report it may grow further: the next process has to load it again.
            most_kib = max(RETIRE_KIB, request["memory_bytes"] >> 11) if left else RETIRE_KIB
            is_retired = _peak_kib() > most_kib
            send(out, body, blob, is_retired)
            if is_retired:
                break
        if is_retired:
            break
    os._exit(0)  # the library's own tear-down only costs time


def limit_memory(memory_bytes: int) -> None:
    """Limit what this process may take from now on: address space, which is what can be limited."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        memory_bytes = min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, hard))


def _peak_kib() -> int:
    """The most memory this program has held. Not ru_maxrss: that survives exec and starts at the parent's."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def answer(request: Json) -> tuple[Json, bytes]:
    """Head and columns for one request. What goes wrong is told in the head, except running out of memory."""
    path, ordinal = request["path"], request["ordinal"]
    try:
        if ordinal is not None:
            return read_detail(path, ordinal, request["pieces"], request["metrics"])
        with contextlib.ExitStack() as opened:
            if request["pieces"]:
                path = opened.enter_context(part(path, request["pieces"]))
            if request["metrics"] is None:
                return read_report(path, details=not request.get("is_selected"))
            path = opened.enter_context(with_metrics(path, request["metrics"]))
            return read_report(path, details=False)
    except RefusedReport as reason:
        return {"error": str(reason)}, b""
    except ModuleNotFoundError:
        return {"error": "the package ncu-report is missing: `pip install ncu-report`", "whole": True}, b""
    except ImportError as error:
        return {"error": f"the package ncu-report cannot be loaded: {error}", "whole": True}, b""
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes come out of the bindings as any exception there is
        if is_of_library(error):
            return {"error": f"the report is damaged ({type(error).__name__} inside ncu_report)"}, b""
        return {"error": f"the report may be whole, but cannot be read here: {described(error)}"}, b""


@contextlib.contextmanager
def part(path: str, pieces: Sequence[Any]) -> Iterator[str]:
    """A path that a part of a report can be read at: its bytes, and ranges of the report, in memory."""
    content = os.memfd_create("part")
    source = os.open(path, os.O_RDONLY)
    try:
        for piece in pieces:
            if isinstance(piece, str):
                os.write(content, bytes.fromhex(piece))
                continue
            at, left = piece
            while left:
                count = os.sendfile(content, source, at, left)
                if not count:
                    raise RefusedReport("the report became shorter while it was read")
                at, left = at + count, left - count
        yield f"/proc/self/fd/{content}"
    finally:
        os.close(source)
        os.close(content)


def is_of_library(error: BaseException) -> bool:
    """Whether an exception was raised inside NVIDIA's bindings, not here."""
    innermost = last_frame(error)
    return innermost is not None and innermost.tb_frame.f_globals.get("__name__") == "ncu_report"


def described(error: BaseException) -> str:
    """An exception in a few words: its type, the start of its message, and the line that raised it."""
    innermost = last_frame(error)
    line = f", line {innermost.tb_lineno} of the reader" if innermost else ""
    return f"{type(error).__name__}: {' '.join(clean(str(error)).split())[:100]}{line}"


def last_frame(error: BaseException) -> TracebackType | None:
    """Where an exception was raised."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost


def send(out: BinaryIO, head: bytes, blob: bytes, is_last: bool) -> None:
    """Write one framed answer."""
    for content in (HEAD.pack(LAST_MAGIC if is_last else MAGIC, len(head), len(blob)), head, blob):
        left = memoryview(content)
        while left:
            left = left[out.write(left) or 0 :]


# --- first depth: every scalar metric of every launch ---


def read_report(path: str, details: bool = True) -> tuple[Json, bytes]:
    """Names, rules and texts as JSON; after them per launch its 8-byte slots and its 1-byte states."""
    sets = MetricSets()
    launches: list[Json] = []
    columns: list[bytes] = []
    for action in actions(path):
        index, letters, values, states = scalars(action, len(launches), sets)
        texts = {i: clean(v) for i, v in enumerate(values) if letters[i] == "s" and not states[i]}
        slots = [
            0 if letter == "s" or state else value
            for letter, value, state in zip(letters, values, states, strict=True)
        ]
        columns.append(struct.pack("<" + letters.translate(LAYOUT), *slots))
        columns.append(bytes(states))
        launches.append(
            {
                "set": index,
                **names(action),
                "nvtx": nvtx_path(action),
                "opcodes": opcodes(action) if details else {},
                "rules": rules(action) if details else [],
                "texts": [list(texts), list(texts.values())],
            }
        )
    return {"sets": sets.shared, "launches": launches}, b"".join(columns)


def actions(path: str) -> Iterator[Any]:
    """Every launch of a report, in the order of the file."""
    return itertools.starmap(action_at, places(path))


def places(path: str) -> list[tuple[Any, int]]:
    """Where each launch of a report is, in the order of the file: its range, and its index there."""
    import ncu_report

    context = ncu_report.load_report(loadable(path))
    return [(ranges, index) for ranges in context for index in range(len(ranges))]


def action_at(ranges: Any, index: int) -> Any:
    """One launch, which takes the library megabytes; raises Refused."""
    action = ranges.action_by_idx(index)
    if action is None or not action.name():
        raise RefusedReport("the report is damaged: a launch has no name")
    return action


# --- a report with some metrics alone ---
# Source of every field number: the .proto files in extras/FileFormat of Nsight Compute 2024.1.


@contextlib.contextmanager
def with_metrics(path: str, wanted: Collection[str], with_instances: bool = False) -> Iterator[str]:
    """A path at which the report has these metrics alone, in memory.

    with_instances: with the code of the launches, and what the metrics have per instance. Those values are
    most of a report, and of the library's time and memory. It is the path itself where the layout is not the
    known one: the library then says what is wrong with it.
    """
    try:
        with open(path, "rb") as stream:
            names = frozenset(name.encode() for name in wanted)
            pieces = pieces_with(stream.read(), names, with_instances)
    except (ValueError, IndexError):
        yield path
        return
    content = os.memfd_create("metrics")
    try:
        for piece in pieces:
            os.write(content, piece)
        yield f"/proc/self/fd/{content}"
    finally:
        os.close(content)


def pieces_with(report: bytes, wanted: frozenset[bytes], with_instances: bool = False) -> list[bytes]:
    """The bytes of a report with these metrics. Raises ValueError or IndexError for another layout."""
    start, blocks, names = blocks_of(report)
    kept = {place for place, name in enumerate(names) if name in wanted}
    pieces = [report[:start]]
    for header, payload, end, sources in blocks:
        launches = list(_results(report, payload, end, sources))
        code = b""
        if with_instances:
            code = report[payload : launches[0][0] - 4 if launches else end]
        results = [_kept(report, *launch, kept, with_instances) for launch in launches]
        size = len(code) + sum(4 + len(result) for result in results)
        counts = b"" if with_instances else b"\x08\x00"  # of a field that stands twice, the later one counts
        counts += b"\x28" + varint_bytes(size)
        pieces += [
            (payload - header + len(counts)).to_bytes(4, "little"),
            report[header:payload],
            counts,
            code,
        ]
        for result in results:
            pieces += [len(result).to_bytes(4, "little"), result]
    return pieces


def modules_of(path: str) -> list[int]:
    """The module whose code each launch of a report ran, in the order of the launches; empty if not known.

    The library orders launches of several processes in its own way, and their modules may have equal numbers.
    """
    modules: list[int] = []
    processes = set()
    try:
        with open(path, "rb") as stream:
            report = stream.read()
        for _, payload, end, sources in blocks_of(report)[1]:
            for launch in _results(report, payload, end, sources):
                of_number = dict(fields(report, *launch))
                processes.add(of_number.get(1))
                source = of_number.get(15)  # Source, whose Identifier is field 1 as well
                module = dict(fields(report, *source)).get(1) if isinstance(source, tuple) else None
                if not isinstance(module, int):
                    return []
                modules.append(module)
    except (ValueError, IndexError):
        return []
    return modules if len(processes) == 1 else []


def blocks_of(report: bytes) -> tuple[int, list[tuple[int, int, int, int]], list[bytes]]:
    """Where the first block of a report starts, its blocks, and the names of all its metrics.

    Of a block: where its header and its payload start, where it ends, and how many sources come before its
    launches. Raises ValueError or IndexError for another layout.
    """
    if not report.startswith(FILE_MAGIC):
        raise ValueError("no report")
    at = len(FILE_MAGIC)
    start = at + 4 + int.from_bytes(report[at : at + 4], "little")
    if next((value for number, value in fields(report, at + 4, start) if number == 1), None) != FILE_VERSION:
        raise ValueError("another version")
    blocks: list[tuple[int, int, int, int]] = []
    names: list[bytes] = []  # of all blocks, whose launches name a metric by its place here
    at = start
    while at < len(report):
        payload = at + 4 + int.from_bytes(report[at : at + 4], "little")
        sources = size = 0
        for number, value in fields(report, at + 4, payload):
            if isinstance(value, int):
                if number == 1:
                    sources = value
                elif number == 5:
                    size = value
                elif number in (7, 8, 9) and value:
                    raise ValueError("results that are no kernels")
            elif number == 4:
                names += [
                    report[slice(*name)]
                    for field, name in fields(report, *value)
                    if field == 1 and not isinstance(name, int)
                ]
        blocks.append((at + 4, payload, payload + size, sources))
        at = payload + size
    if at != len(report):
        raise ValueError("cut short")
    return start, blocks, names


def _results(report: bytes, at: int, end: int, sources: int) -> Iterator[tuple[int, int]]:
    """From where to where the launches of a block lie, behind code and other sources."""
    while at < end:
        start = at + 4
        at = start + int.from_bytes(report[at:start], "little")
        if at > end:
            raise ValueError("an entry is longer than its block")
        if sources:
            sources -= 1
        else:
            yield start, at


def _kept(report: bytes, at: int, end: int, kept: Collection[int], with_instances: bool) -> bytes:
    """One ProfileResult with the MetricResults of these names: whole, or as far as their MetricValue."""
    pieces = []
    done = at  # what lies before is in `pieces`, or left out
    while at < end:
        start = at
        tag = report[at]
        at += 1
        if tag != 0x6A:  # MetricResults
            if tag & 0x80:
                tag, at = varint(report, start)
            at = after(report, tag & 7, at)
            if tag >> 3 in LEFT_OUT_FIELDS:
                pieces.append(report[done:start])
                done = at
            continue
        length = report[at]
        at += 1
        if length & 0x80:
            length, at = varint(report, at - 1)
        place, at = at, at + length
        if report[place] != 0x08:
            raise ValueError("a metric without a name")
        name = report[place + 1]
        value = place + 2
        if name & 0x80:
            name, value = varint(report, place + 1)
        if name in kept:
            if (
                with_instances or value >= at or report[value] != 0x12
            ):  # without a total: it may have instances
                continue
            value_end = after(report, 2, value + 1)
            if value_end > at:
                raise ValueError("a value is longer than its metric")
            if value_end == at:
                continue
            pieces += [report[done:start], b"\x6a", varint_bytes(value_end - place), report[place:value_end]]
        else:
            pieces.append(report[done:start])
        done = at
    if at != end:
        raise ValueError("a launch is longer than its entry")
    pieces.append(report[done:end])
    return b"".join(pieces)


def fields(message: bytes, at: int, end: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
    """Field numbers of a protobuf message with a whole number, or from where to where the value lies."""
    while at < end:
        tag, at = varint(message, at)
        value, start = varint(message, at) if tag & 7 in (0, 2) else (0, at)
        at = after(message, tag & 7, at)
        if at > end:
            raise ValueError("a field is longer than its message")
        yield tag >> 3, value if tag & 7 == 0 else (start, at)


def after(message: bytes, wire: int, at: int) -> int:
    """Where the value of a field ends that starts here."""
    if wire in (1, 5):
        return at + (8 if wire == 1 else 4)
    if wire not in (0, 2):
        raise ValueError("a field has a type that does not exist")
    value, at = varint(message, at)
    return at + value if wire == 2 else at


def varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """A whole number of protobuf and where it ends. Raises IndexError, or ValueError for over 64 bits."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def varint_bytes(value: int) -> bytes:
    """A whole number as protobuf has it."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def loadable(path: str) -> str:
    """A path that the bindings take: they refuse a name that is no UTF-8, so that goes by its descriptor."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"
    return path


class MetricSets:
    """Names, units and kinds that launches of one report share.

    The library looks a unit up by name and chip (1.5 µs each), so launches of one chip share their units too.
    """

    def __init__(self) -> None:
        self.shared: list[Json] = []
        self._index: dict[tuple[tuple[str, ...], str, Any], int] = {}

    def index(
        self, metric_names: tuple[str, ...], letters: str, metrics: Sequence[Any], values: list[Any]
    ) -> int:
        """Place of the launch's set among the shared ones."""
        chip = values[metric_names.index(CHIP)] if CHIP in metric_names else None
        index = self._index.get((metric_names, letters, chip))
        if index is not None:
            return index
        units = list(map(unit_of, metric_names, metrics))
        if not all(map(has_unit, metric_names, units)) and not room_for(UNITS_BYTES):
            raise MemoryError  # the library goes on without units where it cannot load its tables
        self._index[metric_names, letters, chip] = len(self.shared)
        self.shared.append({"names": metric_names, "units": units, "kinds": letters})
        return len(self.shared) - 1


def scalars(action: Any, ordinal: int, sets: MetricSets) -> tuple[int, str, list[Any], bytearray]:
    """Metric set, kind letters, values and states of one launch.

    `has_value()` is False where the library holds values per instance and no total, although it then returns
    0; ncu's own CSV prints nothing there (all 16 oracle reports agree).
    """
    metric_names: tuple[str, ...] = action.metric_names()
    if not metric_names:
        raise RefusedReport(f"the report is damaged: launch {ordinal} has no metrics")
    together = "".join(metric_names)
    if not (all(metric_names) and together.isascii() and together.isprintable()):
        raise RefusedReport(f"the report is damaged: launch {ordinal} has a metric whose name is no name")
    metrics = list(map(action.metric_by_name, metric_names))
    first = next((type(metric) for metric in metrics if metric is not None), None)
    if first is None:
        raise RefusedReport(f"the report is damaged: launch {ordinal} has no metric that its name finds")
    getters = getters_by_kind(first)
    unknown, kind_of = first.ValueKind_UNKNOWN, first.kind
    kinds = [unknown if metric is None else kind_of(metric) for metric in metrics]
    columns = [getters.get(kind, getters[unknown]) for kind in kinds]  # a kind that is new has no value
    values = [get(metric) for (_, get), metric in zip(columns, metrics, strict=True)]
    letters = "".join([letter for letter, _ in columns])
    states = bytearray(len(metrics))
    for index, (value, metric) in enumerate(zip(values, metrics, strict=True)):
        if value and (letters[index] != "f" or math.isfinite(value)):
            continue
        if metric is None:  # the report names it and holds nothing of it
            states[index] = NO_DATA
        elif value is None or not metric.has_value():
            states[index] = INSTANCES_ONLY if metric.num_instances() else NO_DATA
        elif value and not math.isfinite(value):
            states[index] = INFINITE if math.isinf(value) else FAILED
    return sets.index(metric_names, letters, metrics, values), letters, values, states


def unit_of(name: str, metric: Any) -> str:
    """The metric's unit, whatever this process has read before."""
    if name.startswith(BREAKDOWN):
        return "%" if ".pct" in name else ""
    if metric is None:
        return ""
    unit: str = UNITS.get(name) or metric.unit()
    return unit


def has_unit(name: str, unit: str) -> bool:
    """False for a metric that came without its unit: a chip newer than the library, or no memory."""
    return bool(unit) or not name.endswith(".pct_of_peak_sustained_elapsed")


def room_for(count: int) -> bool:
    """Whether that many bytes of memory can still be had."""
    try:
        mmap.mmap(-1, count).close()
    except (OSError, MemoryError):
        return False
    return True


def getters_by_kind(metric: Any) -> dict[int, tuple[str, Callable[..., Any]]]:
    """Letter and getter of each value kind; the bindings' own value() builds such a table on every call."""
    return {
        metric.ValueKind_UNKNOWN: ("f", lambda *_: None),
        metric.ValueKind_ANY: ("f", lambda *_: None),
        metric.ValueKind_STRING: ("s", metric.as_string),
        metric.ValueKind_FLOAT: ("f", metric.as_double),
        metric.ValueKind_DOUBLE: ("f", metric.as_double),
        metric.ValueKind_UINT32: ("u", metric.as_uint64),
        metric.ValueKind_UINT64: ("u", metric.as_uint64),
    }


def clean(text: str | None) -> str:
    """Text without the lone surrogates that the bindings put in place of bytes that are no UTF-8."""
    return (text or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def names(action: Any) -> dict[str, str]:
    """The launch's three names."""
    bases = ("function", action.NameBase_FUNCTION), ("demangled", action.NameBase_DEMANGLED)
    return {key: clean(action.name(kind)) for key, kind in (*bases, ("mangled", action.NameBase_MANGLED))}


def nvtx_path(action: Any) -> list[str]:
    """Push/pop ranges around the launch; outside the default domain in ncu's own form, domain@range."""
    state = action.nvtx_state()
    path: list[str] = []
    for identifier in state.domains() if state else ():
        domain = state.domain_by_id(identifier)
        prefix = "" if domain.name() == "<default domain>" else f"{domain.name()}@"
        path += [clean(prefix + name) for name in domain.push_pop_ranges()]
    return path


def opcodes(action: Any) -> dict[str, float]:
    """Warp instructions executed, by opcode."""
    metric = action.metric_by_name(OPCODES)
    keys = metric.correlation_ids() if metric is not None else None
    if keys is None:
        return {}
    return {clean(keys.as_string(i)): float(metric.value(i) or 0) for i in range(metric.num_instances())}


def rules(action: Any) -> list[list[Any]]:
    """Rule results in the order of profiler.evidence.launch.Rule; rules that said nothing are left out."""
    results = []
    for rule in action.rule_results():
        if not rule.has_rule_message():
            continue
        message = rule.rule_message()
        speedup = rule.speedup_estimation() if rule.has_speedup_estimation() else {}
        percent = speedup.get("speedup")
        results.append(
            [
                clean(rule.rule_identifier()),
                clean(rule.name()),
                clean(rule.section_identifier()),
                RULE_KINDS.get(int(message["type"]), "ok"),
                clean(message["title"]),
                clean(message["message"]),
                percent if percent is not None and math.isfinite(percent) else None,
                SPEEDUP_SCOPES.get(int(speedup.get("type", 0))),
                [clean(metric["name"]) for metric in rule.focus_metrics()],
            ]
        )
    return results


# --- second depth: everything per instance of one launch ---


class OpenReport:
    """The report whose launches were asked for last: the next launch of it need not load it again.

    Launches that nobody asked for are not looked at: the process that takes over in the middle of a report
    does not take the memory for which the one before it was retired.
    """

    def __init__(self) -> None:
        self._opened: object = None
        self._held = contextlib.ExitStack()  # the file of the pieces
        self._places: list[tuple[Any, int]] = []
        self._launches: dict[int, Any] = {}
        self._modules: list[int] = []
        self._codes: dict[object, tuple[Json, bytes]] = {}

    def launch(
        self, path: str, ordinal: int, pieces: Sequence[Any], metrics: Sequence[str] | None = None
    ) -> Any:
        """One launch of a report, or of the part that the pieces make up; raises Refused.

        metrics: the only ones that the launch has, where the layout is the known one; None: all.
        """
        status = os.stat(path)
        opened = path, pieces, metrics, status.st_ino, status.st_size, status.st_mtime_ns
        if opened != self._opened:
            self._opened, self._places, self._launches = None, [], {}
            self._held.close()
            path = self._held.enter_context(part(path, pieces)) if pieces else path
            if metrics is not None:
                kept = {*metrics, *NAME_INSTRUCTIONS, FUNCTIONS, CHIP}
                path = self._held.enter_context(with_metrics(path, kept, with_instances=True))
            self._places, self._modules, self._codes = places(path), modules_of(path), {}
            self._opened = opened
        if not 0 <= ordinal < len(self._places):
            raise RefusedReport(f"the report has no launch {ordinal}")
        if ordinal not in self._launches:
            self._launches[ordinal] = action_at(*self._places[ordinal])
        return self._launches[ordinal]

    def code(self, ordinal: int, pcs: Sequence[int]) -> tuple[Json, bytes]:
        """What `code_at` says of a launch that was opened: once of launches that ran the same code."""
        action = self._launches[ordinal]
        if len(self._modules) != len(self._places):
            return code_at(action, pcs)
        key = self._modules[ordinal], action.name(action.NameBase_MANGLED), tuple(pcs)
        if key not in self._codes:
            self._codes[key] = code_at(action, pcs)
        return self._codes[key]


OPENED = OpenReport()


def read_detail(
    path: str, ordinal: int, pieces: Sequence[Any] = (), wanted: Sequence[str] | None = None
) -> tuple[Json, bytes]:
    """Per-PC columns, SASS, source lines, timelines and the other instances of one launch.

    wanted: the only metrics whose values are told. A launch whose instructions none counts then has none.
    """
    action = OPENED.launch(path, ordinal, pieces, wanted)
    names = action.metric_names()
    if wanted is not None:
        names = [name for name in names if name in {*wanted, *NAME_INSTRUCTIONS, FUNCTIONS}]
    metrics = [m for m in map(action.metric_by_name, names) if m is not None]
    units = {metric.name(): unit_of(metric.name(), metric) for metric in metrics}  # all: the order matters
    left_out: dict[str, str] = {}  # why a metric's values are not among the columns, by name
    series: dict[str, tuple[Any, list[Any], list[Any]]] = {}
    for metric in metrics:
        if metric.num_instances() and metric.has_correlation_ids():
            with reasons_in(left_out, metric.name()):
                keys, values = instances(metric)
                if keys:
                    series[metric.name()] = metric, keys, values
    starts = function_starts(series[FUNCTIONS][2]) if FUNCTIONS in series else []
    counted: set[int] = set()  # addresses of instructions
    for name, (_, keys, _) in series.items():
        if name == EXECUTED or name.startswith(SAMPLED):
            counted.update(key for key in keys if isinstance(key, int) and key >= LOWEST_ADDRESS)
    # Where nothing was counted per instruction, the code itself may be there.
    uncounted = set() if counted or wanted is not None else set(code_of(action, starts))
    addresses = counted or uncounted
    timelines = action.timelines()
    per_pc, over_time, rest = [], [], []
    for name, (metric, keys, values) in series.items():
        if wanted is not None and name not in wanted:
            continue
        with reasons_in(left_out, name):
            if is_per_pc(action, keys, addresses):
                per_pc.append((name, units[name], keys, numbers(values, "at instructions")))
                addresses.update(keys)
            elif (
                aligned := timelines.aligned_metric(metric)
                if timelines and isinstance(keys[0], int)
                else None
            ):
                times, at_times = instances(aligned)
                over_time.append((name, units[name], times, numbers(at_times, "over time")))
            else:
                rest.append((name, units[name], keys, [plain(value) for value in values]))
    pcs = sorted(addresses if uncounted else addresses.union(holes(action, sorted(addresses))))
    code, code_columns = OPENED.code(ordinal, pcs)
    head = {
        "function": clean(action.name()),
        "functions": starts,
        "pcs": len(pcs),
        **code,
        "per_pc": [[name, unit] for name, unit, _, _ in per_pc],
        "timelines": [[name, unit, len(keys)] for name, unit, keys, _ in over_time],
        "instances": rest,
        "left_out": list(left_out.items()),
    }
    row = {pc: index for index, pc in enumerate(pcs)}
    columns = [struct.pack(f"<{len(pcs)}Q", *pcs), code_columns]
    for _, _, keys, column in per_pc:
        at_pcs = [math.nan] * len(pcs)  # a PC that the metric does not name has no value, which is not 0
        for key, number in zip(keys, column, strict=True):
            at_pcs[row[key]] = number
        columns.append(struct.pack(f"<{len(pcs)}d", *at_pcs))
    for _, _, keys, column in over_time:
        columns.append(struct.pack(f"<{len(keys)}q", *keys))
        columns.append(struct.pack(f"<{len(keys)}d", *column))
    return head, b"".join(columns)


def code_at(action: Any, pcs: Sequence[int]) -> tuple[Json, bytes]:
    """SASS and source files of a launch; and as columns the file and line of each instruction."""
    sass = [clean(action.sass_by_pc(pc)).strip() for pc in pcs]
    infos = [action.source_info(pc) for pc in pcs]
    texts = {clean(name): clean(text) or None for name, text in dict(action.source_files()).items()}
    files = list(dict.fromkeys([*texts, *(clean(info.file_name()) for info in infos if info)]))
    place = {name: index for index, name in enumerate(files)}
    columns = (
        struct.pack(f"<{len(pcs)}i", *(place[clean(info.file_name())] if info else -1 for info in infos)),
        struct.pack(f"<{len(pcs)}i", *(info.line() if info else -1 for info in infos)),
    )
    code = {
        "sass": [None if text in NO_TEXTS else text for text in sass],
        "files": [[name, texts.get(name)] for name in files],
    }
    return code, b"".join(columns)


@contextlib.contextmanager
def reasons_in(left_out: dict[str, str], name: str) -> Iterator[None]:
    """What goes wrong with one metric costs that metric and is noted, except running out of memory."""
    try:
        yield
    except MemoryError:
        raise
    except Unreadable as reason:
        left_out[name] = str(reason)
    except Exception as error:
        left_out[name] = described(error) + (" inside ncu_report" if is_of_library(error) else "")


def numbers(values: Sequence[Any], where: str) -> list[float]:
    """Values as a column of numbers, NaN for none; raises Unreadable for anything else."""
    column = []
    for value in values:
        if not isinstance(value, (int, float, NoneType)):
            raise Unreadable(f"its values {where} are no numbers but text: {plain(value)[:40]!r}")
        column.append(math.nan if value is None else float(value))
    return column


def function_starts(values: Sequence[Any]) -> list[int]:
    """Where each function of the launch starts, ascending."""
    return sorted({value for value in values if isinstance(value, int) and value >= LOWEST_ADDRESS})


def has_code(action: Any, address: int) -> bool:
    """Whether an instruction lies at an address."""
    return action.sass_by_pc(address) not in NO_TEXTS[:2]


def has_text(action: Any, address: int) -> bool:
    """Whether an instruction lies at an address and can be read."""
    return action.sass_by_pc(address) not in NO_TEXTS


def code_of(action: Any, starts: Sequence[int]) -> Iterator[int]:
    """The instructions of each function, from its start to where its text ends, padding as ncu counts it."""
    for start, limit in itertools.zip_longest(starts, starts[1:], fillvalue=sys.maxsize):
        if not any(has_text(action, address) for address in (start, start + INSTRUCTION_BYTES)):
            continue
        # Where one function ends right before another, the library has no text for the first instruction.
        yield start
        for address in range(
            start + INSTRUCTION_BYTES, min(limit, start + LONGEST_FUNCTION), INSTRUCTION_BYTES
        ):
            if not has_text(action, address):
                break
            yield address


def holes(action: Any, addresses: Sequence[int]) -> Iterator[int]:
    """Addresses of instructions between counted ones that no metric names: never executed, never sampled."""
    for before, after in itertools.pairwise(addresses):
        if after - before <= LARGEST_HOLE:
            for address in range(before + INSTRUCTION_BYTES, after, INSTRUCTION_BYTES):
                if not has_code(action, address):
                    break  # the end of a function
                yield address


def instances(metric: Any) -> tuple[list[Any], list[Any]]:
    """Keys and values of an instanced metric."""
    keys = metric.correlation_ids()
    count = min(metric.num_instances(), keys.num_instances())
    return column_of(keys, count), column_of(metric, count)


def column_of(metric: Any, count: int) -> list[Any]:
    """The first values of a metric's instances, which are all of one kind."""
    if not count:
        return []
    kind, getters = metric.kind(0), getters_by_kind(type(metric))
    if kind not in getters:
        raise Unreadable(f"its values are of a kind that this reader does not know ({kind})")
    letter, get = getters[kind]
    values = [get(metric, index) for index in range(count)]
    return list(map(clean, values)) if letter == "s" else values


def is_per_pc(action: Any, keys: Sequence[Any], addresses: set[int]) -> bool:
    """Whether a metric's instances belong to instructions: their keys are addresses of this launch's code."""
    if not keys or not isinstance(keys[0], int):
        return False
    return keys[0] in addresses or (keys[0] >= LOWEST_ADDRESS and has_code(action, keys[0]))


def plain(value: Any) -> Any:
    """A value as JSON can carry it: infinities and NaN become None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
