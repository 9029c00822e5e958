"""The module for the host, in which launches are calls."""

from __future__ import annotations

from mlir import ir

from flydsl.compiler.lowering.host_launches import host_module
from flydsl.dialect.context import context

MODULE = """
module attributes {gpu.container_module, fly.own = "kept"} {
  gpu.module @kernels {
    gpu.func @first(%x: i64, %y: i64) kernel { gpu.return }
    gpu.func @second() kernel { gpu.return }
  }
  llvm.func @launcher(%x: i64, %n: i32, %stream: !llvm.ptr) {
    gpu.launch_func @kernels::@first blocks in (%x, %x, %x) threads in (%x, %x, %x) : i64
      dynamic_shared_memory_size %n args(%x : i64, %x : i64)
    gpu.launch_func <%stream : !llvm.ptr> @kernels::@second blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32
    llvm.return
  }
}
"""


def test_each_launch_is_a_call_of_a_function_of_its_operands() -> None:
    with context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        before = str(module)
        host, kernels = host_module(module)
        text = str(host)
        assert host.operation.verify()
    assert str(module) == before
    assert kernels == ["first", "second"]
    assert 'fly.own = "kept"' in text
    assert "gpu.launch_func" not in text
    first, second = (text[text.rindex(f'@"launch {number}"(') :].partition("llvm.return")[0] for number in range(2))
    assert first.count("llvm.alloca") == 3  # the pointers, and a place for each use of %x
    assert second.count("llvm.zext") == 6
    assert "llvm.mlir.zero" in first
