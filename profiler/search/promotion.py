"""A candidate as a version of the catalogue: a patch that a person reads before it is applied."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from profiler.catalog.catalog import Catalog
from profiler.catalog.version import Version
from profiler.errors import ProfilerError, UnknownName
from profiler.judge.manifest import FILE, read_manifest
from profiler.search.archive import mean_time_ns
from profiler.search.journal import Journal
from profiler.search.record import SearchRecord
from profiler.search.variants import macro_words


def find_candidate(journal: Journal, name: str) -> SearchRecord:
    """A candidate by `c41`, or the beginning of its content id. Raises UnknownName."""
    records = journal.records()
    found = [r for r in records if r.name == name or (len(name) >= 8 and r.content_id.startswith(name))]
    if len(found) != 1:
        there = f"c0 to c{max((record.number for record in records), default=0)}"
        raise UnknownName(f"{journal.settings.id} has no candidate {name}: it has {there}")
    return found[0]


def promotion_patch(journal: Journal, catalog: Catalog, name: str, version_id: str = "") -> str:
    """A patch, for `git apply` in the folder above the catalogue's, that makes a candidate a version.

    Where its source is its parent's the version is an entry with flags; else the source comes as a new file,
    and the parent stays as it is. Raises ProfilerError for a candidate that is not right, or a name that is
    taken.
    """
    record = find_candidate(journal, name)
    if not record.is_valid:
        raise ProfilerError(
            f"{record.name} is {record.status}: {record.reason or 'only what is right is promoted'}"
        )
    version = catalog.pick([journal.settings.version])[0]
    assert version.source is not None
    folder = journal.candidate_folder(record.content_id)
    manifest = read_manifest(folder / FILE)
    new_id = version_id or f"{version.id}_{record.name}"
    if new_id in catalog.by_id:
        raise ProfilerError(f"{catalog.path} has a version {new_id}: give another one with --as")
    sources = sorted(path for path in folder.iterdir() if path.suffix in (".cu", ".cuh", ".h"))
    same = [path for path in sources if path.read_bytes() == _bytes(version.source.parent / path.name)]
    renamed = {path.name: f"{new_id}{path.suffix}" for path in sources if path not in same}
    if len(renamed) > 1:
        raise ProfilerError(f"{record.name} changes {len(renamed)} files: copy them from {folder} by hand")
    file = next((new for new in renamed.values()), version.source.name)
    place = os.path.relpath(catalog.path, catalog.folder.parent)
    patch = _diff(
        catalog.path.read_text("utf-8"),
        _with_entry(catalog, version, record, new_id, file, manifest.flags),
        place,
    )
    for path in sources:
        if path.name in renamed:
            target = os.path.join(os.path.dirname(place), renamed[path.name])
            patch += _diff("", path.read_text("utf-8"), target, is_new=True)
    return patch


def _with_entry(
    catalog: Catalog,
    version: Version,
    record: SearchRecord,
    new_id: str,
    file: str,
    flags: Sequence[str],
) -> str:
    """The catalogue's text with an entry after that of the version that the search began with."""
    text = catalog.path.read_text("utf-8")
    time = mean_time_ns(record)
    space = catalog.space_of(version.id)
    changed = macro_words(space.values_of(version.flags), record.macros) if space and record.macros else ()
    words = ", ".join(changed or record.levers) or "found by a search"
    said = "" if time is None else f"; {time / 1000:.3g} µs {record.evidence}"
    entry = [
        "[[version]]",
        f"id = {json.dumps(new_id)}",
        f"parent = {json.dumps(version.id)}",
        f"technique = {json.dumps(words, ensure_ascii=False)}",
        f"# candidate {record.content_id[:12]} of a search{said}",
        f"file = {json.dumps(file)}",
        f"flags = {json.dumps(list(flags))}",
        *([f"dtypes = {json.dumps(list(version.dtypes))}"] if version.dtypes != ("fp16",) else []),
        *([f"head_dims = {json.dumps(list(version.head_dims))}"] if version.head_dims != (64, 128) else []),
        *(
            [f"stages = {json.dumps(list(version.stages))}"]
            if version.stages and not _is_new(file, version)
            else []
        ),
        "",
        "",
    ]
    lines = text.splitlines(keepends=True)
    start = next(
        number for number, line in enumerate(lines) if line.replace(" ", "").startswith(f'id="{version.id}"')
    )
    end = next((n for n in range(start, len(lines)) if lines[n].startswith(("[[", "# ---"))), len(lines))
    lines[end:end] = [line + "\n" for line in entry[:-1]]
    return "".join(lines)


def _is_new(file: str, version: Version) -> bool:
    return version.source is not None and file != version.source.name


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _diff(before: str, after: str, place: str, is_new: bool = False) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        "/dev/null" if is_new else f"a/{place}",
        f"b/{place}",
    )
    head = f"diff --git a/{place} b/{place}\n" + ("new file mode 100644\n" if is_new else "")
    return head + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
