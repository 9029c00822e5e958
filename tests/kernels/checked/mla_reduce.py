"""Cases of `kernels.mla_reduce`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from kernels.mla_reduce import mla_reduce, reference
from tests.kernels.test_mla_reduce import operands


def cases(counts: tuple[int, ...], queries: int, heads: int, columns: int) -> Iterator[Case]:
    given = operands((counts, queries, heads, columns))
    expected = reference(*[tensor for name, tensor in given.items() if name != "output"])

    def right(results: Mapping[str, Any]) -> None:
        for row, (mean, _) in expected.items():
            torch.testing.assert_close(results["output"][row].float(), mean, rtol=1e-2, atol=1e-2)

    yield Case(mla_reduce, given | {"queries": queries}, check=right, gpus=("gfx942", "gfx950"))
