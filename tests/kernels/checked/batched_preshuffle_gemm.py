"""Cases of `kernels.batched_preshuffle_gemm`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.batched_preshuffle_gemm import compile_batched_preshuffle_gemm, reference
from tests.kernels.test_batched_preshuffle_gemm import operands


def cases(batch: int, m: int, n: int, k: int) -> Iterator[Case]:
    for dtype, gpus in (("fp4", ("gfx950",)), ("bf16", ("gfx942", "gfx950"))):
        a, b, given = operands((batch, m, n, k), dtype)
        launcher = compile_batched_preshuffle_gemm(K=k, tile_m=32, tile_n=128, tile_k=128, in_dtype=dtype)
        expected = reference(a, b).bfloat16().view(-1)
        sizes = {"m": m, "n": n, "batch": batch}
        yield Case(launcher, given | sizes, {"C": expected}, name=dtype, gpus=gpus, rtol=2**-7, atol=1e-2)
