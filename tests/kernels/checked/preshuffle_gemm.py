"""Cases of `kernels.preshuffle_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8, reference
from tests.kernels.gemm import factors, nans, plain


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    for dtype in ("int8", "bf16"):
        a, b, flat_a, shuffled_b = plain(dtype, m, n, k)
        scales = (factors(m), factors(n)) if dtype == "int8" else (torch.zeros(1), torch.zeros(1))
        launcher = compile_preshuffle_gemm_a8(
            K=k, tile_m=16, tile_n=64, tile_k=128, in_dtype=dtype, out_dtype="bf16", epilogue="none"
        )
        given = {"C": nans(m, n), "A": flat_a, "B": shuffled_b, "scale_a": scales[0], "scale_b": scales[1]}
        given |= {"bias": factors(n).bfloat16(), "m": m, "n": n}
        expected = reference(a, b, *(scales if dtype == "int8" else ())).bfloat16().view(-1)
        yield Case(launcher, given, {"C": expected}, name=dtype, gpus=("gfx942", "gfx950"), rtol=2**-7, atol=1e-2)
