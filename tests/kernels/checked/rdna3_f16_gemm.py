"""Cases of `kernels.rdna3_f16_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.rdna3_f16_gemm import create_wmma_gemm_module, reference
from tests.kernels.gemm import whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    launcher, *_ = create_wmma_gemm_module(m, n, k, "fp16", "f32")
    a, b = (whole_numbers(rows, k, seed=rows).half() for rows in (m, n))
    given = {"C": torch.full((m, n), torch.nan), "A": a, "BT": b}
    yield Case(launcher, given, {"C": reference(a, b)}, gpus=("gfx1100", "gfx1151"), rtol=0, atol=0)
