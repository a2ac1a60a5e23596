"""The answers that are declared once: a function each, whose source says all that a command needs to know.

To add an answer, write a function in `profiler/documents/` that returns a Document, and add its line to
ANSWERS. The command with its options and help, the function of the library, the tool for language models and
the row in `docs/commands.md` are made from the function's parameters and docstring. `python -m
tests.docs_rows` writes the row.

The docstring has, in this order: one line that says what is answered; paragraphs for the user, which become
the help; `Arguments:`, with a line for each parameter that is not in SHARED; what it raises; an example. The
last two are shown in Python only.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ast

# Parameters that say where the data is. The command, the library or the tool fills them in: a user does not.
SOURCES = ("table", "store", "store_opener", "data", "progress")
SHARED: Mapping[str, str] = {
    "name": "a report file, a run id, family/version, or a version",
    "family": "only this family",
    "workload": "only this workload",
    "gpu": "only this GPU model",
    "kernel": "only kernels whose name, NVTX range/name or demangled name contains PATTERN; with * or ? it "
    "must match the whole name; regex:EXPR is a regular expression; case-insensitive",
    "top": "only the N that take longest; the rest are summarised",
    "evidence": "kind of evidence (default: measured if available, else static and modelled separately)",
}
# Parameters that start a program of the user's: no tool for language models offers them.
STARTS_PROGRAM = frozenset(("build", "output", "run"))
# What these say besides where report files are taken too.
_OF_FILES = {"workload": " (ignored for report files)", "gpu": " (applies to report files too)"}


def shared_help(name: str, *, files: bool) -> str:
    """The help of a parameter of SHARED; `files` says whether the command takes report files too."""
    return SHARED[name] + (_OF_FILES.get(name, "") if files else "")


class Declared(NamedTuple):  # every command reads this module: dataclasses would take 5 ms to load, ast 3
    """An answer: its function, and under which names the library and the tools offer it."""

    function: str  # module:function below profiler.documents
    library: str  # its name in the library
    tool: str = ""  # its name as a tool for language models; "" where it is none
    all_shows: str = ""  # what --all shows besides; "" where there is no more


ANSWERS: Mapping[str, Declared] = {
    "roofline": Declared("roofline:rooflines_of_name", "roofline", "roofline"),
    "insights": Declared("insights:insights_of_name", "insights", "insights"),
    "trend": Declared(
        "trend:trend_or_steps",
        "trend",
        "trend",
        "also list versions without a value and kernels of only one version",
    ),
    "regressions": Declared("regressions:list_regressions", "list_regressions", "regressions"),
    "changes": Declared("changes:code_changes", "code_changes", "changes"),
    "matrix": Declared("matrix:build_matrix", "build_matrix"),
    "bisect": Declared("bisect:bisect_time", "bisect_time"),
    "pin": Declared("pin:pin_library", "pin", all_shows="every function that was pinned anew"),
    "init": Declared("init:init_folder", "init"),
    "list runs": Declared("listing:list_runs", "list_runs", all_shows="every run, not only the newest"),
    "list versions": Declared("listing:list_versions", "list_versions"),
    "list workloads": Declared("listing:list_workloads", "list_workloads"),
    "list noise": Declared("noise:list_noise_floors", "list_noise"),
    "data backup": Declared("backup:write_backup", "backup"),
    "data verify": Declared("verify:verify_data", "verify"),
}
LIBRARY = {declared.library: command for command, declared in ANSWERS.items()}


class AnswerOption(NamedTuple):
    """One parameter of an answer."""

    name: str
    kind: str  # subject (a report, run or version), text, texts, path, number or switch
    required: bool
    help: str
    choices: tuple[str, ...] = ()
    default: object = None


class Declaration(NamedTuple):
    """What the source of an answer's function says."""

    summary: str
    body: str  # the paragraphs for whoever asks, as they are written
    text: str  # the whole docstring
    parameters: tuple[AnswerOption, ...]
    sources: frozenset[str]  # those of SOURCES that it takes

    @property
    def brief(self) -> str:
        """The summary and the first sentence below it, for a list of tools or of commands."""
        first = " ".join(self.body.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        return f"{self.summary} {first}." if first else self.summary


@lru_cache
def declaration(command: str) -> Declaration:
    """Read the declaration of an answer from its source, without importing it."""
    import ast

    module, _, function = ANSWERS[command].function.partition(":")
    source = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    # Of a module the statement alone that defines the function: the whole takes several times as long.
    begin = source.index(f"\ndef {function}(") + 1
    (node,) = ast.parse(source[begin : source.find("\n\n\n", begin)]).body
    assert isinstance(node, ast.FunctionDef)
    doc = ast.get_docstring(node) or ""
    summary, _, rest = doc.partition("\n")
    body, _, after = rest.partition("\nArguments:\n")
    helps = dict(re.findall(r"^    (\w+): (.*(?:\n      .*)*)", after, re.MULTILINE))
    arguments = _with_defaults(node)
    sources = frozenset(argument.arg for argument, _ in arguments if argument.arg in SOURCES)
    asked = [(argument, default) for argument, default in arguments if argument.arg not in SOURCES]
    files = any(_annotation(argument).startswith("Subject") for argument, _ in asked)
    shown = tuple(
        _parameter(
            argument,
            default,
            " ".join(helps.get(argument.arg, "").split()) or shared_help(argument.arg, files=files),
        )
        for argument, default in asked
    )
    paragraphs = [text for text in body.strip().split("\n\n") if not re.match(r"Raises |    ", text)]
    return Declaration(summary, "\n\n".join(paragraphs), doc, shown, sources)


def load_answer(command: str) -> Callable[..., Any]:
    """The function of an answer, imported."""
    module, _, function = ANSWERS[command].function.partition(":")
    answer: Callable[..., Any] = getattr(importlib.import_module(f"profiler.documents.{module}"), function)
    return answer


def _with_defaults(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    arguments = node.args
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    return [
        *zip(arguments.args, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]


def _annotation(argument: ast.arg) -> str:
    import ast

    return ast.unparse(argument.annotation) if argument.annotation else ""


def _parameter(argument: ast.arg, default: ast.expr | None, words: str) -> AnswerOption:
    import ast

    name, base = argument.arg, _annotation(argument).removesuffix(" | None")
    literal = re.fullmatch(r"(Collection\[)?Literal\[(.*?)\]\]?", base)
    choices = tuple(ast.literal_eval(f"({literal[2]},)")) if literal else ()
    if name == "evidence":
        choices = ("measured", "static", "modelled")
    kinds = {"str": "text", "int": "number", "bool": "switch", "Subject": "subject", "Path": "path"}
    several = base.startswith(("Collection", "Sequence"))
    kind = "texts" if several else "text" if choices else kinds[base]
    return AnswerOption(
        name,
        kind,
        default is None,
        words,
        choices,
        ast.literal_eval(default) if isinstance(default, ast.Constant) else None,
    )
