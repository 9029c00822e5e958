"""Cases of `kernels.moe_sorting_kernel`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.moe_sorting_kernel import moe_sorting_flydsl, reference, sorted_size
from tests.kernels.test_moe_sorting_kernel import routing


def cases(tokens: int, experts: int, topk: int, unit: int) -> Iterator[Case]:
    ids, weights = routing(tokens, experts, topk)
    size = sorted_size(tokens, experts, topk, unit)
    names = ("sorted_ids", "sorted_weights", "sorted_expert_ids", "num_valid_ids")
    results = (torch.zeros(size).int(), torch.zeros(size), torch.zeros(-(-size // unit)).int(), torch.zeros(2).int())
    buffer = torch.full((tokens, 37, 2), torch.nan, dtype=torch.bfloat16)
    given = {"ids": ids, "weights": weights, **dict(zip(names, results, strict=True)), "moe_buf": buffer}
    expected = dict(zip(names, reference(ids, weights, experts, unit), strict=True))
    expected["moe_buf"] = torch.zeros_like(buffer)
    yield Case(moe_sorting_flydsl, {**given, "experts": experts, "unit": unit}, expected, rtol=0, atol=0)
