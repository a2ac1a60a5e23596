"""Static facts, and a gate of machine code, as SARIF 2.1.0, which code scanning shows in a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from profiler.build.resources import FunctionResources
from profiler.documents.code_files import CodeFilesDocument, CodeFunction
from profiler.documents.code_lines import FunctionLines
from profiler.documents.static import StaticDocument, function_label
from profiler.errors import CannotJudge
from profiler.gate.finding import Outcome
from profiler.gate.report import GateReport

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "over-budget": ("error", "A kernel takes more than the budget of its version."),
    "fits-no-sm": ("error", "A block takes more than an SM has: no launch succeeds."),
    "does-not-compile": ("error", "A version does not compile."),
    "spills": ("warning", "Registers are spilled to local memory."),
    "bank-conflicts": ("warning", "Accesses to shared memory take more wavefronts than they need."),
    "uncoalesced": ("warning", "Accesses to global memory touch more sectors than their bytes fill."),
    "near-block": ("note", "A little less of a resource would give one more block on an SM."),
}
_GATE_RULES = {
    "worse": ("error", "Machine code is worse than its lock, or than the build that it is held against."),
    "unclear": ("warning", "Machine code differs, and nobody can say whether that is worse."),
    "acknowledged": ("note", "Machine code is worse than it was, and somebody accepted it."),
}
_GATE_RULES_OF = {
    Outcome.FAILED: "worse",
    Outcome.UNJUDGED: "unclear",
    Outcome.ACKNOWLEDGED: "acknowledged",
}
_One = tuple[str, str, str, int | None]  # rule, message, file, line
_Found = Iterator[_One]
_LEAST_SHARE = 0.25  # of a line's sectors or wavefronts that is too much, for a result


def sarif_log(document: StaticDocument | CodeFilesDocument, root: Path | None = None) -> dict[str, Any]:
    """The log of one run. root: paths are relative to it, the working directory unless given.

    Lines inside of headers outside of root are left out: nobody changes them in a pull request. Source:
    OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
    """
    root = (root or Path.cwd()).resolve()
    is_files = isinstance(document, CodeFilesDocument)
    found = _of_files(document) if isinstance(document, CodeFilesDocument) else _of_versions(document)
    shown = (one for one in found if is_files or one[3] is None or _relative(one[2], root) is not None)
    return _log("attention-profiler static", _RULES, shown, root)


def gate_log(report: GateReport, root: Path | None = None) -> dict[str, Any]:
    """The log of a gate of machine code: what failed, was unclear or acknowledged, at its line of the lock.

    root: as for sarif_log. Raises CannotJudge for a gate of anything else, whose findings have no file.
    """
    found = []
    for finding in report.verdicts.of(*_GATE_RULES_OF):
        if finding.location is None:
            raise CannotJudge("SARIF is of places in files: only a gate of machine code has them")
        text = f"{finding.launch or finding.subject} {finding.gpu}: {finding.line}".replace("  ", " ")
        text += f" (acknowledged: {finding.acknowledged})" if finding.acknowledged else ""
        found.append((_GATE_RULES_OF[finding.outcome], text, *finding.location))
    return _log("attention-profiler gate", _GATE_RULES, found, (root or Path.cwd()).resolve())


def _log(
    name: str, rules_of: Mapping[str, tuple[str, str]], found: Iterable[_One], root: Path
) -> dict[str, Any]:
    results = []
    for rule, text, file, line in found:
        location: dict[str, Any] = {"artifactLocation": {"uri": _relative(file, root) or Path(file).name}}
        if line is not None:
            location["region"] = {"startLine": line}
        results.append(
            {
                "ruleId": rule,
                "ruleIndex": list(rules_of).index(rule),
                "level": rules_of[rule][0],
                "message": {"text": text},
                "locations": [{"physicalLocation": location}],
            }
        )
    rules = [
        {"id": rule, "shortDescription": {"text": words}, "defaultConfiguration": {"level": level}}
        for rule, (level, words) in rules_of.items()
    ]
    driver = {"name": name, "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}],
    }


def _of_versions(document: StaticDocument) -> _Found:
    for failure in document.failures:
        yield "does-not-compile", failure.error.splitlines()[0], failure.version, None
    for function in document.functions:
        label = f"{function.version.id} {function_label(function)} {function.arch}"
        source = str(function.version.source or function.version.id)
        if function.over_budget:
            yield "over-budget", f"{label}: {'; '.join(function.over_budget)}", source, _first_line(function)
        if function.usage.spill_bytes:
            yield "spills", f"{label}: {function.usage.spill_bytes} bytes", source, _first_line(function)
    for function, following in document.near_blocks:
        label = f"{function.version.id} {function_label(function)} {function.arch}"
        source = str(function.version.source or function.version.id)
        yield "near-block", f"{label}: {following.words}", source, _first_line(function)
    for lines in document.lines:
        yield from _of_lines(lines)


def _first_line(function: FunctionResources) -> int | None:
    """Where a result about a whole kernel stands: code scanning wants a line."""
    return 1 if function.version.source else None


def _of_lines(function: FunctionLines) -> _Found:
    label = f"{function.version} {function.arch}"
    for line in function.lines:
        if line.conflicts and line.wavefronts and line.conflicts >= _LEAST_SHARE * line.wavefronts:
            ideal = line.wavefronts - line.conflicts
            text = f"{label}: {line.wavefronts} wavefronts where {ideal} would do: bank conflicts"
            yield "bank-conflicts", text, line.file, line.line
        if line.excess_sectors and line.sectors and line.excess_sectors >= _LEAST_SHARE * line.sectors:
            ideal = line.sectors - line.excess_sectors
            text = f"{label}: {line.sectors} sectors where {ideal} would do: not coalesced"
            yield "uncoalesced", text, line.file, line.line


def _of_files(document: CodeFilesDocument) -> _Found:
    for function in document.functions:
        if function.no_block_words:
            yield "fits-no-sm", f"{function.name}: {function.no_block_words}", *_place(function)
        if function.accesses:
            for waste in function.accesses.wasteful:
                rule = "bank-conflicts" if waste.space == "shared" else "uncoalesced"
                yield rule, f"{function.name}: {waste.words}", waste.file or function.file, waste.line
        if function.local_accesses:
            text = f"{function.name}: {function.local_accesses} loads and stores of local memory"
            yield "spills", text, *_place(function)
        following = function.next_block
        if following and following.is_near:
            yield "near-block", f"{function.name}: {following.words}", *_place(function)


def _place(function: CodeFunction) -> tuple[str, int | None]:
    source = function.live.highest_line if function.live else None
    return source or (function.file, None)


def _relative(file: str, root: Path) -> str | None:
    """The path below root, with slashes; None for a file outside of it."""
    path = Path(file)
    try:
        return (path.resolve() if path.is_absolute() else root / path).relative_to(root).as_posix()
    except ValueError:
        return None
