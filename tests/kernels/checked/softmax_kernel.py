"""Cases of `kernels.softmax_kernel`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.softmax_kernel import DTYPES, build_softmax_module
from tests.kernels.rows import TOLERANCES, matrix


def cases(m: int, n: int) -> Iterator[Case]:
    for dtype in DTYPES:
        a = matrix(m, n, dtype, scale=2)
        given = {"A": a, "C": torch.full_like(a, torch.nan), "m_in": m}
        close = TOLERANCES[dtype]
        yield Case(build_softmax_module(m, n, dtype), given, name=dtype, rtol=close, atol=close)
