"""What was wrong with a run, in words, and which of several defects is named first."""

from __future__ import annotations

from profiler.emulator.run_result import RunResult

# What goes wrong first, by the first words of a defect's kind: an access at a wrong place is also a race with
# those that it meets there. What is not named (deadlock, crash, timeout) follows, then what is no defect.
_CAUSES = (
    "launch-refused",
    "out-of-bounds",
    "misaligned",
    "misuse",
    "cp.async",
    "expect-tx-mismatch",
    "mbarrier-misuse",
    "peer-not-started",
    "wgmma-fence-missing",
    "wgmma-not-waited",
    "async-not-waited",
    "proxy-fence-missing",
    "async-left-pending",
    "peer-exited",
    "uninitialised",
    "barrier-divergence",
    "race",
    "over-budget",
)
_LAST = ("numbers", "not caught", "contract")


def cause_rank(kind: str) -> int:
    """By which findings are sorted, causes before what may follow from them."""
    for rank, word in enumerate(_CAUSES):
        if kind.startswith(word):
            return rank
    return len(_CAUSES) + (_LAST.index(kind) + 1 if kind in _LAST else 0)


def describe_failure(result: RunResult) -> str:
    """What was wrong with a run: its first defect by cause, then how many elements are off by how much."""
    words = []
    if result.defects:
        defect = min(result.defects, key=lambda defect: cause_rank(defect.kind))
        where = f" at {defect.source.file}:{defect.source.line}" if defect.source else f": {defect.text}"
        words.append(f"{defect.kind}{where}")
    if result.returned == 0 and result.output_check and result.output_check.wrong:
        words.append(wrong_elements(result))
    return "; ".join(words) or f"nothing was found, and {result.returned} was returned"


def wrong_elements(result: RunResult) -> str:
    """How many elements are off by how much, of a run that came back."""
    output = result.output_check
    assert output is not None
    error = output.max_abs_error
    return f"{output.wrong} elements " + ("not finite" if error is None else f"off by up to {error:.3g}")
