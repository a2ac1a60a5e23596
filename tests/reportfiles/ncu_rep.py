"""A writer of report files: descriptions of launches go in, a file that `ncu_report` reads comes out.

The layout is that of Nsight Compute 2021 to 2024 (file version 7): `NVR\\0`, the length and bytes of a file
header, then blocks. A block is the length and bytes of a header and a payload of entries, each with its
length before it: first code modules, then launches. Every length is four bytes, little-endian; every header
and entry is a protobuf message of syntax 2, whose field numbers stand below beside what they carry.

Where `ncu_report` (2026.3) asks for more than one would think:

- Fields that the schema calls required must be there even where nobody reads them; without one of them a
  launch has no name and no metric, and the library says so on stderr only.
- The names of all metrics lie in one table, in the header of the block with the first launch, to which
  the launches of every block refer by index.
- No unit is written. The library knows units by metric name and chip, and knows the chip by three
  device attributes together (architecture, implementation, chip); without any one of them the unit of
  every hardware counter is empty.
- A launch finds its machine code by the number of its module, and an instruction by its absolute address.
  The module names each function with its load address and its index in the symbol table of the cubin.
- Where one function ends right before another, the first instruction of the other has no text.
- A function that was not loaded has address 0, and the library then finds its code at 0, 16, …
- A metric without a total holds no value message at all; `has_value()` is then False.
- Values over time are a timeline only where a section of the launch draws them as one.
- Rules have their kinds in another order in the file (1 ok, 2 warning, 3 error, 4 optimization) than in
  the library's answer (1 ok, 2 optimization, 3 warning, 4 error). A rule result without a message is
  left out of the answer.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property

from tests.reportfiles.wire import field, message

MAGIC = b"NVR\0"
FILE_VERSION = 7
INSTRUCTION_BYTES = 16
RULE_KINDS = {"none": 0, "ok": 1, "warning": 2, "error": 3, "optimization": 4}
SPEEDUP_SCOPES = {"local": 1, "global": 2}

Scalar = int | float | str  # stored as uint64, double or string


@dataclass(frozen=True)
class Metric:
    """A metric of a launch: its total, its values per instance, or both."""

    total: Scalar | None
    instances: Sequence[tuple[int | str, Scalar]] = ()  # correlation id (an address, an opcode) and value
    over_time: bool = False  # the correlation ids are times in ns


@dataclass(frozen=True)
class Focus:
    """A metric that a rule points at."""

    name: str
    value: float
    severity: int = 2
    info: str = ""


@dataclass(frozen=True)
class RuleResult:
    """What a rule of Nsight Compute said about a launch; nothing where the message is empty."""

    identifier: str
    name: str
    section: str
    kind: str = "optimization"
    title: str = ""
    message: str = ""
    speedup_pct: float | None = None
    speedup_scope: str = "local"
    focus: tuple[Focus, ...] = ()


@dataclass(frozen=True)
class Code:
    """A cubin as loaded on the GPU: its functions follow each other from an address, with gaps between."""

    cubin: bytes
    address: int
    compute_capability: tuple[int, int]
    identifier: int = 1  # by which launches name the module
    sources: Mapping[str, str] = default(default_factory=dict)  # imported source texts by path
    unloaded: Sequence[str] = ()  # kernels that the program never loaded: they have address 0

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The kernels of the cubin by mangled name."""
        address, functions = self.address, {}
        for index, symbol in enumerate(symbols(self.cubin)):
            if symbol.is_kernel and symbol.name in self.unloaded:
                functions[symbol.name] = Function(symbol.name, index, 0, symbol.size)
            elif symbol.is_kernel:
                functions[symbol.name] = Function(symbol.name, index, address, symbol.size)
                address += (symbol.size // 256 + 1) * 256
        return functions


@dataclass(frozen=True)
class Function:
    """A kernel in loaded code."""

    name: str
    symbol: int  # index in the symbol table of the cubin
    address: int
    size: int  # bytes

    @property
    def pcs(self) -> range:
        """The addresses of its instructions."""
        return range(self.address, self.address + self.size, INSTRUCTION_BYTES)


@dataclass(frozen=True)
class LaunchResult:
    """One profiled launch. Zeros as its grid are what ncu writes where the launch failed."""

    function: str
    demangled: str
    mangled: str
    metrics: Mapping[str, Metric | Scalar]
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    stream: int = 7
    nvtx: Mapping[str, Sequence[str]] = default(default_factory=dict)  # domain to ranges, the outermost first
    rules: Sequence[RuleResult] = ()
    code: Code | None = None
    call_stack: Sequence[tuple[str, str]] = ()  # binary and symbol of the host's frames


@dataclass(frozen=True)
class SessionDetails:
    """Of the session that collected the launches."""

    ncu_version: str = "2024.3.2.0 (build 34861637) (public-release)"
    command_line: str = "ncu --set full ./app"
    driver: str = "560.35.03"
    cuda: str = "12.6"
    created: int = 1730121091  # seconds since 1970
    process: str = "/home/tester/app"
    process_id: int = 8605
    computer: str = "gpu-node-17"
    addresses: tuple[str, ...] = ("172.17.0.4",)
    system: str = "Linux"


@dataclass(frozen=True)
class ReportFile:
    """A report: its launches in order."""

    launches: Sequence[LaunchResult]
    session: SessionDetails = SessionDetails()

    def to_bytes(self) -> bytes:
        """The file, in the order in which ncu writes blocks: host, code, first launch, session, others."""
        names = list(dict.fromkeys(name for launch in self.launches for name in launch.metrics))
        place = {name: index for index, name in enumerate(names)}
        host, *session = _session_messages(self.session)
        process = message((1, self.session.process_id), (2, "127.0.0.1"), (3, self.session.process))
        blocks = [_block(process, session=host)]
        modules: set[int] = set()
        for index, launch in enumerate(self.launches):
            if launch.code and launch.code.identifier not in modules:
                modules.add(launch.code.identifier)
                blocks.append(_block(process, modules=[_module_message(launch.code)]))
            result = _launch_message(launch, index, place, self.session)
            blocks.append(_block(process, results=[result], names=names if index == 0 else ()))
            if index == 0:
                blocks += [_block(process, session=details) for details in session]
        return b"".join((MAGIC, _sized(message((1, FILE_VERSION))), *blocks))


@dataclass(frozen=True)
class Symbol:
    """An entry of a cubin's symbol table."""

    name: str
    is_kernel: bool  # a global function
    section: int
    value: int
    size: int


def symbols(cubin: bytes) -> list[Symbol]:
    """The symbol table of a cubin, which is an ELF file of 64 bits."""
    (table_at,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_size, count = struct.unpack_from("<HH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, table_at + entry_size * i) for i in range(count)]
    (table,) = (section for section in sections if section[1] == 2)  # SHT_SYMTAB
    names_at, found = sections[table[6]][4], []
    for at in range(table[4], table[4] + table[5], 24):
        name_at, info, _, section, value, size = struct.unpack_from("<IBBHQQ", cubin, at)
        name = cubin[names_at + name_at : cubin.index(0, names_at + name_at)].decode()
        found.append(Symbol(name, info == 0x12, section, value, size))  # STB_GLOBAL, STT_FUNC
    return found


def _sized(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + content


def _block(
    process: bytes,
    *,
    session: bytes | None = None,
    modules: Sequence[bytes] = (),
    results: Sequence[bytes] = (),
    names: Sequence[str] = (),
) -> bytes:
    payload = b"".join(map(_sized, (*modules, *results)))
    header = message(
        (1, len(modules)),
        (2, len(results)),
        (3, session),
        (4, message(*((1, name) for name in names))),
        (5, len(payload)),
        (6, process),
    )
    return _sized(header) + payload


def _session_messages(session: SessionDetails) -> Iterator[bytes]:
    """Parts of the session, each of which ncu writes into a block of its own."""
    addresses = [(7, message((1, address), (2, 1))) for address in session.addresses]
    system = [(1, session.system), (2, "#17"), (3, "CPU"), (4, "x86_64"), (5, session.computer), (6, 2)]
    yield message((2, session.created), (3, message(*system)))
    for provider, version in (
        ("CUDA Version", session.cuda),
        ("Display Driver Version", session.driver),
        ("PerfWorks", "0.1.0"),
        ("Nsight Compute Target", session.ncu_version),
    ):
        yield message((8, message((1, provider), (2, version))))
    yield message((4, message(*system, *addresses)))
    yield message((11, session.command_line))


def _module_message(code: Code) -> bytes:
    major, minor = code.compute_capability
    files = [(1, message((1, path), (2, text))) for path, text in code.sources.items()]
    functions = [
        (1, message((1, one.name), (2, one.address), (3, one.symbol))) for one in code.functions.values()
    ]
    return message(
        (1, code.identifier),
        (4, code.cubin),
        (5, major),
        (6, major << 16 | minor),
        (7, 0),
        (8, message(*files) if files else None),
        (9, message(*functions)),
    )


def _launch_message(
    launch: LaunchResult, index: int, place: Mapping[str, int], session: SessionDetails
) -> bytes:
    frames = [
        (1, message((1, binary), (2, 0), (3, ""), (4, symbol), (5, 0)))
        for binary, symbol in launch.call_stack
    ]
    return message(
        (1, session.process_id),  # thread
        (2, index),  # call of the API
        (3, 0),  # program
        (4, 0),  # kernel
        (5, launch.mangled),
        (6, launch.function),
        (7, launch.demangled),
        (8, 3),  # dimensions of work
        (9, _triple((0, 0, 0))),  # offset of work
        (10, _triple(launch.grid)),
        (11, _triple(launch.block)),
        *((13, _metric_message(place[name], metric)) for name, metric in launch.metrics.items()),
        (14, session.created + index),
        (15, message((1, launch.code.identifier if launch.code else 0))),
        (16, 0),  # API: CUDA
        (17, _timeline_section(launch)),
        *((19, _rule_message(rule)) for rule in launch.rules),
        (21, _nvtx_message(launch.nvtx, session.process_id) if launch.nvtx else None),
        (22, 1),  # context
        (23, launch.stream),
        (28, message(*frames) if frames else None),
    )


def _timeline_section(launch: LaunchResult) -> bytes | None:
    """The section whose body draws the metrics over time; what no section draws is no timeline."""
    names = [name for name, one in launch.metrics.items() if isinstance(one, Metric) and one.over_time]
    if not names:
        return None
    drawn = [(4, message((4, message((1, name), (2, name), (9, "sampling_1"))))) for name in names]
    timeline = message((2, message((1, "Overview"), (3, 1), *drawn)))
    body = message((1, message((113, timeline))), (2, "Overview"), (3, 1))
    return message(
        (1, "PmSampling"), (2, "PM Sampling"), (3, 15), (5, body), (12, message((1, "sampling_1")))
    )


def _triple(sizes: tuple[int, int, int]) -> bytes:
    return message(*enumerate(sizes, 1))


def _value_message(value: Scalar) -> bytes:
    """A string, double or uint64; the fields of the two narrower numbers (2, 4) are never met in reports."""
    if isinstance(value, str):
        return message((1, value))
    return message((3, value)) if isinstance(value, float) else message((5, value))


def _metric_message(name: int, metric: Metric | Scalar) -> bytes:
    if not isinstance(metric, Metric):
        metric = Metric(metric)
    total = None if metric.total is None else _value_message(metric.total)
    instances = [_value_field(1, key) + _value_field(2, value) for key, value in metric.instances]
    return b"".join(
        (
            message((1, name), (2, total)),
            *(message((3, instance)) for instance in instances),
            message((4, int(metric.over_time))),
        )
    )


@functools.lru_cache(maxsize=100_000, typed=True)  # a million instances repeat few addresses and counts
def _value_field(number: int, value: Scalar) -> bytes:
    return field(number, _value_message(value))


def _rule_message(rule: RuleResult) -> bytes:
    said = message((1, rule.message), (2, RULE_KINDS[rule.kind]), (3, 1), (4, rule.title or None))
    focus = [
        (8, message((1, 1), (2, one.name), (3, float(one.value)), (4, one.severity), (5, one.info)))
        for one in rule.focus
    ]
    speedup = (
        None
        if rule.speedup_pct is None
        else message((1, SPEEDUP_SCOPES[rule.speedup_scope]), (2, float(rule.speedup_pct)))
    )
    body = message((1, message((1, said), *focus, (10, speedup)))) if rule.message else None
    return message((1, rule.identifier), (2, rule.name), (3, body), (4, rule.section))


def _nvtx_message(nvtx: Mapping[str, Sequence[str]], thread: int) -> bytes:
    domains = [(1, message((1, number), (2, name))) for number, name in enumerate(nvtx)]
    states = [
        (2, message((1, number), *((3, message((1, name), (3, place))) for place, name in enumerate(ranges))))
        for number, ranges in enumerate(nvtx.values())
    ]
    return message(*domains, (2, message((1, thread), *states)), (3, message((1, 0))), (4, 0))
