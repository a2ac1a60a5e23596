"""What a run of a lineage found, as markup: a row a version, its checks, and the files that the run keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from profiler.bundles import Attachment, Result, Run
from profiler.evidence import Evidence, State, Value, formatting
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

_WORST_FIRST = ("wrong", "failed", "skipped", "done")
_KINDS = {"catalog": "catalogue", "source": "source", "lines": "line table", "sass": "machine code"}


def caption(run: Run) -> str:
    """How much the run covers."""
    versions = {(one.family, one.version) for one in run.results}
    checks = [one for one in run.results if one.check]
    schedules = sum(len(one.check.get("seeds", ())) for one in checks if one.check)
    words = [f"{len(run.results)} cells of {len(versions)} versions"]
    words += [f"{len(checks)} checked, {schedules} schedules"] if checks else []
    return "; ".join(words)


def table(run: Run) -> Html:
    """A row a version: what was examined, how the check came out, the largest error."""
    by_version: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for one in run.results:
        by_version[one.family, one.version].append(one)
    rows = [_version(family, name, several) for (family, name), several in by_version.items()]
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


def files(found: Sequence[Attachment]) -> list[tuple[object, object]]:
    """The files a run keeps, as facts: a line a kind."""
    by_kind: dict[str, list[Attachment]] = defaultdict(list)
    for file in found:
        by_kind[file.kind].append(file)
    lines: list[tuple[object, object]] = []
    for kind, several in by_kind.items():
        size = formatting.quantity(Value(sum(file.size_bytes for file in several), "byte"))
        names = ", ".join(file.name for file in several)
        label = _KINDS.get(kind, kind)
        shown = (
            markup.tag("span", f"{len(several)} files, {size}", title=names) if len(several) > 1 else names
        )
        plural = "" if len(several) == 1 or kind == "sass" else "s"
        lines.append((f"{label}{plural}", shown))
    return lines


def _version(family: str, name: str, several: Sequence[Result]) -> Row:
    checks = [one for one in several if one.check]
    status, reason, worst = min(
        ((*one.outcome, one) for one in several), key=lambda told: _WORST_FIRST.index(told[0])
    )
    functions = sum(fact.evidence is Evidence.STATIC for one in several for fact in one.facts)
    seeds = sum(len(one.check.get("seeds", ())) for one in checks if one.check)
    errors = [one.check.get("max_abs_error") for one in checks if one.check]
    known = [error for error in errors if error is not None]
    error = Value(max(known)) if known and len(known) == len(errors) else Value(None, state=State.FAILED)
    state = markup.muted("right" if checks else status)
    if status != "done":
        state = markup.status_tag(status)
    expected = all(one.check.get("as_expected", True) for one in checks if one.check)
    why = reason or ""
    if status != "done" and expected and worst.check and worst.check.get("state") == "rejected":
        why += " (as the catalogue says)"
    return Row(
        (
            markup.link(markup.href("lineage", {"family": family}), markup.code(name)),
            state,
            formatting.digits(functions),
            formatting.digits(len(checks)),
            formatting.digits(seeds),
            (markup.value(error) if error.number is not None else markup.state("failed")) if checks else "–",
            why,
        )
    )
