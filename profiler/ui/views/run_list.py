"""The runs and where each comes from, as markup."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from profiler.bundles import ReportFile
from profiler.evidence import Evidence, Value, formatting
from profiler.store import ImportSummary, RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row

RUNS_SHOWN = 100
_LINKED = 4  # runs of one import
DEFAULT_FAMILY = "imported"
_SHOWN = {
    "gpu",
    "compute_capability",
    "driver",
    "cuda",
    "ncu_version",
    "clock_control",
    "cache_control",
    "command_line",
}


def report_of(run: RunInfo, sha256: str | None) -> ReportFile | None:
    """The report that a launch came from."""
    return next((report for report in run.reports if report.sha256 == sha256), None)


def count(runs: Sequence[RunInfo]) -> str:
    """How much there is."""
    named = len(families(runs))
    words = f"{len(runs)} run{'s' * (len(runs) != 1)} of {named} famil{'y' if named == 1 else 'ies'}"
    return words if runs else ""


def families(runs: Sequence[RunInfo]) -> list[str]:
    """Every family that occurs, by name."""
    return sorted({name for run in runs for name in (run.families or (run.family or "",)) if name})


def chosen(runs: Sequence[RunInfo], found: Sequence[RunInfo], asked: str | None) -> RunInfo | None:
    """The run that the address names, filtered out or not, else the newest of those found."""
    return next((run for run in runs if run.run_id == asked), found[0] if found else None)


def short_name(run: RunInfo) -> str:
    """What a run is of, in few words."""
    if run.version:
        return f"{run.family}/{run.version}"
    return f"{run.family or f'{len(run.families)} families'}, {len(run.versions)} versions"


def matching(runs: Sequence[RunInfo], family: str | None, words: str) -> list[RunInfo]:
    """The runs of a family that hold every word in some field, newest first."""
    wanted = words.lower().split()
    found = []
    for run in runs:
        if family and family != run.family and family not in run.families:
            continue
        fields = (run.run_id, run.family, run.version, run.workload, run.gpu, run.ncu_version, *run.versions)
        text = " ".join(str(field) for field in fields if field).lower()
        if all(word in text for word in wanted):
            found.append(run)
    return sorted(found, key=lambda run: run.created, reverse=True)


def table(runs: Sequence[RunInfo], selected: RunInfo | None) -> Html:
    """The runs, newest first, each a link to its provenance and launches."""
    rows = []
    if not runs:
        return markup.note("No run fits these filters.")
    named = any(run.workload for run in runs[:RUNS_SHOWN])
    for run in runs[:RUNS_SHOWN]:
        badges = markup.join(markup.evidence_badge(kind.value) for kind in sorted(run.evidence))
        name = markup.cut_name(run.version or f"{len(run.versions)} versions")
        cells = (
            run.family or f"{len(run.families)} families",
            markup.link(addresses.run(run.run_id), name, title=run.run_id),
            *([run.workload or "–"] if named else []),
            run.gpu or _no_gpu(run),
            formatting.timestamp(run.created),
            formatting.digits(run.launches) if run.launches else "–",
            run.ncu_version or "–",
            badges,
        )
        rows.append(Row(cells, selected=run is selected))
    columns = (
        Column("family"),
        Column("version", cut=2),
        *([Column("workload", wide=True)] if named else []),
        Column("GPU", wide=True),
        Column("made"),
        Column("launches", right=True),
        Column("ncu", wide=True),
        Column("evidence", wide=True),
    )
    if len(runs) > RUNS_SHOWN:
        rows.append(
            markup.closing_row(
                markup.muted(f"{len(runs) - RUNS_SHOWN} older runs not shown: narrow the filters")
            )
        )
    return markup.table("runs", columns, rows)


def _no_gpu(run: RunInfo) -> Html:
    measured = not run.evidence or Evidence.MEASURED in run.evidence
    return markup.state("not in the report") if measured else markup.muted("none needed")


def _fact(value: object) -> Html:
    """A fact of any form, as it was recorded."""
    return markup.escaped(value) if isinstance(value, str | int | float) else markup.code(json.dumps(value))


def named(family: str) -> str:
    """A family in the filter."""
    return family or "all families"


def outcome(summary: ImportSummary | None) -> list[Html]:
    """What the last import of this session did, each refused file with its reason."""
    if summary is None:
        return []
    parts = [f"Imported {len(summary.imported)}"]
    if summary.already:
        parts.append(f"{len(summary.already)} already there")
    if summary.refused:
        parts.append(f"{len(summary.refused)} refused")
    errors = [markup.error_box(message) for _, message in summary.refused]
    done: list[object] = [", ".join(parts) + "."]
    if len(summary.imported) > 1:
        a, b = summary.imported[:2]
        view = addresses.Diff(f"{a.family}/{a.version}", f"{b.family}/{b.version}")
        words = markup.join((markup.code(a.version), "→", markup.code(b.version)))
        done.append(markup.join(("Compare", markup.link(view.href, words))))
    if summary.imported or summary.already:  # an old report is not on top of the table
        there = [(one.run_id, f"{one.family}/{one.version}") for one in summary.imported]
        there += [(one.run_id, one.run_id) for one in summary.already if not one.hidden]
        links = [markup.link(addresses.run(run_id), markup.code(name)) for run_id, name in there[:_LINKED]]
        more = f"and {len(there) - _LINKED} more" if len(there) > _LINKED else ""
        done.append(markup.join(("Open", markup.join(links, ", "), more) if links else ()))
    return [markup.note(markup.join(done)), *errors]


def refused(unreadable: Mapping[str, str]) -> list[Html]:
    """The bundles that lie in the data folder and are in no table, each with its reason."""
    return [markup.error_box(f"{run_id} is left out: {message}") for run_id, message in unreadable.items()]


def links(runs: Sequence[RunInfo], run: RunInfo) -> Html:
    """Where one goes from a run: its family's history, and the diff with the run before it."""
    if run.family is None or run.version is None:
        return markup.link(addresses.trends(run.family), "trends") if run.family else Html("")
    found = [markup.link(addresses.trends(run.family, workload=run.workload, gpu=run.gpu), "trends")]
    earlier = [one for one in runs if one.family == run.family and one.created < run.created]
    if earlier:
        before = max(earlier, key=lambda one: one.created)
        view = addresses.Diff(before.run_id, run.run_id)
        words = markup.join(("diff with", markup.code(before.version or before.run_id)))
        found.append(markup.link(view.href, words, title=before.run_id))
    return markup.join(found, " · ")


def provenance(run: RunInfo, files: Sequence[tuple[object, object]] = ()) -> Html:
    """Where a run comes from, as far as its reports say; a run without a GPU has none to speak of."""
    unknown = markup.state("not in the report")
    facts: list[tuple[object, object]] = [
        ("run", markup.code(run.run_id)),
        ("made", formatting.timestamp(run.created)),
        ("GPU", run.gpu or unknown),
        ("compute capability", run.compute_capability or unknown),
        ("driver", run.driver or unknown),
        ("CUDA", run.cuda or unknown),
        ("ncu", run.ncu_version or unknown),
        ("clock control", run.clock_control or unknown),
        ("cache control", run.cache_control or unknown),
        ("workload", run.workload or unknown),
        ("command line", markup.code(run.command_line) if run.command_line else unknown),
    ]
    if run.evidence and Evidence.MEASURED not in run.evidence:
        asked = {"run", "made", "command line"}
        facts = [(label, value) for label, value in facts if label in asked]
    facts += [
        (name.replace("_", " "), _fact(run.provenance[name]))
        for name in sorted(run.provenance.keys() - _SHOWN)
    ]
    for report in run.reports:
        size = str(formatting.quantity(Value(report.size_bytes, "byte")))
        sha = markup.code(report.sha256[:12], title=report.sha256)
        facts.append(("report", markup.join((markup.code(report.name), f"{size}, sha256", sha))))
    return markup.fact_table("provenance", [*facts, *files])
