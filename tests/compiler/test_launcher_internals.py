"""What FlyDSL's own tests look at in a launcher: its cache keys, its artifacts, the module that it is compiled from."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import jit_function
from flydsl.compiler.llvm_options import llvm_options
from flydsl.compiler.protocol import cache_signature
from flydsl.errors import ArgumentError, LaunchError


@flyc.kernel
def fill(Out: fx.Tensor, value: fx.Int32, scale: fx.Constexpr[int]):
    Out[fx.thread_idx.x] = value * scale


@flyc.jit
def launch(Out: fx.Tensor, value: fx.Int32, scale: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    fill(Out, value, scale).launch(grid=1, block=64, stream=stream)


def key(launcher: flyc.JitFunction, *args: Any) -> tuple[tuple[str, Any], ...]:
    launcher._ensure_sig()
    bound = launcher._sig.bind(*args)
    bound.apply_defaults()
    return launcher._resolve_and_make_cache_key(bound.arguments)


def test_a_cache_key_has_types_of_what_changes_and_values_of_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    out = torch.zeros(64, dtype=torch.int32)
    plain = key(launch, out, 1, 2)
    assert plain == key(launch, out, 5, 2, fx.Stream(0)) == key(launch, out, 5, 2, 17)
    assert {("value", (fx.Int32,)), ("scale", (int, 2)), ("stream", (fx.Stream,))} <= set(plain)
    assert plain[0] == ("_target_", flyc.get_backend().target)
    assert launch._make_cache_key({"Out": out, "value": 1, "scale": 2, "stream": fx.Stream(0)}) == plain
    assert plain != key(launch, out, 1, 3)
    with flyc.CompilationContext.compile_hints({"waves_per_eu": 2}):
        assert ("_hints_", (("waves_per_eu", "2"),)) in key(launch, out, 1, 2)
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", "0")
    assert plain != key(launch, out, 1, 2)


def test_the_full_key_has_what_the_launcher_refers_to(tmp_path: Path) -> None:
    file = tmp_path / "refers.py"
    file.write_text(
        "import flydsl.compiler as flyc\nimport flydsl.expr as fx\nN = 0\n@flyc.jit\ndef f(x: fx.Int32):\n    N + 1\n"
    )
    keys = []
    for n in (7, 99):
        spec = importlib.util.spec_from_file_location(f"refers{n}", file)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.N = n
        keys.append(module.f._build_full_cache_key({"x": 1}))
    assert keys[0] != keys[1]


def test_the_artifacts_of_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    out = torch.zeros(64, dtype=torch.int32)
    launch(out, 3, 5)
    last_key, artifact = launch._last_compiled
    assert last_key == key(launch, out, 3, 5)
    assert artifact in launch._mem_cache.values()
    assert "fly.memref" in artifact.source_ir
    assert "gpu.launch_func" in artifact.ir
    misses = launch.cache_info().misses
    launch._mem_cache.clear()
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    launch(out, 4, 5)
    assert launch.cache_info().misses == misses + 1
    assert launch._last_compiled[1] is not artifact
    assert torch.equal(out, torch.full_like(out, 20))


def test_a_program_that_compiles_modules_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Program:
        @flyc.kernel
        def body(self, value: fx.Int32):
            fx.printf("{}", value)

        @flyc.jit
        def run(self, value: fx.Int32):
            self.body(value).launch(grid=1, block=1)

    seen = []

    def compile_nothing(cls: type, module: Any, *, arch: str = "", func_name: str = "") -> Any:
        seen.append((arch, func_name))
        return module

    monkeypatch.setattr(jit_function, "_flydsl_key", lambda: "a key of their own")  # as FlyDSL's tests do
    monkeypatch.setattr(jit_function.MlirCompiler, "compile", classmethod(compile_nothing))
    monkeypatch.setenv("ARCH", "gfx942")
    monkeypatch.setenv("COMPILE_ONLY", "1")
    Program().run(7)
    assert seen == [("gfx942", "run")]
    last_key, artifact = Program.run._last_compiled
    assert last_key[0] == ("_self_type_", Program)
    assert "gpu.func @body_0" in artifact.source_ir
    assert artifact.ir == artifact.source_ir
    monkeypatch.delenv("COMPILE_ONLY")
    with pytest.raises(LaunchError, match="which is not machine code"):
        Program().run(8)


def test_hints_without_arguments_stay_with_the_launcher() -> None:
    @flyc.jit
    def nothing(value: fx.Int32):
        pass

    assert flyc.compile(nothing) is nothing
    assert flyc.compile[{"waves_per_eu": 2}](nothing) is nothing
    assert nothing.compile_hints == {"waves_per_eu": 2}
    with pytest.raises(TypeError, match="expects a dict"):
        flyc.compile["waves_per_eu"]


def test_options_of_llvm_for_a_block() -> None:
    with llvm_options({"enable-post-misched": False}), llvm_options({"amdgpu-early-inline-all": True}):
        assert flyc.CompilationContext.get_compile_hints()["llvm_options"] == {
            "enable-post-misched": False, "amdgpu-early-inline-all": True,
        }  # fmt: skip
    assert flyc.CompilationContext.get_compile_hints() == {}
    with pytest.raises(TypeError, match="Unsupported type list of LLVM's option 'x'"), llvm_options({"x": [1]}):
        pass


def test_a_class_that_is_passed_as_a_number_or_stream() -> None:
    class Ticket(int):
        pass

    class Queue:
        cuda_stream = 1234

    assert flyc.JitArgumentRegistry.get(Ticket) == (None, None)
    flyc.JitArgumentRegistry.register(Ticket)(fx.Int32)
    flyc.JitArgumentRegistry.register(Queue)(fx.Stream)
    assert flyc.JitArgumentRegistry.get(Ticket) == (fx.Int32, fx.Int32)
    out = torch.zeros(64, dtype=torch.int32)

    @flyc.jit
    def any_number(Out: fx.Tensor, value, stream):
        fill(Out, value, 2).launch(grid=1, block=64, stream=stream)

    any_number(out, Ticket(6), Queue())
    assert torch.equal(out, torch.full_like(out, 12))


class Span:
    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high


class InKernel:
    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any]) -> InKernel:
        return cls(fx.Int32(values[0]), fx.Int32(values[1]))


@flyc.JitArgumentRegistry.register(Span, dsl_type=InKernel)
class SpanArgument:
    def __init__(self, span: Span) -> None:
        pass

    def __get_ir_types__(self) -> list[Any]:
        return [fx.Int32.ir_type] * 2

    def __c_abi_spec__(self) -> list[Any]:
        def low(span: Span, slot: Any) -> None:
            slot.value = span.low

        def high(span: Span, slot: Any) -> None:
            slot.value = span.high

        return [(ctypes.c_int32, low), (ctypes.c_int32, high)]


def test_a_class_that_fills_the_slots_of_the_call() -> None:
    @flyc.jit
    def length(Out: fx.Tensor, span: Span):
        fill(Out, span.high - span.low, 1).launch(grid=1, block=64)

    out = torch.zeros(64, dtype=torch.int32)
    length(out, Span(3, 10))
    length(out, Span(5, 12))
    assert torch.equal(out, torch.full_like(out, 7))
    assert length.cache_info().misses == 1


def test_a_signature_of_ones_own() -> None:
    class Own:
        def __cache_signature__(self) -> Any:
            return ("own", 3)

    assert cache_signature(Own()) == ("own", 3)
    with pytest.raises(ArgumentError, match="__cache_signature__"):
        cache_signature(object())


def test_constexpr_names_need_no_import() -> None:
    out = torch.zeros(64, dtype=torch.int32)

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        total = fx.Int32(0)
        for i in range_constexpr(4):  # noqa: F821 - FlyDSL knows it by name
            if const_expr(i > 1):  # noqa: F821
                total = total + i
        Out[fx.thread_idx.x] = total

    @flyc.jit
    def run(Out: fx.Tensor):
        kernel(Out).launch(grid=1, block=64)

    run(out)
    assert torch.equal(out, torch.full_like(out, 5))
