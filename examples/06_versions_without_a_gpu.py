"""Compare two versions of the lineage by what needs no GPU: compiler and machine code, exact."""

import profiler

comparison = profiler.compare("v2d_b", "v2d_c", evidence="static", gpu="sm_90a")
print(comparison.title)
print(comparison.sentence)
frame = comparison.to_frame()
moved = frame[frame.verdict.isin(["better", "worse", "changed"])]
print(moved[["kernel", "concept", "a", "b", "verdict"]].head(12).to_string(index=False))
