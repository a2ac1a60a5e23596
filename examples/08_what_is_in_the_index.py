"""The versions and workloads of the index, and one version's insights from the same open index."""

import profiler

with profiler.open_store() as store:
    for version in store.versions()[:5]:
        print(f"{version.family}/{version.version}")
    print(len(store.workloads()), "workloads,", len(store.runs()), "runs")
    print(profiler.insights("v2d_c", store=store).to_frame()[["kind", "evidence"]].to_string(index=False))
