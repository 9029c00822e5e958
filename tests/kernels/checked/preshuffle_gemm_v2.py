"""Cases of `kernels.preshuffle_gemm_v2`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.preshuffle_gemm_v2 import preshuffle_gemm, reference, shuffle
from tests.kernels.test_preshuffle_gemm_v2 import F16, fits, operands


def cases(m: int, n: int, k: int) -> Iterator[Case]:
    if fits((m, n, k), F16):
        a, b, c = operands((m, n, k), F16)
        given = {"A": a, "B": shuffle(b), "C": c}
        yield Case(preshuffle_gemm, given, {"C": reference(a, b)}, gpus=("gfx942", "gfx950"), rtol=0, atol=0)
