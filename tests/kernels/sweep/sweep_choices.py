"""Launchers that choose their configuration by measurement, at one small shape each: `make sweep`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels import (
    blockscale_preshuffle_gemm,
    fp8_gemm_utils,
    fused_rope_cache_kernel,
    hgemm_splitk,
    mla_fwd_decode,
    preshuffle_gemm,
    preshuffle_gemm_v2,
    qk_norm_rope_quant,
    quant,
    silu_and_mul_fq,
    small_m_hgemm,
    softmax_kernel,
)
from kernels import mixed_moe_gemm_2stage as mixed
from kernels.moe_gemm_2stage import reference1
from tests.kernels import (
    test_fused_rope_cache_kernel,
    test_mla_fwd_decode,
    test_qk_norm_rope_quant,
    test_silu_and_mul_fq,
)
from tests.kernels import test_mixed_moe_gemm_2stage as mixed_tests
from tests.kernels.gemm import factors, nans, plain, torch_type, whole_numbers
from tests.kernels.moe import Layer
from tests.kernels.rows import assert_close, matrix


@pytest.mark.parametrize("kernel", [hgemm_splitk.hgemm, small_m_hgemm.small_m_hgemm])
@pytest.mark.parametrize("shape", small_m_hgemm.SHAPES, ids=str)
def test_hgemm(shape: tuple[int, int, int], kernel: Any) -> None:
    m, n, k = shape
    a, b = (whole_numbers(rows, k).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16)
    kernel(c.view(-1), a.view(-1), b.view(-1), m, n, k, "f16")
    assert torch.equal(c.float(), hgemm_splitk.reference(a, b))


@pytest.mark.parametrize("shape", fp8_gemm_utils.SHAPES, ids=str)
def test_fp8_gemm(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = (whole_numbers(rows, k).to(torch_type("fp8")) for rows in (m, n))
    scales, c = (factors(m), factors(n)), nans(m, n)
    fp8_gemm_utils.fp8_gemm(a.view(-1), b.view(-1), c, *scales, m, n, k, False)
    expected = fp8_gemm_utils.reference(a.float(), b.float(), *scales)
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.parametrize("shape", blockscale_preshuffle_gemm.SHAPES, ids=str)
def test_blockscale(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b, flat_a, shuffled = plain("fp8", m, n, k)
    scale_a, scale_b, c = factors(k // 128, m), factors(-(-n // 128), k // 128), nans(m, n)
    blockscale_preshuffle_gemm.blockscale_preshuffle_gemm(
        c, flat_a, shuffled, scale_a.view(-1), scale_b.view(-1), m, n, k, "bf16"
    )
    expected = blockscale_preshuffle_gemm.reference(a, b, scale_a, scale_b)
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.parametrize("dtype", ["fp8", "bf16"])
@pytest.mark.parametrize("kernel", [preshuffle_gemm.preshuffle_gemm, preshuffle_gemm_v2.preshuffle_gemm_v2])
def test_preshuffle(kernel: Any, dtype: str) -> None:
    m, n, k = 33, 128, 512
    a, b, flat_a, shuffled = plain(dtype, m, n, k)
    scales, c = (factors(m), factors(n)), nans(m, n)
    bias = () if kernel is preshuffle_gemm_v2.preshuffle_gemm_v2 else (c,)
    kernel(c, flat_a, shuffled, *scales, *bias, m, n, k, dtype, "bf16")
    expected = preshuffle_gemm.reference(a, b, *(scales if dtype == "fp8" else ()))
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.parametrize("columns", [65, 2048])
def test_rows(columns: int) -> None:
    x = matrix(5, columns, "bf16")
    out, scales = torch.zeros(5, columns, dtype=torch.int8), torch.full((5,), torch.nan)
    quant.quant_rows(x, out, scales, 5, columns, "i8")
    expected, expected_scales = quant.reference(x)
    torch.testing.assert_close(scales, expected_scales)
    assert ((out.float() - expected).abs() <= 0.5 + 1e-3).all()
    y = torch.full_like(x, torch.nan)
    softmax_kernel.softmax(x, y, columns)
    assert_close(y, softmax_kernel.reference(x), "bf16")


def test_silu() -> None:
    given = test_silu_and_mul_fq.operands(3, 2, 256, "none")
    x, out = given["x"], given["out"]
    spec = silu_and_mul_fq.Activation(inter_dim=256, topk=2, quant="none", gui=False, act="silu", bias=False, limit=7.0)
    silu_and_mul_fq.silu_and_mul_fq(*given.values(), 3, spec)
    torch.testing.assert_close(out.view(len(x), -1).float(), silu_and_mul_fq.reference(x), rtol=2**-7, atol=1e-2)


@pytest.mark.parametrize("heads", [(4, 2), (3, 5)])
def test_rope(heads: tuple[int, int]) -> None:
    given = test_fused_rope_cache_kernel.operands((5, *heads, 64), "bf16", True, False, True, False)
    q_heads, kv_heads = heads
    rope = fused_rope_cache_kernel.Rope(
        dim=64,
        q_heads=q_heads,
        kv_heads=kv_heads,
        block_size=16,
        flash=True,
        dtype="bf16",
        scaled=False,
        half_freqs=True,
    )
    tokens = given.pop("tokens")
    fused_rope_cache_kernel.fused_rope_cache(*given.values(), tokens, rope)
    angles = (given[name][given["positions"]] for name in ("cos", "sin"))
    cos, sin = angles
    for name in ("q", "k"):
        expected = fused_rope_cache_kernel.reference(given[name], cos, sin)
        torch.testing.assert_close(given[f"{name}_out"], expected, rtol=2**-7, atol=1e-2)


def test_qk_norm() -> None:
    q, kv, weight, cos, sin, positions = test_qk_norm_rope_quant.operands(3, 4, 64)
    heads = qk_norm_rope_quant.Heads(q_heads=4, rope_dim=64, group=None, scale_dtype="fp32")
    made = qk_norm_rope_quant.results(q, kv, heads)
    qk_norm_rope_quant.qk_norm_rope(q, kv, weight, cos, sin, positions, *made.values(), 3, heads)
    at = positions.long()
    for name, x, w in (("q", q.view(3, 4, 512), None), ("kv", kv.view(3, 1, 512), weight)):
        expected, _ = qk_norm_rope_quant.reference(x, w, cos[at], sin[at])
        torch.testing.assert_close(made[f"{name}_out"].view(x.shape).float(), expected, rtol=2**-6, atol=2e-2)


def test_mla() -> None:
    """One request is divided among many workgroups, or not."""
    given = test_mla_fwd_decode.Requests.of((45, 3))
    output = torch.full((2, 128, 512), torch.nan, dtype=torch.bfloat16)
    mla_fwd_decode.tuned_mla_fwd_decode(
        output, given.query, given.kv, given.pages, given.contexts, test_mla_fwd_decode.SCALE
    )
    test_mla_fwd_decode.assert_close(output.float(), given.expected())


def test_mixed_moe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile of those that fit: 128 columns are no multiple of 256."""
    monkeypatch.setenv("ARCH", "gfx950")
    monkeypatch.setenv("FLYDSL_AUTOTUNE", "1")
    layer = Layer.of((9, 256, 128, 3, 2, 32))
    x, data, scales = mixed_tests.activations("fp4", layer.tokens, layer.d)
    w, *of_w = mixed_tests.weights(layer.experts, 2 * layer.i, layer.d, mixed.GateMode.SEPARATED)
    plan = mixed.plan_of(
        "fp4", layer.d, (32, 64, 256), columns=layer.i, experts=3, topk=2, out_dtype="bf16", gated=True, weighted=False,
        cshuffle=False, accumulate=False,
    )  # fmt: skip
    h, tables, none = layer.result(layer.i, torch.bfloat16), layer.tables(), torch.zeros(1)
    sorted_scales = mixed.sorted_scales(scales, tables[0])
    mixed.mixed_moe_gemm(h, data, of_w[0], sorted_scales, of_w[1], *tables, none, none, layer.tokens, plan)
    expected = reference1(x, w, layer.topk_ids)
    largest = expected.abs().max().item()
    torch.testing.assert_close(h.float().view(expected.shape), expected, rtol=2e-2, atol=2e-2 * largest)
    (refused,) = mixed.mixed_moe_gemm.failures.values()
    assert {config.kwargs["tile"][0] for config, _ in refused} >= {256}
