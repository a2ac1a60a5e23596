"""How far modelled time is from measured time: the model over reports that have counts and machine code.

    python bench/predict.py FOLDER…                       errors by level, architecture and repository
    python bench/predict.py FOLDER… --launches            a line a launch as well
    python bench/predict.py FOLDER… --tuned NAME --write  write profiler/model/errors.json too, whose figures
                                                          the program quotes: after a changed model

A FOLDER has a folder of reports for each repository, named `owner+name` or `owner+name@commit`; a report
counts as of its own folder. Nothing is fetched, and nothing of the reports enters the repository but the
numbers that this prints.

Repositories named by `--tuned` are those that the constants of the model were fitted on. Those in SEEN below
are for development: somebody has looked at their errors and then changed the model, on the day that stands
with them. The rest is unseen, and its errors alone are what the program quotes. Whoever looks at an unseen
repository's errors and then changes the model adds it to SEEN. A launch that is there twice (same code, grid,
GPU and counts) counts once. Launches with atomics or asynchronous units have no model and are left out.

In the table that --write makes every repository counts alike; in what is printed every launch.

Level 0 is the busiest resource, level 1 Little's law, level 2 the simulation (profiler/model). Hit rates come
from the report's own counters; "no traffic" is the geometric mean of everything in L2 and everything from
DRAM. Two launches are versions of a thing where they are of a repository and GPU and store as many bytes
(within 1 %) to global memory.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from profiler.errors import ProfilerError
from profiler.evidence.gpu_arch import ARCHITECTURES
from profiler.evidence.launch import Launch
from profiler.model.control_words import read_code_words
from profiler.model.error_table import TABLE_FILE, Known, model_digest
from profiler.model.instructions import NoModel
from profiler.model.launch_model import (
    ALL_FROM_DRAM,
    ALL_IN_L2,
    HitRates,
    LaunchInputs,
    LaunchModel,
    LevelOutcome,
)
from profiler.model.pipes import Pipe
from profiler.model.report_inputs import ReportLaunch, counted_hit_rates, report_launch
from profiler.reports.read import launch_detail, read_report
from profiler.sass.listing import SAMPLES

TUNED, DEVELOPMENT, UNSEEN = "tuned", "development", "unseen"
SEEN = {  # repositories by the day of the last change of the model that was made knowing their errors
    "2026-11-23": frozenset(
        [
            "AlpriElse/cs599k",
            "AshunFeiyu/Cuda_Gemm_Practice",
            "BrentGG/hac_cuda_project",
            "EricccYang/cuda_operators",
            "F-Sossi/Lab3_CSS_555",
            "F-Sossi/Two_body_project",
            "HadiKhansaa/BBAStar",
            "LakshyaSingh354/CudaCode",
            "Lashi0812/CudaProgramming",
            "LeRatonLaveurSolitaire/A5_TP_conway",
            "SimonLuder/hs22-mc2",
            "SkeletonSkelettron/Yanni",
            "Swagatam1812/hpca-gpu-memory-profiling",
            "Syswea/cuda-fused-linear-layer",
            "algoparc/GPU-MMS",
            "aplainjane/CUDA_Learning",
            "armleth/cuda-mlp-inference",
            "bautista-garcia/heat_sim",
            "enristra/Cardiomegaly_Classifier",
            "eschnett/GPUIndexSpaces",
            "eschnett/IndexSpaces.jl",
            "iamcoleman/monte-carlo-pi",
            "jestes15/EE384_FinalProject",
            "mlvl36667/blsongpu",
            "suhithr/speedymatmul",
            "tkhenry-uofa/mixes-reconstruction",
            "victor-lvsy/seq_align",
            "wtzhang23/gpu-ray-tracer",
            "xiaojin1423764/CUDA_PRACTICE",
        ]
    ),
}
LEVELS = ("level 0", "level 1", "level 2")
EVERYTHING = Known(True, True, True)
SIZES = (1.05, 1.15, 1.5, math.inf)  # of a change, as a factor
_BUSY_PCT = 60.0  # below it no resource is the limit
_LEAST_SAMPLES = 100  # of a launch whose hottest instruction can be told
# ncu's utilisations of what the model calls by these names.
_MEASURED = {
    "issue": ("sm__issue_active", "sm__inst_executed"),
    Pipe.FMA.label: (
        "sm__pipe_fma_cycles_active",
        "sm__pipe_fmaheavy_cycles_active",
        "sm__inst_executed_pipe_fma",
    ),
    Pipe.ALU.label: ("sm__pipe_alu_cycles_active",),
    Pipe.FP64.label: ("sm__pipe_fp64_cycles_active",),
    Pipe.XU.label: ("sm__inst_executed_pipe_xu", "sm__pipe_xu_cycles_active"),
    Pipe.TENSOR.label: (
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__inst_executed_pipe_tensor",
    ),
    Pipe.LSU.label: ("sm__inst_executed_pipe_lsu", "l1tex__lsuin_requests"),
    "L1 data": ("l1tex__data_pipe_lsu_wavefronts", "l1tex__data_bank_reads", "l1tex__lsu_writeback_active"),
    "L2": ("lts__throughput", "lts__t_sectors", "lts__d_sectors", "l1tex__m_xbar2l1tex_read_sectors"),
    "DRAM": ("gpu__dram_throughput", "dram__cycles_active"),
}


@dataclass
class Row:
    """A launch, what was measured of it, and what each level and lack of inputs made of it."""

    repository: str
    commit: str
    report: str
    kernel: str
    gpu: str
    arch: str
    cycles: float
    key: tuple[Any, ...]
    stored_bytes: float
    levels: dict[str, float] = field(default_factory=dict)  # cycles by level, with the counted traffic
    variants: dict[Known, float] = field(default_factory=dict)  # cycles of level 2
    bracket: tuple[float, float] = (math.nan, math.nan)  # cycles: all in L2, all from DRAM
    without_trips: float = math.nan
    limiter: str = ""
    measured_limiter: str = ""
    hits: HitRates = ALL_IN_L2
    stall_distance: float = math.nan  # total variation, 0 to 1, from the sampled stall reasons
    top_stall_right: bool | None = None
    hottest_in_top: dict[str, bool] = field(default_factory=dict)  # by instruction, by source line

    @property
    def has_traffic(self) -> bool:
        """Whether the report counted where accesses were served."""
        return bool(self.levels)

    def off(self, name: str) -> float:
        """Predicted over measured cycles of a level."""
        return self.levels[name] / self.cycles

    @property
    def part(self) -> str:
        """Whether somebody has changed the model knowing its repository's errors."""
        return DEVELOPMENT if any(self.repository in names for names in SEEN.values()) else UNSEEN


def find_reports(folders: Iterable[Path]) -> Iterator[tuple[str, str, Path]]:
    """Repository, commit and path of every report below folders, or of reports by name."""
    for folder in folders:
        paths = [folder] if folder.is_file() else sorted(folder.rglob("*.ncu-rep"))
        for path in paths:
            is_inside = path != folder and path.parent != folder
            name = path.relative_to(folder).parts[0] if is_inside else path.absolute().parent.name
            repository, _, commit = name.partition("@")
            yield repository.replace("+", "/", 1), commit, path


def run_report(task: tuple[str, str, Path]) -> tuple[list[Row], list[str]]:
    """The rows of a report, and why launches of it have none."""
    repository, commit, path = task
    rows: list[Row] = []
    refused: list[str] = []
    try:
        report = read_report(path)
    except ProfilerError as error:
        return [], [f"{path.name}: {error}"]
    seen = set()
    code = read_code_words(path)
    with tempfile.TemporaryDirectory() as cache:
        for launch in report.launches:
            try:
                known = report_launch(launch, launch_detail(path, launch.ordinal, Path(cache)), code)
            except NoModel as error:
                refused.append(str(error))
                continue
            except ProfilerError as error:
                refused.append(f"unreadable: {error}")
                continue
            row = new_row(repository, commit, path, launch, known)
            if row.key not in seen:
                seen.add(row.key)
                predict(row, launch, known)
                rows.append(row)
    return rows, refused


def new_row(repository: str, commit: str, path: Path, launch: Launch, known: ReportLaunch) -> Row:
    """What is known of a launch before any prediction."""
    inputs = known.inputs
    key = (
        launch.mangled,
        inputs.blocks,
        inputs.threads,
        inputs.gpu.name,
        f"{inputs.code.counts.sum():.3g}",
    )
    stored = stored_bytes(known)
    return Row(
        repository,
        commit,
        path.name,
        launch.base_name,
        inputs.gpu.name,
        inputs.gpu.arch,
        known.measured_cycles,
        key,
        stored,
    )


def stored_bytes(known: ReportLaunch) -> float:
    """Bytes that threads of a launch store to global memory."""
    threads = known.listing.counts.get("thread_inst_executed_true")
    if threads is None:
        return math.nan
    widths = np.zeros(len(known.inputs.code.texts))
    for position, text in enumerate(known.inputs.code.texts):
        words = text.split()
        opcode = words[1] if text.startswith("@") else words[0]
        name, *modifiers = opcode.split(".")
        if name in ("STG", "ST"):
            bits = next((int(word) for word in modifiers if word in ("128", "64")), 32)
            bits = 16 if "U16" in modifiers or "S16" in modifiers else bits
            widths[position] = 1 if "U8" in modifiers or "S8" in modifiers else bits / 8
    return float((np.nan_to_num(threads.values) * widths).sum())


def predict(row: Row, launch: Launch, known: ReportLaunch) -> None:
    """Fill in what each level says, and level 2 without some of its inputs."""
    inputs = known.inputs
    model = LaunchModel(inputs)
    hits = counted_hit_rates(launch, model)
    row.measured_limiter = measured_limiter(launch)
    row.bracket = model.simulation(ALL_IN_L2).cycles, model.simulation(ALL_FROM_DRAM).cycles
    unknown = np.full(len(inputs.code.texts), np.nan)
    for controls, addresses in itertools.product((True, False), repeat=2):
        if inputs.controls is None and controls:
            continue
        lacking = inputs if controls else replace(inputs, controls=None)
        if not addresses:
            lacking = replace(lacking, sectors=unknown, wavefronts=unknown, ideal_wavefronts=unknown)
        other = model if lacking is inputs else LaunchModel(lacking)
        if hits is not None:
            row.variants[Known(True, controls, addresses)] = other.simulation(hits).cycles
        ends = (
            row.bracket
            if other is model
            else (other.simulation(ALL_IN_L2).cycles, other.simulation(ALL_FROM_DRAM).cycles)
        )
        row.variants[Known(False, controls, addresses)] = math.sqrt(ends[0] * ends[1])
    if hits is None:
        return
    row.hits = hits
    outcomes = (model.bounds(hits), model.littles_law(hits), model.simulation(hits))
    row.levels = {name: outcome.cycles for name, outcome in zip(LEVELS, outcomes, strict=True)}
    row.limiter = outcomes[-1].limiter
    row.without_trips = LaunchModel(without_trips(inputs)).simulation(hits).cycles
    compare_stalls(row, known, outcomes[-1])


def without_trips(inputs: LaunchInputs) -> LaunchInputs:
    """The launch if every instruction that is executed were executed once."""
    return replace(inputs, code=replace(inputs.code, counts=np.minimum(inputs.code.counts, 1.0)))


def measured_limiter(launch: Launch) -> str:
    """The busiest resource by ncu's counters; "" where the report has none of them."""
    used = {}
    for name, metrics in _MEASURED.items():
        shares = [launch.values.number(f"{metric}.avg.pct_of_peak_sustained_elapsed") for metric in metrics]
        if known := [share for share in shares if share is not None]:
            used[name] = max(known)
    if not used:
        return ""
    limiter = max(used, key=lambda name: used[name])
    return limiter if used[limiter] > _BUSY_PCT else "latency"


# ncu's reasons that the model does not tell apart, or has no name for.
_MERGED = {"tex_throttle": "mio_throttle", "lg_throttle": "long_scoreboard"}
_PREFIX, _NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"


def compare_stalls(row: Row, known: ReportLaunch, outcome: LevelOutcome) -> None:
    """Hold stall reasons and warp-cycles by instruction and line against the samples of the report."""
    listing = known.listing
    samples: dict[str, float] = {}
    for name, column in listing.counts.items():
        if name.startswith(_PREFIX) and not name.endswith(_NOT_ISSUED):
            reason = name.removeprefix(_PREFIX)
            reason = _MERGED.get(reason, reason)
            samples[reason] = samples.get(reason, 0.0) + float(np.nansum(column.values))
    total = sum(samples.values())
    if total >= _LEAST_SAMPLES:
        modelled: dict[str, float] = {}
        for reason, share in outcome.stalls.items():
            reason = _MERGED.get(reason, reason)
            modelled[reason] = modelled.get(reason, 0.0) + share
        names = set(samples) | set(modelled)
        row.stall_distance = 0.5 * sum(
            abs(samples.get(name, 0.0) / total - modelled.get(name, 0.0)) for name in names
        )
        row.top_stall_right = max(samples, key=lambda name: samples[name]) == max(
            modelled, key=lambda name: modelled[name]
        )
    sampled = listing.counts.get(SAMPLES)
    if sampled is None or outcome.by_instruction is None or np.nansum(sampled.values) < _LEAST_SAMPLES:
        return
    counted = np.nan_to_num(sampled.values)
    top = np.argsort(-counted)[:3]
    row.hottest_in_top["instruction"] = int(np.argmax(outcome.by_instruction)) in top
    if listing.has_sources:
        measured_lines: Counter[Any] = Counter()
        modelled_lines: Counter[Any] = Counter()
        for line, count, share in zip(listing.lines, counted, outcome.by_instruction, strict=True):
            if line.source:
                measured_lines[line.source] += count
                modelled_lines[line.source] += share
        if measured_lines and len(measured_lines) > 3:
            row.hottest_in_top["line"] = modelled_lines.most_common(1)[0][0] in dict(
                measured_lines.most_common(3)
            )


@dataclass(frozen=True)
class Pair:
    """Two versions of a thing: cycles of the second over those of the first."""

    repository: str
    measured: float
    predicted: float


def find_pairs(rows: Sequence[Row]) -> list[Pair]:
    """Every two launches of a repository and GPU that store as many bytes."""
    pairs = []
    for a, b in itertools.combinations([row for row in rows if row.has_traffic], 2):
        is_same = a.repository == b.repository and a.gpu == b.gpu
        most = max(a.stored_bytes, b.stored_bytes)
        if is_same and most > 0 and abs(a.stored_bytes - b.stored_bytes) <= 0.01 * most:
            predicted = b.levels["level 2"] / a.levels["level 2"]
            pairs.append(Pair(a.repository, b.cycles / a.cycles, predicted))
    return pairs


def error_line(name: str, values: Sequence[float]) -> str:
    """The quantiles of predicted over measured cycles as a row of a table."""
    off = np.array(values)
    factor = np.exp(np.abs(np.log(off)))
    low, middle, high = np.quantile(off, (0.1, 0.5, 0.9))
    mape = 100 * np.mean(np.abs(off - 1))
    near, within = 100 * np.mean(factor < 1.25), 100 * np.mean(factor < 1.5)
    return (
        f"| {name} | {len(off)} | {middle:.2f} | {low:.2f} to {high:.2f} | {mape:.0f} % | {near:.0f} % "
        f"| {within:.0f} % |"
    )


HEADER = (
    "| | launches | median | p10 to p90 | MAPE | within 1.25× | within 1.5× |\n|---|---|---|---|---|---|---|"
)


def print_errors(title: str, rows: Sequence[Row], by_repository: bool) -> None:
    """The tables of a set of launches."""
    print(f"\n## {title}: {len(rows)} launches of {len({row.repository for row in rows})} repositories\n")
    known = [row for row in rows if row.has_traffic]
    if not known:
        return
    print(HEADER)
    for level in LEVELS:
        print(error_line(level, [row.off(level) for row in known]))
    names = {
        Known(False, True, True): "level 2, no traffic",
        Known(True, False, True): "level 2, no control words",
        Known(True, True, False): "level 2, no addresses",
        Known(False, False, False): "level 2, none of them",
    }
    for lack, name in names.items():
        values = [row.variants[lack] / row.cycles for row in rows if lack in row.variants]
        if values:
            print(error_line(name, values))
    print(error_line("level 2, no trip counts", [row.without_trips / row.cycles for row in known]))
    for arch in sorted({row.arch for row in known}):
        print(error_line(f"level 2, {arch}", [row.off("level 2") for row in known if row.arch == arch]))
    if by_repository:
        for repository in sorted({row.repository for row in known}):
            chosen = [row.off("level 2") for row in known if row.repository == repository]
            print(error_line(repository, chosen))
    widths = [max(row.bracket) / min(row.bracket) for row in rows]
    inside = [min(row.bracket) <= row.cycles <= max(row.bracket) for row in rows]
    print(f"\nbracket: the truth is inside in {share(inside)}, median width {np.median(widths):.2f}×")
    limited = [row for row in known if row.measured_limiter]
    print(f"limiter as measured: {share([row.limiter == row.measured_limiter for row in limited])}")
    stalls = [row.top_stall_right for row in known if row.top_stall_right is not None]
    print(f"largest stall reason right: {share(stalls)}")
    for what in ("instruction", "line"):
        hottest = [row.hottest_in_top[what] for row in known if what in row.hottest_in_top]
        print(f"hottest {what} of the model among the three hottest measured: {share(hottest)}")
    print_pairs(find_pairs(rows))


def share(flags: Sequence[bool]) -> str:
    """How many of some are true, in words."""
    return f"{sum(flags)} of {len(flags)} ({100 * np.mean(flags):.0f} %)" if flags else "none"


def quantiles(values: Sequence[float], repositories: Sequence[str], shares: Sequence[float]) -> list[float]:
    """Quantiles in which every repository counts alike, however many launches it has.

    A repository's launches are much alike: those of one that has most of them would set the range for all.
    """
    counts = Counter(repositories)
    weights = [1 / counts[name] for name in repositories]
    found = np.quantile(np.array(values), shares, weights=np.array(weights), method="inverted_cdf")
    return [round(float(value), 3) for value in found]


def ratio_rows(pairs: Sequence[Pair], by_measured: bool) -> list[dict[str, Any]]:
    """Errors of ratios by the size of the change, measured or predicted."""
    rows = []
    below = 1.0
    for size in SIZES:
        chosen = []
        for pair in pairs:
            change = pair.measured if by_measured else pair.predicted
            if below <= max(change, 1 / change) < size:
                chosen.append(pair)
        below = size
        if not chosen:
            continue
        factors = [math.exp(abs(math.log(pair.predicted / pair.measured))) for pair in chosen]
        right = [(pair.predicted > 1) == (pair.measured > 1) for pair in chosen]
        middle, most = quantiles(factors, [pair.repository for pair in chosen], (0.5, 0.8))
        rows.append(
            {
                "below": None if math.isinf(size) else size,
                "pairs": len(chosen),
                "p50": middle,
                "p80": most,
                "direction": round(float(np.mean(right)), 3),
            }
        )
    return rows


def print_pairs(pairs: Sequence[Pair]) -> None:
    """The errors of ratios of a set."""
    if not pairs:
        return
    factors = [math.exp(abs(math.log(pair.predicted / pair.measured))) for pair in pairs]
    median, most = np.quantile(factors, (0.5, 0.8))
    large = [(p.predicted > 1) == (p.measured > 1) for p in pairs if max(p.measured, 1 / p.measured) >= 1.15]
    print(
        f"\nratios: {len(pairs)} pairs of {len({pair.repository for pair in pairs})} repositories; error "
        f"median {median:.2f}×, 80 % within {most:.2f}×; direction of changes from 15 %: {share(large)}"
    )
    print("\n| measured change below | pairs | error p50 | p80 | direction right |\n|---|---|---|---|---|")
    for row in ratio_rows(pairs, by_measured=True):
        print(
            f"| {row['below'] or 'any'} | {row['pairs']} | {row['p50']:.2f}× | {row['p80']:.2f}× "
            f"| {100 * row['direction']:.0f} % |"
        )


def table(parts: dict[str, list[Row]]) -> dict[str, Any]:
    """What the program quotes, of the unseen launches alone."""
    unseen = parts[UNSEEN]
    times = []
    for flags in itertools.product((True, False), repeat=3):
        known = Known(*flags)
        with_it = [row for row in unseen if known in row.variants]
        off = [row.variants[known] / row.cycles for row in with_it]
        low, middle, high = quantiles(off, [row.repository for row in with_it], (0.1, 0.5, 0.9))
        times.append({**known._asdict(), "p10": low, "p50": middle, "p90": high, "launches": len(off)})
    repositories = {
        part: [
            {"name": name, "commit": commit, "launches": count}
            for (name, commit), count in sorted(Counter((row.repository, row.commit) for row in rows).items())
        ]
        for part, rows in parts.items()
    }
    return {
        "written": datetime.date.today().isoformat(),
        "model": model_digest(ARCHITECTURES),
        "architectures": list(ARCHITECTURES),
        "launches": len(unseen),
        "gpus": sorted({row.gpu for row in unseen}),
        "times": times,
        "ratios": ratio_rows(find_pairs(unseen), by_measured=False),
        "repositories": repositories,
    }


def launch_line(row: Row) -> str:
    """A launch in a line."""
    levels = (
        " ".join(f"{row.off(level):5.2f}" for level in LEVELS) if row.has_traffic else "no traffic       "
    )
    low, high = (end / row.cycles for end in row.bracket)
    hits = f"{row.hits.l1:.2f} {row.hits.l2:.2f} {row.hits.stores:.2f}"
    return (
        f"{row.repository[:16]:16} {row.report[-22:-8]:14} {row.kernel[:22]:22} {row.arch:6} "
        f"{row.cycles:>11.0f} {levels} [{low:4.2f} {high:5.2f}] "
        f"{row.limiter[:10]:10} {row.measured_limiter[:10]:10} {hits}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--tuned", nargs="*", default=[], metavar="NAME", help="a part of owner/name")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tasks = list(find_reports(arguments.folders))
    parts: dict[str, list[Row]] = {TUNED: [], DEVELOPMENT: [], UNSEEN: []}
    refused: Counter[str] = Counter()
    seen = set()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for rows, reasons in pool.map(run_report, tasks):
            refused.update(reasons)
            for row in rows:
                if row.key in seen:
                    continue
                seen.add(row.key)
                is_tuned = any(name in row.repository for name in arguments.tuned)
                part = TUNED if is_tuned else row.part
                parts[part].append(row)
                if arguments.launches:
                    print(f"{part[:3]} {launch_line(row)}", flush=True)
    print(f"{len(tasks)} reports; without a model, launches by reason:")
    for reason, count in refused.most_common(12):
        print(f"  {count} × {reason[:140]}")
    for part, rows in parts.items():
        print_errors(part, rows, by_repository=True)
    print_errors("not tuned", parts[DEVELOPMENT] + parts[UNSEEN], by_repository=False)
    if arguments.write:
        TABLE_FILE.write_text(json.dumps(table(parts), indent=1) + "\n", encoding="utf-8")
        print(f"\nwrote {TABLE_FILE}")


if __name__ == "__main__":
    main()
