"""Coordinate tensors of shapes that are known at run time only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of

ROWS, COLUMNS = 10, 6


def tiles(where: Any) -> Any:
    return fx.zipped_divide(where, fx.make_tile(4, 2))


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (lambda where, m, i: where[i // 8, i % 8], lambda i: (i // 8, i % 8)),
        (lambda where, m, i: where[i], lambda i: (i % ROWS, i // ROWS)),
        (lambda where, m, i: where[None, i % 8][i // 8], lambda i: (i // 8, i % 8)),
        (lambda where, m, i: tiles(where)[None, (i // 4, i % 4)][5], lambda i: (i // 4 * 4 + 1, i % 4 * 2 + 1)),
        (lambda where, m, i: tiles(where)[5, i], lambda i: (i % 3 * 4 + 1, i // 3 * 2 + 1)),
        (
            lambda where, m, i: fx.make_view((m, 7), where.layout)[i // 8, i % 8],
            lambda i: (ROWS + i // 8, 7 + i % 8),
        ),
    ],
    ids=["element", "number", "slice", "of a tile", "of any tile", "from elsewhere"],
)
def test_elements(element: Callable[..., Any], expected: Callable[[int], tuple[int, int]]) -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor, m: fx.Int32, n: fx.Int32):
        i = fx.thread_idx.x
        row, column = element(fx.make_identity_tensor((m, n)), m, i)
        out[i, 0], out[i, 1] = row, column
        out[i, 2] = fx.elem_less((row, column), (m, n)).to(fx.Int32)

    out = torch.zeros(64, 3, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=64)(out, ROWS, COLUMNS)
    places = [expected(i) for i in range(64)]
    assert out.tolist() == [[row, column, int(row < ROWS and column < COLUMNS)] for row, column in places]


def test_a_predicated_copy_of_a_matrix_of_any_size() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor, m: fx.Int32, n: fx.Int32):
        atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
        copy = fx.make_tiled_copy_tv(
            atom, fx.make_ordered_layout((8, 4), (1, 0)), fx.make_ordered_layout((1, 2), (1, 0))
        )
        block = (None, None, fx.block_idx.x, fx.block_idx.y)
        parts = [
            copy.get_slice(fx.thread_idx.x).partition_S(fx.flat_divide(tensor, copy.tile_mn)[block])
            for tensor in (x, y, fx.make_identity_tensor((m, n)))
        ]
        where = parts[2][(0, None), None, None]
        inside = fx.make_fragment_like(where, fx.Boolean)
        for i in fx.range_constexpr(fx.size(inside.shape).unpack()):
            inside[i] = fx.elem_less(where[i], (m, n))
        held = fx.make_fragment_like(parts[0])
        fx.copy(atom, parts[0], held, pred=inside)
        fx.copy(atom, held, parts[1], pred=inside)

    x, y = torch.rand(19, 22), torch.zeros(19, 22)
    launcher_of(kernel, grid=(3, 3), block=32)(x, y, 13, 20)
    assert torch.equal(y[:13, :20], x[:13, :20])
    assert not y[13:].any()
    assert not y[:, 20:].any()


def test_modes_are_flat() -> None:
    @flyc.kernel
    def kernel(m: fx.Int32):
        fx.make_identity_tensor((m, (2, 3)))

    with pytest.raises(ArgumentError, match="takes a flat shape"):
        launcher_of(kernel, grid=1, block=1).lower(3, arch="gfx942")


@pytest.mark.parametrize(("lhs", "rhs"), [(fx, 2), ((1, 2), (fx, 3)), ("a", 3)])
def test_only_coordinates_are_compared(lhs: Any, rhs: Any) -> None:
    with pytest.raises(ArgumentError, match=r"elem_less of \w+ and \w+\n(.|\n)*compare integers, or tuples of them"):
        fx.elem_less(lhs, rhs)
