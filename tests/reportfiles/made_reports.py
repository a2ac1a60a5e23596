"""Report files made here in the place of public ones: their structure and numbers, this project's own code.

`write(folder)` lays them out as the public ones lie: `esmm/` is a history of six reports in which kernels
come and go and one launch failed, `ncar/` and `mistic/` are pairs before and after an edit (mistic's HIGGS
lost nearly every counter), `cutlass/` has NVTX ranges and three launches called Kernel, `llm.c/` imported
source, `hyperspec/` eight launches of one kernel, `bad/` files damaged on purpose, `csv/` exports, and
`oracle/` the raw page of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.reportfiles import MADE_BY, counters, csv_pages, damaged, instances, machine_code
from tests.reportfiles.counters import CountedLaunch
from tests.reportfiles.machine_code import BY_HEAD_DIM
from tests.reportfiles.ncu_rep import (
    Code,
    Function,
    LaunchResult,
    Metric,
    ReportFile,
    RuleResult,
    Scalar,
    SessionDetails,
)

DEFAULT_DOMAIN = "<default domain>"
OPCODES = "sass__inst_executed_per_opcode"


@dataclass(frozen=True)
class Loaded:
    """Which code a launch of a report runs: a cubin, where it lies, and the head dims of its kernels."""

    cubin: str
    address: int
    compute_capability: tuple[int, int] = (8, 0)
    import_source: bool = False
    head_dims: tuple[tuple[int, ...], ...] = ((64,),)  # of each launch; the last holds for those after it

    def code(self) -> Code:
        """The module."""
        return machine_code.load(
            self.cubin, self.address, self.compute_capability, import_source=self.import_source
        )

    def functions(self, code: Code, ordinal: int) -> list[Function]:
        """The kernels of one launch."""
        dims = self.head_dims[min(ordinal, len(self.head_dims) - 1)]
        return [code.functions[BY_HEAD_DIM[dim]] for dim in dims]


@dataclass(frozen=True)
class Recipe:
    """A report: the session it claims to come from, and the code of its launches."""

    session: SessionDetails
    loaded: Loaded | None = None
    nvtx: bool = False  # collected with --nvtx, so that launches outside any range have an empty state
    timelines: bool = False
    tile: int = 0  # template argument of the first launches called Kernel


def _session(
    ncu: str, driver: str, cuda: str, created: int, command_line: str = "", process: str = "/home/tester/app"
) -> SessionDetails:
    version = f"{ncu} (build 1) (public-release)"
    return SessionDetails(version, command_line, driver, cuda, created, process)


def _esmm(created: int, options: str = "--target-processes all") -> Recipe:
    command_line = f"/usr/local/cuda/bin/ncu {options} -o profile.ncu-rep ./a.out"
    return Recipe(_session("2023.1.1.0", "550.90.07", "12.4", created, command_line))


def _cutlass(created: int, tile: int, loaded: Loaded) -> Recipe:
    program = "13_fused_two_gemms"
    options = "--cache-control all --clock-control base --set full --nvtx --call-stack"
    command_line = f"/opt/ncu {options} -o report ./build/{program}"
    process = f"/srv/gemms/build/{program}"
    session = _session("2024.1.1.0", "560.35.03", "12.6", created, command_line, process)
    return Recipe(session, loaded, nvtx=True, timelines=True, tile=tile)


def _ncar(created: int, name: str, loaded: Loaded) -> Recipe:
    options = "--set full --launch-skip 29 --import-source yes"
    command_line = f"/opt/ncu {options} -o /scratch/tester/{name} ./miniWeather"
    return Recipe(_session("2022.2.0.0", "510.47.03", "11.6", created, command_line), loaded)


_THREE_REGIONS = ((128,), (128,), (128, 64), (128,), (64,))
RECIPES = {
    "cutlass/report75": _cutlass(
        1729862818, 64, Loaded("v1", 0x772A60000000, head_dims=((64,), (64,), (128,)))
    ),
    "cutlass/report80": _cutlass(
        1730121091, 96, Loaded("v1_lineinfo", 0x7642E1200000, (8, 0), True, ((128,), (128,), (64,)))
    ),
    "cutlass/report80@eba551e9": _cutlass(
        1732023424, 48, Loaded("v1_lineinfo", 0x730F68000000, (8, 0), True, ((128,),))
    ),
    "esmm/profile@a62323b2": _esmm(1741543721, ""),
    "esmm/profile@5c6231e5": _esmm(1743432288),
    "esmm/profile@cd89388e": _esmm(1744038179),
    "esmm/profile@ee5ce738": _esmm(1744661054),
    "esmm/profile@17f278cb": _esmm(1744819298),
    "esmm/profile@049ec612": _esmm(1756839395, "-f --metrics all"),
    "hyperspec/profile": Recipe(
        _session("2024.3.2.0", "555.85", "12.5", 1733136403, "/opt/ncu -k regex:cuda -o profile ./app"),
        nvtx=True,
    ),
    "llm.c/adamw_coalsecing_shared": Recipe(
        _session(
            "2024.3.0.0",
            "555.85",
            "12.5",
            1723942876,
            "/usr/local/cuda/bin/ncu --set full --call-stack --nvtx --import-source yes -o profile ./app",
        ),
        Loaded("v1_lineinfo", 0x600C20000, (8, 6), True),
        nvtx=True,
    ),
    "mistic/prof1": Recipe(
        _session("2021.2.2.0", "470.82.01", "11.4", 1657733342), Loaded("v1", 0x1454BEFAD800)
    ),
    "mistic/prof2": Recipe(
        _session("2021.2.2.0", "470.82.01", "11.4", 1657734539), Loaded("edited", 0x145842FFB200)
    ),
    "mistic/profileHIGGS": Recipe(
        _session("2022.4.0.0", "525.60.13", "12.0", 1682082535, "/opt/ncu --set full -k nodeByPoint5 ./app")
    ),
    "ncar/MW_Baseline": _ncar(
        1655358224, "MW_Baseline", Loaded("v1_lineinfo", 0x2B40C9A00000, (7, 0), True, _THREE_REGIONS)
    ),
    "ncar/MW_DivToMult": _ncar(
        1655358933, "MW_DivToMult", Loaded("edited_lineinfo", 0x2AE1D8A00000, (7, 0), True, _THREE_REGIONS)
    ),
}


def write(folder: Path) -> Path:
    """Make the whole folder; equal bytes each time."""
    for name in RECIPES:
        path = folder / f"{name}.ncu-rep"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = report(name)
        path.write_bytes(made.to_bytes())
        csv_pages.write_raw(
            made,
            counters.units(name) | instances.TIMELINES,
            folder / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv",
        )
    damaged.write(folder / "mistic" / "prof1.ncu-rep", folder / "bad")
    csv_pages.write(folder / "csv")
    (folder / "README.md").write_text(MADE_BY, encoding="utf-8")
    return folder


def report(name: str) -> ReportFile:
    """One of the reports, such as `ncar/MW_Baseline`."""
    recipe = RECIPES[name]
    code = recipe.loaded.code() if recipe.loaded else None
    launches = [
        _launch(name, recipe, code, counted, ordinal) for ordinal, counted in enumerate(counters.load(name))
    ]
    return ReportFile(launches, recipe.session)


def _launch(
    name: str, recipe: Recipe, code: Code | None, counted: CountedLaunch, ordinal: int
) -> LaunchResult:
    metrics: dict[str, Metric | Scalar] = {metric: Metric(value) for metric, value in counted.metrics.items()}
    address = 0
    if recipe.loaded and code:
        functions = recipe.loaded.functions(code, ordinal)
        address = functions[0].address
        metrics |= instances.per_instruction(recipe.loaded.cubin, functions, counted)
    metrics |= instances.occupancy_curves(counted)
    if counted.opcodes:
        metrics[OPCODES] = Metric(
            float(sum(map(float, counted.opcodes.values()))), list(counted.opcodes.items())
        )
    if recipe.timelines:
        metrics |= instances.timelines(counted, ordinal)
    demangled, mangled = _names(counted.function, recipe.tile << ordinal // 2)
    rules = counters.rules(name, ordinal, counted.function, address)
    return LaunchResult(
        counted.function,
        demangled,
        mangled,
        metrics,
        counted.grid,
        counted.block,
        counted.stream,
        {DEFAULT_DOMAIN: counted.nvtx} if recipe.nvtx else {},
        [*rules, RuleResult("Silent", "Silent Rule", "LaunchStats")] if rules else (),
        code,
        [("/data/builds/gemms/libapp.so", "main")] if "--call-stack" in recipe.session.command_line else (),
    )


def _names(function: str, tile: int) -> tuple[str, str]:
    """The demangled and the mangled name; launches called Kernel have a tile as template argument."""
    length = len(function)
    if function != "Kernel":
        return f"{function}(float *, int)", f"_Z{length}{function}Pfi"
    return f"void tiles::Kernel<(int){tile}>(float *, int)", f"_ZN5tiles{length}{function}ILi{tile}EEEvPfi"
