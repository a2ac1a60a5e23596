"""What of each document is worth showing unasked; the rest is counted, and comes when it is asked for.

`…_whole` is the document as the command prints it with --json, with the state of its numbers beside them;
the function of the same name without the ending picks from that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profiler.agents.size_budget import Selected, holds_words
from profiler.evidence import formatting
from profiler.evidence.values import Evidence

if TYPE_CHECKING:
    from profiler.agents.modelled_change import ModelledLines
    from profiler.documents.comparison import ComparisonDocument
    from profiler.statistics.verdict import Verdict

Json = dict[str, Any]

OVERVIEW = (  # concepts of a launch that is shown unasked, as far as it has them
    *("duration", "sol_compute", "sol_memory", "sol_dram", "sol_l2", "sol_l1", "occupancy", "issue_active"),
    *("occupancy_theoretical", "registers", "waves", "tensor_busy", "inst_executed"),
)
_MOVED_SHOWN, _MOVED_OF_OTHERS = 8, 3
_TERMS_SHOWN, _LEAST_TERM = 6, 0.01  # causes of a launch; of the largest
_NEVER_SHOWN = frozenset({"part", "reason", "metric", "group", "label", "unreplicated", "b_state"})
_UNMOVED = ("same", "unclear", "missing")
# What is shown of a document, by the keys of its JSON: a(b c) is b and c of a, or of each item of the list a.
_SIDE = "label run_id gpu workload dtype wrong created"
_LATENCY = "mode verdict reason a b effect interval detectable rounds command"
_COMPARED = f"evidence a({_SIDE}) b({_SIDE}) warnings latency({_LATENCY}) ambiguous(kernel why)"
_EXPLAINED = f"evidence a b warnings latency({_LATENCY}) unmatched"
_EXPLAINED_LAUNCH = (
    "kernel verdict reason a_us b_us delta_us residue_us residue_flagged "
    "also_moved(concept unit a b change_pct)"
)
_STATEMENT = "id kind evidence share_of_time saves_at_most confidence refuted_by"
_CODE = "label evidence run arch compiler instructions colder_places"
_PLACE = "place text samples modelled_share executed shared_excess global_excess_sectors state"
_CODE_CHANGE = "a b evidence counts different"
_GATE = "verdict exit_code compared not_judged"
_CALL = (
    "subject workload gpu time_ns low_ns high_ns measured against ratio word ratio_low ratio_high limiter "
    "limiter_saves no_model what_ifs"
)
_JUDGEMENT = (
    "candidate name gpu reason score score_reason evidence elite verdict stages(name state reason findings) "
    "times against insights(id text lever evidence) seed"
)
_VERDICT_RANK = {"worse": 0, "better": 0, "not comparable": 1, "unclear": 2, "changed": 3}


def pick(document: Any, keys: str) -> Any:
    """What of a document, or of each item of a list, is shown: its keys as the tables above write them."""
    if isinstance(document, list):
        return [pick(item, keys) for item in document]
    picked = {}
    for name, within in re.findall(r"(\w+)(?:\(([^()]*)\))?", keys):
        if name in document:
            value = document[name]
            picked[name] = pick(value, within) if within and value is not None else value
    return picked


# Of a version that nobody measured.
OVERVIEW_OF_FACTS = (
    "static_registers",
    "static_spills",
    "static_shared",
    "static_threads",
    "static_occupancy",
    "static_hmma",
    "static_instructions",
    "modelled_conflicts",
    "modelled_wavefronts",
    "modelled_error",
    "modelled_findings",
)


def launches_whole(document: Json, evidence: str) -> Json:
    """Metrics as a list, each with its state: the evidence, or why there is none; longest launch first."""
    launches = []
    for index, launch in enumerate(document["launches"]):
        metrics = []
        for name, entry in launch["metrics"].items():
            state = entry.get("state", "present")
            metrics.append(
                {
                    "concept": entry.get("concept"),
                    "metric": name,
                    "value": entry.get("value"),
                    "unit": entry.get("unit"),
                    "state": evidence if state == "present" else state,
                }
            )
        kept = {key: value for key, value in launch.items() if key not in ("metrics", "part", "demangled")}
        launches.append({**kept, "index": index, "metrics": metrics})
    return {**document, "evidence": evidence, "launches": sorted(launches, key=_minus_duration)}


def launches(whole: Json, words: Sequence[str]) -> Json:
    """The launches, longest first, each with the metrics that hold the words, else an overview."""
    shown = []
    for launch in whole["launches"]:
        metrics = launch["metrics"]
        if words:
            kept = [metric for metric in metrics if holds_words(metric, words)]
        else:
            by_concept = {metric["concept"]: metric for metric in metrics}
            overview = OVERVIEW if whole["evidence"] == "measured" else OVERVIEW_OF_FACTS
            kept = [by_concept[concept] for concept in overview if concept in by_concept]
        missing = [metric for metric in kept if metric["value"] is None]
        kept = [metric for metric in kept if metric["value"] is not None]
        lacking: dict[str, list[str]] = {}
        for metric in missing:
            lacking.setdefault(metric["state"], []).append(metric["concept"] or metric["metric"])
        lines = [_without_name(metric) if metric["concept"] else metric for metric in kept]
        total = launch.get("metrics_total", len(metrics))
        shown.append({**launch, "metrics": Selected(lines, total), "missing": lacking})
    dropped = dict.fromkeys(("index", "not_available", "metrics_total", "others_not_collected"))
    shown = [{**launch, **dropped} for launch in shown]
    return {**whole, "launches": shown, "hidden_launches": whole["hidden_launches"] or None}


def launch_sentences(whole: Json) -> list[str]:
    """How many launches there are, and which takes longest."""
    launches = whole["launches"]
    times = [-_minus_duration(launch) for launch in launches]
    if not launches:
        return []
    if whole["evidence"] != "measured":
        words = {"static": "what the compiler says", "modelled": "a run on the CPU"}[whole["evidence"]]
        return [f"{len(launches)} kernels; {words} has no time: predict(names) models it"]
    if not times[0]:
        states = {m["state"] for launch in launches for m in launch["metrics"] if m["concept"] == "duration"}
        return [f"{len(launches)} launches; how long they took is missing: {', '.join(sorted(states))}"]
    words = f"{len(launches)} launches; {launches[0]['kernel']} takes longest, {_time(times[0])}"
    return [f"{words}, {times[0] / sum(times):.0%} of all (ncu duration, {whole['evidence']})"]


def comparison_whole(document: Json) -> Json:
    """Every metric with its state: the evidence of its comparison, or what each side lacks."""
    several = document.get("comparisons")
    if several is not None:
        wholes = [comparison_whole(one) for one in several]
        return {
            **document,
            "comparisons": sorted(wholes, key=lambda one: min(map(_rank, one["launches"]), default=9)),
        }
    evidence = document["a"]["evidence"]
    launches = [
        {
            **launch,
            "metrics": [
                {
                    **metric,
                    "state": evidence
                    if metric["a"] is not None and metric["b"] is not None
                    else f"a: {metric.get('a_state', evidence)}, b: {metric.get('b_state', evidence)}",
                }
                for metric in launch["metrics"]
            ],
        }
        for launch in document["launches"]
    ]
    return {**document, "evidence": evidence, "launches": launches}


def comparison(whole: Json) -> Json:
    """What moved, the longest launch and the largest change first; of what is the same the number alone."""
    several = whole.get("comparisons")
    if several is None:
        launches = [_compared(pair, index) for index, pair in enumerate(whole["launches"])]
        return {
            **pick(whole, _COMPARED),
            "comparable": None if whole["comparable"] else False,
            "latency": _latencies(whole),
            "blocked_by": [difference for difference in whole["differences"] if difference["blocks"]],
            "launches": launches,
            **{key: [launch["kernel"] for launch in whole[key]] for key in ("only_in_a", "only_in_b")},
        }
    first = several[0] if several else {"a": {}, "b": {}}
    shown = [_facts(one) for one in several]
    moved = [one for one in shown if one["metrics"]]
    return {**pick(first, "a(label run_id) b(label run_id)"), "comparisons": Selected(moved, len(several))}


def comparison_sentences(document: ComparisonDocument) -> list[str]:
    """What the verdict leaves open."""
    from profiler.documents.comparison_text import undecided_reasons, unmatched

    if not document.is_measured:
        return ["Nothing here was measured: static is from the compiler, modelled from a run on the CPU."]
    comparison = document.comparison
    return [*undecided_reasons(comparison), *unmatched(comparison)]


def _latencies(whole: Json) -> list[Json]:
    return [{"state": Evidence.MEASURED.value, **pick(latency, _LATENCY)} for latency in whole["latency"]]


def _compared(pair: Json, index: int) -> Json:
    metrics = _moved_first(pair["metrics"])
    most = _MOVED_SHOWN if index == 0 else _MOVED_OF_OTHERS
    return {
        "kernel": pair["kernel"],
        "b_kernel": None if pair["b"]["kernel"] == pair["a"]["kernel"] else pair["b"]["kernel"],
        "part": None if pair["part"] == pair["kernel"] else pair["part"],
        "paired_by": None if pair["paired_by"] == "name" else pair["paired_by"],
        "verdict": pair["verdict"],
        "differs": pair["differs"],
        "workload_change": pair["workload_change"],
        "metrics": Selected([_brief(metric) for metric in metrics[:most]], len(pair["metrics"])),
        "verdicts": dict(Counter(metric["verdict"] for metric in pair["metrics"])),
    }


def _facts(one: Json) -> Json:
    metrics = [
        {**_brief(metric), "kernel": None if len(one["launches"]) == 1 else pair["kernel"]}
        for pair in one["launches"]
        for metric in _moved_first(pair["metrics"])
        if metric["verdict"] not in ("same", "missing")
    ]
    for metric in metrics:
        metric.pop("state")  # that of all of them stands beside the list
    state, side = one["evidence"], one["b"]
    place = " ".join(filter(None, (side.get("workload"), side.get("gpu"))))
    return {"place": place, "state": state, "metrics": metrics}


def _moved_first(metrics: Iterable[Json]) -> list[Json]:
    """The duration, then what moved, by its verdict and size; what is the same or missing not at all."""

    def order(metric: Json) -> tuple[bool, int, float]:
        change = metric["change_pct"]
        return (
            metric["concept"] != "duration",
            _VERDICT_RANK.get(metric["verdict"], 9),
            -abs(change if change is not None else 1e9),
        )

    shown = (m for m in metrics if m["verdict"] in _VERDICT_RANK or m["concept"] == "duration")
    return sorted(shown, key=order)


def _brief(metric: Json) -> Json:
    keeps_reason = metric["concept"] == "duration" or metric["verdict"] == "unclear"
    kept = {key: value for key, value in metric.items() if key not in _NEVER_SHOWN or key == "reason"}
    kept.pop("a_state", None)
    if not keeps_reason:
        kept.pop("reason", None)
    if not metric["concept"]:
        kept["metric"] = metric["metric"]
    return kept


def _rank(pair: Json) -> int:
    return min((_VERDICT_RANK.get(metric["verdict"], 9) for metric in pair["metrics"]), default=9)


def explanation_whole(document: Json) -> Json:
    """The document with the state of its times; the launches that moved first."""
    launches = [{**launch, "state": Evidence.MEASURED.value} for launch in document["launches"]]
    launches.sort(key=lambda launch: launch["verdict"] in _UNMOVED)
    return {**document, "evidence": Evidence.MEASURED.value, "launches": launches}


def explanation(whole: Json) -> Json:
    """The launches that moved, each with its largest causes; of the others kernel and verdict."""
    moved = [launch for launch in whole["launches"] if launch["verdict"] not in _UNMOVED]
    others = whole["launches"][len(moved) :]
    return {
        **pick(whole, _EXPLAINED),
        "comparable": None if whole["comparable"] else False,
        "latency": _latencies(whole),
        "launches": Selected([_explained(launch) for launch in moved], len(whole["launches"])),
        "other_launches": pick(others, "kernel verdict a_us b_us"),
    }


def _explained(launch: Json) -> Json:
    terms = sorted(launch["terms"], key=lambda term: -abs(term["us"] or 0))
    least = _LEAST_TERM * abs(terms[0]["us"] or 0) if terms else 0
    large = [term for term in terms if abs(term["us"] or 0) >= least][:_TERMS_SHOWN]
    return {
        **pick(launch, _EXPLAINED_LAUNCH),
        "part": None if launch["part"] == launch["kernel"] else launch["part"],
        "depth": None if launch["depth"] == "full" else launch["depth"],
        "terms": Selected(large, len(terms)),
        "terms_are_causes": None if launch["terms_are_causes"] else False,
        "stand_ins": [stand_in["words"] for stand_in in launch["stand_ins"]],
        "missing": Selected(pick(launch["missing"][:2], "concept why"), len(launch["missing"])),
    }


def unmoved_sentence(verdicts: Iterable[Verdict]) -> list[str]:
    """How many launches have no causes, by verdict."""
    counts = Counter(verdict.value for verdict in verdicts if not verdict.traits.moved)
    if not counts:
        return []
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return [f"Launches without causes, as nothing says that their time moved: {listed}."]


def modelled(whole: Json) -> Json:
    """Modelled times, and what they differ by: the first pair's causes, of the others the largest."""
    stored = whole["modelled"]
    pairs = [
        {**pair, "terms": pair["terms"] if index == 0 else Selected(pair["terms"][:2], len(pair["terms"]))}
        for index, pair in enumerate(stored.get("pairs", ()))
    ]
    return {"a": whole["a"], "b": whole["b"], "modelled": {**stored, "pairs": pairs}}


def insights(whole: Json) -> Json:
    """Every statement with the numbers it has; those that lack are counted by the list's length."""
    statements = []
    for statement in whole["statements"]:
        valid = [metric for metric in statement["metrics"] if metric["state"] == "present"]
        metrics = [
            {"concept": metric["concept"] or metric["name"], **pick(metric, "value baseline_value unit")}
            for metric in valid[:6]
        ]
        kept = pick(statement, _STATEMENT)
        statements.append({**kept, "metrics": Selected(metrics, len(statement["metrics"]))})
    return {**whole, "schema": None, "statements": statements, "hidden": whole["hidden"] or None}


def code_whole(document: Json, hidden: int) -> Json:
    """The hottest places, and how many there are besides."""
    return {**document, "colder_places": hidden or None}


def code(whole: Json) -> Json:
    """The places in brief: where, the code, samples with the two commonest reasons, executed."""
    has_samples = any(place.get("samples") for place in whole["places"])
    has_shares = any(place.get("modelled_share") for place in whole["places"])
    places = whole["places"] if has_samples or has_shares else whole["places"][:5]
    return {
        **pick(whole, _CODE),
        "samples": None if has_samples else "missing: no GPU sampled this code",
        "places": Selected([_place(place) for place in places], len(whole["places"])),
    }


def _place(place: Json) -> Json:
    waiting = sorted(place["waiting"].items(), key=lambda item: -item[1])[:2]
    excess = place.get("global_excess_sectors") or None
    return {**pick(place, _PLACE), "global_excess_sectors": excess, "waiting": dict(waiting)}


def hottest_sentences(whole: Json) -> list[str]:
    """The place with most samples, and its share of those that are there."""
    places = [place for place in whole["places"] if place.get("samples")]
    if not places:
        return []
    total = sum(place["samples"] for place in places)
    first = max(places, key=lambda place: place["samples"])
    reason = max(first["waiting"], key=first["waiting"].get, default="")
    waiting = f", most waiting for {reason}" if reason else ""
    return [f"Hottest: {first['place']}, {first['samples'] / total:.0%} of the samples shown{waiting}."]


def with_modelled_shares(whole: Json, lines: ModelledLines) -> Json:
    """The places of code that nobody ran, by their share of the modelled time, largest first."""
    if not lines.shares:
        return whole
    places = []
    for place in whole["places"]:
        share = lines.shares.get(place["place"])
        places.append({**place, "modelled_share": share, "state": "modelled" if share else None})
    known = {place["place"] for place in places}
    places += [
        {"place": name, "waiting": {}, "modelled_share": share, "state": "modelled"}
        for name, share in lines.shares.items()
        if name not in known
    ]
    return {**whole, "places": sorted(places, key=lambda place: -(place["modelled_share"] or 0))}


def line_changes(whole: Json) -> Json:
    """The lines that moved by more than a hundredth of what moved most."""
    places = whole["places"]
    least = abs(places[0]["moved"]) / 100 if places else 0.0
    kept = [place for place in places if abs(place["moved"]) >= least]
    return {**whole, "places": Selected(kept, len(places))}


def code_change_whole(document: Json) -> Json:
    """The aligned code with the evidence of its sides."""
    origins = document["origins"]
    return {**document, "evidence": origins["b"]["evidence"]}


def code_change(whole: Json) -> Json:
    """Where waiting moved, most first; else how many instructions differ."""
    moved = [place for place in whole["moved"] if not place["noise"]]
    functions = [{**pick(pair, "a b"), "rows": len(pair["rows"])} for pair in whole["functions"]]
    places = [
        {**place, "by_reason": dict(sorted(place["by_reason"].items(), key=lambda item: -abs(item[1]))[:2])}
        for place in moved[:20]
    ]
    for place in places:
        if place.get("place_a") == place.get("place_b"):
            place["place"] = place.pop("place_a")
            del place["place_b"]
        del place["noise"]
    return {
        **pick(whole, _CODE_CHANGE),
        "origins": {side: {k: v for k, v in whole["origins"][side].items() if k != "note"} for side in "ab"},
        "functions": functions,
        "moved": Selected(places, len(whole["moved"])),
    }


def gate_whole(document: Json) -> Json:
    """The findings, each with the state of its numbers; those that did not pass first."""
    findings = [{**finding, "state": finding["evidence"]} for finding in document["findings"]]
    findings.sort(key=lambda finding: finding["outcome"] == "passed")
    return {**document, "findings": findings}


def gate(whole: Json) -> Json:
    """What has weight: the findings that did not pass."""
    open_findings = [
        {key: value for key, value in finding.items() if key not in ("state", "line")}
        for finding in whole["findings"]
        if finding["outcome"] != "passed"
    ]
    counts = Counter(finding["outcome"] for finding in whole["findings"])
    return {
        **pick(whole, _GATE),
        "outcomes": dict(counts),
        "findings": Selected(open_findings, len(whole["findings"])),
    }


def first_workload(name: str) -> list[str]:
    """The first workload that a catalogue's version is measured on; none where the name is of no version."""
    from profiler.catalog.cases import call_problem
    from profiler.catalog.catalog import load_catalog
    from profiler.catalog.sources import load_problem

    catalog = load_catalog()
    version = catalog.by_id.get(name)
    if version is None:
        return []
    problem = load_problem(catalog)
    measured = call_problem(problem, "acceptance_workloads", version.dtype, of=version.dtype)
    able = [w for w in measured if w.sizes().get("head_dim") in (None, *version.head_dims)]
    return [able[0].label] if able else []


def prediction_whole(document: Json) -> Json:
    """The calls, a report's longest launch first; what was measured of it has a state of its own."""
    calls = sorted(document["calls"], key=lambda call: -(call["measured_ns"] or 0))
    for call in calls:
        if (ns := call.pop("measured_ns")) is not None:
            call["measured"] = {"ns": ns, "state": Evidence.MEASURED.value}
    return {**document, "calls": calls}


def prediction(whole: Json) -> Json:
    """Each call with its range, ratio and largest causes."""
    return {"evidence": whole["evidence"], "calls": [_call(call) for call in whole["calls"]]}


def _call(call: Json) -> Json:
    causes = sorted(call["causes"] or (), key=lambda cause: -abs(cause["ns"]))[:5]
    longest = max(call["launches"], key=lambda launch: launch["time_ns"], default=None)
    used = sorted(longest["utilisation"].items(), key=lambda item: -item[1])[:4] if longest else ()
    return {
        **pick(call, _CALL),
        "causes": Selected(causes, len(call["causes"] or ())),
        "utilisation": dict(used),
    }


def judgement(whole: Json) -> Json:
    """The stages up to the first that failed, times, and the verdicts against another candidate."""
    return {**pick(whole, _JUDGEMENT), "valid": "unknown" if whole["valid"] is None else whole["valid"]}


def _without_name(metric: Json) -> Json:
    return {key: value for key, value in metric.items() if key != "metric"}


def _minus_duration(launch: Mapping[str, Any]) -> float:
    for metric in launch["metrics"]:
        if metric["concept"] == "duration":
            return -(metric["value"] or 0.0)
    return 0.0


def _time(ns: float) -> str:
    from profiler.evidence.values import Value

    return str(formatting.quantity(Value(ns, "ns")))
