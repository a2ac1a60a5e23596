"""The results of a run of a lineage: one row per version, its checks, and the files that the run keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from profiler.bundles.run import Attachment, Result, Run
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

_DONE = "done"
_WORST_FIRST = ("wrong", "failed", "skipped", _DONE)
_FILE_KINDS = {"catalog": "catalogue", "source": "source", "lines": "line table", "sass": "machine code"}
_WITHOUT_PLURAL = ("sass",)  # "machine codes" is no word


def caption(run: Run) -> str:
    """How much the run covers."""
    versions = {(result.family, result.version) for result in run.results}
    words = f"{len(run.results)} cells of {len(versions)} versions"
    checked = sum(bool(result.check) for result in run.results)
    return f"{words}; {checked} checked, {_schedules(run.results)} schedules" if checked else words


def table(run: Run) -> Html:
    """One row per version: what was examined, how the check came out, the largest error."""
    by_version: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in run.results:
        by_version[result.family, result.version].append(result)
    rows = [_version_row(family, version, results) for (family, version), results in by_version.items()]
    columns = (
        Column("version"),
        Column("came out"),
        Column("functions", right=True),
        Column("workloads", right=True),
        Column("schedules", right=True, wide=True),
        Column("max error", right=True),
        Column("why", wrap=True, wide=True),
    )
    return markup.table("versions of this run", columns, rows)


def timed_table(run: Run) -> Html:
    """One row per version, workload and mode: how many calls were timed, and their median."""
    rows = [
        Row(
            (
                markup.link(
                    markup.href("trends", {"family": result.family, "version": result.version}),
                    markup.code(f"{result.family}/{result.version}"),
                ),
                result.workload or "",
                block.mode,
                formatting.digits(len(block.ns)),
                markup.value(Value(median(block.ns), "ns")),
            )
        )
        for result in run.results
        for block in result.samples
    ]
    failed = [result for result in run.results if not result.samples]
    rows += [
        Row((markup.code(f"{of.family}/{of.version}"), of.workload or "", of.reason or of.status, "–", "–"))
        for of in failed
    ]
    columns = (
        Column("version"),
        Column("workload", wrap=True),
        Column("mode", wrap=True, wide=True),
        Column("calls", right=True),
        Column("median", right=True),
    )
    return markup.table("timed calls of this run", columns, rows)


def files(attachments: Sequence[Attachment]) -> list[tuple[object, object]]:
    """The files that a run keeps, as facts: one line per kind."""
    by_kind: dict[str, list[Attachment]] = defaultdict(list)
    for attachment in attachments:
        by_kind[attachment.kind].append(attachment)
    facts: list[tuple[object, object]] = []
    for kind, group in by_kind.items():
        label = _FILE_KINDS.get(kind, kind)
        if len(group) == 1:
            facts.append((label, group[0].name))
            continue
        size = formatting.quantity(Value(sum(attachment.size_bytes for attachment in group), "byte"))
        names = ", ".join(attachment.name for attachment in group)
        words = markup.tag("span", f"{len(group)} files, {size}", title=names)
        facts.append((label if kind in _WITHOUT_PLURAL else f"{label}s", words))
    return facts


def _version_row(family: str, version: str, results: Sequence[Result]) -> Row:
    checks = [result.check for result in results if result.check]
    # A version that is wrong on one workload is wrong.
    worst = min(results, key=lambda result: _WORST_FIRST.index(result.outcome[0]))
    status, reason = worst.outcome
    state = markup.status_tag(status)
    why = reason or ""
    if status == _DONE:
        state = markup.muted("right" if checks else status)
    elif worst.check and worst.check.get("state") == "rejected" and _are_as_expected(results):
        why += " (as the catalogue says)"
    return Row(
        (
            markup.link(markup.href("lineage", {"family": family}), markup.code(version)),
            state,
            formatting.digits(
                sum(fact.evidence is Evidence.STATIC for result in results for fact in result.facts)
            ),
            formatting.digits(len(checks)),
            formatting.digits(_schedules(results)),
            _largest_error(results) if checks else "–",
            why,
        )
    )


def _are_as_expected(results: Sequence[Result]) -> bool:
    """Whether every check came out as the version's entry says."""
    return all(result.check.get("as_expected", True) for result in results if result.check)


def _schedules(results: Sequence[Result]) -> int:
    """In how many orders of its threads the kernels were run."""
    return sum(len(result.check.get("seeds", ())) for result in results if result.check)


def _largest_error(results: Sequence[Result]) -> Html:
    """The largest error of all checks; `failed` where one has none, since it may have been the largest."""
    errors = [result.check.get("max_abs_error") for result in results if result.check]
    numbers = [error for error in errors if error is not None]
    if len(numbers) < len(errors):
        return markup.state("failed")
    return markup.value(Value(max(numbers)))
