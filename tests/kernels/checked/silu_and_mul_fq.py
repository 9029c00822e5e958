"""Cases of `kernels.silu_and_mul_fq`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.silu_and_mul_fq import build_silu_and_mul_fq_module, reference
from tests.kernels.test_silu_and_mul_fq import operands


def cases(tokens: int, topk: int, inter: int) -> Iterator[Case]:
    given = operands(tokens, topk, inter, "none")
    launcher = build_silu_and_mul_fq_module(inter, topk, "none", False, "silu", False)
    given |= {"tokens": tokens, "rows": len(given["sorted_ids"])}
    expected = reference(given["x"], None, "silu", False).to(torch.bfloat16)
    yield Case(launcher, given, {"out": expected}, rtol=1e-2, atol=1e-2)
