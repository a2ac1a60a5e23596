"""A torch whose GPU is the host: the programs run whole, with real libraries, where there is no GPU.

Streams are the host's own order, a graph is a list of calls, an event is a time. What it times means nothing.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
import types
from pathlib import Path

SOURCE = r"""
#include <cmath>
#include <vector>
extern "C" int attention_forward(const _Float16* q, const _Float16* k, const _Float16* v, _Float16* o,
    const float*, int batch, int heads, int len_q, int len_kv, int dim, float scale, int causal, void*) {
  if (REFUSE) return 1;
  for (long head = 0; head < long(batch) * heads; ++head)
    for (int i = 0; i < len_q; ++i) {
      std::vector<double> p(len_kv), out(dim);
      double total = 0;
      for (int j = 0; j < len_kv; ++j) {
        if (causal && j > i + len_kv - len_q) continue;
        double s = 0;
        for (int d = 0; d < dim; ++d)
          s += double(q[(head * len_q + i) * dim + d]) * double(k[(head * len_kv + j) * dim + d]);
        total += p[j] = std::exp(s * scale);
      }
      for (int j = 0; j < len_kv; ++j)
        for (int d = 0; d < dim; ++d) out[d] += p[j] / total * double(v[(head * len_kv + j) * dim + d]);
      if (SKIP_ROW == i) continue;
      for (int d = 0; d < dim; ++d) o[(head * len_q + i) * dim + d] = _Float16(out[d] * FACTOR);
    }
  if (OUTSIDE) o[long(batch) * heads * len_q * dim + 5] = _Float16(1);
  if (INPUTS) const_cast<_Float16*>(q)[0] += _Float16(1);
  if (CRASH) *(volatile int*)8 = 1;
  return 0;
}
"""
PLANTED = {"REFUSE": 0, "SKIP_ROW": -1, "FACTOR": 1, "OUTSIDE": 0, "INPUTS": 0, "CRASH": 0}


def library(folder: Path, **planted: float) -> Path:
    """attention_forward for the host, with an error planted."""
    folder.mkdir(exist_ok=True)
    source, library = folder / "attention.cpp", folder / "attention.so"
    source.write_text(SOURCE)
    flags = [f"-D{name}={value}" for name, value in {**PLANTED, **planted}.items()]
    command = ["g++", "-O1", "-shared", "-fPIC", *flags, "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return library


class Event:
    """A moment."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return False

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1000


class Graph:
    """Remembers nothing: replay is counted."""

    replays = 0

    def replay(self) -> None:
        Graph.replays += 1


class Stream:
    cuda_stream = 0

    def wait_stream(self, _other: object) -> None:
        pass


def install(monkeypatch) -> types.ModuleType:
    """Put the host in place of torch's GPU."""
    import torch

    full, zeros = torch.full, torch.zeros
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self: self.clone())
    monkeypatch.setattr(torch, "full", lambda *a, device=None, **k: full(*a, **k))
    monkeypatch.setattr(torch, "zeros", lambda *a, device=None, **k: zeros(*a, **k))
    pushed: list[str] = []
    host = {
        "is_available": lambda: True,
        "init": lambda: None,
        "synchronize": lambda: None,
        "empty_cache": lambda: None,
        "current_stream": Stream,
        "Stream": Stream,
        "stream": lambda _stream: contextlib.nullcontext(),
        "graph": lambda _graph: contextlib.nullcontext(),
        "CUDAGraph": Graph,
        "Event": Event,
        "_sleep": lambda cycles: time.sleep(1e-5),
        "mem_get_info": lambda: (1 << 30, 1 << 30),
        "get_device_properties": lambda _: types.SimpleNamespace(L2_cache_size=100_000),
        "nvtx": types.SimpleNamespace(range_push=pushed.append, range_pop=lambda: pushed.append("pop")),
        "pushed": pushed,
    }
    for name, value in host.items():  # one by one: torch itself reads others of its attributes
        monkeypatch.setattr(torch.cuda, name, value, raising=False)
    return torch
