"""Cases of `kernels.layernorm_kernel`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from tests.kernels.checked.norm_cases import norm_cases


def cases(m: int, n: int) -> Iterator[Case]:
    yield from norm_cases(m, n, mean=True)
