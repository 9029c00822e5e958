"""Cases of `kernels.gdr_prefill`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.gdr_prefill import gdr_prefill, reference
from tests.kernels.test_gdr_prefill import operands


def cases(lengths: tuple[int, ...], *heads: int) -> Iterator[Case]:
    k_heads, v_heads, k_dim, v_dim = heads
    given = operands((lengths, k_heads, v_heads, k_dim, v_dim))
    out, state = reference(*[tensor for name, tensor in given.items() if name != "out"])
    expected = {"out": out.to(given["out"].dtype), "state": state}
    yield Case(gdr_prefill, given, expected, gpus=("gfx942", "gfx950"), rtol=2e-2, atol=3e-2)
