"""What the cases of layernorm and rmsnorm share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flydsl.testing import Case
from kernels.norms import Norm, build
from tests.kernels.norms import check, operands


def norm_cases(m: int, n: int, *, mean: bool) -> Iterator[Case]:
    for dtype, residual, quant in (("bf16", False, None), ("f32", True, None), ("bf16", False, "i8")):
        norm = Norm(columns=n, dtype=dtype, mean=mean, residual=residual, quant=quant)
        given = operands(norm, m)
        x = given["Input"].clone()

        def right(operands: Mapping[str, Any], norm: Norm = norm, x: Any = x) -> None:
            check(norm, dict(operands), x)

        yield Case(build(norm), {**given, "m_in": m}, name=f"{norm.name} {dtype}", check=right)
