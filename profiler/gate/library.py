"""Pins the machine code of a library, and judges a library against its lock or against another build."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from profiler.compare.match_launches import name_filter
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence
from profiler.gate.code_lock import (
    LOCK_FILE,
    AcceptedChange,
    PinnedFunction,
    PinnedPair,
    ReadFunction,
    lock_text,
    pair_pinned,
    pinned_of,
    read_lock,
    with_loops,
)
from profiler.gate.code_rules import CodeFinding, judge_function
from profiler.gate.finding import Check, Finding, Outcome, Verdicts
from profiler.gate.report import GateReport
from profiler.sass.binary_functions import read_functions_of
from profiler.statistics.verdict import Verdict

_NAMED = 3  # functions that one line names
_OUTCOMES = {
    verdict: Outcome.FAILED
    if verdict.traits.fails
    else Outcome.UNJUDGED
    if not verdict.traits.decided
    else Outcome.PASSED
    if verdict.traits.moved
    else Outcome.NOTED
    for verdict in Verdict
}


class JudgedFunction(NamedTuple):
    """A function of both sides with the facts of its instructions, where they were needed."""

    a: PinnedFunction
    b: PinnedFunction
    findings: tuple[CodeFinding, ...]  # () where nothing got worse or better

    @property
    def is_worse(self) -> bool:
        """Whether a rule fails or cannot tell."""
        return any(_OUTCOMES[one.verdict] in (Outcome.FAILED, Outcome.UNJUDGED) for one in self.findings)


@dataclass(frozen=True)
class LibraryChanges:
    """A library against what it was."""

    same: tuple[PinnedPair, ...]  # code and numbers are equal
    judged: tuple[JudgedFunction, ...]  # something of them differs
    new: tuple[PinnedFunction, ...]
    gone: tuple[PinnedFunction, ...]


def read_library(
    path: Path,
    *,
    arch: str | None = None,
    kernel: str | None = None,
    known: Sequence[ReadFunction] = (),
) -> list[ReadFunction]:
    """The functions of a cubin, library, object, wheel or folder, as a lock holds them; known: as pinned_of.

    Raises BuildFailed and CannotJudge as read_functions_of does, UnknownName where none is selected.
    """
    if not path.exists():
        raise UnknownName(f"{path} does not exist: name a cubin, library, object, wheel or folder")
    functions = read_functions_of(path)
    arches = sorted({one.arch for one in functions})
    if arch is not None and arch not in arches:
        raise UnknownName(f"{path} has no machine code for {arch}; there is {', '.join(arches)}")
    of_arch = [one for one in functions if arch in (None, one.arch)]
    found = pinned_of(of_arch, (one.pinned for one in known), path)
    selected = list(_selected(found, arch, kernel))
    if not selected:
        names = brief_list(sorted({one.pinned.short_name for one in found}))
        raise UnknownName(f"{path} has no kernel {kernel!r}; there are {names}", option="--kernel")
    return selected


def _selected(
    functions: Iterable[ReadFunction], arch: str | None, kernel: str | None
) -> Iterator[ReadFunction]:
    is_selected = name_filter(kernel)
    for one in functions:
        if (arch is None or one.pinned.arch == arch) and (
            kernel is None or is_selected(one.pinned.name) or is_selected(one.pinned.short_name)
        ):
            yield one


def changes_of(a: Sequence[ReadFunction], b: Sequence[ReadFunction]) -> LibraryChanges:
    """What became of every function; instructions are read only of those whose code differs."""
    same: list[PinnedPair] = []
    changed: list[tuple[ReadFunction, ReadFunction]] = []
    new: list[PinnedFunction] = []
    gone: list[PinnedFunction] = []
    for pair in pair_pinned(a, b):
        if pair.a is None or pair.b is None:
            new += [pair.b.pinned] if pair.b else []
            gone += [pair.a.pinned] if pair.a else []
        elif pair.a.pinned.is_same(pair.b.pinned):
            same.append(pair)
        else:
            changed.append((pair.a, pair.b))
    old_code, new_code = [one for one, _ in changed], [one for _, one in changed]
    olds = with_loops(old_code)
    news = with_loops(new_code, olds)
    olds = _with_accesses(old_code, olds, [one.is_small for one in old_code])
    news = [_taken_over(old, now) for old, now in zip(olds, news, strict=True)]
    news = _with_accesses(new_code, news, [old.accesses is not None for old in olds])
    judged = tuple(
        JudgedFunction(old, now, tuple(judge_function(old, now))) for old, now in zip(olds, news, strict=True)
    )
    return LibraryChanges(tuple(same), judged, tuple(new), tuple(gone))


def _taken_over(old: PinnedFunction, now: PinnedFunction) -> PinnedFunction:
    """The function with what its accesses cost, where that was found for the same instructions."""
    is_equal = (old.unscheduled, old.max_threads) == (now.unscheduled, now.max_threads)
    return replace(now, accesses=old.accesses) if is_equal and now.accesses is None else now


def _with_accesses(
    read: Sequence[ReadFunction], pinned: Sequence[PinnedFunction], are_wanted: Iterable[bool]
) -> list[PinnedFunction]:
    """The functions with what the accesses cost of those that are wanted, are there and do not have it."""
    wanted = [
        place
        for place, (one, own, is_wanted) in enumerate(zip(read, pinned, are_wanted, strict=True))
        if is_wanted and one.function and own.is_kernel and own.accesses is None
    ]
    if not wanted:
        return list(pinned)
    # Here: the model takes long to load, and most gates find everything as it was.
    from profiler.gate.followed_accesses import follow_accesses

    found = list(pinned)
    for place, facts in zip(wanted, follow_accesses([read[place] for place in wanted]), strict=True):
        found[place] = replace(found[place], accesses=facts)
    return found


class PinResult(NamedTuple):
    """What a pin wrote, and what it changed of the lock that was there."""

    lock: Path
    functions: tuple[PinnedFunction, ...]  # all of the lock
    changes: LibraryChanges | None  # against the lock that was there; None where there was none
    text_bytes: int

    @property
    def unfollowed(self) -> int:
        """Kernels of which nobody knows what accesses to memory cost."""
        return sum(one.is_kernel and one.accesses is None for one in self.functions)


def pin_library(
    library: Path,
    *,
    lock: Path | None = None,
    arch: str | None = None,
    kernel: str | None = None,
    reason: str | None = None,
) -> PinResult:
    """Write the lock of a library; of one that is there the facts of equal code are taken over.

    kernel: only functions of that pattern, the others stay as they are pinned. reason: why what got worse may
    be so; it stays in the lock until the function changes. Raises as read_library does, and ProfilerError
    where the lock cannot be read or written, or where `kernel` has a lock to change and none is there.
    """
    path = lock or Path(LOCK_FILE)
    before = [ReadFunction(one) for one in read_lock(path)] if path.exists() else []
    if kernel is not None and not before:
        raise ProfilerError(f"there is no lock {path} of which some functions could be pinned: pin all first")
    now = read_library(library, arch=arch, kernel=kernel, known=before)
    known = [one.pinned for one in before]
    chosen = list(_selected(before, arch, kernel))
    functions = _with_accesses(now, with_loops(now, known), [one.is_small for one in now])
    changes = changes_of(chosen, [ReadFunction(one) for one in functions]) if before else None
    accepted = _accepted(changes, reason) if changes else {}
    replaced = {id(one) for one in (chosen if kernel or arch else before)}
    written = [one.pinned for one in before if id(one) not in replaced]
    written += [replace(one, accepted=accepted.get(id(one), ())) for one in functions]
    text = lock_text(written)
    _write(path, text)
    return PinResult(path, tuple(written), changes, len(text.encode()))


def _accepted(changes: LibraryChanges, reason: str | None) -> dict[int, tuple[AcceptedChange, ...]]:
    """By function what may be worse: of what did not change since as it was, of the others by the reason."""
    found = {id(pair.b.pinned): pair.a.pinned.accepted for pair in changes.same if pair.a and pair.b}
    for one in changes.judged if reason else ():
        found[id(one.b)] = tuple(
            AcceptedChange(of.line, reason or "", of.concept)
            for of in one.findings
            if _OUTCOMES[of.verdict] in (Outcome.FAILED, Outcome.UNJUDGED)
        )
    return found


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ProfilerError(f"the lock {path} cannot be written: {error.strerror}") from None


def gate_library(
    library: Path,
    *,
    lock: Path | None = None,
    baseline: Path | None = None,
    arch: str | None = None,
    kernel: str | None = None,
    allow: Collection[str] = (),
) -> GateReport:
    """Judge a library against its lock, or against another build where `baseline` names one.

    Raises as read_library does, and ProfilerError where the lock is not there or cannot be read.
    """
    lines: dict[int, tuple[str, int]] = {}  # by function of the lock
    if lock is not None and baseline is not None:
        raise ProfilerError("--lock does not go with --baseline: a library is judged against one of them")
    if baseline is not None:
        before, against = read_library(baseline, arch=arch), str(baseline)
    else:
        path = lock or Path(LOCK_FILE)
        if not path.exists():
            command = f"profiler pin {shlex.quote(str(library))}"
            command += f" --lock {shlex.quote(str(path))}" if lock else ""
            raise UnknownName(f"there is no lock {path}: `{command}` writes one, or name a --baseline")
        before, against = [ReadFunction(one) for one in read_lock(path)], path.name
        lines = {id(one.pinned): (str(path), line) for line, one in enumerate(before, 2)}
    before = list(_selected(before, arch, kernel))
    now = read_library(library, arch=arch, kernel=kernel, known=before)
    changes = changes_of(before, now)
    findings = list(_Findings(library, against, baseline is None, lock, changes, lines))
    compared = len(changes.same) + len(changes.judged)
    verdicts = Verdicts(tuple(findings), compared)
    said = {name for one in changes.judged for name in (one.a.name, one.b.name, one.b.short_name)}
    said |= {one.short_name for one in (*changes.new, *changes.gone)}
    said |= {finding.kernel for finding in findings if finding.kernel}
    return GateReport(
        verdicts,
        verdicts.exit_code(allow),
        against,
        summary=_summary(changes),
        functions=frozenset(said),
    )


def _summary(changes: LibraryChanges) -> str:
    """How many functions there are of each kind."""
    kinds = Counter[str]({"unchanged": len(changes.same)})
    for one in changes.judged:
        verdicts = {finding.verdict for finding in one.findings}
        outcome = (
            "worse"
            if Verdict.WORSE in verdicts
            else "unclear"
            if one.is_worse
            else "better"
            if Verdict.BETTER in verdicts
            else "changed and no worse"
        )
        kinds[outcome] += 1
    kinds |= {"new": len(changes.new), "gone": len(changes.gone)}
    words = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    return f"Functions: {words}"


def _counted(count: int) -> str:
    return f"{count:,} function{'s' * (count != 1)}"


class _Findings:
    """The findings of a library, function by function."""

    def __init__(
        self,
        library: Path,
        against: str,
        is_pinned: bool,
        lock: Path | None,
        changes: LibraryChanges,
        lines: Mapping[int, tuple[str, int]],
    ) -> None:
        self.library, self.against, self.changes, self.lines = library, against, changes, lines
        self.lock_option = f" --lock {shlex.quote(str(lock))}" if lock else ""
        self.is_pinned = is_pinned

    @cached_property
    def _names(self) -> Counter[tuple[str, str]]:
        """How many functions have a plain name; asked where there is one to say."""
        shown = [pair.b.pinned for pair in self.changes.same if pair.b]
        shown += [one.b for one in self.changes.judged]
        return Counter((one.arch, one.short_name) for one in shown)

    def __iter__(self) -> Iterator[Finding]:
        for one in self.changes.judged:
            yield from self._of_function(one)
        for pair in self.changes.same:
            if pair.a and pair.b:
                yield from self._accepted(pair.a.pinned)
        yield from self._of_names("gone", self.changes.gone)
        yield from self._of_names("new", self.changes.new)
        silent = sum(not one.findings for one in self.changes.judged)
        if self.changes.same:
            line = f"{_counted(len(self.changes.same))} as {'pinned' if self.is_pinned else 'before'}"
            yield self._finding(Outcome.PASSED, Verdict.SAME, line)
        if silent:
            line = f"{_counted(silent)} with other code, and nothing of it is worse"
            yield self._finding(Outcome.PASSED, Verdict.CHANGED, line)

    def _of_function(self, one: JudgedFunction) -> Iterator[Finding]:
        renamed = f"; was {one.a.name}" if one.a.name != one.b.name else ""
        for of in one.findings:
            outcome = _OUTCOMES[of.verdict]
            yield self._finding(
                outcome,
                of.verdict,
                of.line + renamed,
                function=one.b,
                pinned=one.a,
                concept=of.concept,
                effect=of.effect,
                next_command=self._way_out(one.b) if outcome in (Outcome.FAILED, Outcome.UNJUDGED) else "",
            )

    def _accepted(self, pinned: PinnedFunction) -> Iterator[Finding]:
        for change in pinned.accepted:
            yield self._finding(
                Outcome.ACKNOWLEDGED,
                Verdict.WORSE,
                change.what,
                function=pinned,
                pinned=pinned,
                concept=change.concept,
                acknowledged=change.reason,
            )

    def _of_names(self, what: str, functions: Sequence[PinnedFunction]) -> Iterator[Finding]:
        """One finding for all that are new, or gone, of an architecture."""
        by_arch: dict[str, list[PinnedFunction]] = {}
        for one in functions:
            by_arch.setdefault(one.arch, []).append(one)
        for arch, of_arch in by_arch.items():
            names = list(dict.fromkeys(one.short_name for one in of_arch))
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            is_new = what == "new"
            line = f"{_counted(len(of_arch))} {what}: {', '.join(names[:_NAMED])}{more}"
            finding = self._finding(
                Outcome.NOTED if is_new else Outcome.UNJUDGED,
                Verdict.MISSING,
                line,
                check=Check.MISSING,
                pinned=of_arch[0],
                next_command="" if is_new else self._way_out(),
            )
            yield replace(finding, gpu=arch)

    def _way_out(self, function: PinnedFunction | None = None) -> str:
        """How to accept what is there now."""
        if not self.is_pinned:
            return ""
        chosen = f" --kernel {shlex.quote(self._name(function))} --reason WHY" if function else ""
        return f"profiler pin {shlex.quote(str(self.library))}{self.lock_option}{chosen}"

    def _name(self, function: PinnedFunction) -> str:
        """Its plain name; where several have that, the mangled one."""
        is_only = self._names[function.arch, function.short_name] < 2
        return function.short_name if is_only else function.name

    def _finding(
        self,
        outcome: Outcome,
        verdict: Verdict,
        line: str,
        *,
        check: Check = Check.FACTS,
        function: PinnedFunction | None = None,
        pinned: PinnedFunction | None = None,  # the function of the lock
        concept: str = "",
        effect: float | None = None,
        next_command: str = "",
        acknowledged: str = "",
    ) -> Finding:
        return Finding(
            check,
            outcome,
            verdict,
            self.library.name,
            self.against,
            line,
            gpu=function.arch if function else "",
            evidence=Evidence.STATIC,
            kernel=self._name(function) if function else "",
            concept=concept,
            effect=effect,
            next_command=next_command,
            acknowledged=acknowledged,
            location=self.lines.get(id(pinned), (str(self.library), None)),
        )
