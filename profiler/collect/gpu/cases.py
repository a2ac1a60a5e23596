"""Cases kept on disk with their inputs and their reference, which takes seconds to compute."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog.cases import make_case
from profiler.catalog.problem import Argument, Array, Case, Problem, Tolerance, Workload


def load_or_make(problem: Problem, workload: Workload, seed: int, folder: Path | None) -> Case:
    """The problem's case of that seed, from the folder if it is there, else computed and saved there."""
    if folder is None:
        return make_case(problem, workload, seed)
    path = folder / f"{_key(problem, workload, seed)}.npz"
    # Whatever is wrong with the file, the case can be computed again.
    with contextlib.suppress(OSError, EOFError, ValueError, LookupError, zipfile.BadZipFile):
        return _load(path)
    case = make_case(problem, workload, seed)
    with contextlib.suppress(OSError):  # a full disk costs time, not the check
        _save(case, path)
    return case


def _key(problem: Problem, workload: Workload, seed: int) -> str:
    text = json.dumps([problem.name, workload.sizes(), seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _save(case: Case, path: Path) -> None:
    """Write the case whole or not at all, for several checks may compute it at once.

    An array that stands in several places is written once, and is one array again when it is read.
    """
    arrays: dict[int, tuple[str, Array]] = {}  # by id: name in the file, array

    def reference_to(value: Argument) -> dict[str, Any]:
        if not isinstance(value, np.ndarray):
            return {"value": value}
        name, _ = arrays.setdefault(id(value), (f"array{len(arrays)}", value))
        return {"array": name}

    facts = {
        "arguments": [reference_to(value) for value in case.arguments],
        "operands": [reference_to(value) for value in case.operands],
        "output": reference_to(case.output),
        "reference": reference_to(case.reference),
        "tolerance": [case.tolerance.absolute, case.tolerance.relative],
        "input_error": case.input_error,
        "magnitude": reference_to(case.magnitude),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            np.savez(file, facts=np.array(json.dumps(facts)), **dict(arrays.values()))  # type: ignore[arg-type]
            file.close()
            os.replace(file.name, path)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _load(path: Path) -> Case:
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    facts = json.loads(str(arrays.pop("facts")))

    def value_of(reference: dict[str, Any]) -> Any:
        return arrays[reference["array"]] if "array" in reference else reference["value"]

    return Case(
        arguments=tuple(value_of(reference) for reference in facts["arguments"]),
        operands=tuple(value_of(reference) for reference in facts["operands"]),
        output=value_of(facts["output"]),
        reference=value_of(facts["reference"]),
        tolerance=Tolerance(*facts["tolerance"]),
        input_error=facts["input_error"],
        magnitude=value_of(facts["magnitude"]),
    )
