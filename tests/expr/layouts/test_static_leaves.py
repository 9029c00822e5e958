"""Numbers of the layout algebra are int tuples, too: FlyDSL's programs ask them for their integer and their rank."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from tests.launchers import launcher_of


def test_results_of_the_algebra_are_integers_and_leaves() -> None:
    layout = fx.make_layout((4, (2, 8)), (2, (1, 8)))
    for leaf, number in (
        (fx.size(layout), 64),
        (fx.crd2idx((1, (1, 1)), layout), 11),
        (layout.shape[1][0], 2),
        (layout.stride[1][1], 8),
        (fx.cosize(layout), 64),
        (fx.make_int_tuple(5), 5),
        (fx.get(layout.shape, 0), 4),
    ):
        assert leaf == number
        assert leaf.get_static_leaf_int == leaf.to_py_value() == leaf.unpack() == number
        assert leaf.is_static
        assert leaf.is_leaf
        assert (leaf.rank, leaf.depth) == (1, 0)
        assert type(leaf + 1) is int
        assert repr(leaf) == str(number)


def test_tuples_have_the_same_members() -> None:
    shape = fx.make_layout((4, (2, 8))).shape
    assert shape.to_py_value() == (4, (2, 8))
    assert (shape.rank, shape.depth) == (2, 2)
    assert shape[1].to_py_value() == (2, 8)
    assert str(shape) == "(4,(2,8))"
    with pytest.raises(FlyError, match="a single number"):
        _ = shape.get_static_leaf_int
    composed = fx.make_composed_layout(fx.Swizzle(2, 0, 2), fx.make_layout((4, 4), (4, 1)))
    assert composed.stride == (4, 1)
    assert composed.is_static
    assert composed.is_static_inner
    assert composed.is_static_offset


def test_a_tile_of_one_mode_unpacks_to_it() -> None:
    assert fx.make_tile(256).unpack() == 256
    assert fx.make_tile(128, 4).unpack() == (128, 4)


def test_leaves_are_modes_and_indices_like_any_integer() -> None:
    layout = fx.make_layout((2, 4, 8))
    two = layout.shape[0]
    assert fx.take(layout, 0, two) == fx.make_layout((2, 4))
    assert fx.Swizzle(two, 0, two)(layout.shape[1]) == fx.Swizzle(2, 0, 2)(4)
    assert two * fx.E(0) == 2 * fx.E(0)
    assert fx.make_layout(two, two) == fx.make_layout(2, 2)


@flyc.kernel
def extents_kernel(x: fx.Tensor, out: fx.Tensor):
    fragment = fx.make_rmem_tensor((2, 4), fx.Float16)
    rows = fx.Tensor(fx.make_view(fx.make_int_tuple(0), fx.make_layout((128, 64), (1, 0))))
    out[0] = fx.size(x.shape).to_py_value()
    out[1] = fx.size(fragment.shape).get_static_leaf_int * fragment.dtype.width // 64
    out[2] = fx.get_scalar(rows[6, None][0].get_static_leaf_int)
    out[3] = fx.get_scalar(rows[fx.thread_idx.x + 9, None][0])
    out[4] = fx.size(x.shape).unpack() + x.shape[0].to_py_value()


extents = launcher_of(extents_kernel, grid=1, block=1)


def test_extents_of_run_time_are_values() -> None:
    out = torch.zeros(5, dtype=torch.int32)
    extents(torch.zeros(77), out)
    assert out.tolist() == [77, 2, 6, 9, 154]


def test_an_extent_of_run_time_has_no_integer() -> None:
    @flyc.kernel
    def wrong(x: fx.Tensor):
        fx.size(x.shape).get_static_leaf_int  # noqa: B018

    launch = launcher_of(wrong, grid=1, block=1)
    with pytest.raises(FlyError, match="not a Python integer") as raised:
        launch(torch.zeros(3))
    assert raised.value.at.file == __file__


def test_coordinate_tensors_have_their_type_and_origin() -> None:
    coordinates = fx.make_identity_tensor((4, 8))
    assert isinstance(coordinates.type, fx.CoordTensorType)
    assert coordinates.type == fx.CoordTensorType.get((0, 0), coordinates.layout)
    assert fx.get_iter(coordinates).to_py_value() == (0, 0)
    assert fx.get_layout(coordinates) == coordinates.layout
    assert coordinates[3, 5][1].get_static_leaf_int == 5
