"""The modelled facts of every combination of v2d.cu's macros, for simulated searches.

python bench/search_landscape.py          # about 20 minutes on one core, with nvcc and no GPU
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from profiler.bundles import scratch_folder
from profiler.catalog import load_catalog
from profiler.search import CandidateJudge, SearchSettings
from profiler.search.variants import space_of, write_manifest

FILE = Path(__file__).with_name("search_landscape.json")
WORKLOAD = "2x8x2048x64"


def main() -> None:
    """Screen every combination, and write what came of it."""
    catalog = load_catalog()
    version = catalog.by_id["v2d_a"]
    space = space_of(catalog, version.id)
    settings = SearchSettings(
        "landscape", catalog.family, version.id, "H100-SXM", (WORKLOAD,), "flags", "", seed=0
    )
    judge = CandidateJudge(settings, trust="--trust" in sys.argv)
    assert version.source is not None
    rows = []
    for values in itertools.product(*(macro.values for macro in space.macros.values())):
        macros = dict(zip(space.macros, map(str, values), strict=True))
        with scratch_folder() as folder:
            (folder / version.source.name).write_bytes(version.source.read_bytes())
            write_manifest(folder, catalog.family, version, space, macros)
            found = judge.screen(folder)
        time = found.time
        rows.append(
            {
                "macros": macros,
                "code_id": found.code_id,
                "failed": found.failed,
                "time": None if time is None else time.as_json(),
                "facts": dict(found.facts),
            }
        )
        print(macros, found.failed or (time and time.likely_ns), flush=True)
    FILE.write_text(json.dumps({"workload": WORKLOAD, "gpu": settings.gpu, "rows": rows}, indent=0) + "\n")


if __name__ == "__main__":
    main()
