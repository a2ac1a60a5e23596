"""How a run is written as run.json and read again: the same run gives the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from profiler.errors import BadBundle
from profiler.run import Attachment, Capture, Facts, Json, ReportFile, Result, Run, Samples
from profiler.values import Evidence, State, Value

RUN_FILE = "run.json"
SCHEMA = 1
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9@+=_.-]{0,239}")


def dump(run: Run) -> bytes:
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


def parse(content: bytes, where: str) -> Run:
    """The run in run.json. Raises BadBundle that names `where`."""
    try:
        body = json.loads(content)
        schema = int(body["schema"])
        if schema > SCHEMA:
            raise BadBundle(f"{where} has schema {schema}; this profiler reads up to {SCHEMA}: update it")
        run = Run(
            run_id=str(body["run_id"]),
            kind=str(body["kind"]),
            created=datetime.fromisoformat(body["created"]).astimezone(UTC),
            provenance=dict(body["provenance"]),
            results=tuple(parse_result(result) for result in body["results"]),
            reports=tuple(ReportFile(**report) for report in body["reports"]),
            files=tuple(Attachment(**attachment) for attachment in body["files"]),
            continues=body["continues"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadBundle(f"{where} is no run.json of a bundle ({short(error)})") from error
    if not _RUN_ID.fullmatch(run.run_id):
        raise BadBundle(f"{where} names the run {run.run_id[:80]!r}, which cannot be a folder's name")
    known = {RUN_FILE}
    for file in run.contents:
        check_inside(file.path, where)
        if file.path in known or file.size_bytes < 0:
            raise BadBundle(f"{where} names {file.path} twice or with an impossible size")
        known.add(file.path)
    return run


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


def parse_result(body: Mapping[str, Any]) -> Result:
    """The result in what dump_result gave."""
    return Result(
        family=str(body["family"]),
        version=str(body["version"]),
        workload=body["workload"],
        problem=dict(body["problem"]),
        status=str(body["status"]),
        reason=body["reason"],
        source_sha256=body["source_sha256"],
        flags=tuple(body["flags"]),
        check=body["check"],
        samples=tuple(
            Samples(
                mode=str(block["mode"]),
                ns=tuple(float(sample) for sample in block["ns"]),
                rounds=tuple(block["rounds"]),
                clocks_mhz=tuple(block["clocks_mhz"]),
                throttled=tuple(block["throttled"]),
            )
            for block in body["samples"]
        ),
        facts=tuple(
            Facts(
                evidence=Evidence(block["evidence"]),
                part=str(block["part"]),
                target=block["target"],
                mode=str(block["mode"]),
                opcodes=dict(block["opcodes"]),
                values={name: _parse_value(*value) for name, *value in block["values"]},
            )
            for block in body["facts"]
        ),
        captures=tuple(
            Capture(
                report=str(capture["report"]),
                ordinals=None if capture["ordinals"] is None else tuple(capture["ordinals"]),
                parts=None if capture["parts"] is None else tuple(capture["parts"]),
                mode=capture["mode"],
            )
            for capture in body["captures"]
        ),
    )


def _dump_value(value: Value) -> list[Json]:
    """[number or text, unit], or [null, unit, state]."""
    if value.state is not State.PRESENT:
        return [None, value.unit, int(value.state)]
    return [value.number if value.text is None else value.text, value.unit]


def _parse_value(content: float | int | str | None, unit: str, state: int = 0) -> Value:
    if isinstance(content, str):
        return Value(None, unit, content)
    return Value(content, unit, state=State(state))


def check_inside(path: str, where: str) -> None:
    """Raise BadBundle for a path that leads out of the bundle, or that some system reads in another way."""
    parts = PurePosixPath(path).parts
    bad = not parts or path.startswith("/") or any(mark in path for mark in ("\\", ":", "\0"))
    if bad or ".." in parts or str(PurePosixPath(path)) != path:
        raise BadBundle(f"{where} names the file {path[:80]!r}, which would lie outside the bundle")


def short(error: BaseException) -> str:
    """An error's type and the start of what it says."""
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 120 else f"{text[:120]}…"
