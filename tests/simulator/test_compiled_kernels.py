"""Kernels as LLVM compiles them, against numpy; operations that the host has too are in test_llvm_operations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import LaunchStatistics, Memory, Program
from flydsl.simulator.arrays import Array
from tests.simulator.backends import launch_both as launch

pytestmark = pytest.mark.slow

Compile = Callable[[str], tuple[bytes, str]]

PROLOGUE = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
"""


def elementwise(operands: Sequence[str], result: str, body: str, declarations: str = "", entry: str = "") -> str:
    """A kernel that computes %r from %x0, %x1, ... for every i < n."""
    pointers = ", ".join(f"ptr addrspace(1) %p{i}" for i in range(len(operands)))
    loads = "\n".join(
        f"  %q{i} = getelementptr {t}, ptr addrspace(1) %p{i}, i64 %i64\n  %x{i} = load {t}, ptr addrspace(1) %q{i}"
        for i, t in enumerate(operands)
    )
    return f"""{PROLOGUE}{declarations}
define amdgpu_kernel void @k({pointers}, ptr addrspace(1) %out, i32 %n) #0 {{
{entry}
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = mul i32 %w, 256
  %i = add i32 %m, %t
  %ok = icmp slt i32 %i, %n
  br i1 %ok, label %body, label %end
body:
  %i64 = sext i32 %i to i64
{loads}
{body}
  %po = getelementptr {result}, ptr addrspace(1) %out, i64 %i64
  store {result} %r, ptr addrspace(1) %po
  br label %end
end:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,256" }}
"""


def run_kernel(compiled: tuple[bytes, str], arrays: Sequence[Array], blocks: int, *extra: int) -> LaunchStatistics:
    program = Program.load(*compiled)
    assert not program.unknown_instructions()
    memory = Memory()
    pointers = [memory.map_array(a, name=f"p{i}") for i, a in enumerate(arrays)]
    kernarg = struct.pack(f"<{len(pointers)}Q{len(extra)}I", *pointers, *extra)
    return launch(program, "k", grid=(blocks, 1, 1), block=(256, 1, 1), kernarg=kernarg, memory=memory)


def run_elementwise(compiled: tuple[bytes, str], operands: Sequence[Array], result: Any) -> Array:
    n = operands[0].size
    out = np.full(n, 77, result)
    run_kernel(compiled, [*operands, out], -(-n // 256), n)
    return out


def sample(dtype: Any, seed: int, size: int = 700) -> Array:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        with np.errstate(all="ignore"):
            scaled = rng.standard_normal(size) * np.exp2(rng.integers(-8, 8, size))
            return scaled.astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, size, dtype, endpoint=True)


LLVM_TYPES = {"f2": "half", "f4": "float", "f8": "double", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64"}


@pytest.mark.parametrize(
    ("name", "dtype", "function", "ulps"),
    [
        ("exp", "f4", np.exp, 4),
        ("exp2", "f4", np.exp2, 2),
        ("log", "f4", np.log, 4),
        ("log2", "f4", np.log2, 2),
        ("log10", "f4", np.log10, 4),
        ("exp", "f2", np.exp, 1),
    ],
)
def test_math_intrinsics(compile_ir: Compile, name: str, dtype: str, function: Any, ulps: float) -> None:
    t = LLVM_TYPES[dtype]
    suffix = {"half": "f16", "float": "f32", "double": "f64"}[t]
    x = sample(dtype, 7)
    if name.startswith("log"):
        x = np.abs(x)
    if name.startswith("exp"):
        x = np.clip(x, -10, 10).astype(dtype)
    body = f"  %r = call {t} @llvm.{name}.{suffix}({t} %x0)"
    got = run_elementwise(
        compile_ir(elementwise([t], t, body, f"declare {t} @llvm.{name}.{suffix}({t})\n")), [x], dtype
    )
    exact = function(x.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(dtype)).astype(np.float64)
    assert error.max() <= ulps + 1e-6


def test_sine_within_its_absolute_accuracy(compile_ir: Compile) -> None:
    x = np.linspace(-20, 20, 700).astype("f4")
    body = "  %r = call afn float @llvm.sin.f32(float %x0)"
    got = run_elementwise(
        compile_ir(elementwise(["float"], "float", body, "declare float @llvm.sin.f32(float)")), [x], "f4"
    )
    np.testing.assert_allclose(got, np.sin(x.astype("f8")), atol=3e-6)


def test_bf16_addition_rounds_to_nearest_even(compile_ir: Compile) -> None:
    x, y = (sample("f4", seed).view("u4") >> 16 for seed in (9, 10))
    a, b = x.astype("u2"), y.astype("u2")
    got = run_elementwise(
        compile_ir(elementwise(["bfloat", "bfloat"], "bfloat", "  %r = fadd bfloat %x0, %x1")), [a, b], "u2"
    )
    total = ((x << 16).view("f4").astype("f8") + (y << 16).view("f4").astype("f8")).astype("f4").view("u4")
    expected = (total + 0x7FFF + ((total >> 16) & 1)) >> 16
    np.testing.assert_array_equal(got, expected.astype("u2"))


def test_loop_with_a_different_trip_count_in_every_lane(compile_ir: Compile) -> None:
    body = """
  br label %loop
loop:
  %v = phi i32 [ %x0, %body ], [ %next, %loop ]
  %count = phi i32 [ 0, %body ], [ %more, %loop ]
  %odd = and i32 %v, 1
  %is_odd = icmp eq i32 %odd, 1
  %half = lshr i32 %v, 1
  %triple = mul i32 %v, 3
  %up = add i32 %triple, 1
  %next = select i1 %is_odd, i32 %up, i32 %half
  %more = add i32 %count, 1
  %done = icmp ule i32 %next, 1
  br i1 %done, label %exit, label %loop
exit:
  %r = add i32 %more, 0"""
    x = np.arange(2, 602, dtype="u4")
    got = run_elementwise(compile_ir(elementwise(["i32"], "i32", body)), [x], "u4")

    def steps(v: int) -> int:
        count = 0
        while count == 0 or v > 1:
            v, count = (3 * v + 1 if v % 2 else v // 2), count + 1
        return count

    np.testing.assert_array_equal(got, [steps(int(v)) for v in x])


def test_workgroup_reduction_through_lds_and_barriers(compile_ir: Compile) -> None:
    source = f"""{PROLOGUE}
@tile = internal addrspace(3) global [256 x float] undef
declare void @llvm.amdgcn.s.barrier()
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = mul i32 %w, 256
  %i = add i32 %m, %t
  %pi = getelementptr float, ptr addrspace(1) %in, i32 %i
  %x = load float, ptr addrspace(1) %pi
  %mine = getelementptr [256 x float], ptr addrspace(3) @tile, i32 0, i32 %t
  store float %x, ptr addrspace(3) %mine
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br label %loop
loop:
  %width = phi i32 [ 128, %entry ], [ %halved, %join ]
  %active = icmp ult i32 %t, %width
  br i1 %active, label %add, label %join
add:
  %other = add i32 %t, %width
  %theirs = getelementptr [256 x float], ptr addrspace(3) @tile, i32 0, i32 %other
  %y = load float, ptr addrspace(3) %theirs
  %z = load float, ptr addrspace(3) %mine
  %sum = fadd float %y, %z
  store float %sum, ptr addrspace(3) %mine
  br label %join
join:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %halved = lshr i32 %width, 1
  %done = icmp eq i32 %halved, 0
  br i1 %done, label %last, label %loop
last:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %end
write:
  %total = load float, ptr addrspace(3) @tile
  %po = getelementptr float, ptr addrspace(1) %out, i32 %w
  store float %total, ptr addrspace(1) %po
  br label %end
end:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" }}
"""
    x = np.random.default_rng(13).integers(-100, 100, 256 * 5).astype("f4")
    out = np.zeros(5, "f4")
    run_kernel(compile_ir(source), [x, out], 5)
    np.testing.assert_array_equal(out, x.reshape(5, 256).sum(axis=1))


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [("add", "i4"), ("umax", "i4"), ("xchg", "i4"), ("add", "i8"), ("fadd", "f4"), ("fadd", "f8"), ("uinc_wrap", "i4")],
)
def test_atomics_on_one_word_are_seen_by_all_lanes(compile_ir: Compile, operation: str, dtype: str) -> None:
    t = LLVM_TYPES[dtype]
    body = f'  %r = atomicrmw {operation} ptr addrspace(1) %p0, {t} %x0 syncscope("agent") monotonic'
    body = body.replace("%x0", "%x1")
    x = np.random.default_rng(14).integers(1, 50, 600).astype(dtype)
    counter = np.zeros(600, dtype)
    old = run_elementwise(compile_ir(elementwise([t, t], t, body)), [counter, x], dtype)
    if operation in ("add", "fadd"):
        assert counter[0] == x.sum()
        np.testing.assert_array_equal(np.sort(old)[0], 0)
        assert set(np.diff(np.sort(np.append(old, x.sum())))) <= set(x)
    elif operation == "umax":
        assert counter[0] == x.max()
    elif operation == "xchg":
        assert sorted([*old, counter[0]]) == sorted([0, *x])
    else:
        value = 0
        for seen, limit in zip(old, x, strict=True):
            assert seen == value
            value = 0 if value >= limit else value + 1
        assert counter[0] == value


def test_compare_and_swap(compile_ir: Compile) -> None:
    body = """  %pair = cmpxchg ptr addrspace(1) %q0, i32 %x1, i32 -7 syncscope("agent") monotonic monotonic
  %r = extractvalue { i32, i1 } %pair, 0"""
    x = np.arange(500, dtype="i4")
    y = np.where(x % 3 == 0, x, x + 1).astype("i4")
    old = run_elementwise(compile_ir(elementwise(["i32", "i32"], "i32", body)), [x, y], "i4")
    np.testing.assert_array_equal(old, np.arange(500))
    np.testing.assert_array_equal(x, np.where(np.arange(500) % 3 == 0, -7, np.arange(500)))


@pytest.mark.parametrize("place", ["entry", "body"], ids=["static stack", "dynamic stack"])
def test_private_array_indexed_at_run_time_lives_in_scratch(compile_ir: Compile, place: str) -> None:
    array = "  %array = alloca [40 x i32], addrspace(5)"
    body = """
  br label %fill
fill:
  %j = phi i32 [ 0, %body ], [ %j1, %fill ]
  %pj = getelementptr [40 x i32], ptr addrspace(5) %array, i32 0, i32 %j
  %v = mul i32 %j, %x0
  store volatile i32 %v, ptr addrspace(5) %pj
  %j1 = add i32 %j, 1
  %full = icmp eq i32 %j1, 40
  br i1 %full, label %pick, label %fill
pick:
  %k = and i32 %x0, 31
  %pk = getelementptr [40 x i32], ptr addrspace(5) %array, i32 0, i32 %k
  %r = load volatile i32, ptr addrspace(5) %pk"""
    x = np.arange(300, dtype="i4")
    body, entry = (body, array) if place == "entry" else (array + body, "")
    got = run_elementwise(compile_ir(elementwise(["i32"], "i32", body, entry=entry)), [x], "i4")
    np.testing.assert_array_equal(got, x * (x & 31))


def test_constant_table_of_the_module(compile_ir: Compile) -> None:
    table = "@table = private unnamed_addr addrspace(4) constant [4 x i32] [i32 3, i32 -1, i32 40, i32 7]\n"
    body = """  %k = and i32 %x0, 3
  %pt = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %k
  %r = load i32, ptr addrspace(4) %pt"""
    x = np.arange(200, dtype="i4")
    got = run_elementwise(compile_ir(elementwise(["i32"], "i32", body, table)), [x], "i4")
    np.testing.assert_array_equal(got, np.array([3, -1, 40, 7])[x % 4])


def test_buffer_loads_give_0_and_stores_do_nothing_out_of_range(compile_ir: Compile) -> None:
    declarations = """
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32, ptr addrspace(8), i32, i32, i32)
"""
    make = "call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %p0, i16 0, i64 400, i32 159744)"
    body = f"""  %rsrc = {make}
  %off = mul i32 %i, 4
  %r = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %rsrc, i32 %off, i32 0, i32 0)
  %neg = sub i32 0, %r
  call void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32 %neg, ptr addrspace(8) %rsrc, i32 %off, i32 0, i32 0)"""
    x = np.arange(1, 251, dtype="i4")
    got = run_elementwise(compile_ir(elementwise(["i32"], "i32", body, declarations)), [x], "i4")
    i = np.arange(250)
    np.testing.assert_array_equal(got, np.where(i < 100, i + 1, 0))
    np.testing.assert_array_equal(x, np.where(i < 100, -(i + 1), i + 1))
