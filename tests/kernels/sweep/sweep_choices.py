"""Launchers that choose their configuration by measurement, at one small shape each: `make sweep`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels import fp8_gemm_utils, hgemm_splitk, small_m_hgemm
from tests.kernels.gemm import factors, nans, torch_type, whole_numbers


@pytest.mark.parametrize("kernel", [hgemm_splitk.hgemm, small_m_hgemm.small_m_hgemm])
@pytest.mark.parametrize("shape", small_m_hgemm.SHAPES, ids=str)
def test_hgemm(shape: tuple[int, int, int], kernel: Any) -> None:
    m, n, k = shape
    a, b = (whole_numbers(rows, k).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16)
    kernel(c.view(-1), a.view(-1), b.view(-1), m, n, k, "f16")
    assert torch.equal(c.float(), hgemm_splitk.reference(a, b))


@pytest.mark.parametrize("shape", fp8_gemm_utils.SHAPES, ids=str)
def test_fp8_gemm(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = (whole_numbers(rows, k).to(torch_type("fp8")) for rows in (m, n))
    scales, c = (factors(m), factors(n)), nans(m, n)
    fp8_gemm_utils.fp8_gemm(a.view(-1), b.view(-1), c, *scales, m, n, k, False)
    expected = fp8_gemm_utils.reference(a.float(), b.float(), *scales)
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)
