"""The snippets of the earlier kernel authoring guide that no other test has, by section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.expr import arith, buffer_ops, gpu, range_constexpr, rocdl, vector
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator

Run = Callable[..., None]


def test_3_threads_and_blocks() -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor):
        tid = gpu.thread_idx.x + gpu.block_dim.x * (gpu.thread_idx.y + gpu.block_dim.y * gpu.thread_idx.z)
        bid = gpu.block_idx.x + gpu.grid_dim.x * gpu.block_idx.y
        raw = gpu.thread_id("x") + gpu.block_id("x") * 100
        row = bid * 32 + tid
        out[row, 0] = tid
        out[row, 1] = bid
        out[row, 2] = fx.Int32(raw)

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(2, 3), block=(4, 4, 2))

    out = torch.zeros(6 * 32, 3, dtype=torch.int32)
    launch(out)
    rows = torch.arange(6 * 32, dtype=torch.int32)
    tid, bid = rows % 32, rows // 32
    assert torch.equal(out, torch.stack([tid, bid, tid % 4 + bid % 2 * 100], dim=1))


def test_4_1_arithmetic(launched: Run) -> None:
    def body(Out: Any) -> None:
        c42, c3_14 = arith.constant(42, index=True), arith.constant(3.14, T.f32)
        b = arith.index_cast(T.index, gpu.thread_idx.x)
        cond = b < c42
        results = [
            c42 + b,
            b * 2,
            b // 4,
            b % 16,
            arith.select(cond, b, c42),
            arith.andi(b, c42),
            arith.xori(b, c42),
            arith.shli(b, arith.constant(2, index=True)),
        ]
        for j, result in enumerate(results):
            Out[b, j] = arith.index_cast(T.i32, result).to(fx.Float32)
        Out[b, 8] = c3_14

    out = torch.zeros(64, 9)
    launched(body, out)
    n = torch.arange(64)
    expected = [42 + n, n * 2, n // 4, n % 16, n.clamp(max=42), n & 42, n ^ 42, n << 2, torch.full((64,), 3.14)]
    assert torch.equal(out, torch.stack([column.float() for column in expected], dim=1))


def test_4_2_vectors(launched: Run) -> None:
    def body(Out: Any) -> None:
        i = arith.index_cast(T.index, gpu.thread_idx.x)
        parts = [fx.Float32(gpu.thread_idx.x * 4 + j) for j in range(4)]
        vec = vector.from_elements(T.vec(4, T.f32), parts)
        vector.store(vec, Out, [i * 8])
        elem = vector.extractelement(vec, arith.constant(2, index=True))
        vec2 = vector.insertelement(vec, elem, arith.constant(0, index=True))
        vector.store(vec2, Out, [i * 8 + 4])

    out = torch.zeros(512)
    launched(body, out)
    four = torch.arange(256).float().view(64, 4)
    replaced = four.clone()
    replaced[:, 0] = four[:, 2]
    assert torch.equal(out.view(64, 8), torch.cat([four, replaced], dim=1))


def test_4_4_lanes_and_shared_memory(launched: Run) -> None:
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem_b128")
    lds = allocator.allocate_array(T.i32, 256)

    def body(Out: Any) -> None:
        finalize(allocator)
        lane = gpu.thread_idx.x
        val = rocdl.ds_bpermute((lane ^ 1) * 4, lane * 10)
        pointer = lds(allocator.get_base())
        lds_ptr = buffer_ops.create_llvm_ptr(buffer_ops.extract_base_index(pointer.get()), 3)
        four = vector.from_elements(T.i32x4, [val, lane, lane + 1, lane + 2])
        rocdl.ds_write_b128(lds_ptr, lane * 16, four)
        gpu.barrier()
        data = rocdl.ds_read_b128(lds_ptr, (63 - lane) * 16)
        vector.store(data, Out, [arith.index_cast(T.index, lane * 4)])

    out = torch.zeros(256, dtype=torch.int32)
    launched(body, out)
    lane = torch.arange(63, -1, -1, dtype=torch.int32)
    assert torch.equal(out.view(64, 4), torch.stack([(lane ^ 1) * 10, lane, lane + 1, lane + 2], dim=1))


def test_4_5_and_8_barrier_and_the_space_of_shared_memory(launched: Run) -> None:
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem_barrier")
    shared = allocator.allocate_array(T.f32, 128)

    def body(A: Any, Out: Any) -> None:
        assert str(gpu.smem_space()) == "#gpu.address_space<workgroup>"
        assert gpu.smem_space(int=True) == 3
        finalize(allocator)
        ptr, i = shared(allocator.get_base()), gpu.thread_idx.x
        ptr.store(A[i], [i])
        gpu.barrier()
        Out[i] = ptr.load([127 - i])

    a, out = torch.randn(128), torch.zeros(128)
    launched(body, a, out, block=128)
    assert torch.equal(out, a.flip(0))


def finalize(allocator: SmemAllocator) -> None:
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        allocator.finalize()


def test_11_a_launcher_made_by_a_function() -> None:
    def compile_row_scale(*, tile_m: int, tile_k: int, in_dtype: str = "i8") -> flyc.JitFunction:
        allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem_rows")
        lds_a = allocator.allocate_array(T.i8, tile_m * tile_k)

        @flyc.kernel
        def kernel(arg_c: fx.Tensor, arg_a: fx.Tensor, arg_scale_a: fx.Tensor, m_in: fx.Int32):
            tid, row = gpu.thread_idx.x, gpu.block_idx.x * tile_m
            a = lds_a(allocator.get_base())
            for i in range_constexpr(tile_m):
                a.store(arg_a[row + i, tid], [i * tile_k + tid])
            gpu.barrier()
            for i in range_constexpr(tile_m):
                if row + i < m_in:
                    value = a.load([i * tile_k + (tile_k - 1 - tid)])
                    arg_c[row + i, tid] = value.to(fx.Float32) * arg_scale_a[row + i]

        @flyc.jit
        def launch_fn(
            arg_c: fx.Tensor,
            arg_a: fx.Tensor,
            arg_scale_a: fx.Tensor,
            M_val: fx.Int32,
            stream: fx.Stream = fx.Stream(None),
        ):
            finalize(allocator)
            kernel(arg_c, arg_a, arg_scale_a, M_val).launch(
                grid=(M_val // tile_m, 1), block=(tile_k,), smem=0, stream=stream
            )

        return launch_fn

    a = torch.randint(-9, 9, (8, 64), dtype=torch.int8, generator=torch.Generator().manual_seed(1))
    scale, c = torch.arange(8.0), torch.zeros(8, 64)
    compile_row_scale(tile_m=4, tile_k=64)(c, a, scale, 8)
    assert torch.equal(c, a.flip(1).float() * scale[:, None])
