"""Fail where a version got worse than its parent in the catalogue: for a CI job in Python."""

import profiler

with profiler.open_store() as store:
    answer = profiler.gate("attention/v2d_c", baseline="parent", evidence=["static", "modelled"], store=store)
print(answer.title)
print(*answer.sentences[:5], sep="\n")
print("exit code:", int(answer.exit_code))
