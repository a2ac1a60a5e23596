"""Which commit changed a time: a bisection by runs that are not exact, as a document."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.build.revisions import Checkouts, Commit, check_below, commits_between
from profiler.bundles.scratch import scratch_folder
from profiler.documents.blocks import Block, Heading, Line, Notes, Table
from profiler.documents.document import Document
from profiler.errors import BuildFailed, CannotJudge, Exit, ProfilerError
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.sass.code_changes import compare_binaries
from profiler.statistics.decision import change_text, share_text
from profiler.statistics.step_search import StepSearch
from profiler.timings.timing import NS

# The end of what a run prints: `12.5`, `12.5 us`, `latency: 3.1e-2 ms`
_TIME = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(ns|us|µs|ms|s)?\s*$")


@dataclass(frozen=True)
class RunCommit:
    """A commit that was run, or could not be."""

    commit: Commit
    times: tuple[float, ...] = ()  # of its runs, in ns where the runs name a unit
    failure: str = ""  # why it has none


@dataclass(frozen=True, repr=False)
class BisectDocument(Document):
    """The commit from which on a time is another, or that the runs do not tell."""

    good: str  # as they were named
    bad: str
    commits: int  # from the good one to the bad one, both counted
    tried: tuple[RunCommit, ...]  # oldest first
    found: Commit | None  # None: cannot tell
    possible: tuple[Commit, ...]  # could not be run, and may have the step in its place
    probability: float  # of the most likely commit
    likely: Commit | None  # that commit; None where the ends do not differ
    step: float  # how much longer a run takes from there on, as a share; negative for faster
    runs: int
    spread: float  # how far runs of one commit lie apart, as a share
    same_code: int  # commits without the step, since machine code before and from them on is equal
    has_unit: bool

    columns = ("commit", "date", "subject", "runs", "median", "failure")
    numbers_are = "measured"

    @property
    def title(self) -> str:
        """Both ends."""
        return f"bisect {self.good}..{self.bad}"

    @property
    def sentences(self) -> Sequence[str]:
        """The commit with its step, or why it cannot be told."""
        if self.found is None:
            return (f"Cannot tell which commit it is: {self._why()}",)
        words = f"{self.found.sha[:12]} {self.found.subject}"
        others = f", or one of {len(self.possible)} before it that could not be run" if self.possible else ""
        return (
            f"{words}{others}: {change_text(self.step)} from there on, probability {self.probability:.4f}, "
            f"{self.runs} runs of {len(self.tried)} of {self.commits} commits",
        )

    def _why(self) -> str:
        if self.same_code == self.commits - 1:
            return f"{self.good} and {self.bad} have equal machine code"
        if self.likely is None:
            return (
                f"{self.good} and {self.bad} differ by {change_text(self.step)}, and their runs by "
                f"{share_text(self.spread)} (sd): too little, {self.runs} runs"
            )
        return f"the most likely is {self.likely.sha[:12]} with {self.probability:.2f}, {self.runs} runs"

    @property
    def exit_code(self) -> Exit:
        """Unjudged where it cannot be told."""
        return Exit.PASS if self.found else Exit.UNJUDGED

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each commit that was tried; `median` in ns where runs name a unit, else as printed."""
        return [
            (
                one.commit.sha,
                one.commit.when.isoformat(),
                one.commit.subject,
                len(one.times),
                _median(one.times),
                one.failure or None,
            )
            for one in self.tried
        ]

    def _content(self) -> dict[str, object]:
        found = self.found
        return {
            "good": self.good,
            "bad": self.bad,
            "commit": found.sha if found else None,
            "subject": found.subject if found else None,
            "date": found.when.isoformat() if found else None,
            "possible": [commit.sha for commit in self.possible],
            "most_likely": self.likely.sha if self.likely else None,
            "probability": self.probability,
            "step": None if math.isnan(self.step) else self.step,
            "spread": self.spread,
            "runs": self.runs,
            "commits": self.commits,
            "same_code": self.same_code,
            "tried": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The answer, then the commits that were run."""
        yield Heading(self.title, 1)
        for sentence in self.sentences:
            yield Line(sentence)
        rows = [
            (
                one.commit.sha[:12],
                f"{one.commit.when:%Y-%m-%d}",
                str(len(one.times)),
                self._time(_median(one.times)),
                one.failure or one.commit.subject,
            )
            for one in self.tried
        ]
        yield Table(("commit", "date", "runs", "median", ""), rows, right=(2, 3))
        if self.same_code:
            yield Notes([f"{self.same_code} commits are ruled out by equal machine code: they needed no run"])

    def _time(self, median: float | None) -> str:
        if median is None:
            return "–"
        return str(formatting.quantity(Value(median, "ns"))) if self.has_unit else f"{median:.6g}"


def bisect_time(
    good: str,
    bad: str,
    *,
    run: str | None = None,
    build: str | None = None,
    output: str | None = None,
    most: int = 200,
) -> BisectDocument:
    """Which commit made a command slower, or faster?

    Finds the commit between GOOD and BAD from which on the command takes another time, where runs are noisy:
    each run moves the probability of every commit, none excludes a half for good, and the next run is where
    most is learnt. It ends with the commit and how sure that is, or says that it cannot tell (exit code 3).
    With --output, commits whose machine code equals that of one that was run need no run.

    The repository is that of the working directory, whose own files stay as they are. Along merges only first
    parents are looked at. A commit whose build or run fails is passed over.

    Arguments:
        good: a revision before the change
        bad: a revision after it
        run: the shell command that times one run, in a checkout of the commit; its last line ends in the
          time, such as 12.5 us
        build: the shell command that builds a checkout, once for each commit
        output: the library or cubin that the build makes, below the checkout, to compare machine code
        most: how many runs to make at most

    Raises UnknownName for a revision that does not exist, CannotJudge where GOOD is not before BAD or one of
    them cannot be built and run.

    Example:

        profiler.bisect_time("v1.2", "HEAD", run="python bench.py", build="make").sentences
    """
    if run is None:
        raise ProfilerError("bisect needs --run CMD, the command that times one run", option="--run")
    if output is not None:
        check_below(output)
    commits = commits_between(good, bad)
    if len(commits) < 2:
        raise CannotJudge(f"{good} and {bad} are one commit")
    with scratch_folder() as folder:
        checkouts = Checkouts(folder, build)
        try:
            search = _CommitSearch(commits, checkouts, run, output)
            search.go(most)
        finally:
            checkouts.close()
    return search.document(good, bad)


class _CommitSearch:
    """A search and the commits that it runs."""

    def __init__(self, commits: Sequence[Commit], checkouts: Checkouts, run: str, output: str | None) -> None:
        self.commits = commits
        self.checkouts = checkouts
        self.run = run
        self.output = output
        self.search = StepSearch(len(commits))
        self.times: dict[int, list[float]] = {}
        self.failures: dict[int, str] = {}
        self.units: set[bool] = set()  # whether a run named a unit
        self.compared: set[int] = set()  # commits whose machine code was compared

    def go(self, most: int) -> None:
        """Run commits until the search ends, or there were as many runs."""
        places = {commit.sha: place for place, commit in enumerate(self.commits)}
        while self.search.runs < most:
            at_hand = [places[sha] for sha in self.checkouts.made]
            place = self.search.next_build(at_hand)
            if place is None:
                return
            try:
                checkout = self.checkouts.of(self.commits[place].sha)
                if self._is_known_code(place, checkout):
                    if len(self.search.excluded) == len(self.commits) - 1:
                        return  # both ends have equal machine code
                    continue
                time = self._time_run(checkout)
            except BuildFailed as error:
                if place in (0, len(self.commits) - 1):
                    raise CannotJudge(str(error)) from error
                self.failures[place] = str(error)
                self.search.unusable.add(place)
                continue
            self.times.setdefault(place, []).append(time)
            self.search.add(place, time)

    def document(self, good: str, bad: str) -> BisectDocument:
        """What the runs so far tell."""
        search = self.search
        found = search.found
        places = search.probabilities
        likely = int(places.argmax()) if search.ends_differ else None
        before = max((p for p in range(found or 0) if p not in search.unusable), default=0)
        tried = sorted(self.times.keys() | self.failures.keys())
        return BisectDocument(
            good,
            bad,
            len(self.commits),
            tuple(
                RunCommit(self.commits[place], tuple(self.times.get(place, ())), self.failures.get(place, ""))
                for place in tried
            ),
            None if found is None else self.commits[found],
            tuple(self.commits[place] for place in range(before + 1, found or 0)),
            float(places.max()),
            None if likely is None else self.commits[likely],
            math.expm1(search.step if found is None else search.step_at(found)),
            search.runs,
            math.expm1(search.spread),
            len(search.excluded),
            self.units == {True},
        )

    def _is_known_code(self, place: int, checkout: Path) -> bool:
        """Whether the machine code is that of the nearest commit that was made: then it needs no run."""
        if self.output is None or place in self.compared:
            return False
        self.compared.add(place)
        made = checkout / self.output
        if not made.exists():
            raise BuildFailed(f"{self.commits[place].sha[:12]} was built, but made no {self.output}")
        before = self.search.excluded.copy()
        for other in self._nearest(place):
            known = self.checkouts.made.get(self.commits[other].sha)
            if known and not compare_binaries(known / self.output, made).changed:
                self.search.note_equal(other, place)
        return self.search.excluded != before

    def _nearest(self, place: int) -> Iterator[int]:
        """The compared commits next to this one, before and after it."""
        others = self.compared - {place}
        yield from sorted((other for other in others if other < place), reverse=True)[:1]
        yield from sorted(other for other in others if other > place)[:1]

    def _time_run(self, checkout: Path) -> float:
        done = subprocess.run(
            self.run,
            shell=True,
            cwd=checkout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        if done.returncode:
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or lines or [""]
            raise BuildFailed(f"{checkout.name[:12]} does not run (exit {done.returncode}): {said[-1][:200]}")
        match = _TIME.search(lines[-1]) if lines else None
        if match is None or float(match[1]) <= 0:
            last = lines[-1][:80] if lines else "nothing"
            raise ProfilerError(
                f"a run printed {last!r}: its last line has to end in the time, such as 12.5 us"
            )
        self.units.add(match[2] is not None)
        if len(self.units) > 1:
            raise ProfilerError("some runs printed a unit after their time, and some did not")
        return float(match[1]) * NS[match[2] or "ns"]


def _median(times: Sequence[float]) -> float | None:
    from statistics import median

    return median(times) if times else None
