"""Write the kept JSON again: after a change that is meant."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

from tests.golden.commands import DIGESTS, FILES, SHIPPED, of_reports, printed
from tests.golden.files import digest, shipped_data

with tempfile.TemporaryDirectory() as folder:
    os.environ["PROFILER_DATA"] = str(shipped_data(Path(folder)))
    for old in FILES.glob("*.json.gz"):
        old.unlink()
    for name, command in SHIPPED.items():
        (FILES / f"{name}.json.gz").write_bytes(gzip.compress(printed(command).encode(), mtime=0))
    lines = [f"{digest(printed(command))}  {name}\n" for name, command in of_reports().items()]
    if lines:
        DIGESTS.write_text("".join(lines), encoding="utf-8")
