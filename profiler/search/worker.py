"""The loop: claim a number, choose a parent, ask the generator, screen, judge, write the record."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from profiler.bundles.scratch import scratch_folder
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.search_space import SearchSpace
from profiler.catalog.version import Version
from profiler.errors import ProfilerError
from profiler.evidence.values import Evidence
from profiler.judge.candidate import load_candidate
from profiler.judge.judgement import CandidateJudgement, StageState
from profiler.search.archive import Archive, confirmed, mean_time_ns
from profiler.search.evaluation import Evaluator, Screening, measured_verdict, modelled_verdict
from profiler.search.generator import CandidateProposal, Generator, GeneratorFailed, NothingLeft, Request
from profiler.search.insights import Insight, insights_of
from profiler.search.journal import Journal, NumberClaim
from profiler.search.prompt import load_templates, prompt_digest, write_prompt
from profiler.search.record import SEED, PairVerdict, SearchRecord, Status, candidate_name
from profiler.search.variants import space_of, write_version
from profiler.statistics.verdict import Verdict

INSIGHTS, CONTROL = "insights", "control"
_OF_ELITES, _OF_FASTEST = 0.6, 0.25  # of the parents; the others are any that is right
_FASTEST = 5
_WAIT_SECONDS = 0.5  # for the seed, which another worker judges
Listener = Callable[[str], None]


@dataclass(frozen=True)
class WorkerLimits:
    """When a worker ends by itself; None: never."""

    candidates: int | None = None  # that it has judged
    seconds: float | None = None
    total: int | None = None  # candidates of the search, the seed left out


class _Screened(NamedTuple):
    """A candidate that the cheap parts let pass."""

    draft: SearchRecord
    claim: NumberClaim
    folder: Path
    screening: Screening

    @property
    def likely_ns(self) -> float:
        """Its modelled time; those without one come last."""
        time_found = self.screening.time
        return math.inf if time_found is None or time_found.likely_ns is None else time_found.likely_ns


class Worker:
    """One worker of a search."""

    def __init__(
        self,
        journal: Journal,
        evaluator: Evaluator,
        generator: Generator,
        listener: Listener = lambda _line: None,
        batch: int = 1,
    ) -> None:
        """batch: candidates that are screened before the fastest of them are judged; 1: each at once.

        A kill loses what is in hand: the whole batch, of which at most one was judged.
        """
        self._batch = batch
        self._journal = journal
        self._settings = journal.settings
        self._evaluator = evaluator
        self._generator = generator
        self._listener = listener
        path = Path(self._settings.catalog) if self._settings.catalog else None
        self._catalog: Catalog = load_catalog(path) if path else load_catalog()
        self._version: Version = self._catalog.pick([self._settings.version])[0]
        self._space: SearchSpace = space_of(self._catalog, self._version.id)
        self._templates = load_templates(self._settings.templates)

    def run(self, limits: WorkerLimits = WorkerLimits()) -> str:
        """Work until a limit, the end of what can be proposed, or a stop; why it ended, in words.

        Raises CannotJudge where nothing can be judged here, and what the journal raises.
        """
        started, done = time.monotonic(), 0
        while True:
            if self._journal.is_stopping:
                return "it was told to stop"
            if limits.candidates is not None and done >= limits.candidates:
                return f"it did its {done} candidates"
            if limits.seconds is not None and time.monotonic() - started >= limits.seconds:
                return f"its {limits.seconds / 60:g} minutes are over"
            claim = self._journal.claim()
            if claim is None:
                time.sleep(_WAIT_SECONDS)
                continue
            if limits.total is not None and claim.number > limits.total:
                claim.release()
                return f"all {limits.total} candidates are there"
            claims = [claim]
            most = self._batch if limits.candidates is None else min(self._batch, limits.candidates - done)
            while claim.number != SEED and len(claims) < most:
                if (more := self._journal.claim()) is None:
                    break
                claims.append(more)
                if limits.total is not None and more.number > limits.total:
                    claims.pop().release()
                    break
            try:
                records = [self._seed(claim)] if claim.number == SEED else self._children(claims)
                for record in records:
                    done += 1
                    self._listener(record_line(record, self._settings.workloads[0]))
            except NothingLeft as end:
                return str(end)
            finally:
                for own in claims:
                    own.release()

    def _children(self, claims: Sequence[NumberClaim]) -> Iterator[SearchRecord]:
        """The candidates of a batch: all are screened, then judged, the fastest first."""
        waiting: list[_Screened] = []
        ended: NothingLeft | None = None
        for claim in claims:
            try:
                made = self._child(claim)
            except NothingLeft as end:
                ended = end
                break
            if isinstance(made, SearchRecord):
                yield made
            else:
                waiting.append(made)
        for screened in sorted(waiting, key=lambda item: item.likely_ns):
            yield self._finished(screened)
        if ended is not None:
            raise ended

    def _seed(self, claim: NumberClaim) -> SearchRecord:
        """Judge the version that everything begins with. Raises ProfilerError where it is not right."""
        claim.say("judge")
        with scratch_folder() as scratch:
            folder = scratch / self._version.id
            folder.mkdir()
            macros = write_version(self._catalog, self._version, self._space, folder)
            candidate = load_candidate(folder, self._catalog)
            draft = SearchRecord(
                SEED, Status.UNKNOWN, content_id=candidate.id, macros=macros, generator="catalogue"
            )
            draft = replace(draft, levers=())
            kept = self._journal.keep_candidate(folder, candidate)
        screening, seconds = self._screen(claim, kept)
        if screening.failed:
            raise ProfilerError(f"{self._version.id} cannot begin a search: {screening.failed}")
        record, _ = self._judged(draft, claim, kept, screening, seconds)
        if not record.is_valid:
            raise ProfilerError(f"{self._version.id} cannot begin a search: {record.reason}")
        return self._write(record, claim)

    def _child(self, claim: NumberClaim) -> SearchRecord | _Screened:
        """One candidate from its parent to its record, or to where it has to be judged."""
        rng = random.Random(f"{self._settings.seed}:{claim.number}")
        archive = self._journal.archive()
        parent = choose_parent(archive, rng)
        offered = insights_of(parent)
        arm = CONTROL if rng.random() < self._settings.control_share else INSIGHTS
        shown: Sequence[Insight] = offered if arm == INSIGHTS else ()
        parent_folder = self._journal.candidate_folder(parent.content_id)
        prompt = write_prompt(
            self._settings, archive, parent, parent_folder, shown, self._space, self._templates
        )
        taken = {*archive.by_content, *(w.content_id for w in self._journal.working() if w.content_id)}
        request = Request(
            claim.number,
            prompt,
            parent,
            parent_folder,
            archive,
            shown,
            rng,
            self._catalog,
            self._version,
            self._space,
            taken,
            lambda record: self._journal.candidate_folder(record.content_id),
        )
        draft = SearchRecord(
            claim.number,
            Status.NO_CANDIDATE,
            parent=parent.number,
            generator=self._generator.name,
            arm=arm,
            offered=tuple(insight.kind for insight in offered),
            shown=tuple(insight.kind for insight in shown),
            prompt_sha256=prompt_digest(prompt),
        )
        claim.say("generator")
        started = time.monotonic()
        with scratch_folder() as scratch:
            folder = scratch / candidate_name(claim.number)
            folder.mkdir()
            try:
                proposal = self._generator.propose(request, folder)
                candidate = load_candidate(folder, self._catalog)
                if candidate.manifest is None or candidate.family != self._settings.family:
                    raise GeneratorFailed(f"the candidate is of family {candidate.family!r}")
                kept = self._journal.keep_candidate(folder, candidate)
            except NothingLeft:
                raise
            except (ProfilerError, OSError) as error:
                seconds = {"generator": time.monotonic() - started}
                reason = str(error).replace(str(folder), "the candidate").splitlines()[0][:300]
                failed = replace(draft, stage="generator", reason=reason, seconds=seconds)
                return self._write(failed, claim)
        claim.say("screening", candidate.id)
        draft = self._described(draft, proposal, candidate.id, time.monotonic() - started)
        if (known := archive.by_content.get(candidate.id)) is not None:
            same = replace(
                draft, status=Status.SAME_SOURCE, same_as=known.number, reason=f"the source of {known.name}"
            )
            return self._write(same, claim)
        return self._screened(draft, claim, kept)

    def _described(
        self, draft: SearchRecord, proposal: CandidateProposal, content_id: str, seconds: float
    ) -> SearchRecord:
        """The record with what the generator says of it."""
        return replace(
            draft,
            content_id=content_id,
            levers=proposal.levers,
            why=proposal.why,
            macros=proposal.macros,
            parent=draft.parent if proposal.parent is None else proposal.parent.number,
            seconds={"generator": round(seconds, 2)},
        )

    def _screened(self, draft: SearchRecord, claim: NumberClaim, folder: Path) -> SearchRecord | _Screened:
        """What the cheap parts say; the record where they say enough."""
        screening, seconds = self._screen(claim, folder)
        draft = replace(draft, code_id=screening.code_id, facts=screening.facts)
        draft = replace(draft, seconds={**draft.seconds, **seconds})
        if screening.failed:
            stage = "budget" if screening.code_id else "compile"
            refused = replace(draft, status=Status.REFUSED, stage=stage, reason=screening.failed[:300])
            return self._write(refused, claim)
        return _Screened(draft, claim, folder, screening)

    def _finished(self, screened: _Screened) -> SearchRecord:
        """Judge what may be worth it, by what the archive holds now."""
        draft, claim, folder, screening = screened
        archive = self._journal.archive()
        known = archive.by_code.get(screening.code_id)
        if known is not None and screening.code_id:
            same = replace(
                draft,
                status=Status.SAME_CODE,
                same_as=known.number,
                reason=f"the machine code of {known.name}",
                times=known.times,
            )
            return self._write(same, claim)
        if (slower := self._slower(screening, archive)) is not None:
            assert screening.time is not None
            times = {screening.time.workload: screening.time.as_json()}
            return self._write(replace(draft, status=Status.SLOWER, reason=slower, times=times), claim)
        rival = None
        if archive.elites:
            rival = self._journal.candidate_folder(archive.elites[-1].content_id)
        record, judgements = self._judged(draft, claim, folder, screening, {}, rival)
        return self._write(record, claim, judgements)

    def _slower(self, screening: Screening, archive: Archive) -> str | None:
        """Why a candidate is not judged: slower than each elite beyond the model's error, no seat free."""
        time_found = screening.time
        if time_found is None or time_found.likely_ns is None or len(archive.elites) < self._settings.seats:
            return None
        if any(elite.evidence is Evidence.MEASURED for elite in archive.elites):
            return None  # a model does not decide where there are measurements
        times, first = {time_found.workload: time_found.as_json()}, [time_found.workload]
        verdicts = [modelled_verdict(times, elite, first) for elite in archive.elites]
        if any(verdict.verdict is not Verdict.WORSE for verdict in verdicts):
            return None
        least = min(verdict.ratio or 1.0 for verdict in verdicts)
        return f"× {least:.2f} or more of every elite's modelled time on {time_found.workload}"

    def _screen(self, claim: NumberClaim, folder: Path) -> tuple[Screening, dict[str, float]]:
        started = time.monotonic()
        screening = self._evaluator.screen(folder)
        return screening, {"screening": round(time.monotonic() - started, 2)}

    def _judged(
        self,
        draft: SearchRecord,
        claim: NumberClaim,
        folder: Path,
        screening: Screening,
        seconds: dict[str, float],
        rival: Path | None = None,
    ) -> tuple[SearchRecord, list[CandidateJudgement]]:
        """The record with all that the judge says: the elite `rival` is what a GPU measures it beside."""
        started = time.monotonic()
        judgement = self._evaluator.judge(folder, rival, lambda what: claim.say(what, draft.content_id))
        judgements = [judgement]
        if judgement.evidence is Evidence.MEASURED and judgement.verdict is Verdict.BETTER:
            # Among hundreds of candidates some look better by chance: see archive.confirmed.
            judgements.append(
                self._evaluator.judge(
                    folder, rival, lambda what: claim.say(f"again: {what}", draft.content_id)
                )
            )
        failed = judgement.failed
        undecided = next((stage for stage in judgement.stages if stage.state is StageState.UNKNOWN), None)
        status = {True: Status.VALID, False: Status.REFUSED, None: Status.UNKNOWN}[judgement.valid]
        stage = failed.name if failed else undecided.name if undecided and status is Status.UNKNOWN else ""
        facts = {name: value for name, value in judgement.facts.items() if name != "kernels"}
        record = replace(
            draft,
            status=status,
            code_id=judgement.code_id or screening.code_id,
            stage=stage,
            reason="" if status is Status.VALID else judgement.reason[:300],
            stages=tuple(stage.as_json() for stage in judgement.stages),
            score=judgement.score,
            times={item.workload: item.as_json() for item in judgement.times},
            facts={**facts, **screening.facts},
            insights=tuple(dict(item) for item in judgement.insights),
            seconds={**draft.seconds, **seconds, "judge": round(time.monotonic() - started, 2)},
        )
        return record, judgements

    def _write(
        self, record: SearchRecord, claim: NumberClaim, judgements: Sequence[CandidateJudgement] = ()
    ) -> SearchRecord:
        """Append the record with its verdicts against who is there now, and let the number go."""
        workloads = self._settings.workloads
        with self._journal.lock():
            archive = self._journal.archive()
            known = archive.by_code.get(record.code_id) if record.is_valid and record.code_id else None
            if known is not None:  # another worker had the same one in hand
                reason = f"the machine code of {known.name}"
                record = replace(record, status=Status.SAME_CODE, same_as=known.number, reason=reason)
            verdicts: dict[str, PairVerdict] = {}
            others = {elite.content_id: elite for elite in archive.elites}
            parent = archive.by_number.get(record.parent) if record.parent is not None else None
            for other in (parent, archive.seed):
                if other is not None and other.content_id and other.number != record.number:
                    others.setdefault(other.content_id, other)
            for content_id, other in others.items():
                if record.times and record.status in (Status.VALID, Status.SLOWER, Status.SAME_CODE):
                    same = bool(record.code_id) and record.code_id == other.code_id
                    first = judgements[0] if judgements else None
                    known_workloads = [name for name in workloads if name in record.times]
                    if first is None or (verdict := measured_verdict(first, other, workloads)) is None:
                        on = workloads if first else known_workloads
                        verdicts[content_id] = modelled_verdict(record.times, other, on, same)
                    elif len(judgements) > 1:
                        second = measured_verdict(judgements[1], other, workloads)
                        verdicts[content_id] = confirmed(verdict, second)
                    else:
                        verdicts[content_id] = verdict
            written = self._journal.append(replace(record, verdicts=verdicts))
            claim.release()
        return written


def choose_parent(archive: Archive, rng: random.Random) -> SearchRecord:
    """Whose child comes next: mostly an elite's, then one of the fastest, then any that is right."""
    draw = rng.random()
    valid = archive.valid
    if draw < _OF_ELITES and archive.elites:
        return rng.choice(archive.elites)
    if draw < _OF_ELITES + _OF_FASTEST:
        timed = sorted(valid, key=lambda record: mean_time_ns(record) or float("inf"))
        return rng.choice(timed[:_FASTEST])
    return rng.choice(valid)


def record_line(record: SearchRecord, workload: str) -> str:
    """A record in a line, as `search run` says it."""
    time_ns = record.time_ns(workload)
    parts: list[Any] = [record.name, str(record.status)]
    if record.levers:
        parts.append(", ".join(record.levers))
    if time_ns is not None:
        parts.append(f"{time_ns / 1000:.4g} µs {record.evidence}")
    conflicts, registers = record.facts.get("bank_conflicts"), record.facts.get("registers")
    if conflicts is not None:
        parts.append(f"{conflicts:g} conflicts")
    if registers is not None:
        parts.append(f"{registers} registers")
    if record.reason:
        parts.append(record.reason[:120])
    return " · ".join(parts)
