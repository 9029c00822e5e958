from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.runtime.simulated
from flydsl.errors import ArgumentError
from kernels import flash_attn_generic as kernel
from tests.kernels.attention import TYPES, check, operands
from tests.kernels.checks import checking


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """The kernel's result, with every check on; O is NaN before."""
    batch, length, heads, dim = q.shape
    dtype = next(name for name, kind in TYPES.items() if kind is q.dtype)
    build = {"num_kv_heads": k.shape[2], "v_head_dim": v.shape[3], "dtype_str": dtype} | options
    o = torch.full((batch, length, heads, v.shape[3]), torch.nan, dtype=q.dtype)
    launch = kernel.build_flash_attn_func_module(heads, dim, **build)
    with checking():
        launch(*(x.reshape(-1) for x in (q, k, v)), o.view(-1), batch, length, seq_len_kv=k.shape[1])
    return o


def compare(
    dtype: str, batch: int, lengths: tuple[int, int], heads: tuple[int, int], dims: tuple[int, int], **options: Any
) -> torch.Tensor:
    q, k, v = operands(
        dtype, (batch, lengths[0], heads[0], dims[0]), (batch, lengths[1], heads[1], dims[0]),
        (batch, lengths[1], heads[1], dims[1]),
    )  # fmt: skip
    o = attention(q, k, v, **options)
    known = {name: options[name] for name in ("causal", "sliding_window", "sm_scale") if name in options}
    check(o, kernel.reference(q, k, v, **known))
    return o


@pytest.mark.checked
@pytest.mark.parametrize(
    ("dtype", "length", "dims", "causal"),
    [
        ("bf16", 1, (64, 64), True),
        ("f16", 127, (64, 64), True),
        ("bf16", 129, (64, 64), False),
        ("bf16", 129, (128, 128), True),
        ("f16", 127, (128, 128), False),
        ("bf16", 129, (192, 128), True),
        ("f16", 65, (96, 96), True),
    ],
)
@pytest.mark.diagonal(4)
def test_equals_torch(dtype: str, length: int, dims: tuple[int, int], causal: bool) -> None:
    compare(dtype, 1, (length, length), (1, 1), dims, causal=causal)


@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_shapes(shape: tuple[int, ...]) -> None:
    batch, *sizes = shape
    compare("bf16", batch, tuple(sizes[:2]), tuple(sizes[2:]), (64, 64), causal=True)


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, {(1, 512, 512): True, (2, 1, 1): False, (1, 640, 640): False, (1, 512, 513): False}),
        ({"block_m": 256}, {(1, 1, 1): True, (1, 1, 2): False}),
        ({"sliding_window": 1}, {(2, 1, 1): False}),
    ],
    ids=str,
)
def test_cdna4_hands_over_what_is_faster(
    options: dict[str, Any], sizes: dict[tuple[int, int, int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """sizes: (batch, queries, keys) of 128 heads, and whether they are the pipeline's."""
    monkeypatch.setenv("ARCH", "gfx950")
    launch = kernel.build_flash_attn_func_module(128, 128, dtype_str="bf16", num_kv_heads=1, **options)
    launched = list[str]()
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", lambda _, name, **__: launched.append(name))
    for batch, queries, keys in sizes:
        q, kv = (torch.zeros(batch * rows * 128).bfloat16() for rows in (128 * queries, keys))
        launch(q, kv, kv, torch.zeros_like(q), batch, queries, seq_len_kv=keys)
    assert ["dualwave" in name for name in launched] == [*sizes.values()]


def test_what_cdna4_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    compare("f16", 1, (70, 70), (1, 1), (128, 128), block_m=256, sm_scale=0.3, causal=False)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [1, 40, 100])
@pytest.mark.diagonal(3)
def test_sliding_window(window: int, causal: bool) -> None:
    compare("f16", 1, (150, 200), (1, 1), (64, 64), causal=causal, sliding_window=window)


def test_rows_that_see_no_key_are_zero() -> None:
    o = compare("bf16", 1, (70, 20), (1, 1), (64, 64), causal=True)
    assert not o[:, :50].any()
    assert o[:, 50:].abs().sum(-1).all()


def test_equal_scores_give_the_mean_of_the_values() -> None:
    (v,) = operands("bf16", (1, 129, 1, 64))
    q, k = torch.zeros_like(v), torch.ones_like(v)
    o = attention(q, k, v, causal=False)
    torch.testing.assert_close(o.float(), v.float().mean(1, keepdim=True).expand_as(v), rtol=2**-8, atol=1e-4)


def test_infinities_and_nans_stay_with_what_sees_them() -> None:
    q, k, v = operands("f16", *[(1, 100, 1, 64)] * 3)
    q[0, 3], q[0, 5, 0, 0] = torch.nan, torch.inf
    k[0, 70, 0, 7], k[0, 90, 0, 0] = torch.nan, torch.inf
    v[0, 95, 0, 1] = -torch.inf
    # A block of queries multiplies hidden values by 0, as torch does: NaN. Hidden keys have no effect.
    check(attention(q, k, v, causal=True), kernel.reference(q, k, v))


@pytest.mark.parametrize("sm_scale", [pytest.param(0.01, marks=pytest.mark.sweep), 100.0])
def test_scales(sm_scale: float) -> None:
    compare("f16", 1, (40, 40), (1, 1), (64, 64), causal=False, sm_scale=sm_scale)


@pytest.mark.checked
def test_sequences_of_several_lengths() -> None:
    lengths, kv_lengths = [1, 33, 0, 130], [1, 50, 7, 60]
    starts, kv_starts = (
        torch.tensor([0, *lengths]).cumsum(0).int(), torch.tensor([0, *kv_lengths]).cumsum(0).int()
    )  # fmt: skip
    q, k, v = operands("bf16", (sum(lengths), 2, 64), (sum(kv_lengths), 1, 64), (sum(kv_lengths), 1, 64))
    o = torch.full_like(q, torch.nan)
    launch = kernel.build_flash_attn_func_module(2, 64, dtype_str="bf16", num_kv_heads=1)
    with checking():
        launch(*(x.view(-1) for x in (q, k, v, o)), 4, 130, cu_seqlens_q=starts, cu_seqlens_kv=kv_starts)
    for i in range(4):
        rows, keys = slice(starts[i], starts[i + 1]), slice(kv_starts[i], kv_starts[i + 1])
        check(o[rows], kernel.reference(q[None, rows], k[None, keys], v[None, keys])[0])


OF_32_LANES = [
    ("gfx1100", "f16", (40, 40), (64, 64), {"causal": True}),
    ("gfx1250", "bf16", (70, 90), (64, 64), {"causal": True}),
    ("gfx1151", "bf16", (17, 70), (64, 64), {"causal": False}),
    ("gfx1100", "bf16", (129, 129), (128, 128), {"causal": True}),
    ("gfx1151", "f16", (65, 65), (96, 96), {"causal": True, "sliding_window": 40}),
    ("gfx1103", "bf16", (40, 60), (192, 128), {"causal": True}),
    ("gfx1201", "f16", (70, 20), (64, 64), {"causal": True}),
    ("gfx1201", "bf16", (129, 129), (128, 128), {"causal": False}),
    ("gfx1250", "f16", (129, 129), (128, 128), {"causal": False}),
    ("gfx1250", "bf16", (65, 65), (96, 96), {"causal": True, "sliding_window": 40}),
]


def check_of_32_lanes(
    monkeypatch: pytest.MonkeyPatch, arch: str, dtype: str, lengths: tuple[int, int], dims: tuple[int, int],
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Waves of 32 lanes and WMMA."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    compare(dtype, 1, lengths, (2, 1), dims, **options)


@pytest.mark.parametrize(("arch", "dtype", "lengths", "dims", "options"), OF_32_LANES[:2])
def test_of_32_lanes(
    monkeypatch: pytest.MonkeyPatch, arch: str, dtype: str, lengths: Any, dims: Any, options: Any
) -> None:
    check_of_32_lanes(monkeypatch, arch, dtype, lengths, dims, options)


@pytest.mark.sweep
@pytest.mark.parametrize(("arch", "dtype", "lengths", "dims", "options"), OF_32_LANES[2:])
def test_more_of_32_lanes(
    monkeypatch: pytest.MonkeyPatch, arch: str, dtype: str, lengths: Any, dims: Any, options: Any
) -> None:
    check_of_32_lanes(monkeypatch, arch, dtype, lengths, dims, options)


def test_blocks_of_256_queries_on_cdna4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    compare("bf16", 1, (257, 257), (1, 1), (64, 64), causal=True, block_m=256)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"head_dim": 48}, "head_dim=48"),
        ({"head_dim": 96, "block_m": 256}, "head_dim=96"),
        ({"head_dim": 512}, "head_dim=512"),
        ({"v_head_dim": 100}, "v_head_dim=100"),
        ({"num_kv_heads": 3}, "num_kv_heads=3"),
        ({"num_heads": 0}, "num_heads=0"),
        ({"dtype_str": "f32"}, "dtype_str='f32'"),
        ({"block_m": 64}, "block_m=64"),
        ({"sliding_window": -1}, "sliding_window=-1"),
        ({"sm_scale": 0.0}, "sm_scale=0.0"),
        ({"flat_work_group_size": 128}, "flat_work_group_size=128"),
        ({"path_tag": "N32"}, "path_tag='N32'"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"num_heads": 4, "head_dim": 64}
    with pytest.raises(ArgumentError, match=said):
        kernel.build_flash_attn_func_module(**(sizes | changed))


def test_tensors_of_another_type() -> None:
    x = torch.zeros(64 * 64).half()
    launch = kernel.build_flash_attn_func_module(1, 64, dtype_str="f16")
    with pytest.raises(ArgumentError, match="V of BFloat16 where dtype_str is f16"):
        launch(x, x, x.bfloat16(), x, 1, 64)
    with pytest.raises(ArgumentError, match=r"Q of[\s\S]*contiguous\(\)"):
        launch(x.view(1, 8, 8, 64).transpose(1, 2), x, x, x, 1, 8)


def test_nothing_to_attend_to() -> None:
    launch = kernel.build_flash_attn_func_module(1, 64, dtype_str="f16")
    launch(*[torch.zeros(0).half()] * 4, 0, 5)


@pytest.mark.sweep
def test_the_block_is_chosen_by_measurement() -> None:
    q, k, v = operands("f16", *[(1, 40, 1, 64)] * 3)
    o = torch.full_like(q, torch.nan)
    kernel.flash_attn(*(x.view(-1) for x in (q, k, v, o)), 1, 40, 1, 1, 64, True, "f16")
    check(o, kernel.reference(q, k, v))
