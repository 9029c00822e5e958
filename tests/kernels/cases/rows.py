"""Row-wise kernels."""

from __future__ import annotations

from typing import Any

import torch

from kernels.softmax_kernel import build_softmax_module
from tests.kernels.cases import Case

ROWS = 304  # one for each compute unit of an MI300X
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def softmax(n: int, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    a, c = (torch.zeros(ROWS, n, dtype=TYPES[dtype]) for _ in range(2))
    return build_softmax_module(ROWS, n, dtype), (a, c, ROWS)


def of_types(name: str, kernel: str, make: Any, *sizes: int) -> dict[str, Case]:
    """A case for each type."""
    return {name.format(t): Case(kernel, t, lambda t=t: make(*sizes, t)) for t in TYPES}


CASES: dict[str, Case] = {
    **of_types("softmax_{}", "softmax_kernel", softmax, 8192),
    **of_types("softmax_n2000_{}", "softmax_kernel", softmax, 2000),
}
ONE_MORE = "a register more than one element at a time takes"
MISSES: dict[tuple[str, str], str] = {
    ("softmax_n2000_f32", "gfx950"): ONE_MORE,
    ("softmax_n2000_f16", "gfx942"): ONE_MORE,
    ("softmax_n2000_bf16", "gfx942"): ONE_MORE,
    ("softmax_n2000_bf16", "gfx950"): ONE_MORE,
}
