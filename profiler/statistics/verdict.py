"""The verdict words in one table: how each is shown and what a gate makes of it. A new word is a row here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What holds wherever a verdict is shown or counted. The defaults are those of `changed`."""

    sign: str  # stands before the word, so that colour is never alone
    colour: str = ""  # role in the palette of ui/theme.py and class of the style sheet; "": no judgement
    decided: bool = True  # whether a rule could tell
    moved: bool = False  # whether it is a change for the better or the worse
    fails: bool = False  # whether a gate fails on it
    may_pass: bool = False  # undecided, and a gate may be told to let it pass
    quiet: bool = False  # whether a list of changes leaves it out unless asked for everything
    weight: int = 2  # of several verdicts the heaviest is that of the whole


class Verdict(StrEnum):
    """The only words for how something moved; `changed` where nobody judges."""

    traits: Traits

    BETTER = "better", Traits(sign="✓", colour="better", moved=True, weight=3)
    WORSE = "worse", Traits(sign="!", colour="worse", moved=True, fails=True, weight=6)
    SAME = "same", Traits(sign="=", quiet=True, weight=1)
    UNCLEAR = "unclear", Traits(sign="?", decided=False, may_pass=True, weight=4)
    NOT_COMPARABLE = "not_comparable", Traits(sign="≠", decided=False, weight=5)
    MISSING = "missing", Traits(sign="–", decided=False, quiet=True, weight=0)
    CHANGED = "changed", Traits(sign="Δ")

    def __new__(cls, word: str, traits: Traits) -> Verdict:
        verdict = str.__new__(cls, word)
        verdict._value_ = word
        verdict.traits = traits
        return verdict

    @property
    def words(self) -> str:
        """As it is written in a sentence: `not comparable`."""
        return self.value.replace("_", " ")

    @property
    def label(self) -> str:
        """Sign and words: `✓ better`, `≠ not comparable`."""
        return f"{self.traits.sign} {self.words}"


def heaviest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a whole with these parts; missing where it has none."""
    return max(verdicts, key=lambda verdict: verdict.traits.weight, default=Verdict.MISSING)


def over_workloads(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of those on several workloads: better needs one that is, none worse and none unknown."""
    words = set(verdicts)
    if Verdict.WORSE in words:
        return Verdict.WORSE
    if not words or words & {Verdict.MISSING, Verdict.NOT_COMPARABLE}:
        return Verdict.MISSING
    if Verdict.BETTER in words:
        return Verdict.BETTER
    return Verdict.SAME if words == {Verdict.SAME} else Verdict.UNCLEAR
