"""What the architecture guide shows: pipeline, abstractions, environment variables, dumps."""

from __future__ import annotations

import ctypes
import importlib
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import JitArgumentRegistry
from flydsl.compiler.jit_executor import JITCFunction
from flydsl.compiler.kernel_function import KernelLauncher
from flydsl.compiler.mlir_compiler import MlirCompiler
from flydsl.compiler.protocol import DslType, JitArgument
from flydsl.errors import FlyError
from flydsl.runtime.device import get_rocm_arch
from flydsl.utils.env import EnvManager
from tests.compiler.test_pipeline import DUMP_FILES

STAGES_A = [
    "fly-rewrite-func-signature",
    "fly-canonicalize",
    "fly-layout-lowering",
    "fly-int-swizzle-simplify",
    "canonicalize",
    "fly-convert-atom-call-to-ssa-form",
    "fly-promote-regmem-to-vectorssa",
    "convert-fly-to-rocdl",
    "canonicalize",
    "gpu.module",
]
STAGES_B = [
    "rocdl-attach-target",
    "convert-scf-to-cf",
    "convert-cf-to-llvm",
    "gpu-to-llvm",
    "convert-vector-to-llvm",
    "convert-arith-to-llvm",
    "convert-func-to-llvm",
    "reconcile-unrealized-casts",
]


@flyc.kernel
def my_kernel(a: fx.Tensor, b: fx.Tensor, n: fx.Constexpr[int]):
    tid = fx.gpu.thread_id("x")
    bid = fx.gpu.block_id("x")
    i = fx.Int32(bid * 256 + tid)
    if i < n:
        b[i] = a[i] + 1


@flyc.jit
def launch(a: fx.Tensor, b: fx.Tensor, n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    my_kernel(a, b, n).launch(grid=(n // 256,), block=(256,), stream=stream)


def test_3_2_the_stages() -> None:
    stages, binary = flyc.get_backend(arch="gfx942")._pipeline_parts(compile_hints={})
    lowering, to_llvm = stages[: len(STAGES_A)], stages[len(STAGES_A) :]
    assert [name.partition("{")[0].partition("(")[0] for name in lowering] == STAGES_A
    assert [name.partition("{")[0] for name in to_llvm] == STAGES_B
    assert binary.partition("{")[0] == "gpu-module-to-binary"
    inside = lowering[-1]
    assert all(
        part in inside for part in ("convert-scf-to-cf", "cse", "convert-gpu-to-rocdl", "fly-rocdl-cluster-attr")
    )
    assert "use-bare-pointers-for-kernels=true" in to_llvm[3]


def test_3_2_debug_information_adds_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")
    stages, _ = flyc.get_backend(arch="gfx942")._pipeline_parts(compile_hints={})
    assert stages[-1].startswith("ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly")


def test_3_3_the_compiler_of_modules() -> None:
    traced = launch.lower(torch.zeros(256), torch.zeros(256), 256)
    compiled = MlirCompiler.compile(traced.traced.module, arch="gfx942")
    assert isinstance(compiled, ir.Module)
    assert "gpu.binary" in str(compiled)
    assert "gpu.func" in traced.current_text()
    assert traced.position == 0


def test_4_1_a_launcher_inside_of_another() -> None:
    @flyc.jit
    def twice(a: fx.Tensor, b: fx.Tensor, n: fx.Constexpr[int]):
        launch(a, b, n)
        launch(b, a, n)

    a, b = torch.zeros(256), torch.zeros(256)
    twice(a, b, 256)
    assert (a == 2).all()
    assert (b == 1).all()


def test_4_2_a_kernel_is_called_in_a_launcher() -> None:
    with pytest.raises(FlyError):
        my_kernel(torch.zeros(4), torch.zeros(4), 4)


def test_4_3_the_launch_is_a_call_of_its_own() -> None:
    @flyc.jit
    def later(a: fx.Tensor, b: fx.Tensor, shared_mem_bytes: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
        launcher = my_kernel(a, b, 1024)
        assert isinstance(launcher, KernelLauncher)
        launcher.launch(grid=(4, 1, 1), block=(256, 1, 1), smem=shared_mem_bytes, stream=stream)

    a, b = torch.randn(1024), torch.zeros(1024)
    later(a, b, 512)
    assert torch.equal(b, a + 1)


def test_4_4_the_executor() -> None:
    a, b = torch.randn(512), torch.zeros(512)
    compiled = flyc.compile(launch, a, b, 512)
    assert isinstance(compiled, JITCFunction)
    b.zero_()
    compiled(a, b, 512)
    assert torch.equal(b, a + 1)


class Offsets:
    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers


class DslOffsets:
    def __init__(self, numbers: list[Any]) -> None:
        self.numbers = numbers

    @classmethod
    def __construct_from_ir_values__(cls, values: list[ir.Value]) -> DslOffsets:
        return cls([fx.Int32(value) for value in values])

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [number.ir_value() for number in self.numbers]


@JitArgumentRegistry.register(Offsets, dsl_type=DslOffsets)
class OffsetsArgument:
    def __init__(self, value: Offsets) -> None:
        self.numbers = [ctypes.c_int32(number) for number in value.numbers]

    def __get_ir_types__(self) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)] * len(self.numbers)

    def __get_c_pointers__(self) -> list[ctypes.c_void_p]:
        return [ctypes.cast(ctypes.pointer(number), ctypes.c_void_p) for number in self.numbers]


def test_4_5_protocols() -> None:
    assert isinstance(DslOffsets([]), DslType)
    assert isinstance(OffsetsArgument(Offsets(1)), JitArgument)

    @flyc.kernel
    def kernel(out: fx.Tensor, offsets: DslOffsets):
        for j, number in enumerate(offsets.numbers):
            out[j] = number

    @flyc.jit
    def write(out: fx.Tensor, offsets: Offsets):
        kernel(out, offsets).launch(grid=1, block=1)

    out = torch.zeros(3, dtype=torch.int32)
    write(out, Offsets(3, 1, 2))
    assert out.tolist() == [3, 1, 2]
    write(out, Offsets(7))
    assert out.tolist() == [7, 1, 2]


def test_4_6_what_the_rewriter_makes_of_loops_and_branches() -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32, m: fx.Constexpr[int]):
        total = fx.Int32(0)
        for i in range(n):
            if i > 2:
                total = total + fx.const_expr(m)
        for _ in fx.range_constexpr(m):
            total = total + 1
        out[0] = total

    @flyc.jit
    def run(out: fx.Tensor, n: fx.Int32, m: fx.Constexpr[int]):
        kernel(out, n, m).launch(grid=1, block=1)

    out = torch.zeros(1, dtype=torch.int32)
    origin = run.lower(out, 6, 4).origin
    assert [origin.count(name) for name in ("scf.for", "scf.if")] == [1, 1]
    run(out, 6, 4)
    assert out.item() == 3 * 4 + 4


@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_5_1_optimization_levels(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", level)
    a, b = torch.randn(256), torch.zeros(256)
    launch(a, b, 256)
    assert torch.equal(b, a + 1)


def test_5_1_compiling_only_and_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_ONLY", "1")
    monkeypatch.setenv("ARCH", "gfx950")
    a, b = torch.randn(256), torch.zeros(256)
    assert launch(a, b, 256) is None
    assert not b.any()
    assert "gfx950" in launch.lower(a, b, 256).artifact.isa


def test_5_2_debugging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("DEBUG_DUMP_ASM", "DEBUG_PRINT_ORIGIN_IR", "DEBUG_PRINT_AFTER_ALL", "DEBUG_ENABLE_VERIFIER"):
        monkeypatch.setenv(f"FLYDSL_{name}", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path))
    launch.lower(torch.zeros(256), torch.zeros(256), 256).run()
    shown = "".join(capfd.readouterr())
    assert "fly.memref.load" in shown or "fly.memref_load" in shown
    assert shown.count("convert-fly-to-rocdl") >= 1
    assert any(path.suffix == ".s" for path in tmp_path.rglob("*"))


def test_5_2_the_log_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_LOG_LEVEL", "INFO")
    logger = importlib.import_module("flydsl.utils.logger")
    try:
        assert importlib.reload(logger).log.level == logging.INFO
    finally:
        monkeypatch.delenv("FLYDSL_DEBUG_LOG_LEVEL")
        importlib.reload(logger)


def test_5_3_the_manager_of_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from flydsl.utils import env

    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    assert isinstance(env.runtime, EnvManager)
    assert str(env.runtime.cache_dir) == str(tmp_path)
    assert env.runtime.enable_cache is False
    assert env.compile.opt_level == 2


def test_5_4_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.5.0")
    assert get_rocm_arch() == "gfx950"
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1201")
    assert get_rocm_arch() == "gfx1201"
    monkeypatch.delenv("FLYDSL_GPU_ARCH")
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.4.2")
    assert get_rocm_arch() == "gfx942"


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1201", "gfx1250", "gfx90a"])
def test_6_targets(arch: str) -> None:
    assert arch in launch.lower(torch.zeros(256), torch.zeros(256), 256, arch=arch).artifact.isa


def test_7_dumps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path))
    launch.lower(torch.zeros(256), torch.zeros(256), 256).run()
    assert sorted(path.name for path in (tmp_path / "launch").iterdir()) == DUMP_FILES


SOURCE_FILES = {
    "compiler.jit_function": "MlirCompiler jit",
    "compiler.kernel_function": "kernel KernelFunction KernelLauncher CompilationContext",
    "compiler.jit_executor": "JITCFunction",
    "compiler.jit_argument": "JitArgumentRegistry TensorAdaptor from_dlpack",
    "compiler.ast_rewriter": "ASTRewriter",
    "compiler.protocol": "get_ir_types extract_to_ir_values construct_from_ir_values",
    "expr.typing": "Types Tensor Stream Constexpr",
    "expr.primitive": "make_layout copy gemm",
    "expr.derived": "CopyAtom MmaAtom TiledCopy",
    "expr.numeric": "Float32 Int32",
    "runtime.device": "get_rocm_arch",
    "utils.env": "EnvManager",
    "utils.smem_allocator": "SmemAllocator",
}


@pytest.mark.parametrize("module", SOURCE_FILES)
def test_8_where_things_are(module: str) -> None:
    found = importlib.import_module(f"flydsl.{module}")
    assert [name for name in SOURCE_FILES[module].split() if not hasattr(found, name)] == []
