from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import flash_attn_gfx950 as kernel
from tests.kernels.attention import TYPES, check, operands
from tests.kernels.checks import checking


@pytest.fixture(autouse=True)
def _cdna4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """The kernel's result, with every check on; O is NaN before."""
    batch, length, heads, dim = q.shape
    dtype = next(name for name, kind in TYPES.items() if kind is q.dtype)
    o = torch.full_like(q, torch.nan)
    launch = kernel.build_flash_attn_dualwave_swp_module(
        heads, dim, dtype_str=dtype, num_kv_heads=k.shape[2], **options
    )
    splits = options.get("num_kv_splits", 1)
    size = kernel.workspace_size(splits, batch, length, heads)
    extra = {"workspace": torch.full((size,), torch.nan)} if splits > 1 else {}
    with checking():
        launch(*(x.view(-1) for x in (q, k, v, o)), batch, length, **extra)
    return o


def compare(dtype: str, batch: int, length: int, heads: int, kv_heads: int, causal: bool, **options: Any) -> None:
    q, k, v = operands(dtype, *((batch, length, count, 128) for count in (heads, kv_heads, kv_heads)))
    o = attention(q, k, v, causal=causal, **options)
    check(o, kernel.reference(q, k, v, causal=causal))


@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_equals_torch(shape: tuple[int, int, int, int]) -> None:
    compare("bf16", *shape, causal=True)


@pytest.mark.parametrize(("dtype", "length"), [("f16", 129), pytest.param("bf16", 400, marks=pytest.mark.sweep)])
def test_without_a_mask(dtype: str, length: int) -> None:
    compare(dtype, 1, length, 1, 1, causal=False)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("dtype", "splits", "batch", "length", "causal"),
    [pytest.param("bf16", 2, 2, 1, True, marks=pytest.mark.sweep), ("f16", 2, 1, 390, False)],
)
def test_workgroups_that_share_keys(dtype: str, splits: int, batch: int, length: int, causal: bool) -> None:
    """One query, whose second part has no key; parts of different lengths. More parts are in sweep_attention."""
    compare(dtype, batch, length, 2, 1, causal, num_kv_splits=splits)


@pytest.mark.sweep
def test_parts_of_keys_with_nans() -> None:
    """A NaN among the queries, and one among the keys of the second part, which the first queries do not see."""
    q, k, v = operands("bf16", *[(1, 400, 1, 128)] * 3)
    q[0, 3], k[0, 300, 0, 7] = torch.nan, torch.nan
    check(attention(q, k, v, num_kv_splits=2), kernel.reference(q, k, v))


@pytest.mark.sweep
def test_sums_that_are_multiplied_for_every_tile() -> None:
    compare("bf16", 1, 260, 1, 1, causal=True, dualwave_swp_lazy_rescale=False)


def test_maxima_that_rise() -> None:
    """Each tile has larger scores than the one before, at first by less than what makes the sums be multiplied."""
    q, k, v = operands("f16", *[(1, 300, 1, 128)] * 3)
    rising = torch.arange(300)[:, None, None] / 40
    k = (torch.sign(q[:, :1]) * rising * 0.5).expand_as(k).half().contiguous()
    q = torch.sign(q[:, :1]).expand_as(q).half().contiguous()
    check(attention(q, k, v, causal=False), kernel.reference(q, k, v, causal=False))


def test_nans_stay_with_the_queries_that_see_them() -> None:
    q, k, v = operands("bf16", *[(1, 200, 1, 128)] * 3)
    q[0, 3], k[0, 150, 0, 7] = torch.nan, torch.inf
    check(attention(q, k, v), kernel.reference(q, k, v))


def test_sequences_of_several_lengths() -> None:
    lengths = [1, 3, 0, 300, 65]
    starts = torch.tensor([0, *lengths]).cumsum(0).int()
    q, k, v = operands("bf16", *[(sum(lengths), heads, 128) for heads in (2, 1, 1)])
    o = torch.full_like(q, torch.nan)
    launch = kernel.build_flash_attn_dualwave_swp_module(2, 128, num_kv_heads=1, varlen=True)
    with checking():
        launch(*(x.view(-1) for x in (q, k, v, o)), len(lengths), max(lengths), cu_seqlens_q=starts)
    for first, end in itertools.pairwise(starts):
        check(o[first:end], kernel.reference(*(x[None, first:end] for x in (q, k, v)))[0])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"head_dim": 64}, "head_dim=64"),
        ({"num_kv_heads": 3}, "num_kv_heads=3"),
        ({"dtype_str": "f32"}, "dtype_str='f32'"),
        ({"num_kv_splits": 0}, "num_kv_splits=0"),
        ({"num_kv_splits": 2, "varlen": True}, "num_kv_splits=2 with varlen"),
        ({"dualwave_swp_debug_lazy_counts": True}, "debug_lazy_counts"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"num_heads": 4, "head_dim": 128}
    with pytest.raises(ArgumentError, match=said):
        kernel.build_flash_attn_dualwave_swp_module(**(sizes | changed))


def test_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx942")
    x = torch.zeros(256 * 128).bfloat16()
    launch = kernel.build_flash_attn_dualwave_swp_module(1, 128)
    with pytest.raises(ArgumentError, match="flash_attn_gfx950 for another architecture"):
        launch(x, x, x, x, 1, 256)


def test_sequences_that_were_not_announced() -> None:
    x, starts = torch.zeros(256 * 128).bfloat16(), torch.tensor([0, 256]).int()
    launch = kernel.build_flash_attn_dualwave_swp_module(1, 128)
    with pytest.raises(ArgumentError, match="varlen=False with 1 cu_seqlens"):
        launch(x, x, x, x, 1, 256, cu_seqlens_q=starts)


def test_a_workspace_where_it_is_needed_and_only_there() -> None:
    x, workspace = torch.zeros(256 * 128).bfloat16(), torch.zeros(kernel.workspace_size(2, 1, 256, 1))
    split = kernel.build_flash_attn_dualwave_swp_module(1, 128, num_kv_splits=2)
    with pytest.raises(ArgumentError, match="num_kv_splits=2 without a workspace"):
        split(x, x, x, x, 1, 256)
    with pytest.raises(ArgumentError, match="workspace of BFloat16"):
        split(x, x, x, x, 1, 256, workspace=workspace.bfloat16())
    with pytest.raises(ArgumentError, match="num_kv_splits=1 with a workspace"):
        kernel.build_flash_attn_dualwave_swp_module(1, 128)(x, x, x, x, 1, 256, workspace=workspace)
