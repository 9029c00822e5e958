"""Gather and scatter, and coordinate tensors as the algebra divides them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of

ROWS, COLUMNS = 4, 16


def offsets_of(tid: Any, idx: Any, like: Any, thr_copy: Any) -> Any:
    """The offset of each call of the thread: its row's index times the row's length, plus its column."""
    rows, columns = like.shape.unpack()
    of_rows = fx.make_view(fx.get_iter(idx), fx.make_layout((rows, columns), (1, 0)))
    of_columns = fx.make_view(0, fx.make_layout((rows, columns), (0, 1)))
    row = thr_copy.partition_S(fx.flat_divide(of_rows, (ROWS, COLUMNS))[None, None, 0, fx.block_idx.x])
    column = thr_copy.partition_S(fx.flat_divide(of_columns, (ROWS, COLUMNS))[None, None, 0, fx.block_idx.x])
    first = row[(0, None), None, None]
    held = fx.make_fragment_like(first)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Int32), first, held)
    held.store(held.load() * columns + column[(0, None), None, None].load())
    return held


@flyc.kernel
def move_kernel(table: fx.Tensor, idx: fx.Tensor, out: fx.Tensor, back: fx.Tensor, masked: fx.Tensor):
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    layouts = fx.make_layout((ROWS, COLUMNS // 2), (COLUMNS // 2, 1)), fx.make_layout((1, 2), (1, 1))
    thr_copy = fx.make_tiled_copy_tv(atom, *layouts).get_slice(tid)
    offsets = offsets_of(tid, idx, out, thr_copy)
    mine = thr_copy.partition_D(fx.flat_divide(out, (ROWS, COLUMNS))[None, None, 0, fx.block_idx.x])
    held = fx.make_fragment_like(mine)
    fx.gather(atom, fx.get_iter(table), offsets, held)
    fx.copy(atom, held, mine)
    fx.scatter(atom, held, fx.get_iter(back), offsets)
    even = fx.make_fragment_like(offsets, fx.Boolean)
    even.fill(tid % 2 == 0)
    fx.scatter(atom, held, fx.get_iter(masked), offsets, pred=even)


@flyc.jit
def move(table: fx.Tensor, idx: fx.Tensor, out: fx.Tensor, back: fx.Tensor, masked: fx.Tensor):
    _, columns = out.shape.unpack()
    move_kernel(table, idx, out, back, masked).launch(grid=columns // COLUMNS, block=ROWS * COLUMNS // 2)


def test_rows_are_gathered_and_scattered() -> None:
    table, idx = torch.randn(9, 32), torch.tensor([7, 0, 3, 8], dtype=torch.int32)
    out, back, masked = torch.zeros(4, 32), torch.zeros(9, 32), torch.zeros(9, 32)
    move(table, idx, out, back, masked)
    assert torch.equal(out, table[idx.long()])
    expected = torch.zeros(9, 32)
    expected[idx.long()] = table[idx.long()]
    assert torch.equal(back, expected)
    pairs = expected.view(9, 16, 2).clone()
    pairs[:, 1::2] = 0
    assert torch.equal(masked, pairs.view(9, 32))


def test_shapes_that_do_not_fit(trace: Callable[..., Any]) -> None:
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)

    def gather(A: Any, offsets: Any, data: Any) -> None:
        fx.gather(atom, fx.get_iter(A), fx.make_rmem_tensor(offsets, fx.Int32), fx.make_rmem_tensor(data, fx.Float32))

    with pytest.raises(ArgumentError, match=r"offsets for \(2,\) calls, data of \(4,\)"):
        trace(lambda A, Out: gather(A, 2, ((1, 4),)))
    with pytest.raises(ArgumentError, match=r"data of shape \(\(values, calls\), rest...\)"):
        trace(lambda A, Out: gather(A, 4, 4))
    with pytest.raises(ArgumentError, match="takes a pointer"):
        trace(lambda A, Out: fx.gather(atom, A, A, A))


def test_coordinate_tensors_are_divided_like_tensors() -> None:
    coordinates = fx.make_identity_tensor((64, 32))
    tiles = fx.zipped_divide(coordinates, fx.make_tile(8, 4))
    assert fx.get_shape(tiles) == ((8, 4), (8, 8))
    assert fx.size(tiles) == 2048
    assert fx.rank(tiles) == 2
    assert fx.slice(tiles, (None, (2, 3)))[1, 2] == (17, 14)
    assert fx.flat_divide(coordinates, (8, 4))[None, None, 2, 3][1, 2] == (17, 14)
    assert fx.make_view(5, fx.make_layout((2, 3), (10, 1)))[1, None][2] == 17


@flyc.kernel
def tile_kernel(A: fx.Tensor, out: fx.Tensor, rows: fx.Int32, columns: fx.Int32, whole: fx.Constexpr[bool]):
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    thr_copy = fx.make_tiled_copy_tv(atom, fx.make_layout((4, 8), (8, 1)), fx.make_layout((2, 1), (1, 1))).get_slice(
        fx.thread_idx.x
    )
    tiles = [fx.flat_divide(tensor, (8, 16))[None, None, 0, 0] for tensor in (A, out)]
    from_, to = thr_copy.partition_S(tiles[0]), thr_copy.partition_D(tiles[1])
    if fx.const_expr(whole):
        at = thr_copy.partition_S(fx.make_identity_tensor((8, 16)))[(0, None), None, None]
        inside = fx.make_fragment_like(at, dtype=fx.Boolean)
        for i in fx.range_constexpr(fx.size(inside.shape).unpack()):
            inside[i] = fx.elem_less(at[i], (rows, columns))
    else:
        row = thr_copy.partition_S(fx.make_view(0, fx.make_layout((8, 16), (1, 0))))[(0, None), None, None]
        inside = fx.make_fragment_like(row, dtype=fx.Boolean)
        for i in fx.range_constexpr(fx.size(inside.shape).unpack()):
            inside[i] = fx.get_scalar(row[i]) < rows
    fx.copy(atom, from_, to, pred=inside)


tile = launcher_of(tile_kernel, grid=1, block=32)


@pytest.mark.parametrize("whole", [True, False])
def test_predicates_have_the_form_of_the_coordinates(whole: bool) -> None:
    A, out, expected = torch.randn(8, 16), torch.zeros(8, 16), torch.zeros(8, 16)
    expected[:5, : 11 if whole else 16] = A[:5, : 11 if whole else 16]
    tile(A, out, 5, 11, whole)
    assert torch.equal(out, expected)


def test_a_coordinate_has_no_element_type() -> None:
    with pytest.raises(TypeError, match="its elements are coordinates"):
        fx.make_identity_tensor((4, 8)).element_type  # noqa: B018
