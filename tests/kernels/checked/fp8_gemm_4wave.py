"""Cases of `kernels.fp8_gemm_4wave`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.runtime.device import get_rocm_arch
from flydsl.testing import Case
from kernels.fp8_gemm_4wave import compile_fp8_gemm_4w
from kernels.preshuffle_gemm import reference
from tests.kernels.gemm import factors, nans, torch_type, whole_numbers


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    a, b = (whole_numbers(*shape).to(torch_type("fp8", get_rocm_arch())) for shape in ((m, k), (n, k)))
    given = {"A": a.view(-1), "B": b.view(-1), "C": nans(m, n), "scale_a": factors(m), "scale_b": factors(n)}
    expected = reference(a.float(), b.float(), factors(m), factors(n)).to(torch.bfloat16).view(-1)
    launcher, gpus = compile_fp8_gemm_4w(K=k, BLOCK_M=64, BLOCK_N=64), ("gfx942", "gfx950")
    yield Case(launcher, {**given, "m": m, "n": n}, {"C": expected}, gpus=gpus, rtol=2**-7, atol=1e-2)
