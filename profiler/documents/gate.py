"""Whether versions pass against their baselines: names to pairs, verdicts and the answer as a document."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from profiler.build.code_images import is_code
from profiler.compare.kernel_pairs import KernelPair, Pairing
from profiler.documents.blocks import Block, Findings, Fold, Heading, Inline, Item, Line, Link, Name
from profiler.documents.document import Document
from profiler.errors import Exit, ProfilerError, UnknownName
from profiler.evidence.cell import CellFilter
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.gate.finding import TITLES, Finding, Outcome
from profiler.gate.report import GateReport, run_gate

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.regressions.groups import WorseNow

ROWS_SHOWN = 30  # of a table: a pull request is no log
LINES_SHOWN = 4  # of one version
BASELINES_SHOWN = 3  # of those that nobody named
_RUN_ID = re.compile(r"\d{8}T\d{6}-")  # how a run id begins
_WITH_WEIGHT = (Outcome.FAILED, Outcome.UNJUDGED, Outcome.ACKNOWLEDGED)
_MARKS = {
    Outcome.FAILED: "!",
    Outcome.UNJUDGED: "?",
    Outcome.ACKNOWLEDGED: "·",
    Outcome.NOTED: "Δ",
    Outcome.PASSED: "✓",
}
_WORDS = {Exit.PASS: "passed", Exit.REGRESSION: "failed", Exit.UNJUDGED: "unjudged"}


@dataclass(frozen=True, repr=False)
class GateDocument(Document):
    """The findings of a gate and what follows from them."""

    report: GateReport
    dashboard: str = ""  # the address that Markdown links to, without the slash at its end
    worse: WorseNow | None = None  # now, where it judged, by whatever run; None without an index

    columns = (
        "check",
        "outcome",
        "verdict",
        "subject",
        "baseline",
        "kernel",
        "workload",
        "gpu",
        "evidence",
        "concept",
        "line",
        "effect",
        "low",
        "high",
        "detectable",
    )

    @property
    def title(self) -> str:
        """The answer in one line."""
        return self.report.headline

    @property
    def sentences(self) -> Sequence[str]:
        """What failed, what nobody could judge and what somebody let pass."""
        findings = (finding for outcome in _WITH_WEIGHT for finding in self.report.verdicts.of(outcome))
        lines = [f"{finding.heading}: {finding.line}" for finding in findings]
        return [*lines, *filter(None, (self.report.not_judged, self.worse_line))]

    @property
    def worse_line(self) -> str:
        """What is worse now by this change or an earlier one: as the dashboard counts it; "" for nothing."""
        if self.worse is None or not self.worse.count:
            return ""
        where = f" in {self.worse.family}" if self.worse.family else ""
        command = "profiler regressions"
        command += f" --family {shlex.quote(self.worse.family)}" if self.worse.family else ""
        return f"{self.worse.words}{where}, from this change or an earlier one: `{command}`"

    @property
    def exit_code(self) -> Exit:
        """0 nothing got worse, 1 something did, 3 nobody could judge."""
        return self.report.code

    def rows(self) -> list[tuple[object, ...]]:
        """A row a finding; effect, interval (low, high) and detectable are shares of the baseline."""
        return [
            (
                finding.check.value,
                finding.outcome.value,
                finding.verdict.value,
                finding.subject,
                *_place(finding),
                finding.line,
                finding.effect,
                *(_interval(finding) or (None, None)),
                finding.detectable,
            )
            for finding in self.report.verdicts.findings
        ]

    def _content(self) -> dict[str, object]:
        """Every finding with all it holds; effect, interval and detectable are shares of the baseline."""
        from profiler.documents.regressions import worse_now_dict

        return {
            "verdict": _WORDS.get(self.report.code, "unjudged"),
            "exit_code": int(self.report.code),
            "headline": self.report.headline,
            "time": self.report.time_line or None,
            "compared": self.report.verdicts.compared,
            **({"summary": self.report.summary} if self.report.summary else {}),
            "not_judged": self.report.not_judged or None,
            "worse_now": self.worse and worse_now_dict(self.worse),
            "findings": [_finding_dict(finding) for finding in self.report.verdicts.findings],
        }

    def to_json(self) -> str:
        """`to_dict` as ASCII, which a file may be written in whatever the locale is."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=True, indent=1) + "\n"

    def to_sarif(self) -> str:
        """SARIF 2.1.0 for code scanning. Raises CannotJudge where it is no gate of machine code."""
        from profiler.documents.sarif import gate_log

        return json.dumps(gate_log(self.report), indent=1) + "\n"

    def to_junit(self) -> str:
        """JUnit XML for a CI server."""
        from profiler.documents.junit import junit_xml

        return junit_xml(self.report)

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The headline, the times, then what has weight, each said once for the place where most moved.

        With `everything`, every finding in every place.
        """
        verdicts = self.report.verdicts
        yield Heading(self.report.headline, 1)
        if self.report.time_line:
            yield Line(self.report.time_line)
        if self.report.summary:
            yield Line(self.report.summary)
        only = _only_baseline(verdicts.findings)
        if self.report.chosen:
            yield Line(tuple(self._chosen()), label="Baseline")
        elif baseline := only or self.report.baseline:
            yield Line(_name_link(baseline, self.dashboard), label="Baseline")
        for outcome in _WITH_WEIGHT:
            if findings := verdicts.of(outcome):
                yield Heading(TITLES[outcome])
                yield self._findings(findings, _MARKS[outcome], only, everything)
        if verdicts.better:
            yield Heading("got better")
            yield self._findings(verdicts.better, _MARKS[Outcome.PASSED], only, everything)
        if self.report.not_judged:
            yield Line(self.report.not_judged)
        if self.worse and self.worse_line:
            page = f"{self.dashboard}/{self.worse.address}"
            yield Line(
                (f"{self.worse_line} (", Link("the page", page), ")") if self.dashboard else self.worse_line
            )
        if noted := verdicts.of(Outcome.NOTED):
            table = self._findings(noted, _MARKS[Outcome.NOTED], only, everything)
            yield Fold(f"{len(noted)} {TITLES[Outcome.NOTED]}", [table], is_section=True)

    def _chosen(self) -> Iterator[Inline]:
        """The baselines that nobody named, each with the reason and of how many versions it is."""
        chosen = self.report.chosen
        for place, one in enumerate(chosen[:BASELINES_SHOWN]):
            count = f"; for {one.versions} version{'s' * (one.versions > 1)}" if len(chosen) > 1 else ""
            yield from ("; " * (place > 0), _name_link(one.name, self.dashboard), f" ({one.why}{count})")
        if (left := len(chosen) - BASELINES_SHOWN) > 0:
            yield f"; and {left} more"

    def _findings(self, findings: Sequence[Finding], mark: str, only: str, everything: bool) -> Findings:
        """An item a subject and baseline, with everything an item a place; `only` is said already."""
        groups: dict[tuple[str, ...], list[Finding]] = {}
        for finding in findings:
            key = (finding.heading,) if everything else (finding.subject, finding.baseline)
            groups.setdefault(key, []).append(finding)
        items = []
        for group in islice(groups.values(), None if everything else ROWS_SHOWN):
            first = group[0]
            if everything:
                items.append(Item(first.heading, [line for finding in group for line in finding.lines]))
                continue
            name = _subject_link(group, self.dashboard)
            other = first.baseline not in ("", only, first.subject)
            items.append(
                Item((name, " against ", Name(first.baseline)) if other else name, list(_lines(group)))
            )
        if (left := len(groups) - len(items)) > 0:
            items.append(Item(f"and {left} more", ["`profiler gate` prints them all"]))
        return Findings(items, mark)


def gate_versions(
    names: Sequence[str],
    baseline: str | None,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Collection[Evidence] = (),
    on: Sequence[str] = (),
    across: Collection[str] = (),
    allow: Collection[str] = (),
    pairs: Sequence[KernelPair] = (),
    guess: bool = True,
    kernel: str | None = None,
    lock: Path | None = None,
    dashboard: str = "",
    data: str | None = None,
) -> GateDocument:
    """Judge reports, runs and versions against a baseline; without names the newest run, all of it.

    A single name of machine code is judged against its lock, `lock` or kernels.lock in the working folder, or
    against other machine code that is the baseline; `gpu` is then its architecture.
    `baseline` None: what is pinned, else the last run of the same version. `on`, `across` and `allow` as in
    `run_gate`; `pairs`, `guess` and `kernel` as in `compare_names`, the baseline's kernel first; `data` is
    the folder or URL of the index's bundles, PROFILER_DATA's where None. Raises UnknownName,
    UnreadableReport, and CannotJudge for a version without results.
    """
    cells = CellFilter(workload, gpu, list(evidence))
    if lock is not None or any(map(is_code, names)):
        others = {"workload": workload, "on": on, "across": across, "pair": pairs}
        others["evidence"] = [kind for kind in evidence if kind is not Evidence.STATIC]
        if unused := next((option for option, given in others.items() if given), ""):
            raise ProfilerError(f"--{unused} does not go with machine code", option=f"--{unused}")
        return GateDocument(_judge_code(names, baseline, lock, gpu, kernel, allow), dashboard)
    report = run_gate(
        names,
        baseline,
        store_opener,
        table,
        cells=cells,
        on=on,
        across=across,
        allow=allow,
        pairing=Pairing.of_data(data, pairs, propose=guess),
        kernel=kernel,
        data=data,
    )
    worse = None
    if report.families:
        family = report.families[0] if len(report.families) == 1 else None
        from profiler.documents.regressions import load_worse_now

        worse = load_worse_now(table, store_opener(), family=family, data=data)
    return GateDocument(report, dashboard, worse)


def _judge_code(
    names: Sequence[str],
    baseline: str | None,
    lock: Path | None,
    arch: str | None,
    kernel: str | None,
    allow: Collection[str],
) -> GateReport:
    from profiler.gate.library import gate_library

    if len(names) != 1:
        raise UnknownName("machine code is judged file by file, wheel by wheel or folder by folder: name one")
    against = Path(baseline) if baseline is not None else None
    return gate_library(Path(names[0]), lock=lock, baseline=against, arch=arch, kernel=kernel, allow=allow)


def _finding_dict(finding: Finding) -> dict[str, object]:
    baseline, kernel, workload, gpu, evidence, concept = _place(finding)
    return {
        "check": finding.check,
        "outcome": finding.outcome,
        "verdict": finding.verdict,
        "subject": finding.subject,
        "baseline": baseline,
        "kernel": kernel,
        "workload": workload,
        "gpu": gpu,
        "evidence": evidence,
        "concept": concept,
        "line": finding.line,
        "effect": finding.effect,
        "interval": _interval(finding),
        "detectable": finding.detectable,
        "cause": finding.cause or None,
        "acknowledged": finding.acknowledged or None,
        "next": finding.next_command or None,
    }


def _place(finding: Finding) -> tuple[str | None, ...]:
    """Baseline, kernel, workload, GPU, evidence and concept; None for what the finding is not about."""
    place = (finding.baseline, finding.kernel, finding.workload, finding.gpu)
    return tuple(text or None for text in (*place, finding.evidence, finding.concept))


def _interval(finding: Finding) -> list[float] | None:
    return None if finding.interval is None else [finding.interval.low, finding.interval.high]


def _only_baseline(findings: Sequence[Finding]) -> str:
    """The one baseline of all findings, which the heading names then; "" where there are several or none."""
    baselines = {
        finding.baseline for finding in findings if finding.baseline and finding.baseline != finding.subject
    }
    return baselines.pop() if len(baselines) == 1 else ""


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    """What is found of one subject; what holds in many places is told of the place where most moved."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        about = finding.concept or finding.line.partition(":")[0]
        key = (finding.check, finding.evidence, about, finding.acknowledged)
        groups.setdefault(key, []).append(finding)
    for group in islice(groups.values(), LINES_SHOWN):
        worst = max(
            group, key=lambda finding: float("inf") if finding.effect is None else abs(finding.effect)
        )
        place = " · ".join(filter(None, (worst.launch, worst.gpu)))
        more = f", and {len(group) - 1} more place{'s' * (len(group) > 2)}" if len(group) > 1 else ""
        first, *others = worst.lines
        kind = f"[{worst.evidence}]" if worst.evidence else ""
        where = f"{' '.join(filter(None, (place, kind)))}{more}"
        yield f"{first} ({where})" if where else first
        yield from others
    if len(groups) > LINES_SHOWN:
        yield f"and {len(groups) - LINES_SHOWN} more"


def _subject_link(findings: Sequence[Finding], dashboard: str) -> Name | Link:
    """The subject, with a link to the first place that a dashboard shows beside its baseline."""
    name = findings[0].subject
    finding = next((finding for finding in findings if finding.diff_names), None)
    if not dashboard or finding is None or finding.diff_names is None:
        return Name(name)
    a, b = finding.diff_names
    place = {"workload": finding.workload, "gpu": finding.gpu, "evidence": finding.evidence}
    is_one_cell = all("," not in text for text in place.values())  # else the finding stands for several
    query = {"a": a, "b": b, **(place if is_one_cell else {})}
    words = urlencode({key: text for key, text in query.items() if text}, quote_via=quote, safe="")
    return Link(name, f"{dashboard}/diff?{words}")


def _name_link(name: str, dashboard: str) -> Name | Link:
    """A baseline; of a run, which holds several versions, a dashboard has a page."""
    if not dashboard or not _RUN_ID.match(name):
        return Name(name)
    return Link(name, f"{dashboard}/runs?run={quote(name, safe='')}")
