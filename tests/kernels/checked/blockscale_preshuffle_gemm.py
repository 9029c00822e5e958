"""Cases of `kernels.blockscale_preshuffle_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.runtime.device import get_rocm_arch
from flydsl.testing import Case
from kernels.blockscale_preshuffle_gemm import compile_blockscale_preshuffle_gemm, reference
from tests.kernels.gemm import factors, nans, plain


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    a, b, flat_a, shuffled_b = plain("fp8", m, n, k, get_rocm_arch())
    scale_a, scale_b = factors(k // 128, m), factors(-(-n // 128), k // 128)
    launcher = compile_blockscale_preshuffle_gemm(N=n, K=k, tile_m=16, tile_n=64, tile_k=128)
    given = {"C": nans(m, n), "A": flat_a, "B": shuffled_b, "scale_a": scale_a.view(-1), "scale_b": scale_b.view(-1)}
    expected = reference(a, b, scale_a, scale_b).to(torch.bfloat16).view(-1)
    gpus = ("gfx942", "gfx950")
    yield Case(launcher, {**given, "m": m, "n": n}, {"C": expected}, gpus=gpus, rtol=2**-7, atol=1e-2)
