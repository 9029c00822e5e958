"""Row-wise kernels at long rows, many rows and every type: `make sweep`."""

from __future__ import annotations

import pytest
import torch

from kernels import softmax_kernel, vector_add
from kernels.norms import Norm, build
from tests.kernels.examples import SCALARS, vectors
from tests.kernels.norms import VARIANTS, check, operands
from tests.kernels.rows import assert_close, matrix

COLUMNS = (1, 63, 64, 65, 511, 2049, 8192, 16_385, 65_536, 65_537, 131_072)


@pytest.mark.parametrize("dtype", softmax_kernel.DTYPES)
@pytest.mark.parametrize("n", COLUMNS)
def test_softmax(n: int, dtype: str) -> None:
    for m in (1, 5):
        a = matrix(m, n, dtype, scale=2)
        c = torch.full_like(a, torch.nan)
        softmax_kernel.build_softmax_module(m, n, dtype)(a, c, m)
        assert_close(c, softmax_kernel.reference(a), dtype)


@pytest.mark.parametrize("dtype", softmax_kernel.DTYPES)
@pytest.mark.parametrize("mean", [False, True], ids=["rmsnorm", "layernorm"])
@pytest.mark.parametrize("n", COLUMNS)
def test_norms(n: int, mean: bool, dtype: str) -> None:
    for residual, smooth, quant in VARIANTS:
        norm = Norm(columns=n, dtype=dtype, mean=mean, residual=residual, smooth=smooth, quant=quant)
        given = operands(norm, 1)
        x = given["Input"].clone()
        build(norm)(*given.values(), 1)
        check(norm, given, x)


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("shape", vector_add.SHAPES, ids=str)
def test_vector_add(shape: tuple[int], stride: int, dtype: torch.dtype) -> None:
    a, b, c = vectors(*shape, dtype, stride)
    vector_add.vector_add(a, b, c)
    assert torch.equal(c, vector_add.reference(a, b))
