"""The judge as other search loops call it: OpenEvolve, ShinkaEvolve, evotoolkit.

These loops rank by one float. Here it is the share of the lower bound that is reached; it is 0 where a
candidate is wrong or not known to be right, and `known` and the text say which of the two.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.bundles.scratch import scratch_folder
from profiler.errors import ProfilerError
from profiler.judge.candidate import load_candidate
from profiler.judge.judgement import CandidateJudgement
from profiler.judge.pipeline import judge_candidate

TEMPLATE = "PROFILER_TEMPLATE"  # a candidate's folder, whose source the program stands in for
WORKLOADS, GPU, CATALOG = "PROFILER_WORKLOADS", "PROFILER_GPU", "PROFILER_CATALOG"


@dataclass(frozen=True)
class ProgramJudgement:
    """What a loop is told of a program."""

    score: float  # 0 without one
    valid: bool
    known: bool  # whether it is known to be right or wrong
    text: str  # the judgement in words, for the next prompt
    judgement: CandidateJudgement | None = None  # None: it was not even a candidate

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers alone."""
        found = {"combined_score": self.score, "valid": float(self.valid), "known": float(self.known)}
        for time in self.judgement.times if self.judgement else ():
            if time.likely_ns is not None:
                found[f"us {time.workload}"] = time.likely_ns / 1e3
        return found


def judge_program(program: str | Mapping[str, str], template: Path | None = None) -> ProgramJudgement:
    """Judge the text of a source, or files by name, in the place of a template's.

    template: a candidate's folder; that of PROFILER_TEMPLATE unless given. PROFILER_WORKLOADS (separated by
    commas), PROFILER_GPU and PROFILER_CATALOG are as the options of `profiler judge`. Raises ProfilerError
    where no template is named, and CannotJudge where nothing isolates.
    """
    named = template or (Path(os.environ[TEMPLATE]) if os.environ.get(TEMPLATE) else None)
    if named is None:
        raise ProfilerError(
            f"{TEMPLATE} has to name a folder with a candidate.toml, as `profiler judge` takes it"
        )
    options: dict[str, Any] = {}
    if os.environ.get(WORKLOADS):
        options["workloads"] = [word.strip() for word in os.environ[WORKLOADS].split(",")]
    if os.environ.get(GPU):
        options["gpu"] = os.environ[GPU]
    if os.environ.get(CATALOG):
        options["catalog"] = Path(os.environ[CATALOG])
    with scratch_folder() as scratch:
        folder = scratch / "candidate"
        shutil.copytree(named, folder)
        try:
            files = {_source(folder, options): program} if isinstance(program, str) else program
            for name, text in files.items():
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise ProfilerError(f"{name!r} lies outside of the candidate")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            judgement = judge_candidate(folder, **options)
        except (OSError, ValueError) as error:
            return ProgramJudgement(0.0, False, True, f"no candidate: {error}")
    text = "\n".join(
        f"{stage.name}: {stage.state}{f': {stage.reason}' if stage.reason else ''}"
        for stage in judgement.stages
    )
    words = judgement.reason or ("right" if judgement.valid else "not known to be right")
    return ProgramJudgement(
        judgement.score or 0.0,
        judgement.valid is True,
        judgement.valid is not None and (judgement.valid is False or judgement.score is not None),
        f"{words}\n{text}",
        judgement,
    )


def _source(folder: Path, options: Mapping[str, Any]) -> str:
    from profiler.catalog.catalog import load_catalog

    catalog = load_catalog(options["catalog"]) if "catalog" in options else load_catalog()
    return load_candidate(folder, catalog).source


def evaluate(program_path: str) -> Any:
    """OpenEvolve's `evaluate`: `from profiler.search.adapters import evaluate` is a whole evaluator file.

    An EvaluationResult with the judgement's words as an artefact where OpenEvolve is installed, else a
    dictionary of numbers. Source: OpenEvolve 0.4, openevolve/evaluator.py.
    """
    found = judge_program(Path(program_path).read_text("utf-8", errors="replace"))
    try:
        from openevolve.evaluation_result import EvaluationResult  # type: ignore[import-not-found]
    except ImportError:
        return found.metrics
    return EvaluationResult(metrics=found.metrics, artifacts={"judgement": found.text})


def shinka_main(argv: list[str] | None = None) -> None:
    """ShinkaEvolve's evaluate.py: metrics.json and correct.json of --program_path in --results_dir.

    Source: shinka-evolve 0.0.7, shinka/core/wrap_eval.py.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True, type=Path)
    parser.add_argument("--results_dir", required=True, type=Path)
    arguments, _ = parser.parse_known_args(argv)
    found = judge_program(arguments.program_path.read_text("utf-8", errors="replace"))
    arguments.results_dir.mkdir(parents=True, exist_ok=True)
    metrics = {
        "combined_score": found.score,
        "public": {name: value for name, value in found.metrics.items() if name != "combined_score"},
        "private": {},
        "text_feedback": found.text,
    }
    correct = {"correct": found.valid, "error": None if found.valid else found.text.partition("\n")[0]}
    for name, content in (("metrics.json", metrics), ("correct.json", correct)):
        (arguments.results_dir / name).write_text(json.dumps(content, indent=1), "utf-8")


class JudgeEvaluator:
    """evotoolkit's evaluator: `spec` is its TaskSpec, whose main file is the template's source.

    Source: evotoolkit 2.0, evotoolkit/core/protocols.py.
    """

    def __init__(self, spec: Any, template: Path) -> None:
        self.spec = spec
        self._template = template

    def evaluate(self, files: Mapping[str, str]) -> Any:
        """Its EvaluationResult: the score is None where there is none."""
        from evotoolkit.core.types import EvaluationResult  # type: ignore[import-not-found]

        found = judge_program(files, self._template)
        seconds = sum(stage.seconds for stage in found.judgement.stages) if found.judgement else 0.0
        score = found.score if found.known and found.valid else None
        return EvaluationResult(found.valid, score, found.text, dict(found.metrics), seconds)


if __name__ == "__main__":
    shinka_main()
