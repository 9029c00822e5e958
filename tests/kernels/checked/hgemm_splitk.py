"""Cases of `kernels.hgemm_splitk`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.hgemm_splitk import compile_hgemm_kernel, reference
from tests.kernels.gemm import whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    a, b, bias = (whole_numbers(*shape).half() for shape in ((m, k), (n, k), (n,)))
    words = torch.zeros(256, dtype=torch.int32)
    given = {"C": torch.full((m * n,), torch.nan, dtype=a.dtype), "A": a.view(-1), "B": b.view(-1), "bias": bias}
    given |= {"m": m, "semaphore": words, "signal": words}
    launcher = compile_hgemm_kernel("f16", n, k, TILE_M=32, TILE_N=64, HAS_BIAS=True)
    expected = reference(a, b, bias).half().view(-1)
    yield Case(launcher, given, {"C": expected}, gpus=("gfx942", "gfx950"), rtol=0, atol=0)
