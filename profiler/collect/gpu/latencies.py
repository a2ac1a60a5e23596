"""How several workloads are timed in one process: what a process costs to start is paid once."""

from __future__ import annotations

import gc
import sys

from profiler.collect.gpu import latency, stage


def work(request: stage.Json) -> stage.Json:
    """The stage: every part of the request as timing.work takes it, one after the other, by its workload.

    A part that fails leaves the others; one that loses the context ends the process.
    """
    torch = stage.require_gpu()
    parts: dict[str, stage.Json] = {}
    for label, part in request["parts"].items():
        try:
            parts[label] = latency.work(part)
        except Exception as error:
            torch.cuda.synchronize()  # raises where the context is lost
            parts[label] = {
                "status": stage.error_status(error),
                "reason": stage.error_reason(error),
                "versions": {},
            }
        gc.collect()
        torch.cuda.empty_cache()  # the next part counts the memory that is free
    done = any(one["status"] == "done" for one in parts.values())
    reason = None if done else next((one["reason"] for one in parts.values()), "no workloads")
    return {"status": "done" if done else "failed", "reason": reason, "parts": parts}


if __name__ == "__main__":
    sys.exit(stage.main(work))
