"""How a run is written as run.json and read again: the same run gives the same bytes."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, TypeVar

from profiler.bundles.run import (
    COLLECT,
    IMPORT,
    STATUSES,
    Attachment,
    Capture,
    Facts,
    Json,
    ReportFile,
    Result,
    Run,
    Samples,
    check_label,
)
from profiler.errors import BadBundle, ProfilerError
from profiler.evidence.launch import one_line
from profiler.evidence.values import Evidence, State, Value

RUN_FILE = "run.json"
SCHEMA = 1
MAX_RUN_JSON_BYTES = 16 << 20  # 100,000 timed calls take 5 MB
MAX_PARSED_BYTES = 96 << 20  # what Python makes of it, at most
# Of a number, an empty list, a small mapping, and a key of a mapping.
_VALUE_BYTES, _LIST_BYTES, _MAPPING_BYTES, _KEY_BYTES = 40, 88, 240, 150
_MAX_PATH, _MAX_FOLDERS = 1000, 32  # characters and parts of a path in a bundle
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9@+=_.-]{0,239}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_INDEXED_PROVENANCE = (  # what the index has a column of texts for; the rest may be any JSON
    *("host", "gpu", "compute_capability", "driver", "cuda", "ncu_version"),
    *("command_line", "clock_control", "cache_control"),
)
_MAX_WHOLE = 2**63 - 1  # the largest whole number that a database takes
_MAX_ROUNDS = 2**16  # the index keeps the numbers of rounds and processes in 16 bits
_MAX_FLOAT32 = 3.4e38  # and latencies and clocks as float32
_MIN_NS = 1e-30  # float32 would round a shorter latency to 0
_CAPABILITY = re.compile(r"\d{1,3}\.\d{1,3}")

_PLACE = f"{uuid.uuid4()} "  # stands for a list of numbers while a run is written: no text of a run has it

T = TypeVar("T")


def dump_run(run: Run) -> bytes:
    """The content of run.json. Equal runs give equal bytes, by which a run is known to be sealed already.

    Raises BadBundle for one that parse_run would refuse as too large: collect less in one run.
    """
    body: dict[str, Json] = {
        "schema": SCHEMA,
        "run_id": run.run_id,
        "kind": run.kind,
        "created": run.created.astimezone(UTC).isoformat(),
        "continues": run.continues,
        "provenance": dict(run.provenance),
        "reports": [report._asdict() for report in run.reports],
        "files": [attachment._asdict() for attachment in run.files],
    }
    results = [dump_result(result) for result in run.results]
    # json.dumps takes ten times as long where it indents, and most of a run are the numbers of its samples.
    numbers: list[str] = []
    for block in (block for result in results for block in result["samples"]):
        for name, values in block.items():
            if isinstance(values, list) and values:
                block[name] = f"{_PLACE}{len(numbers)}"
                text = json.dumps(values, separators=(",\n      ", ""), allow_nan=False)
                numbers.append(f"[\n      {text[1:-1]}\n     ]")
    text = json.dumps(
        body | {"results": results}, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False
    )
    content = re.sub(f'"{_PLACE}([0-9]+)"', lambda match: numbers[int(match[1])], text).encode()
    refuse_what_is_too_large(content, f"{RUN_FILE} of {run.run_id}")
    return content


def parse_run(content: bytes, where: str) -> Run:
    """The run in run.json, every field of it checked. Raises BadBundle that names `where`.

    Its mappings have their keys in the order in which dump_run writes them.
    """
    refuse_what_is_too_large(content, where)
    try:
        body = json.loads(content, object_pairs_hook=_sorted_mapping)
        schema = _whole(body["schema"], 1)
        if schema > SCHEMA:
            raise BadBundle(f"{where} has schema {schema}; this profiler reads up to {SCHEMA}: update it")
        run = Run(
            run_id=_text(body["run_id"]),
            kind=_one_of(body["kind"], (IMPORT, COLLECT)),
            created=parse_time(body["created"]),
            provenance=_parse_provenance(body["provenance"]),
            results=_parse_list(parse_result, body["results"]),
            reports=_parse_list(lambda file: ReportFile(**_parse_file(file, ReportFile)), body["reports"]),
            files=_parse_list(lambda file: Attachment(**_parse_file(file, Attachment)), body["files"]),
            continues=_text_or_none(body["continues"]),
        )
    except BadBundle:
        raise
    except (ProfilerError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadBundle(f"{where} is no run.json of a bundle ({brief_error(error)})") from error
    _check_run(run, where)
    return run


def parse_outline(content: bytes, where: str, values: Collection[str] = ()) -> Run:
    """What a run says of itself, its files and the code of its results; of facts only the named values.

    Without samples, captures, checks and problems, which make up most of a run, and unchecked but for their
    places: for a run that has been indexed, which parse_run has read in full. Raises BadBundle as it does.
    """
    refuse_what_is_too_large(content, where)
    try:
        body = json.loads(content)
        return Run(
            run_id=_text(body["run_id"]),
            kind=body["kind"],
            created=parse_time(body["created"]),
            provenance=dict(body["provenance"]),
            results=tuple(_outline_result(result, values) for result in body["results"]),
            reports=tuple(ReportFile(**report) for report in body["reports"]),
            files=tuple(Attachment(**file) for file in body["files"]),
            continues=body["continues"],
        )
    except (ProfilerError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadBundle(f"{where} is no run.json of a bundle ({brief_error(error)})") from error


def _outline_result(body: Any, values: Collection[str]) -> Result:
    facts = []
    for block in body["facts"] if values else ():
        chosen = {name: _parse_value(*value) for name, *value in block["values"] if name in values}
        if chosen:
            evidence = Evidence(block["evidence"])
            facts.append(Facts(evidence, block["part"], chosen, block["target"], block["mode"]))
    return Result(
        family=body["family"],
        version=body["version"],
        workload=body["workload"],
        status=body["status"],
        reason=body["reason"],
        source_sha256=body["source_sha256"],
        flags=tuple(body["flags"]),
        facts=tuple(facts),
    )


def reject_repeated_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """A mapping of JSON. Raises ValueError for a key that comes twice: programs differ on which counts."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} stands there twice")
            seen.add(key)
    return mapping


def _sorted_mapping(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    # dump_run sorts keys. Only so has a run that is imported the rows in the index that its sealed one has.
    return dict(sorted(reject_repeated_keys(pairs).items()))


def refuse_what_is_too_large(content: bytes, where: str) -> None:
    """Raise BadBundle where parsing would take much memory: three bytes of JSON can become 88 of Python."""
    if len(content) > MAX_RUN_JSON_BYTES:
        raise BadBundle(f"{where} has {len(content):,} bytes or more, over {MAX_RUN_JSON_BYTES:,}")
    parsed = (
        content.count(b",") * _VALUE_BYTES
        + content.count(b"[") * _LIST_BYTES
        + content.count(b"{") * _MAPPING_BYTES
        + content.count(b":") * _KEY_BYTES
    )
    if parsed > MAX_PARSED_BYTES:
        raise BadBundle(f"{where} would take {parsed >> 20} MiB of memory, over {MAX_PARSED_BYTES >> 20}")


def _check_run(run: Run, where: str) -> None:
    """Raise BadBundle for what no field shows alone: a path named twice, a capture of a report not in it."""
    if not _RUN_ID.fullmatch(run.run_id):
        raise BadBundle(f"{where} names the run {run.run_id[:80]!r}, which cannot be a folder's name")
    if not run.results:
        raise BadBundle(f"{where} holds no results: a run is about a version")
    paths = {RUN_FILE}
    for file in run.contents:
        check_inside(file.path, where)
        if file.path in paths:
            raise BadBundle(f"{where} names {file.path} twice")
        paths.add(file.path)
    reports = {report.sha256 for report in run.reports}
    if len(reports) < len(run.reports):
        raise BadBundle(f"{where} names the same report twice")
    for capture in (capture for result in run.results for capture in result.captures):
        if capture.report not in reports:
            raise BadBundle(f"{where}: a result is from the report {capture.report[:12]!r}, which it lacks")


def dump_result(result: Result) -> dict[str, Json]:
    """A result as it stands in run.json; a collection keeps each like this until all are sealed."""
    return {
        "family": result.family,
        "version": result.version,
        "workload": result.workload,
        "problem": dict(result.problem),
        "status": result.status,
        "reason": result.reason,
        "source_sha256": result.source_sha256,
        "flags": list(result.flags),
        "check": None if result.check is None else dict(result.check),
        "samples": [
            {
                "mode": block.mode,
                "ns": list(block.ns),
                "rounds": list(block.rounds),
                "clocks_mhz": list(block.clocks_mhz),
                "throttled": list(block.throttled),
                **({"processes": list(block.processes)} if block.processes else {}),
            }
            for block in result.samples
        ],
        "facts": [
            {
                "evidence": str(block.evidence),
                "part": block.part,
                "target": block.target,
                "mode": block.mode,
                "opcodes": dict(block.opcodes),
                "values": [[name, *_dump_value(value)] for name, value in block.values.items()],
            }
            for block in result.facts
        ],
        "captures": [
            {
                "report": capture.report,
                "ordinals": None if capture.ordinals is None else list(capture.ordinals),
                "parts": None if capture.parts is None else list(capture.parts),
                "mode": capture.mode,
            }
            for capture in result.captures
        ],
    }


def _parse_provenance(body: Any) -> dict[str, Json]:
    provenance = _any_mapping(body)
    for name in _INDEXED_PROVENANCE:
        _text_or_none(provenance.get(name))
    capability = provenance.get("compute_capability")
    if capability is not None and not _CAPABILITY.fullmatch(capability):
        raise ValueError(f"{capability[:40]!r} is no compute capability such as 9.0")
    return provenance


def _parse_file(body: Any, kind: type[ReportFile | Attachment]) -> dict[str, Any]:
    for name in kind._fields:
        if name not in _any_mapping(body):
            raise ValueError(f"a file that it names, {str(body.get('path'))[:80]!r}, is without {name!r}")
    for name in body:
        if name not in kind._fields:
            raise ValueError(f"a file that it names has {name[:40]!r}, which means nothing here")
    if not _SHA256.fullmatch(_text(body["sha256"])):
        raise ValueError(f"{body['sha256'][:80]!r} is no sha256")
    _whole(body["size_bytes"])
    for name in set(body) - {"size_bytes"}:
        _text(body[name])
    return dict(body)


def parse_result(body: Any) -> Result:
    """The result in what dump_result gave."""
    return Result(
        family=_label("family", body["family"]),
        version=_label("version", body["version"]),
        workload=None if body["workload"] is None else _label("workload", body["workload"]),
        problem=_parse_problem(body["problem"]),
        status=_one_of(body["status"], STATUSES),
        reason=_text_or_none(body["reason"]),
        source_sha256=_text_or_none(body["source_sha256"]),
        flags=_parse_list(_text, body["flags"]),
        check=None if body["check"] is None else _parse_check(body["check"]),
        samples=_parse_list(_parse_samples, body["samples"]),
        facts=_parse_list(_parse_facts, body["facts"]),
        captures=_parse_list(_parse_capture, body["captures"]),
    )


def _parse_problem(body: Any) -> dict[str, Json]:
    problem = _any_mapping(body)
    _text_or_none(problem.get("dtype"))
    return problem


def _parse_check(body: Any) -> dict[str, Json]:
    check = _any_mapping(body)
    if not isinstance(check.get("passed", True), bool):
        raise TypeError(f"passed is {str(check['passed'])[:40]!r}, which is neither true nor false")
    return check


def _parse_samples(body: Any) -> Samples:
    samples = Samples(
        mode=_text(body["mode"]),
        ns=_parse_floats(body["ns"], _MIN_NS, _latency),
        rounds=_parse_whole_numbers(body["rounds"], _MAX_ROUNDS - 1),
        clocks_mhz=_parse_floats(body["clocks_mhz"], 0, _small_number),
        throttled=_parse_whole_numbers(body["throttled"], len(body["ns"]) - 1),
        processes=_parse_whole_numbers(body.get("processes", []), _MAX_ROUNDS - 1),
    )
    if len(samples.rounds) != len(samples.ns) or len(samples.clocks_mhz) not in (0, len(samples.ns)):
        raise ValueError(f"{len(samples.ns)} samples with {len(samples.rounds)} rounds")
    if len(samples.processes) not in (0, len(samples.ns)):
        raise ValueError(f"{len(samples.ns)} samples with {len(samples.processes)} process numbers")
    return samples


def _parse_facts(body: Any) -> Facts:
    opcodes = _any_mapping(body["opcodes"])
    return Facts(
        evidence=Evidence(body["evidence"]),
        part=_text(body["part"]),
        target=_text_or_none(body["target"]),
        mode=_text(body["mode"]),
        opcodes={_text(name): _number(count) for name, count in opcodes.items()},
        values={_text(name): _parse_value(*value) for name, *value in body["values"]},
    )


def _parse_capture(body: Any) -> Capture:
    capture = Capture(
        report=_text(body["report"]),
        ordinals=None if body["ordinals"] is None else _parse_list(_whole, body["ordinals"]),
        parts=None if body["parts"] is None else _parse_list(_text, body["parts"]),
        mode=_text_or_none(body["mode"]),
    )
    ordinals, parts = capture.ordinals, capture.parts
    if ordinals is not None and parts is not None and len(ordinals) != len(parts):
        raise ValueError(f"{len(ordinals)} launches with {len(parts)} parts")
    return capture


def _dump_value(value: Value) -> list[Json]:
    """[number or text, unit], or [null, unit, state]."""
    if value.state is not State.PRESENT:
        return [None, value.unit, int(value.state)]
    return [value.number if value.text is None else value.text, value.unit]


def _parse_value(content: Any, unit: Any, state: Any = 0) -> Value:
    unit, absence = _text(unit), State(_whole(state))
    if content is None and absence is not State.PRESENT:
        return Value(None, unit, state=absence)
    if absence is not State.PRESENT:
        raise ValueError(f"{content!r} is there and {absence.words}")
    return Value(None, unit, _text(content)) if isinstance(content, str) else Value(_number(content), unit)


# ---- single fields, checked strictly: Python's conversions take "5" for 5, True for 1, letters for a text


def _parse_list(parse_item: Callable[[Any], T], value: Any) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{str(value)[:40]!r} is no list")
    return tuple(parse_item(item) for item in value)


def _parse_floats(value: Any, minimum: float, parse_item: Callable[[Any], float]) -> tuple[float, ...]:
    """`_parse_list` of numbers from a minimum up: a list of good ones is checked at once, five times as fast.

    In any other `parse_item` finds what is wrong.
    """
    if _all_within(value, {int, float}, minimum, _MAX_FLOAT32) and math.isfinite(sum(value)):
        return tuple(map(float, value))
    return _parse_list(parse_item, value)


def _parse_whole_numbers(value: Any, maximum: int) -> tuple[int, ...]:
    """As `_parse_floats`, of whole numbers from 0."""
    if _all_within(value, {int}, 0, maximum):
        return tuple(value)
    return _parse_list(lambda number: _whole(number, 0, maximum), value)


def _all_within(value: Any, types: set[type], minimum: float, maximum: float) -> bool:
    """Whether it is a list of numbers of these types from minimum to maximum; of a NaN it may say so too."""
    if not isinstance(value, list) or not {*map(type, value)} <= types:
        return False
    return not value or (minimum <= min(value) and max(value) <= maximum)


def _text(value: Any) -> str:
    """A text that can be written and that a database takes."""
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"{str(value)[:40]!r} is no text")
    value.encode()  # half a surrogate pair cannot be written
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _label(kind: str, value: Any) -> str:
    if check_label(kind, _text(value)) != value:
        raise ValueError(f"{value!r} has spaces around it")
    return _text(value)


def _one_of(value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(choices)}")
    return _text(value)


def _whole(value: Any, minimum: int = 0, maximum: int = _MAX_WHOLE) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise ValueError(f"{str(value)[:40]!r} is no whole number from {minimum} to {maximum}")
    return value


def _number(value: Any) -> float | int:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return value


def _small_number(value: Any) -> float:
    if not 0 <= _number(value) <= _MAX_FLOAT32:
        raise ValueError(f"{value!r} is no number from 0 to {_MAX_FLOAT32}")
    return float(value)


def _latency(value: Any) -> float:
    if not _MIN_NS <= _number(value) <= _MAX_FLOAT32:
        raise ValueError(f"{value!r} is no time in ns: it must be greater than 0")
    return float(value)


def _any_mapping(value: Any) -> dict[str, Json]:
    """A mapping of any content, kept as it is; raises where it could not be written as JSON again."""
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]!r} is no mapping")
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def parse_time(value: Any) -> datetime:
    """A time in UTC. Raises for one without a zone, which would be another time on every machine."""
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    return moment.astimezone(UTC)


def check_inside(path: str, where: str) -> None:
    """Raise BadBundle for a path that leads out of the bundle, or that some system reads in another way."""
    if len(path) > _MAX_PATH or path.count("/") > _MAX_FOLDERS:
        raise BadBundle(
            f"{where} names the file {path[:80]!r}…: a path has at most {_MAX_PATH} characters and "
            f"{_MAX_FOLDERS} folders"
        )
    parts = PurePosixPath(path).parts
    bad = not parts or path.startswith("/") or any(mark in path for mark in ("\\", ":", "\0"))
    if not path.isprintable():  # a line end, or what turns the direction of writing round
        raise BadBundle(f"{where} names the file {path[:80]!r}, in which a character cannot be printed")
    if bad or ".." in parts or str(PurePosixPath(path)) != path:
        raise BadBundle(f"{where} names the file {path[:80]!r}, which would lie outside the bundle")


def brief_error(error: BaseException) -> str:
    """An error's type and the start of its message, for a line that names what could not be read."""
    text = one_line(f"{type(error).__name__}: {error}")
    return text if len(text) <= 120 else f"{text[:120]}…"
