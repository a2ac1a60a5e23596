"""Kernels of different names that somebody declared to be one: for a comparison, or kept for a family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.bundles import decisions, location
from profiler.bundles.decisions import PAIR, UNPAIR, DecisionRecord
from profiler.bundles.location import Root
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.launch import Launch
from profiler.evidence.name_pattern import BadPattern, Expression, compile_expression, compile_wildcards
from profiler.evidence.naming import brief_list, nearest_first
from profiler.evidence.side import Side

if TYPE_CHECKING:
    from profiler.store.index import Store

Captures = tuple[str, ...]


@dataclass(frozen=True)
class KernelPair:
    """Two names of one kernel: A's and B's. Each is a whole name, a pattern with * or ?, or regex:EXPR."""

    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.a}={self.b}"

    @property
    def reversed(self) -> KernelPair:
        """The pair for the other direction of a comparison."""
        return KernelPair(self.b, self.a)


@dataclass(frozen=True)
class KeptPair:
    """A pair that somebody declared for a family, for both directions."""

    id: str  # of the decision record
    family: str
    pair: KernelPair
    who: str
    created: datetime
    why: str


def _none_kept(*_: object) -> tuple[KernelPair, ...]:
    return ()


@dataclass(frozen=True)
class Pairing:
    """What may pair besides equal names.

    Pairs of this comparison come before equal names; those kept for a family come after them, in both
    directions, and proposals last.
    """

    asked: tuple[KernelPair, ...] = ()
    kept: Callable[[str], Sequence[KernelPair]] = _none_kept  # by family
    propose: bool = True

    @classmethod
    def of_data(
        cls, data: str | None = None, asked: Iterable[KernelPair] = (), *, propose: bool = True
    ) -> Pairing:
        """The pairs kept in the decisions of a data folder, which are read when a family is first asked for.

        `data` is a folder or URL; None means PROFILER_DATA.
        """

        @lru_cache(maxsize=1)
        def by_family() -> Mapping[str, Sequence[KernelPair]]:
            return _by_family(decisions.load_decisions(location.open_root(data)))

        return cls(tuple(asked), lambda family: by_family().get(family, ()), propose)

    @classmethod
    def of_records(cls, records: Iterable[DecisionRecord]) -> Pairing:
        """The pairs kept in these decisions."""
        families = _by_family(records)
        return cls(kept=lambda family: families.get(family, ()))

    def kept_for(self, a: Side, b: Side) -> tuple[KernelPair, ...]:
        """The pairs kept for the families of two sides; a report that was not imported has no family."""
        families = dict.fromkeys(side.family for side in (a, b) if side.family is not None)
        return tuple(pair for family in families for pair in self.kept(family))


NO_PAIRS: Pairing = Pairing()  # that anybody declared


def _by_family(records: Iterable[DecisionRecord]) -> Mapping[str, Sequence[KernelPair]]:
    families: dict[str, list[KernelPair]] = defaultdict(list)
    for kept in list_kept_pairs(records):
        families[kept.family].append(kept.pair)
    return families


def parse_pair(text: str) -> KernelPair:
    """The pair in a text such as `gemm_v6=gemm_v7`. Raises ProfilerError for anything else."""
    a, equals, b = (part.strip() for part in text.partition("="))
    if not (a and equals and b) or "=" in b:
        raise ProfilerError(f"pair {text!r}: two kernels with one = between them, such as gemm_v6=gemm_v7")
    return check_pair(KernelPair(a, b))


def check_pair(pair: KernelPair) -> KernelPair:
    """The pair. Raises ProfilerError where one of its patterns cannot be used."""
    for pattern in (pair.a, pair.b):
        try:
            captures(pattern, "")
        except BadPattern as reason:
            raise ProfilerError(f"pair {pair}: {pattern}: {reason}") from None
    return pair


def pairs_of(
    given: Mapping[str, str] | Iterable[str | tuple[str, str] | KernelPair],
) -> tuple[KernelPair, ...]:
    """The pairs of a mapping from A's names to B's, or of texts and tuples. Raises ProfilerError."""
    if isinstance(given, str):
        given = [given]
    entries = given.items() if isinstance(given, Mapping) else given
    return tuple(
        parse_pair(entry)
        if isinstance(entry, str)
        else check_pair(entry if isinstance(entry, KernelPair) else KernelPair(*entry))
        for entry in entries
    )


def check_asked(asked: Iterable[KernelPair], sides: Sequence[tuple[Side, Side]]) -> None:
    """Raise UnknownName for a pair of which no two sides have a kernel each: after a typing error."""
    for pair in asked:
        if not any(_has(a, pair.a) and _has(b, pair.b) for a, b in sides):
            place, pattern = ("A", pair.a) if not any(_has(a, pair.a) for a, _ in sides) else ("B", pair.b)
            present = {launch.base_name for both in sides for launch in both[place == "B"].launches}
            listed = brief_list(nearest_first(pattern, sorted(present))) or "none"
            raise UnknownName(f"pair {pair}: no kernel of {place} is called {pattern}; there are {listed}")


def captures(pattern: str, name: str) -> Captures | None:
    """What * and ? stand for in a name, or the groups of a regular expression; None where it does not fit."""
    expression = _expression(pattern)
    if expression is None:
        return () if name == pattern else None
    found = expression.search(name)
    return None if found is None else tuple(text or "" for text in found.groups())


def _expression(pattern: str) -> Expression | None:
    """The pattern compiled; None for a whole name. Raises BadPattern."""
    if pattern.startswith("regex:"):
        return compile_expression(pattern.removeprefix("regex:"), ignore_case=True)
    if "*" not in pattern and "?" not in pattern:
        return None
    return compile_wildcards(pattern)


def is_called(launch: Launch, pattern: str) -> bool:
    """Whether a name of the launch is this one, or fits the pattern."""
    return any(captures(pattern, name) is not None for name in launch.names)


def _has(side: Side, pattern: str) -> bool:
    return any(is_called(launch, pattern) for launch in side.launches)


def list_kept_pairs(records: Iterable[DecisionRecord]) -> list[KeptPair]:
    """The pairs that nobody withdrew, oldest first."""
    kept: dict[str, KeptPair] = {}
    for record in records:
        a, b = record.values.get("a"), record.values.get("b")
        if record.kind == PAIR and isinstance(a, str) and isinstance(b, str):
            pair = KernelPair(a, b)
            kept[record.id] = KeptPair(
                record.id, record.subject, pair, record.who, record.created, record.why
            )
        elif record.kind == UNPAIR:
            kept.pop(record.subject, None)
    return list(kept.values())


def pairs_digest(root: Root) -> str:
    """A digest of the decisions about pairs: it changes with each. No record is read."""
    names = decisions.decision_ids(root)  # each names its kind: 20250301T120000000000-pair-1f2e3d4c
    return decisions.decisions_digest(name for name in names if f"-{PAIR}-" in name or f"-{UNPAIR}-" in name)


def keep_pair(
    root: Root, store: Store, family: str, pair: KernelPair, *, why: str = "", who: str | None = None
) -> KeptPair:
    """Keep a pair for a family.

    Raises UnknownName for a family or kernel that the index does not have, and ProfilerError for a pair of
    one name, whose launches pair without it.
    """
    families = store.families()
    if family not in families:
        listed = brief_list(nearest_first(family, families)) or "none"
        raise UnknownName(f"no family {family!r} in the index; there are {listed}")
    names = sorted({row.base_name for row in store.results(family=family, kind="launch")})
    for pattern in (pair.a, pair.b):
        if all(captures(pattern, name) is None for name in names):
            listed = brief_list(nearest_first(pattern, names)) or "none"
            raise UnknownName(f"no kernel of {family} is called {pattern}; there are {listed}")
    if pair.a == pair.b and pair.a in names:
        raise ProfilerError(
            f"{pair.a} is one name, by which its launches pair; those of other sizes or numbers pair "
            f"in order for one comparison: `profiler compare A B --pair {pair.a}={pair.a}`"
        )
    for kept in list_kept_pairs(decisions.load_decisions(root)):
        if kept.family == family and kept.pair in (pair, pair.reversed):
            return kept
    record = decisions.write_decision(root, PAIR, family, {"a": pair.a, "b": pair.b}, why=why, who=who)
    return KeptPair(record.id, family, pair, record.who, record.created, record.why)


def withdraw_pair(root: Root, name: str, *, why: str = "", who: str | None = None) -> KeptPair:
    """Undo a kept pair by its id or the start of it. UnknownName where none or several match."""
    kept = list_kept_pairs(decisions.load_decisions(root))
    matches = [pair for pair in kept if name and pair.id.startswith(name)]
    if len(matches) != 1:
        what = "several pairs are" if matches else "no pair is"
        ids = brief_list([pair.id for pair in matches or kept]) or "none"
        raise UnknownName(f"{what} called {name}; there are {ids}")
    decisions.write_decision(root, UNPAIR, matches[0].id, {}, why=why, who=who)
    return matches[0]
