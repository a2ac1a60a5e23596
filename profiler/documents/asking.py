"""How an answer is asked for: what a command, the library or a tool gives becomes what its function takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from profiler.compare.comparability import ACROSS
from profiler.compare.kernel_pairs import pairs_of
from profiler.compare.resolve_names import resolve, side_of_report
from profiler.errors import UnknownName
from profiler.evidence.launch import Report
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.history.without_results import versions_without_results_explained
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

Subject: TypeAlias = (
    "str | Report | Side"  # a report file, run id, family/version or version; or what was read
)
Answer = TypeVar("Answer")


def ask(
    answer: Callable[..., Answer],
    given: Mapping[str, Any],
    store_opener: StoreOpener,
    *,
    data: str | None = None,
) -> Answer:
    """The answer of a function to those of the given arguments that it has, each in the type that it takes.

    What was not given, or is None, stays the function's default. `table` may be the file of one, and is the
    metrics.txt in use where it is not given; `evidence` is words; `pairs` are texts A=B, tuples or a mapping.
    Raises UnknownName for a value that does not exist, and as the function does.
    """
    taken: dict[str, Any] = {}
    for name, parameter in signature(answer).parameters.items():
        value = given.get(name)
        if name == "table":
            taken[name] = value if isinstance(value, MetricTable) else load_metrics(value and Path(value))
        elif name == "store_opener":
            taken[name] = store_opener
        elif name == "store":
            taken[name] = store_opener()
        elif name == "data":
            taken[name] = data
        elif name == "evidence" and value is not None:
            kinds = [Evidence(kind) for kind in _chosen(name, value, [kind.value for kind in Evidence])]
            is_one = str(parameter.annotation).startswith("Evidence")
            taken[name] = next(iter(kinds), None) if is_one else kinds
        elif value is not None:
            taken[name] = _TAKEN[name](value) if name in _TAKEN else value
        elif parameter.default is parameter.empty:
            taken[name] = None
    return answer(**taken)


def names_among(subjects: Iterable[Subject | None]) -> list[str]:
    """Those of the subjects that are names or files."""
    return [subject for subject in subjects if isinstance(subject, str)]


def side_of(
    subject: Subject,
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    data: str | None = None,
    metrics: Collection[str] | None = None,
) -> Side:
    """The side that a subject is or names; of a file `metrics` alone are read.

    A version without results is CannotJudge with the reason of its catalogue. Raises as `resolve` does, and
    TypeError for what is no subject.
    """
    if isinstance(subject, Report):
        return side_of_report(subject, subject.name).on_gpu(gpu)
    if isinstance(subject, Side):
        return subject.on_gpu(gpu)
    if not isinstance(subject, str):
        raise TypeError(f"a report, a side, a file or a name is needed, not {type(subject).__name__}")
    with versions_without_results_explained((subject,), store_opener, data):
        return resolve(subject, store_opener, workload, gpu, metrics)


def _texts(texts: str | os.PathLike[str] | Collection[str | os.PathLike[str]]) -> list[str]:
    """A text alone is a list of that text, not of its letters."""
    return [os.fspath(text) for text in ([texts] if isinstance(texts, str | os.PathLike) else texts)]


def _chosen(option: str, texts: str | Collection[str], allowed: Sequence[str]) -> list[str]:
    for text in (chosen := _texts(texts)):
        if text not in allowed:
            raise UnknownName(f"{option}={text!r}: there are {', '.join(allowed)}")
    return chosen


def _counted(option: str) -> Callable[[int], int]:
    def counted(number: int) -> int:
        if number < 1:
            raise UnknownName(f"{option}={number}: a whole number from 1 is needed")
        return number

    return counted


def _name(subject: Any) -> Any:
    return os.fspath(subject) if isinstance(subject, os.PathLike) else subject


_MAY_PASS = [verdict.value for verdict in Verdict if verdict.traits.may_pass]
_TAKEN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("a", "b", "name", "against", "baseline", "candidate"), _name),
    **dict.fromkeys(("names", "diffs", "metrics", "on", "workloads", "gpus"), _texts),
    **{option: _counted(option) for option in ("top", "last", "seeds", "jobs")},
    "across": lambda across: _chosen("across", across, tuple(ACROSS)),
    "allow": lambda allow: _chosen("allow", allow, _MAY_PASS),
    "pairs": pairs_of,
    "catalog": Path,
    "out": Path,
    "lock": Path,
}
