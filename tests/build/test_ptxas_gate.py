"""What ptxas says of wgmma, barriers and shared registers, of small sources: a gate, not a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build import facts, library, resources
from profiler.build.opcode_counts import summarize_code
from profiler.build.resources import FunctionResources, RegisterPool, VersionResources
from profiler.catalog import catalog
from profiler.emulator import cpu_check
from tests.toolchain import needs_gxx, needs_nvcc, needs_sass

# Two products of a warpgroup, and what makes ptxas put them in a row; a barrier by a number that is no
# constant; registers that warpgroups give each other. g++ only sees the launches.
SOURCE = """\
#include "common.cuh"
#define EARLY 1
#define RUNTIME 2
#define SHARED 3
#ifdef CPUCUDA
#define PRODUCTS(name, kind) \\
  __global__ void __launch_bounds__(384, 1) name(__half*, int) {}
#else
__device__ __forceinline__ void product(float (&d)[16], uint64_t a) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15}, %16, %16, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a));
}
template <int KIND>
__device__ __forceinline__ void products(float* out, int n) {
  if (KIND == SHARED) {
    if (threadIdx.x < 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
      return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  }
  float d[16];
  for (int i = 0; i < 16; ++i) d[i] = out[threadIdx.x + i];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  product(d, n);
  if (KIND == EARLY) d[3] *= 2.f;
  product(d, n + 2);
  asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 16; ++i) out[threadIdx.x * 16 + i] = d[i];
  if (KIND == RUNTIME) asm volatile("bar.sync %0, 384;" ::"r"(n) : "memory");
}
#define PRODUCTS(name, kind) \\
  __global__ void __launch_bounds__(384, 1) name(__half* o, int n) { products<kind>((float*)o, n); }
#endif
#if ALONE
PRODUCTS(shared, SHARED)
#ifdef CPUCUDA
__global__ void unbound(__half*, int) {}
#else
__global__ void unbound(__half* o, int n) { products<SHARED>((float*)o, n); }
#endif
#else
PRODUCTS(good, 0)
PRODUCTS(early, EARLY)
PRODUCTS(runtime, RUNTIME)
#endif
extern "C" int attention_forward(const void*, const void*, const void*, void* o, const float*, int, int,
                                 int, int, int, float, int, void* stream) {
#if ALONE
  LAUNCH(unbound, dim3(1), dim3(384), 0, stream, (__half*)o, 1);
  return LAUNCH(shared, dim3(1), dim3(384), 0, stream, (__half*)o, 1);
#else
  LAUNCH(good, dim3(1), dim3(384), 0, stream, (__half*)o, 1);
  LAUNCH(early, dim3(1), dim3(384), 0, stream, (__half*)o, 1);
  return LAUNCH(runtime, dim3(1), dim3(384), 0, stream, (__half*)o, 1);
#endif
}
"""
CATALOG = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "products"
technique = "t"
file = "kernel.cu"
arches = ["sm_90a"]
head_dims = [64]
[[version]]
id = "pool"
technique = "t"
file = "kernel.cu"
flags = ["-DALONE=1"]
arches = ["sm_90a"]
head_dims = [64]
warpgroup_registers = [24, 240, 240]
"""


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FunctionResources]:
    """The kernels by name."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "kernel.cu").write_text(SOURCE)
    (folder / "catalog.toml").write_text(CATALOG)
    mine = catalog.load_catalog(folder)
    found = {}
    for one in resources.version_resources(mine, mine.versions, launch_configs=cpu_check.launch_configs):
        assert isinstance(one, VersionResources), one
        assert one.missing == ()
        found.update({function.name: function for function in one.functions})
    assert found.keys() == {"good", "early", "runtime", "shared", "unbound"}
    return found


@needs_nvcc
@needs_sass
@needs_gxx
def test_products_in_flight_pass_and_serialized_ones_do_not(examined: dict[str, FunctionResources]) -> None:
    good, early = examined["good"], examined["early"]
    assert (good.usage.serialized_wgmma, good.over_budget, good.unjudged) == ((), (), ())
    (warning,) = early.usage.serialized_wgmma
    assert warning.startswith("C75")
    assert early.over_budget == ("serialized wgmma 1 over 0",)
    assert f"wgmma serialized: {warning}" in early.usage.line
    stored = facts.static_facts(early).values
    assert stored["static__serialized_wgmma"].number == 1
    assert "serialized wgmma 1 over 0" in str(stored["static__over_budget"].text)


@needs_nvcc
@needs_sass
@needs_gxx
def test_a_barrier_whose_number_is_not_known_takes_all_sixteen(
    examined: dict[str, FunctionResources],
) -> None:
    assert examined["good"].usage.barriers < 16
    assert examined["runtime"].over_budget == ("barriers 16 over 15",)


@needs_nvcc
@needs_sass
@needs_gxx
def test_the_registers_that_warpgroups_share_are_read_from_the_machine_code(
    examined: dict[str, FunctionResources],
) -> None:
    shared = examined["shared"]
    assert shared.register_pool is not None
    assert sorted(set(shared.register_pool.moved)) == [24, 240]
    assert shared.register_pool.words == "24 + 240 + 240 of 504"
    assert (shared.over_budget, shared.unjudged) == ((), ())
    assert facts.static_facts(shared).values["static__register_pool"].text == "24 + 240 + 240 of 504"
    assert examined["good"].register_pool is None
    assert facts.static_facts(examined["good"]).values["static__register_pool"].text == "not shared"


@needs_nvcc
@needs_sass
@needs_gxx
def test_a_setmaxnreg_that_ptxas_ignores_is_over_the_budget(examined: dict[str, FunctionResources]) -> None:
    """Without launch bounds it says C7508, and leaves it out."""
    unbound = examined["unbound"]
    assert unbound.register_pool is not None
    assert unbound.register_pool.moved == ()
    assert "no setmaxnreg in the machine code: ptxas has ignored it" in unbound.over_budget
    assert facts.static_facts(unbound).values["static__over_budget"].text == "; ".join(unbound.over_budget)


@pytest.mark.parametrize(
    ("declared", "moved", "threads", "says"),
    [
        ((24, 240, 240), (24, 240), 384, []),
        ((24, 248, 248), (24, 248), 384, ["register pool 24 + 248 + 248 of 504: a claim waits for ever"]),
        ((24, 232, 232), (24, 240), 384, ["setmaxnreg to 24, 240, warpgroup_registers [24, 232, 232]"]),
        ((24, 240), (24, 240), 384, ["warpgroup_registers of 2 in a block of 384"]),
        ((24, 240, 240), (), 384, ["no setmaxnreg in the machine code: ptxas has ignored it"]),
        ((), (24, 240), 384, ["register pool unknown: setmaxnreg to 24, 240, no warpgroup_registers"]),
    ],
)
def test_warpgroups_claim_no_more_registers_than_the_launch_gave(
    declared: tuple[int, ...], moved: tuple[int, ...], threads: int, says: list[str]
) -> None:
    """Of a launch with 162 registers per thread: they are given in steps of 8, 168."""
    exceeded = RegisterPool(declared, moved, 162, threads).exceeded
    assert [words for words, _ in exceeded] == says
    assert all(is_known is bool(declared) for _, is_known in exceeded)


# ---- what is read, without the tools

PTXAS = """\
ptxas info    : (C7519) warpgroup.arrive is injected in around line 81 by compiler to allow use of registers \
in GMMA in function '_Z3oneILi64EEvPf'
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
insufficient register resources for the wgmma pipeline in the function '_Z3oneILi64EEvPf'
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
wgmma pipeline crossing function boundary at a function call in the function '_Z3twov'
ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non \
wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in \
function '_Z3twov'
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count \
at entry.
ptxas info    : Compiling entry function '_Z3twov' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 16 barriers
ptxas info    : Compiling entry function '_Z3oneILi64EEvPf' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 42 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z3oneILi64EEvPf' for 'sm_100a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 42 registers, used 0 barriers
"""


def test_a_warning_belongs_to_its_function_and_to_the_architecture_that_follows() -> None:
    two, one, other = library.parse_ptxas(PTXAS)
    reason = "insufficient register resources for the wgmma pipeline"
    assert two.serialized_wgmma == (
        "C7510 wgmma pipeline crossing function boundary at a function call",
        "C7515 non wgmma instructions defining accumulator registers of a wgmma between start and end of the "
        "pipeline stage",
    )
    assert one.serialized_wgmma == (f"C7511 {reason}",)
    assert other.serialized_wgmma == ()
    assert two.barriers == 16


def test_what_setmaxnreg_leaves_is_read_from_the_machine_code() -> None:
    (code,) = summarize_code(
        "Function : kernel\n"
        "        /*0390*/             USETMAXREG.TRY_ALLOC.CTAPOOL UP1, 0xf0 ; /* 0x000000f0000079c8 */\n"
        "        /*6a30*/             USETMAXREG.DEALLOC.CTAPOOL 0x18 ;        /* 0x00000018000079c8 */\n",
        "sm_90a",
    )
    assert (code.released_registers, code.claimed_registers) == ((24,), (240,))


def test_a_list_of_registers_that_is_none_is_refused(tmp_path: Path) -> None:
    from profiler.errors import BadCatalog

    (tmp_path / "catalog.toml").write_text(
        'family = "mine"\nproblem = "profiler.catalog.attention:ATTENTION"\n[[version]]\nid = "one"\n'
        'technique = "t"\nfile = "one.cu"\nwarpgroup_registers = "24"\n'
    )
    (tmp_path / "one.cu").touch()
    with pytest.raises(BadCatalog, match="warpgroup_registers must be a list of whole numbers"):
        catalog.load_catalog(tmp_path)
