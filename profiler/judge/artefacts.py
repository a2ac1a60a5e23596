"""What is kept of a judged candidate: its machine code, the listing of that, and what it takes of an SM."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from profiler.errors import ProfilerError
from profiler.judge.compilation import CandidateCode


def keep_artefacts(
    code: CandidateCode, predictions: Mapping[str, Mapping[str, Any]], folder: Path
) -> dict[str, str]:
    """Write them into a folder; their paths by what they are.

    `cubin` the machine code, `sass` its listing, `resources` registers, shared memory and opcodes of each
    kernel, `predictions` what the model says of each launch by workload. Raises ProfilerError where the
    folder cannot be written.
    """
    resources = {
        name: {**asdict(kernel.usage), "opcodes": dict(kernel.opcodes)}
        for name, kernel in code.kernels.items()
    }
    texts = {
        "sass": ("kernel.sass", _listing(code)),
        "resources": ("resources.json", json.dumps(resources, indent=1, sort_keys=True)),
        "predictions": ("predictions.json", json.dumps(predictions, indent=1, sort_keys=True)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(code.cubin, folder / "kernel.cubin")
        for name, text in texts.values():
            (folder / name).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ProfilerError(f"{folder}: {error.strerror or error}") from None
    return {"cubin": str(folder / "kernel.cubin")} | {
        what: str(folder / name) for what, (name, _) in texts.items()
    }


def _listing(code: CandidateCode) -> str:
    """What the disassembler printed, which the isolated process left beside the cubin."""
    try:
        return gzip.decompress((code.folder / f"{code.arch}.sass.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError) as error:
        raise ProfilerError(f"no listing of {code.cubin.name}: {error}") from None
