"""Machine code as a compiler made it, not run: how much there is, and where it comes from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from profiler.sass.alignment import Alignment
from profiler.sass.listing import Listing
from profiler.sass.stored_code import StoredCode
from profiler.ui import addresses, markup
from profiler.ui.data.named_code import function_labels
from profiler.ui.markup import Html
from profiler.ui.views import code_grid

ALL_FUNCTIONS = "all functions"
NOTHING_RAN = "nothing was run: no samples, no counts"


def origins(stored: Sequence[StoredCode]) -> list[Html]:
    """Where the code comes from, a line for both sides where they agree; and that nothing was run."""
    words = [_origin(code) for code in stored]
    if len(set(words)) > 1:
        words = [
            markup.join((markup.muted(label), origin)) for label, origin in zip("AB", words, strict=True)
        ]
    else:
        words = words[:1]
    badge, nothing_ran = markup.evidence_badge("static"), markup.muted(NOTHING_RAN)
    lines = [markup.note(markup.join((badge, origin, nothing_ran))) for origin in words]
    # Two compilers make different code of the same source.
    compilers = list(dict.fromkeys(code.compiler for code in stored))
    if len(compilers) > 1:
        warning = f"Compilers differ, {' and '.join(compilers)}: not all differences come from the versions."
        lines.append(markup.note(warning))
    return lines


def _origin(code: StoredCode) -> Html:
    run = markup.link(addresses.run(code.run_id), markup.code(code.run_id))
    return markup.join((code.arch, code.compiler, markup.join(("kept in run", run))), " · ")


def not_stored(reason: str) -> Html:
    """What stands where no run keeps the code: why, and the command that builds it."""
    return markup.note(markup.state(markup.backticks_as_code(reason)))


def how_to_build(versions: Sequence[str], arch: str | None) -> Html:
    """What stands where no run keeps the code of both versions: the command that builds and aligns it."""
    command = shlex.join(["profiler", "sass", *versions, *(["--arch", arch] if arch else [])])
    words = f"Not kept for both; instruction beside instruction: `{command}`"
    return markup.note(markup.state(markup.backticks_as_code(words)))


def strip(listing: Listing) -> Html:
    """How many instructions and functions there are."""
    parts: list[object] = [f"{code_grid.count(len(listing.lines))} instructions"]
    if len(listing.functions) > 1:
        labels = function_labels(listing.functions)
        parts += [f"[{number}] {labels[name]}" for number, name in enumerate(listing.functions, start=1)]
    if not listing.has_sources:
        parts.append(markup.muted("no line info"))
    return markup.grey_strip(parts)


def summary(kernel: str, alignment: Alignment, address: addresses.CompiledCode) -> Html:
    """How the machine code of two versions compares, in a line, and the way to it."""
    counts = code_grid.row_counts(alignment)
    words = counts if alignment.different else f"{counts}: no difference"
    strip = markup.grey_strip((kernel or ALL_FUNCTIONS, words))
    link = markup.link(address.href, "code of both side by side ›")
    return markup.join((strip, markup.note(link)), "")
