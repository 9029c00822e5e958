"""Launchers that choose their configuration by measurement, at one small shape each: `make sweep`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels import hgemm_splitk, small_m_hgemm
from tests.kernels.gemm import whole_numbers


@pytest.mark.parametrize("kernel", [hgemm_splitk.hgemm, small_m_hgemm.small_m_hgemm])
@pytest.mark.parametrize("shape", small_m_hgemm.SHAPES, ids=str)
def test_hgemm(shape: tuple[int, int, int], kernel: Any) -> None:
    m, n, k = shape
    a, b = (whole_numbers(rows, k).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16)
    kernel(c.view(-1), a.view(-1), b.view(-1), m, n, k, "f16")
    assert torch.equal(c.float(), hgemm_splitk.reference(a, b))
