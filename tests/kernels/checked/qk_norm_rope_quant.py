"""Cases of `kernels.qk_norm_rope_quant`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from kernels.qk_norm_rope_quant import flydsl_qk_norm_rope_quant, reference
from tests.kernels.test_qk_norm_rope_quant import operands


def cases(tokens: int, heads: int, rotated: int) -> Iterator[Case]:
    q, kv, weight, cos, sin, positions = operands(tokens, heads, rotated)
    found: list[Any] = []

    def norm(*given: torch.Tensor) -> None:
        options = {"num_q_heads": heads, "head_dim": 512, "rope_head_dim": rotated, "quant": False}
        found.append(flydsl_qk_norm_rope_quant(*given, **options))

    def right(_: Mapping[str, Any]) -> None:
        for place, (x, w) in enumerate(((q.view(tokens, heads, 512), None), (kv[:, None], weight))):
            expected, _ = reference(x, w, cos[positions], sin[positions])
            got = found[-1][place].float().view(expected.shape)
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-2)

    given = {"q": q, "kv": kv, "weight": weight, "cos": cos, "sin": sin, "positions": positions}
    yield Case(norm, given, check=right, gpus=("gfx942", "gfx950"))
