"""Copy atoms of the tensor data mover: tiles in both directions, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import tdm_ops
from flydsl.simulator import checking
from tests.launchers import launcher_of

ROWS, COLUMNS, PAD = 8, 32, 4


def tile(tensor: fx.Tensor, row: Any, stride: Any, shape: Any = (ROWS, COLUMNS)) -> Any:
    """The part of a matrix that begins with a row, as a workgroup's tile."""
    start = fx.add_offset(fx.get_iter(tensor), fx.Int64(row) * stride)
    return fx.make_view(start, fx.make_layout(shape, (stride, 1)))


def view(tensor: fx.Tensor, shape: Any, stride: Any) -> Any:
    return fx.make_view(fx.get_iter(tensor), fx.make_layout(shape, stride))


@flyc.kernel
def transfer_kernel(x: fx.Tensor, y: fx.Tensor, rows: fx.Int32, stride: fx.Int64, steps: fx.Int32, waves: fx.Constexpr):
    storage = fx.SharedAllocator().allocate(fx.Array[fx.Int16, ROWS * (COLUMNS + PAD), 128]).peek()
    lds = fx.make_view(storage.ptr, fx.make_layout((ROWS, COLUMNS), (COLUMNS + PAD, 1)))
    row = fx.block_idx.x * ROWS
    source, target = tile(x, row, stride), tile(y, row, stride)
    padding = {"num_warps": waves, "pad_interval": COLUMNS, "pad_amount": PAD}
    load = fx.rocdl.make_tdm_atom(source, [rows - row, None], strides=[stride, None], **padding)
    store = fx.rocdl.cdna5.make_tdm_atom(target, [rows - row, None], **padding)
    for step in range(steps):
        fx.copy(load, source, lds, imm_offset=step * (COLUMNS * 2))
        tdm_ops.tensor_wait(0)
        fx.barrier()
        store = fx.rocdl.advance_tdm_atom(store, step * (COLUMNS * 2))
        fx.copy_atom_call(store, lds, target)
        tdm_ops.tensor_wait(0)
        fx.barrier()


@flyc.jit
def transfer(x: fx.Tensor, y: fx.Tensor, rows: fx.Int32, stride: fx.Int64, steps: fx.Int32, waves: fx.Constexpr):
    grid = (rows + ROWS - 1) // ROWS
    transfer_kernel(x, y, rows, stride, steps, waves).launch(grid=grid, block=32 * waves)


@pytest.mark.slow
@pytest.mark.parametrize("waves", [1, 4])
def test_tiles_there_and_back(waves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    x, y = torch.arange(20 * 64).view(20, 64).short(), torch.full((24, 64), -1).short()
    with checking() as found:
        transfer(x, y, 20, 64, 2, waves)
    assert not str(found)
    assert torch.equal(y[:20], x)
    assert (y[20:] == -1).all()


def test_a_row_of_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")

    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor, left: fx.Int32):
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 32, 128]).peek()
        row = view(x, 32, 1)
        fx.copy(fx.rocdl.make_tdm_atom(row, [left], num_warps=1), row, storage.view(fx.make_layout(32, 1)))
        tdm_ops.tensor_wait(0)
        y[fx.thread_idx.x] = storage[fx.thread_idx.x]

    x, y = torch.arange(32.0) + 1, torch.zeros(32)
    for left in (10, -1):  # elements behind a tensor's end are 0, and so are all of one that ends before its tile
        launcher_of(kernel, grid=1, block=32)(x, y, left)
        assert torch.equal(y, torch.where(torch.arange(32) < left, x, torch.zeros(32)))


@pytest.mark.parametrize(
    ("shape", "waves", "pad"),
    [
        ((4, 8, 16), 1, 0),
        ((4, 8, 16), 4, 0),
        ((4, 8, 16), 8, 0),
        ((2, 4, 3, 16), 1, 0),
        ((2, 4, 3, 16), 4, 8),
        ((2, 1, 4, 2, 16), 2, 0),
    ],
)
def test_boxes_of_three_to_five_dimensions(
    shape: tuple[int, ...], waves: int, pad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box is loaded from the middle of a larger tensor that ends within it, and stored into another one."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    size = math.prod(shape)
    around = tuple(extent + 2 for extent in shape)
    strides = torch.empty(around).stride()
    packed = tuple(torch.empty(shape).stride())
    lines = size // shape[-1]

    @flyc.kernel
    def kernel(x: fx.Tensor, held: fx.Tensor, y: fx.Tensor, left: fx.Int32):
        padded = fx.SharedAllocator().allocate(fx.Array[fx.Int16, lines * (shape[-1] + pad), 128]).peek()
        plain = fx.SharedAllocator().allocate(fx.Array[fx.Int16, size, 128]).peek()
        corner = fx.add_offset(fx.get_iter(x), sum(strides))
        box = fx.make_view(corner, fx.make_layout(shape, strides))
        extents = [left, *shape[1:-1], 10]
        atom = fx.rocdl.make_tdm_atom(box, extents, num_warps=waves, pad_interval=16 if pad else 0, pad_amount=pad)
        fx.copy(atom, box, padded.view(fx.make_layout(shape, packed)))
        tdm_ops.tensor_wait(0)
        fx.barrier()
        for i in range(fx.thread_idx.x, size, 32 * waves):
            plain[i] = padded[i // 16 * (16 + pad) + i % 16]
            held[i] = plain[i]
        fx.barrier()
        out = fx.make_view(fx.add_offset(fx.get_iter(y), sum(strides)), fx.make_layout(shape, strides))
        back = fx.rocdl.make_tdm_atom(out, [*shape[:-2], left, None], num_warps=waves)
        fx.copy(back, plain.view(fx.make_layout(shape, packed)), out)
        tdm_ops.tensor_wait(0)

    x = torch.arange(math.prod(around)).short().view(around)
    held, y = torch.zeros(shape, dtype=torch.int16), torch.full(around, -1).short()
    left = shape[0] - 1
    launcher_of(kernel, grid=1, block=32 * waves)(x, held.view(-1), y, left)
    inside = tuple(slice(1, extent + 1) for extent in shape)
    expected = x[inside].clone()
    expected[left:], expected[..., 10:] = 0, 0
    assert torch.equal(held, expected)
    stored = torch.full(around, -1).short()
    stored[inside][..., :left, :] = expected[..., :left, :]
    assert torch.equal(y, stored)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda g, lds, atom: fx.rocdl.make_tdm_atom(g, [1] * 6, num_warps=1), "unsupported: .* of 6 dimensions"),
        (lambda g, lds, atom: fx.rocdl.make_tdm_atom(g, [1, 1], [4], num_warps=1), "2 extents and 1 strides"),
        (lambda g, lds, atom: fx.copy(atom, g, g), "from global to global"),
        (
            lambda g, lds, atom: fx.copy(
                fx.rocdl.make_tdm_atom(g, [1] * 3, num_warps=4), view(g, (3, 2, 16), (64, 32, 1)), lds
            ),
            "a box of 3 x 2 x 16 does not divide among 4 waves",
        ),
        (lambda g, lds, atom: fx.copy(atom, g, lds, soffset=4), "no value 'soffset'"),
        (lambda g, lds, atom: fx.copy(atom, g, lds, pred=fx.thread_idx.x < 3), "with pred="),
        (lambda g, lds, atom: fx.rocdl.advance_tdm_atom(fx.UniversalCopy32b(), 4), "advance_tdm_atom takes"),
        (
            lambda g, lds, atom: fx.copy(atom, view(g, (8, 2, 16), (64, 32, 1)), lds),
            "of 2 dimensions takes no tile with the layout",
        ),
        (
            lambda g, lds, atom: fx.copy(atom, view(g, (8, 32), (1, 8)), lds),
            "whose inner stride is 8",
        ),
    ],
)  # fmt: skip
def test_wrong_use_is_an_error_at_the_line(wrong: Callable[..., Any], message: str) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Int16, ROWS * COLUMNS, 128]).peek()
        view = tile(x, 0, 64)
        lds = storage.view(fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1)))
        wrong(view, lds, fx.rocdl.make_tdm_atom(view, [ROWS, None], num_warps=1))

    with pytest.raises(ArgumentError, match=message) as caught:
        launcher_of(kernel, grid=1, block=32).lower(torch.zeros(8, 64).short(), arch="gfx1250")
    assert "test_tdm_atom.py" in str(caught.value)
