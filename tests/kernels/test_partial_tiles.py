"""Tiles that do not divide a tensor: the last of them reach past it, and a bound or a predicate keeps that out."""

from __future__ import annotations

import warnings

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import SimulatorError
from tests.launchers import launcher_of

LANES = 64
ROW = 100


@flyc.kernel
def by_buffer(A: fx.Tensor, C: fx.Tensor):
    """Both rows of 100 doubled, in tiles of 128 that two buffers bound: one more tile than the tensors have."""
    lane = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(atom, fx.make_layout((1, LANES), (1, 1)), fx.make_layout((1, 2), (1, 1)))
    parts = []
    for tensor in (A, C):
        tiles = fx.zipped_divide(fx.rocdl.make_buffer_tensor(tensor, max_size=False), fx.make_tile(1, 128))
        parts.append(copy.get_slice(lane).partition_S(tiles[None, (1, 0)]))
    registers = fx.make_fragment_like(parts[0])
    fx.copy(atom, parts[0], registers)
    registers.store(registers.load() * 2.0)
    fx.copy(atom, registers, parts[1])


@pytest.mark.filterwarnings("ignore:tiles that do not divide")
def test_the_bound_of_a_buffer_keeps_the_rest_out() -> None:
    a = torch.randn(2, ROW, generator=torch.manual_seed(0))
    out = torch.zeros(2, ROW)
    launch = launcher_of(by_buffer, grid=1, block=LANES)
    launch(a, out)
    assert torch.equal(out[1], a[1] * 2)
    assert (out[0] == 0).all()


@flyc.kernel
def by_predicate(A: fx.Tensor, C: fx.Tensor):
    lane = fx.thread_idx.x
    for part in fx.range_constexpr(2):
        row = [fx.zipped_divide(fx.make_view(fx.get_iter(t), fx.make_layout(ROW, 1)), LANES) for t in (A, C)]
        if part * LANES + lane < ROW:
            row[1][lane, part] = row[0][lane, part] * 2.0


def test_a_predicate_keeps_the_rest_out_and_a_warning_asks_for_one() -> None:
    a, out = torch.randn(ROW, generator=torch.manual_seed(0)), torch.zeros(ROW)
    with pytest.warns(UserWarning, match=r"tiles that do not divide 100:1: the last of them reach past it") as said:
        launcher_of(by_predicate, grid=1, block=LANES)(a, out)
    assert {warning.filename for warning in said} == {__file__}
    assert torch.equal(out, a * 2)


def test_what_nothing_keeps_out_is_an_error_of_the_simulator() -> None:
    @flyc.kernel
    def kernel(C: fx.Tensor):
        tiles = fx.zipped_divide(fx.make_view(fx.get_iter(C), fx.make_layout(ROW, 1)), LANES)
        tiles[fx.thread_idx.x, 1] = 1.0

    with pytest.warns(UserWarning, match="do not divide"), pytest.raises(SimulatorError, match="outside"):
        launcher_of(kernel, grid=1, block=LANES)(torch.zeros(ROW))


def test_a_copy_in_tiles_that_are_larger_than_the_tensor_warns() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        copy = fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), fx.make_layout((8, 8)), fx.make_layout((1, 1))
        )
        four = fx.make_view(fx.get_iter(A), fx.make_layout((4, 4), (4, 1)))
        copy.get_slice(fx.thread_idx.x).partition_S(four)

    with pytest.warns(UserWarning, match=r"do not divide \(4,4\):\(4,1\)"):
        launcher_of(kernel, grid=1, block=LANES)(torch.zeros(16))


def test_tiles_that_divide_say_nothing() -> None:
    @flyc.kernel
    def kernel(C: fx.Tensor):
        tiles = fx.zipped_divide(fx.make_view(fx.get_iter(C), fx.make_layout(128, 1)), LANES)
        tiles[fx.thread_idx.x, 1] = 1.0

    out = torch.zeros(128)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launcher_of(kernel, grid=1, block=LANES)(out)
    assert out.tolist() == [0.0] * 64 + [1.0] * 64
