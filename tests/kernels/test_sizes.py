"""Launchers refuse tensors of other sizes than they were built for, at the line that calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from kernels.flash_attn_generic import build_flash_attn_func_module
from kernels.moe_gemm_2stage import compile_moe_gemm1
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.rmsnorm_kernel import build_rmsnorm_module
from kernels.sizes import require_elements, require_rows
from kernels.softmax_kernel import build_softmax_module
from tests.kernels.rows import matrix

HERE = Path(__file__).name
Launch = Callable[..., None]


@flyc.jit
def rows_of_4(A: fx.Tensor, m: fx.Int32, apart: fx.Constexpr[bool] = False) -> None:
    require_rows("A", A, m, 4, apart=apart)


@flyc.jit
def two_rows(A: fx.Tensor, columns: fx.Int32) -> None:
    require_rows("A", A, 2, columns)


@flyc.jit
def eight(A: fx.Tensor, or_more: fx.Constexpr[bool] = False, bits: fx.Constexpr[int] = 0) -> None:
    require_elements("A", A, 8, or_more=or_more, bits=bits)


def of(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("launch", "arguments"),
    [
        (rows_of_4, (of(3, 4), 3)), (rows_of_4, (of(5, 4), 3)), (rows_of_4, (of(12), 3)),
        (rows_of_4, (of(3, 2, 2), 3)), (rows_of_4, (of(1, 3, 4), 3)), (rows_of_4, (of(0, 4), 0)),
        (rows_of_4, (of(3, 9)[:, :4], 3, True)), (rows_of_4, (of(1, 9)[:, :4], 1)),
        (two_rows, (of(8), 4)), (two_rows, (of(0), 0)), (two_rows, (of(2, 4), 4)),
        (eight, (of(8),)), (eight, (of(2, 4),)), (eight, (of(9), True)), (eight, (of(4, dtype=torch.uint8), False, 4)),
    ],
)  # fmt: skip
def test_what_fits_passes(launch: Launch, arguments: tuple[Any, ...]) -> None:
    launch(*arguments)


@pytest.mark.parametrize(
    ("launch", "arguments", "said"),
    [
        (rows_of_4, (of(3, 4), 4), r"A of \(3, 4\): 4 elements a row here, and 4 rows or more"),
        (rows_of_4, (of(3, 8), 3), r"A of \(3, 8\)"),
        (rows_of_4, (of(14), 3), r"A of \(14,\)"),
        (rows_of_4, (of(3, 9)[:, :4], 3), "one behind the other"),
        (rows_of_4, (of(4, 3).T, 3), "one behind the other"),
        (rows_of_4, (of(3, 8), 3, True), r"A of \(3, 8\)"),
        (rows_of_4, (of(12), 3, True), "A of one dimension"),
        (two_rows, (of(8), 3), r"A of \(8,\): 3 elements a row here, and 2 rows"),
        (eight, (of(9),), r"A of \(9,\): 8 elements here"),
        (eight, (of(7), True), "8 elements or more"),
        (eight, (of(16)[::2],), "one behind the other"),
        (eight, (of(8, dtype=torch.uint8), False, 4), "4 elements here"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(launch: Launch, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as raised:
        launch(*arguments)
    assert raised.value.at is not None
    assert raised.value.at.file.endswith(HERE)


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
