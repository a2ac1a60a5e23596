"""How a split reads in words: one sentence that answers why, the notes under it, times with their signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profiler.evidence import Value, formatting
from profiler.explain.time_identity import FULL, WAITING, Split
from profiler.statistics import Verdict

_MAIN = 0.5  # a cause is the main one from this share of the change on
_OFFSET = 0.1  # a cause against the change is worth a clause from this share on


def time(us: float, largest: float | None = None, change: float | None = None) -> str:
    """A time in the unit that suits it; beside a `largest`, in its unit.

    Its decimals then give the largest time three digits, or the largest `change` where one is named.
    """
    if largest is None:
        return str(formatting.quantity(Value(us, "us")))
    scale = formatting.scale_for("us", largest)
    ruler = abs((largest if change is None else change) / scale.divisor) or 1.0
    decimals = max(0, 2 - int(f"{ruler:.2e}".partition("e")[2]))
    number = f"{abs(us) / scale.divisor:.{decimals}f}"
    return f"{formatting.MINUS if us < 0 and float(number) else ''}{number} {scale.unit}"


def level(us: float, largest: float) -> str:
    """The time of a side with three significant digits, in the unit of the larger side."""
    return str(formatting.quantity(Value(us, "us"), formatting.scale_for("us", largest)))


def signed(us: float, largest: float | None = None, change: float | None = None) -> str:
    """A change in time with its sign, `+1.04 ms`, written as `time` is; `±0` for next to nothing."""
    text = time(us, largest, change)
    if not any(digit in text for digit in "123456789"):
        return "±0"
    return text if us < 0 else f"+{text}"


def sentence(verdict: Verdict, reason: str, a: float | None, b: float | None, found: Split | None) -> str:
    """One sentence that answers why, or says what stands in the way of an answer; times in microseconds."""
    if verdict is Verdict.NOT_COMPARABLE:
        return f"No causes: {reason}."
    if a is None or b is None:
        return f"No split: the duration is {reason}."
    between = f"{level(a, max(a, b))} → {level(b, max(a, b))}"
    if verdict is Verdict.SAME:
        return f"Unchanged, {between}: {reason}, so no causes."
    if verdict is Verdict.UNCLEAR:
        return f"Unclear whether it changed, {between}, so no causes."
    size = f"{time(abs(b - a))} {'faster' if b < a else 'slower'}"
    if found is None:
        return f"{size}, but no split: too few counters for the causes."
    return f"{size}, {_because(found)}. {_residue(found)}."


def notes(found: Split, causes: bool) -> Iterator[str]:
    """What a reader should know before believing the terms, which are causes where the verdict says so."""
    if not causes:
        yield "the verdict is unclear: this is how the counters split, and no cause"
    if found.flagged:
        yield f"residue flagged: {found.flagged}; the replay passes saw different runs, profile again"
    if found.stall_ratio_a is not None and found.stall_ratio_b is not None and found.depth == FULL:
        ratios = f"{found.stall_ratio_a:.3f} of the latency in A and {found.stall_ratio_b:.3f} in B"
        rest = any(term.cause == WAITING for term in found.terms)
        yield f"the stalls add up to {ratios}; {'what they leave is waiting' if rest else _scaled(found)}"
    if found.clock_from_time:
        yield "no clock on both sides: the clock is cycles over time, so nothing is left for a residue"


def _because(found: Split) -> str:
    """The main cause, what goes against it, and the rest, with what each adds."""
    kinds = dict.fromkeys(term.cause.partition(":")[0] for term in found.terms)
    sums = {kind: found.total(kind) for kind in kinds}
    delta, largest = found.delta_us, max(map(abs, (*sums.values(), found.delta_us)))
    ahead = max(sums, key=lambda kind: sums[kind] * delta)
    if sums[ahead] * delta <= 0:
        ahead, start = "", "which none of its counters explains"
    else:
        most = abs(sums[ahead]) >= _MAIN * abs(delta)
        start = f"{'mainly' if most else 'most of all'} by {_told(ahead, sums, found, largest)}"
    against = [kind for kind, us in sums.items() if us * delta < 0 and abs(us) >= _OFFSET * abs(delta)]
    rest = [kind for kind in sums if kind != ahead and kind not in against]
    against.sort(key=lambda kind: -abs(sums[kind]))
    if against:
        start += ", partly offset by " + " and ".join(_told(kind, sums, found, largest) for kind in against)
    if rest:
        start += "; " + ", ".join(_told(kind, sums, found, largest) for kind in rest)
    return start


def _told(kind: str, sums: Mapping[str, float], found: Split, largest: float) -> str:
    """`waiting (+1.04 ms, most: long_scoreboard)`."""
    words = signed(sums[kind], largest)
    if kind == WAITING:
        of = [term for term in found.terms if term.cause.startswith(f"{WAITING}:")]
        chief = max(of, key=lambda term: term.us * sums[kind], default=None)
        if chief and chief.us * sums[kind] > 0 and not found.reasons_flagged:
            words += f", most: {chief.cause.partition(':')[2]}"
    return f"{kind} ({words})"


def _scaled(found: Split) -> str:
    """What scaling the stalls to the latency keeps out of the residue, and whether single reasons hold."""
    largest = max(abs(found.delta_us), *(abs(term.us) for term in found.terms))
    skew = time(abs(found.stall_skew_us), largest)
    if not any(digit in skew for digit in "123456789"):
        return "scaled to it"
    words = f"scaled to it, which hides {skew} of skew between the passes"
    if found.reasons_flagged:
        words += f" ({found.reasons_flagged}): waiting holds as a whole, its reasons do not"
    return words


def _residue(found: Split) -> str:
    largest = max(abs(found.delta_us), *(abs(term.us) for term in found.terms))
    words = f"Residue {signed(found.residue_us, largest)}"
    if found.flagged:
        return f"{words}, too large to trust the terms: {found.flagged}"
    share = f"{abs(found.residue_us / found.delta_us):.1%}".replace("%", " %")
    return words if share == "0.0 %" else f"{words}, {share} of the change"
