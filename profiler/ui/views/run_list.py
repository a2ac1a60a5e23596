"""The runs, where each comes from, and what an import did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC

from profiler.bundles.run import ReportFile
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.store.family_mix import FamilyMix
from profiler.store.import_files import ImportSummary
from profiler.store.rows import Rows, RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row

RUNS_SHOWN = 100
_ROWS_IN_VIEW = 14
_ROW_HEIGHT = 27  # pixels
_RUNS_LINKED = 4  # of one import
# Fields of a run's provenance that have a row of their own in the table of it.
_FIELDS_OF_RUN = {
    "gpu",
    "compute_capability",
    "driver",
    "cuda",
    "ncu_version",
    "clock_control",
    "cache_control",
    "command_line",
}
_WITHOUT_GPU = {"run", "made", "command line"}  # what such a run has to say of these


def report_of(run: RunInfo, sha256: str | None) -> ReportFile | None:
    """The report that a launch came from."""
    return next((report for report in run.reports if report.sha256 == sha256), None)


def count(runs: Sequence[RunInfo]) -> str:
    """How many runs and families there are, and whether the index has older runs that are not listed."""
    if not runs:
        return ""
    number = len(families(runs))
    words = f"{len(runs)} run{'s' * (len(runs) != 1)} of {number} famil{'y' if number == 1 else 'ies'}"
    is_cut = isinstance(runs, Rows) and runs.truncated
    return f"the newest {words}; older ones are not listed" if is_cut else words


def families(runs: Sequence[RunInfo]) -> list[str]:
    """Every family that occurs, by name."""
    return sorted({name for run in runs for name in (run.families or (run.family or "",)) if name})


def family_label(family: str) -> str:
    """A family in the filter; "" stands for all."""
    return family or "all families"


def matching(runs: Sequence[RunInfo], family: str | None, words: str) -> list[RunInfo]:
    """The runs of a family that contain every word in some field, newest first."""
    parts = words.lower().split()
    matches = []
    for run in runs:
        if family and family != run.family and family not in run.families:
            continue
        fields = (
            run.run_id,
            run.family,
            run.version,
            run.workload,
            *run.gpu_names,
            run.ncu_version,
            *run.versions,
        )
        text = " ".join(str(field) for field in fields if field).lower()
        if all(part in text for part in parts):
            matches.append(run)
    return sorted(matches, key=lambda run: run.created, reverse=True)


def choose(runs: Sequence[RunInfo], matches: Sequence[RunInfo], run_id: str | None) -> RunInfo | None:
    """The run that the address names, filtered out or not, else the newest of those that match."""
    return next((run for run in runs if run.run_id == run_id), matches[0] if matches else None)


def short_name(run: RunInfo) -> str:
    """What a run is of, in few words."""
    if run.version:
        return f"{run.family}/{run.version}"
    return f"{_family(run)}, {len(run.versions)} versions"


def table(runs: Sequence[RunInfo], selected: RunInfo | None) -> Html:
    """The runs, newest first, each a link to its provenance and launches."""
    if not runs:
        return markup.note("No run fits these filters.")
    newest = runs[:RUNS_SHOWN]
    has_workloads = any(run.workload for run in newest)
    rows = []
    for run in newest:
        name = markup.cut_name(run.version or f"{len(run.versions)} versions")
        cells = (
            markup.join(
                (markup.tick(run.run_id, run.run_id), markup.tag("span", _family(run), title=_family(run)))
            ),
            markup.link(addresses.run(run.run_id), name, title=run.run_id),
            *([run.workload or "–"] if has_workloads else []),
            markup.tag("span", gpus, title=gpus) if (gpus := ", ".join(run.gpu_names)) else _no_gpu(run),
            f"{run.created.astimezone(UTC):%Y-%m-%d %H:%M}",
            formatting.digits(run.launches) if run.launches else "–",
            run.ncu_version or "–",
            markup.join(markup.evidence_badge(kind.value) for kind in sorted(run.evidence)),
        )
        rows.append(Row(cells, selected=run is selected))
    if more := len(runs) - len(newest):
        rows.append(markup.closing_row(markup.muted(f"{more} older runs not shown: narrow the filters")))
    columns = (
        Column("family", cut=1),
        Column("version", cut=2),
        *([Column("workload", wide=True)] if has_workloads else []),
        Column("GPU", wide=True, cut=1),
        Column("made, UTC"),
        Column("launches", right=True),
        Column("ncu", wide=True),
        Column("evidence", wide=True),
    )
    return markup.tickable(markup.table("runs", columns, rows))


def table_height(runs: Sequence[RunInfo]) -> int:
    """How high the box of the table stands, in pixels: its head and rows, at most as many as fit a screen."""
    return _ROW_HEIGHT * (2 + min(len(runs), _ROWS_IN_VIEW))


def import_summary(summary: ImportSummary | None) -> list[Html]:
    """What the last import of this session did, each refused file with its reason."""
    if summary is None:
        return []
    counts = [f"Imported {len(summary.imported)}"]
    if summary.already:
        counts.append(f"{len(summary.already)} already there")
    if summary.refused:
        counts.append(f"{len(summary.refused)} refused")
    parts: list[object] = [", ".join(counts) + "."]
    if len(summary.imported) > 1:
        a, b = summary.imported[:2]
        view = addresses.Diff(f"{a.family}/{a.version}", f"{b.family}/{b.version}")
        words = markup.join((markup.code(a.version), "→", markup.code(b.version)))
        parts.append(markup.join(("Compare", markup.link(view.href, words))))
    # A link to each: an old report does not come to the top of the table.
    runs = [(run.run_id, f"{run.family}/{run.version}") for run in summary.imported]
    runs += [(run.run_id, run.run_id) for run in summary.already if not run.hidden]
    if runs:
        links = [
            markup.link(addresses.run(run_id), markup.code(name)) for run_id, name in runs[:_RUNS_LINKED]
        ]
        more = f"and {len(runs) - _RUNS_LINKED} more" if len(runs) > _RUNS_LINKED else ""
        parts.append(markup.join(("Open", markup.join(links, ", "), more)))
    messages = (*summary.refused, *summary.warnings)
    return [markup.note(markup.join(parts)), *(markup.error_box(message) for _, message in messages)]


def not_taken(counts: Mapping[str, int]) -> list[Html]:
    """A line for each reason for which files of an upload were not taken."""
    return [
        markup.error_box(f"{count} file{'s were' if count > 1 else ' was'} not taken: {reason}.")
        for reason, count in counts.items()
    ]


def mixed_family(mix: FamilyMix) -> Html:
    """What a family mixes, and the command that mends it."""
    name = markup.code(mix.family)
    if not mix.folders:
        words = f"{mix.unknown} runs do not record the folder of their reports, and may mix several;"
        return markup.note(markup.join((name, words, "a family for each:", markup.code(mix.way_out))))
    folders = [
        markup.join((markup.code(folder), f"({runs}) →", markup.code(family)))
        for folder, family, runs in mix.folders
    ]
    head = f"mixes the reports of {len(mix.folders)} folders:"
    return markup.note(markup.join((name, head, markup.join(folders, ", "))))


def unreadable(reason_by_run: Mapping[str, str]) -> list[Html]:
    """The bundles in the data folder that the index could not take, each with its reason."""
    return [markup.error_box(f"{run_id} is left out: {reason}") for run_id, reason in reason_by_run.items()]


def links(runs: Sequence[RunInfo], run: RunInfo) -> Html:
    """Where one goes from a run: its family's history, and the diff with the run before it."""
    if run.family is None or run.version is None:
        return markup.link(addresses.trends(run.family), "trends") if run.family else Html("")
    result = [markup.link(addresses.trends(run.family, workload=run.workload, gpu=run.gpu), "trends")]
    earlier = [other for other in runs if other.family == run.family and other.created < run.created]
    if earlier:
        before = max(earlier, key=lambda other: other.created)
        view = addresses.Diff(before.run_id, run.run_id)
        words = markup.join(("diff with", markup.code(before.version or before.run_id)))
        result.append(markup.link(view.href, words, title=before.run_id))
    return markup.join(result, " · ")


def provenance(run: RunInfo, files: Sequence[tuple[object, object]] = ()) -> Html:
    """Where a run comes from, as far as its reports say; a run without a GPU has none to speak of."""
    unknown = markup.state("not in the report")
    facts: list[tuple[object, object]] = [
        ("run", markup.code(run.run_id)),
        ("made", formatting.timestamp(run.created)),
        ("GPU", ", ".join(run.gpu_names) or unknown),
        (
            "compute capability",
            ", ".join(filter(None, run.gpus.values())) or run.compute_capability or unknown,
        ),
        ("driver", run.driver or unknown),
        ("CUDA", run.cuda or unknown),
        ("ncu", run.ncu_version or unknown),
        ("clock control", run.clock_control or unknown),
        ("cache control", run.cache_control or unknown),
        ("workload", run.workload or unknown),
        ("command line", markup.code(run.command_line) if run.command_line else unknown),
    ]
    if run.evidence and Evidence.MEASURED not in run.evidence:
        facts = [(label, value) for label, value in facts if label in _WITHOUT_GPU]
    for field in sorted(run.provenance.keys() - _FIELDS_OF_RUN):
        facts.append((field.replace("_", " "), _recorded(run.provenance[field])))
    for report in run.reports:
        size = formatting.quantity(Value(report.size_bytes, "byte"))
        sha256 = markup.code(report.sha256[:12], title=report.sha256)
        facts.append(("report", markup.join((markup.code(report.name), f"{size}, sha256", sha256))))
    return markup.fact_table("provenance", [*facts, *files])


def _family(run: RunInfo) -> str:
    return run.family or f"{len(run.families)} families"


def _no_gpu(run: RunInfo) -> Html:
    is_measured = not run.evidence or Evidence.MEASURED in run.evidence
    return markup.state("not in the report") if is_measured else markup.muted("none needed")


def _recorded(value: object) -> Html:
    """A fact of any form, as it was recorded."""
    return markup.escaped(value) if isinstance(value, str | int | float) else markup.code(json.dumps(value))
