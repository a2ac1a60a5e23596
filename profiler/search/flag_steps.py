"""The generator `flags`: other values of the macros that the catalogue offers, guided by what helped."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from profiler.catalog.search_space import Macro
from profiler.judge.candidate import load_candidate
from profiler.judge.manifest import FILE
from profiler.search.generator import CandidateProposal, GeneratorFailed, NothingLeft, Request
from profiler.search.insights import pull
from profiler.search.variants import macro_words, write_manifest

_RESTART = 0.1  # of the proposals: anywhere, lest it stays where it is
_FAR = 0.25  # of the weight of a step: a value that is no neighbour
_PAIR = 0.35  # of the proposals change two macros


class FlagSteps:
    """A step from the parent, one macro or two; never what is there already."""

    name = "flags"

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """See Generator. Raises NothingLeft where every combination was tried."""
        space = request.space
        if space is None or not space.macros:
            raise GeneratorFailed("the catalogue names no macros of this version: see [[search]] there")
        shutil.copytree(request.parent_folder, folder, dirs_exist_ok=True)
        before = dict(request.parent.macros)
        for values in self._orders(request, before):
            levers = macro_words(before, values)
            write_manifest(folder, request.catalog.family, request.version, space, values, levers)
            if load_candidate(folder, request.catalog).id not in request.taken:
                return CandidateProposal(levers, _why(request, before, values), values)
        (folder / FILE).unlink()
        raise NothingLeft("every combination of the macros was tried")

    def _orders(self, request: Request, before: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """Combinations in the order in which they are tried: steps, then everything at random."""
        assert request.space is not None
        macros, rng = request.space.macros, request.rng
        names = list(macros)
        every = [
            dict(zip(names, map(str, values), strict=True))
            for values in itertools.product(*(macro.values for macro in macros.values()))
        ]
        if rng.random() >= _RESTART:
            yield from self._steps(request, before, rng)
        rng.shuffle(every)
        yield from every

    def _steps(
        self, request: Request, before: Mapping[str, str], rng: random.Random
    ) -> Iterator[dict[str, str]]:
        """Every change of one macro and of two, drawn without replacement by weight."""
        assert request.space is not None
        macros = request.space.macros
        weights = macro_weights(request)
        single = {
            (name, str(value)): weights[name]
            * (1.0 if _is_neighbour(macro, before.get(name), value) else _FAR)
            for name, macro in macros.items()
            for value in macro.values
            if str(value) != before.get(name)
        }
        steps: list[tuple[dict[str, str], float]] = [
            ({**before, name: value}, weight * (1 - _PAIR)) for (name, value), weight in single.items()
        ]
        total = sum(weight for _, weight in steps) or 1.0
        pairs = [
            ({**before, a: value_a, b: value_b}, weight_a * weight_b)
            for ((a, value_a), weight_a), ((b, value_b), weight_b) in itertools.combinations(
                single.items(), 2
            )
            if a != b
        ]
        pair_total = sum(weight for _, weight in pairs) or 1.0
        steps += [(values, weight / pair_total * total * _PAIR / (1 - _PAIR)) for values, weight in pairs]
        while steps:
            (chosen,) = rng.choices(range(len(steps)), [weight for _, weight in steps])
            yield steps.pop(chosen)[0]


def macro_weights(request: Request) -> dict[str, float]:
    """How promising a macro is: the share of children that were faster after it changed."""
    assert request.space is not None
    weights = {}
    for name, macro in request.space.macros.items():
        better = tried = 0
        for record in request.archive.records:
            parent = request.archive.by_number.get(record.parent if record.parent is not None else -1)
            if parent is None or record.macros.get(name) == parent.macros.get(name) or not record.macros:
                continue
            workload = next(iter(parent.times), "")
            mine, theirs = record.time_ns(workload), parent.time_ns(workload)
            tried += 1
            better += mine is not None and theirs is not None and mine < theirs
        weights[name] = (better + 1) / (tried + 2) * pull(request.insights, macro.techniques)
    return weights


def _is_neighbour(macro: Macro, now: str | None, value: int) -> bool:
    names = [str(item) for item in macro.values]
    return now not in names or abs(names.index(str(now)) - names.index(str(value))) == 1


def _why(request: Request, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    assert request.space is not None
    changed = [name for name in after if after[name] != before.get(name)]
    lines = []
    for insight in request.insights:
        answered = [n for n in changed if set(request.space.macros[n].techniques) & set(insight.techniques)]
        if answered:
            lines.append(f"{', '.join(answered)}: {insight.text}")
    return "\n".join(lines[:4] or ["a step that was not tried"])
