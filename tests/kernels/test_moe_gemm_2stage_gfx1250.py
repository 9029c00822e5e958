"""The products of a mixture of experts on gfx1250: of 16 bits, and of fp8 and fp4 with scales of 32 elements."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import moe_gemm_2stage_mxscale_gfx1250 as scaled
from kernels import moe_gemm_2stage_wmma_gfx1250 as plain
from kernels.moe_gemm_2stage import MoeGemm2Mode
from kernels.shuffles import shuffle_weight
from tests.kernels.archs import executed_on
from tests.kernels.checks import checking
from tests.kernels.gemm import FP4, TYPES, packed_fp4, powers, whole_numbers
from tests.kernels.moe import OUT, TOLERANCES, Layer

NONE = torch.zeros(1)
BITS = {"fp8": (8, 8), "fp4": (4, 4), "a8w4": (8, 4), "fp16": (16, 16), "bf16": (16, 16)}


def matrix(dtype: str, bits: int, rows: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(numbers, the same in memory, E8M0 scales (rows, K / 32)). Scales of 16 bits are any."""
    if bits == 16:
        numbers = whole_numbers(rows, k, seed=rows).to(TYPES[dtype])
        return numbers.float(), numbers, NONE
    generator = torch.Generator().manual_seed(rows + k)
    scales = torch.randint(124, 129, (rows, k // 32), generator=generator).to(torch.uint8)
    if bits == 8:
        codes = whole_numbers(rows, k, seed=rows).to(torch.float8_e4m3fn)
        return codes.float() * powers(scales), codes.view(torch.uint8), scales
    found = torch.randint(0, 16, (rows, k), generator=generator)
    return FP4[found] * powers(scales), packed_fp4(found), scales


def weights(dtype: str, experts: int, rows: int, k: int, pairs_of: int = 0) -> tuple[torch.Tensor, ...]:
    """(numbers (E, rows, K), memory, scales). pairs_of: columns of a tile of stage 1."""
    numbers, data, scales = matrix(dtype, BITS[dtype][1], experts * rows, k)
    if dtype in ("fp8", "a8w4"):
        if pairs_of:
            data, scales = (scaled.paired_rows(x, experts, pairs_of) for x in (data, scales))
        data = shuffle_weight(data)
    return numbers.view(experts, rows, k), data.view(-1), scales.view(-1)


def stage1(layer: Layer, dtype: str, tile: tuple[int, int] = (64, 128), **options: Any) -> None:
    """Run it checked and compare."""
    kernel, out_dtype = plain if BITS[dtype][0] == 16 else scaled, options.setdefault("out_dtype", "bf16")
    x, data, of_x = matrix(dtype, BITS[dtype][0], layer.tokens, layer.d)
    w, *of_w = weights(dtype, layer.experts, 2 * layer.i, layer.d, tile[0])
    bias, tables, parts = whole_numbers(layer.experts, 2 * layer.i).float(), layer.tables(), options.get("k_batch", 1)
    h = layer.result(layer.i * (2 if parts > 1 else 1), OUT[out_dtype])
    h = h.zero_() if parts > 1 else h
    extra = () if kernel is plain else (bias.view(-1),)
    launch = kernel.compile_moe_gemm1(
        **layer.sizes(*tile), in_dtype=dtype, **{"doweight_stage1": False, **options}
    )  # fmt: skip
    with checking():
        launch(h, data.view(-1), of_w[0], of_x.view(-1), of_w[1], *tables, *extra, layer.tokens, layer.i, layer.d,
               len(tables[1]))  # fmt: skip
    both = torch.einsum("td,tknd->tkn", x, w[layer.topk_ids.long()])
    if options.get("enable_bias"):
        both = both + bias[layer.topk_ids.long()]
    gate, up = both.chunk(2, -1)
    expected = torch.nn.functional.silu(gate) * up
    if options.get("act") == "swiglu":
        gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
        expected = gate * torch.sigmoid(1.702 * gate) * (up + 1)
    if options.get("doweight_stage1"):
        expected = expected * layer.weights[..., None]
    compare(h, both if parts > 1 else expected)


def stage2(layer: Layer, dtype: str, tile: tuple[int, int] = (64, 128), **options: Any) -> None:
    """Run it checked and compare."""
    kernel, out_dtype = plain if BITS[dtype][0] == 16 else scaled, options.setdefault("out_dtype", "bf16")
    h, data, of_h = matrix(dtype, BITS[dtype][0], layer.rows, layer.i)
    w, *of_w = weights(dtype, layer.experts, layer.d, layer.i)
    accumulate, tables = options.get("accumulate", True), layer.tables()
    out = layer.result(layer.d, OUT[out_dtype], accumulate and "mode" not in options)
    build = kernel.compile_moe_gemm2_ex if "mode" in options else kernel.compile_moe_gemm2
    launch = build(**layer.sizes(*tile), doweight_stage2=True, in_dtype=dtype, **options)
    bias = whole_numbers(layer.experts, layer.d).float()
    extra = () if kernel is plain else (bias.view(-1),)
    out = out[: layer.tokens * layer.d] if "mode" in options else out
    with checking():
        launch(out, data.view(-1), of_w[0], of_h.view(-1), of_w[1], *tables, *extra, layer.tokens, layer.d, layer.i,
               len(tables[1]))  # fmt: skip
    rows = kernel.reference2(h.view(layer.tokens, layer.topk, -1), w, layer.topk_ids)
    if options.get("enable_bias"):
        rows = rows + bias[layer.topk_ids.long()]
    rows = rows * layer.weights[..., None]
    compare(out, rows.sum(1) if accumulate else rows)


def compare(got: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = TOLERANCES[got.dtype]
    torch.testing.assert_close(
        got.float().view(expected.shape), expected, rtol=tolerance, atol=tolerance * expected.abs().max().item()
    )


RUNS = executed_on("gfx1250", "tensor_load_to_lds")


@pytest.mark.checked
@RUNS
@pytest.mark.slow
@pytest.mark.parametrize(("number", "shape"), [*enumerate(plain.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_sixteen_bits(number: int, shape: tuple[int, ...]) -> None:
    layer, dtype = Layer.of(shape), ("fp16", "bf16", "bf16")[number]
    first: dict[str, Any] = ({}, {"doweight_stage1": True}, {"num_buffers": 2})[number]
    second: dict[str, Any] = ({"out_dtype": "f16"}, {"mode": MoeGemm2Mode.REDUCE}, {"out_dtype": "f32"})[number]
    stage1(layer, dtype, (64, 64), **first)
    stage2(layer, dtype, (64, 32), **second)


@pytest.mark.checked
@RUNS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "number"), [("fp8", 0), ("fp4", 0), ("fp8", 1), ("a8w4", 1), ("fp4", 2), ("a8w4", 2)]
)
@pytest.mark.diagonal(3)
def test_scales_of_blocks(dtype: str, number: int) -> None:
    layer, tile_n = Layer.of(scaled.SHAPES[number]), (128, 64, 64)[number]
    first: dict[str, Any] = ({"enable_bias": True}, {"act": "swiglu"}, {})[number]
    second: dict[str, Any] = ({"accumulate": False, "enable_bias": True}, {"out_dtype": "f32"}, {})[number]
    stage1(layer, dtype, (tile_n, 128), **first)
    stage2(layer, dtype, (tile_n, 128), **second)


@RUNS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "k", "tile_k", "options"),
    [
        ("fp8", 512, 128, {"num_buffers": 3}),
        ("fp4", 1152, 128, {}),
        ("a8w4", 512, 256, {"k_batch": 2}),
        ("fp16", 128, 64, {"k_batch": 2, "out_dtype": "f16"}),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_several_buffers_and_parts_of_k(dtype: str, k: int, tile_k: int, options: dict[str, Any]) -> None:
    """Also tiles of 256, and so many that they are a loop."""
    stage1(Layer.of((5, k, 64, 2, 1, 16)), dtype, (64, tile_k), **options)


@RUNS
def test_all_tokens_choose_one_expert() -> None:
    layer = Layer.of((20, 128, 64, 5, 1, 16), torch.full((20, 1), 3, dtype=torch.int32))
    stage1(layer, "fp8")


@RUNS
@pytest.mark.slow
@pytest.mark.parametrize("byte", [0, 255])
def test_scales_of_nothing_and_nan(byte: int) -> None:
    """The smallest scale, and NaN, of one token: the others have their numbers."""
    layer = Layer.of((3, 128, 64, 2, 1, 16), torch.tensor([[1], [0], [1]], dtype=torch.int32))
    x, data, of_x = matrix("fp8", 8, layer.tokens, layer.d)
    w, *of_w = weights("fp8", layer.experts, 2 * layer.i, layer.d, 64)
    of_x[1], tables, h = byte, layer.tables(), layer.result(layer.i, torch.bfloat16)
    launch = scaled.compile_moe_gemm1(**layer.sizes(64, 128), in_dtype="fp8", out_dtype="bf16", doweight_stage1=False)
    with checking():
        launch(h, data.view(-1), of_w[0], of_x.view(-1), of_w[1], *tables, NONE, 3, layer.i, layer.d, len(tables[1]))
    got, expected = h.float().view(3, 1, -1), scaled.reference1(x, w, layer.topk_ids)
    compare(got[::2].bfloat16(), expected[::2])
    assert got[1].isnan().all() if byte == 255 else (got[1] == 0).all()


@pytest.mark.parametrize(
    ("kernel", "changed", "said"),
    [
        (plain, {"in_dtype": "fp8"}, "in_dtype='fp8'"),
        (plain, {"group_size": 32}, "group_size=32"),
        (plain, {"tile_n": 48}, "128 columns"),
        (plain, {"tile_k": 48}, "tile_k=48"),
        (plain, {"tile_m": 24}, "a tile of 24 x 64"),
        (plain, {"out_dtype": "f32"}, "out_dtype='f32' of stage 1"),
        (plain, {"k_batch": 2, "doweight_stage1": True}, "k_batch=2 with"),
        (scaled, {"in_dtype": "bf16"}, "in_dtype='bf16'"),
        (scaled, {"tile_k": 64}, "tile_k=64"),
        (scaled, {"model_dim": 384, "tile_k": 256}, "K=384"),
        (scaled, {"in_dtype": "fp4", "tile_n": 16}, "a tile of 32 x 16"),
        (scaled, {"act": "gelu"}, "act='gelu'"),
        (scaled, {"num_buffers": 5}, "num_buffers=5"),
        (scaled, {"num_buffers": 4}, "2 tiles along K"),
        (scaled, {"cluster_m": 2}, "clusters of 2 x 1"),
        (scaled, {"topk": 9}, "the top 9 of 3"),
    ],
)
def test_sizes_that_do_not_fit(kernel: Any, changed: dict[str, Any], said: str) -> None:
    sizes = Layer.of((4, 256, 128, 3, 2, 32)).sizes(64, 128) | {"doweight_stage1": False}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_moe_gemm1(**(sizes | changed))


@pytest.mark.parametrize(
    ("arch", "place", "dtype", "said"),
    [
        ("gfx950", 0, torch.float16, "the products of experts for gfx1250 on gfx950"),
        ("gfx1250", 0, torch.bfloat16, "out of BFloat16"),
        ("gfx1250", 1, torch.float16, "activations of Float16"),
        ("gfx1250", 2, torch.float8_e4m3fn, "weights of Float8E4M3FN"),
    ],
)
def test_other_targets_and_operands(arch: str, place: int, dtype: torch.dtype, said: str) -> None:
    layer = Layer.of((4, 256, 128, 3, 2, 32))
    tensors = [torch.zeros(8 * 128).half(), *(torch.zeros(3 * 256 * 256, dtype=torch.uint8) for _ in range(4))]
    tensors[place] = tensors[place].to(dtype)
    launch = scaled.compile_moe_gemm1(**layer.sizes(64, 128), doweight_stage1=False, in_dtype="a8w4")
    tables = layer.tables()
    with pytest.raises(ArgumentError, match=said):
        launch.lower(*tensors, *tables, NONE, 4, 128, 256, len(tables[1]), arch=arch).run()
