"""What the palette finds: versions, kernels, metrics, runs and pages by any part of their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from profiler.errors import ProfilerError
from profiler.ui import addresses, markup
from profiler.ui.data import lineages, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, metric_table, store
from profiler.ui.data.version_choice import families_of

SHOWN_PER_GROUP = 7


@dataclass(frozen=True)
class Entry:
    """Something that has a page of its own: its kind, its name, what tells it from others, its address."""

    group: str
    label: str
    detail: str
    href: str

    @cached_property
    def words(self) -> str:
        """All that it is found by."""
        return f"{self.label} {self.detail} {self.group}".lower()


def find(entries: Iterable[Entry], text: str, per_group: int = SHOWN_PER_GROUP) -> dict[str, list[Entry]]:
    """The entries that hold every word of the text, by group; of each group those that fit best first.

    A name that is the text comes before one that begins with it, that before one that holds it; among equals
    the order of the entries stays.
    """
    words = text.lower().split()
    by_group: dict[str, list[tuple[int, Entry]]] = {}
    for entry in entries:
        if all(word in entry.words for word in words):
            by_group.setdefault(entry.group, []).append((_rank(entry.label.lower(), words), entry))
    return {
        group: [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])[:per_group]]
        for group, ranked in by_group.items()
    }


def _rank(label: str, words: Sequence[str]) -> int:
    text = " ".join(words)
    if label == text or label.rpartition("/")[2] == text:
        return 0
    if label.startswith(text) or label.rpartition("/")[2].startswith(text):
        return 1
    return 2 if all(word in label for word in words) else 3


@cached(2)
def entries(data_version: DataVersion, pages: tuple[tuple[str, str], ...]) -> tuple[Entry, ...]:
    """Everything that can be found, the lineage's family first; `pages` are titles with their addresses."""
    listed = (
        [Entry("pages", title, "", markup.href(address, {})) for title, address in pages],
        _versions(data_version),
        _kernels(data_version),
        _metrics(data_version),
        _runs(data_version),
    )
    return tuple(entry for group in listed for entry in group)


def _versions(data_version: DataVersion) -> Iterator[Entry]:
    """Each version, to its diff with the version that it came from."""
    versions = lineages.versions(data_version)
    order = families_of(versions)
    by_family = {family: [v for v in versions if v.family == family] for family in order}
    for family, members in by_family.items():
        for version in reversed(members):
            name = addresses.version_name(version)
            parent = _parent(data_version, family, version.version)
            if parent and any(member.version == parent for member in members):
                yield Entry(
                    "versions", name, f"against {parent}", addresses.Diff(f"{family}/{parent}", name).href
                )
            else:
                yield Entry("versions", name, "its history", addresses.trends(family))


def _parent(data_version: DataVersion, family: str, version: str) -> str | None:
    with suppress(ProfilerError):  # a catalogue that cannot be read
        lineage = lineages.lineage(data_version, family)
        if lineage is not None and version in lineage.by_id:
            return lineage.by_id[version].version.parent
    return None


def _kernels(data_version: DataVersion) -> Iterator[Entry]:
    for family, kernel in store().kernels():
        yield Entry("kernels", kernel, family, addresses.trends(family, kernels=kernel))


def _metrics(data_version: DataVersion) -> Iterator[Entry]:
    families = families_of(lineages.versions(data_version))
    for metric in metric_table(data_version).metrics if families else ():
        href = addresses.trends(families[0], metrics=(metric.concept,), evidence=metric.evidence.value)
        yield Entry("metrics", metric.label, f"{metric.concept} {metric.alternatives[0].name}", href)


def _runs(data_version: DataVersion) -> Iterator[Entry]:
    for run in results.runs(data_version):
        of = "/".join(filter(None, (run.family, run.version))) or ", ".join(run.families)
        yield Entry("runs", run.run_id, f"{of} {', '.join(run.gpu_names)}".strip(), addresses.run(run.run_id))
