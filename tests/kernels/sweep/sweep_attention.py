"""Attention at every head size, longer sequences and odd ones: `make sweep`."""

from __future__ import annotations

import pytest
import torch

from kernels import flash_attn_generic, flash_attn_gfx950
from tests.kernels import test_flash_attn_gfx950
from tests.kernels.attention import check, operands

DIMS = ((64, 64), (96, 96), (128, 128), (192, 128), (128, 64))
LENGTHS = ((1, 1), (127, 127), (129, 129), (300, 300), (65, 513), (300, 40))


@pytest.mark.parametrize(
    ("causal", "window", "dtype"),
    [(True, 0, "bf16"), (False, 0, "f16"), (True, 70, "f16"), (False, 70, "bf16")],
)
@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_generic(lengths: tuple[int, int], dims: tuple[int, int], causal: bool, window: int, dtype: str) -> None:
    (queries, keys), (dim, width) = lengths, dims
    q, k, v = operands(dtype, (2, queries, 4, dim), (2, keys, 2, dim), (2, keys, 2, width))
    o = torch.full((2, queries, 4, width), torch.nan, dtype=q.dtype)
    launch = flash_attn_generic.build_flash_attn_func_module(
        4, dim, causal, dtype, num_kv_heads=2, v_head_dim=width, sliding_window=window
    )
    launch(*(x.view(-1) for x in (q, k, v, o)), 2, queries, seq_len_kv=keys)
    check(o, flash_attn_generic.reference(q, k, v, causal=causal, sliding_window=window or None))


@pytest.mark.parametrize(("dtype", "causal"), [("f16", False), ("bf16", True)])
@pytest.mark.parametrize("length", [1, 63, 65, 127, 129, 255, 257, 700, 1024])
def test_gfx950(length: int, causal: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    q, k, v = operands(dtype, *((1, length, heads, 128) for heads in (4, 2, 2)))
    o = torch.full_like(q, torch.nan)
    launch = flash_attn_gfx950.build_flash_attn_dualwave_swp_module(4, 128, causal, dtype, num_kv_heads=2)
    launch(*(x.view(-1) for x in (q, k, v, o)), 1, length)
    check(o, flash_attn_gfx950.reference(q, k, v, causal=causal))


@pytest.mark.parametrize(("dtype", "splits", "length", "causal"), [("f16", 2, 700, False), ("bf16", 4, 513, True)])
def test_workgroups_that_share_keys(
    dtype: str, splits: int, length: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    test_flash_attn_gfx950.compare(dtype, 1, length, 2, 1, causal, num_kv_splits=splits)
