from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from flydsl.simulator import checking
from kernels import moe_gemm_2stage as kernel
from kernels import moe_sorting_kernel as sorting
from kernels.shuffles import pack_int4, shuffle_weight
from tests.kernels.gemm import factors, torch_type, whole_numbers

OUT = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@dataclass
class Layer:
    """Sizes and routing. topk_ids (T, k)."""

    tokens: int
    d: int
    i: int
    experts: int
    topk: int
    tile_m: int
    topk_ids: torch.Tensor

    @classmethod
    def of(cls, shape: tuple[int, ...], topk_ids: Any = None) -> Layer:
        if topk_ids is None:
            random = torch.Generator().manual_seed(sum(shape))
            topk_ids = torch.rand(shape[0], shape[3], generator=random).topk(shape[4]).indices.int()
        return cls(*shape, topk_ids)

    @property
    def weights(self) -> torch.Tensor:
        return factors(self.tokens, self.topk)

    def tables(self, mask: Any = None) -> tuple[Any, ...]:
        ids, weights, experts, valid = sorting.reference(self.topk_ids, self.weights, self.experts, self.tile_m, mask)
        return ids, experts, weights, valid

    def sizes(self, tile_n: int, tile_k: int) -> dict[str, int]:
        return {
            "model_dim": self.d, "inter_dim": self.i, "experts": self.experts, "topk": self.topk,
            "tile_m": self.tile_m, "tile_n": tile_n, "tile_k": tile_k,
        }  # fmt: skip


def operands(dtype: str, rows: int, experts: int, n: int, k: int) -> tuple[Any, ...]:
    """(activations and weights as numbers, the same in memory, their scales)."""
    scaled = dtype in kernel.SCALED
    a, w = (whole_numbers(count, k, seed=count).to(torch_type(dtype)) for count in (rows, experts * n))
    of_a, of_w = (factors(count) if scaled else torch.ones(count) for count in (rows, experts * n))
    numbers = a.float() * of_a[:, None], (w.float() * of_w[:, None]).view(experts, n, k)
    return *numbers, a.view(-1), pack_int4(w) if dtype == "int4" else shuffle_weight(w), of_a, of_w


def stage1(layer: Layer, dtype: str, *, weighted: bool = False, tile_k: int = 128, **options: Any) -> None:
    """Run it checked and compare."""
    x, w, *memory = operands(dtype, layer.tokens, layer.experts, 2 * layer.i, layer.d)
    out_dtype = OUT[options.get("out_dtype", "f16")]
    # Numbers that f16 can hold, so that an element that is not written is one.
    memory[2], x = memory[2] / 64, x / 64 if dtype in kernel.SCALED else x
    out = torch.full((layer.tokens * layer.topk * layer.i,), torch.nan, dtype=out_dtype)
    launch = kernel.compile_moe_gemm1(
        **layer.sizes(64, tile_k), doweight_stage1=weighted, in_dtype=dtype, **options
    )
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.i, layer.d, len(tables[1]))
    expected = kernel.reference1(x, w, layer.topk_ids, layer.weights if weighted else None)
    tolerance = 1e-2 if out_dtype == torch.bfloat16 else 2e-3
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=tolerance, atol=tolerance)


def stage2(layer: Layer, dtype: str, *, weighted: bool = True, tile_n: int = 64, tile_k: int = 128, **options: Any) -> None:
    """Run it checked and compare."""
    rows, out_dtype = layer.tokens * layer.topk, OUT[options.get("out_dtype", "f16")]
    h, w, *memory = operands(dtype, rows, layer.experts, layer.d, layer.i)
    accumulate = options.get("accumulate", True)
    out = torch.zeros(layer.tokens * layer.d, dtype=out_dtype) if accumulate else torch.full(
        (rows * layer.d,), torch.nan, dtype=out_dtype)  # fmt: skip
    launch = kernel.compile_moe_gemm2(
        **layer.sizes(tile_n, tile_k), doweight_stage2=weighted, in_dtype=dtype, **options
    )
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.d, layer.i, len(tables[1]))
    expected = kernel.reference2(
        h.view(layer.tokens, layer.topk, -1), w, layer.topk_ids, layer.weights if weighted else None
    )
    expected = expected.sum(1) if accumulate else expected
    tolerance = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-4}[out_dtype]
    got = out.float().view(expected.shape)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
def test_stage1_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    layer = Layer.of(shape)
    stage1(layer, ("bf16", "fp16")[number % 2], out_dtype=("f16", "bf16")[number // 2], weighted=number == 1)


@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
def test_stage2_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    stage2(Layer.of(shape), ("fp16", "bf16")[number % 2], out_dtype=("f16", "bf16", "f32")[number])
