"""Cases of `kernels.fused_rope_cache_kernel`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.fused_rope_cache_kernel import build_fused_rope_cache_module, reference
from tests.kernels.test_fused_rope_cache_kernel import BLOCK_SIZE, operands


def cases(tokens: int, q_heads: int, k_heads: int, dim: int) -> Iterator[Case]:
    given = operands((tokens, q_heads, k_heads, dim), "bf16", True, False, True, False)
    launcher = build_fused_rope_cache_module(
        dim, -1, q_heads, k_heads, BLOCK_SIZE, True, True, "bf16", False, True, "i32"
    )
    cos, sin = (given[name][given["positions"].long()] for name in ("cos", "sin"))
    expected = {"q_out": reference(given["q"], cos, sin), "k_out": reference(given["k"], cos, sin)}
    yield Case(launcher, given, expected, rtol=0, atol=0)
