"""Launchers refuse tensors of other sizes than they were built for, at the line that calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels.flash_attn_generic import build_flash_attn_func_module
from kernels.moe_gemm_2stage import compile_moe_gemm1
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.rmsnorm_kernel import build_rmsnorm_module
from kernels.softmax_kernel import build_softmax_module
from tests.kernels.rows import matrix


def of(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def softmax(n: int) -> None:
    build_softmax_module(4, 32)(matrix(4, n, "f32"), matrix(4, n, "f32"), 4)


def norm(n: int) -> None:
    build_rmsnorm_module(4, 32, "f32")(matrix(4, 32, "f32"), of(n), matrix(4, 32, "f32"), 4)


def product(k: int) -> None:
    half = torch.bfloat16
    launch = compile_preshuffle_gemm_a8(K=128, tile_m=16, tile_n=64, tile_k=64, in_dtype="bf16", out_dtype="bf16")
    launch(of(16, 64, dtype=half), of(16, k, dtype=half), of(64 * 128, dtype=half), of(1), of(1), of(1), 16, 64)


def experts(columns: int) -> None:
    half, ids = torch.bfloat16, torch.int32
    launch = compile_moe_gemm1(model_dim=128, inter_dim=64, experts=2, topk=1, tile_m=16, tile_n=64, tile_k=64,
                               doweight_stage1=False, in_dtype="bf16", out_dtype="bf16")  # fmt: skip
    tables = of(16, dtype=ids), of(1, dtype=ids), of(16), of(2, dtype=ids)
    launch(of(1, 1, 64, dtype=half), of(1, columns, dtype=half), of(2 * 128 * 128, dtype=half), of(1), of(1), *tables,
           1, 64, 128, 1)  # fmt: skip


def attention(heads: int) -> None:
    q, kv = of(64 * heads * 64, dtype=torch.float16), of(64 * 64, dtype=torch.float16)
    build_flash_attn_func_module(2, 64, num_kv_heads=1)(q, kv, kv, torch.zeros_like(q), 1, 64)


@pytest.mark.parametrize(
    ("launch", "good", "bad", "said"),
    [(softmax, 32, 64, "A of"), (norm, 32, 33, "Gamma of"), (product, 128, 256, "A of"), (experts, 128, 192, "x of"),
     (attention, 2, 1, "Q of")],
)  # fmt: skip
def test_kernels_of_every_family(launch: Callable[[int], None], good: int, bad: int, said: str) -> None:
    launch(good)
    with pytest.raises(ArgumentError, match=said):
        launch(bad)
