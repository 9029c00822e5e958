"""Tensors of every layout, partitioned and indexed, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, FlyError, LayoutError, TraceError
from flydsl.expr import buffer_ops
from tests.launchers import launcher_of
from tests.messages import raises_saying

ROWS, COLUMNS = 24, 16


def views() -> dict[str, torch.Tensor]:
    base = torch.arange(4 * ROWS * COLUMNS, dtype=torch.float32)
    return {
        "row-major": base[: ROWS * COLUMNS].reshape(ROWS, COLUMNS),
        "column-major": base[: ROWS * COLUMNS].reshape(COLUMNS, ROWS).T,
        "sliced": base[: 2 * ROWS * COLUMNS].reshape(ROWS, 2 * COLUMNS)[:, 5 : 5 + COLUMNS],
        "every second row": base[: 2 * ROWS * COLUMNS].reshape(2 * ROWS, COLUMNS)[1::2],
        "every second column": base[: 2 * ROWS * COLUMNS].reshape(ROWS, 2 * COLUMNS)[:, ::2],
    }


@pytest.mark.parametrize("view", views())
def test_scalar_access(view: str) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i, j = fx.thread_idx.x, fx.block_idx.x
        Out[i, j] = A[i, j] + fx.memref_load(A, (i, 0))

    launch = launcher_of(kernel, grid=COLUMNS, block=ROWS)
    a, out = views()[view], torch.zeros(ROWS, COLUMNS)
    launch(a, out)
    assert torch.equal(out, a + a[:, :1])


@pytest.mark.parametrize("view", views())
@pytest.mark.parametrize("divide", ["zipped_divide", "logical_divide"])
def test_tiles(view: str, divide: str) -> None:
    """Block b copies tile b, counted with the row tiles fastest; thread t the t-th element of it."""
    rows, columns = 8, 4

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        b, t = fx.block_idx.x, fx.thread_idx.x
        if_zipped = divide == "zipped_divide"
        tiles = [getattr(fx, divide)(T, fx.make_tile(rows, columns)) for T in (A, Out)]
        down = ROWS // rows
        if if_zipped:
            source, target = (fx.slice(T, (None, b)) for T in tiles)
        else:
            source, target = (T[(None, b % down), (None, b // down)] for T in tiles)
        target[t % rows, t // rows] = source[t % rows, t // rows]

    launch = launcher_of(kernel, grid=(ROWS // rows) * (COLUMNS // columns), block=rows * columns)
    a, out = views()[view], torch.zeros(ROWS, COLUMNS)
    launch(a, out)
    assert torch.equal(out, a)


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_vector_copies_of_rows(bits: int) -> None:
    count = bits // 32

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i, j = fx.thread_idx.x, fx.block_idx.x
        atom = fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32)
        r = fx.make_rmem_tensor(count, fx.Float32)
        source, target = (fx.logical_divide(fx.slice(T, (i, None)), fx.make_layout(count, 1)) for T in (A, Out))
        fx.copy_atom_call(atom, source[None, j], r)
        r.store(r.load() * 2.0)
        fx.copy_atom_call(atom, r, target[None, j])

    launch = launcher_of(kernel, grid=COLUMNS // count, block=ROWS)
    a, out = views()["row-major"], torch.zeros(ROWS, COLUMNS)
    launch(a, out)
    assert torch.equal(out, 2 * a)


def test_shapes_strides_and_the_algebra_on_runtime_values() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        rows, columns = A.shape
        layout = fx.make_layout((rows, columns), (columns, 1))
        t = fx.thread_idx.x
        values = [
            A.shape[0], fx.get(A.shape, 1), fx.get(fx.get_shape(A), 0), fx.size(A), A.stride[0], fx.cosize(A.layout),
            fx.crd2idx((t, 3), layout), fx.get(fx.idx2crd(t, layout), 1), fx.ceil_div(rows, 7), fx.size(A.shape),
            fx.get_1d_coord(t, fx.make_layout((4, 16), (16, 1))), fx.apply_swizzle(t, fx.Swizzle(2, 0, 3)),
            fx.crd2idx((t, 1), fx.make_layout((rows, columns))), fx.int_tuple_product(A.shape), len(A.shape),
            fx.get(fx.int_tuple_add(A.shape, (1, 2)), 1), fx.rank(A), fx.depth(A),
        ]  # fmt: skip
        for j, value in enumerate(values):
            Out[t, j] = fx.Int32(value)

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.zeros(ROWS, COLUMNS), torch.zeros(64, 18, dtype=torch.int32)
    launch(a, out)
    for t in range(64):
        coordinate = fx.get_1d_coord(t, fx.make_layout((4, 16), (16, 1)))
        expected = [
            ROWS, COLUMNS, ROWS, ROWS * COLUMNS, COLUMNS, ROWS * COLUMNS, t * COLUMNS + 3, t % COLUMNS, 4,
            ROWS * COLUMNS, coordinate, t ^ ((t & 24) >> 3), t + ROWS, ROWS * COLUMNS, 2, COLUMNS + 2, 2, 1,
        ]  # fmt: skip
        assert out[t].tolist() == expected


def test_static_operands_compute_at_once() -> None:
    assert str(fx.logical_divide(fx.make_layout(16, 1), fx.make_layout(4, 1))) == "(4,4):(1,4)"
    assert str(fx.make_ordered_layout((4, 8), order=(1, 0))) == "(4,8):(8,1)"
    assert fx.dice((2, (3, 4)), (None, (1, None))) == 3
    assert str(fx.make_composed_layout(fx.Swizzle(3, 3, 3), 0, fx.make_layout((8, 64), (64, 1)))).startswith("S<3,3,3>")
    assert fx.has_none((1, (None, 2)))
    assert fx.shape_div((8, 6), 4) == (2, 6)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (
            lambda A, Out: fx.make_rmem_tensor(fx.make_layout((4, 2), (1, 0)), fx.Float32).fill(0.0),
            LayoutError,
            "several of its elements are at one place",
        ),
        (lambda A, Out: fx.make_rmem_tensor(4, fx.Float32)[4], LayoutError, "index 4 is outside"),
        (lambda A, Out: fx.make_rmem_tensor(4, fx.Float32)[-1], LayoutError, "index -1 is outside"),
        (lambda A, Out: A[0, 0, 0], ArgumentError, "3 indices of a tensor with 2 modes"),
        (lambda A, Out: A[1.5, 0], ArgumentError, "must consist of integers, got 1.5"),
        (lambda A, Out: Out.__setitem__(0, A[0, 0]), ArgumentError, "a store of f32 to a tensor of i32"),
        (lambda A, Out: A.__setitem__((None, 0), 1.0), ArgumentError, "takes a vector"),
        (lambda A, Out: list(A), TraceError, "iteration over a tensor"),
        (lambda A, Out: A.load(), LayoutError, "its layout is dynamic"),
        (lambda A, Out: fx.make_rmem_tensor(4, fx.Int4), LayoutError, "do not fill words"),
        (lambda A, Out: fx.make_rmem_tensor(4, float), ArgumentError, "not a scalar type"),
        (lambda A, Out: fx.make_rmem_tensor(4, fx.Float32).store(1.0), ArgumentError, "takes a vector"),
        (lambda A, Out: fx.make_rmem_tensor(4, fx.Float32).load()[4], ArgumentError, "element 4 of a vector of 4"),
        (lambda A, Out: fx.make_copy_atom(fx.UniversalCopy(24), fx.Float32), ArgumentError, "24 bits"),
        (lambda A, Out: fx.make_copy_atom(fx.UniversalCopy32b, fx.Float32), ArgumentError, "takes a copy instruction"),
        (lambda A, Out: fx.make_view("A", fx.make_layout(4, 1)), ArgumentError, "takes a pointer"),
        (lambda A, Out: fx.select(A, [fx.thread_idx.x]), TraceError, "not a Python integer"),
        (lambda A, Out: fx.logical_divide(A), ArgumentError, "missing a required argument"),
        (lambda A, Out: fx.const_expr(Out[0]), TraceError, "runtime value"),
        (
            lambda A, Out: fx.make_identity_tensor((4, 4)).moved(fx.Float32),
            ArgumentError,
            "a coordinate is moved by a coordinate",
        ),
        (
            lambda A, Out: fx.make_identity_tensor((4, 4)).moved(fx.Layout(4, 1)),
            ArgumentError,
            "a coordinate is moved by a coordinate",
        ),
        (lambda A, Out: fx.ThrMma((4,), 0), ArgumentError, "takes a tiled MMA"),
        (lambda A, Out: fx.ThrCopy((4,), 0), ArgumentError, "takes a tiled copy"),
        (lambda A, Out: buffer_ops.extract_base_index(A, address_space="1"), ArgumentError, "address_space of"),
        (lambda A, Out: fx.range_constexpr(Out[0]), TraceError, "cannot be unrolled"),
        (lambda A, Out: fx.make_layout(Out[0], 2**80), FlyError, "64 bits"),
    ],
)
def test_errors_point_at_the_users_line(trace: Callable[..., Any], use: Any, error: Any, message: str) -> None:
    with raises_saying(error, message) as caught:
        trace(use)
    assert caught.value.at.file == __file__


WIDE = fx.PointerType.get(fx.Int32, fx.AddressSpace.Shared, 16)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda A, Out: fx.recast_iter(WIDE, fx.get_iter(A)), "the address space stays"),
        (lambda A, Out: fx.make_rmem_tensor(1 << 40, fx.Float32), "takes 4398046511104 bytes of registers"),
        (lambda A, Out: fx.make_fragment_like(fx.make_layout((1024, 64)), fx.Int8), "takes 65536 bytes"),
    ],
)
def test_what_an_operation_states_is_checked(trace: Callable[..., Any], use: Any, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        trace(use)
    assert caught.value.at.file == __file__


@pytest.mark.parametrize(
    ("make", "alignment"),
    [
        (lambda start: fx.recast_iter(fx.Float64, start), 4),
        (lambda start: fx.add_offset(fx.recast_iter(fx.Float64, start), 3), 4),
        (lambda start: fx.recast_iter(fx.Int8, start), 4),
        (lambda start: fx.add_offset(fx.recast_iter(fx.Int8, start), 6), 2),
        (lambda start: fx.add_offset(fx.recast_iter(fx.Boolean, start), 3), 1),
        (lambda start: fx.recast_iter(fx.PointerType.get(fx.Float64, "global", 16), start), 16),
    ],
)
def test_a_pointer_is_as_aligned_as_what_it_comes_from(trace: Callable[..., Any], make: Any, alignment: int) -> None:
    """Of a pointer to f32 4 bytes are known; more is the author's promise."""
    assert trace(lambda A, Out: make(fx.get_iter(A)).type.known_alignment) == alignment


@pytest.mark.parametrize(
    ("stages", "error", "message"),
    [
        ("x", ArgumentError, "stages must be a positive int, got 'x'"),
        (0, ArgumentError, "stages must be a positive int, got 0"),
        (1 << 20, LayoutError, "bytes of registers"),
    ],
)
def test_stages_of_a_fragment(trace: Callable[..., Any], stages: Any, error: Any, message: str) -> None:
    def make(A: Any, Out: Any) -> Any:
        tile = fx.make_view(fx.get_iter(A), fx.make_layout((64, 64)))
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)))
        return mma.get_slice(fx.thread_idx.x).make_fragment_A(tile, stages=stages)

    with raises_saying(error, message) as caught:
        trace(make)
    assert caught.value.at is not None


def test_stages_of_a_fragment_stand_for_the_further_modes_of_its_tensor(trace: Callable[..., Any]) -> None:
    """Two of the ten tiles along K are in registers at a time; how many there are may be known when running only."""

    def make(A: Any, Out: Any) -> Any:
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)))
        shapes = [(32, 8), (32, 8, 10), (32, 8, fx.Int32(fx.block_idx.x), 3)]
        tiles = [fx.make_view(fx.get_iter(A), fx.make_layout(shape)) for shape in shapes]
        part = mma.get_slice(fx.thread_idx.x)
        return [str(part.make_fragment_B(tile, stages=2).shape) for tile in tiles]

    assert trace(make) == ["(1,2,2,2)"] * 3


def test_vectors_of_registers_with_gaps_and_in_other_orders() -> None:
    """A vector holds the elements in the order of the coordinates, wherever they lie."""
    layouts = [fx.make_layout((4, 2), (1, 8)), fx.make_layout((4, 2), (2, 1)), fx.make_layout(((2, 2), 2), ((1, 8), 2))]

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        lane = fx.thread_idx.x
        for number, layout in enumerate(layouts):
            registers = fx.make_rmem_tensor(layout, fx.Int32)
            registers.store(fx.Vector.from_elements([lane + j for j in range(8)], fx.Int32))
            for j in range(8):
                Out[lane, number, 0, j] = registers[j]
            registers[1] = registers[1] * 10
            loaded = registers.load()
            for j in range(8):
                Out[lane, number, 1, j] = loaded[j]

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(64, len(layouts), 2, 8, dtype=torch.int32)
    launch(out)
    expected = torch.arange(64, dtype=torch.int32)[:, None] + torch.arange(8, dtype=torch.int32)
    for number in range(len(layouts)):
        assert torch.equal(out[:, number, 0], expected)
        expected_after = expected.clone()
        expected_after[:, 1] *= 10
        assert torch.equal(out[:, number, 1], expected_after)


def test_a_coordinate_tensor_begins_at_a_number_or_tuple() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        i = fx.thread_idx.x
        rows = fx.Tensor(fx.make_view(fx.make_int_tuple(5), fx.make_layout((128, 64), (1, 0))))
        tile = fx.make_view((i, 3), fx.make_identity_layout((4, 8)))
        Out[i, 0] = fx.get_scalar(rows[i, None][7])
        Out[i, 1], Out[i, 2] = tile[1, 2]

    launch = launcher_of(kernel, grid=1, block=4)
    out = torch.zeros(4, 3, dtype=torch.int32)
    launch(out)
    assert out.tolist() == [[5 + i, 1 + i, 5] for i in range(4)]


def test_a_tensor_of_unknown_size_divided_by_one() -> None:
    """The rest is all of the tensor, whatever its size: the first mode counts fastest."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        Out[i] = fx.slice(fx.logical_divide(A, fx.make_layout(1, 1)), (None, i))[0]

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.arange(128.0).reshape(2, 2, 4, 8)[..., :4].contiguous().transpose(1, 2), torch.zeros(64)
    launch(a, out)
    assert torch.equal(out, a.permute(3, 2, 1, 0).flatten())


def test_a_type_is_that_of_torch_and_numpy() -> None:
    assert fx.Float32 == torch.float32 == fx.Float32 == np.float32 == fx.Float32 == np.dtype("float32")
    assert fx.Uint8 == torch.uint8
    assert fx.BFloat16 == torch.bfloat16
    assert fx.Int32 != torch.uint32
    assert fx.Float16 not in (torch.float32, np.int16, float, None, "f16")
    assert fx.Numeric != torch.float32
    assert {fx.Float32: 1}[fx.Float32] == 1


def launch_with_views(*swizzles: Any, other: bool = False) -> None:
    """Launch a kernel that views the same shared memory through each of these swizzles, None for none."""

    @flyc.kernel
    def kernel(x: fx.Tensor):
        rows = fx.make_ordered_layout((8, 8), (1, 0))
        for i, swizzle in enumerate(swizzles):
            start = fx.get_dyn_shared(fx.Float32 if i == 0 or not other else fx.Float16)
            fx.make_view(start, rows if swizzle is None else fx.make_composed_layout(fx.static(swizzle), rows))

    launcher_of(kernel, grid=1, block=64, smem=256)(torch.zeros(64))


def test_a_swizzle_has_the_numbers_it_was_made_of(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        swizzle = fx.static(fx.SwizzleType.get(3, 2, 4))
        assert (swizzle.mask, swizzle.base, swizzle.shift) == (3, 2, 4)

    trace(body)


def test_the_same_shared_memory_through_two_swizzles_deserves_a_hint(recwarn: pytest.WarningsRecorder) -> None:
    one, another = fx.SwizzleType.get(3, 0, 3), fx.SwizzleType.get(2, 0, 3)
    for swizzles in ((one, None), (None, one), (one, another)):
        with pytest.warns(UserWarning, match="written through one is elsewhere for the other") as said:
            launch_with_views(*swizzles)
        assert said[0].filename == __file__
    launch_with_views(one, one)
    launch_with_views(None, None)
    launch_with_views(one, None, other=True)  # other data, which take their turn
    assert not recwarn


def swizzled_view(swizzle: Any) -> Any:
    layout = fx.make_composed_layout(fx.static(swizzle), fx.make_ordered_layout((8, 8), (1, 0)))
    return fx.make_view(fx.get_dyn_shared(fx.Float32), layout)


def test_a_view_that_a_helper_makes_names_the_lines_that_call_it() -> None:
    one, another = fx.SwizzleType.get(3, 0, 3), fx.SwizzleType.get(2, 0, 3)

    @flyc.kernel
    def kernel(x: fx.Tensor):
        swizzled_view(one)
        swizzled_view(another)

    first = kernel.function.__code__.co_firstlineno + 2
    pattern = rf"called from line {first + 1}\) has .* in line \d+ \(called from line {first}\)"
    with pytest.warns(UserWarning, match=pattern):
        launcher_of(kernel, grid=1, block=64, smem=256)(torch.zeros(64))
