"""Where every family stands now: its newest versions, and what is worse than before or than the baseline."""

from __future__ import annotations

from collections import deque
from datetime import UTC, date, datetime

from profiler.bundles.decisions import decision_ids, load_decisions
from profiler.bundles.location import open_root
from profiler.gate.acknowledgement import list_acknowledgements
from profiler.history.baselines import Pin, list_pins
from profiler.history.overview import Overview, load_overview
from profiler.regressions.cause import Cause, CauseFinder
from profiler.regressions.groups import WorseNow, group_regressions
from profiler.regressions.regression import Regression
from profiler.regressions.report import RegressionReport, with_acknowledgements
from profiler.regressions.stored_search import KnownCauses, search_index
from profiler.ui.data import lineages
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, metric_table, noise, pairing, store

_WORSE_ENTRIES = 2


@cached(4)
def overview(data_version: DataVersion, families: tuple[str, ...]) -> Overview:
    """The newest state of these families, in their order."""
    return load_overview(
        store(),
        metric_table(data_version),
        noise=noise(data_version),
        pairing=pairing(data_version),
        families=families,
    )


def regressions(data_version: DataVersion) -> RegressionReport:
    """What is worse now in every family."""
    return _regressions(data_version, tuple(decision_ids(open_root())), _today())


def _today() -> date:
    """The day on which acknowledgements may end."""
    return datetime.now(UTC).date()


@cached(2)
def _regressions(data_version: DataVersion, decisions: tuple[str, ...], today: date) -> RegressionReport:
    """The report with what people let pass; decisions and the day are keys of the cache only."""
    records = load_decisions(open_root())
    pins = tuple(list_pins(records))
    # The search takes longest, and no acknowledgement changes what it finds: a form is answered at once.
    report = _search(data_version, tuple(pin.id for pin in pins), pins)
    return with_acknowledgements(report, list_acknowledgements(records))


@cached(2, saying="Looking for what got worse …")
def _search(data_version: DataVersion, pin_ids: tuple[str, ...], _pins: tuple[Pin, ...]) -> RegressionReport:
    return search_index(
        open_root(),
        store(),
        metric_table(data_version),
        noise(data_version),
        family=None,
        lineages=lineages.lineages_by_family(data_version),
        pins=_pins,
        pairing=pairing(data_version),
    )


@cached(2)
def _cause_finder(data_version: DataVersion) -> CauseFinder:
    table = metric_table(data_version)
    return CauseFinder(store(), open_root(), table, noise(data_version), pairing(data_version))


@cached(2)
def _known_causes(data_version: DataVersion) -> KnownCauses:
    return KnownCauses(_cause_finder(data_version))


def worse_now(data_version: DataVersion, family: str | None = None) -> WorseNow:
    """What counts as worse now, in groups of one version and cause: of one family, or of all.

    Every page that says how much is worse takes count, rows and address from here.
    """
    question = (data_version, tuple(decision_ids(open_root())), _today())
    worse = _worse_now(*question)
    if question not in (answered := _answered()):
        answered.append(question)
    return worse.of_family(family)


def is_worse_known(data_version: DataVersion) -> bool:
    """Whether `worse_now` answers at once: some session of this server asked before."""
    return (data_version, tuple(decision_ids(open_root())), _today()) in _answered()


@cached()
def _answered() -> deque[tuple[DataVersion, tuple[str, ...], date]]:
    """What `_worse_now` was last asked, as many as its cache has."""
    return deque(maxlen=_WORSE_ENTRIES)


@cached(_WORSE_ENTRIES)
def _worse_now(data_version: DataVersion, decisions: tuple[str, ...], today: date) -> WorseNow:
    report = _regressions(data_version, decisions, today)
    known = _known_causes(data_version)
    worse = group_regressions(report, _cause_finder(data_version))
    known.keep()
    return worse


@cached()
def cause(data_version: DataVersion, regression: Regression) -> Cause:
    """Why something got worse, as far as it can be told."""
    known = _known_causes(data_version)
    found = _cause_finder(data_version).find(regression)
    known.keep()
    return found
