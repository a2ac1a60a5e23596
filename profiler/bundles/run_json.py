"""How a run is written as run.json and read again: the same run gives the same bytes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
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
from profiler.evidence import Evidence, State, Value

RUN_FILE = "run.json"
SCHEMA = 1
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9@+=_.-]{0,239}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PROVENANCE = (  # what the index has columns for
    *("host", "gpu", "compute_capability", "driver", "cuda", "ncu_version"),
    *("command_line", "clock_control", "cache_control"),
)
_MOST = 2**63 - 1  # the largest whole number in a database
_ROUNDS = 2**16  # round numbers are kept in 16 bits
_FLOAT32 = 3.4e38  # and samples and clocks as float32
_SHORTEST_NS = 1e-30  # that float32 does not take for 0
_CAPABILITY = re.compile(r"\d{1,3}\.\d{1,3}")

T = TypeVar("T")


def dump_run(run: Run) -> bytes:
    """run.json's content: the same run gives the same bytes."""
    body: dict[str, Json] = {
        "schema": SCHEMA,
        "run_id": run.run_id,
        "kind": run.kind,
        "created": run.created.astimezone(UTC).isoformat(),
        "continues": run.continues,
        "provenance": dict(run.provenance),
        "reports": [report._asdict() for report in run.reports],
        "files": [attachment._asdict() for attachment in run.files],
        "results": [dump_result(result) for result in run.results],
    }
    return json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False).encode()


def parse_run(content: bytes, where: str) -> Run:
    """The run in run.json, every field of it checked. Raises BadBundle that names `where`."""
    try:
        body = json.loads(content)
        schema = _whole(body["schema"], 1)
        if schema > SCHEMA:
            raise BadBundle(f"{where} has schema {schema}; this profiler reads up to {SCHEMA}: update it")
        run = Run(
            run_id=_text(body["run_id"]),
            kind=_one_of(body["kind"], (IMPORT, COLLECT)),
            created=parse_time(body["created"]),
            provenance=_parse_provenance(body["provenance"]),
            results=_each(parse_result, body["results"]),
            reports=_each(lambda report: ReportFile(**_parse_file(report)), body["reports"]),
            files=_each(lambda file: Attachment(**_parse_file(file)), body["files"]),
            continues=_text_or_none(body["continues"]),
        )
    except BadBundle:
        raise
    except (ProfilerError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadBundle(f"{where} is no run.json of a bundle ({brief_error(error)})") from error
    _check_whole(run, where)
    return run


def _check_whole(run: Run, where: str) -> None:
    """What no field shows alone: names that are taken, and reports that are not there."""
    if not _RUN_ID.fullmatch(run.run_id):
        raise BadBundle(f"{where} names the run {run.run_id[:80]!r}, which cannot be a folder's name")
    if not run.results:
        raise BadBundle(f"{where} holds no results: a run is about a version")
    known = {RUN_FILE}
    for file in run.contents:
        check_inside(file.path, where)
        if file.path in known:
            raise BadBundle(f"{where} names {file.path} twice")
        known.add(file.path)
    reports = {report.sha256 for report in run.reports}
    if len(reports) < len(run.reports):
        raise BadBundle(f"{where} names the same report twice")
    for capture in (capture for result in run.results for capture in result.captures):
        if capture.report not in reports:
            raise BadBundle(f"{where}: a result is from the report {capture.report[:12]!r}, which it lacks")


def dump_result(result: Result) -> dict[str, Json]:
    """A result as JSON."""
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
    found = _free(body)
    for name in _PROVENANCE:
        _text_or_none(found.get(name))
    capability = found.get("compute_capability")
    if capability is not None and not _CAPABILITY.fullmatch(capability):
        raise ValueError(f"{capability[:40]!r} is no compute capability such as 9.0")
    return found


def _parse_file(body: Any) -> dict[str, Any]:
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
        flags=_each(_text, body["flags"]),
        check=None if body["check"] is None else _parse_check(body["check"]),
        samples=_each(_parse_samples, body["samples"]),
        facts=_each(_parse_facts, body["facts"]),
        captures=_each(_parse_capture, body["captures"]),
    )


def _parse_problem(body: Any) -> dict[str, Json]:
    found = _free(body)
    _text_or_none(found.get("dtype"))
    return found


def _parse_check(body: Any) -> dict[str, Json]:
    found = _free(body)
    if not isinstance(found.get("passed", True), bool):
        raise TypeError(f"passed is {str(found['passed'])[:40]!r}, which is neither true nor false")
    return found


def _parse_samples(body: Any) -> Samples:
    found = Samples(
        mode=_text(body["mode"]),
        ns=_each(_latency, body["ns"]),
        rounds=_each(lambda number: _whole(number, 0, _ROUNDS - 1), body["rounds"]),
        clocks_mhz=_each(_small_number, body["clocks_mhz"]),
        throttled=_each(lambda place: _whole(place, 0, len(body["ns"]) - 1), body["throttled"]),
    )
    if len(found.rounds) != len(found.ns) or len(found.clocks_mhz) not in (0, len(found.ns)):
        raise ValueError(f"{len(found.ns)} samples with {len(found.rounds)} rounds")
    return found


def _parse_facts(body: Any) -> Facts:
    opcodes = _free(body["opcodes"])
    return Facts(
        evidence=Evidence(body["evidence"]),
        part=_text(body["part"]),
        target=_text_or_none(body["target"]),
        mode=_text(body["mode"]),
        opcodes={_text(name): _number(count) for name, count in opcodes.items()},
        values={_text(name): _parse_value(*value) for name, *value in body["values"]},
    )


def _parse_capture(body: Any) -> Capture:
    ordinals, parts = body["ordinals"], body["parts"]
    found = Capture(
        report=_text(body["report"]),
        ordinals=None if ordinals is None else _each(_whole, ordinals),
        parts=None if parts is None else _each(_text, parts),
        mode=_text_or_none(body["mode"]),
    )
    if found.ordinals is not None and found.parts is not None and len(found.ordinals) != len(found.parts):
        raise ValueError(f"{len(found.ordinals)} launches with {len(found.parts)} parts")
    return found


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


# ---- one field each: Python's own conversions take "5" for 5, True for 1 and a list of letters for a text


def _each(parse_one: Callable[[Any], T], found: Any) -> tuple[T, ...]:
    if not isinstance(found, list):
        raise TypeError(f"{str(found)[:40]!r} is no list")
    return tuple(parse_one(one) for one in found)


def _text(found: Any) -> str:
    """A text that can be written and that a database takes."""
    if not isinstance(found, str) or "\0" in found:
        raise TypeError(f"{str(found)[:40]!r} is no text")
    found.encode()  # half a surrogate pair cannot be written
    return found


def _text_or_none(found: Any) -> str | None:
    return None if found is None else _text(found)


def _label(kind: str, found: Any) -> str:
    if check_label(kind, _text(found)) != found:
        raise ValueError(f"{found!r} has spaces around it")
    return _text(found)


def _one_of(found: Any, known: tuple[str, ...]) -> str:
    if found not in known:
        raise ValueError(f"{str(found)[:40]!r} is none of {', '.join(known)}")
    return _text(found)


def _whole(found: Any, least: int = 0, most: int = _MOST) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise ValueError(f"{str(found)[:40]!r} is no whole number from {least} to {most}")
    return found


def _number(found: Any) -> float | int:
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise ValueError(f"{str(found)[:40]!r} is no number")
    return found


def _small_number(found: Any) -> float:
    if not 0 <= _number(found) <= _FLOAT32:
        raise ValueError(f"{found!r} is no number from 0 to {_FLOAT32}")
    return float(found)


def _latency(found: Any) -> float:
    if not _SHORTEST_NS <= _number(found) <= _FLOAT32:
        raise ValueError(f"{found!r} is no time in ns: nothing takes none")
    return float(found)


def _free(found: Any) -> dict[str, Json]:
    """A mapping that the profiler keeps as it is; what cannot be written again raises."""
    if not isinstance(found, dict):
        raise TypeError(f"{str(found)[:40]!r} is no mapping")
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    return found


def parse_time(found: Any) -> datetime:
    """A time with its zone, in UTC: one without would be another time on every machine."""
    moment = datetime.fromisoformat(found)
    if moment.tzinfo is None:
        raise ValueError(f"{found} has no time zone")
    return moment.astimezone(UTC)


def check_inside(path: str, where: str) -> None:
    """Raise BadBundle for a path that leads out of the bundle, or that some system reads in another way."""
    parts = PurePosixPath(path).parts
    bad = not parts or path.startswith("/") or any(mark in path for mark in ("\\", ":", "\0"))
    if bad or ".." in parts or str(PurePosixPath(path)) != path:
        raise BadBundle(f"{where} names the file {path[:80]!r}, which would lie outside the bundle")


def brief_error(error: BaseException) -> str:
    """An error's type and the start of what it says."""
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 120 else f"{text[:120]}…"
