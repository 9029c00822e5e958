"""Cases of `kernels.wmma_gemm_gfx1250`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.wmma_gemm_gfx1250 import compile_wmma_gemm_tdm, reference
from tests.kernels.gemm import nans, whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    a, b = whole_numbers(m, k).bfloat16(), whole_numbers(k, n, seed=1).bfloat16()
    launcher = compile_wmma_gemm_tdm(N=n, K=k, in_dtype="bf16", tile_m=64, tile_n=64, tile_k=32, m_warp=2, n_warp=2)
    given = {"C": nans(m, n).view(m, n), "A": a, "B": b, "m": m, "n": n}
    yield Case(launcher, given, {"C": reference(a, b).to(torch.bfloat16)}, gpus=("gfx1250",), rtol=0, atol=0)
