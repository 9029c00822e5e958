"""Lanes meet where the program says so, though the same lines stand elsewhere, too."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def take_pieces_kernel(pieces: fx.Tensor, count: fx.Tensor, n: fx.Int32):
    """A workgroup adds up pieces that it takes from a counter: before the loop and at its end with the same lines."""
    taken = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 1]).peek()
    if fx.thread_idx.x == 0:
        taken[0] = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))
    fx.gpu.barrier()
    piece = taken[0]
    fx.gpu.barrier()
    while piece < n:
        pieces[piece * fx.block_dim.x + fx.thread_idx.x] = piece + fx.thread_idx.x
        if fx.thread_idx.x == 0:
            taken[0] = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))
        fx.gpu.barrier()
        piece = taken[0]
        fx.gpu.barrier()


@flyc.jit
def take_pieces(pieces: fx.Tensor, count: fx.Tensor, n: fx.Int32):
    take_pieces_kernel(pieces, count, n).launch(grid=3, block=128)


def test_barriers_before_a_loop_and_in_it() -> None:
    pieces, count = torch.full((20 * 128,), -1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    take_pieces(pieces, count, 20)
    assert torch.equal(pieces.view(20, 128), (torch.arange(20)[:, None] + torch.arange(128)).int())
    assert count.item() == 20 + 3


@flyc.kernel
def ballots_kernel(found: fx.Tensor, first: fx.Int32):
    lane = fx.Int32(fx.thread_idx.x)
    votes = fx.Int64(0)
    if lane < first:
        votes = fx.Int64(fx.rocdl.ballot(fx.T.i64(), lane % 2 == 0))
    else:
        votes = fx.Int64(fx.rocdl.ballot(fx.T.i64(), lane % 2 == 0))
    found[lane] = votes


@flyc.jit
def ballots(found: fx.Tensor, first: fx.Int32):
    ballots_kernel(found, first).launch(grid=1, block=64)


@pytest.mark.parametrize("first", [0, 5, 32])
def test_ballots_of_either_side_of_a_branch(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    found = torch.zeros(64, dtype=torch.int64)
    ballots(found, first)
    votes = [sum(1 << lane for lane in lanes if lane % 2 == 0) for lanes in (range(first), range(first, 64))]
    assert found.tolist() == [votes[0]] * first + [votes[1]] * (64 - first)
