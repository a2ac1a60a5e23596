"""The machine code that a compiler made and nobody ran, as markup: its functions, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.build import function_name, template_integer
from profiler.sass import Listing, StoredCode, alignment
from profiler.sass import listing as sass_listing
from profiler.ui import addresses, markup
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_listing import function_label, function_labels

SIZE = "head dim "  # what a workload of static facts begins with
ALL = "all functions"
NOTHING_RAN = "nothing was run: no samples, no counts"


def of_function(listing: Listing, version: str, function: str) -> Listing:
    """The listing of one function, or of all; labelled as the page's head wants it."""
    kept = sass_listing.select_functions(listing, lambda name: name == function) if function else listing
    names = list(dict.fromkeys(function_name(name) for name in kept.functions))
    kernel = function_label(function) if function else ", ".join(names)
    return Listing(f"{version} {kernel}", kept.functions, kept.lines, kept.counts, kept.texts)


def kernels(code: Sequence[Listing]) -> dict[str, tuple[str, ...]]:
    """The functions that may be chosen, one a side, by what they are called: `v2c_v5<64> → v2d<64>`.

    Of two sides those that pair; what has no partner shows with all functions alone.
    """
    if len(code) < 2:
        pairs: list[tuple[str, ...]] = [(name,) for one in code for name in one.functions]
    else:
        a, b = code
        found = alignment.pair_functions(a, b)
        pairs = [(a.functions[i], b.functions[k]) for i, k in found if i is not None and k is not None]
    named: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        label = " → ".join(dict.fromkeys(map(function_label, pair)))
        named[label if label not in named else f"{label} {pair[0]}"] = pair
    return named


def functions_of_size(code: Sequence[Listing], workload: str) -> list[str]:
    """The function of each side that static facts of a workload (`head dim 64`) are of; "" for all."""
    size = workload.removeprefix(SIZE) if workload.startswith(SIZE) else ""
    found = []
    for one in code:
        mine = [name for name in one.functions if str(template_integer(name)) == size]
        found.append(mine[0] if len(mine) == 1 else "")
    return found if all(found) else [""] * len(code)


def origins(kept: Sequence[StoredCode]) -> list[Html]:
    """Where the code comes from, a line for both sides where they agree; and that nothing was run."""
    badge = markup.evidence_badge("static")
    words = [
        markup.join(
            (
                one.arch,
                one.compiler,
                markup.join(
                    ("kept in run", markup.link(addresses.run(one.run_id), markup.code(one.run_id))), " "
                ),
            ),
            " · ",
        )
        for one in kept
    ]
    if len(set(words)) > 1:
        words = [markup.join((markup.muted(side), told)) for side, told in zip("AB", words, strict=True)]
    else:
        words = words[:1]
    lines = [markup.note(markup.join((badge, told, markup.muted(NOTHING_RAN)), " ")) for told in words]
    compilers = list(dict.fromkeys(one.compiler for one in kept))
    if len(compilers) > 1:
        told = f"Compilers differ, {' and '.join(compilers)}: not all that differs is the versions' own."
        lines.append(markup.note(told))
    return lines


def not_kept(why: str) -> Html:
    """What stands where no run keeps the code: why, and the command that builds it."""
    return markup.note(markup.state(markup.backticks_as_code(why)))


def strip(listing: Listing) -> Html:
    """How much there is."""
    parts: list[object] = [f"{code_grid.count(len(listing.lines))} instructions"]
    if len(listing.functions) > 1:
        called = function_labels(listing.functions)
        parts += [f"[{at}] {called[name]}" for at, name in enumerate(listing.functions, start=1)]
    if not listing.has_sources:
        parts.append(markup.muted("no line info"))
    return markup.grey_strip(parts)


def summary(kernel: str, found: alignment.Alignment, address: addresses.Compiled) -> Html:
    """How the machine code of two versions compares, in a line, and the way to it."""
    told = ", ".join(f"{code_grid.count(count)} {kind}" for kind, count in found.counts.items() if count)
    words = told if found.different else f"{told}: no difference"
    link = markup.link(address.href, "code of both side by side ›")
    return markup.join((markup.grey_strip((kernel or ALL, words)), markup.note(link)), "")
