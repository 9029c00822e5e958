"""What the architecture guide shows: pipeline, abstractions, environment variables, dumps."""

from __future__ import annotations

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_executor import JITCFunction
from flydsl.compiler.kernel_function import KernelLauncher
from flydsl.compiler.lowering.mlir_compiler import MlirCompiler

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
