"""Turns a run with its reports into the rows of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from profiler.bundles.run import IMPORT, NOISE, Capture, Labels, Result, Run, launch_parts, ncu_mode
from profiler.bundles.run_json import brief_error
from profiler.errors import BadBundle
from profiler.evidence.launch import Launch, Report, Session, only
from profiler.evidence.values import NCU_DURATION, NOT_COLLECTED, Evidence, MetricSet, Values, pack_values
from profiler.store import packing
from profiler.store.schema import key, version_key
from profiler.store.statements import microseconds

Row = dict[str, Any]
# A run, its reports by sha256, and what was decided about it.
RunItem = tuple[Run, Mapping[str, Report], Labels | None]

_shared_key = lru_cache(maxsize=1 << 14)(key)  # of what most runs of a history have alike
_MOST_LAUNCHES = 2**31  # an INTEGER column of PostgreSQL takes no larger number


@dataclass
class RunRows:
    """Everything that one run puts into the index."""

    run: Row
    reports: list[Row] = field(default_factory=list)
    versions: dict[int, Row] = field(default_factory=dict)
    cells: dict[tuple[int, str, str], Row] = field(default_factory=dict)
    configs: dict[int, Row] = field(default_factory=dict)
    kernels: dict[int, Row] = field(default_factory=dict)
    metric_sets: dict[int, Row] = field(default_factory=dict)
    results: list[Row] = field(default_factory=list)
    payloads: list[Row] = field(default_factory=list)


def make_rows(item: RunItem) -> RunRows:
    """The rows of a run. They follow from the run and its decisions alone, whatever else the index holds.

    Raises BadBundle for a run that cannot be indexed, whatever the reason: it must not stop the others.
    """
    try:
        return _Builder(*item).build()
    except BadBundle:
        raise
    except Exception as error:
        raise BadBundle(f"run {item[0].run_id} does not fit into the index ({brief_error(error)})") from error


class _Builder:
    """Collects the rows of one run, result by result."""

    def __init__(self, run: Run, reports: Mapping[str, Report], labels: Labels | None) -> None:
        self.of = run
        self.reports = reports
        self.labels = labels or Labels()
        self.key = key(run.run_id)
        self.created = microseconds(run.created)
        self.set_keys: dict[int, int] = {}  # the row key of each metric set seen, by its id()
        self.sets_kept_alive: list[MetricSet] = []  # since Python reuses the id() of a freed object
        self.evidence: set[Evidence] = set()
        self.by_ordinal: dict[str, dict[int, Launch]] = {}  # the launches of each report

    def build(self) -> RunRows:
        """The rows of the run. What its provenance says goes before what its first report says."""
        first = self._report(self.of.reports[0].sha256) if self.of.reports else None
        session = first.session if first is not None else Session()
        provenance = self.of.provenance

        def text(name: str, otherwise: str | None) -> str | None:
            return _text(provenance.get(name)) or _text(otherwise)

        reports = [self._report(file.sha256) for file in self.of.reports]
        # What it timed ran on the GPU of its provenance; a launch says its own.
        self.gpu = text("gpu", only(gpu for report in reports for gpu in report.gpus))
        capabilities = (launch.compute_capability for report in reports for launch in report.launches)
        self.capability = text("compute_capability", only(capabilities))
        gpus = self._gpus()
        self.rows = RunRows(
            run={
                "id": self.key,
                "run_id": self.of.run_id,
                "kind": self.of.kind,
                "created": self.created,
                "hidden": self.labels.hidden,
                "labels": labels_json(self.labels),
                "gpu": self.gpu if len(gpus) < 2 else None,
                "compute_capability": self.capability if len(gpus) < 2 else only(gpus.values()),
                "driver": text("driver", session.driver),
                "ncu_version": text("ncu_version", session.ncu_version),
                "cuda": text("cuda", session.cuda),
                "host": text("host", None),
                "command_line": text("command_line", session.command_line),
                "clock_control": text("clock_control", session.clock_control),
                "cache_control": text("cache_control", session.cache_control),
                "provenance": packing.compact_json(dict(provenance)),
                "gpus": packing.compact_json(gpus),
            }
        )
        for position, file in enumerate(self.of.reports):
            report = self._report(file.sha256)
            self.rows.reports.append(
                {
                    "id": self._report_key(file.sha256),
                    "run": self.key,
                    "position": position,
                    "sha256": file.sha256,
                    "name": _text(file.name) or "",
                    "size_bytes": file.size_bytes,
                    "path": file.path,
                    "gpu": _text(report.gpu),
                    "compute_capability": report.compute_capability,
                    "session": packing.session_json(report.session),
                }
            )
        for result in self.of.results:
            self._add_result(result)
        launches = sum(row["kind"] == "launch" for row in self.rows.results)
        self.rows.run |= {"launches": launches, "evidence": ",".join(sorted(self.evidence))}
        return self.rows

    def _gpus(self) -> dict[str, str | None]:
        """The compute capability of each GPU by its name: of its launches, else as its provenance says."""
        gpus: dict[str, str | None] = {}
        for file in self.of.reports:
            for launch in self._report(file.sha256).launches:
                if name := _text(launch.gpu):
                    gpus[name] = gpus.get(name) or launch.compute_capability
        is_timed = any(result.samples for result in self.of.results)
        if self.gpu and (not gpus or (is_timed and self.gpu not in gpus)):  # timed on another than profiled
            gpus[self.gpu] = self.capability
        return gpus

    def _add_result(self, result: Result) -> None:
        # Only imports can be relabelled: the versions of a collected run are those of its catalogue.
        labels = self.labels if self.of.kind == IMPORT else Labels()
        self.family = _text(labels.family or result.family) or ""
        self.workload = _text(labels.workload if labels.workload is not None else result.workload) or ""
        name = _text(labels.version or result.version) or ""
        self.version = version_key(self.family, name)
        status, reason = result.outcome
        self.status = {"status": status, "reason": _text(reason)}
        is_new_version = self.version not in self.rows.versions
        self.rows.versions[self.version] = {"id": self.version, "family": self.family, "name": name}
        about = {
            "problem": dict(result.problem),
            "source_sha256": result.source_sha256,
            "flags": list(result.flags),
            "check": None if result.check is None else dict(result.check),
        }
        before = len(self.rows.results)
        for capture in result.captures:
            self._add_capture(capture)
        for facts in result.facts:
            values = pack_values(facts.values)
            launch = Launch(facts.part, facts.part, "", None, None, None, (), 0, values, facts.opcodes)
            self._add_row(
                "facts", facts.evidence, facts.mode, facts.part, launch.base_name, _text(facts.target), launch
            )
        # The sessions of a noise run get a part of their own: they are no newer latencies of the version.
        is_noise = self.of.provenance.get("purpose") == NOISE
        kind, part = ("noise", "noise") if is_noise else ("latency", "total")
        for samples in result.samples:
            from statistics import median  # of imported reports no calls were timed, and it takes 5 ms

            self._add_row(kind, Evidence.MEASURED, samples.mode, part, "total", self.gpu)
            self.rows.results[-1] |= {
                "median_ns": median(samples.ns) if samples.ns else None,
                "samples": len(samples.ns),
            }
            self.rows.payloads.append(
                _payload(
                    self.rows.results[-1]["id"],
                    samples=np.asarray(samples.ns, "<f4").tobytes(),
                    rounds=np.asarray(samples.rounds, "<u2").tobytes(),
                    clocks=np.asarray(samples.clocks_mhz, "<f4").tobytes(),
                    throttled=np.asarray(samples.throttled, "<u4").tobytes(),
                    processes=np.asarray(samples.processes, "<u2").tobytes(),
                )
            )
        if len(self.rows.results) == before:  # wrong, failed or skipped before anything was measured
            self._add_row("cell", Evidence.MEASURED, "", "total", "total", self.gpu)
        # Facts name the GPU or architecture that they hold for: they are filed under that of the run.
        measured = (row for row in self.rows.results[before:] if row["kind"] != "facts")
        of_rows = dict.fromkeys(self.rows.configs[row["config"]]["gpu"] for row in measured)
        content = packing.compact_json({name: content for name, content in about.items() if content})
        for gpu in of_rows or (self.gpu or "",):
            of_cell = (self.version, self.workload)
            # Several results of a run may be of one version and workload: the first describes the cell.
            describes = not any(known[:2] == of_cell for known in self.rows.cells)
            self.rows.cells.setdefault(
                (*of_cell, gpu),
                {
                    "run": self.key,
                    "version": self.version,
                    "workload": self.workload,
                    "created": self.created,
                    "hidden": self.labels.hidden,
                    "gpu": gpu,
                    "counts": int(is_new_version),
                    "describes": int(describes),
                    "about": content,
                },
            )
            is_new_version = False

    def _add_capture(self, capture: Capture) -> None:
        report = self._report(capture.report)
        launches: Sequence[Launch] = report.launches
        if capture.ordinals is not None:
            if report.sha256 not in self.by_ordinal:
                self.by_ordinal[report.sha256] = {launch.ordinal: launch for launch in report.launches}
            by_ordinal = self.by_ordinal[report.sha256]
            missing = [ordinal for ordinal in capture.ordinals if ordinal not in by_ordinal]
            if missing:
                raise BadBundle(
                    f"run {self.of.run_id}: {report.name} has no launch {missing[0]}, which run.json names"
                )
            launches = [by_ordinal[ordinal] for ordinal in capture.ordinals]
        parts = capture.parts if capture.parts is not None else launch_parts(launches)
        if len(parts) != len(launches):
            counts = f"{len(parts)} parts for {len(launches)} launches"
            raise BadBundle(f"run {self.of.run_id} names {counts} of {report.name}")
        mode = capture.mode if capture.mode is not None else ncu_mode(report.session)
        of_report = _text(report.gpu) or self.gpu  # a run may hold reports of several GPUs
        for launch, part in zip(launches, parts, strict=True):
            gpu = _text(launch.gpu) or of_report  # and a report launches of several
            self._add_row("launch", Evidence.MEASURED, mode, part, launch.base_name, gpu, launch)
            self.rows.results[-1]["report"] = self._report_key(report.sha256)

    def _add_row(
        self,
        kind: str,
        evidence: Evidence,
        mode: str,
        part: str,
        base_name: str,
        gpu: str | None,
        launch: Launch | None = None,
    ) -> None:
        part, base_name = _text(part) or "", _text(base_name) or ""
        identity = (self.family, self.workload, gpu or "", str(evidence), mode, part)
        config_key = _shared_key("config", *identity)
        names = ("family", "workload", "gpu", "evidence", "mode", "part")
        self.rows.configs[config_key] = {
            "id": config_key,
            **dict(zip(names, identity, strict=True)),
            "base_name": base_name,
        }
        self.evidence.add(evidence)
        position = len(self.rows.results)
        # The duration has a column of its own: lists and overviews show it without reading payloads.
        duration = NOT_COLLECTED if launch is None else launch.values.value(NCU_DURATION)
        ordinal = position if launch is None or kind == "facts" else launch.ordinal
        if not 0 <= ordinal < _MOST_LAUNCHES:
            raise BadBundle(f"run {self.of.run_id} has a launch number {ordinal}")
        row: Row = {
            "id": key("result", self.of.run_id, position),
            "run": self.key,
            "config": config_key,
            "version": self.version,
            "created": self.created,
            "is_latest": False,  # set when it is inserted
            "position": position,
            "ordinal": ordinal,
            "kind": kind,
            **self.status,
            "report": None,
            "kernel": None,
            "grid": None if launch is None else size_text(launch.grid),
            "block": None if launch is None else size_text(launch.block),
            "duration": None if duration.number is None else float(duration.number),
            "duration_unit": duration.unit,
            "duration_state": int(duration.state),
            "median_ns": None,
            "samples": 0,
            "metric_set": None,
        }
        self.rows.results.append(row)
        if launch is not None:
            row["kernel"] = self._kernel(launch)
            row["metric_set"] = self._metric_set(launch.values)
            packed = packing.pack_launch(launch)
            self.rows.payloads.append(
                _payload(row["id"], packed.slots, packed.states, texts=packed.texts, extras=packed.extras)
            )

    def _kernel(self, launch: Launch) -> int:
        names = [_text(name) or "" for name in (launch.function, launch.demangled, launch.mangled)]
        kernel_key = _shared_key("kernel", *names)
        columns = ("function", "demangled", "mangled")
        self.rows.kernels[kernel_key] = {"id": kernel_key, **dict(zip(columns, names, strict=True))}
        return kernel_key

    def _metric_set(self, values: Values) -> int:
        metric_set = values.metric_set
        if id(metric_set) not in self.set_keys:
            self.sets_kept_alive.append(metric_set)
            names, units = packing.compact_json(metric_set.names), packing.compact_json(metric_set.units)
            set_key = self.set_keys[id(metric_set)] = key("set", names, units, metric_set.kinds)
            self.rows.metric_sets[set_key] = {
                "id": set_key,
                "names": names,
                "units": units,
                "kinds": metric_set.kinds,
            }
        return self.set_keys[id(metric_set)]

    def _report(self, sha256: str) -> Report:
        if sha256 not in self.reports:
            raise BadBundle(f"run {self.of.run_id} names the report {sha256[:12]}, which was not read")
        return self.reports[sha256]

    def _report_key(self, sha256: str) -> int:
        return key("report", self.of.run_id, sha256)


def labels_json(labels: Labels) -> str:
    """The decisions about a run as the index stores which ones it applied."""
    return packing.compact_json([labels.family, labels.version, labels.workload, labels.hidden])


def size_text(size: tuple[int, int, int] | None) -> str | None:
    """A grid or block as the index stores it: "128,1,1"."""
    return None if size is None else ",".join(map(str, size))


def _payload(
    result: int,
    slots: bytes = b"",
    states: bytes = b"",
    *,
    texts: str | None = None,
    extras: str | None = None,
    samples: bytes | None = None,
    rounds: bytes | None = None,
    clocks: bytes | None = None,
    throttled: bytes | None = None,
    processes: bytes | None = None,
) -> Row:
    return {
        "result": result,
        "slots": slots,
        "states": states,
        "texts": texts,
        "extras": extras,
        "samples": samples,
        "rounds": rounds,
        "clocks": clocks,
        "throttled": throttled,
        "processes": processes,
    }


def _text(content: Any) -> str | None:
    """Text that both databases accept: PostgreSQL takes no NUL, and neither takes half a surrogate pair."""
    if content is None:
        return None
    if isinstance(content, str) and content.isascii() and "\0" not in content:
        return content
    return str(content).replace("\0", "").encode("utf-8", "replace").decode()
