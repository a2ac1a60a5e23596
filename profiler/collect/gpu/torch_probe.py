"""What torch can do on this machine: its CUDA, its GPU, and which attention backends take a small problem."""

from __future__ import annotations

import sys

from profiler.catalog import torch_backends
from profiler.collect.gpu import stage

BACKENDS = ("sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "xformers")


def work(_request: stage.Json) -> stage.Json:
    """The stage: see stage.main. backends: by name, null where it works, else why not."""
    torch = stage.require_gpu()
    q = torch.randn((1, 2, 128, 64), device="cuda", dtype=torch.float16)
    backends: dict[str, str | None] = {}
    for name in BACKENDS:
        try:
            getattr(torch_backends, name)(q, q, q, 0.125, False)
            torch.cuda.synchronize()
            backends[name] = None
        except Exception as error:
            backends[name] = stage.error_reason(error)
    properties = torch.cuda.get_device_properties(0)
    return {
        "status": "done",
        "reason": None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name(0),
        "compute_capability": f"{properties.major}.{properties.minor}",
        "gpus": torch.cuda.device_count(),
        "backends": backends,
    }


if __name__ == "__main__":
    sys.exit(stage.main(work))
