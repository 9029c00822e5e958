"""The snippets of the earlier kernel authoring guide, section by section."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import JitArgumentRegistry
from flydsl.compiler.jit_executor import JitCompiledFunction
from flydsl.compiler.jit_function import JitFunction
from flydsl.compiler.kernel_function import CompilationContext, KernelFunction
from flydsl.errors import LaunchError, TraceError
from flydsl.expr import arith, buffer_ops, const_expr, gpu, range_constexpr, rocdl, vector
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator, SmemPtr

Run = Callable[..., None]
Compile = Callable[..., str]


@flyc.kernel
def vec_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int]):
    idx = gpu.block_idx.x * 256 + gpu.thread_idx.x
    if idx < N:
        C[idx] = A[idx] + B[idx]


@flyc.jit
def vec_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    vec_add_kernel(A, B, C, N).launch(grid=(N // 256,), block=(256,), stream=stream)


def three(count: int) -> list[torch.Tensor]:
    return [torch.randn(count, generator=torch.Generator().manual_seed(0)) for _ in range(2)] + [torch.zeros(count)]


def test_1_1_a_kernel_and_its_launcher() -> None:
    A, B, C = three(1024)
    vec_add(A, B, C, 1024)
    assert torch.equal(C, A + B)


def test_1_2_what_the_decorators_make() -> None:
    assert isinstance(vec_add_kernel, KernelFunction)
    assert isinstance(vec_add, JitFunction)
    with pytest.raises(TraceError):
        vec_add_kernel(1, 2, 3, 4)


def test_2_1_tensors() -> None:
    @flyc.kernel
    def my_kernel(input: fx.Tensor, output: fx.Tensor):
        output[fx.thread_idx.x] = input[fx.thread_idx.x]

    @flyc.jit
    def launch(input: fx.Tensor, output: fx.Tensor):
        my_kernel(input, output).launch(grid=1, block=64)

    source, copy = torch.randn(64), torch.zeros(64)
    launch(source, copy)
    assert torch.equal(source, copy)


def test_2_2_and_5_1_constants_of_compile_time() -> None:
    @flyc.kernel
    def my_kernel(data: fx.Tensor, N: fx.Constexpr[int], dtype: fx.Constexpr[str]):
        total = fx.Float32(0) if dtype == "f32" else fx.Int32(0)
        for i in range_constexpr(N // 64):
            total = total + (i + 1)
        data[fx.thread_idx.x] = total

    @flyc.jit
    def launch(data: fx.Tensor, N: fx.Constexpr[int], dtype: fx.Constexpr[str]):
        my_kernel(data, N, dtype).launch(grid=1, block=64)

    floats, ints = torch.zeros(64), torch.zeros(64, dtype=torch.int32)
    launch(floats, 192, "f32")
    launch(ints, 128, "i32")
    assert (floats == 6).all()
    assert (ints == 3).all()


def test_2_3_2_4_and_7_2_runtime_integers_and_streams() -> None:
    @flyc.kernel
    def my_kernel(data: fx.Tensor, M: fx.Int32):
        i = fx.block_idx.x * 256 + fx.thread_idx.x
        data[i] = M + i

    @flyc.jit
    def launch(data: fx.Tensor, M: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        grid_x = M // 256
        my_kernel(data, M).launch(grid=(grid_x, 1, 1), block=(256, 1, 1), stream=stream)

    data = torch.zeros(1024, dtype=torch.int32)
    launch(data, 512)
    assert torch.equal(data[:512], torch.arange(512, 1024, dtype=torch.int32))
    assert not data[512:].any()
    launch(data, 1024, stream=fx.Stream(None))
    assert torch.equal(data, torch.arange(1024, 2048, dtype=torch.int32))


def test_2_5_a_class_of_the_users_own() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

    class DslScale:
        def __init__(self, factor: Any) -> None:
            self.factor = factor

        @classmethod
        def __construct_from_ir_values__(cls, values: list[Any]) -> DslScale:
            return cls(fx.Float32(values[0]))

        def __extract_to_ir_values__(self) -> list[Any]:
            return [self.factor.ir_value()]

    @JitArgumentRegistry.register(Scale, dsl_type=DslScale)
    class ScaleAdaptor:
        def __init__(self, value: Scale) -> None:
            self.number = ctypes.c_float(value.factor)

        def __ir_types__(self) -> list[Any]:
            return [T.f32]

        def __c_pointers__(self) -> list[Any]:
            return [ctypes.cast(ctypes.pointer(self.number), ctypes.c_void_p)]

    @flyc.kernel
    def kernel(out: fx.Tensor, scale):
        out[fx.thread_idx.x] = scale.factor * fx.thread_idx.x

    @flyc.jit
    def launch(out: fx.Tensor, scale):
        kernel(out, scale).launch(grid=1, block=64)

    out = torch.zeros(64)
    for factor in (0.5, 3.0):
        launch(out, Scale(factor))
        assert torch.equal(out, torch.arange(64) * factor)


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


def test_4_3_buffers(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        offset = gpu.thread_idx.x * 4
        data = buffer_ops.buffer_load(buffer_ops.create_buffer_resource(A), offset, vec_width=4)
        buffer_ops.buffer_store(data, buffer_ops.create_buffer_resource(Out), offset)

    a, out = torch.randn(256), torch.zeros(256)
    launched(body, a, out)
    assert torch.equal(a, out)


def packed(rows: int, k: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Small integers (rows, k), and the same as a lane's k / 4 neighbours, (64, k / 4)."""
    matrix = torch.randint(-4, 5, (rows, k), generator=torch.Generator().manual_seed(k)).to(dtype)
    return matrix, matrix.view(rows, 4, k // 4).transpose(0, 1).reshape(64, k // 4).contiguous()


@pytest.mark.parametrize("kind", ["f16", "fp8", "i8"])
def test_4_4_matrix_instructions(launched: Run, kind: str) -> None:
    dtype = {"f16": torch.float16, "fp8": torch.float8_e4m3fnuz, "i8": torch.int8}[kind]
    k = 16 if kind == "f16" else 32
    (a, lanes_a), (b, lanes_b) = packed(16, k, dtype), packed(16, k, dtype)

    def body(A: Any, B: Any, Out: Any) -> None:
        lane = gpu.thread_idx.x
        a, b = (
            buffer_ops.buffer_load(buffer_ops.create_buffer_resource(X), lane * 2, vec_width=2, dtype=T.i32)
            for X in (A, B)
        )
        if kind == "f16":
            acc = rocdl.mfma_f32_16x16x16_f16(
                vector.bitcast(T.f16x4, a), vector.bitcast(T.f16x4, b), arith.constant_vector(0.0, T.f32x4)
            )
        else:
            a, b = (vector.extract(vector.bitcast(T.vec(1, T.i64), x), [0]) for x in (a, b))
            if kind == "fp8":
                acc = rocdl.mfma_f32_16x16x32_fp8(a, b, arith.constant_vector(0.0, T.f32x4))
            else:
                acc = rocdl.mfma_i32_16x16x32i8(a, b, arith.constant_vector(0, T.i32x4))
        vector.store(acc, Out, [arith.index_cast(T.index, lane * 4)])

    out = torch.zeros(256, dtype=torch.int32 if kind == "i8" else torch.float32)
    launched(body, lanes_a.view(torch.int32).flatten(), lanes_b.view(torch.int32).flatten(), out)
    product = a.float() @ b.float().T
    assert torch.equal(out.view(4, 16, 4).permute(0, 2, 1).reshape(16, 16).float(), product)


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


def test_5_1_loops_of_run_time() -> None:
    @flyc.kernel
    def my_kernel(data: fx.Tensor, runtime_value: fx.Int32, N: fx.Constexpr[int]):
        total = fx.Int32(0)
        for i in range(runtime_value):
            for j in range_constexpr(N):
                total = total + i * N + j
        data[fx.thread_idx.x] = total

    @flyc.jit
    def launch(data: fx.Tensor, runtime_value: fx.Int32, N: fx.Constexpr[int]):
        my_kernel(data, runtime_value, N).launch(grid=1, block=64)

    data = torch.zeros(64, dtype=torch.int32)
    for count in (0, 5):
        launch(data, count, 3)
        assert (data == sum(range(3 * count))).all()


def test_5_2_const_expr() -> None:
    @flyc.kernel
    def my_kernel(data: fx.Tensor, N: fx.Constexpr[int]):
        tile_size = const_expr(N // 4)
        for i in range_constexpr(tile_size):
            data[fx.thread_idx.x, i] = i

    @flyc.jit
    def launch(data: fx.Tensor, N: fx.Constexpr[int]):
        my_kernel(data, N).launch(grid=1, block=64)

    data = torch.zeros(64, 4, dtype=torch.int32)
    launch(data, 12)
    assert torch.equal(data, torch.tensor([0, 1, 2, 0], dtype=torch.int32).expand(64, 4))


def test_6_1_and_6_2_an_allocator_of_shared_memory(launched: Run) -> None:
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem0")
    lds_a = allocator.allocate_array(T.f16, 8192)
    lds_b = allocator.allocate_array(T.f16, 8192)

    def body(A: Any, Out: Any) -> None:
        finalize(allocator)
        lds_base = allocator.get_base()
        lds_a_ptr, lds_b_ptr = lds_a(lds_base), lds_b(lds_base)
        assert isinstance(lds_a_ptr, SmemPtr)
        idx = gpu.thread_idx.x
        lds_a_ptr.store(A[idx], [idx])
        lds_b_ptr.store(A[idx] * 2, [idx + 8000])
        gpu.barrier()
        val = lds_a_ptr.load([63 - idx])
        Out[idx] = val + lds_b_ptr.load([8063 - idx])

    a, out = torch.randn(64).half(), torch.zeros(64).half()
    launched(body, a, out)
    assert torch.equal(out, (a + a * 2).flip(0))


def test_6_3_the_capacity() -> None:
    for arch, kib in (("gfx942", 64), ("gfx950", 160)):
        SmemAllocator(None, arch=arch).allocate(kib * 1024)
        with pytest.raises(LaunchError, match=str(kib * 1024)):
            SmemAllocator(None, arch=arch).allocate(kib * 1024 + 1)


def test_7_1_sizes_of_a_launch() -> None:
    @flyc.kernel
    def my_kernel(data: fx.Tensor):
        shared = fx.recast_iter(fx.PointerType.get(T.i32, "shared"), fx.get_dyn_shared())
        t = fx.thread_idx.x + 32 * fx.thread_idx.y
        shared[t] = t
        gpu.barrier()
        block = fx.block_idx.x + 2 * (fx.block_idx.y + 3 * fx.block_idx.z)
        data[block, t] = shared[63 - t] + 100 * block

    @flyc.jit
    def launch(data: fx.Tensor, num_blocks_z: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        my_kernel(data).launch(grid=(2, 3, num_blocks_z), block=(32, 2), smem=256, stream=stream)

    data = torch.zeros(12, 64, dtype=torch.int32)
    launch(data, 2)
    blocks, threads = torch.arange(12, dtype=torch.int32)[:, None], torch.arange(64, dtype=torch.int32)
    assert torch.equal(data, 63 - threads + 100 * blocks)


def test_9_1_one_compilation_for_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B, C = three(512)
    vec_add(A, B, C, 512)
    before = vec_add.cache_info()
    vec_add(B, A, C, 512)
    again = vec_add.cache_info()
    assert (again.hits, again.misses) == (before.hits + 1, before.misses)
    vec_add(A, B, C, 256)  # another Constexpr
    assert vec_add.cache_info().misses == before.misses + 1


@pytest.mark.parametrize("variable", ["FLYDSL_RUNTIME_ENABLE_CACHE=0", "COMPILE_ONLY=1"])
def test_9_3_and_9_4_switches(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    name, value = variable.split("=")
    monkeypatch.setenv(name, value)
    A, B, C = three(768)
    assert vec_add(A, B, C, 768) is None
    assert torch.equal(C, torch.zeros(768) if name == "COMPILE_ONLY" else A + B)


def test_10_1_and_10_3_dumps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path / "my_dumps"))
    monkeypatch.setenv("FLYDSL_DEBUG_AST_DIFF", "1")

    @flyc.kernel
    def twice(A: fx.Tensor):
        if A[0] > 1.0:
            A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2

    @flyc.jit
    def launch(A: fx.Tensor):
        twice(A).launch(grid=1, block=64)

    launch(torch.ones(64))
    names = sorted(path.name for path in (tmp_path / "my_dumps" / "launch").iterdir())
    assert [names[0], names[3], names[-1]] == ["00_origin.mlir", "03_fly_layout_lowering.mlir", "21_final_isa.s"]
    shown = "".join(capfd.readouterr())
    assert "-        if A[0] > 1.0:" in shown or "-    if A[0] > 1.0:" in shown


def test_10_2_printing_what_was_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    A, B, C = three(256)
    compiled_func = flyc.compile(vec_add, A, B, C, 256)
    assert isinstance(compiled_func, JitCompiledFunction)
    compiled_func.print_ir()
    compiled = capsys.readouterr().out
    compiled_func.print_ir(compiled=False)
    original = capsys.readouterr().out
    assert "gpu.binary" in compiled
    assert "fly.memref.load" in original
    assert "gpu.func @vec_add_kernel" in original


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


SOURCE_FILES = {
    "compiler": "jit kernel from_dlpack",
    "compiler.jit_function": "jit MlirCompiler",
    "compiler.kernel_function": "kernel KernelFunction KernelLauncher",
    "compiler.jit_executor": "JitCompiledFunction",
    "compiler.jit_argument": "JitArgumentRegistry TensorAdaptor",
    "compiler.ast_rewriter": "ASTRewriter",
    "expr.typing": "Types T Tensor Stream Constexpr",
    "expr.arith": "constant select andi",
    "expr.vector": "from_elements store extractelement insertelement",
    "expr.gpu": "thread_id block_id barrier",
    "expr.buffer_ops": "buffer_load buffer_store create_buffer_resource",
    "expr.rocdl": "ds_bpermute",
    "expr.primitive": "make_shape crd2idx",
    "utils.smem_allocator": "SmemAllocator SmemPtr",
}


@pytest.mark.parametrize("module", SOURCE_FILES)
def test_13_where_things_are(module: str) -> None:
    found = importlib.import_module(f"flydsl.{module}")
    assert [name for name in SOURCE_FILES[module].split() if not hasattr(found, name)] == []
