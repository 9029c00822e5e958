"""Cases of `kernels.flash_attn_gfx950`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.flash_attn_gfx950 import build_flash_attn_dualwave_swp_module, reference
from tests.kernels.attention import operands


def cases(batch: int, length: int, heads: int, kv_heads: int) -> Iterator[Case]:
    q, k, v = operands("bf16", *((batch, length, count, 128) for count in (heads, kv_heads, kv_heads)))
    launcher = build_flash_attn_dualwave_swp_module(heads, 128, dtype_str="bf16", num_kv_heads=kv_heads)
    given = {name: x.reshape(-1) for name, x in (("Q", q), ("K", k), ("V", v))}
    given |= {"O": torch.full_like(q, torch.nan).reshape(-1), "batch": batch, "length": length}
    expected = reference(q, k, v).bfloat16().reshape(-1)
    yield Case(launcher, given, {"O": expected}, gpus=("gfx950",), rtol=0, atol=1e-2)
