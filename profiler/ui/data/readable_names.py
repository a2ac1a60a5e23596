"""Names as people write them into an address: a part that only one known name fits means that name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

import streamlit as st

from profiler.evidence.naming import brief_list
from profiler.ui.addresses import version_name
from profiler.ui.data import lineages, results
from profiler.ui.data.index import DataVersion

_OF_VERSIONS_AND_RUNS = ("a", "b", "against", "versions", "baseline", "run", "runs")


class Fit(Enum):
    """How much of a name a text must hold to mean it."""

    LAST_PART = 2  # all of the name, or what follows its last slash
    BEGINNING = 3  # or how either begins
    WORDS = 4  # or every word of the text


def matching_names(text: str, names: Iterable[str], fit: Fit = Fit.WORDS) -> list[str]:
    """The names that a text may mean, in upper or lower case; by the strictest way that any fits."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    known = {name: name.lower() for name in dict.fromkeys(names) if name}
    ways = (
        lambda name: name == wanted,
        lambda name: name.rpartition("/")[2] == wanted,
        lambda name: name.startswith(wanted) or name.rpartition("/")[2].startswith(wanted),
        lambda name: all(word in name for word in wanted.split()),
    )
    if text in known:
        return [text]
    for fits in ways[: fit.value]:
        if matches := [name for name, lower in known.items() if fits(lower)]:
            return matches
    return []


def meant_name(text: str, names: Iterable[str], fit: Fit = Fit.WORDS) -> str | None:
    """The one name that a text means; None where none fits or several do."""
    matches = matching_names(text, names, fit)
    return matches[0] if len(matches) == 1 else None


def matching_options(
    text: str, options: Sequence[str], label: Callable[[str], str] = str, fit: Fit = Fit.WORDS
) -> list[str]:
    """The options that a text may mean, by their names or by what the page calls them.

    A label may lack what follows its first comma: `registers` for `registers, compiled`.
    """
    wanted = text.strip().lower()
    if not wanted or text in options:
        return [text] if wanted else []
    return _spelled(wanted, _spellings(options, label)) or matching_names(text, options, fit)


def _spellings(options: Sequence[str], label: Callable[[str], str]) -> list[dict[str, list[str]]]:
    """The options by what a text may call them in lower case, the strictest way first."""
    ways: tuple[Callable[[str], str], ...] = (
        str,
        lambda option: option.rpartition("/")[2],
        label,
        lambda option: label(option).partition(",")[0],
    )
    spellings: list[dict[str, list[str]]] = [{} for _ in ways]
    for way, spelling in zip(ways, spellings, strict=True):
        for option in options:
            spelling.setdefault(way(option).lower(), []).append(option)
    return spellings


def _spelled(wanted: str, spellings: Sequence[dict[str, list[str]]]) -> list[str]:
    return next((spelling[wanted] for spelling in spellings if wanted in spelling), [])


def meant_option(
    text: str, options: Sequence[str], label: Callable[[str], str] = str, fit: Fit = Fit.WORDS
) -> str | None:
    """The one option that a text means; None where none fits or several do."""
    matches = matching_options(text, options, label, fit)
    return matches[0] if len(matches) == 1 else None


def meant_options(
    text: str, options: Sequence[str], label: Callable[[str], str] = str
) -> list[tuple[str, str | None]]:
    """Each part of a list with commas, and the option that it means; labels may hold commas themselves."""
    most_parts = 1 + max((label(option).count(",") for option in options), default=0)
    parts = [part for part in text.split(",") if part.strip()]
    exact, spellings = (
        set(options),
        _spellings(options, label),
    )  # once: an address may have thousands of parts
    meant: list[tuple[str, str | None]] = []
    start = 0
    while start < len(parts):
        for count in range(most_parts, 0, -1):
            said = ",".join(parts[start : start + count]).strip()
            matches = [said] if said in exact else _spelled(said.lower(), spellings)
            if len(matches) == 1 or count == 1:
                meant.append((said, matches[0] if len(matches) == 1 else None))
                start += count
                break
    return meant


def refusal(
    what: str,
    text: str,
    names: Sequence[str],
    shown: str = "",
    label: Callable[[str], str] = str,
    fit: Fit = Fit.WORDS,
) -> str:
    """One line on what an address asked for and did not get."""
    matches = [label(name) for name in matching_options(text, names, label, fit)]
    known = [label(name) for name in names if name]
    if len(matches) > 1:
        reason = f"fits several: {labels_in_line(matches)}"
    elif len(known) > 1:
        reason = f"not here; there are {labels_in_line(known)}"
    else:
        reason = f"not here; there is {f'only {known[0]}' if known else 'none'}"
    is_named = not shown or known == [shown]
    return f"The address asks for {what} {text}: {reason}" + ("" if is_named else f". Shown: {shown}")


def labels_in_line(labels: Sequence[str]) -> str:
    """At most three labels, then how many more; in quotes where one has a comma of its own."""
    return brief_list([f"“{label}”" if "," in label else label for label in labels])


def put_names_right(data_version: DataVersion) -> list[str]:
    """Write versions and runs that the address abbreviates out in full; lines on runs that do not exist.

    A version that no name fits stays as it is: its page says which there are.
    """
    asked = {name: st.query_params[name] for name in _OF_VERSIONS_AND_RUNS if st.query_params.get(name)}
    if not asked:
        return []
    runs = [run.run_id for run in results.runs(data_version)]
    names = [version_name(version) for version in lineages.versions(data_version)]
    refusals = []
    for parameter, text in asked.items():
        known = [] if parameter in ("run", "runs") else names
        parts = [
            meant_name(part, known, Fit.LAST_PART) or meant_name(part, runs, Fit.BEGINNING) or part
            for part in text.split(",")
        ]
        whole = ",".join(parts)
        if parameter == "run" and whole not in runs:
            whole = newest_run_of(data_version, whole) or whole
        if whole != text:
            st.query_params[parameter] = whole
        if parameter == "run" and runs and whole not in runs:
            refusals.append(refusal("run", text, runs))
    return refusals


def newest_run_of(data_version: DataVersion, version: str) -> str | None:
    """The newest run of a version alone, named `family/version` or by its last part; None without one."""
    of_version = {
        run.run_id: f"{run.family}/{run.version}" for run in results.runs(data_version) if run.version
    }
    name = meant_name(version, of_version.values(), Fit.LAST_PART)
    created = {run.run_id: run.created for run in results.runs(data_version)}
    of_name = [run_id for run_id, own in of_version.items() if name is not None and own == name]
    return max(of_name, key=lambda run_id: created[run_id], default=None)
