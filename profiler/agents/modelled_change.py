"""Two versions that no GPU measured: their modelled times as a run keeps them, and what they differ by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from profiler.bundles.location import open_root
from profiler.compare import resolve_names
from profiler.documents.prediction import time_words
from profiler.errors import ProfilerError
from profiler.evidence.values import Evidence
from profiler.explain.time_identity import TimeIdentity, split_time
from profiler.model.error_table import load_errors
from profiler.model.stored_predictions import StoredPrediction, find_predictions, predicted_ratio

if TYPE_CHECKING:
    from profiler.store.index import Store

_TERMS = 6


@dataclass(frozen=True)
class ModelledChange:
    """The pairs of modelled times of two versions, as sentences and as a document."""

    sentences: list[str]
    document: Mapping[str, Any]
    workloads: tuple[str, ...] = ()  # where both have a modelled time


@dataclass(frozen=True)
class ModelledLines:
    """Shares of the modelled time by place, and what they are of."""

    sentences: list[str] = field(default_factory=list)
    shares: Mapping[str, float] = field(default_factory=dict)
    time_us: float = 0.0  # what they are shares of
    where: str = ""  # workload and GPU


def modelled_change(
    a: str, b: str, store: Store, workload: str | None = None, gpu: str | None = None
) -> ModelledChange:
    """What the newest run that keeps modelled times says of B against A; without any, why not."""
    refs = [resolve_names.resolve_version(store, name) for name in (a, b)]
    if refs[0].family != refs[1].family:
        return _nothing("they are of two families")
    stored = find_predictions(open_root(), store, refs[0].family)
    if stored is None:
        return _nothing("no run keeps any")
    pairs = []
    for prediction in stored.predictions:
        if prediction.version != refs[1].version or not prediction.time_ns:
            continue
        if (workload or prediction.workload) != prediction.workload or (
            gpu or prediction.gpu
        ) != prediction.gpu:
            continue
        other = stored.of(refs[0].version, prediction.workload, prediction.gpu)
        if other is not None and other.time_ns:
            pairs.append((other, prediction))
    if not pairs:
        return _nothing("none of both versions on one workload and GPU")
    errors = load_errors()
    rows: list[dict[str, Any]] = []
    sentences = []
    for before, after in pairs:
        assert before.time_ns
        assert after.time_ns
        ratio = predicted_ratio(after.time_ns, before.time_ns, before.version, errors)
        causes = _causes(before, after)
        rows.append(
            {
                "workload": after.workload,
                "gpu": after.gpu,
                "a_us": before.time_ns / 1e3,
                "b_us": after.time_ns / 1e3,
                "ratio": ratio.ratio,
                "ratio_low": ratio.low,
                "ratio_high": ratio.high,
                "word": ratio.word,
                "a_limiter": before.limiter,
                "b_limiter": after.limiter,
                "terms": causes[:_TERMS],
            }
        )
        if len(rows) == 1:
            largest = ", ".join(f"{cause['cause']} {cause['us']:+.3g} us" for cause in causes[:3])
            sentences.append(
                f"Modelled on {after.workload}, {after.gpu}: A {time_words(before.time_ns)}, "
                f"B {time_words(after.time_ns)}, B/A {ratio.ratio:.2f} "
                f"({ratio.low:.2f} to {ratio.high:.2f}): {ratio.word}{'; ' + largest if largest else ''}."
            )
    sentences.append(f"{stored.note}.")
    document = {
        "modelled": {"state": Evidence.MODELLED.value, "run": stored.run_id, "pairs": rows},
    }
    return ModelledChange(sentences, document, tuple(dict.fromkeys(row["workload"] for row in rows)))


def _causes(before: StoredPrediction, after: StoredPrediction) -> list[dict[str, Any]]:
    if not before.factors or not after.factors:
        return []
    identities = [TimeIdentity(**side.factors, stalls_whole=True) for side in (before, after)]
    terms = sorted(split_time(*identities).terms, key=lambda term: -abs(term.us))
    least = abs(terms[0].us) / 100 if terms else 0.0
    return [{"cause": term.cause, "us": term.us} for term in terms if abs(term.us) >= least]


def _nothing(why: str) -> ModelledChange:
    return ModelledChange([f"No modelled times either: {why}."], {"modelled": {"missing": why}})


def modelled_lines(
    name: str, arch: str | None, opener: Callable[[], Store], *, by_line: bool
) -> ModelledLines:
    """The shares of the modelled time by source line or instruction, as a run keeps them for this code."""
    try:
        store = opener()
        version = resolve_names.resolve_version(store, name)
        stored = find_predictions(open_root(), store, version.family)
    except ProfilerError:
        return ModelledLines()  # the name is of a file of machine code
    prediction = stored.of_code(version.version, arch or "") if stored else None
    if prediction is None:
        return ModelledLines()
    if by_line:
        shares = {f"{file}:{line}": share for (file, line), share in prediction.lines.items()}
    else:
        shares = {f"+0x{offset:04x}": share for offset, share in prediction.instructions.items()}
    what = "lines" if by_line else "instructions"
    sentence = (
        f"No GPU sampled this code; {what} are by their share of the modelled time on {prediction.workload}, "
        f"{prediction.gpu}."
    )
    ranked = dict(sorted(shares.items(), key=lambda item: -item[1]))
    where = f"{prediction.workload}, {prediction.gpu}"
    return ModelledLines([sentence], ranked, (prediction.time_ns or 0.0) / 1e3, where)
