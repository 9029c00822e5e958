"""Mixture of experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from kernels import moe_sorting_kernel as sorting
from kernels.moe_common import compile_moe_reduction
from tests.kernels.cases import Case
from tests.kernels.rows import TYPES


def sort(tokens: int, experts: int, topk: int) -> tuple[Any, tuple[Any, ...]]:
    ids = (torch.arange(tokens * topk) * 7 % experts).int()
    size = sorting.sorted_size(tokens, experts, topk)
    tables = (torch.zeros(n, dtype=torch.int32) for n in (size, size, -(-size // sorting.UNIT), 2))
    sorted_ids, sorted_weights, *others = tables
    unused = torch.zeros(experts, dtype=torch.int32)
    at_once = tokens * topk <= sorting.MOST_AT_ONCE
    launch = sorting.build_moe_sorting_module(experts, topk, at_once=at_once)
    moe_buf = torch.zeros(tokens * 7168, dtype=torch.bfloat16)
    results = (sorted_ids, sorted_weights.float(), *others, moe_buf)
    return launch, (ids, torch.ones(tokens * topk), *results, *[unused] * 3, tokens)


def sorting_case(tokens: int, experts: int, topk: int) -> Case:
    return Case("moe_sorting_kernel", "i32", partial(sort, tokens, experts, topk))


def reduction(dtype: str, masked: bool) -> tuple[Any, tuple[Any, ...]]:
    tokens, topk, columns = 76, 8, 7168
    x, y = (torch.zeros(*shape, dtype=TYPES[dtype]) for shape in ((tokens, topk, columns), (tokens, columns)))
    launch = compile_moe_reduction(topk=topk, model_dim=columns, dtype_str=dtype, use_mask=masked)
    return launch, (x, y, torch.ones(tokens, topk, dtype=torch.uint8), tokens)


def reduction_case(name: str, dtype: str, masked: bool = False) -> dict[str, Case]:
    return {name: Case("moe_common", dtype, partial(reduction, dtype, masked))}


CASES: dict[str, Case] = {
    "moe_sort_oneshot_e256k8_t16": sorting_case(16, 256, 8),
    "moe_sort_oneshot_e513k9_t16": sorting_case(16, 513, 9),
    "moe_sort_two_kernels_e256k8_t512": sorting_case(512, 256, 8),
    **reduction_case("moe_reduce_k8_d7168_f32", "f32"),
    **reduction_case("moe_reduce_k8_d7168_f16", "f16"),
    **reduction_case("moe_reduce_k8_d7168_bf16", "bf16"),
    **reduction_case("moe_reduce_k8_d7168_f16_mask", "f16", masked=True),
}
MISSES: dict[tuple[str, str], str] = {
    ("moe_sort_oneshot_e256k8_t16", "gfx942"): "the loops over ids are unrolled; occupancy is the same",
}
