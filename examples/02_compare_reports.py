"""Compare two reports: the verdict, and what moved as a pandas frame."""

import made_reports

import profiler

before, after = made_reports.write()
comparison = profiler.compare(before, after)
print(comparison.sentence)
frame = comparison.to_frame()
moved = frame[frame.verdict.isin(["better", "worse"])]
print(moved[["kernel", "concept", "a", "b", "unit", "change_pct", "verdict"]].to_string(index=False))
