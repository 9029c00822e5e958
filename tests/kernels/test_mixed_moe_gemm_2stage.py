from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
from flydsl.errors import ArgumentError
from kernels import mixed_moe_gemm_2stage as kernel
from kernels.moe_gemm_2stage import default_tile, reference1, reference2
from kernels.shuffles import shuffle_scale, shuffle_weight
from tests.kernels.cases.moe import mixed_gemm
from tests.kernels.checks import checking
from tests.kernels.gemm import FP4, packed_fp4, powers, whole_numbers
from tests.kernels.moe import OUT, TOLERANCES, Layer

NONE = torch.zeros(1)


@pytest.fixture(autouse=True)
def _on_cdna4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")


def random_codes(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(sum(shape)))


def activations(dtype: str, rows: int, k: int, padding: int = 0) -> tuple[Any, ...]:
    """(numbers, the same in memory, E8M0 scales (rows, K / 32)). padding: columns that are 0, in memory NaN."""
    scales = (random_codes(5, rows, k // 32) + 121).to(torch.uint8)
    found, numbers = random_codes(16, rows, k), whole_numbers(rows, k)
    numbers = (FP4[found] if dtype == "fp4" else numbers) * powers(scales)
    data = packed_fp4(found) if dtype == "fp4" else (numbers / powers(scales)).to(torch.float8_e4m3fn)
    if padding:
        numbers[:, -padding:], scales[:, -padding // 32 :] = 0, 255
        data.view(torch.uint8)[:, -padding * data.shape[1] // k :] = 0x7F
    return numbers, data.view(-1), scales


def weights(
    experts: int, rows: int, k: int, gate_mode: Any = None, padding: int = 0, dtype: str = "fp4"
) -> tuple[Any, ...]:
    """(numbers, the same in memory, scales in memory). gate_mode: of stage 1. padding: columns whose scales are NaN."""
    found, scales = (
        random_codes(16, experts * rows, k),
        (random_codes(3, experts * rows, k // 32) + 126).to(torch.uint8),
    )
    numbers = (FP4[found] * powers(scales)).view(experts, rows, k)
    data = packed_fp4(found) if dtype == "fp4" else FP4[found].to(torch.float8_e4m3fn)
    if padding:
        scales[:, -padding // 32 :] = 255
    if gate_mode:
        scales = kernel.interleaved_rows(scales, experts)
    if gate_mode is kernel.GateMode.INTERLEAVE:
        data = kernel.interleaved_rows(data, experts)
    return numbers, shuffle_weight(data), shuffle_scale(scales)


def swiglu(x: Any, w: Any, topk_ids: Any, limit: float, bias: Any) -> Any:
    both = torch.einsum("td,tknd->tkn", x, w[topk_ids.long()]) + bias.view(len(w), -1)[topk_ids.long()]
    gate, up = both.chunk(2, -1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


class Stage1:
    """A launch of stage 1, checked. result: what it wrote; expected: by torch, in f32."""

    def __init__(self, layer: Layer, a_dtype: str, tile: tuple[int, int] = (64, 256), **options: Any) -> None:
        mode = options.get("gate_mode", kernel.GateMode.SEPARATED)
        padding = options.get("model_dim_pad", 0)
        x, data, scales = activations(a_dtype, layer.tokens, layer.d, padding)
        w, *of_w = weights(layer.experts, 2 * layer.i, layer.d, mode, padding, options.get("b_dtype", "fp4"))
        out_dtype, rows = options.get("out_dtype", "f16"), layer.rows
        bias = whole_numbers(layer.experts, 2 * layer.i, seed=5).float()
        tables = layer.tables()
        self.scales = torch.full((-(-len(tables[0]) // 32) * layer.i,), 77, dtype=torch.uint8)
        in_parts = options.get("k_batch", 1) > 1
        if out_dtype in OUT:
            self.result = layer.result(layer.i * (1 + in_parts), OUT[out_dtype])
            self.result = self.result.zero_() if in_parts else self.result
        else:
            self.result = torch.full((rows * layer.i // (2 if out_dtype == "fp4" else 1),), 77, dtype=torch.uint8)
        launch = kernel.compile_mixed_moe_gemm1(**layer.sizes(*tile), doweight_stage1=False, a_dtype=a_dtype, **options)
        with checking():
            launch(
                self.result, data, of_w[0], kernel.sorted_scales(scales, tables[0]), of_w[1], *tables, bias.view(-1),
                self.scales, layer.tokens, 2 * layer.i, layer.d, len(tables[1]),
            )  # fmt: skip
        if options.get("a_scale_one"):
            x = x / powers(scales)
        if in_parts:
            self.expected = torch.einsum("td,tknd->tkn", x, w[layer.topk_ids.long()])
        elif options.get("act") == "swiglu":
            self.expected = swiglu(x, w, layer.topk_ids, options.get("swiglu_limit", 7.0), bias)
        else:
            self.expected = reference1(x, w, layer.topk_ids)

    def check(self, padding: int = 0) -> None:
        """padding: columns of the result that may be anything."""
        tolerance, columns = TOLERANCES[self.result.dtype], self.expected.shape[-1] - padding
        got, expected = (x.view(self.expected.shape)[..., :columns].float() for x in (self.result, self.expected))
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


def stage2(layer: Layer, a_dtype: str, tile: tuple[int, int] = (128, 256), **options: Any) -> None:
    """Run it checked and compare."""
    padding = options.get("inter_dim_pad", 0)
    h, data, scales = activations(a_dtype, layer.rows, layer.i, padding)
    w, *of_w = weights(layer.experts, layer.d, layer.i, padding=padding, dtype=options.get("b_dtype", "fp4"))
    accumulate = options.get("accumulate", True)
    unit = options.get("sort_block_m", 0) or layer.tile_m
    tables = replace(layer, tile_m=unit).tables()
    out = layer.result(layer.d, OUT[options.get("out_dtype", "f16")], accumulate)
    bias = whole_numbers(layer.experts, layer.d, seed=5).float()
    launch = kernel.compile_mixed_moe_gemm2(**layer.sizes(*tile), doweight_stage2=True, a_dtype=a_dtype, **options)
    with checking():
        launch(
            out, data, of_w[0], kernel.sorted_scales(scales, tables[0], layer.topk), of_w[1], *tables, bias.view(-1),
            layer.tokens, layer.d, layer.i, len(tables[1]),
        )  # fmt: skip
    rows = reference2(h.view(layer.tokens, layer.topk, -1), w, layer.topk_ids)
    if options.get("enable_bias"):
        rows = rows + bias[layer.topk_ids.long()]
    expected = rows * layer.weights[..., None]
    expected = expected.sum(1) if accumulate else expected
    columns = layer.d - options.get("model_dim_pad", 0)
    tolerance, got = TOLERANCES[out.dtype], out.float().view(expected.shape)[..., :columns]
    expected = expected[..., :columns]
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


@pytest.mark.checked
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage1_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    options: dict[str, Any] = ({}, {"use_async_copy": True}, {"gate_mode": kernel.GateMode.INTERLEAVE})[number]
    Stage1(Layer.of(shape), ("fp4", "fp8", "fp4")[number], out_dtype=("f16", "bf16", "bf16")[number], **options).check()


@pytest.mark.checked
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage2_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    options: dict[str, Any] = ({}, {"accumulate": False, "enable_bias": True}, {"persist_m": 1})[number]
    stage2(Layer.of(shape), ("fp8", "fp4", "fp8")[number], out_dtype=("f16", "bf16", "f32")[number], **options)


def test_swiglu_with_bias() -> None:
    layer = Layer.of((9, 256, 128, 3, 2, 32))
    Stage1(layer, "fp4", tile=(64, 128), act="swiglu", enable_bias=True, swiglu_limit=3.0).check()


@pytest.mark.parametrize(
    ("out_dtype", "options"),
    [
        pytest.param("f32", {"k_batch": 2, "gate_mode": kernel.GateMode.INTERLEAVE}, marks=pytest.mark.sweep),
        ("bf16", {"k_batch": 3, "use_async_copy": True, "gate_mode": kernel.GateMode.MOCK_GATE_ONLY}),
    ],
)
def test_workgroups_that_share_k(out_dtype: str, options: dict[str, Any]) -> None:
    """One tile each, and two of 128, whose scales share words; the sums of gate and up are not yet activated."""
    parts = options["k_batch"]
    layer = Layer.of((33, 256 * parts, 256, 3, 2, 32))
    Stage1(layer, "fp4", tile=(64, 256 if parts == 2 else 128), out_dtype=out_dtype, **options).check()


def test_activations_without_scales() -> None:
    Stage1(Layer.of((9, 256, 128, 3, 2, 32)), "fp8", a_scale_one=True, out_dtype="bf16").check()


@pytest.mark.parametrize("out_dtype", ["fp4", pytest.param("fp8", marks=pytest.mark.sweep)])
def test_result_with_scales_is_what_stage2_reads(out_dtype: str) -> None:
    """Both stages, in terms of what torch makes of the rounded numbers."""
    layer = Layer.of((21, 256, 256, 4, 2, 32))
    first = Stage1(layer, "fp4", tile=(256, 256), out_dtype=out_dtype)
    w, *of_w = weights(layer.experts, layer.d, layer.i)
    tables, y = layer.tables(), layer.result(layer.d, torch.float32, accumulate=True)
    launch = kernel.compile_mixed_moe_gemm2(
        **layer.sizes(128, 256), doweight_stage2=True, a_dtype=out_dtype, out_dtype="f32"
    )
    with checking():
        launch(
            y, first.result, of_w[0], first.scales, of_w[1], *tables, NONE, layer.tokens, layer.d, layer.i,
            len(tables[1]),
        )  # fmt: skip
    expected = reference2(first.expected, w, layer.topk_ids, layer.weights).sum(1)
    error = (y.view(expected.shape) - expected).norm() / expected.norm()
    assert error < (0.15 if out_dtype == "fp4" else 0.04)


@pytest.mark.parametrize("tile_m", [16, 32])
def test_weights_of_fp8(tile_m: int) -> None:
    layer = Layer.of((9, 256, 256, 3, 2, tile_m))
    Stage1(layer, "fp8", tile=(64, 128), b_dtype="fp8").check()
    stage2(layer, "fp8", b_dtype="fp8", tile=(128, 128))


def test_blocks_of_16_rows() -> None:
    """Scales of two blocks share a word. Several blocks of an expert, and one workgroup after the other."""
    layer = Layer.of((40, 256, 256, 3, 2, 16))
    Stage1(layer, "fp4", tile=(64, 128), use_async_copy=True, persist_m=2).check()
    stage2(layer, "fp8", persist_m=3)


def test_k_that_is_no_multiple_of_256() -> None:
    """Words of scales are half empty at the end."""
    stage2(Layer.of((9, 256, 384, 3, 2, 16)), "fp4", tile=(128, 128))
    Stage1(Layer.of((9, 384, 384, 3, 2, 32)), "fp8", tile=(64, 128)).check()


@pytest.mark.parametrize(("a_dtype", "b_dtype", "out_dtype"), [("fp4", "fp4", "fp4"), ("fp8", "fp8", "bf16")])
def test_default_tiles_of_both_stages(a_dtype: str, b_dtype: str, out_dtype: str) -> None:
    """Sizes between and beyond those of the tables; the stages share the blocks of rows."""
    for tokens, (d, i, experts, topk) in product(
        (1, 33, 700, 60000), ((2944, 384, 5, 4), (7168, 2048, 256, 8), (256, 128, 8, 2))
    ):
        sizes = {"model_dim": d, "inter_dim": i, "experts": experts, "topk": topk, "b_dtype": b_dtype}
        one = sizes | {"doweight_stage1": False, "a_dtype": a_dtype, "out_dtype": out_dtype}
        first = default_tile(kernel.compile_mixed_moe_gemm1, tokens, **one)
        kernel.compile_mixed_moe_gemm1(**one, **first)
        two = sizes | {"doweight_stage2": True, "a_dtype": a_dtype}
        second = default_tile(kernel.compile_mixed_moe_gemm2, tokens, first["tile_m"], **two)
        kernel.compile_mixed_moe_gemm2(**two, **second)
        assert second["tile_m"] == first["tile_m"]


def test_a_launch_without_a_tile() -> None:
    layer = Layer.of((3, 256, 128, 3, 2, 16))
    x, data, scales = activations("fp8", layer.tokens, layer.d)
    w, *of_w = weights(layer.experts, 2 * layer.i, layer.d, kernel.GateMode.SEPARATED)
    plan = kernel.plan_of(
        "fp8_fp4", layer.d, (16, 64, 256), columns=layer.i, experts=3, topk=2, out_dtype="bf16", gated=True,
        weighted=False,
    )  # fmt: skip
    h, tables = layer.result(layer.i, torch.bfloat16), layer.tables()
    given = kernel.sorted_scales(scales, tables[0]), of_w[1], *tables, NONE, NONE, layer.tokens, plan
    kernel.mixed_moe_gemm(h, data, of_w[0], *given)
    expected = reference1(x, w, layer.topk_ids)
    torch.testing.assert_close(
        h.float().view(expected.shape), expected, rtol=2e-2, atol=2e-2 * expected.abs().max().item()
    )


def test_all_tokens_choose_one_expert() -> None:
    layer = Layer.of((40, 256, 256, 5, 1, 32), torch.full((40, 1), 3, dtype=torch.int32))
    Stage1(layer, "fp4").check()
    stage2(layer, "fp4", persist_m=2)


@pytest.mark.parametrize("byte", [0, 254, 255])
def test_scales_of_nothing_infinity_and_nan(byte: int) -> None:
    """The smallest, the largest and NaN for one token: the others keep their numbers."""
    layer = Layer.of((3, 256, 128, 2, 1, 32), torch.tensor([[1], [0], [1]], dtype=torch.int32))
    x, data, scales = activations("fp8", layer.tokens, layer.d)
    w, *of_w = weights(layer.experts, 2 * layer.i, layer.d, kernel.GateMode.SEPARATED)
    scales[1], tables, h = byte, layer.tables(), layer.result(layer.i, torch.bfloat16)
    launch = kernel.compile_mixed_moe_gemm1(**layer.sizes(64, 256), doweight_stage1=False, out_dtype="bf16")
    with checking():
        launch(h, data, of_w[0], kernel.sorted_scales(scales, tables[0]), of_w[1], *tables, NONE, NONE, 3, 2 * layer.i,
               layer.d, len(tables[1]))  # fmt: skip
    got, expected = h.float().view(3, -1), reference1(x, w, layer.topk_ids)[:, 0]
    torch.testing.assert_close(got[::2], expected[::2], rtol=2e-2, atol=2e-2 * expected.abs().max().item())
    if byte == 0:
        assert (got[1] == 0).all()
    else:
        assert (got[1].isnan().all() if byte == 255 else ~got[1][expected[1] != 0].isfinite()).any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"a_dtype": "bf16"}, "a_dtype='bf16'"),
        ({"tile_m": 48}, "tile_m=48"),
        ({"model_dim": 384}, "K=384"),
        ({"b_dtype": "fp8", "a_dtype": "fp4"}, "b_dtype='fp8'"),
        ({"b_dtype": "fp8", "model_dim_pad": 32}, "32 columns of padding"),
        ({"act": "gelu"}, "act='gelu'"),
        ({"out_dtype": "f32"}, "out_dtype='f32'"),
        ({"persist_m": 0}, "persist_m=0"),
        ({"k_batch": 0}, "k_batch=0"),
        ({"k_batch": 3}, "k_batch=3 of 1 tiles"),
        ({"model_dim": 768, "tile_k": 128, "k_batch": 2}, "k_batch=2 of 6 tiles"),
        ({"model_dim": 512, "k_batch": 2, "enable_bias": True}, "enable_bias"),
        ({"model_dim": 512, "k_batch": 2, "out_dtype": "fp4"}, "with k_batch=2"),
        ({"gate_mode": kernel.GateMode.MOCK_GATE_ONLY}, "MOCK_GATE_ONLY"),
        ({"k_wave": 3}, "k_wave=3"),
        ({"b_nt": 1}, "b_nt=1"),
        ({"xcd_swizzle": -1}, "xcd_swizzle=-1"),
        ({"model_dim": 1024, "k_wave": 2, "out_dtype": "fp4"}, "k_wave=2 with k_batch=1 and out_dtype='fp4'"),
        ({"model_dim": 1024, "k_wave": 2, "k_batch": 2}, "k_wave=2 with k_batch=2"),
        ({"model_dim": 512, "k_wave": 4}, "K=512"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], said: str) -> None:
    sizes = Layer.of((4, 256, 128, 4, 2, 32)).sizes(64, 256)
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_mixed_moe_gemm1(**{**sizes, "doweight_stage1": False, **options})


@pytest.mark.parametrize(
    ("a_dtype", "tile", "options"),
    [pytest.param("fp8", (64, 256), {}, marks=pytest.mark.sweep), ("fp4", (64, 128), {"use_async_copy": True})],
)
def test_padding_of_stage1(a_dtype: str, tile: tuple[int, int], options: dict[str, Any]) -> None:
    """What is no number in the last columns does not count; of the result's the last tiles are not written."""
    layer = Layer.of((5, 512, 256, 3, 2, 32))
    stage = Stage1(layer, a_dtype, tile, out_dtype="bf16", inter_dim_pad=96, model_dim_pad=160, **options)
    stage.check(96)
    assert stage.result.view(layer.rows, -1)[:, -64:].isnan().all()


def test_padding_of_stage2() -> None:
    stage2(Layer.of((5, 256, 512, 3, 2, 32)), "fp8", inter_dim_pad=224, model_dim_pad=32)


@pytest.mark.parametrize(
    ("a_dtype", "tile", "k", "options", "padding"),
    [
        ("fp4", (32, 256), 1024, {"k_wave": 2, "act": "swiglu", "enable_bias": True, "persist_m": 2}, 0),
        ("fp8", (16, 256), 2048, {"k_wave": 4, "gate_mode": kernel.GateMode.INTERLEAVE, "use_async_copy": True}, 0),
        ("fp4", (16, 256), 1024, {"k_wave": 4, "model_dim_pad": 416, "inter_dim_pad": 32}, 32),
        pytest.param("fp8", (64, 512), 1024, {"k_wave": 2}, 0, marks=pytest.mark.sweep),
    ],
)
def test_waves_that_share_k(a_dtype: str, tile: tuple[int, int], k: int, options: dict[str, Any], padding: int) -> None:
    Stage1(Layer.of((37, k, 128, 3, 2, 32)), a_dtype, tile, out_dtype="bf16", **options).check(padding)


def test_orders_of_tiles() -> None:
    """Nine tiles, one more than dies, of three blocks of rows: a die has a rest, and a group of rows, too."""
    Stage1(Layer.of((70, 256, 384, 2, 1, 32)), "fp4", (128, 256), xcd_swizzle=2).check()
    stage2(Layer.of((70, 384, 256, 2, 1, 32)), "fp4", (128, 256), xcd_swizzle=1, persist_m=2)


@pytest.mark.parametrize(("b_nt", "marked"), [(0, False), (2, True)])
def test_weights_that_do_not_stay_in_caches(b_nt: int, marked: bool) -> None:
    launch, arguments = mixed_gemm(2, "fp4", (32, 128, 256), (256, 256, 2), {"b_nt": b_nt})
    loads = [line for line in flyc.compile(launch, *arguments).isa.splitlines() if "buffer_load_dwordx4" in line]
    assert any(line.endswith(" nt") for line in loads) == marked
    assert not all(line.endswith(" nt") for line in loads)  # activations


def test_blocks_of_rows_that_share_an_entry_of_the_tables() -> None:
    stage2(Layer.of((40, 256, 256, 3, 2, 32)), "fp4", sort_block_m=64)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sort_block_m": 48}, "sort_block_m=48"),
        ({"inter_dim_pad": 16}, "padding of 16 in 128"),
        ({"model_dim_pad": 256}, "padding of 256 in 256"),
    ],
)
def test_wrong_arguments_of_stage2(options: dict[str, Any], said: str) -> None:
    sizes = Layer.of((4, 256, 128, 4, 2, 32)).sizes(128, 128)
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_mixed_moe_gemm2(**{**sizes, "doweight_stage2": True, **options})


@pytest.mark.parametrize("waves", [1, 2, 3, 4])
def test_no_more_workgroups_share_a_compute_unit_than_are_asked_for(waves: int) -> None:
    launch, arguments = mixed_gemm(1, "fp4", (32, 64, 256), (256, 256, 2), {"waves_per_eu": waves})
    compiled = flyc.compile(launch, *arguments)
    assert kernel.LDS_BYTES // compiled.kernels[0].resources.lds_bytes == waves
