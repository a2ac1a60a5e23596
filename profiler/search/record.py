"""One candidate as the journal keeps it: where it came from, what was found out, how it stands to others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from profiler.errors import BadBundle
from profiler.evidence.values import Evidence
from profiler.statistics.verdict import Verdict

SCHEMA = 1
_VERDICTS = {str(verdict): verdict for verdict in Verdict}
SEED = 0  # the number of the version that a search begins with


class Status(StrEnum):
    """What became of a candidate."""

    VALID = "valid"  # judged, and right
    REFUSED = "refused"  # judged, and not right; the stage says why
    UNKNOWN = "unknown"  # judged, and not known to be right
    SLOWER = "slower"  # not judged: its modelled time is beyond every elite's by more than the model's error
    SAME_SOURCE = "same source"  # as another candidate's: not judged again
    SAME_CODE = "same code"  # another source, and the machine code of another candidate
    NO_CANDIDATE = "no candidate"  # the generator failed, did not end, or left nothing that can be read


@dataclass(frozen=True)
class PairVerdict:
    """How a candidate stands to another one over all agreed workloads."""

    verdict: Verdict
    evidence: Evidence
    ratio: float | None  # geometric mean of the times over the other's; None where one is not known
    by_workload: Mapping[str, str] = field(default_factory=dict)
    confirmed: bool = False  # of a measured one: two measurements on their own say so

    def to_dict(self) -> dict[str, Any]:
        """The verdict by name."""
        return {
            "verdict": str(self.verdict),
            "evidence": str(self.evidence),
            "ratio": self.ratio,
            "by_workload": dict(self.by_workload),
            "confirmed": self.confirmed,
        }


@dataclass(frozen=True)
class SearchRecord:
    """A candidate of a search. Records are never changed; the archive follows from them alone."""

    number: int  # c41 is 41; the seed is 0
    status: Status
    order: int = 0  # of a hybrid logical clock: records count in this order
    created: str = ""  # ISO 8601, UTC
    content_id: str = ""  # of its manifest and files; "" where there is no candidate
    code_id: str = ""  # of its machine code; "" where none was made
    parent: int | None = None
    same_as: int | None = None  # the candidate with the same source or code
    generator: str = ""
    levers: tuple[str, ...] = ()  # what its author says it changed
    why: str = ""
    arm: str = ""  # "insights" or "control": without them; "" of the seed
    offered: tuple[str, ...] = ()  # kinds of insights that there were of the parent
    shown: tuple[str, ...] = ()  # those in the prompt
    prompt_sha256: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)  # by part: generator, screening, judge
    macros: Mapping[str, str] = field(default_factory=dict)
    stage: str = ""  # that refused it, or left it unknown
    reason: str = ""
    stages: tuple[Mapping[str, Any], ...] = ()
    score: float | None = None
    times: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by workload, ns
    facts: Mapping[str, Any] = field(default_factory=dict)
    insights: tuple[Mapping[str, Any], ...] = ()
    verdicts: Mapping[str, PairVerdict] = field(
        default_factory=dict
    )  # by content id: the elites, the parent, the seed

    @property
    def name(self) -> str:
        """As it is called everywhere: c41; the first one is the seed."""
        return candidate_name(self.number)

    @property
    def is_valid(self) -> bool:
        """Whether it was judged and is right: nothing else has a speed."""
        return self.status is Status.VALID

    @property
    def evidence(self) -> Evidence:
        """Of its times."""
        kinds = {time.get("evidence") for time in self.times.values()}
        return Evidence.MEASURED if Evidence.MEASURED.value in kinds else Evidence.MODELLED

    def time_ns(self, workload: str) -> float | None:
        """Its time on a workload; None where it is not known."""
        value = self.times.get(workload, {}).get("likely_ns")
        return None if value is None else float(value)


def candidate_name(number: int) -> str:
    """What a candidate of a number is called."""
    return f"c{number}"


def record_content(record: SearchRecord) -> bytes:
    """The file of a record. Raises ValueError for a number that JSON has not."""
    body: dict[str, Any] = {"schema": SCHEMA, **asdict(record)}
    body["verdicts"] = {name: verdict.to_dict() for name, verdict in record.verdicts.items()}
    return json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False).encode()


def parse_record(content: bytes, where: str) -> SearchRecord:
    """The record in a file. Raises BadBundle that names it."""
    try:
        body = json.loads(content)
        if body["schema"] > SCHEMA:
            raise BadBundle(f"{where} has schema {body['schema']}; this profiler reads up to {SCHEMA}")
        known = {item.name for item in fields(SearchRecord)}
        values = {name: value for name, value in body.items() if name in known}
        for name in ("levers", "offered", "shown", "stages", "insights"):
            values[name] = tuple(values.get(name, ()))
        values["status"] = Status(values["status"])
        values["verdicts"] = {
            name: PairVerdict(
                _VERDICTS[row["verdict"]],
                Evidence(row["evidence"]),
                row["ratio"],
                row["by_workload"],
                row["confirmed"],
            )
            for name, row in values.get("verdicts", {}).items()
        }
        if type(values["number"]) is not int or type(values["order"]) is not int:
            raise TypeError("number and order are whole numbers")
        return SearchRecord(**values)
    except BadBundle:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadBundle(
            f"{where} is no record of a search ({type(error).__name__}: {error}): correct or remove the file"
        ) from error
