"""Cases of `kernels.rdna_fp8_preshuffle_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.rdna_fp8_preshuffle_gemm import compile_fp8_gemm, preshuffle_b_fp8, reference
from tests.kernels.gemm import factors, nans, whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    a, b = (whole_numbers(*shape).to(torch.float8_e4m3fn) for shape in ((m, k), (k, n)))
    given = {"C": nans(m, n).view(m, n), "A": a.view(torch.float32), "B": preshuffle_b_fp8(b).view(torch.float32)}
    given |= {"scale_a": factors(m), "scale_b": factors(n)}
    expected = reference(a, b, factors(m), factors(n)).bfloat16()
    launcher = compile_fp8_gemm(M=m, N=n, K=k)
    yield Case(launcher, given, {"C": expected}, gpus=("gfx1200", "gfx1201"), rtol=2**-7, atol=1e-2)
