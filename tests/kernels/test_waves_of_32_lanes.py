"""Kernels where a wave has 32 lanes: vectors, tiles, products, rows of one wave and of several, and lanes that share a
token."""

from __future__ import annotations

import pytest
import torch

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from kernels import softmax_kernel, topk_gating_softmax_kernel, vector_add
from kernels.norms import Norm, build
from tests.kernels import examples, norms
from tests.kernels import test_moe_sorting_kernel as sorting
from tests.kernels.checks import checking
from tests.kernels.rows import assert_close, matrix
from tests.kernels.test_fused_rope_cache_kernel import test_equals_torch as check_rotation
from tests.kernels.test_tiled_copy import copied
from tests.kernels.test_tiled_mma import product, small
from tests.kernels.test_topk_gating_softmax_kernel import test_equals_torch as check_gating


@pytest.fixture(params=["gfx1100", "gfx1201", "gfx1250"], autouse=True)
def arch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ARCH", request.param)
    return str(request.param)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.diagonal(2)
def test_vector_add(dtype: torch.dtype) -> None:
    A, B, C = examples.vectors(1001, dtype)
    with checking():
        vector_add.vector_add(A, B, C)
    assert torch.equal(C, vector_add.reference(A, B))


@pytest.mark.parametrize("bounded", [True, False])
def test_tiled_copy(bounded: bool) -> None:
    A = torch.randn(24, 120)
    with checking():
        assert torch.equal(copied(A, 15, fx.rocdl.BufferCopy128b(), max_size=not bounded), A)


@pytest.mark.checked
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64, 64, 128), (65, 3, 64)], ids=str)
@pytest.mark.diagonal(6)
def test_product(arch: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    """By four waves, with rows and columns that do not fill a tile."""
    m, n, k = shape
    op = fx.rocdl.WMMA(16, 16, 32 if arch == "gfx1250" else 16, fx.Float16 if dtype == torch.float16 else fx.BFloat16)
    A, B, C = small(m, k, dtype=dtype), small(n, k, dtype=dtype, seed=1), torch.full((m, n), torch.nan)
    with checking():
        product(A, B, C, op)
    assert torch.equal(C, A.float() @ B.float().T)


def test_product_of_f32(arch: str) -> None:
    if arch == "gfx1250":
        A, B, C = torch.randn(65, 40), torch.randn(63, 40), torch.full((65, 63), torch.nan)
        product(A, B, C, fx.rocdl.WMMA(16, 16, 4, fx.Float32))
        torch.testing.assert_close(C, A @ B.T)


@pytest.mark.checked
@pytest.mark.parametrize(("n", "dtype"), [(1, "f32"), (100, "f16"), (512, "bf16"), (1999, "f32")])
@pytest.mark.diagonal(4)
def test_softmax(n: int, dtype: str) -> None:
    a, c = matrix(9, n, dtype, scale=2), torch.full((9, n), torch.nan, dtype=matrix(1, 1, dtype).dtype)
    with checking():
        softmax_kernel.build_softmax_module(9, n, dtype)(a, c, 9)
    assert_close(c, softmax_kernel.reference(a), dtype)


@pytest.mark.parametrize(("mean", "n", "quant"), [(True, 200, None), (False, 512, "i8"), (True, 1500, "i8")])
@pytest.mark.diagonal(3)
def test_norm(mean: bool, n: int, quant: str | None) -> None:
    norm = Norm(columns=n, dtype="bf16", mean=mean, residual=True, smooth=False, quant=quant)
    given = norms.operands(norm, 5)
    x = given["Input"].clone()
    with checking():
        build(norm)(*given.values(), 5)
    norms.check(norm, given, x)


@pytest.mark.parametrize("shape", [(3, 1024, 4), (9, 8, 2), (5, 128, 3)], ids=str)
@pytest.mark.diagonal(5)
def test_gating(shape: tuple[int, int, int]) -> None:
    check_gating(topk_gating_softmax_kernel.DTYPES.index("f32"), shape, True)


@pytest.mark.parametrize("head_dim", [64, 256])
@pytest.mark.diagonal(4)
def test_rotation(head_dim: int) -> None:
    check_rotation(0, (3, 4, 2, head_dim), (True, False, True, False))


def test_sorting_is_right_or_refused(arch: str) -> None:
    sorting.check(*sorting.routing(9, 33, 4), 33, 16)
    with pytest.raises(ArgumentError, match=f"sorting of many tokens for {arch}, whose waves have 32 lanes"):
        sorting.check(*sorting.routing(200, 33, 4), 33, 16)
