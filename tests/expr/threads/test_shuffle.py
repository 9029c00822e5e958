"""Shuffles of every type, distance and group, and reductions made of them, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import gpu
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

LANES = 64
LANE = torch.arange(LANES)
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int16, torch.int8]


def source(mode: str, offset: int, width: int) -> torch.Tensor:
    """The lane that each lane reads, which is itself where the group has no such lane."""
    within, first = LANE % width, LANE // width * width
    moved = {"xor": within ^ offset, "up": within - offset, "down": within + offset, "idx": within * 0 + offset % width}
    return torch.where((moved[mode] >= 0) & (moved[mode] < width), first + moved[mode], LANE)


@flyc.kernel
def far_kernel(X: fx.Tensor, Out: fx.Tensor):
    t = fx.thread_idx.x
    for i, distance in enumerate((16, 32)):
        Out[i, t] = X[t].shuffle_xor(distance, 64)
        if t % 3 != 0:  # the lanes that are left have partners only here and there
            Out[2 + i, t] = X[t].shuffle_xor(distance, 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
def test_far_lanes_of_cdna4(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are exchanged in the VALU, which needs no wait for the LDS unit."""
    monkeypatch.setenv("ARCH", "gfx950")
    launch = launcher_of(far_kernel, grid=1, block=LANES)
    x, out = (LANE * 3 - 50).to(dtype), torch.zeros(4, LANES, dtype=dtype)
    launch(x, out)
    for i, distance in enumerate((16, 32)):
        other = LANE ^ distance
        assert torch.equal(out[i], x[other])
        both = (LANE % 3 != 0) & (other % 3 != 0)
        assert torch.equal(out[2 + i][both], x[other][both])
    isa = launch.lower(x, out).artifact.isa
    assert "v_permlane16_swap" in isa
    assert "v_permlane32_swap" in isa
    assert "ds_" not in isa


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["constant", "runtime"])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
@pytest.mark.diagonal(2)
def test_distances_and_groups(mode: str, known: bool, elementwise: Callable[..., torch.Tensor]) -> None:
    cases = [(offset, width) for width in (64, 16, 1) for offset in (0, 1, 2, 3, 4, 7, 8, 13, 15, 16, 32, 63)]

    def moved(a: Any, b: Any) -> list[Any]:
        zero = 0 if known else b.to(fx.Int32)
        return [gpu.shuffle(a, zero + offset, width, mode) for offset, width in cases]

    a = torch.arange(LANES, dtype=torch.float32)
    got = elementwise(moved, a, torch.zeros(LANES), torch.float32)
    for row, (offset, width) in zip(got, cases, strict=True):
        assert torch.equal(row, a[source(mode, offset, width)]), (offset, width)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype: torch.dtype, elementwise: Callable[..., torch.Tensor]) -> None:
    random = torch.Generator().manual_seed(0)
    a = (torch.randn(LANES, generator=random) * 100).to(dtype)
    got = elementwise(lambda a, b: [a.shuffle_xor(5, 64), a.shuffle_up(b, 64), a.shuffle_idx(9, 16)], a,
                      torch.full((LANES,), 3, dtype=torch.int32), dtype)  # fmt: skip
    expected = [a[source("xor", 5, 64)], a[source("up", 3, 64)], a[source("idx", 9, 16)]]
    assert torch.equal(got, torch.stack(expected))


def test_vectors_booleans_and_indices(elementwise: Callable[..., torch.Tensor]) -> None:
    def moved(a: Any, b: Any) -> list[Any]:
        halves = fx.Vector.from_elements([a, b, a, b], fx.Float16)
        other = gpu.shuffle_down(halves, 1, 64)
        return [
            *(other[i] for i in range(4)),
            (a > 10.0).shuffle_xor(1, 64).select(a, b),
            fx.Index(a).shuffle_xor(2, 64),
        ]

    a, b = LANE.float(), -LANE.float()
    got = elementwise(moved, a, b, torch.float32)
    down = source("down", 1, 64)
    assert torch.equal(got[:4], torch.stack([a[down], b[down]] * 2))
    assert torch.equal(got[4], torch.where(a[LANE ^ 1] > 10, a, b))
    assert torch.equal(got[5], a[LANE ^ 2])


@pytest.mark.parametrize("width", [64, 32, 16])
def test_sum_of_a_group(width: int, elementwise: Callable[..., torch.Tensor]) -> None:
    def total(a: Any, b: Any) -> list[Any]:
        distance = width // 2
        while distance:
            a = a + a.shuffle_xor(fx.Int32(distance), fx.Int32(width))
            distance //= 2
        return [a]

    a = LANE.float()
    got = elementwise(total, a, a, torch.float32)
    assert torch.equal(got[0], a.reshape(-1, width).sum(1).repeat_interleave(width))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda A: A[0].shuffle_xor(1, 48), "groups must have a power of two of lanes, got 48"),
        (lambda A: A[0].shuffle_xor(1, 128), "128 is outside of 1 to 64"),
        (lambda A: A[0].shuffle_xor(64, 64), "64 is outside of 0 to 63"),
        (lambda A: A[0].shuffle_xor(1.5, 64), r"the offset of shuffle: 1\.5 is not an integer"),
        (lambda A: A[0].shuffle_up(A[1], 64), "the offset of shuffle: it takes i32, not f32"),
        (lambda A: gpu.shuffle(A[0], 1, 64, "left"), "shuffle mode 'left'"),
        (lambda A: gpu.shuffle_xor(fx.Vector.filled([3], 0, fx.Int16), 1, 64), "48 bits are not whole"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], says: str, trace: Callable[..., Any]
) -> None:
    with pytest.raises(ArgumentError, match=says) as info:
        trace(lambda A, Out: call(fx.slice(A, (0, None))))
    assert info.value.at.file == __file__
