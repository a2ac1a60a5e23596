"""The forms in which a label is given for many reports: a text, a template of their paths, rules by name.

    silu                        this text
    {folder[-2]}-{stem}         parts of the report's path
    silu*=silu                  this label for reports whose name, or a folder of whose path, fits the pattern
    /_n(\\d+)/=n{1}              this label for reports whose name, or path, has the regular expression

`/_n(\\d+)/` alone is short for `/_n(\\d+)/={1}`, and without a group the label is all that fits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from itertools import pairwise
from pathlib import Path

from profiler.bundles.run import MAX_LABEL_LENGTH, check_label
from profiler.errors import ProfilerError
from profiler.evidence.name_pattern import BadPattern, Expression, compile_expression

_FIELD = re.compile(r"\{([^{}]*)\}")
_FOLDER = re.compile(r"folder(?:\[(-\d+)\])?")
_WRITER_SUFFIXES = (".ncu-rep", ".nsight-cuprof-report", ".out", ".exe", ".csv", ".txt", ".log")
_FIELDS = "{stem}, {commit}, {folder}, {folder[-2]}"

LabelOption = str | Sequence[str] | None  # of one kind of label; None: not given


@dataclass(frozen=True)
class ReportPath:
    """What a label can be made of: the name of a report's file, and the folder that it came from."""

    stem: str
    folder: str  # as folder_of gives it; "" where that is not known
    commit: str = ""  # of a file from the history of a repository, its first digits

    @property
    def folders(self) -> list[str]:
        """The folder's path in parts; the last is the folder itself."""
        return [part for part in self.folder.split("/") if part]


def report_stem(name: str, is_another: Callable[[str], bool] = lambda _stem: False) -> str:
    """The name of a report's file without what says how it was written: `profile` of `profile.out.ncu-rep`.

    is_another: whether a shorter stem is the name of another report, and so cannot be this one's.
    """
    stem = Path(name).stem
    while (path := Path(stem)).suffix.lower() in _WRITER_SUFFIXES and not is_another(path.stem):
        stem = path.stem
    return stem


def label_of_name(name: str, otherwise: str) -> str:
    """A label from the name of a file or folder, which may contain any character but a slash."""
    name = os.fsencode(name).decode(errors="replace")  # on Linux a name is bytes, which may not be UTF-8
    text = "".join(character if character.isprintable() else "_" for character in name)
    return text[:MAX_LABEL_LENGTH].strip() or otherwise


@dataclass(frozen=True)
class _Rule:
    text: str  # as it was given
    template: str
    matches: Callable[[ReportPath], Mapping[str, str] | None]  # the groups by number and name; None: no match

    def label(self, path: ReportPath) -> str | None:
        groups = self.matches(path)
        return (
            None
            if groups is None
            else _FIELD.sub(lambda field: self._part(field[1], path, groups), self.template)
        )

    def _part(self, field: str, path: ReportPath, groups: Mapping[str, str]) -> str:
        if field in ("stem", "commit"):
            return path.stem if field == "stem" else path.commit or "unknown commit"
        if folder := _FOLDER.fullmatch(field):
            try:
                return path.folders[int(folder[1] or -1)]
            except IndexError as error:
                known = f"has {len(path.folders)} folders" if path.folder else "is not known"
                raise ProfilerError(
                    f"{self.text}: the path of {path.stem} {known}, no {{{field}}}"
                ) from error
        return groups[field]


@dataclass(frozen=True)
class LabelRules:
    """What was given for one kind of label: rules of which the first that matches counts."""

    kind: str  # family, version or workload
    rules: tuple[_Rule, ...]

    def label(self, path: ReportPath) -> str | None:
        """The label of a report; None where no rule matches. Raises ProfilerError for one that is none."""
        for rule in self.rules:
            label = rule.label(path)
            if label is not None:
                return check_label(self.kind, label)
        return None


def label_rules(kind: str, option: LabelOption) -> LabelRules:
    """What an option says, once or several times. Raises ProfilerError for a form that says nothing."""
    texts = () if option is None else (option,) if isinstance(option, str) else tuple(option)
    rules = tuple(_rule(kind, text) for text in texts)
    for rule, after in pairwise(rules):
        if rule.matches is _always:
            raise ProfilerError(
                f"--{kind} {rule.text} fits every report, so that {after.text} never counts: give it last"
            )
    return LabelRules(kind, rules)


def _rule(kind: str, text: str) -> _Rule:
    pattern, separator, template = text.partition("=")
    if text.startswith("/") and (end := _expression_end(text)):
        expression, template = _compiled(kind, text, text[1:end]), text[end + 2 :]
        if not text[end + 1 :]:
            template = "{1}" if expression.groups else "{0}"
        _check_fields(
            kind,
            text,
            template,
            {str(group) for group in range(expression.groups + 1)} | {*expression.groupindex},
        )
        return _Rule(text, template, lambda path: _groups(expression, path))
    if separator and any(character in pattern for character in "*?["):
        _check_fields(kind, text, template)
        if not template.strip() and kind != "workload":
            raise ProfilerError(f"--{kind} {text}: a {kind} needs a name after the =")
        return _Rule(text, template, lambda path: {} if _fits(pattern, path) else None)
    _check_fields(kind, text, text)
    check_label(kind, _FIELD.sub("x", text))
    return _Rule(text, text, _always)


def _always(_path: ReportPath) -> Mapping[str, str]:
    return {}


def _expression_end(text: str) -> int:
    """The position of the slash that ends a regular expression; 0 where the text is none."""
    return len(text) - 1 if len(text) > 2 and text.endswith("/") else max(text.rfind("/="), 0)


def _compiled(kind: str, text: str, expression: str) -> Expression:
    try:
        return compile_expression(expression)
    except BadPattern as reason:
        raise ProfilerError(f"--{kind} {text}: {reason}") from None


def _check_fields(kind: str, text: str, template: str, groups: Collection[str] = ()) -> None:
    for field in _FIELD.findall(template):
        if field not in ("stem", "commit", *groups) and not _FOLDER.fullmatch(field):
            known = ", ".join([_FIELDS, *(f"{{{group}}}" for group in sorted(groups))])
            raise ProfilerError(f"--{kind} {text}: no field {{{field}}}; there are {known}")


def _fits(pattern: str, path: ReportPath) -> bool:
    """Whether a shell pattern fits the name or a folder; one with a slash, the end of the whole path."""
    if "/" in pattern:
        return re.search(f"(^|/){translate(pattern)}", f"{path.folder}/{path.stem}") is not None
    return any(fnmatchcase(part, pattern) for part in (path.stem, *path.folders))


def _groups(expression: Expression, path: ReportPath) -> Mapping[str, str] | None:
    # The name first: a number in the path above it is rarely what was meant.
    match = expression.search(path.stem) or expression.search(f"{path.folder}/{path.stem}")
    if match is None:
        return None
    numbered = {str(number): text or "" for number, text in enumerate((match[0], *match.groups()))}
    return numbered | {name: text or "" for name, text in match.groupdict().items()}
