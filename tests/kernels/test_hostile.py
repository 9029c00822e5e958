"""Tensors of other types and orders than a kernel's are one error, never another result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels.blockscale_preshuffle_gemm import compile_blockscale_preshuffle_gemm
from kernels.fp8_gemm_4wave import compile_fp8_gemm_4w
from kernels.fused_rope_cache_kernel import build_fused_rope_cache_module
from kernels.hgemm_splitk import compile_hgemm_kernel, hgemm_splitk_
from kernels.moe_common import compile_moe_reduction
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.preshuffle_gemm_v2 import compile_preshuffle_gemm_v2
from kernels.quant import build_block_quant_module, build_quant_module
from kernels.rmsnorm_kernel import build_rmsnorm_dynamicquant_module, build_rmsnorm_module
from kernels.softmax_kernel import build_softmax_module
from kernels.topk_gating_softmax_kernel import build_topk_gating_softmax_module
from tests.kernels import test_fused_rope_cache_kernel

HALF, FP8, OTHER = torch.bfloat16, torch.float8_e4m3fnuz, torch.float8_e4m3fn
SIZES = {"K": 256, "tile_m": 32, "tile_n": 64, "tile_k": 128}
ONE = torch.ones(1)


def zeros(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def product(**changed: Any) -> None:
    given = {"C": zeros(64, dtype=HALF), "A": zeros(256, dtype=FP8), "B": zeros(64 * 256, dtype=FP8)}
    given |= {"scale_a": ONE, "scale_b": zeros(64), "bias": zeros(64, dtype=HALF)} | changed
    compile_preshuffle_gemm_a8(**SIZES, out_dtype="bf16", epilogue="bias")(*given.values(), 1, 64)


def layout_product(**changed: Any) -> None:
    given = {"C": zeros(64, dtype=HALF), "A": zeros(256, dtype=FP8), "B": zeros(64 * 256, dtype=FP8)}
    given |= {"scale_a": ONE, "scale_b": zeros(64)} | changed
    compile_preshuffle_gemm_v2(N=64, **SIZES)(*given.values(), 1, 64)


def block_product(**changed: Any) -> None:
    given = {"C": zeros(64, dtype=HALF), "A": zeros(256, dtype=FP8), "B": zeros(64 * 256, dtype=FP8)}
    given |= {"scale_a": zeros(2), "scale_b": zeros(2)} | changed
    compile_blockscale_preshuffle_gemm(N=64, **SIZES)(*given.values(), 1, 64)


def row_product(**changed: Any) -> None:
    given = {"A": zeros(256, dtype=FP8), "B": zeros(64 * 256, dtype=FP8), "C": zeros(64, dtype=HALF)}
    given |= {"A_scale": ONE, "B_scale": zeros(64)} | changed
    compile_fp8_gemm_4w(K=256, BLOCK_M=64, BLOCK_N=64)(*given.values(), 1, 64)


def half_product(**changed: Any) -> None:
    given = {"C": zeros(1, 128), "A": zeros(1, 256), "B": zeros(128, 256), "bias": zeros(128)}
    half = {name: tensor.to(HALF) for name, tensor in given.items()} | changed
    compile_hgemm_kernel("bf16", 128, 256, HAS_BIAS=True)(*half.values(), 1, ONE, ONE)


def rows(output: Any = torch.int8, scales: Any = torch.float32, quant: str = "i8") -> None:
    build_quant_module(64, "f32", quant)[0](zeros(3, 64), zeros(3, 64, dtype=output), zeros(3, dtype=scales), 3)


def groups(output: Any = torch.uint8, scales: Any = torch.uint8) -> None:
    launch = build_block_quant_module(64, "bf16", "mxfp8")
    launch(zeros(3, 64, dtype=HALF), zeros(3, 64, dtype=output), zeros(3, 2, dtype=scales), 3)


def norm(output: Any) -> None:
    launch = build_rmsnorm_dynamicquant_module(3, 64, "f32")
    launch(zeros(3, 64), zeros(64), zeros(3, 64, dtype=output), zeros(3), 3)


def softmax(a: Any = torch.float32, c: Any = torch.float32) -> None:
    build_softmax_module(3, 64, "f32")(zeros(3, 64, dtype=a), zeros(3, 64, dtype=c), 3)


def weighted(output: Any = torch.float32, gamma: Any = torch.float32) -> None:
    build_rmsnorm_module(3, 64, "f32")(zeros(3, 64), zeros(64, dtype=gamma), zeros(3, 64, dtype=output), 3)


def summed(mask: Any) -> None:
    launch = compile_moe_reduction(topk=2, model_dim=64, dtype_str="f32", use_mask=True)
    launch(zeros(3, 2, 64), zeros(3, 64), zeros(3, 2, dtype=mask), 3)


def gating(weights: Any = torch.float32, indices: Any = torch.int32) -> None:
    numbers = [zeros(5, 2, dtype=dtype) for dtype in (weights, indices, torch.int32)]
    build_topk_gating_softmax_module(8, 2, "f32")(zeros(5, 8), *numbers, 5)


def rope(name: str, dtype: Any) -> None:
    given = test_fused_rope_cache_kernel.operands((3, 2, 1, 64), "bf16", True, False, True, False)
    given[name] = given[name].to(dtype)
    build_fused_rope_cache_module(64, num_q_heads=2)(*given.values())


@pytest.mark.parametrize(
    ("launch", "changed", "said"),
    [
        (product, {"C": zeros(64)}, "C of Float32"),
        (product, {"A": zeros(256, dtype=OTHER)}, "A of Float8E4M3FN"),
        (product, {"A": zeros(256, 1, dtype=FP8).T.expand(2, 256).T}, "A of !fly"),
        (product, {"scale_a": ONE.half()}, "scale_a of Float16"),
        (product, {"bias": zeros(64)}, "bias of Float32"),
        (layout_product, {"C": zeros(64).half()}, "C of Float16"),
        (layout_product, {"scale_b": zeros(64).double()}, "scale_b of Float64"),
        (block_product, {"scale_b": zeros(2).half()}, "scale_b of Float16"),
        (block_product, {"C": zeros(64)}, "C of Float32"),
        (row_product, {"C": zeros(64).half()}, "C of Float16"),
        (row_product, {"A_scale": ONE.half()}, "A_scale of Float16"),
        (half_product, {"A": zeros(256, 3, dtype=HALF).T}, "contiguous"),
        (half_product, {"bias": zeros(128)}, "bias of Float32"),
        (rows, {"output": torch.float32}, "Output of Float32"),
        (rows, {"output": OTHER, "quant": "fp8"}, "Output of Float8E4M3FN"),
        (rows, {"scales": torch.float16}, "the scales of Float16"),
        (groups, {"scales": torch.float32}, "the scales of Float32"),
        (groups, {"output": HALF}, "Output of BFloat16"),
        (norm, {"output": torch.float32}, "Output of Float32"),
        (softmax, {"a": torch.float16}, "A of Float16"),
        (softmax, {"c": torch.int8}, "C of Int8"),
        (weighted, {"output": torch.int8}, "Output of Int8"),
        (weighted, {"gamma": torch.int32}, "Gamma of Int32"),
        (summed, {"mask": torch.float32}, "valid_mask of Float32"),
        (gating, {"weights": torch.float16}, "weights of Float16"),
        (gating, {"indices": torch.int64}, "indices of Int64"),
        (rope, {"name": "q", "dtype": torch.float16}, "Q of Float16"),
        (rope, {"name": "keys", "dtype": torch.float32}, "KeyCache of Float32"),
    ],
)
def test_other_tensors(launch: Callable[..., None], changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        launch(**changed)


@pytest.mark.parametrize(
    "build",
    [lambda: build_softmax_module(3, 32.5), lambda: build_rmsnorm_dynamicquant_module(3, 64, "f32", "fp4"),
     lambda: build_topk_gating_softmax_module(3, 1), lambda: compile_moe_reduction(topk=0, model_dim=64),
     lambda: build_fused_rope_cache_module(96)],
)  # fmt: skip
def test_errors_of_builders_are_at_the_line_that_calls_them(build: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError) as raised:
        build()
    assert raised.value.at is not None
    assert raised.value.at.file == __file__


@pytest.mark.parametrize(
    "a", [zeros(256, 4).T.half(), zeros(256).half(), zeros(2, 4, 256).half()], ids=["columns", "row", "cube"]
)
def test_operands_that_are_no_matrices(a: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=r"with strides|two dimensions"):
        hgemm_splitk_(zeros(4, 64).half(), a, zeros(64, 256).half())
