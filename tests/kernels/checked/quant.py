"""Cases of `kernels.quant`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from kernels.quant import build_block_quant_module, build_quant_module, reference
from tests.kernels.rows import matrix

GROUP = 32


def cases(m: int, n: int) -> Iterator[Case]:
    x = matrix(m, n, "bf16")
    given = {"x": x, "out": torch.zeros(m, n, dtype=torch.int8), "scales": torch.full((m,), torch.nan), "m": m}
    yield Case(build_quant_module(n, "bf16", "i8")[0], given, check=_rounded(x))
    if n % GROUP == 0:
        given = given | {"out": torch.zeros(m, n, dtype=torch.int8), "scales": torch.full((m, n // GROUP), torch.nan)}
        check = _rounded(x.view(-1, GROUP))
        yield Case(build_block_quant_module(n, "bf16", "i8", GROUP), given, name="groups", check=check)


def _rounded(x: torch.Tensor) -> Callable[[Mapping[str, Any]], None]:
    """A check that codes are the nearest. x: what shares a scale in each row."""
    expected, scales = reference(x)

    def check(given: Mapping[str, Any]) -> None:
        torch.testing.assert_close(given["scales"].flatten(), scales, rtol=1e-6, atol=0)
        assert ((given["out"].view(expected.shape).float() - expected).abs() <= 0.5 * 1.001 + 1e-4).all()

    return check
