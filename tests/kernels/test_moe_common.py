from __future__ import annotations

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import moe_common as kernel
from tests.kernels.checks import checking
from tests.kernels.rows import TYPES, assert_close


def rows(shape: tuple[int, int, int], dtype: str) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(TYPES[dtype])


@pytest.mark.checked("all")
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
def test_equals_torch(number: int, shape: tuple[int, int, int]) -> None:
    tokens, topk, columns = shape
    dtype = kernel.DTYPES[number % 3]
    x, y = rows(shape, dtype), torch.full((tokens, columns), torch.nan, dtype=TYPES[dtype])
    launch = kernel.compile_moe_reduction(topk=topk, model_dim=columns, dtype_str=dtype)
    with checking():
        launch(x, y, x, tokens)
    assert_close(y, kernel.reference(x), dtype)


@pytest.mark.parametrize("dtype", kernel.DTYPES)
def test_slots_that_are_masked_may_hold_anything(dtype: str) -> None:
    x, y = rows((6, 4, 72), dtype), torch.full((6, 72), torch.nan, dtype=TYPES[dtype])
    mask = (torch.arange(24).view(6, 4) % 5 % 3 > 0).to(torch.uint8)
    mask[2] = 0
    x[mask == 0] = torch.nan
    x[1, 1:3, 5] = torch.inf
    mask[1] = 1
    x[1, [0, 3]] = 1
    launch = kernel.compile_moe_reduction(topk=4, model_dim=72, dtype_str=dtype, use_mask=True)
    with checking():
        launch(x, y, mask, 6)
    assert_close(y, kernel.reference(x, mask), dtype)
    assert not y[2].any()
    assert y[1, 5] == torch.inf


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="topk=0"):
        kernel.compile_moe_reduction(topk=0, model_dim=64)
    with pytest.raises(ArgumentError, match="'f64'"):
        kernel.compile_moe_reduction(topk=2, model_dim=64, dtype_str="f64")
