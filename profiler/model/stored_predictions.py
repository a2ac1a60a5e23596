"""Predictions as a run keeps them in one file, and the newest of a family."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from profiler.bundles import bundle
from profiler.bundles.location import Root, open_root
from profiler.errors import BadBundle
from profiler.evidence.values import Evidence
from profiler.model.error_table import ErrorTable, load_errors
from profiler.sass.listing import FileLine

if TYPE_CHECKING:  # a page that shows predictions loads nothing of the model that made them
    from profiler.model.prediction import LaunchPrediction
    from profiler.model.version_prediction import VersionPrediction
    from profiler.store.index import Store

KIND = "predictions"  # of the attachment, and its folder in the bundle
FILE = f"{KIND}/times.json.gz"
_LEAST_SHARE = 0.002  # of a launch's time: lines and instructions below it are left out
_MOST_BYTES = 64 << 20
_MOST_RUNS = 20  # with static facts, that are looked into


UNCLEAR_BELOW = 0.15  # a modelled difference under this share of the time says nothing
FASTER, SLOWER, UNCLEAR = "faster", "slower", "unclear"


@dataclass(frozen=True)
class PredictedRatio:
    """A modelled time over another one, with the range of eight of ten known pairs."""

    against: str
    ratio: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the difference is UNCLEAR_BELOW at least, and its range on one side of 1."""
        return abs(self.ratio - 1) >= UNCLEAR_BELOW and not self.low <= 1 <= self.high

    @property
    def word(self) -> str:
        """Faster, slower, or unclear."""
        if not self.is_clear:
            return UNCLEAR
        return FASTER if self.ratio < 1 else SLOWER


def predicted_ratio(ns: float, other_ns: float, against: str, errors: ErrorTable) -> PredictedRatio:
    """The ratio of two modelled times with its range."""
    ratio = ns / other_ns
    return PredictedRatio(against, ratio, *errors.ratio_range(ratio))


@dataclass(frozen=True)
class StoredPrediction:
    """A version's modelled time on one workload and GPU. Times in nanoseconds."""

    version: str
    workload: str
    gpu: str
    arch: str
    time_ns: float | None  # None: there is no model
    low_ns: float | None
    high_ns: float | None
    limiter: str  # a resource of `utilisation`; else a word for that there is none
    limiter_saves: float
    utilisation: Mapping[str, float]
    no_model: str
    stalls: Mapping[str, float] = field(default_factory=dict)
    lines: Mapping[FileLine, float] = field(default_factory=dict)  # share of the time, largest first
    factors: Mapping[str, Any] = field(default_factory=dict)  # of its time identity: see time_factors
    function: str = ""  # that `instructions` are of
    instructions: Mapping[int, float] = field(default_factory=dict)  # share by byte offset


@dataclass(frozen=True)
class StoredPredictions:
    """Predictions of one run, or the newest of each version of a family."""

    run_id: str  # the newest
    created: datetime
    note: str  # where the ranges come from
    predictions: tuple[StoredPrediction, ...]

    def of(self, version: str, workload: str, gpu: str) -> StoredPrediction | None:
        """The prediction of one version, workload and GPU."""
        return next(
            (p for p in self.predictions if (p.version, p.workload, p.gpu) == (version, workload, gpu)), None
        )

    def on(self, workload: str, gpu: str) -> dict[str, StoredPrediction]:
        """The predictions on one workload, whatever its dtype, and GPU, by version."""
        return {p.version: p for p in self.predictions if p.gpu == gpu and _same_shape(p.workload, workload)}

    def of_code(self, version: str, arch: str) -> StoredPrediction | None:
        """The first prediction of a version's code for an architecture that has shares by line."""
        return next((p for p in self.predictions if (p.version, p.arch) == (version, arch) and p.lines), None)

    def fastest(self, versions: Sequence[str]) -> list[StoredPrediction]:
        """Those of the versions that the model cannot tell from the fastest, on the first workload and GPU.

        In the order given; none where no version has a modelled time.
        """
        if not self.predictions:
            return []
        on_first = self.on(self.workloads[0], self.gpus[0])
        times = {v: on_first[v].time_ns for v in versions if v in on_first}
        known = {version: time_ns for version, time_ns in times.items() if time_ns}
        limit = min(known.values(), default=0.0) / (1 - UNCLEAR_BELOW)
        return [on_first[version] for version, time_ns in known.items() if time_ns <= limit]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in the order of the file."""
        return tuple(dict.fromkeys(prediction.gpu for prediction in self.predictions))

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads, in the order of the file."""
        return tuple(dict.fromkeys(prediction.workload for prediction in self.predictions))


def _same_shape(label: str, other: str) -> bool:
    """Whether two labels differ in their dtype alone."""
    return [word for word in label.split() if word != "fp8"] == [w for w in other.split() if w != "fp8"]


def pack_predictions(predictions: Sequence[VersionPrediction], errors: ErrorTable) -> bytes:
    """The file that a run keeps. Equal predictions give equal bytes."""
    content = {
        "note": range_note(errors, [launch for one in predictions for launch in one.launches]),
        "predictions": [_packed(prediction) for prediction in predictions],
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), mtime=0)


def range_note(errors: ErrorTable, launches: Sequence[LaunchPrediction]) -> str:
    """What the ranges of these launches are, by how their traffic is known: a sentence without its stop."""
    is_known = all(launch.hits is not None for launch in launches)
    is_modelled = any(launch.traffic is not None for launch in launches)
    return _range_words(errors, is_known=is_known, is_modelled=is_modelled)


def _range_words(errors: ErrorTable, *, is_known: bool, is_modelled: bool) -> str:
    count = errors.launches_behind(has_traffic=is_known)
    note = (
        f"Modelled, not measured: a range is the middle 80 % of measured/modelled time over {count} public "
        f"launches {'with measured' if is_known else 'without known'} traffic that the model was not tuned on"
    )
    is_wider = is_known and is_modelled
    return f"{note}; here traffic is modelled too, so expect larger errors" if is_wider else note


def _note_of(stored: StoredPredictions) -> str:
    """Where the ranges of a run come from: older words in those of now where its ranges are now's."""
    errors = load_errors()
    of_now = (_range_words(errors, is_known=a, is_modelled=b) for a, b in product((True, False), repeat=2))
    if stored.note in of_now:
        return stored.note
    low, high = errors.cycles_range(1.0, has_traffic=True, has_controls=True, has_addresses=True)
    is_of_now = any(
        math.isclose(one.low_ns, low * one.time_ns) and math.isclose(one.high_ns, high * one.time_ns)
        for one in stored.predictions
        if one.time_ns is not None and one.low_ns is not None and one.high_ns is not None
    )
    return _range_words(errors, is_known=True, is_modelled=True) if is_of_now else stored.note


def _packed(prediction: VersionPrediction) -> dict[str, Any]:
    longest = prediction.longest
    packed: dict[str, Any] = {
        "version": prediction.version.id,
        "workload": prediction.workload.label,
        "gpu": prediction.gpu.name,
        "arch": prediction.arch,
        "time_ns": prediction.likely_ns,
        "low_ns": prediction.low_ns,
        "high_ns": prediction.high_ns,
        "no_model": prediction.no_model,
    }
    if longest is None:
        return packed
    packed |= {
        "limiter": longest.limiter,
        "limiter_saves": round(longest.limiter_saves, 4),
        "utilisation": {name: round(share, 4) for name, share in longest.utilisation.items()},
        "stalls": {name: round(share, 4) for name, share in longest.simulation.stalls.items()},
        "lines": [
            [
                PurePath(file).name,
                line,
                round(share, 4),
            ]  # a bundle says nothing of the folders it was made in
            for (file, line), share in longest.line_shares.items()
            if share >= _LEAST_SHARE
        ],
        "factors": longest.time_factors,
        "function": longest.function,
        "instructions": {
            str(16 * position): round(float(share), 4)
            for position, share in enumerate(longest.instruction_shares)
            if share >= _LEAST_SHARE
        },
    }
    return packed


def find_predictions(root: Root, store: Store, family: str) -> StoredPredictions | None:
    """Of each version of a family the predictions of the newest run that has some; None where none has.

    A run of a few versions leaves the others theirs. Those of the run with most come first, so that its
    workloads and GPUs do. Raises BadBundle for a damaged file.
    """
    return _find(root.url, store, store.data_version(), family)


@lru_cache(maxsize=4)  # a table of versions asks for each of them
def _find(url: str, store: Store, _data_version: str, family: str) -> StoredPredictions | None:
    root = open_root(url)
    rows = store.results(family=family, evidence=Evidence.STATIC, kind="facts", latest=False)
    newest_first = sorted({(row.created, row.run_id) for row in rows}, reverse=True)
    missing = {row.version for row in rows}
    found: list[StoredPredictions] = []
    for _, run_id in newest_first[:_MOST_RUNS]:
        in_run = missing & {row.version for row in rows if row.run_id == run_id}
        if not in_run:
            continue
        run = bundle.load_outline(root, run_id)  # for its files alone
        entry = next((file for file in run.files if file.kind == KIND), None)
        if entry is not None:
            content = bundle.read_content(root, run.run_id, entry)
            stored = unpack_predictions(content, run.run_id, run.created)
            own = tuple(prediction for prediction in stored.predictions if prediction.version in in_run)
            found.append(replace(stored, predictions=own))
            missing -= in_run  # those that it has no time of are wrong
    if not found:
        return None
    most_first = sorted(found, key=lambda stored: -len(stored.predictions))
    notes = dict.fromkeys(_note_of(stored) for stored in most_first if stored.predictions)
    return StoredPredictions(
        found[0].run_id,
        found[0].created,
        "; ".join(notes),
        tuple(prediction for stored in most_first for prediction in stored.predictions),
    )


def unpack_predictions(content: bytes, run_id: str, created: datetime) -> StoredPredictions:
    """The predictions in a file of a run. Raises BadBundle where it is none."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError("too large")
        document = json.loads(text)
        predictions = tuple(_unpacked(entry) for entry in document["predictions"])
        return StoredPredictions(run_id, created, str(document["note"]), predictions)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadBundle(f"run {run_id}: {FILE} is damaged: {type(error).__name__}") from None


def _unpacked(entry: Mapping[str, Any]) -> StoredPrediction:
    def number(name: str) -> float | None:
        value = entry[name]
        return None if value is None else float(value)

    return StoredPrediction(
        version=str(entry["version"]),
        workload=str(entry["workload"]),
        gpu=str(entry["gpu"]),
        arch=str(entry["arch"]),
        time_ns=number("time_ns"),
        low_ns=number("low_ns"),
        high_ns=number("high_ns"),
        limiter=str(entry.get("limiter", "")),
        limiter_saves=float(entry.get("limiter_saves", 0.0)),
        utilisation={str(name): float(share) for name, share in entry.get("utilisation", {}).items()},
        no_model=str(entry["no_model"]),
        stalls={str(name): float(share) for name, share in entry.get("stalls", {}).items()},
        lines={(str(file), int(line)): float(share) for file, line, share in entry.get("lines", [])},
        factors=_factors(entry.get("factors", {})),
        function=str(entry.get("function", "")),
        instructions={int(offset): float(share) for offset, share in entry.get("instructions", {}).items()},
    )


def _factors(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The factors of a time identity: numbers by name, and the stalls by reason."""
    factors: dict[str, Any] = {str(name): float(value) for name, value in entry.items() if name != "stalls"}
    if factors:
        factors["stalls"] = {str(reason): float(value) for reason, value in entry["stalls"].items()}
    return factors
