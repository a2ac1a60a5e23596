"""The text that a generator is given: task, history, evolution, elites, insights, and what is asked of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

from profiler.catalog.search_space import SearchSpace
from profiler.errors import ProfilerError
from profiler.search.archive import Archive, mean_time_ns, path_to
from profiler.search.insights import Insight
from profiler.search.record import PairVerdict, SearchRecord, Status
from profiler.search.settings import SearchSettings

TEMPLATES = Path(__file__).with_name("templates")
NAMES = ("prompt.md", "task.md", "insights.md", "no_insights.md", "ask.md")
_NEWEST = 12  # iterations of the history
_MOST_SOURCE = 60_000  # characters


def load_templates(folder: str = "") -> dict[str, Template]:
    """The templates by name; a file of that name in the folder stands in for the one that ships."""
    templates = {}
    for name in NAMES:
        own = Path(folder) / name if folder else None
        path = own if own is not None and own.is_file() else TEMPLATES / name
        try:
            templates[name] = Template(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ProfilerError(f"{path}: {error}") from None
    if folder and not any((Path(folder) / name).is_file() for name in NAMES):
        raise ProfilerError(f"{folder} has no template: {', '.join(NAMES)}")
    return templates


def write_prompt(
    settings: SearchSettings,
    archive: Archive,
    parent: SearchRecord,
    parent_folder: Path,
    shown: Sequence[Insight],
    space: SearchSpace | None,
    templates: Mapping[str, Template],
) -> str:
    """The prompt for one child of a candidate. Raises ProfilerError for a template with an unknown $name."""
    values = {
        "family": settings.family,
        "gpu": settings.gpu,
        "workloads": ", ".join(settings.workloads),
        "seed": settings.version,
        "parent": parent.name,
        "target": "none" if settings.target_ns is None else _microseconds(settings.target_ns),
        "evidence": str(parent.evidence),
        "source": _source(parent_folder),
        "macros": _macros(space, parent),
        "history": _table(
            ("iteration", "goal", "status", "time", "finding"), _history(archive, settings.workloads[0])
        ),
        "evolution": _table(
            ("candidate", "levers", "latency", f"against {settings.version}", "correctness"),
            _evolution(archive, parent, settings.workloads[0]),
        ),
        "elites": _table(("elite", "mean time", "registers", "conflicts", "levers"), _elites(archive.elites)),
        "insight_lines": "\n".join(
            f"{number}. [{insight.kind}] {insight.text}.\n   lever: {', '.join(_levers(insight, space))}\n"
            f"   numbers: {', '.join(f'{name} = {value:g}' for name, value in insight.numbers.items())}"
            for number, insight in enumerate(shown, 1)
        ),
    }
    values["task"] = _filled(templates, "task.md", values)
    values["insights"] = _filled(templates, "insights.md" if shown else "no_insights.md", values)
    values["ask"] = _filled(templates, "ask.md", values)
    return _filled(templates, "prompt.md", values)


def prompt_digest(prompt: str) -> str:
    """The sha256 of a prompt."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def _filled(templates: Mapping[str, Template], name: str, values: Mapping[str, str]) -> str:
    try:
        return templates[name].substitute(values).strip() + "\n"
    except KeyError as error:
        raise ProfilerError(f"{name}: there is no ${error.args[0]}; there are {', '.join(values)}") from None
    except ValueError as error:
        raise ProfilerError(f"{name}: {error}; $$ is a dollar sign") from None


def _levers(insight: Insight, space: SearchSpace | None) -> list[str]:
    """The techniques that it asks for, then the macros of the source that are one of them."""
    macros = [
        name
        for name, macro in (space.macros if space else {}).items()
        if set(macro.techniques) & set(insight.techniques)
    ]
    return [*insight.techniques, *macros] or ["not known"]


def _macros(space: SearchSpace | None, parent: SearchRecord) -> str:
    if space is None or not space.macros:
        return "none"
    return "\n".join(
        f"- {name} = {parent.macros.get(name, '?')}, of {', '.join(map(str, macro.values))}"
        f" ({', '.join(macro.techniques) or 'no technique named'})"
        for name, macro in space.macros.items()
    )


def _history(archive: Archive, workload: str) -> Iterable[Sequence[str]]:
    """The newest iterations, oldest first."""
    for record in archive.records[-_NEWEST:]:
        time = record.time_ns(workload)
        found = record.reason or record.why.partition("\n")[0]
        if record.status is Status.VALID and not found:
            found = ", ".join(f"{number}: {v.verdict}" for number, v in _against(archive, record))
        goal = ", ".join(record.levers) or "-"
        yield record.name, goal, str(record.status), "-" if time is None else _microseconds(time), found[:160]


def _against(archive: Archive, record: SearchRecord) -> Iterable[tuple[str, PairVerdict]]:
    for content_id, verdict in record.verdicts.items():
        other = archive.by_content.get(content_id)
        if other is not None:
            yield other.name, verdict


def _evolution(archive: Archive, parent: SearchRecord, workload: str) -> Iterable[Sequence[str]]:
    """The way from the seed to the parent."""
    path = path_to(archive, parent)
    first = path[0].time_ns(workload)
    for record in path:
        time = record.time_ns(workload)
        ratio = "-" if time is None or not first else f"× {time / first:.2f}"
        levers = ", ".join(record.levers) or "the seed"
        yield record.name, levers, "-" if time is None else _microseconds(time), ratio, str(record.status)


def _elites(elites: Sequence[SearchRecord]) -> Iterable[Sequence[str]]:
    for elite in elites:
        time = mean_time_ns(elite)
        facts = [elite.facts.get(name) for name in ("registers", "bank_conflicts")]
        words = ["-" if value is None else f"{value:g}" for value in facts]
        yield elite.name, "-" if time is None else _microseconds(time), *words, ", ".join(elite.levers)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join('---' for _ in head)}|"]
    clean = ([cell.replace("|", "/").replace("\n", " ") for cell in row] for row in rows)
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in clean)])


def _microseconds(ns: float) -> str:
    return f"{ns / 1000:.4g} µs"


def _source(folder: Path) -> str:
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix in (".toml", ".cu", ".cuh", ".h", ".ptx"):
            text = path.read_text("utf-8", errors="replace")
            parts.append(f"--- {path.relative_to(folder).as_posix()}\n{text}")
    return "\n".join(parts)[:_MOST_SOURCE]
