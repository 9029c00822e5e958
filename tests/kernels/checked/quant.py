"""Cases of `kernels.quant`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from kernels.quant import build_quant_module, reference
from tests.kernels.rows import matrix


def cases(m: int, n: int) -> Iterator[Case]:
    x = matrix(m, n, "bf16")
    expected, scales = reference(x)

    def right(given: Mapping[str, Any]) -> None:
        torch.testing.assert_close(given["scales"], scales, rtol=1e-6, atol=0)
        assert ((given["out"].float() - expected).abs() <= 0.5 * 1.001 + 1e-4).all()

    given = {"x": x, "out": torch.zeros(m, n, dtype=torch.int8), "scales": torch.full((m,), torch.nan), "m": m}
    yield Case(build_quant_module(n, "bf16", "i8")[0], given, check=right)
