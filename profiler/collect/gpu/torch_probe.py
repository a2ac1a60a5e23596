"""What torch can do on this machine: its CUDA, its GPU, and which attention backends take a small problem."""

from __future__ import annotations

import sys

from profiler.catalog import torch_backends
from profiler.collect.gpu import program
from profiler.collect.gpu.messages import TORCH_PROBE, ProbeRequest, TorchProbeResult

BACKENDS = ("sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "xformers")


def probe(_request: ProbeRequest) -> TorchProbeResult:
    """Call every backend once: whether one works is only known when it has run."""
    torch = program.require_gpu()
    q = torch.randn((1, 2, 128, 64), device="cuda", dtype=torch.float16)
    backends: dict[str, str | None] = {}
    for name in BACKENDS:
        try:
            getattr(torch_backends, name)(q, q, q, 0.125, False)
            torch.cuda.synchronize()
            backends[name] = None
        except Exception as error:
            backends[name] = program.error_reason(error)
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
    sys.exit(program.main(TORCH_PROBE, probe))
