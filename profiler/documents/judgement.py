"""A judgement of a candidate as a document: its stages, times, and how it stands against another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.documents.blocks import Block, Heading, Line, Notes, Table
from profiler.documents.document import Document
from profiler.documents.prediction import time_words
from profiler.errors import Exit
from profiler.evidence.gpu_parts import DEFAULT_PART
from profiler.judge.judgement import CandidateJudgement, StageState
from profiler.judge.pipeline import judge_candidate
from profiler.statistics.verdict import Verdict

_MOST_INSIGHTS = 3  # in words; all are in the JSON
Progress = Callable[[str, str], None]  # stage, what happened


@dataclass(frozen=True, repr=False)
class JudgementDocument(Document):
    """What was found out about one candidate."""

    judgement: CandidateJudgement

    columns = ("stage", "state", "seconds", "reason")

    @property
    def title(self) -> str:
        """Whose judgement it is."""
        against = f" against {self.judgement.elite}" if self.judgement.elite else ""
        return f"Judgement of {self.judgement.name}{against}"

    @property
    def verdict(self) -> Verdict | None:
        """Against the elite; None without one."""
        return self.judgement.verdict

    @property
    def valid(self) -> bool | None:
        """Whether it is right; None where that is not known."""
        return self.judgement.valid

    @property
    def sentences(self) -> Sequence[str]:
        """Whether it is valid, its score, its times, the verdict on each workload, and what to try."""
        found = self.judgement
        words = {True: "valid", False: f"not valid: {found.reason}", None: f"unknown: {found.reason}"}
        sentences = [f"{found.name} is {words[found.valid]}."]
        if found.score is not None:
            share = f"{100 * found.score:.1f} % of the lower bound"
            sentences.append(f"Score {found.score:.4f}: it reaches {share}, {found.evidence}.")
        elif found.valid is not False and found.score_reason:
            sentences.append(f"No score: {found.score_reason}.")
        for time in found.times:
            if time.likely_ns is not None:
                span = f"{time_words(time.low_ns)} to {time_words(time.high_ns)}"
                sentences.append(f"{time.workload}: {time_words(time.likely_ns)} ({span}), {time.evidence}.")
        for other, rows in ((found.elite, found.against), (found.baseline, found.against_baseline)):
            for item in rows:
                ratio = f" {item.ratio:.2f} × ({item.low:.2f} to {item.high:.2f})" if item.ratio else ""
                reason = f": {item.reason}" if item.reason else ""
                sentences.append(f"{item.workload}: {item.verdict}{ratio} against {other}{reason}.")
        for row in found.insights[:_MOST_INSIGHTS]:
            sentences.append(f"{row['text']}: {row['lever']}." if row.get("lever") else f"{row['text']}.")
        if found.artefacts:
            sentences.append(f"Kept: {', '.join(found.artefacts.values())}.")
        return sentences

    @property
    def exit_code(self) -> Exit:
        """0 valid; 1 not valid, or worse than the elite; 3 not known."""
        if self.judgement.valid is False or self.verdict is Verdict.WORSE:
            return Exit.REGRESSION
        return Exit.PASS if self.judgement.valid else Exit.UNJUDGED

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The stages, what stands against the candidate, then the answer in words."""
        yield Heading(self.title, 1)
        stages = self.judgement.stages
        rows = [(stage.name, str(stage.state), f"{stage.seconds:.1f} s", stage.reason) for stage in stages]
        yield Table(("stage", "", "time", ""), rows, right=(2,))
        yield Notes(self.failed_findings[1:])  # the first is the reason of its stage
        yield from map(Line, self.sentences)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a stage."""
        return [
            (stage.name, str(stage.state), round(stage.seconds, 2), stage.reason)
            for stage in self.judgement.stages
        ]

    @property
    def failed_findings(self) -> Sequence[str]:
        """What stands against it, of the stages that failed."""
        return [
            finding
            for stage in self.judgement.stages
            if stage.state is StageState.FAILED
            for finding in stage.findings
        ]

    def _content(self) -> dict[str, object]:
        return self.judgement.as_json()


def judge_name(
    candidate: str,
    against: str | None = None,
    *,
    catalog: Path | None = None,
    gpu: str = DEFAULT_PART,
    workloads: Sequence[str] = (),
    seed: int | None = None,
    trust: bool = False,
    measured: bool = True,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> JudgementDocument:
    """The judgement of a folder or version: see profiler.judge.judge_candidate, which raises as it does."""
    return JudgementDocument(
        judge_candidate(
            candidate,
            against,
            catalog=catalog,
            gpu=gpu,
            workloads=workloads,
            seed=seed,
            trust=trust,
            measured=measured,
            keep=keep,
            progress=progress or (lambda _stage, _what: None),
        )
    )
