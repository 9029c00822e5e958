"""Kernels written as FlyDSL's authors write them, against torch on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import _arith_ops_gen, fly, llvm, memref, scf, vector
from flydsl._mlir.dialects import arith as raw_arith
from flydsl._mlir.dialects import math as raw_math
from flydsl._mlir.dialects import rocdl as raw_rocdl
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArgumentError, CompileError, LayoutError, TraceError
from flydsl.expr import arith, buffer_ops, gpu, range_constexpr, rocdl
from flydsl.expr.typing import T
from flydsl.expr.typing import Vector as Vec
from flydsl.utils.smem_allocator import SMEM_CAPACITY_MAP, SmemAllocator, SmemPtr
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

WAVE = 64
LOG2E = 1.4426950408889634


def _raw(value: Any) -> Any:
    """The usual helper of such programs."""
    if isinstance(value, ir.Value):
        return value
    if hasattr(value, "ir_value"):
        return _raw(value.ir_value())
    return ir.Value._CAPICreate(value._CAPIPtr)


def _finalize(allocator: SmemAllocator) -> None:
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        allocator.finalize()


def build_softmax(columns: int, dtype: Any, block: int = 256) -> Any:
    """One row for each workgroup; the waves' results meet in LDS."""
    waves = block // WAVE
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="softmax_smem")
    partial = allocator.allocate_array(T.f32, waves)
    assert allocator.ptr <= SMEM_CAPACITY_MAP["gfx942"]

    @flyc.kernel(name="softmax")
    def softmax(X: fx.Tensor, Y: fx.Tensor):
        row, tid = gpu.block_id("x"), gpu.thread_id("x")
        lane, wave = tid % WAVE, tid // WAVE
        scratch = partial(allocator.get_base())
        source, target = buffer_ops.create_buffer_resource(X), buffer_ops.create_buffer_resource(Y)

        def combined(value, which):
            for step in range_constexpr(6):
                other = gpu.shuffle_xor(value, 32 >> step, WAVE)
                value = arith.maximumf(value, other) if which == "max" else arith.addf(value, other)
            if lane == 0:
                scratch.store(value, [wave])
            gpu.barrier()
            total = scratch.load([fx.Index(0)])
            for other_wave in range_constexpr(waves - 1):
                other = scratch.load([fx.Index(other_wave + 1)])
                total = arith.maximumf(total, other) if which == "max" else total + other
            gpu.barrier()
            return total

        values, largest = [], arith.constant(float("-inf"), type=T.f32)
        for part in range_constexpr(-(-columns // block)):
            column = tid + part * block
            inside = column < columns
            loaded = buffer_ops.buffer_load(source, row * columns + column, vec_width=1, dtype=dtype, mask=inside)
            number = fx.Float32(loaded)
            number = arith.select(inside, number, fx.Float32(float("-inf")))
            values.append((column, inside, number))
            largest = arith.maximumf(largest, number)
        largest = combined(largest, "max")
        total = fx.Float32(0.0)
        exponentials = []
        for column, inside, number in values:
            exponential = rocdl.exp2(T.f32, _raw((number - largest) * LOG2E))
            total = total + exponential
            exponentials.append((column, inside, exponential))
        total = combined(total, "sum")
        for column, inside, exponential in exponentials:
            result = fx.Float32(exponential) / total
            buffer_ops.buffer_store(result.to(dtype), target, row * columns + column, mask=inside)

    @flyc.jit
    def launch(X: fx.Tensor, Y: fx.Tensor, rows: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        _finalize(allocator)
        softmax(X, Y).launch(grid=(rows, 1, 1), block=(block, 1, 1), stream=stream)

    return launch


@pytest.mark.parametrize(
    ("columns", "dtype", "kind"), [(300, torch.float32, fx.Float32), (64, torch.bfloat16, fx.BFloat16)]
)
def test_softmax(columns: int, dtype: torch.dtype, kind: Any) -> None:
    x = torch.randn(3, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = torch.zeros_like(x)
    build_softmax(columns, kind)(x, y, 3)
    torch.testing.assert_close(
        y, torch.softmax(x.float(), 1).to(dtype), atol=1e-2 if dtype == torch.bfloat16 else 1e-6, rtol=1e-2
    )


def test_rmsnorm_with_vectors_and_raw_operations() -> None:
    """Raw operation classes on vectors, with fastmath, and a fused multiply-add."""
    columns, lanes = 512, 64
    fast = arith.FastMathFlags.fast

    @flyc.kernel
    def kernel(X: fx.Tensor, W: fx.Tensor, Y: fx.Tensor, eps: fx.Float32):
        row, tid = fx.Int32(gpu.block_id("x")), fx.Int32(gpu.thread_id("x"))
        x, w, y = (buffer_ops.create_buffer_resource(t, max_size=False) for t in (X, W, Y))
        v8 = T.vec(8, T.f32)
        data = buffer_ops.buffer_load(x, row * columns + tid * 8, vec_width=8, dtype=T.bf16)
        wide = raw_arith.extf(v8, data)
        square = raw_arith.MulFOp(wide, wide, fastmath=raw_arith.FastMathFlags.fast).result
        total = vector.reduction(T.f32, vector.CombiningKind.ADD, square)
        for step in range_constexpr(6):
            total = total + gpu.shuffle_xor(total, 1 << step, WAVE)
        mean = raw_math.fma(total, fx.Float32(1 / columns), eps)
        scale = raw_math.rsqrt(mean)
        halves = [buffer_ops.buffer_load(w, tid * 8 + part, vec_width=4, dtype=fx.Float32) for part in (0, 4)]
        weight = vector.shuffle(*halves, list(range(8)))
        splat = vector.broadcast(v8, scale)
        result = _arith_ops_gen.MulFOp(_arith_ops_gen.MulFOp(wide, splat).result, weight, fastmath=None).result
        narrow = Vec(raw_arith.truncf(T.vec(8, T.bf16), result))
        assert narrow.dtype is fx.BFloat16
        assert arith.mulf(scale, scale, fastmath=fast).type == T.f32
        buffer_ops.buffer_store(narrow, y, row * columns + tid * 8)

    launch = launcher_of(kernel, grid=2, block=lanes)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, columns, generator=generator).bfloat16()
    w, y = torch.randn(columns, generator=generator), torch.zeros(2, columns, dtype=torch.bfloat16)
    launch(x, w, y, 1e-5)
    expected = torch.nn.functional.rms_norm(x.float(), (columns,), w, 1e-5)
    torch.testing.assert_close(y.float(), expected, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("flags", [fx.FastMathFlags.fast, fx.FastMathFlags.contract | fx.FastMathFlags.afn])
def test_the_fastmath_flags_of_fx_are_those_of_a_builder(flags: fx.FastMathFlags) -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        Y[fx.thread_idx.x] = raw_math.log(X[fx.thread_idx.x], fastmath=flags)

    launch = launcher_of(kernel, grid=1, block=64)
    x, y = torch.rand(64, generator=torch.Generator().manual_seed(2)) + 0.5, torch.zeros(64)
    assert f"fastmath<{flags}>" in str(launch.lower(x, y).origin)
    launch(x, y)
    torch.testing.assert_close(y, x.log(), atol=1e-6, rtol=1e-5)


def test_gemm_of_hand_written_regions() -> None:
    """A loop built as scf.for carries the accumulator of a matrix instruction; A comes through LDS."""
    m, n, k = 16, 16, 64
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="gemm_smem")
    lds_a = allocator.allocate_array(T.f16, m * 16)

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        lane = gpu.thread_id("x")
        row, quad = lane % 16, lane // 16
        tile = lds_a(allocator.get_base())
        a_rsrc, b_rsrc = buffer_ops.create_buffer_resource(A), buffer_ops.create_buffer_resource(B)
        zero = arith.constant_vector(0.0, T.vec(4, T.f32))
        loop = scf.ForOp(arith.index(0), arith.index(k // 16), arith.index(1), [_raw(zero)])
        with ir.InsertionPoint(loop.body):
            start = loop.induction_variable * 16
            a = buffer_ops.buffer_load(a_rsrc, row * k + start + quad * 4, vec_width=4, dtype=T.f16)
            Vec(a).store(tile.get(), [row * 16 + quad * 4], alignment=8)
            gpu.barrier()
            fragment = Vec.load(T.vec(4, T.f16), tile.get(), [row * 16 + quad * 4])
            b = buffer_ops.buffer_load(b_rsrc, row * k + start + quad * 4, vec_width=4, dtype=T.f16)
            c = raw_rocdl.mfma_f32_16x16x16f16(T.vec(4, T.f32), [fragment, b, loop.inner_iter_args[0], 0, 0, 0]).result
            d = rocdl.mfma_f32_16x16x16_f16(fragment, b, fx.Vector.filled(4, 0.0, fx.Float32))
            assert d.shape == (4,)
            gpu.barrier()
            scf.YieldOp([c])
        result = Vec(loop.results[0])
        for i in range_constexpr(4):
            C[fx.Int32(quad) * 4 + i, fx.Int32(row)] = result[i]

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        _finalize(allocator)
        kernel(A, B, C).launch(grid=1, block=64)

    generator = torch.Generator().manual_seed(2)
    a, b = torch.randn(m, k, generator=generator).half(), torch.randn(n, k, generator=generator).half()
    c = torch.zeros(m, n)
    launch(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().T, atol=1e-2, rtol=1e-2)


def test_atomics_through_pointers() -> None:
    @flyc.kernel
    def kernel(Sum: fx.Tensor, Count: fx.Tensor, X: fx.Tensor):
        tid = gpu.thread_idx.x
        base = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), _raw(Sum.value))
        address = llvm.PtrToIntOp(T.i64, base).result
        offset = llvm.MulOp(fx.Int64(tid % 4).ir_value(), fx.Int64(4), llvm.IntegerOverflowFlags(0)).result
        moved = llvm.AddOp(address, offset, llvm.IntegerOverflowFlags(0)).result
        pointer = llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), moved).result
        value = X[tid]
        llvm.AtomicRMWOp(
            llvm.AtomicBinOp.fadd, pointer, value, llvm.AtomicOrdering.monotonic, syncscope="agent", alignment=4
        )
        counter = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), Count)
        llvm.AtomicRMWOp(llvm.AtomicBinOp.add, counter, fx.Int32(1), llvm.AtomicOrdering.monotonic)

    launch = launcher_of(kernel, grid=1, block=128)
    x = torch.arange(128, dtype=torch.float32)
    total, count = torch.zeros(4), torch.zeros(1, dtype=torch.int32)
    launch(total, count, x)
    assert torch.equal(total, x.view(-1, 4).sum(0))
    assert count.item() == 128


def test_dpp_through_an_intrinsic() -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        tid = gpu.thread_idx.x
        i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
        bits = raw_arith.BitcastOp(i32, X[tid]).result
        moved = llvm.call_intrinsic(
            i32,
            "llvm.amdgcn.update.dpp.i32",
            [bits, bits, fx.Int32(0xB1), fx.Int32(15), fx.Int32(15), fx.Boolean(True)],
            [],
            [],
        )
        Y[tid] = raw_arith.BitcastOp(f32, moved).result + X[tid]

    launch = launcher_of(kernel, grid=1, block=64)
    x, y = torch.randn(64, generator=torch.Generator().manual_seed(3)), torch.zeros(64)
    launch(x, y)
    assert torch.equal(y, x.view(-1, 2).flip(1).reshape(-1) + x)


def test_fp8_through_builders() -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Packed: fx.Tensor, Y: fx.Tensor):
        tid = gpu.thread_idx.x
        x = [X[tid * 4 + i] for i in range(4)]
        word = raw_rocdl.cvt_pk_fp8_f32(T.i32, x[0], x[1], fx.Int32(0), False)
        word = raw_rocdl.cvt_pk_fp8_f32(res=T.i32, src_a=x[2], src_b=x[3], old=word, word_sel=True)
        Packed[tid] = word
        for half in range_constexpr(2):
            pair = Vec(raw_rocdl.cvt_pk_f32_fp8(T.vec(2, T.f32), word, half == 1))
            Y[tid * 4 + 2 * half] = pair[0]
            Y[tid * 4 + 2 * half + 1] = pair[1]
        assert T.f8x4 == T.vec(4, T.f8)

    launch = launcher_of(kernel, grid=1, block=64)
    x = torch.randn(256, generator=torch.Generator().manual_seed(4)) * 20
    packed, y = torch.zeros(64, dtype=torch.int32), torch.zeros(256)
    launch(x, packed, y)
    expected = x.to(torch.float8_e4m3fnuz)
    assert torch.equal(y, expected.float())
    assert torch.equal(packed.view(torch.uint8), expected.view(torch.uint8))


def test_builders_take_a_location_and_a_place() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        t = fx.Int32(fx.thread_idx.x)
        moved, branch = t + 5, scf.IfOp((t < 32).ir_value())
        first = raw_rocdl.readfirstlane(T.i32, moved, loc=None, ip=ir.InsertionPoint(branch.then_block))
        with ir.InsertionPoint(branch.then_block):
            Out[t] = fx.Int32(first)
            scf.YieldOp([])

    out = torch.zeros(WAVE, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=WAVE)(out)
    assert out.tolist() == [5] * 32 + [0] * 32


def test_split_k_with_a_semaphore() -> None:
    """The last workgroup waits in a hand-written loop until the others have added their parts."""

    @flyc.kernel
    def kernel(X: fx.Tensor, Sum: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
        part, tid = fx.Int32(gpu.block_id("x")), gpu.thread_idx.x
        flag = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), Flag)
        total = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), Sum)
        place = buffer_ops.get_element_ptr(total, tid, elem_type=T.f32)
        llvm.AtomicRMWOp(llvm.AtomicBinOp.fadd, place, X[part, tid], llvm.AtomicOrdering.monotonic, syncscope="agent")
        llvm.FenceOp(llvm.AtomicOrdering.release)
        gpu.barrier()
        first = raw_arith.CmpIOp(raw_arith.CmpIPredicate.eq, fx.Index(tid), arith.index(0)).result
        announce = scf.IfOp(first, results_=[], has_else=False)
        with ir.InsertionPoint(announce.then_block):
            llvm.AtomicRMWOp(llvm.AtomicBinOp.add, flag, fx.Int32(1), llvm.AtomicOrdering.monotonic, syncscope="agent")
            scf.YieldOp([])
        last = scf.IfOp(part == 2)
        with ir.InsertionPoint(last.regions[0].blocks[0]):
            wait = scf.WhileOp([T.i32], [fx.Int32(0)])
            before = ir.Block.create_at_start(wait.before, [T.i32])
            after = ir.Block.create_at_start(wait.after, [T.i32])
            with ir.InsertionPoint(before):
                seen = llvm.LoadOp(
                    T.i32, flag, alignment=4, ordering=llvm.AtomicOrdering.monotonic, syncscope="agent"
                ).result
                scf.ConditionOp(seen < 3, [seen])
            with ir.InsertionPoint(after):
                scf.YieldOp([after.arguments[0]])
            llvm.FenceOp(llvm.AtomicOrdering.acquire)
            Out[tid] = llvm.LoadOp(T.f32, place, alignment=4).result * 2.0
            scf.YieldOp([])

    launch = launcher_of(kernel, grid=3, block=64)
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(5))
    total, flag, out = torch.zeros(64), torch.zeros(1, dtype=torch.int32), torch.zeros(64)
    launch(x, total, flag, out)
    torch.testing.assert_close(out, x.sum(0) * 2)


def test_raw_memory_of_the_allocator() -> None:
    """memref.load and store on a view, and addresses in LDS as integers."""
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="raw_smem")
    words = allocator.allocate_array(T.i32, 64)

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        tid = gpu.thread_id("x")
        view = SmemPtr(allocator.get_base(), words(allocator.get_base()).byte_offset, T.i32, shape=(64,)).get()
        memref.store(fx.Int32(tid) * 3, view, [tid])
        gpu.barrier()
        reversed_tid = arith.index(63) - tid
        value = memref.load(view, [_raw(reversed_tid)])
        index = memref.extract_aligned_pointer_as_index(view)
        pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), fx.Int32(index) + fx.Int32(tid) * 4)
        same = llvm.load(T.i32, pointer)
        assert memref.load(view, [arith.index(0)]).type == T.i32
        Out[tid] = value + same

    @flyc.jit
    def launch(Out: fx.Tensor):
        _finalize(allocator)
        kernel(Out).launch(grid=1, block=64)

    out = torch.zeros(64, dtype=torch.int32)
    launch(out)
    lanes = torch.arange(64, dtype=torch.int32)
    assert torch.equal(out, (63 - lanes) * 3 + lanes * 3)


@pytest.mark.parametrize("operand", [lambda value: value, lambda value: [value]], ids=["value", "list"])
def test_atoms_on_values(operand: Callable[[Any], Any]) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        lane = gpu.thread_idx.x
        load = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
        tiles = [fx.logical_divide(t, fx.make_layout(4, 1)) for t in (A, B)]
        a, b = (fly.copy_atom_call_ssa([T.vec(4, T.f16)], load, fx.slice(t, (None, lane))) for t in tiles)
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        c = fly.mma_atom_call_ssa([T.vec(4, T.f32)], atom, operand(a), operand(b), fx.Vector.filled(4, 1.0, fx.Float32))
        store = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        out = fx.logical_divide(C, fx.make_layout(4, 1))
        fly.copy_atom_call_ssa([], store, Vec(c) * 2.0, dst=fx.slice(out, (None, lane)))

    launch = launcher_of(kernel, grid=1, block=64)
    generator = torch.Generator().manual_seed(6)
    a, b = (torch.randn(256, generator=generator).half() for _ in range(2))
    c = torch.zeros(256)
    launch(a, b, c)

    def matrix(t: torch.Tensor) -> torch.Tensor:  # lane 16 q + r holds row r, columns 4 q on
        return t.view(4, 16, 4).permute(1, 0, 2).reshape(16, 16).float()

    product = matrix(a) @ matrix(b).T + 1  # lane 16 q + n holds rows 4 q on of column n
    torch.testing.assert_close(c, product.view(4, 4, 16).permute(0, 2, 1).reshape(-1) * 2, atol=1e-2, rtol=1e-2)


def test_a_matrix_instruction_on_two_values_of_an_operand() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        a = fx.Vector.filled(4, 1.0, fx.Float16)
        fly.mma_atom_call_ssa([T.vec(4, T.f32)], atom, [a, a], [a], fx.Vector.filled(4, 1.0, fx.Float32))

    with pytest.raises(ArgumentError, match="operand a of mma_atom_call_ssa holds 2 values, not one"):
        launcher_of(kernel, grid=1, block=64)(torch.zeros(1))


class _LazyTile:
    """A helper as kernels' files have them: what it needs it makes when it is first used."""

    def __init__(self, tensor: Any, columns: int) -> None:
        self.tensor, self.columns = tensor, columns
        self.strides: Any = None
        self.cache: dict[str, Any] = {}

    def offset(self, row: Any, column: Any) -> Any:
        if self.strides is None:
            self.strides = (self.columns, 1)
            self.cache["load"] = lambda at: buffer_ops.buffer_load(self.tensor, at, vec_width=1, dtype=T.f32)
        return row * self.strides[0] + column

    def load(self, row: Any, column: Any) -> Any:
        return self.cache["load"](self.offset(row, column)) if self.cache else self.load_after(row, column)

    def load_after(self, row: Any, column: Any) -> Any:
        place = self.offset(row, column)
        return self.cache["load"](place)


def test_helpers_may_be_completed_inside_of_a_loop() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor, rows: fx.Int32):
        tile = _LazyTile(buffer_ops.create_buffer_resource(A), 64)
        total = fx.Float32(0.0)
        for row in range(rows):
            total = total + tile.load(row, fx.thread_idx.x)
        C[fx.thread_idx.x] = total

    launch = launcher_of(kernel, grid=1, block=64)
    a, c = torch.randn(5, 64, generator=torch.Generator().manual_seed(3)), torch.zeros(64)
    launch(a, c, 5)
    torch.testing.assert_close(c, a.sum(0))


def test_helpers_may_not_keep_what_a_loop_computes() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor, rows: fx.Int32):
        tile = _LazyTile(A, 64)
        for row in range(rows):
            tile.strides = (row, 1)
        C[0] = tile.offset(fx.Int32(2), fx.Int32(1)).to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=1)
    with pytest.raises(TraceError, match="tile"):
        launch(torch.zeros(5, 64), torch.zeros(64), 5)


def test_an_extent_may_be_unknown() -> None:
    """`None` in the shape of a layout that only says where things are."""

    @flyc.kernel
    def kernel(C: fx.Tensor, token: fx.Int32):
        places = fx.make_layout((None, 2, 4), (64, 32, 8))
        assert "(?,2,4):(64,32,8)" in str(places.type)
        head, vector_number = gpu.thread_id("x") // 4, gpu.thread_id("x") % 4
        place = fx.get_scalar(fx.crd2idx((token, head, vector_number), places))
        C[fx.thread_idx.x] = fx.Int32(place)

    launch = launcher_of(kernel, grid=1, block=8)
    c = torch.zeros(8, dtype=torch.int32)
    launch(c, 1000)
    assert c.tolist() == [64_000 + head * 32 + number * 8 for head in range(2) for number in range(4)]
    with pytest.raises(LayoutError):
        fx.make_layout((None, 4))


@pytest.mark.parametrize("has_addition", [False, True])
def test_a_branch_without_its_end_is_an_error_at_its_line(has_addition: bool) -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor):
        branch = scf.IfOp(fx.thread_idx.x < 3, results_=[X.value.type], has_else=True)
        if has_addition:
            with ir.InsertionPoint(branch.then_block):
                raw_arith.AddIOp(fx.Int32(1), fx.Int32(2))
        X[fx.thread_idx.x] = 1.0

    launch = launcher_of(kernel, grid=1, block=64)
    with pytest.raises(CompileError, match=r"scf\.if does not end with an scf\.yield") as caught:
        launch(torch.zeros(64))
    assert "scf.IfOp(fx.thread_idx.x < 3" in str(caught.value)


def test_a_value_of_another_width_than_the_tensors_elements() -> None:
    """The instruction's bits as the program's type, from the place of one element; a pointer's type from another's."""

    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        move = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Int32)
        place = fx.Int32(fx.thread_idx.x * 8)
        source, target = (fx.logical_divide(fx.rocdl.make_buffer_tensor(t), fx.make_layout(1, 1)) for t in (X, Y))
        words = fly.copy_atom_call_ssa([T.vec(4, T.i32)], move, fx.slice(source, (None, place)))
        kind = fx.PointerType(fx.get_iter(source).type)
        assert fx.PointerType.get(elem_ty=T.f16, address_space=kind.space, alignment=2).element == kind.element
        fly.copy_atom_call_ssa([], move, words, fx.slice(target, (None, place)))

    launch = launcher_of(kernel, grid=1, block=64)
    x, y = torch.randn(512).half(), torch.zeros(512, dtype=torch.float16)
    launch(x, y)
    assert torch.equal(x, y)


def test_an_atom_on_a_value_under_a_predicate() -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        lane = fx.thread_idx.x
        move = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        source, target = (fx.slice(fx.logical_divide(t, fx.make_layout(1, 1)), (None, lane)) for t in (X, Y))
        value = fly.copy_atom_call_ssa([T.f32], move, source, pred=lane < 16)
        fly.copy_atom_call_ssa([], move, value, dst=target, pred=lane < 32)

    launch = launcher_of(kernel, grid=1, block=64)
    x, y = torch.randn(16), torch.ones(32)
    launch(x, y)
    assert torch.equal(y, torch.cat([x, torch.zeros(16)]))


def test_a_store_of_a_value_without_its_target() -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor):
        fly.copy_atom_call_ssa([], fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), X)

    launch = launcher_of(kernel, grid=1, block=64)
    with pytest.raises(ArgumentError, match="copy_atom_call_ssa without a target and with 0 results"):
        launch(torch.zeros(1))


@pytest.mark.parametrize(
    "policy",
    [{}, {"aux": None}, {"aux": 2}, {"aux": lambda: ir.IntegerAttr.get(T.i32, 2)}, {"aux": lambda: _raw(fx.Int32(2))}],
    ids=["left out", "None", "number", "attribute", "operand"],
)
def test_the_cache_policy_of_a_buffer_instruction(policy: dict[str, Any]) -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        source, target = buffer_ops.create_buffer_resource(X), buffer_ops.create_buffer_resource(Y)
        place, none = _raw(fx.thread_idx.x * 4), _raw(fx.Int32(0))
        given = {name: value() if callable(value) else value for name, value in policy.items()}
        value = raw_rocdl.RawPtrBufferLoadOp(T.f32, source, place, none, **given).result
        rocdl.RawPtrBufferStoreOp(value, target, place, none, given.get("aux"))
        raw_rocdl.raw_ptr_buffer_store(value, target, _raw(fx.thread_idx.x * 4 + 256), none, **given)

    x, y = torch.rand(64), torch.zeros(128)
    launch = launcher_of(kernel, grid=1, block=64)
    launch(x, y)
    assert torch.equal(y, x.repeat(2))
    is_streamed = policy.get("aux") is not None
    assert launch.lower(x, y, arch="gfx942").artifact.isa.count(" nt") == 3 * is_streamed


def test_a_resource_as_four_words() -> None:
    @flyc.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        address = fx.Int64(
            llvm.PtrToIntOp(T.i64, fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr"), X)).result
        )
        words = [address.trunci(T.i32), address.shrui(fx.Int64(32)).trunci(T.i32), 256, buffer_ops._get_buffer_flags()]
        rsrc = Vec.from_elements([fx.Int32(word) for word in words], fx.Int32).ir_value()
        place = fx.thread_idx.x * 4
        rocdl.raw_buffer_atomic_fadd(fx.Float32(1.0), rsrc, place, 0, 0)
        value = rocdl.raw_buffer_load(T.f32, rsrc, place, 0, 0)
        rocdl.raw_buffer_store(value * 2.0, rsrc, place, 0, 0)
        Y[fx.thread_idx.x] = value

    launch = launcher_of(kernel, grid=1, block=64)
    x, y = torch.arange(64).float(), torch.zeros(64)
    launch(x, y)
    assert torch.equal(y, torch.arange(64) + 1.0)
    assert torch.equal(x, 2 * y)


@pytest.mark.parametrize("what", ["operation", "block", "argument"])
def test_what_outlives_its_trace_is_an_error_where_it_is_used(what: str) -> None:
    kept: list[Any] = []

    @flyc.kernel
    def kernel(x: fx.Int32, again: fx.Constexpr[bool]):
        number, block = ir.IntegerType.get_signless(32), ir.InsertionPoint.current.block
        if again:
            if what == "block":
                with ir.InsertionPoint(kept[0]):
                    raw_arith.ConstantOp(number, 4)
            else:
                old = kept[0].result if what == "operation" else kept[0]
                raw_arith.AddIOp(old, old)
        else:
            made = {"operation": raw_arith.ConstantOp(number, 3), "block": block, "argument": block.arguments[0]}
            kept.append(made[what])

    launch = launcher_of(kernel, grid=1, block=WAVE)
    launch.lower(1, False).run()
    with pytest.raises(ArgumentError, match=r"of another module|already has a terminator") as caught:
        launch.lower(1, True).run()
    assert f"at {__file__}:" in str(caught.value)
