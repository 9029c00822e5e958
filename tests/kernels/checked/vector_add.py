"""Cases of `kernels.vector_add`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.vector_add import vector_add
from tests.kernels.examples import vectors


def cases(n: int) -> Iterator[Case]:
    for dtype in (torch.float32, torch.bfloat16) if n < 10_000 else ():
        yield Case(vector_add, dict(zip("ABC", vectors(n, dtype), strict=True)), name=str(dtype))
