"""The techniques of optimisation, in a fixed vocabulary, and which of them levers ask for."""

from __future__ import annotations

COALESCING = "coalescing"
SHARED_TILING = "shared-memory tiling"
VECTORISED = "vectorised access"
BANK_CONFLICTS = "bank conflicts"
REGISTER_TILING = "register/thread tiling"
OCCUPANCY = "occupancy/block size"
FEWER_INSTRUCTIONS = "fewer instructions"
PRECISION = "precision"
TENSOR_CORES = "tensor cores"
FUSION = "fusion"
SYNCHRONISATION = "barriers/sync"
ATOMICS = "atomics/reduction shape"
PREFETCH = "prefetch/pipelining"
DIVERGENCE = "divergence"
GRID_SIZE = "launch/grid size"
CACHE_HINTS = "cache hints"
LOCAL_MEMORY = "local memory"
OTHER = "other"
TECHNIQUES = (
    COALESCING,
    SHARED_TILING,
    VECTORISED,
    BANK_CONFLICTS,
    REGISTER_TILING,
    OCCUPANCY,
    FEWER_INSTRUCTIONS,
    PRECISION,
    TENSOR_CORES,
    FUSION,
    SYNCHRONISATION,
    ATOMICS,
    PREFETCH,
    DIVERGENCE,
    GRID_SIZE,
    CACHE_HINTS,
    LOCAL_MEMORY,
    OTHER,
)

# Of levers that no rule of profiler.advice.rules declares, by how they begin; the first that fits counts.
_OF_LEVERS = {
    "swizzle or pad": (BANK_CONFLICTS,),
    "move fewer bytes through DRAM": (FUSION, PRECISION),
    "more bytes in flight": (VECTORISED, REGISTER_TILING),
    "ask L2 for less": (SHARED_TILING,),
    "more blocks": (GRID_SIZE,),
    "even out the blocks": (GRID_SIZE,),
    "fewer live registers": (OCCUPANCY,),
    "smaller tiles or fewer stages": (OCCUPANCY,),
    "matrix products on the tensor cores": (TENSOR_CORES,),
    "the products that are still scalar": (TENSOR_CORES,),
    "wgmma on tiles": (TENSOR_CORES,),
    "keep intermediate results in registers": (REGISTER_TILING,),
    "one more stage": (PREFETCH,),
    "wider accesses": (VECTORISED,),
    "wider shared-memory accesses": (VECTORISED, REGISTER_TILING),
    "wider loads and stores": (VECTORISED,),
    "prefetch": (PREFETCH, REGISTER_TILING),
    "copy tiles with cp.async": (PREFETCH,),
    "index the array with constants": (LOCAL_MEMORY,),
    "store the result wide": (COALESCING, VECTORISED),
    "coalesce": (COALESCING,),
    "fewer atomics": (ATOMICS,),
    "give each warp more independent work": (REGISTER_TILING,),
    "fewer barriers": (SYNCHRONISATION, REGISTER_TILING),
    "fewer or narrower fences": (SYNCHRONISATION,),
    "sleep less": (SYNCHRONISATION,),
    "less work for the busiest pipe": (FEWER_INSTRUCTIONS,),
    "save what was added": (FEWER_INSTRUCTIONS,),
    "overlap wgmma": (PREFETCH,),
    "fewer texture": (FEWER_INSTRUCTIONS,),
    "fewer special functions": (FEWER_INSTRUCTIONS,),
    "fewer conversions": (FEWER_INSTRUCTIONS,),
    "fewer bit counts": (FEWER_INSTRUCTIONS,),
    "a smaller loop body": (FEWER_INSTRUCTIONS,),
    "read constants": (CACHE_HINTS,),
    "fewer branches": (DIVERGENCE,),
}


def techniques_of(lever: str) -> tuple[str, ...]:
    """The techniques that a lever asks for; empty where none of the vocabulary fits it."""
    return next((names for words, names in _OF_LEVERS.items() if lever.startswith(words)), ())
