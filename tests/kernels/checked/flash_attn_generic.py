"""Cases of `kernels.flash_attn_generic`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.flash_attn_generic import build_flash_attn_func_module, reference
from tests.kernels.attention import operands


def cases(batch: int, length: int, kv_length: int, heads: int, kv_heads: int) -> Iterator[Case]:
    shapes = (batch, length, heads, 64), *[(batch, kv_length, kv_heads, 64)] * 2
    q, k, v = operands("bf16", *shapes)
    given = {name: x.reshape(-1) for name, x in (("Q", q), ("K", k), ("V", v))}
    given |= {"O": torch.full_like(q, torch.nan).reshape(-1)}
    build = build_flash_attn_func_module(heads, 64, num_kv_heads=kv_heads, dtype_str="bf16")

    def launcher(*given: object) -> None:
        build(*given, batch, length, seq_len_kv=kv_length)

    expected = reference(q, k, v).bfloat16().reshape(-1)
    gpus = ("gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201", "gfx1250")
    yield Case(launcher, given, {"O": expected}, gpus=gpus, rtol=0, atol=1e-2)
