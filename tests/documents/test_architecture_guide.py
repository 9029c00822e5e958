"""What the architecture guide shows: pipeline, abstractions, environment variables, dumps."""

from __future__ import annotations

import ctypes
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
