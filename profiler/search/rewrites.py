"""The generator `rewrites`: small changes of a source where a pattern of it allows one."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.advice.techniques import (
    BANK_CONFLICTS,
    FEWER_INSTRUCTIONS,
    OCCUPANCY,
    PREFETCH,
    SHARED_TILING,
    VECTORISED,
)
from profiler.judge.candidate import load_candidate
from profiler.judge.manifest import FILE
from profiler.search.generator import CandidateProposal, GeneratorFailed, NothingLeft, Request
from profiler.search.insights import pull
from profiler.search.variants import macro_words, write_manifest

_UNROLL = re.compile(r"^([ \t]*)#pragma unroll(?:[ \t]+(\d+))?[ \t]*$", re.M)
_LOOP = re.compile(
    r"^(?P<before>[^\n]*\n)(?P<loop>[ \t]*for \((?:const )?(?:int|unsigned|uint32_t) \w+ =)", re.M
)
_CHOICE = re.compile(r"\(([A-Z][A-Z0-9_]*) \? ([^?:()]+|[^?:()]*\([^()]*\)[^?:()]*) : ([^?:()]+)\)")
_PLAIN_CHUNK = re.compile(r"return (?P<row>\w+) \* (?P<width>\w+) \+ (?P<chunk>chunk\w*) \* 8;")
_SWIZZLED_CHUNK = re.compile(r"\((?P<chunk>\w+) \^ \((?P<row>\w+) & 7\)\)")
_BOUNDS = re.compile(r"__launch_bounds__\((?P<threads>[^,()]+), (?P<blocks>(?:[^()]|\([^()]*\))+)\)")
_COPY = re.compile(
    r"\*reinterpret_cast<(?P<type>uint4|uint2)\*>\((?P<to>[^;]+?)\) =\s*"
    r"\*reinterpret_cast<const (?P=type)\*>\((?P<source>[^;]+)\);"
)
_HALF = {"uint4": "uint2", "uint2": "uint32_t"}


@dataclass(frozen=True)
class Rewrite:
    """One change that a source allows."""

    lever: str
    technique: str
    text: str  # the source with it; "" for a change of macros alone
    macros: dict[str, str]


class SourceRewrites:
    """One rewrite of the parent's source; never what is there already."""

    name = "rewrites"

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """See Generator. Raises NothingLeft where no rewrite of any candidate is new."""
        parents = [request.parent, *reversed(request.archive.valid)]
        for parent in dict.fromkeys(record.number for record in parents):
            record = request.archive.by_number[parent]
            source_folder = request.parent_folder if record is request.parent else request.folder_of(record)
            shutil.rmtree(folder)
            shutil.copytree(source_folder, folder)
            source = next((path for path in sorted(folder.glob("*.cu"))), None)
            if source is None:
                continue
            text = source.read_text("utf-8")
            found = list(rewrites_of(text)) + list(_of_macros(request, dict(record.macros)))
            # A source has one swizzle and dozens of loops: techniques are drawn, then one of theirs.
            counts = Counter(rewrite.technique for rewrite in found)
            weights = [
                pull(request.insights, [rewrite.technique]) / counts[rewrite.technique] for rewrite in found
            ]
            while found:
                (place,) = request.rng.choices(range(len(found)), weights)
                rewrite = found.pop(place)
                weights.pop(place)
                source.write_text(rewrite.text or text, "utf-8")
                macros = {**record.macros, **rewrite.macros}
                if request.space is not None:
                    write_manifest(
                        folder,
                        request.catalog.family,
                        request.version,
                        request.space,
                        macros,
                        (rewrite.lever,),
                    )
                if load_candidate(folder, request.catalog).id not in request.taken:
                    why = f"{rewrite.technique}: {rewrite.lever}"
                    return CandidateProposal((rewrite.lever,), why, macros, record)
        for path in (folder / FILE,):
            path.unlink(missing_ok=True)
        if not any(rewrites_of(path.read_text("utf-8")) for path in request.parent_folder.glob("*.cu")):
            raise GeneratorFailed("no rewrite fits the source")
        raise NothingLeft("every rewrite of every candidate was tried")


def rewrites_of(text: str) -> Iterator[Rewrite]:
    """Every rewrite that a source allows: unroll, swizzle, launch bounds, width of copies."""
    for rule in _RULES:
        yield from rule(text)


def _unroll(text: str) -> Iterator[Rewrite]:
    for match in _UNROLL.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        for words in ("#pragma unroll 1", "#pragma unroll 2", "#pragma unroll 4", "#pragma unroll"):
            if words != match[0].strip():
                changed = text[: match.start()] + match[1] + words + text[match.end() :]
                yield Rewrite(f"line {line}: {words[8:]}", FEWER_INSTRUCTIONS, changed, {})
    for match in _LOOP.finditer(text):
        if "#pragma" not in match["before"]:
            line = text.count("\n", 0, match.start("loop")) + 1
            place = match.start("loop")
            yield Rewrite(
                f"line {line}: unroll 2",
                FEWER_INSTRUCTIONS,
                f"{text[:place]}#pragma unroll 2\n{text[place:]}",
                {},
            )


def _swizzle(text: str) -> Iterator[Rewrite]:
    """A choice by a macro settled either way; chunks of 16 bytes XORed with their row, or no longer."""
    for match in _CHOICE.finditer(text):
        for value, branch in ((1, match[2]), (0, match[3])):
            changed = f"{text[: match.start()]}({branch.strip()}){text[match.end() :]}"
            yield Rewrite(f"{match[1]} as if {value}", BANK_CONFLICTS, changed, {})
    for match in _PLAIN_CHUNK.finditer(text):
        words = f"return {match['row']} * {match['width']} + ({match['chunk']} ^ ({match['row']} & 7)) * 8;"
        changed = text[: match.start()] + words + text[match.end() :]
        yield Rewrite("XOR swizzle on", BANK_CONFLICTS, changed, {})
    for match in _SWIZZLED_CHUNK.finditer(text):
        changed = text[: match.start()] + match["chunk"] + text[match.end() :]
        yield Rewrite("XOR swizzle off", BANK_CONFLICTS, changed, {})


def _launch_bounds(text: str) -> Iterator[Rewrite]:
    for match in _BOUNDS.finditer(text):
        for lever, blocks in (
            ("launch bounds: one block more", f", ({match['blocks']}) + 1"),
            ("launch bounds: as many registers as there are", ""),
        ):
            words = f"__launch_bounds__({match['threads']}{blocks})"
            yield Rewrite(lever, OCCUPANCY, text[: match.start()] + words + text[match.end() :], {})


def _vector_width(text: str) -> Iterator[Rewrite]:
    for match in _COPY.finditer(text):
        half = _HALF[match["type"]]
        line = text.count("\n", 0, match.start()) + 1
        copies = " ".join(
            f"reinterpret_cast<{half}*>({match['to']})[{i}] = "
            f"reinterpret_cast<const {half}*>({match['source']})[{i}];"
            for i in (0, 1)
        )
        changed = f"{text[: match.start()]}{{ {copies} }}{text[match.end() :]}"
        yield Rewrite(f"line {line}: copies of {half}", VECTORISED, changed, {})


_RULES: tuple[Callable[[str], Iterator[Rewrite]], ...] = (_unroll, _swizzle, _launch_bounds, _vector_width)


def _of_macros(request: Request, macros: dict[str, str]) -> Iterator[Rewrite]:
    """Stages and tiles beside what the catalogue lists: a number more or less, its half and its double."""
    for name, macro in (request.space.macros if request.space else {}).items():
        if not {PREFETCH, SHARED_TILING, OCCUPANCY} & set(macro.techniques):
            continue
        now = macros.get(name, "")
        if not now.isdecimal():
            continue
        steps = (
            (int(now) + 1, int(now) - 1) if PREFETCH in macro.techniques else (2 * int(now), int(now) // 2)
        )
        for value in steps:
            if value > 0:
                after = {**macros, name: str(value)}
                (lever,) = macro_words(macros, after)
                yield Rewrite(lever, macro.techniques[0], "", {name: str(value)})
