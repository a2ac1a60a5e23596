"""The modelled facts of every combination of v2d.cu's macros, for simulated searches.

python bench/search_landscape.py          # about 20 minutes on one core, with nvcc and no GPU
python bench/search_landscape.py FILE.json --most 1
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from profiler.bundles.scratch import scratch_folder
from profiler.catalog.catalog import load_catalog
from profiler.search.evaluation import CandidateJudge
from profiler.search.settings import SearchSettings
from profiler.search.variants import space_of, write_manifest

FILE = Path(__file__).with_name("search_landscape.json")
WORKLOAD = "2x8x2048x64"


def main() -> None:
    """Screen every combination, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=FILE, help="what is written")
    parser.add_argument("--most", type=int, help="combinations that are screened")
    parser.add_argument("--trust", action="store_true", help="without isolation")
    arguments = parser.parse_args()
    catalog = load_catalog()
    version = catalog.by_id["v2d_a"]
    space = space_of(catalog, version.id)
    settings = SearchSettings(
        "landscape", catalog.family, version.id, "H100-SXM", (WORKLOAD,), "flags", "", seed=0
    )
    judge = CandidateJudge(settings, trust=arguments.trust)
    assert version.source is not None
    rows = []
    every = itertools.product(*(macro.values for macro in space.macros.values()))
    for values in itertools.islice(every, arguments.most):
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
    arguments.file.write_text(
        json.dumps({"workload": WORKLOAD, "gpu": settings.gpu, "rows": rows}, indent=0) + "\n"
    )


if __name__ == "__main__":
    main()
