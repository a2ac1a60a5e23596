"""What a bundle is once its reports were dropped: their numbers stay, as files that have hashes of their own.

run.json is not changed: it names the reports by the sha256 that they had. dropped.json beside it says who
dropped them and when, and for each the file with its numbers. That write is the moment from which they count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from profiler.bundles.bundle import RUNS_FOLDER
from profiler.bundles.location import Root
from profiler.bundles.run import Attachment, Json, ReportFile, Run
from profiler.bundles.run_json import (
    brief_error,
    check_inside,
    parse_time,
    refuse_what_is_too_large,
    reject_repeated_keys,
)
from profiler.errors import BadBundle

DROPPED_FILE = "dropped.json"
VALUES_FOLDER = "values"
SCHEMA = 1
MAX_DROPPED_BYTES = 4 << 20  # a report takes 250
MAX_VALUES_BYTES = 512 << 20  # of 4,000 launches 100 MB
_VALUES = "values"  # the kind of the attachments below


@dataclass(frozen=True)
class DroppedReports:
    """Who dropped the reports of a run, when and why, and the files that hold their numbers."""

    dropped: datetime
    who: str
    why: str
    values: tuple[Attachment, ...]  # one a report of the run, in its order; its name is the report's sha256

    @property
    def words(self) -> str:
        """What an answer says that would need a report: 'the report was dropped on DAY by USER'."""
        who = f" by {self.who}" if self.who else ""
        why = f" ({self.why})" if self.why else ""
        return f"the report was dropped on {self.dropped:%Y-%m-%d}{who}{why}"


def values_file(report: ReportFile, sha256: str, size_bytes: int) -> Attachment:
    """The file that holds the numbers of a report."""
    return Attachment(_VALUES, report.sha256, sha256, size_bytes, values_path(report))


def values_path(report: ReportFile) -> str:
    """Where in the bundle the numbers of a report lie."""
    return f"{VALUES_FOLDER}/{report.sha256}.bin"


def load_dropped(root: Root, run: Run) -> DroppedReports | None:
    """What a sealed run says of its dropped reports; None where it has all of them. Raises BadBundle."""
    where = f"{root.url}/{RUNS_FOLDER}/{run.run_id}/{DROPPED_FILE}"
    try:
        content = root.read(f"{RUNS_FOLDER}/{run.run_id}/{DROPPED_FILE}", MAX_DROPPED_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadBundle(f"{where} cannot be read ({error.strerror or error})") from error
    return parse_dropped(content, run, where)


def dump_dropped(dropped: DroppedReports) -> bytes:
    """The content of dropped.json."""
    body: dict[str, Json] = {
        "schema": SCHEMA,
        "dropped": dropped.dropped.astimezone(UTC).isoformat(timespec="seconds"),
        "who": dropped.who,
        "why": dropped.why,
        "values": [
            {"report": file.name, "sha256": file.sha256, "size_bytes": file.size_bytes, "path": file.path}
            for file in dropped.values
        ],
    }
    return json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True).encode()


def parse_dropped(content: bytes, run: Run, where: str) -> DroppedReports:
    """What dropped.json says, every field of it checked. Raises BadBundle that names `where`."""
    if len(content) > MAX_DROPPED_BYTES:
        raise BadBundle(f"{where} has over {MAX_DROPPED_BYTES:,} bytes")
    refuse_what_is_too_large(content, where)
    try:
        body = json.loads(content, object_pairs_hook=reject_repeated_keys)
        if type(body["schema"]) is not int or body["schema"] > SCHEMA:
            raise BadBundle(f"{where} has schema {body['schema']!r}; this profiler reads up to {SCHEMA}")
        if not isinstance(body["who"], str) or not isinstance(body["why"], str):
            raise TypeError("who or why is no text")
        dropped = DroppedReports(
            parse_time(body["dropped"]),
            body["who"],
            body["why"],
            tuple(
                Attachment(_VALUES, file["report"], file["sha256"], file["size_bytes"], file["path"])
                for file in body["values"]
            ),
        )
        for file, report in zip(dropped.values, run.reports, strict=True):
            check_inside(file.path, where)
            if (file.name, file.path) != (report.sha256, values_path(report)):
                raise ValueError(f"{file.path!r} is not of the report {report.sha256[:12]}")
            if type(file.size_bytes) is not int or not 0 <= file.size_bytes <= MAX_VALUES_BYTES:
                raise ValueError(f"{file.path!r} has {file.size_bytes!r} bytes")
            if not isinstance(file.sha256, str):
                raise ValueError(f"{file.path!r} has no sha256")
    except BadBundle:
        raise
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadBundle(f"{where} does not say what was dropped ({brief_error(error)})") from error
    return dropped


def stored_files(run: Run, dropped: DroppedReports | None) -> Sequence[ReportFile | Attachment]:
    """The files that lie in the folder of a run beside run.json and dropped.json."""
    return run.contents if dropped is None else (*dropped.values, *run.files)
