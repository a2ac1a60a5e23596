"""A split of time in words: the sentence that answers why, in its parts, and times with signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.explain.time_identity import (
    BALANCE,
    CLOCK,
    CYCLES,
    CYCLES_ONLY,
    FULL,
    PARALLELISM,
    WAITING,
    WORK,
    TimeSplit,
)
from profiler.explain.what_moved import WhatMoved
from profiler.statistics.verdict import Verdict

UNDIVIDED = "no counters on both sides divide the cycles"
NOTHING_MOVED = "no counter beyond its threshold"
NO_CHANGE = "±0"  # a time that rounds to nothing beside what it stands with
_MAIN_SHARE = 0.5  # a cause is the main one from this share of the change on
_OFFSET_SHARE = 0.1  # a cause against the change is worth a clause from this share on
# What happened to a cause that saves time, and to one that adds time.
_DIRECTIONS = {
    WORK: ("less", "more"),
    WAITING: ("less", "more"),
    PARALLELISM: ("higher", "lower"),
    BALANCE: ("better", "worse"),
    CLOCK: ("a higher", "a lower"),
    CYCLES: ("fewer", "more"),
}


@dataclass(frozen=True)
class SentenceParts:
    """The sentence that answers why, in its parts; as text, the parts joined."""

    headline: str  # what changed: "1.04 ms faster", or why there is no answer
    causes: str = ""  # what it is due to: "mainly from more waiting (+1.04 ms)", or why no cause is named
    remainder: str = ""  # what no cause explains: "Residue +3.2 µs, 0.2 % of the change."
    moved: str = ""  # where the split is not full, what moved most: "Moved most: instructions issued …"
    collect: str = ""  # where nothing divides the cycles, what would, and the command: "Collect …"

    @property
    def answer(self) -> str:
        """The headline and the causes as one sentence."""
        return f"{self.headline}, {self.causes}." if self.causes else f"{self.headline}."

    @property
    def others(self) -> tuple[str, ...]:
        """The sentences after the answer."""
        return tuple(filter(None, (self.moved, self.collect, self.remainder)))

    def __str__(self) -> str:
        return " ".join((self.answer, *self.others))


def format_time(us: float, largest: float | None = None, change: float | None = None) -> str:
    """A time in a fitting unit; beside a `largest` time, in that one's unit.

    The decimals then give the largest time three digits, or the largest `change` where that is given.
    """
    if largest is None:
        return str(formatting.quantity(Value(us, "us")))
    scale = formatting.scale_for("us", largest)
    three_digits = abs((largest if change is None else change) / scale.divisor) or 1.0
    decimals = max(0, 2 - int(f"{three_digits:.2e}".partition("e")[2]))
    number = f"{abs(us) / scale.divisor:.{decimals}f}"
    return f"{formatting.MINUS if us < 0 and float(number) else ''}{number} {scale.unit}"


def format_side(us: float, largest: float) -> str:
    """The time of a side with three significant digits, in the unit of the larger side."""
    return str(formatting.quantity(Value(us, "us"), formatting.scale_for("us", largest)))


def format_change(us: float, largest: float | None = None, change: float | None = None) -> str:
    """A change in time with its sign, `+1.04 ms`, written as `format_time` does; `±0` for next to nothing."""
    text = format_time(us, largest, change)
    if not _shows_anything(text):
        return NO_CHANGE
    return text if us < 0 else f"+{text}"


def compose_sentence(
    verdict: Verdict,
    reason: str,
    a_us: float | None,
    b_us: float | None,
    split: TimeSplit | None,
    moved: WhatMoved | None = None,
    collect: str = "",
    *,
    by_cycles: bool = False,
    busy_pipe: str = "",
) -> SentenceParts:
    """The answer to why a launch's time changed, or what stands in the way of one.

    `moved` is what else moved, and None where the split says enough; `collect` what would divide the cycles.
    `by_cycles`: the SM clock alone changed the time, as `reason` says, which is the whole cause.
    `busy_pipe`: the pipe that bounds the slower side, in words; warps then wait for it.
    """
    if verdict is Verdict.NOT_COMPARABLE:
        return SentenceParts(f"No causes: {reason}")
    if a_us is None or b_us is None:
        return SentenceParts(f"No split without a duration: {reason}")
    times = f"{format_side(a_us, max(a_us, b_us))} → {format_side(b_us, max(a_us, b_us))}"
    if by_cycles:
        return SentenceParts(f"{times}: {reason}")
    if verdict is Verdict.SAME:
        return SentenceParts(f"Unchanged, {times}: {reason}", "so no causes")
    if verdict is Verdict.UNCLEAR:
        return SentenceParts(f"Unclear whether it changed, {times}", "so no causes")
    change = f"{format_time(abs(b_us - a_us))} {'faster' if b_us < a_us else 'slower'}"
    others = f"Moved most: {moved.words or NOTHING_MOVED}." if moved else ""
    if split is None:
        return SentenceParts(change, "but no split: too few counters for the causes", "", others, collect)
    causes = _causes(split, busy_pipe)
    return SentenceParts(
        change, causes, f"{_residue(split)}.", others, collect if causes.endswith(UNDIVIDED) else ""
    )


def split_notes(split: TimeSplit, causes: bool) -> Iterator[str]:
    """What a reader should know before believing the terms; `causes`: the verdict calls them causes."""
    if not causes:
        yield "the verdict is unclear: this is how the counters split, and no cause"
    if split.flagged:
        yield f"residue flagged: {split.flagged}; the replay passes saw different runs, profile again"
    if split.stall_ratio_a is not None and split.stall_ratio_b is not None and split.depth == FULL:
        ratios = f"{_percent(split.stall_ratio_a)} / {_percent(split.stall_ratio_b)} of warp latency (A / B)"
        has_rest = any(term.cause == WAITING for term in split.terms)
        rest = "; the rest counts as waiting" if has_rest else _scaling(split)
        yield f"stall reasons sum to {ratios}{rest}"
    if split.depth == CYCLES_ONLY and split.clock_from_time:
        yield "no clock on both sides: the clock is cycles over time, so nothing is left for a residue"
    elif split.stand_ins:
        yield from _stand_in_notes(split)


def _stand_in_notes(split: TimeSplit) -> Iterator[str]:
    """What stands for counters that a side lacks, and what that leaves uncertain."""
    yield f"computed from other counters (not collected in A, B or both): {_words_of_stand_ins(split)}"
    most = max(stand_in.most_off_pct for stand_in in split.stand_ins)
    if most:
        yield (
            f"in reports that have the real counters these were off by up to {most:g} %: "
            f"terms below {format_noise(split)} are noise"
        )
    if split.residue_is_made_zero:
        yield "residue is zero by construction; replay skew ends up in the 'balance' term"


def _words_of_stand_ins(split: TimeSplit) -> str:
    return "; ".join(stand_in.words for stand_in in split.stand_ins)


def format_noise(split: TimeSplit) -> str:
    """What a term may be off by, in the unit of the largest."""
    return format_time(split.noise_us, _largest_us(split))


def _causes(split: TimeSplit, busy_pipe: str) -> str:
    """The main cause, what offsets it, and the rest, each with the time that it adds."""
    kinds = dict.fromkeys(term.cause.partition(":")[0] for term in split.terms)
    sums = {kind: split.total(kind) for kind in kinds}
    if split.depth == CYCLES_ONLY and abs(sums[CYCLES]) >= abs(sums[CLOCK]):
        # More or fewer cycles are the change itself in other words, and no cause of it.
        longest = max(map(abs, sums.values()))
        both = (f"{kind} {format_change(us, longest)}" for kind, us in sums.items())
        return f"{', '.join(both)}; {UNDIVIDED}"
    delta, largest = split.delta_us, max(map(abs, (*sums.values(), split.delta_us)))
    main = max(sums, key=lambda kind: sums[kind] * delta)
    if sums[main] * delta <= 0:  # every term goes against the change: the residue made it
        main, words = "", "which none of its counters explains"
    else:
        is_main = abs(sums[main]) >= _MAIN_SHARE * abs(delta)
        words = (
            f"{'mainly' if is_main else 'most of all'} from {_cause(main, sums, split, largest, busy_pipe)}"
        )
    against = [kind for kind, us in sums.items() if us * delta < 0 and abs(us) >= _OFFSET_SHARE * abs(delta)]
    rest = [kind for kind in sums if kind != main and kind not in against]
    against.sort(key=lambda kind: -abs(sums[kind]))
    if against:
        others = " and ".join(_cause(kind, sums, split, largest, busy_pipe) for kind in against)
        words += f", partly offset by {others}"
    small = [kind for kind in rest if format_change(sums[kind], largest) != NO_CHANGE]
    if small:
        others = ", ".join(_cause(kind, sums, split, largest, busy_pipe, is_small=True) for kind in small)
        words += f"; also {others}"
    if all(map(split.is_noise, sums.values())):
        words += f"; no cause is certain: each is below {format_noise(split)}, the error of computed counters"
    return words


def _cause(
    kind: str,
    sums: Mapping[str, float],
    split: TimeSplit,
    largest: float,
    busy_pipe: str,
    *,
    is_small: bool = False,
) -> str:
    """`more waiting (+1.04 ms, most: long_scoreboard)`, or waiting for a pipe that has no more to give.

    `is_small`: one of several beside the main cause, `waiting +0.02 ms (most: barrier)`.
    """
    change, name, details = format_change(sums[kind], largest), kind, []
    if kind == WAITING:
        reasons = [term for term in split.terms if term.cause.startswith(f"{WAITING}:")]
        chief = max(reasons, key=lambda term: term.us * sums[kind], default=None)
        if chief and chief.us * sums[kind] > 0 and not split.reasons_flagged:
            details.append(f"most: {chief.cause.partition(':')[2]}")
        name += " for a busy pipe" if busy_pipe else ""
    if is_small:
        return f"{name} {change}{f' ({details[0]})' if details else ''}"
    words = "; ".join(filter(None, (", ".join((change, *details)), busy_pipe * (kind == WAITING))))
    return f"{_DIRECTIONS[kind][sums[kind] > 0]} {name} ({words})"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f}".removesuffix(".0") + " %"


def _scaling(split: TimeSplit) -> str:
    """How much scaling the stalls to the latency hides from the residue, and whether single reasons hold."""
    skew = format_time(abs(split.stall_skew_us), _largest_us(split))
    if not _shows_anything(skew):
        return " and were rescaled"
    words = f" and were rescaled; effect {skew}"
    if split.reasons_flagged:
        words += f" ({split.reasons_flagged}): waiting holds as a whole, its reasons do not"
    return words


def _residue(split: TimeSplit) -> str:
    words = f"Residue {format_change(split.residue_us, _largest_us(split))}"
    if split.flagged:
        return f"{words}, too large to trust the terms: {split.flagged}"
    share = f"{abs(split.residue_us / split.delta_us):.1%}".replace("%", " %")
    return words if share == "0.0 %" else f"{words}, {share} of the change"


def _largest_us(split: TimeSplit) -> float:
    return max(abs(split.delta_us), *(abs(term.us) for term in split.terms))


def _shows_anything(text: str) -> bool:
    """Whether a rounded number still has a digit other than 0."""
    return any(digit in text for digit in "123456789")
