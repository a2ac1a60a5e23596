"""What the example runs are, and where their numbers are from."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.bundles.run import EXAMPLE
from profiler.store.rows import RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Html

CAPTION = "example data: numbers from public reports, no source or machine code; not part of your families"


def sources(runs: Sequence[RunInfo]) -> Html:
    """Of each run the source and the licence."""
    lines = []
    for run in runs:
        about = run.provenance.get(EXAMPLE)
        words = f"{about.get('source')}; {about.get('licence')}" if isinstance(about, dict) else str(about)
        link = markup.link(addresses.run(run.run_id), markup.code(f"{run.family}/{run.version}"))
        lines.append(markup.join((link, markup.muted(words))))
    return markup.fold("source and licence", map(markup.note, lines))


def hidden(number: int) -> Html:
    """That they are hidden, and what brings them back later."""
    words = (
        f"{number} example runs are hidden for good; later `profiler data forget RUN --undo` brings one back"
    )
    return markup.note(markup.backticks_as_code(words))
