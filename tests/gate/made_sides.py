"""Sides that the gate's tests judge, made in memory: facts of a build, launches under ncu, timed calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from profiler.evidence.launch import Launch, Session
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Latency, Side
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Outcome, Verdicts
from profiler.gate.judgement import judge

DURATION = "gpu__time_duration.sum"
DRAM_READ = "dram__bytes_read.sum"
EXECUTED = "smsp__inst_executed.sum"
BARRIERS = "static__opcode_BAR"
BUDGET = "static__over_budget"
SESSION = Session("2025.3.1", "580.1", "13.0", None, "ncu ./a", "none", "all", "kernel")
WARM, COLD = "events; cache warm; clock none", "events; cache cold; clock none"

_FACTS: dict[Evidence, dict[str, float | str]] = {
    Evidence.STATIC: {
        "static__registers": 64,
        "static__spill_bytes": 0,
        "static__stack_bytes": 0,
        "static__blocks_per_sm": 4,
        BARRIERS: 3,
        BUDGET: "nothing",
    },
    Evidence.MODELLED: {"modelled__bank_conflicts": 4000, "modelled__max_abs_error": 2e-4},
}


def side(*launches: Launch, version: str = "alpha", **more: Any) -> Side:
    """Launches of one version under ncu on a GPU."""
    plain = Side(
        f"mine/{version}",
        launches,
        "NVIDIA H100",
        "9.0",
        "2x8x512x64",
        "fp16",
        Evidence.MEASURED,
        SESSION,
        "mine",
        version,
        f"run-of-{version}",
    )
    return replace(plain, **more)


def facts(
    evidence: Evidence = Evidence.STATIC, *, wrong: str | None = None, **changes: float | str | None
) -> Side:
    """What the compiler, or a run on the CPU, says of a version; None takes a fact out."""
    contents = {**_FACTS[evidence], **changes}
    values = {
        name: Value(None, text=content) if isinstance(content, str) else Value(content)
        for name, content in contents.items()
        if content is not None
    }
    launch = Launch("main", "main", "", None, None, None, (), 0, pack_values(values))
    gpu = "sm_80" if evidence is Evidence.STATIC else None
    workload = "head dim 64" if evidence is Evidence.STATIC else "1x1x8x64"
    return side(
        launch,
        gpu=gpu,
        compute_capability=None,
        workload=workload,
        evidence=evidence,
        session=Session(),
        wrong=wrong,
    )


def launch(ns: float | None, name: str = "kernel", ordinal: int = 0, **counters: float) -> Launch:
    """One launch and how long it took, with the counters named by ncu; None: its duration failed."""
    values = {DURATION: Value(ns, "ns", state=State.FAILED if ns is None else State.PRESENT)}
    values |= {
        metric: Value(number, "byte" if "byte" in metric else "inst") for metric, number in counters.items()
    }
    return Launch(name, name, "", (64, 1, 1), (128, 1, 1), 7, (), ordinal, pack_values(values))


def calls(factor: float = 1.0, *, run: str = "together", mode: str = WARM, seed: int = 1) -> Latency:
    """25 rounds of 4 calls of about a millisecond; the rounds of one run share their states."""
    state = np.repeat(1 + 0.05 * np.random.default_rng(crc32(run.encode())).random(25), 4)
    jitter = np.exp(np.random.default_rng(seed).normal(0, 0.004, 100))
    return Latency(
        run,
        mode,
        (1e6 * factor * state * jitter).astype(np.float32),
        np.repeat(np.arange(25, dtype=np.uint16), 4),
        np.array([], np.float32),
        np.array([], np.uint32),
        None,
        "source -O3",
    )


def pair(a: Side | None, b: Side | None, **more: Any) -> ComparisonPair:
    """Two sides as the gate finds them: `mine/alpha` beside `mine/zero`."""
    of = b or a
    cell = (of.workload or "", of.gpu or "", of.evidence) if of else ("", "", "")
    return replace(ComparisonPair("mine/alpha", "mine/zero" if a else "", a, b, *cell), **more)


def judged(
    a: Side | None, b: Side | None, table: MetricTable, *, on: tuple[str, ...] = (), **more: Any
) -> Verdicts:
    """What the gate says of one pair; `more` are its other fields."""
    return judge([pair(a, b, **more)], table, on=on)


def lines(verdicts: Verdicts, outcome: Outcome) -> list[str]:
    """The lines of the findings with an outcome."""
    return [finding.line for finding in verdicts.of(outcome)]
