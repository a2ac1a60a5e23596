"""The process that answers calls: one JSON object a line on stdin, one a line on stdout.

It is a process of its own so that a call can be ended at any moment, whatever it is at, and so that nothing
that is printed while it works gets among the messages of the protocol.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from profiler.agents.roots import Roots
from profiler.errors import Exit, ProfilerError

_COLLECT_AFTER = 50_000  # objects more: an answer makes as many, in no cycles


def main() -> int:
    """Answer line by line until stdin ends. The first line says which folders may be read."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)  # what libraries and compilers print is no answer
    first = json.loads(requests.readline())
    roots = Roots(tuple(map(Path, first["folders"])), first["data"])
    _load()
    for line in requests:
        request = json.loads(line)
        answers.write(json.dumps(_answer(request, roots), allow_nan=False).encode() + b"\n")
        answers.flush()
    return 0


def _load() -> None:
    """Load what most calls need, while nobody waits yet; a call that needs it says what is wrong with it."""
    gc.disable()
    with contextlib.suppress(ProfilerError, ImportError, OSError):
        from profiler.agents import answers  # noqa: F401
        from profiler.documents.launches import launches_of_name  # noqa: F401
        from profiler.evidence.metric_table import load_metrics
        from profiler.reports.reader_client import start_reader

        start_reader()
        load_metrics()
    gc.freeze()  # what is loaded stays
    gc.enable()
    gc.set_threshold(_COLLECT_AFTER)


def _answer(request: dict[str, Any], roots: Roots) -> dict[str, Any]:
    from profiler.agents.answers import answer, error_line

    try:
        return {"answer": answer(request["tool"], request["arguments"], roots, request["budget"])}
    except ProfilerError as error:
        return {"error": error_line(error), "exit_code": int(error.exit_code)}
    except OSError as error:
        return {"error": f"{error.strerror or type(error).__name__}", "exit_code": int(Exit.UNUSABLE_INPUT)}
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        message = f"a defect in profiler: {type(error).__name__}; its server's stderr has the traceback"
        return {"error": message, "exit_code": int(Exit.UNUSABLE_INPUT)}


if __name__ == "__main__":
    raise SystemExit(main())
