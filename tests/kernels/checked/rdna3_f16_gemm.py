"""Cases of `kernels.rdna3_f16_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.rdna3_f16_gemm import create_wmma_gemm_module
from tests.kernels.gemm import whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    """For a GPU that is not simulated yet."""
    launcher, *_ = create_wmma_gemm_module(m, n, k, "fp16", "f32")
    a, b = (whole_numbers(rows, k, seed=rows).half() for rows in (m, n))
    given = {"C": torch.full((m, n), torch.nan), "A": a, "BT": b}
    yield Case(launcher, given, gpus=("gfx1100",), rtol=0, atol=0)
