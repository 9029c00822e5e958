"""Moves between the lanes of a wave, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.typing import T

LANES = 64
LANE = torch.arange(LANES)
Run = Callable[..., torch.Tensor]


def test_lanes_know_their_number(wave: Run) -> None:
    got = wave(lambda lane: [rocdl.lane_id(), rocdl.mbcnt_hi(T.i32, 0b11, 5)], dtype=torch.int32)
    assert torch.equal(got[0], LANE.int())
    assert torch.equal(got[1], (5 + (LANE - 32).clamp(0, 2)).int())


def test_permutes(wave: Run) -> None:
    reverse = 63 - LANE

    def moved(lane: Any, A: Any) -> list[Any]:
        x = A[lane]
        return [
            rocdl.ds_bpermute((63 - lane) * 4, x),
            rocdl.ds_bpermute(T.i32, (lane // 2) * 4, x.to(fx.Int32)).to(fx.Float32),
            rocdl.ds_permute((63 - lane) * 4, x),
            rocdl.ds_swizzle(x, 0x041F),  # lane ^ 1
            rocdl.ds_swizzle(x, 0x8000 | 0b00_01_10_11),  # each four reversed
        ]

    a = torch.randn(LANES, generator=torch.Generator().manual_seed(0)) * 100
    got = wave(moved, a, dtype=torch.float32)
    assert torch.equal(got[0], a[reverse])
    assert torch.equal(got[1], a[LANE // 2].trunc())
    assert torch.equal(got[2], a[reverse])
    assert torch.equal(got[3], a[LANE ^ 1])
    assert torch.equal(got[4], a[LANE ^ 3])


def test_one_lane_for_all(wave: Run) -> None:
    def read(lane: Any, A: Any) -> list[Any]:
        x = A[lane]
        return [
            rocdl.readfirstlane(x),
            rocdl.readlane(T.f64, x, 17),
            rocdl.readlane(x, rocdl.readfirstlane(T.i32, lane + 40)),
            rocdl.readfirstlane(x.to(fx.Float16)).to(fx.Float64),
        ]

    a = torch.arange(3.0, 3 + LANES, dtype=torch.float64)
    got = wave(read, a, dtype=torch.float64)
    assert got[:, 0].tolist() == [3, 20, 43, 3]
    assert (got == got[:, :1]).all()


def test_ballot_of_a_part_of_the_wave(wave: Run) -> None:
    got = wave(lambda lane: [rocdl.ballot(lane % 3 == 1), rocdl.ballot(T.i64, lane > 61)], dtype=torch.int64)
    assert got[0].tolist() == [sum(1 << i for i in range(LANES) if i % 3 == 1)] * LANES
    assert got[1].tolist() == [-(1 << 62)] * LANES


def test_data_parallel_primitives(wave: Run) -> None:
    def moved(lane: Any) -> list[Any]:
        return [
            rocdl.update_dpp(T.i32, fx.Int32(-1), lane, 0x111, 0xF, 0xF, False),  # row_shr:1
            rocdl.update_dpp(fx.Int32(-1), lane, 0x111, 0xF, 0xF, True),
            rocdl.update_dpp(lane, lane, 0xB1),  # quad_perm [1, 0, 3, 2]
            rocdl.update_dpp(fx.Int32(-1), lane, 0x140, 0x5, 0x3, False),  # row_mirror in rows 0, 2 and banks 0, 1
        ]

    got = wave(moved, dtype=torch.int32)
    row_start = LANE % 16 == 0
    chosen = (LANE // 16 % 2 == 0) & (LANE % 16 < 8)
    assert torch.equal(got[0], torch.where(row_start, -1, LANE - 1).int())
    assert torch.equal(got[1], torch.where(row_start, 0, LANE - 1).int())
    assert torch.equal(got[2], (LANE ^ 1).int())
    assert torch.equal(got[3], torch.where(chosen, LANE ^ 15, -1).int())


def test_perm_b32_chooses_bytes_of_two_words(wave: Run) -> None:
    a = torch.randint(-(2**31), 2**31, (LANES,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    got = wave(lambda lane, A: [rocdl.perm_b32(A[lane], 0x44332211, 0x0C000706)], a, dtype=torch.int32)
    chosen = a.view(torch.uint8).reshape(LANES, 4).int()
    assert torch.equal(got[0], chosen[:, 2] | chosen[:, 3] << 8 | 0x11 << 16)


def test_wave_number(wave: Run) -> None:
    assert wave(lambda lane: [rocdl.wave_id(), rocdl.wavefrontsize()], dtype=torch.int32)[:, 5].tolist() == [0, 64]


def test_swaps_of_cdna4(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        x = fx.thread_idx.x
        rocdl.permlane16_swap(x, x)
        swapped = rocdl.permlane32_swap(x, x)
        A[x] = fx.Int32.of(fx_extract(swapped)).to(fx.Float32)

    assert "v_permlane32_swap_b32" in compiled(body, "gfx950")
    with pytest.raises(ArchError, match="permlane16_swap: gfx942 does not have it"):
        compiled(body, "gfx942")


def test_other_row_of_gfx12(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        A[fx.thread_idx.x] = rocdl.permlanex16(T.i32, 0, fx.thread_idx.x, 0x76543210, -1).to(fx.Float32)

    assert "v_permlanex16_b32" in compiled(body, "gfx1201")


def test_waves_of_32_lanes(compiled: Callable[..., str]) -> None:
    def sum_of(width: int) -> Callable[[Any], None]:
        def body(A: Any) -> None:
            A[fx.thread_idx.x] = A[fx.thread_idx.x].shuffle_xor(16, width).shuffle_up(3, 32)

        return body

    assert "ds_bpermute_b32" in compiled(sum_of(32), "gfx1201")
    with pytest.raises(ArgumentError, match="the width of shuffle: 64 is outside of 1 to 32"):
        compiled(sum_of(64), "gfx1201")


def fx_extract(structure: Any) -> Any:
    """The first member of an LLVM structure."""
    from mlir.dialects import llvm

    return llvm.extractvalue(fx.Int32.ir_type, structure, [0])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda A: rocdl.ds_bpermute(0, A[0].to(fx.Float16)), ArgumentError, "moves scalars of 32 bits, not f16"),
        (lambda A: rocdl.ds_bpermute(1.5, A[0]), ArgumentError, r"Int32\(1.5\): not an integer"),
        (lambda A: rocdl.ds_swizzle(A[0], fx.thread_idx.x), ArgumentError, "must be known at compile time"),
        (lambda A: rocdl.ds_swizzle(A[0], 1 << 16), ArgumentError, "65536 is outside of 0 to 65535"),
        (lambda A: rocdl.readfirstlane(T.i32, A[0]), ArgumentError, "readfirstlane of f32 is f32, not i32"),
        (lambda A: rocdl.readlane(A[0], A[1]), ArgumentError, "the lane of readlane: it takes i32, not f32"),
        (lambda A: rocdl.ballot(A[0]), ArgumentError, "it takes i1, not f32"),
        (lambda A: rocdl.update_dpp(A[0], A[1], 512), ArgumentError, "dpp_ctrl of update_dpp: 512 is outside"),
        (lambda A: rocdl.readfirstlane("x"), ArgumentError, "'x' is not a value of the program"),
        (lambda A: rocdl.permlanex16(0, 0, 0, 0), ArchError, "gfx942 does not have it"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], error: type[FlyError], says: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=says) as info:
        compiled(call)
    assert info.value.at.file == __file__
