"""What tests of row-wise kernels share: matrices, strides, rows with every kind of number."""

from __future__ import annotations

from typing import Any

import torch

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES = {"f32": 1e-5, "f16": 1e-2, "bf16": 2e-2}


def matrix(m: int, n: int, dtype: str, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    """Normally distributed numbers."""
    random = torch.Generator().manual_seed(seed * 1000 + m + n)
    return (torch.randn(m, n, generator=random) * scale).to(TYPES[dtype])


def strided(tensor: torch.Tensor, extra: int) -> torch.Tensor:
    """The matrix with rows `extra` elements further apart; what lies between is NaN."""
    m, n = tensor.shape
    wide = torch.full((m, n + extra), torch.nan, dtype=tensor.dtype)
    wide[:, :n] = tensor
    return wide[:, :n]


def around(tensor: torch.Tensor) -> torch.Tensor:
    """The elements between the rows of a strided matrix, which nothing may write."""
    m, n = tensor.shape
    return tensor.as_strided((m, tensor.stride(0) - n), tensor.stride(), n)


def odd_rows(n: int, dtype: str) -> torch.Tensor:
    """Rows with a NaN, with infinities, of zeros, of denormals, of large numbers."""
    rows = matrix(7, n, dtype)
    tiny = torch.finfo(TYPES[dtype]).tiny
    rows[0, n // 2] = torch.nan
    rows[1, 0], rows[2, n - 1] = torch.inf, -torch.inf
    rows[3] = 0
    rows[4] = torch.arange(n, dtype=torch.float32).mul(tiny / n).to(rows.dtype)
    rows[5] = -torch.inf
    rows[6] *= torch.finfo(TYPES[dtype]).max / 8
    return rows


def assert_close(got: Any, expected: Any, dtype: str) -> None:
    """Equal within the tolerance for results of a type, NaNs where NaNs are expected."""
    tolerance = TOLERANCES[dtype]
    torch.testing.assert_close(got.float(), expected.float(), rtol=tolerance, atol=tolerance, equal_nan=True)
