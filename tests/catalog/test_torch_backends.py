"""The baselines against the float64 reference, as far as torch's CPU build runs them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import pytest

from profiler.catalog import catalog, sources, torch_backends
from profiler.catalog.attention import attention_reference
from profiler.errors import CannotJudge
from tests.conftest import ROOT

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: `pip install torch` runs these"
)

# len_q, len_kv: equal; more keys than queries, where the masks meet at their ends
LENGTHS = ((48, 48), (16, 40))


def operands(len_q: int, len_kv: int) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(len_q)
    shapes = [(1, 2, length, 64) for length in (len_q, len_kv, len_kv)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", ["sdpa", "sdpa_math", "sdpa_flash"])
def test_a_baseline_computes_what_a_version_does(name: str, lengths: tuple[int, int], causal: bool) -> None:
    q, k, v = operands(*lengths)
    reference = attention_reference([q.numpy(), k.numpy(), v.numpy()], 0.125, causal)
    ours = catalog.load_catalog(ROOT / "kernels")
    function = sources.load_object(ours, ours.by_id[name].callable or "")
    assert abs(function(q, k, v, 0.125, causal).double().numpy() - reference).max() < 1e-5


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize("name", ["sdpa_efficient", "sdpa_cudnn"])
def test_a_backend_that_does_not_run_here_says_so_and_never_falls_back(name: str) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("on a GPU it may run")
    with pytest.raises(CannotJudge, match=r"backend does not take \[1, 2, 48, 64\] torch.float32 on cpu"):
        getattr(torch_backends, name)(*operands(48, 48), 0.125, False)


@pytest.mark.slow
@needs_torch
@pytest.mark.skipif(importlib.util.find_spec("xformers") is not None, reason="xFormers is installed here")
def test_xformers_that_is_not_installed_says_so() -> None:
    with pytest.raises(CannotJudge, match="xFormers is not installed"):
        torch_backends.xformers(*operands(48, 48), 0.125, False)


def test_every_baseline_of_the_catalogue_is_a_function_here() -> None:
    ours = catalog.load_catalog(ROOT / "kernels")
    named = {version.callable for version in ours.versions if version.state == "baseline"}
    assert named == {
        f"profiler.catalog.torch_backends:{name}"
        for name in ("sdpa", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "xformers")
    }


def test_importing_the_baselines_does_not_import_torch() -> None:
    code = "import sys, profiler.catalog.torch_backends; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
