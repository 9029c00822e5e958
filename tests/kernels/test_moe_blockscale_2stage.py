from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import moe_blockscale_2stage as kernel
from kernels.moe_gemm_2stage import reference1, reference2
from kernels.quant import build_block_quant_module
from kernels.shuffles import shuffle_weight
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, torch_type, whole_numbers
from tests.kernels.moe import OUT, TOLERANCES, Layer


def operands(rows: int, experts: int, n: int, k: int, arch: str = "gfx942") -> tuple[Any, ...]:
    """(activations and weights as numbers, the same in memory, their scales)."""
    kind = torch_type("fp8", arch)
    a, w = whole_numbers(rows, k, seed=rows).to(kind), whole_numbers(experts, n, k, seed=n).to(kind)
    of_a, of_w = factors(rows, k // 128) / 64, factors(experts, n // 128, k // 128)
    numbers = kernel.expanded(a, of_a), kernel.expanded(w, of_w, 128)
    return *numbers, a.view(-1), shuffle_weight(w.view(-1, k)), of_a.T.contiguous().view(-1), of_w.view(-1)


def stage1(
    layer: Layer, *, tile: tuple[int, int], weighted: bool = False, arch: str = "gfx942", **options: Any
) -> None:
    """Run it checked and compare."""
    x, w, *memory = operands(layer.tokens, layer.experts, 2 * layer.i, layer.d, arch)
    out = layer.result(layer.i, OUT[options.get("out_dtype", "f16")])
    launch = kernel.compile_moe_blockscale_gemm1(**layer.sizes(*tile), doweight_stage1=weighted, **options)
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.i, layer.d, len(tables[1]))
    expected = reference1(x, w, layer.topk_ids, layer.weights if weighted else None)
    tolerance = TOLERANCES[out.dtype]
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=tolerance, atol=tolerance)


def stage2(
    layer: Layer, *, tile: tuple[int, int], accumulate: bool = True, arch: str = "gfx942", **options: Any
) -> None:
    """Run it checked and compare."""
    h, w, *memory = operands(layer.rows, layer.experts, layer.d, layer.i, arch)
    out = layer.result(layer.d, OUT[options.get("out_dtype", "f16")], accumulate)
    launch = kernel.compile_moe_blockscale_gemm2(
        **layer.sizes(*tile), doweight_stage2=True, accumulate=accumulate, **options
    )
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.d, layer.i, len(tables[1]))
    expected = reference2(h.view(layer.tokens, layer.topk, -1), w, layer.topk_ids, layer.weights)
    expected = expected.sum(1) if accumulate else expected
    tolerance = TOLERANCES[out.dtype]
    got = out.float().view(expected.shape)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


@pytest.mark.checked
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage1_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    tile = ((64, 128), (256, 128), (128, 128))[number]
    stage1(Layer.of(shape), tile=tile, weighted=number == 1, out_dtype=("f16", "bf16", "f16")[number])


@pytest.mark.checked
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage2_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    tile, options = ((256, 128), (128, 256), (128, 128))[number], ({}, {"out_dtype": "bf16"}, {"accumulate": False})
    stage2(Layer.of(shape), tile=tile, **options[number])


@pytest.mark.parametrize("stage", [stage1, stage2])
def test_on_cdna4(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    stage(Layer.of((18, 256, 256, 3, 2, 16)), tile=(128, 128), arch="gfx950", waves_per_eu=2)


def test_all_tokens_choose_one_expert() -> None:
    layer = Layer.of((40, 256, 128, 5, 1, 16), torch.full((40, 1), 3, dtype=torch.int32))
    stage1(layer, tile=(64, 128))
    stage2(layer, tile=(64, 128), out_dtype="f32")


def test_nan_and_inf_stay_in_their_rows() -> None:
    """Row 0 is read in place of rows that do not exist, and scales may be 0, inf and NaN."""
    layer = Layer.of((5, 256, 128, 3, 1, 16))
    x, w, a, shuffled, of_a, of_w = operands(5, 3, 2 * layer.i, layer.d)
    of_a = of_a.view(2, 5)
    of_a[0, :3] = torch.tensor([torch.nan, torch.inf, 0.0])
    of_a[1, 2] = 0.0
    out, tables = layer.result(layer.i, torch.float16), layer.tables()
    launch = kernel.compile_moe_blockscale_gemm1(**layer.sizes(64, 128), doweight_stage1=False)
    with checking():
        launch(out, a, shuffled, of_a.view(-1), of_w, *tables, 5, layer.i, layer.d, len(tables[1]))
    expected = reference1(x[3:], w, layer.topk_ids[3:])
    got = out.float().view(5, 1, -1)
    assert got[0].isnan().all()
    assert not got[1].isfinite().any()
    assert not got[2].any()
    torch.testing.assert_close(got[3:], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_a_layer_with_its_quantisation() -> None:
    """What stage 1 wrote is rounded to fp8 by a kernel, and is what stage 2 reads."""
    layer = Layer.of((21, 256, 128, 4, 2, 16))
    x, w1, *memory1 = operands(layer.tokens, layer.experts, 2 * layer.i, layer.d)
    _, w2, _, shuffled2, _, of_w2 = operands(1, layer.experts, layer.d, layer.i)
    h = layer.result(layer.i, torch.bfloat16).view(layer.rows, layer.i)
    rounded, scales = torch.zeros(layer.rows, layer.i, dtype=torch_type("fp8")), torch.zeros(layer.rows, layer.i // 128)
    y, tables = layer.result(layer.d, torch.float32, accumulate=True), layer.tables()
    gemm1 = kernel.compile_moe_blockscale_gemm1(**layer.sizes(64, 128), doweight_stage1=False, out_dtype="bf16")
    gemm2 = kernel.compile_moe_blockscale_gemm2(**layer.sizes(64, 128), doweight_stage2=True, out_dtype="f32")
    with checking():
        gemm1(h.view(-1), *memory1, *tables, layer.tokens, layer.i, layer.d, len(tables[1]))
        build_block_quant_module(layer.i, "bf16", "fp8")(h, rounded, scales, layer.rows)
        of_h = scales.T.contiguous().view(-1)
        gemm2(y, rounded.view(-1), shuffled2, of_h, of_w2, *tables, layer.tokens, layer.d, layer.i, len(tables[1]))
    expected = reference2(reference1(x, w1, layer.topk_ids), w2, layer.topk_ids, layer.weights).sum(1)
    torch.testing.assert_close(y.view(expected.shape), expected, rtol=0.1, atol=0.1 * expected.abs().max().item())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale_block_k": 64}, "scale_block_k=64"),
        ({"tile_k": 64}, "tile_k=64"),
        ({"tile_n": 192, "inter_dim": 384}, "tile_n=192"),
        ({"inter_dim": 192, "tile_n": 64}, "192 columns"),
        ({"model_dim": 300}, "K=300"),
        ({"out_dtype": "f32"}, "f16 or bf16"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], said: str) -> None:
    sizes = Layer.of((4, 256, 128, 4, 2, 16)).sizes(64, 128)
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_moe_blockscale_gemm1(**{**sizes, "doweight_stage1": False, **options})
