"""Keeps beside the index what was found worse in it, and why, so that one state of it is searched once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from profiler.bundles import decisions
from profiler.bundles.location import Root
from profiler.compare.kernel_pairs import Pairing
from profiler.compare.noise_model import NoiseModel
from profiler.compare.same_code import same_build_lookup, same_code_lookup
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.values import Derivation, Evidence, State, Value
from profiler.gate.acknowledgement import list_acknowledgements
from profiler.history.baselines import Pin, list_pins
from profiler.history.lineage import Lineage, load_lineages
from profiler.regressions.cause import Cause, CauseFinder
from profiler.regressions.regression import Regression, RegressionKind, SeriesKey, VersionRun
from profiler.regressions.report import RegressionReport, find_regressions, with_acknowledgements
from profiler.regressions.search import Coverage, UnclearReason
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.decision import Interval
from profiler.statistics.noise_floor import NoiseFloor
from profiler.store.object_json import ObjectJson

if TYPE_CHECKING:
    from profiler.store.index import Store

_REPORT, _CAUSES = "regressions", "causes of regressions"  # names of answers
_JSON = ObjectJson(
    (
        *(Regression, RegressionKind, SeriesKey, VersionRun, Cause, UnclearReason),
        *(Value, State, Derivation, Evidence, Interval, LevelKind, NoiseFloor),
    )
)


def search_index(
    root: Root,
    store: Store,
    table: MetricTable,
    noise: NoiseModel,
    *,
    family: str | None,
    lineages: Mapping[str, Lineage],
    pins: Sequence[Pin],
    pairing: Pairing,
) -> RegressionReport:
    """What is worse in a family of an index, or in all, without acknowledgements.

    It is computed where nobody asked the same of this state of the index before. `root` is of its bundles,
    and `noise` must be what that index knows (`NoiseModel.of_store`).
    """
    question = _question(store, table, family, lineages, pins, pairing)
    if content := store.answer(_REPORT, question):
        return _read_report(content)
    state = store.data_version()
    report = find_regressions(
        store,
        table,
        family=family,
        lineages=lineages,
        noise=noise,
        pins=pins,
        pairing=pairing,
        same_code=same_code_lookup(root.url),
        same_build=same_build_lookup(root.url),
    )
    store.keep_answer(_REPORT, question, _write_report(report), state)
    return report


def load_regressions(
    root: Root, store: Store, table: MetricTable, noise: NoiseModel, family: str | None = None
) -> RegressionReport:
    """`search_index` with everything in a data folder: catalogues, pins and acknowledgements."""
    records = decisions.load_decisions(root)
    report = search_index(
        root,
        store,
        table,
        noise,
        family=family,
        lineages=load_lineages(root, store, family),
        pins=list_pins(records),
        pairing=Pairing.of_records(records),
    )
    return with_acknowledgements(report, list_acknowledgements(records))


class KnownCauses:
    """The causes that were found before in this state of the index; `keep` adds those found since."""

    def __init__(self, finder: CauseFinder) -> None:
        self._finder, self._state = finder, finder.store.data_version()
        self._question = _question(finder.store, finder.table, None, {}, (), finder.pairing)
        if content := finder.store.answer(_CAUSES, self._question):
            finder.known.update(_JSON.load(content))
        self._kept = len(finder.known)

    def keep(self) -> None:
        """Keep what the finder knows, if that is more than before."""
        known = self._finder.known
        if len(known) > self._kept:
            content = _JSON.dump(known)
            self._finder.store.keep_answer(_CAUSES, self._question, content, self._state)
            self._kept = len(known)


def _question(
    store: Store,
    table: MetricTable,
    family: str | None,
    lineages: Mapping[str, Lineage],
    pins: Sequence[Pin],
    pairing: Pairing,
) -> str:
    """A digest of all that an answer depends on besides the rows of the index and the program."""
    catalogs = sorted(
        (name, one.snapshot.sha256, sorted(one.wrong.items())) for name, one in lineages.items()
    )
    pairs = [(name, tuple(pairing.kept(name))) for name in store.families()]
    parts = (family, catalogs, tuple(pins), pairing.asked, pairing.propose, pairs)
    metrics = [*map(_in_order, table.metrics), table.captured]
    return sha256(repr((metrics, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _in_order(metric: Metric) -> tuple[object, ...]:
    """A metric without sets, whose order differs from process to process."""
    names = [(name.name, sorted(name.chips)) for name in metric.alternatives]
    forms = [(replace(form, chips=frozenset()), sorted(form.chips)) for form in metric.forms]
    return replace(metric, alternatives=(), forms=()), names, forms


def _write_report(report: RegressionReport) -> str:
    coverage = report.coverage
    counted = (coverage.families, dict(coverage.series), coverage.pairs, dict(coverage.unclear))
    runs: dict[str, dict[str, int]] = {}  # each GPU once
    for (gpu, run_id), lines in coverage.lines.items():
        runs.setdefault(gpu, {})[run_id] = lines
    return _JSON.dump((report.regressions, *counted, runs))


def _read_report(content: str) -> RegressionReport:
    regressions, families, series, pairs, unclear, runs = _JSON.load(content)
    lines = Counter({(gpu, run_id): n for gpu, of_gpu in runs.items() for run_id, n in of_gpu.items()})
    coverage = Coverage(families, Counter(series), pairs, Counter(unclear), lines)
    return RegressionReport(regressions, coverage)
