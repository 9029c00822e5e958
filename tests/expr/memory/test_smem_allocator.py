"""Static shared memory: layout, access from all threads, and how much there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir.dialects import llvm
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.dialect.context import context
from flydsl.errors import ArchError, ArgumentError, FlyError, LaunchError, SimulatorError, TraceError
from flydsl.expr import gpu, rocdl
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import (
    SmemAllocator,
    SmemPtr,
    check_smem_capacity,
    get_mlir_type_align,
    get_mlir_type_size,
)
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

KIB = 1024


def finalize(*allocators: SmemAllocator) -> None:
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        for allocator in allocators:
            allocator.finalize()


def launcher(
    body: Callable[..., None], *allocators: SmemAllocator, block: Any = 64, grid: Any = 1, smem: Any = 0
) -> flyc.JitFunction:
    """A launcher of `body(A, Out)`."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        body(A, Out)

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor):
        finalize(*allocators)
        kernel(A, Out).launch(grid=grid, block=block, smem=smem)

    return launch


# --- layout ----------------------------------------------------------------------------------------------------------


def test_sizes_and_alignment() -> None:
    sizes = {T.f64: 8, T.f32: 4, T.bf16: 2, T.i8: 1, T.index: 8, fx.Float8E4M3FNUZ: 1, fx.Boolean: 1}
    assert [get_mlir_type_size(kind) for kind in sizes] == list(sizes.values())
    vectors = [ir.Type.parse(f"vector<{n}xf32>", context()) for n in (4, 3, 8)]
    assert [(get_mlir_type_size(v), get_mlir_type_align(v)) for v in vectors] == [(16, 16), (12, 4), (32, 16)]


def test_parts_follow_one_another_at_their_alignment() -> None:
    class Mixed:
        flag: T.i8
        scale: T.f32

    allocator = SmemAllocator(None, "gfx942", "smem0")
    parts = [
        allocator.allocate(3),
        allocator.allocate_array(T.f16, 5),
        allocator.allocate(T.f64),
        allocator.allocate_array(T.i8, 1, alignment=16),
    ]
    mixed = allocator.allocate(Mixed)(None)
    assert [part(None).byte_offset for part in parts] == [0, 4, 16, 32]
    assert (mixed.flag.byte_offset, mixed.scale.byte_offset, allocator.ptr) == (36, 40, 44)


# --- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64,
                                   torch.float8_e4m3fnuz], ids=str)  # fmt: skip
def test_transpose(dtype: torch.dtype) -> None:
    """Threads write rows and, after the barrier, read columns: 4 waves, every element through the LDS."""
    rows, columns = 16, 32
    element = fx.numeric.numeric_class(
        {"float8_e4m3fnuz": "f8E4M3FNUZ", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8",
         "int64": "i64"}[str(dtype).removeprefix("torch.")]
    )  # fmt: skip
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem0")
    tile = allocator.allocate_array(element, rows * columns)

    def body(A: Any, Out: Any) -> None:
        lds = tile(allocator.get_base())
        i, j, _ = fx.thread_idx
        lds.store(A[i, j], [i * columns + j])
        gpu.barrier()
        Out[j, i] = lds.load([i * columns + j])

    a = torch.randint(-9, 9, (rows, columns), generator=torch.Generator().manual_seed(0)).to(dtype)
    out = torch.zeros(columns, rows, dtype=dtype)
    launcher(body, allocator, block=(rows, columns))(a, out)
    assert torch.equal(out.float(), a.float().T)


def test_sum_of_a_block() -> None:
    """Waves reduce by shuffles, the block through shared memory."""
    threads, waves = 256, 4
    allocator = SmemAllocator(None, arch="gfx942")
    partial = allocator.allocate_array(T.f32, waves)

    def body(A: Any, Out: Any) -> None:
        thread = fx.thread_idx.x
        x = A[fx.block_idx.x, thread]
        for distance in (32, 16, 8, 4, 2, 1):
            x = x + x.shuffle_xor(distance, 64)
        lds = SmemPtr(allocator.get_base(), partial(None).byte_offset, T.f32, (waves,))
        lds.store(x, [thread // 64])
        gpu.barrier()
        Out[fx.block_idx.x, thread] = lds.load([0]) + lds.load([1]) + lds.load([2]) + lds.load([3])

    a, out = torch.arange(3.0 * threads).reshape(3, threads), torch.zeros(3, threads)
    launcher(body, allocator, block=threads, grid=3)(a, out)
    assert torch.equal(out, a.sum(1, keepdim=True).expand_as(a))


def test_wide_accesses() -> None:
    """16 bytes at a time, by the instruction's name and through a memref view; scalars at a default index."""
    allocator = SmemAllocator(None)
    tile = allocator.allocate_array(T.f16, 512, alignment=16)
    flag = allocator.allocate(T.f16)

    def body(A: Any, Out: Any) -> None:
        base, lane = allocator.get_base(), fx.thread_idx.x
        data = fx.Vector.from_elements([A[lane, j] for j in range(8)], fx.Float16)
        rocdl.ds_write_b128(tile(base), lane * 16, data)
        flag(base).store(0.5)
        gpu.barrier()
        words = rocdl.ds_read_b128(tile(base), (63 - lane) * 16).bitcast(fx.Float16)
        for j in range(8):
            Out[lane, j] = words[j] + flag(base).load()

    a, out = torch.randn(64, 8, generator=torch.Generator().manual_seed(0)).half(), torch.zeros(64, 8).half()
    launch = launcher(body, allocator)
    launch(a, out)
    assert torch.equal(out, a.flip(0) + 0.5)
    isa = launch.lower(a, out).artifact.isa
    assert isa.count("ds_read_b128") == isa.count("ds_write_b128") == 1


def test_a_view_for_the_vector_dialect() -> None:
    allocator = SmemAllocator(None)
    tile = allocator.allocate_array(T.f32, 256, alignment=16)

    def body(A: Any, Out: Any) -> None:
        from mlir.dialects import vector

        lds, lane = tile(allocator.get_base()), fx.thread_idx.x
        lds.store(A[lane], [lane])
        gpu.barrier()
        kind = fx.T.vec(4, fx.Float32)
        loaded = fx.Vector(vector.load(kind, lds.get(), [fx.Index(lane // 4 * 4).ir_value()]))
        Out[lane] = loaded[0] + loaded[1] + loaded[2] + loaded[3]

    a, out = torch.arange(64.0), torch.zeros(64)
    launcher(body, allocator)(a, out)
    assert torch.equal(out, a.reshape(16, 4).sum(1).repeat_interleave(4))


def test_a_vector_that_is_not_read_again_soon() -> None:
    allocator = SmemAllocator(None)
    tile = allocator.allocate_array(T.f32, 256, alignment=16)

    def body(A: Any, Out: Any) -> None:
        lds, lane = tile(allocator.get_base()).get(), fx.thread_idx.x
        first = [fx.Index(lane * 4)]
        fx.vector.store(fx.Vector.filled(4, A[lane], fx.Float32), lds, first, nontemporal=True)
        Out[lane] = fx.vector.load_op(fx.T.vec(4, fx.Float32), lds, first, nontemporal=True, alignment=16)[3]

    a, out = torch.arange(64.0), torch.zeros(64)
    launch = launcher(body, allocator)
    launch(a, out)
    assert torch.equal(out, a)
    assert str(launch.lower(a, out).traced.module).count("nontemporal = true") == 2


def test_one_allocator_for_several_compilations() -> None:
    """A launcher compiled anew for another type finds its storage again."""
    allocator = SmemAllocator(None, arch="gfx942")
    one = allocator.allocate(T.f32)

    def body(A: Any, Out: Any) -> None:
        lds = one(allocator.get_base())
        lds.store(A[0].to(fx.Float32))
        Out[fx.thread_idx.x] = lds.load().to(Out.dtype)

    launch = launcher(body, allocator)
    for dtype in (torch.float32, torch.float16):
        out = torch.zeros(64, dtype=dtype)
        launch(torch.full((1,), 3.0, dtype=dtype), out)
        assert (out == 3).all()


def test_the_kernel_uses_no_more_than_it_asked_for() -> None:
    allocator = SmemAllocator(None, arch="gfx942")
    part = allocator.allocate_array(T.f32, 100)

    def body(A: Any, Out: Any) -> None:
        lds = part(allocator.get_base())
        lds.store(A[0], [fx.thread_idx.x])
        gpu.barrier()
        Out[fx.thread_idx.x] = lds.load([63 - fx.thread_idx.x])

    (kernel,) = launcher(body, allocator).lower(torch.zeros(64), torch.zeros(64)).artifact.kernels
    assert 400 <= kernel.resources.lds_bytes <= 512


def test_memory_that_is_read_by_its_address_only() -> None:
    allocator = SmemAllocator()
    part = allocator.allocate_array(fx.Int32, 64)

    def body(A: fx.Tensor, Out: fx.Tensor) -> None:
        t = fx.Int32(fx.thread_idx.x)
        part(allocator.get_base()).store(fx.Int32(A[t]), [fx.Index(t)])
        fx.barrier()
        address = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), ((t ^ 1) * 4).ir_value())
        Out[t] = fx.Int32(llvm.load(T.i32, address))

    given, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    launcher(body, allocator)(given, out)
    assert torch.equal(out, given ^ 1)


def test_an_access_beyond_the_memory_is_found() -> None:
    allocator = SmemAllocator(None, arch="gfx942")
    part = allocator.allocate_array(T.f32, 64)

    def body(A: Any, Out: Any) -> None:
        lds = part(allocator.get_base())
        lds.store(A[0], [fx.thread_idx.x + A[0].to(fx.Int32)])
        gpu.barrier()
        Out[0] = lds.load([fx.thread_idx.x])

    with pytest.raises(SimulatorError, match="LDS"):
        launcher(body, allocator)(torch.full((1,), 64.0), torch.zeros(64))


# --- capacity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arch", "limit"), [("gfx942", 64), ("gfx950", 160), ("gfx1201", 64), ("gfx1250", 320)])
def test_capacity_of_each_target(arch: str, limit: int) -> None:
    check_smem_capacity(limit * KIB, arch)
    with pytest.raises(LaunchError, match=f"12 bytes more than the {limit * KIB}"):
        check_smem_capacity(limit * KIB + 12, arch)


def test_an_allocation_that_does_not_fit() -> None:
    allocator = SmemAllocator(None, arch="gfx942")
    allocator.allocate_array(T.f16, 20 * KIB)
    with pytest.raises(LaunchError, match="65540 bytes of LDS: 4 bytes more than the 65536") as info:
        allocator.allocate_array(T.f32, 6 * KIB + 1)
    assert info.value.at.file == __file__
    assert allocator.ptr == 40 * KIB


def use(*parts: tuple[SmemAllocator, Any]) -> Callable[..., None]:
    def body(A: Any, Out: Any) -> None:
        for allocator, part in parts:
            lds = part(allocator.get_base())
            lds.store(A[0], [fx.thread_idx.x])
            gpu.barrier()
            Out[fx.thread_idx.x] = lds.load([63 - fx.thread_idx.x])

    return body


@pytest.mark.slow
def test_storages_and_dynamic_memory_together() -> None:
    allocators = [SmemAllocator(None, global_sym_name=f"smem{i}") for i in range(2)]
    parts = [(allocator, allocator.allocate_array(T.f32, 8 * KIB)) for allocator in allocators]
    a, out = torch.ones(64), torch.zeros(64)
    launcher(use(*parts), *allocators)(a, out)
    assert torch.equal(out, a)
    with pytest.raises(LaunchError, match=r"65552 bytes of LDS \(65536 static, 16 from smem=\): 16 bytes more"):
        launcher(use(*parts), *allocators, smem=16)(a, out)
    with pytest.raises(LaunchError, match=r"65552 bytes of LDS \(32768 static, 32784 from smem=\)"):
        launcher(use(parts[0]), *allocators, smem=32 * KIB + 16)(a, out)


def test_dynamic_memory_of_a_size_known_at_run_time() -> None:
    allocator = SmemAllocator(None)
    part = allocator.allocate_array(T.f32, 8 * KIB)

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        use((allocator, part))(A, Out)

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        finalize(allocator)
        kernel(A, Out).launch(grid=1, block=64, smem=n)

    a, out = torch.ones(64), torch.zeros(64)
    launch(a, out, 32 * KIB)
    assert torch.equal(out, a)
    with pytest.raises(LaunchError, match=r"bytes of LDS \(32768 static, 32772 from smem=\): 4 bytes more") as info:
        launch(a, out, 32 * KIB + 4)
    assert info.value.at.file == __file__


# --- misuse ----------------------------------------------------------------------------------------------------------


def test_storage_that_nobody_made() -> None:
    allocator = SmemAllocator(None, global_sym_name="forgotten")
    part = allocator.allocate_array(T.f32, 64)
    with pytest.raises(TraceError, match="'forgotten' is used but was never allocated") as info:
        launcher(use((allocator, part)))(torch.ones(64), torch.zeros(64))
    assert "allocator.finalize()" in str(info.value)
    assert info.value.at.file == __file__


def test_memory_allocated_too_late() -> None:
    allocator = SmemAllocator(None)

    def body(A: Any, Out: Any) -> None:
        part = allocator.allocate_array(T.f32, 64)
        part(allocator.get_base()).store(A[0], [0])

    with pytest.raises(TraceError, match=r"allocated after finalize\(\)"):
        launcher(body, allocator)(torch.ones(64), torch.zeros(64))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: SmemAllocator(None, arch="gfx9999"), ArchError, "gfx9999"),
        (lambda: SmemAllocator().allocate_array("f16", 4), ArgumentError, "'f16' is not an element type"),
        (
            lambda: SmemAllocator().allocate_array(T.f16, 0),
            ArgumentError,
            "the size of an LDS array must be a positive integer, got 0",
        ),
        (lambda: SmemAllocator().allocate_array(T.i4, 8), ArgumentError, "i4 has 4 bits, not whole bytes"),
        (
            lambda: SmemAllocator().allocate_array(T.f16, 4, alignment=24),
            ArgumentError,
            "alignment in LDS must be .*, got 24 bytes",
        ),
        (lambda: SmemAllocator().allocate(type("Empty", (), {})), ArgumentError, "no annotated fields"),
        (lambda: SmemAllocator().finalize(), TraceError, "outside a kernel"),
        (lambda: SmemAllocator().get_base(), TraceError, "outside a kernel"),
    ],
)
def test_misuse_outside_a_kernel(call: Callable[[], Any], error: type[FlyError], says: str) -> None:
    with raises_saying(error, says):
        call()


@pytest.mark.parametrize(
    ("access", "says"),
    [
        (lambda lds: lds.load([64]), "index of a load in LDS must be 0 to 63, got 64"),
        (lambda lds: lds.load([0, 0]), "one index for each of the 1 dimensions of .*, got 2"),
        (lambda lds: lds.load([0.5]), "must be an integer, got 0.5"),
        (lambda lds: lds.store(fx.Int32(1), [0]), "LDS of f32 cannot hold i32"),
        (lambda lds: rocdl.ds_write_b128(lds, 0, fx.Float32(1.0)), "it takes vector<4xi32>, not f32"),
        (lambda lds: rocdl.ds_read_b128(3), "a tensor or pointer in LDS, not 3"),
    ],
)
def test_misuse_in_a_kernel(access: Callable[[SmemPtr], Any], says: str) -> None:
    allocator = SmemAllocator(None)
    part = allocator.allocate_array(T.f32, 64)
    with raises_saying(ArgumentError, says) as info:
        launcher(lambda A, Out: access(part(allocator.get_base())), allocator)(torch.ones(64), torch.zeros(64))
    assert info.value.at.file == __file__
