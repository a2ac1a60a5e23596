"""NVIDIA's rule results: which promises most, and which are new, gone or changed between two launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from profiler.evidence.launch import RuleResult

NEW, GONE, CHANGED, SAME = "new", "gone", "changed", "same"
RELEVANT_PP = 1.0  # by how much an estimated speed-up has to move to be a change

_REFERENCE = re.compile(r"@(\w+):([^:@]*):([^@]*)@")
_NUMBER = re.compile(r"(?:close to )?(?:0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*)")  # addresses too: code moves
_KINDS = ("optimization", "warning", "error", "ok")  # what asks for something first


@dataclass(frozen=True)
class RuleChange:
    """One rule result on both sides of a pair; None on the side that does not have it."""

    state: str  # new, gone, changed or same
    a: RuleResult | None
    b: RuleResult | None
    why: str = ""  # what changed, in words

    @property
    def rule(self) -> RuleResult:
        """The rule result of B, or of A where B has none."""
        rule = self.b or self.a
        assert rule is not None
        return rule


def plain_message(message: str) -> str:
    """A rule's message with ncu's references (`@section:ID:words@`, `@url:words:address@`) as words."""
    return _REFERENCE.sub(lambda match: match[2] if match[1] == "url" else match[3], message)


def rule_title(rule: RuleResult) -> str:
    """What a rule result is called: its title, which older rules leave empty, or the rule's name."""
    return rule.title or rule.name or rule.identifier


def rank_rules(rules: Iterable[RuleResult]) -> tuple[RuleResult, ...]:
    """Largest estimated speed-up first, of the whole launch (global) before that of a part (local).

    Rules without an estimate, which are all in reports before ncu 2023, come last by kind: optimizations,
    warnings, errors, then what is well; equal ones in the report's order.
    """
    return tuple(sorted(rules, key=_rank))


def compare_rules(a: Sequence[RuleResult], b: Sequence[RuleResult]) -> tuple[RuleChange, ...]:
    """What became of each rule result: new, gone, changed or same, in this order, each ranked.

    One identifier occurs many times, and a title may change with the finding ("High Utilization",
    "Balanced"): results of one identifier pair by title and wording, then by title, then by wording, then
    where only one is left on each side. Numbers in messages differ from run to run: only other words are a
    change, or another kind or scope, or an estimate that differs by more than RELEVANT_PP.
    """
    unpaired_a, unpaired_b = list(a), list(b)
    pairs: list[tuple[RuleResult, RuleResult]] = []
    for traits in (_title_and_wording, _title, _wording):
        pairs += _take_pairs(unpaired_a, unpaired_b, traits)
    pairs += _take_pairs(unpaired_a, unpaired_b, lambda rule: rule.identifier, alone=True)
    changes = [_change(x, y) for x, y in pairs]
    changes += [RuleChange(NEW, None, rule) for rule in unpaired_b]
    changes += [RuleChange(GONE, rule, None) for rule in unpaired_a]
    order = (NEW, GONE, CHANGED, SAME)
    return tuple(sorted(changes, key=lambda change: (order.index(change.state), _rank(change.rule))))


def _rank(rule: RuleResult) -> tuple[bool, bool, float, int]:
    """Without an estimate last; global before local; the larger first; then by kind."""
    kind = _KINDS.index(rule.kind) if rule.kind in _KINDS else len(_KINDS)
    if rule.speedup_pct is None:
        return True, False, 0.0, kind
    return False, rule.speedup_scope != "global", -rule.speedup_pct, kind


def _title(rule: RuleResult) -> Hashable:
    return rule.identifier, rule.section, rule.title


def _wording(rule: RuleResult) -> Hashable:
    return rule.identifier, rule.section, _without_numbers(rule.message)


@lru_cache(maxsize=4_096)  # a page compares the same rules each time it is drawn
def _without_numbers(message: str) -> str:
    return " ".join(_NUMBER.sub("#", plain_message(message)).split())


def _title_and_wording(rule: RuleResult) -> Hashable:
    return _title(rule), _wording(rule)


def _take_pairs(
    a: list[RuleResult], b: list[RuleResult], traits: Callable[[RuleResult], Hashable], *, alone: bool = False
) -> list[tuple[RuleResult, RuleResult]]:
    """Remove pairs of equal traits from both lists, and give them in the report's order.

    alone: only where one rule on each side has the traits.
    """
    pairs = []
    for rule in list(a):
        same = [other for other in b if traits(other) == traits(rule)]
        own = [other for other in a if traits(other) == traits(rule)]
        if same and not (alone and (len(same) > 1 or len(own) > 1)):
            pairs.append((rule, same[0]))
            a.remove(rule)
            b.remove(same[0])
    return pairs


def _change(a: RuleResult, b: RuleResult) -> RuleChange:
    differences = []
    if a.kind != b.kind:
        differences.append(f"{a.kind} → {b.kind}")
    if a.title != b.title:
        differences.append(f"{rule_title(a)} → {rule_title(b)}")
    if (a.speedup_pct is None) != (b.speedup_pct is None):
        differences.append("an estimate on one side only")
    elif a.speedup_pct is not None and b.speedup_pct is not None:
        if abs(b.speedup_pct - a.speedup_pct) > RELEVANT_PP:
            differences.append(f"estimate {a.speedup_pct:.1f} → {b.speedup_pct:.1f} %")
        if a.speedup_scope != b.speedup_scope:
            differences.append(f"{a.speedup_scope or 'no scope'} → {b.speedup_scope or 'no scope'}")
    if not differences and _wording(a) != _wording(b):
        differences.append("says something else")
    return RuleChange(CHANGED if differences else SAME, a, b, ", ".join(differences))
