from __future__ import annotations

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import softmax_kernel as kernel
from tests.kernels.checks import checking
from tests.kernels.rows import around, assert_close, matrix, odd_rows, strided

EVERY_DTYPE = pytest.mark.parametrize("dtype", kernel.DTYPES)


@pytest.mark.checked("all")
@EVERY_DTYPE
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(5)
def test_equals_torch(shape: tuple[int, int], dtype: str) -> None:
    m, n = shape
    a, c = matrix(m, n, dtype, scale=2), torch.full((m, n), torch.nan, dtype=matrix(1, 1, dtype).dtype)
    with checking():
        kernel.build_softmax_module(m, n, dtype)(a, c, m)
    assert_close(c, kernel.reference(a), dtype)


@EVERY_DTYPE
@pytest.mark.parametrize("n", [100, 517])
@pytest.mark.diagonal(2)
def test_rows_of_every_kind_and_any_stride(n: int, dtype: str) -> None:
    a = strided(odd_rows(n, dtype), 3)
    c = strided(torch.zeros(a.shape, dtype=a.dtype), 5)
    with checking():
        kernel.build_softmax_module(7, n, dtype)(a, c, 7)
    assert_close(c, kernel.reference(a), dtype)
    assert around(c).isnan().all()


def test_rows_too_long_for_registers() -> None:
    a = matrix(2, 131_071, "bf16", scale=2)
    c = torch.zeros_like(a)
    kernel.build_softmax_module(2, 131_071, "bf16")(a, c, 2)
    torch.testing.assert_close(c, kernel.reference(a), rtol=1e-2, atol=1e-7)


def test_in_place_and_only_the_rows_asked_for() -> None:
    a = matrix(6, 300, "f32")
    before = a.clone()
    kernel.build_softmax_module(6, 300)(a, a, 5)
    assert_close(a[:5], kernel.reference(before[:5]), "f32")
    assert torch.equal(a[5], before[5])


@pytest.mark.slow
def test_threads_chosen_by_measurement() -> None:
    a = matrix(8, 1000, "f16")
    c = torch.zeros_like(a)
    kernel.softmax(a, c, 1000)
    assert_close(c, kernel.reference(a), "f16")


@pytest.mark.parametrize(
    ("n", "dtype", "said"), [(0, "f32", "rows of 0"), (131_073, "f32", "1 to 131072"), (8, "f64", "'f64'")]
)
def test_wrong_arguments(n: int, dtype: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.build_softmax_module(1, n, dtype)


def test_columns_must_lie_side_by_side() -> None:
    a = torch.zeros(8, 8).T
    with pytest.raises(ArgumentError, match="side by side"):
        kernel.build_softmax_module(8, 8)(a, torch.zeros(8, 8)[:, ::2], 8)
