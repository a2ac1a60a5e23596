"""What to ask next: the call of a tool or the command that settles what an answer leaves open."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.catalog.catalog import load_catalog

if TYPE_CHECKING:
    from profiler.agents.modelled_change import ModelledChange
    from profiler.documents.comparison import ComparisonDocument
    from profiler.documents.explanation import ExplanationDocument

Next = list[dict[str, Any]]
Arguments = Mapping[str, Any]
_MOST = 3
_FEW = 20  # things found: of more the first is no answer
_OPEN = ("unclear", "missing", "not comparable")


def _call(why: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"why": why, "tool": tool, "arguments": {k: v for k, v in arguments.items() if v is not None}}


def _command(why: str, command: str) -> dict[str, Any]:
    return {"why": why, "command": command}


def after_find(items: Sequence[Mapping[str, Any]]) -> Next:
    """A look at what was found first, where it is little enough to mean that."""
    if len(items) > _FEW:
        return [_call("fewer of them", "find", words="WORDS", kind="version")]
    names = [item["name"] for item in items if item["kind"] in ("version", "report", "file", "run")]
    if len(names) >= 2:
        return [_call("what differs between the first two", "compare", a=names[0], b=names[1])]
    if names:
        return [_call("what limits it", "insights", name=names[0])]
    metrics = [item["name"] for item in items if item["kind"] == "metric"]
    return [_call("its value in a report", "show", name="REPORT", words=metrics[0])] if metrics else []


def after_show(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """What limits it, and how to collect what is missing."""
    name = arguments["name"]
    following = [_call("what limits it", "insights", name=name, kernel=arguments.get("kernel"))]
    if whole["evidence"] != "measured":
        following.append(_call("its modelled time", "predict", names=[name]))
        return following
    states = {metric["state"] for launch in whole["launches"] for metric in launch["metrics"]}
    if "not collected" in states or any(launch.get("others_not_collected") for launch in whole["launches"]):
        following.append(_collect("metrics that were not collected", name))
    return following


def after_compare(arguments: Arguments, document: ComparisonDocument, whole: Mapping[str, Any]) -> Next:
    """Why it moved, or what would judge it."""
    a, b = arguments["a"], arguments["b"]
    chosen = {key: arguments.get(key) for key in ("workload", "gpu", "pairs")}
    if not document.is_measured:
        return [_call("modelled times and what they differ by", "explain", a=a, b=b)]
    following: Next = []
    pairs = document.comparison.pairs
    if any(pair.verdict.traits.moved for pair in pairs) or not pairs:
        following.append(_call("why it moved", "explain", a=a, b=b, kernel=arguments.get("kernel"), **chosen))
    commands = [latency["command"] for latency in whole["latency"] if latency.get("command")]
    following += [_command("settles what is unclear", command) for command in commands]
    if any(pair.verdict.value in _OPEN for pair in pairs) and not commands:
        following.append(_again(b))
    if document.comparison.only_in_a and document.comparison.only_in_b:
        following.append(
            _call("kernels under two names", "compare", a=a, b=b, pairs=["KERNEL_OF_A=KERNEL_OF_B"])
        )
    return following[:_MOST]


def after_explain(arguments: Arguments, document: ExplanationDocument) -> Next:
    """Where in the code, and which counters would divide the causes."""
    a, b = arguments["a"], arguments["b"]
    explanations = document.explanations
    moved = [explanation for explanation in explanations if explanation.verdict.traits.moved]
    following: Next = []
    is_csv = any(name.lower().endswith(".csv") for name in (a, b))
    if moved and not is_csv and all(side.launches for side in (document.comparison.a, document.comparison.b)):
        kernel = moved[0].pair.b.base_name
        following.append(_call("where in the code waiting moved", "source_lines", a=a, b=b, kernel=kernel))
    if moved:
        following.append(_call("what to try", "insights", name=b, against=a))
    if any(explanation.missing for explanation in moved):
        following.append(_collect("counters that would divide the causes", b))
    if any(explanation.verdict.value in _OPEN for explanation in explanations) and not moved:
        following.append(_again(b))
    return following[:_MOST]


def after_unmeasured(arguments: Arguments, change: ModelledChange) -> Next:
    """What differs in the code, and how a GPU would settle it."""
    a, b = arguments["a"], arguments["b"]
    following = [_call("facts that differ: registers, conflicts, opcodes", "compare", a=a, b=b)]
    if not change.workloads:
        following.append(
            _call("modelled times, made now", "predict", names=[_version(b)], against=_version(a))
        )
    versions = " ".join(shlex.quote(_version(name)) for name in (a, b))
    following.append(_command("on a machine with a GPU: measures both", f"profiler collect {versions}"))
    return following


def after_insights(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """The places, and what is unknown."""
    name = arguments["name"]
    against = arguments.get("against") or whole.get("against")
    following: Next = []
    if against:
        following.append(_call("the change in time as causes", "explain", a=against, b=name))
    if any(statement["kind"] != "unknown" for statement in whole["statements"]):
        following.append(_call("the hottest places", "source_lines", a=name, kernel=arguments.get("kernel")))
    if any(statement["kind"] == "unknown" for statement in whole["statements"]):
        following.append(_collect("what is unknown", name))
    return following


def after_code(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """How to get counts, where there are none."""
    name = arguments["a"]
    if any(place.get("samples") for place in whole["places"]):
        return [_call("what to try", "insights", name=name, kernel=arguments.get("kernel"))]
    if whole["evidence"] == "measured":
        return [_command("samples by instruction", "ncu --section SourceCounters --import-source on PROGRAM")]
    return [_collect("samples by line", name)]


def after_code_change(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """The causes in time, or how to get counts."""
    a, b = arguments["a"], arguments["b"]
    if whole["moved"] and whole["evidence"] == "measured":
        return [_call("the causes in microseconds", "explain", a=a, b=b, kernel=arguments.get("kernel"))]
    return [_call("modelled times and what they differ by", "explain", a=a, b=b)]


def after_line_changes(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """What to try on B, or what would measure it."""
    if whole["state"] == "measured":
        kernel = arguments.get("kernel")
        return [_call("what to try", "insights", name=arguments["b"], against=arguments["a"], kernel=kernel)]
    return [_collect("samples by line", arguments["b"])]


def after_gate(whole: Mapping[str, Any]) -> Next:
    """The commands that its findings name; to accept what got worse is for people."""
    commands = dict.fromkeys(
        finding["next"]
        for finding in whole["findings"]
        if finding.get("next") and not finding["next"].startswith("profiler pin ")
    )
    return [_command("settles a finding", command) for command in list(commands)[:_MOST]]


def after_predict(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """What would measure it."""
    names = arguments["names"]
    if any("SourceCounters" in (call["no_model"] or "") for call in whole["calls"]):
        return [_command("counts that a model needs", "ncu --section SourceCounters --set full PROGRAM")]
    if Path(names[0]).is_file():
        return [_call("what limits it, as measured", "insights", name=names[0])]
    versions = " ".join(map(_quoted, names))
    return [_command("on a machine with a GPU: measures it", f"profiler collect {versions}")]


def after_judge(arguments: Arguments, whole: Mapping[str, Any]) -> Next:
    """The same again, so that a failure can be looked into; the limits of one that is valid."""
    candidate = shlex.quote(str(arguments["candidate"]))
    if not whole["valid"]:
        again = f"profiler judge {candidate} --seed {whole['seed']}"
        return [_command("the same shapes and inputs again", again)]
    return [_command("the whole judgement", f"profiler judge {candidate} --json")]


def _collect(why: str, name: str) -> dict[str, Any]:
    if _is_collected(name):
        return _command(f"{why}, on a machine with a GPU", f"profiler collect {_quoted(name)}")
    return _command(
        f"{why}; CHIP is the GPU's, such as sm_90",
        'ncu --metrics "$(profiler list metrics --chip CHIP)" PROGRAM',
    )


def _again(name: str) -> dict[str, Any]:
    if _is_collected(name):
        return _command(
            "on a machine with a GPU: the noise to judge by", f"profiler collect --noise {_quoted(name)}"
        )
    return _command("one launch per side judges little: profile both again", "ncu --set full PROGRAM")


def _is_collected(name: str) -> bool:
    """Whether `profiler collect` can measure it: the catalogue has it, and it is no file."""
    return not Path(name).is_file() and _version(name) in load_catalog().by_id


def _version(name: str) -> str:
    """`attention/v2d_b~RUN` → `v2d_b`, as commands on the catalogue take it."""
    return name.rpartition("/")[2].partition("~")[0]


def _quoted(name: str) -> str:
    return shlex.quote(_version(name))
