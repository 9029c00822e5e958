"""Members of layouts, tuples, pointers, tensors and atoms under FlyDSL's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import rocdl, vector
from flydsl.expr.typing import T
from tests.launchers import launcher_of

LANES = 64


def run(body: Callable[..., Any], a: torch.Tensor, out: torch.Tensor, n: int = 8) -> torch.Tensor:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        body(A, Out, n)

    launch = launcher_of(kernel, grid=1, block=LANES)
    launch(a, out, n)
    return out


def test_layouts() -> None:
    layout = fx.make_layout((4, (2, 8)), (2, (1, 8)))
    assert (layout.rank, layout.depth, layout.is_leaf) == (2, 2, False)
    assert (layout.is_static, layout.is_static_shape, layout.is_static_stride) == (True, True, True)
    assert (fx.make_layout(8).is_leaf, fx.make_layout(8).rank, fx.make_layout(8).depth) == (True, 1, 0)
    assert layout.get_hier_coord(13) == fx.idx2crd(13, layout) == (2, (1, 1))
    assert layout.get_flat_coord(13) == fx.get_flat_coord(13, layout)
    assert layout.get_1d_coord(13) == fx.get_1d_coord(13, layout)
    assert (fx.make_tile(4, 8).rank, fx.make_tile(4, 8).unpack()) == (2, (4, 8))
    shape = fx.make_shape(4, (2, 8))
    assert (shape.rank, shape.depth, shape.is_leaf, shape.is_static) == (2, 2, False, True)
    assert shape.to_py_value() == (4, (2, 8))


def test_coshape_and_coprofile() -> None:
    layout = fx.make_layout((4, 8), (1, 16))
    coordinates = fx.make_layout((4, 8), (2 * fx.E(0), fx.E(1)))
    assert (fx.coshape(layout), fx.coprofile(layout)) == (116, 0)
    assert (fx.coshape(coordinates), fx.coprofile(coordinates)) == ((7, 8), (0, 0))


def test_layouts_with_runtime_values() -> None:
    def body(A: Any, Out: Any, n: Any) -> None:
        layout = fx.make_layout((4, n), (1, 4))
        assert (layout.rank, layout.depth, layout.is_leaf) == (2, 1, False)
        assert (layout.is_static, layout.is_static_shape, layout.is_static_stride) == (False, False, True)
        i = fx.thread_idx.x
        coordinate = fx.make_int_tuple((i, 4))
        assert (coordinate.rank, coordinate.is_static, coordinate.is_leaf) == (2, False, False)
        number, four = coordinate.to_py_value()
        x, y = layout.get_hier_coord(i)
        Out[0, i] = x + 100 * y
        Out[1, i] = number * four

    out = run(body, torch.zeros(1), torch.zeros(2, LANES, dtype=torch.int32), 16)
    i = torch.arange(LANES, dtype=torch.int32)
    assert torch.equal(out, torch.stack([i % 4 + 100 * (i // 4), i * 4]))


def test_a_static_layout_takes_runtime_coordinates() -> None:
    layout = fx.make_layout((8, 8), (8, 1))

    def body(A: Any, Out: Any, n: Any) -> None:
        i = fx.thread_idx.x
        Out[0, i] = layout(i)
        Out[1, i] = layout(i % 8, 3)
        Out[2, i] = layout((i % 8, i // 8))
        x, y = layout.get_flat_coord(i)
        Out[3, i] = 10 * x + y
        assert fx.size(layout[None, i]) == 8

    out = run(body, torch.zeros(1), torch.zeros(4, LANES, dtype=torch.int32))
    i = torch.arange(LANES, dtype=torch.int32)
    whole = i % 8 * 8 + i // 8
    assert torch.equal(out, torch.stack([whole, i % 8 * 8 + 3, whole, 10 * (i // 8) + i % 8]))


def test_pointers_and_tensors() -> None:
    def body(A: Any, Out: Any, n: Any) -> None:
        start = fx.get_iter(A)
        assert (start.value_type, A.value_type, A.address_space) == (fx.Float32, fx.Float32, fx.AddressSpace.Global)
        assert (A.leading_dim, A.alignment) == (0, 4)
        assert fx.is_generic_address_space(start.address_space, fx.AddressSpace.Global)
        assert not fx.is_generic_address_space(start.address_space, fx.AddressSpace.Shared)
        assert fx.is_target_address_space("#fly_rocdl.buffer_desc", fx.AddressSpace.BufferDesc)
        i = fx.thread_idx.x
        ahead = 4 + start
        Out[i] = (ahead - 3)[i]
        rows = fx.make_rmem_tensor((2, 3), fx.Float32)
        for j in fx.range_constexpr(3):
            rows[None, j] = fx.Vector.filled(2, float(j), fx.Float32)
        Out[64 + i] = rows[1, 2] + rows[0, 1]

    a = torch.randn(72)
    out = run(body, a, torch.zeros(128))
    assert torch.equal(out, torch.cat([a[1:65], torch.full((64,), 3.0)]))


def test_atoms() -> None:
    copy = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    assert (copy.val_bits, fx.size(copy.thr_layout), fx.size(copy.thr_id)) == (32, 1, 1)
    assert [fx.size(layout) for layout in (copy.layout_src_tv, copy.layout_dst_tv, copy.layout_ref_tv)] == [4] * 3
    tiled = fx.make_tiled_copy_tv(copy, fx.make_layout((8, 8), (8, 1)), fx.make_layout((1, 4), (1, 1)))
    assert tiled.layout_tv_tiled == tiled.layout_src_tv_tiled == tiled.layout_dst_tv_tiled == tiled.tiled_tv_layout
    atom = fx.make_mma_atom(rocdl.MFMA(16, 16, 4, fx.Float32))
    assert (atom.thr_id, atom.layout_A_tv, atom.layout_C_tv) == (atom.thr_layout, atom.tv_layout_A, atom.tv_layout_C)
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 1, 1), (1, 0, 0)))
    assert mma.mma_atom == atom
    assert (str(mma.atom_layout), mma.permutation_mnk) == ("(2,1,1):(1,0,0)", None)
    assert mma.tv_layout_A_tiled == mma.tiled_tv_layout_A

    def body(A: Any, Out: Any, n: Any) -> None:
        tile = fx.make_view(fx.get_iter(A), fx.make_layout((32, 4), (4, 1)))
        fragments = [fx.make_tiled_mma(atom).make_fragment_A(tile, stages=s) for s in (None, 2)]
        assert fx.size(fragments[1]) == 2 * fx.size(fragments[0]) / 1
        Out[0] = 1.0

    run(body, torch.zeros(128), torch.zeros(1))


def test_known_numbers_are_found_and_compared_like_numbers() -> None:
    assert {3: "three", 0.5: "half"}[fx.Int32(3)] == "three"
    assert fx.Float32(0.5) == 0.5
    assert fx.Float32(0.5) < 1
    assert fx.Float32(0.1) != 0.2
    assert fx.Float32(float("nan")) != fx.Float32(float("nan"))
    assert fx.make_tile(128, (8, 4)).unpack() == (128, (8, 4))
    kind = fx.MemRefType.get(fx.BFloat16, fx.LayoutType.get(1, 1), fx.AddressSpace.Register)
    assert kind.address_space == fx.AddressSpace.Register == "register"
    assert kind.address_space == int(fx.AddressSpace.Register) != int(fx.AddressSpace.Shared)


def test_number_types() -> None:
    assert str(fx.Float16.numpy_dtype) == "float16"
    assert (str(fx.Uint8.numpy_dtype), fx.BFloat16.numpy_dtype) == ("uint8", None)
    assert (fx.Int32.is_integer, fx.Float32.is_integer, fx.Int8.zero) == (True, False, 0)
    assert (fx.Int16.width, fx.Int16(3).width, fx.Float64(1.0).width) == (16, 16, 64)


def test_operations_of_vectors_by_name() -> None:
    def body(A: Any, Out: Any, n: Any) -> None:
        i = fx.thread_idx.x
        four = fx.Vector.from_elements([A[i] + float(j) for j in range(4)])
        halves = [vector.extract_strided_slice(T.f32x2, four, [start], [2], [1]) for start in (0, 2)]
        pairs = vector.interleave(*halves)
        steps = vector.step(T.vec(4, T.index))
        Out[i] = (pairs * fx.Vector(steps).to(fx.Int32).to(fx.Float32)).reduce("add")

    a = torch.arange(64.0)
    parts = torch.stack([a, a + 2, a + 1, a + 3])
    assert torch.equal(run(body, a, torch.zeros(64)), (parts * torch.arange(4.0)[:, None]).sum(0))


@pytest.mark.parametrize("name", ["shuffle_xor", "lane_id", "maximumf", "shrui", "is_specializable_struct_type"])
def test_names_at_the_top(name: str) -> None:
    assert callable(getattr(fx, name))


def test_raw_values_and_back_in_lists_and_leaves(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.Int32(fx.thread_idx.x)
        raw = fx.as_ir_value((i, [1.5, fx.Int64(2)]))
        assert [str(raw[0].type), *(str(part.type) for part in raw[1])] == ["i32", "f32", "i64"]
        assert fx.as_ir_value(None) is None
        assert isinstance(fx.as_ir_value(fx.Int32(3), keep_static=True), fx.Int32)
        number, rest = fx.as_dsl_value(raw, [fx.Uint32, [fx.Float32, fx.Int64(0)]])
        assert (type(number), type(rest[0]), type(rest[1])) == (fx.Uint32, fx.Float32, fx.Int64)
        leaves = fx.get_leaves(fx.make_int_tuple((i, (4, i))), dynamic_only=True)
        assert len(leaves) == 2

    trace(body)
    assert fx.Numeric.promote(fx.Int8, fx.Uint8) is fx.Uint8
    assert fx.Numeric.promote(fx.Int64, fx.Float16) is fx.Float64
    for wrong in ("Int8", 3, int):
        with pytest.raises(ArgumentError, match="takes scalar types"):
            fx.Numeric.promote(fx.Int8, wrong)
