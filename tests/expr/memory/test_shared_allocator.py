"""Shared memory of structured types, allocated inside a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LaunchError, SimulatorError, TraceError
from flydsl.expr import gpu, rocdl
from flydsl.expr.struct import align_of, size_of
from flydsl.simulator import checking
from tests.launchers import launcher_of
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

LANES = 64


@fx.struct
class Inner:
    tag: fx.Int8
    value: fx.Float64


@fx.struct
class Tiles:
    a: fx.Array[fx.Float16, 3 * LANES, 16]
    flag: fx.Int32
    inner: Inner


@fx.union
class Either:
    floats: fx.Array[fx.Float32, LANES, 16]
    halves: fx.Array[fx.Float16, 2 * LANES]
    one: fx.Float64


def run(
    body: Callable[[Any, Any, Any], None], a: torch.Tensor, out: torch.Tensor, grid: int = 1, smem: int | None = None
) -> torch.Tensor:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        body(A, Out, fx.thread_idx.x)

    launch = launcher_of(kernel, grid=grid, block=LANES, smem=smem)
    launch(a, out)
    return out


def test_layout_is_that_of_c() -> None:
    assert {name: place[0] for name, place in Tiles.dsl_fields.places.items()} == {"a": 0, "flag": 384, "inner": 392}
    assert (size_of(Inner), align_of(Inner)) == (16, 8)
    assert (size_of(Tiles), align_of(Tiles)) == (416, 16)
    assert (size_of(Either), align_of(Either)) == (256, 16)
    assert (size_of(fx.Align[fx.Int32, 64]), align_of(fx.Align[fx.Int32, 64])) == (4, 64)
    assert fx.Array[fx.Float16, 8] is fx.Array[fx.Float16, 8, 2]
    assert [fx.is_struct_type(t) for t in (Tiles, Either, fx.Int32)] == [True, False, False]
    assert [fx.is_composite_type(t) for t in (Tiles, Either, fx.Int32)] == [True, True, False]


def test_fields_of_a_shared_struct_are_written_and_read() -> None:
    def body(A: Any, Out: Any, lane: Any) -> None:
        storage = fx.SharedAllocator().allocate(Tiles)
        tiles = storage.peek()
        a = tiles.a.view(fx.make_layout((3, LANES), (1, 3)))
        for j in range(3):
            a[j, lane] = (A[lane] + j).to(fx.Float16)
        storage.flag.poke(7)
        storage.inner.value.poke(0.25)
        storage.inner.tag.poke(-3)
        gpu.barrier()
        for j in range(3):
            Out[j, lane] = a[j, 63 - lane].to(fx.Float32)
        now = storage.peek()
        Out[3, lane] = now.flag.to(fx.Float32) + now.inner.value.to(fx.Float32) + now.inner.tag.to(fx.Float32)

    a = torch.arange(1.0, 1 + LANES)
    out = run(body, a, torch.zeros(4, LANES))
    assert torch.equal(out[:3], torch.stack([a.flip(0) + j for j in range(3)]))
    assert (out[3] == 4.25).all()


def test_a_union_is_one_piece_of_memory() -> None:
    """Floats written, read as pairs of halves: the upper one of 1.0 is what bf16 would be, 0x3F80."""

    def body(A: Any, Out: Any, lane: Any) -> None:
        storage = fx.SharedAllocator().allocate(Either)
        floats = storage.floats.peek().view(fx.make_layout(LANES, 1))
        halves = storage.halves.peek().view(fx.make_layout((2, LANES), (1, 2)))
        floats[lane] = A[lane]
        gpu.barrier()
        for j in range(2):
            Out[j, lane] = halves[j, lane]

    a = torch.randn(LANES, generator=torch.Generator().manual_seed(0))
    out = run(body, a, torch.zeros(2, LANES, dtype=torch.float16))
    assert torch.equal(out.view(torch.int16), a.view(torch.int16).reshape(LANES, 2).T)


@pytest.mark.slow
def test_bytes_are_loaded_as_the_type_that_is_named() -> None:
    def body(A: Any, Out: Any, lane: Any) -> None:
        numbers = fx.SharedAllocator().allocate(fx.Array[fx.Float32, LANES, 16]).peek()
        numbers.view(fx.make_layout(LANES, 1))[lane] = A[lane]
        gpu.barrier()
        start = fx.recast_iter(fx.Uint8, numbers.ptr) + lane * 4
        halves = fx.ptr_load(start, result_type=fx.T.vec(2, fx.T.f16))
        Out[0, lane], Out[1, lane] = halves[0].to(fx.Float32), halves[1].to(fx.Float32)
        Out[2, lane] = start.load(fx.T.f32)
        Out[3, lane] = start.load().to(fx.Float32)

    a = torch.randn(LANES, generator=torch.Generator().manual_seed(1))
    out = run(body, a, torch.zeros(4, LANES))
    halves = a.view(torch.float16).reshape(LANES, 2).T.float()
    torch.testing.assert_close(out[:2], halves, equal_nan=True, atol=0, rtol=0)
    assert torch.equal(out[2], a)
    assert torch.equal(out[3], a.view(torch.uint8).reshape(LANES, 4)[:, 0].float())


def test_bytes_and_pointers() -> None:
    def body(A: Any, Out: Any, lane: Any) -> None:
        numbers = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4 * LANES, 16]).peek()
        memory = fx.SharedAllocator(base_alignment=64).allocate(16 * LANES)
        assert str(memory._ptr.type) == "!fly.ptr<i8, shared, align<64>>"  # the name by which FlyDSL documents it
        other = memory.peek()
        rocdl.ds_write_b128(numbers.ptr, lane * 16, fx.Vector.from_elements([A[lane] + float(j) for j in range(4)]))
        gpu.barrier()
        rocdl.ds_write_b128(other.ptr, lane * 16, rocdl.ds_read_b128(numbers.ptr, (63 - lane) * 16))
        moved = fx.make_view(fx.add_offset(numbers.ptr, lane * 4), fx.make_layout(4, 1))
        got = rocdl.ds_read_b128(other.ptr, lane * 16).bitcast(fx.Float32)
        for j in range(4):
            Out[j, lane] = got[j] + moved[j] * 100.0

    a = torch.arange(LANES).float()
    out = run(body, a, torch.zeros(4, LANES))
    assert torch.equal(out, torch.stack([a.flip(0) + j + (a + j) * 100 for j in range(4)]))


@flyc.kernel
def by_number_kernel(Out: fx.Tensor):
    t = fx.Int32(fx.thread_idx.x)
    fx.SharedAllocator().allocate(fx.Array[fx.Int32, 64]).peek()[t] = t * 3
    fx.barrier()
    place = fx.inttoptr(fx.PointerType.get(fx.Int32, fx.AddressSpace.Shared), (t ^ 1) * 4)
    Out[t] = fx.ptr_load(place)


def test_memory_that_is_read_by_its_address_only() -> None:
    out = torch.zeros(64, dtype=torch.int32)
    launcher_of(by_number_kernel, grid=1, block=64)(out)
    assert torch.equal(out, (torch.arange(64, dtype=torch.int32) ^ 1) * 3)


def test_scalars_and_vectors_at_an_address() -> None:
    def body(A: Any, Out: Any, lane: Any) -> None:
        place = fx.SharedAllocator().allocate(8 * LANES).peek().ptr
        rocdl.lds_store(place, lane * 8, fx.Vector.from_elements([A[lane], A[lane] + 1.0]))
        gpu.barrier()
        rocdl.lds_store(place, lane * 8 + 4, A[lane] * 2.0)
        gpu.barrier()
        pair = fx.Vector(rocdl.lds_load(fx.T.vec(2, fx.T.f32), place, (63 - lane) * 8))
        Out[0, lane], Out[1, lane] = pair[0], pair[1]
        Out[2, lane] = rocdl.lds_load(fx.Float32, place, lane * 8)

    a = torch.arange(LANES).float()
    assert torch.equal(run(body, a, torch.zeros(3, LANES)), torch.stack([a.flip(0), a.flip(0) * 2, a]))


def test_capacity() -> None:
    def body(A: Any, Out: Any, lane: Any) -> None:
        for _ in range(2):
            fx.SharedAllocator().allocate(fx.Array[fx.Float32, 8 * 1024]).peek().view(fx.make_layout(1, 1))[0] = A[0]
        Out[lane] = 1.0

    run(body, torch.zeros(1), torch.zeros(LANES))
    with pytest.raises(LaunchError, match=r"65540 bytes of LDS \(65536 static, 4 from smem=\): 4 bytes more"):
        run(body, torch.zeros(1), torch.zeros(LANES), smem=4)


def test_misuse_of_types() -> None:
    for make, says in [
        (lambda: fx.Array[fx.Float16], "a type, a size"),
        (lambda: fx.Array[fx.Float16, 0], "must be a positive Python int, got 0"),
        (lambda: fx.Array[fx.Float16, 4, 24], "alignment of 24 bytes: it must be a power of two"),
        (lambda: fx.Array["f16", 4], "a Numeric subclass .*, not 'f16'"),
        (lambda: fx.Array[fx.Int4, 4], "4 bits, are not whole bytes"),
        (lambda: fx.struct(type("Empty", (), {})), "no annotated fields"),
        (lambda: fx.struct(type("Bad", (), {"__annotations__": {"peek": fx.Int32}})), "the name 'peek' is reserved"),
        (lambda: fx.struct(type("Bad", (), {"__annotations__": {"x": int}})), "Bad.x takes a Numeric subclass"),
    ]:
        with raises_saying(ArgumentError, says):
            make()
    with pytest.raises(TraceError, match="unsupported: a value of Tiles"):
        Tiles(1, 2)
    with pytest.raises(TraceError, match="outside a kernel"):
        fx.SharedAllocator()


@pytest.mark.parametrize(
    ("use", "error", "says"),
    [
        (lambda: fx.SharedAllocator().allocate("x"), ArgumentError, "a type or a number of bytes"),
        (lambda: fx.SharedAllocator().allocate(0), ArgumentError, "a positive number of bytes, not 0"),
        (lambda: fx.SharedAllocator().allocate(fx.Int32, fx.Int32), ArgumentError, "must be a number of bytes"),
        (lambda: fx.SharedAllocator().allocate(Tiles).b, AttributeError, r"no field 'b'\nit has a, flag, inner"),
        (
            lambda: fx.SharedAllocator().allocate(Tiles).a.poke(1),
            TraceError,
            "takes a number or the value of a struct, not 1",
        ),
        (lambda: fx.Arena().allocate(fx.Int32), NotImplementedError, "Arena has no base_ptr"),
        (lambda: fx.SharedAllocator().allocate(fx.Int32).poke(1.5), ArgumentError, "1.5"),
    ],
)
def test_misuse_in_a_kernel(use: Callable[[], Any], error: type[Exception], says: str) -> None:
    with raises_saying(error, says):
        run(lambda A, Out, lane: use(), torch.zeros(1), torch.zeros(LANES))


def test_parts_of_dynamic_memory() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane = fx.thread_idx.x
        allocator = fx.SharedAllocator(static=False)
        flag = allocator.allocate(fx.Int8)
        numbers = allocator.allocate(fx.Array[fx.Float32, LANES]).peek().view(fx.make_layout(LANES, 1))
        assert allocator.allocated_bytes == 4 + 4 * LANES
        flag.poke(7)
        numbers[lane] = A[lane]
        gpu.barrier()
        Out[lane] = numbers[63 - lane] + flag.peek().to(fx.Float32)

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, Out).launch(grid=1, block=LANES, smem=n)

    a, out = torch.randn(LANES), torch.zeros(LANES)
    launch(a, out, 4 + 4 * LANES)
    assert torch.equal(out, a.flip(0) + 7)


def reverses_in_dynamic_memory(A: Any, Out: Any, lane: Any) -> None:
    first, second = fx.SharedAllocator(static=False), fx.SharedAllocator(static=False)
    assert not first.is_static
    numbers = first.allocate(fx.Array[fx.Float32, LANES]).peek()
    second.allocate(fx.Int8)  # at the beginning, too
    numbers[lane] = A[lane]
    gpu.barrier()
    Out[lane] = numbers[63 - lane]


def test_a_launch_that_names_no_size_takes_that_of_its_kernel() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        reverses_in_dynamic_memory(A, Out, fx.thread_idx.x)

    launch = launcher_of(kernel, grid=1, block=LANES)
    a, out = torch.randn(LANES), torch.zeros(LANES)
    launch(a, out)
    assert torch.equal(out, a.flip(0))


def test_a_launch_gives_no_less_than_its_kernel_allocates() -> None:
    with pytest.raises(LaunchError, match=r"smem=64, and the kernel allocates 256 bytes"):
        run(reverses_in_dynamic_memory, torch.randn(LANES), torch.zeros(LANES), smem=64)


def test_storage_at_a_pointer() -> None:
    """Memory of a type in global memory, and an arena over it."""

    class Rest(fx.Arena):
        def __init__(self, pointer: Any) -> None:
            super().__init__()
            self._pointer = pointer

        @property
        def base_ptr(self) -> Any:
            return self._pointer

    def body(A: Any, Out: Any, lane: Any) -> None:
        if lane == 0:
            start = fx.get_iter(Out)
            inner = fx.Storage[Inner](start)
            inner.tag.poke(5)
            inner.value.poke(A[3].to(fx.Float64))
            arena = Rest(fx.add_offset(start, 4))
            arena.allocate(fx.Int8).poke(1)
            arena.allocate(fx.Int32).poke(9)
            assert arena.allocated_bytes == 8

    a = torch.arange(1.0, 1 + LANES)
    out = run(flyc.jit(body), a, torch.zeros(LANES, dtype=torch.int32))
    assert (out[0].item() & 0xFF, out[4].item() & 0xFF, out[5].item()) == (5, 1, 9)
    assert out[2:4].view(torch.float64).item() == 4.0


def test_a_type_of_memory_of_a_programs_own() -> None:
    class Half:
        """A number from 0 to 1, in a byte."""

        @classmethod
        def __dsl_size_of__(cls) -> int:
            return 1

        @classmethod
        def __dsl_align_of__(cls) -> int:
            return 1

        @classmethod
        def __peek_from_ptr__(cls, ptr: Any) -> Any:
            return ptr.load().to(fx.Float32) / 64.0

        @classmethod
        def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
            ptr.store(fx.Int8(value * 64.0))

    def body(A: Any, Out: Any, lane: Any) -> None:
        place = fx.SharedAllocator().allocate(fx.Struct["first" : fx.Int32, "half":Half])
        place.half.poke(A[lane] * 0.0 + 0.75)
        gpu.barrier()
        Out[lane] = place.half.peek()

    assert (run(body, torch.ones(LANES), torch.zeros(LANES)) == 0.75).all()


def test_beside_dynamic_memory() -> None:
    """The launch's memory lies behind the static one; an access beyond what was launched is found."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane = fx.thread_idx.x
        static = fx.SharedAllocator().allocate(fx.Array[fx.Float32, LANES]).peek().view(fx.make_layout(LANES, 1))
        dynamic = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(LANES, 1))
        static[lane], dynamic[lane] = A[lane], A[lane] * 2.0
        gpu.barrier()
        Out[lane] = static[63 - lane] + dynamic[63 - lane]

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, Out).launch(grid=1, block=LANES, smem=n)

    a, out = torch.arange(LANES).float(), torch.zeros(LANES)
    launch(a, out, 4 * LANES)
    assert torch.equal(out, 3 * a.flip(0))
    with pytest.raises(SimulatorError, match="outside of LDS"):
        launch(a, out, 4 * LANES - 4)
    with pytest.raises(LaunchError, match=r"static, .* from smem=\): .* bytes more than the 65536"):
        launch(a, out, 65536)


@fx.struct
class TwoTiles:
    next: fx.Array[fx.Int32, LANES, 16]
    current: fx.Array[fx.Int32, LANES, 16]


def copy_one_and_read_the_other(a: Any, out: Any, lane: Any) -> None:
    tiles = fx.SharedAllocator().allocate(TwoTiles).peek()
    tiles.current[lane] = lane * 3
    rocdl.raw_ptr_buffer_load_lds(fx.rocdl.make_buffer_tensor(a), tiles.next, 4, lane * 4)
    first = tiles.current[LANES - 1 - lane]
    rocdl.s_waitcnt(0)
    out[lane] = first + tiles.next[lane]


def test_a_copy_into_one_field_is_not_waited_for_before_another_is_read() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        copy_one_and_read_the_other(A, Out, fx.thread_idx.x)

    launch = launcher_of(kernel, grid=1, block=LANES)
    a, out = torch.arange(LANES, dtype=torch.int32), torch.zeros(LANES, dtype=torch.int32)
    launch(a, out)
    assert torch.equal(out, (LANES - 1 - a) * 3 + a)
    listing = launch.lower(a, out, arch="gfx942").artifact.isa
    between = listing[listing.index(" lds") : listing.index("ds_read")]
    assert "vmcnt" not in between, between


@pytest.mark.parametrize("is_async", [True, False])
def test_a_program_waits_itself_for_asynchronous_loads(is_async: bool) -> None:
    """Two halves of one array, of which the first is read while the second is on its way."""
    load = rocdl.raw_ptr_buffer_load_async_lds if is_async else rocdl.raw_ptr_buffer_load_lds

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane, tiles = fx.thread_idx.x, fx.SharedAllocator().allocate(fx.Array[fx.Int32, 2 * LANES, 16]).peek()
        rsrc = fx.rocdl.make_buffer_tensor(A)
        load(rsrc, tiles, 4, lane * 4)
        load(rsrc, tiles.ptr + LANES, 4, lane * 4, LANES * 4)
        rocdl.s_waitcnt(0x0F71)  # one may be under way
        first = tiles[LANES - 1 - lane]
        rocdl.s_waitcnt(0x0F70)
        Out[lane] = first - tiles[LANES + lane]

    launch = launcher_of(kernel, grid=1, block=LANES)
    a, out = torch.arange(2 * LANES, dtype=torch.int32), torch.zeros(LANES, dtype=torch.int32)
    with checking():
        launch(a, out)
    assert torch.equal(out, a[:LANES].flip(0) - a[LANES:])
    listing = launch.lower(a, out, arch="gfx942").artifact.isa
    before_first_read = listing[listing.index(" lds") : listing.index("ds_read")]
    assert ("vmcnt(0)" in before_first_read) == (not is_async), before_first_read


def test_a_struct_in_shared_memory_has_no_address_of_its_own() -> None:
    def body(a: Any, out: Any, lane: Any) -> None:
        rocdl.raw_ptr_buffer_load_lds(
            fx.rocdl.make_buffer_tensor(a), fx.SharedAllocator().allocate(TwoTiles), 4, lane * 4
        )

    with pytest.raises(TraceError, match=r"TwoTiles in shared memory has no address(?s:.*)storage\.next"):
        run(body, torch.zeros(LANES), torch.zeros(LANES))


def test_an_array_of_structs_and_what_takes_no_memory() -> None:
    @fx.struct
    class Pair:
        first: fx.Array[fx.Int32, 3]
        second: fx.Float64

    @flyc.kernel
    def kernel(y: fx.Tensor):
        allocator, i = fx.SharedAllocator(), fx.thread_idx.x
        pairs = allocator.allocate(fx.Array[Pair, 4]).peek()
        assert len(pairs) == 4
        pairs[i].first[2] = i * 10
        fx.barrier()
        y[i] = pairs[3 - i].first[2]
        before = allocator.allocated_bytes
        nothing = allocator.allocate(fx.Empty)
        nothing.poke(fx.Empty())
        assert nothing.peek() == fx.Empty()
        assert allocator.allocated_bytes == before
        assert allocator.allocate(fx.Array[fx.Empty, 2]).peek()[i] == fx.Empty()

    y = torch.zeros(4, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=4)(y)
    assert y.tolist() == [30, 20, 10, 0]
