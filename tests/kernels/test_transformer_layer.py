from __future__ import annotations

import pytest
import torch

from flydsl.simulator import counting, tracing
from kernels.examples.transformer_layer import Sizes, TransformerLayer, timeline
from tests.kernels.checks import checking


@pytest.mark.slow
@pytest.mark.diagonal(2)
@pytest.mark.parametrize("tokens", [20, 1])
def test_layer_equals_torch(tokens: int) -> None:
    layer = TransformerLayer(Sizes())
    x = torch.randn(tokens, 256, generator=torch.Generator().manual_seed(tokens)).bfloat16()
    positions = torch.arange(tokens).int()
    with checking():
        y, (keys, values) = layer(x, positions)
    expected = layer.reference(x, positions)
    # Where kernels sum in another order than torch, a few results are rounded to the neighbouring bf16.
    assert (y.float() - expected.float()).norm() / expected.float().norm() < 0.01
    assert keys.view(-1, 2, 64)[:tokens].any(-1).all()
    assert values.view(-1, 2, 64)[:tokens].any(-1).all()
    assert not values.view(-1, 2, 64)[tokens:].any()


@pytest.mark.slow
def test_timeline_names_every_launch() -> None:
    layer = TransformerLayer(Sizes())
    with counting() as counters, tracing(execute=True):
        layer(torch.zeros(2, 256).bfloat16(), torch.arange(2).int())
    lines = timeline(counters.launches).splitlines()
    assert [line.split("|")[0].split()[-1].removesuffix("_0") for line in lines] == [
        "norm_kernel", *["preshuffle_gemm_kernel"] * 3, "fused_rope_cache_kernel", "flash_attn_generic_kernel",
        "preshuffle_gemm_kernel", "norm_kernel", "preshuffle_gemm_kernel", "topk_gating_softmax_kernel",
        "sort_at_once_kernel", "moe_gemm_kernel", "moe_gemm_kernel",
    ]  # fmt: skip
    assert lines[0].startswith("  0.00 us")
    assert all(" us ± " in line for line in lines)
