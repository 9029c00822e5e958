"""Counts that can be worked out by hand, in both backends."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.errors import LaunchError
from flydsl.simulator import Memory, MemoryFault, Program, checking, counting, launch
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters import LaunchCounters, LineCounts
from flydsl.simulator.counters.roofline import NO_ESTIMATE

Compile = Callable[[str], tuple[bytes, str]]

BACKENDS = pytest.mark.parametrize("backend", ["native", "lockstep"])
HEADER = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
@tile = internal addrspace(3) global [4096 x i32] undef, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %w, 256
  %i = add i32 %first, %t
"""
FOOTER = """
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""


def aligned(elements: int, offset_bytes: int = 0) -> Array:
    """u32 zeros that start `offset_bytes` after the beginning of a line."""
    storage = np.zeros(4 * elements + offset_bytes, np.uint8)
    return storage[offset_bytes:].view(np.uint32)


def count(compiled: tuple[bytes, str], x: Array, y: Array, n: int, **options: Any) -> LaunchCounters:
    memory = Memory()
    pointers = [memory.map_array(a, name=name) for a, name in ((x, "x"), (y, "y"))]
    options = {"grid": (1, 1, 1), "block": (64, 1, 1), "kernarg": struct.pack("<2QI", *pointers, n), **options}
    with counting() as counters:
        launch(Program.load(*compiled), "k", memory=memory, **options)
    (counted,) = counters.launches
    return counted


def lines_of(counters: LaunchCounters, mnemonic: str) -> list[LineCounts]:
    return [line for line in counters.by_line.values() if line.text.startswith(mnemonic)]


def only(counters: LaunchCounters, mnemonic: str) -> LineCounts:
    (line,) = lines_of(counters, mnemonic)
    return line


@BACKENDS
@pytest.mark.parametrize(("offset_bytes", "lines_per_wave"), [(0, 4), (4, 5), (32, 5)])
def test_a_wave_of_consecutive_dwords_touches_four_lines_if_aligned(
    compiled_double: tuple[bytes, str], backend: str, offset_bytes: int, lines_per_wave: int
) -> None:
    counters = count(
        compiled_double, aligned(1024, offset_bytes), aligned(1024), 1024, grid=(4, 1, 1), block=(256, 1, 1),
        backend=backend,
    )  # fmt: skip
    load, store = only(counters, "global_load"), only(counters, "global_store")
    assert (load.executions, load.active_lanes, load.global_bytes) == (16, 1024, 4096)
    assert (load.global_lines, store.global_lines) == (16 * lines_per_wave, 64)
    assert counters.totals.by_class["VMEM load"] == counters.totals.by_class["VMEM store"] == 16
    assert counters.totals.executions == counters.statistics.wave_instructions
    assert counters.statistics.waves == 16


@BACKENDS
def test_lanes_beyond_the_end_are_not_active(compiled_double: tuple[bytes, str], backend: str) -> None:
    """1000 elements in blocks of 256: the 16th wave has 40 of its 64 lanes."""
    counters = count(
        compiled_double, aligned(1000), aligned(1000), 1000, grid=(4, 1, 1), block=(256, 1, 1), backend=backend
    )
    load = only(counters, "global_load")
    assert (load.executions, load.active_lanes, load.global_bytes) == (16, 1000, 4000)
    assert load.global_lines == 63  # 62 and a half
    assert load.lane_utilization == 1000 / 1024


@BACKENDS
@pytest.mark.parametrize(("stride", "lines"), [(1, 4), (2, 8), (16, 64), (24, 64), (8, 32), (-1, 4)])
def test_lines_of_strided_dwords(compile_ir: Compile, backend: str, stride: int, lines: int) -> None:
    body = f"""  %scaled = mul i32 %t, {stride}
  %at = add i32 %scaled, 63
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %at
  %v = load i32, ptr addrspace(1) %p
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store i32 %v, ptr addrspace(1) %q"""
    x = aligned(2048, 4 if stride > 0 else 0)  # element 63, that of lane 0, is the first or the last one of a line
    counters = count(compile_ir(HEADER + body + FOOTER), x, aligned(64), 0, backend=backend)
    assert only(counters, "global_load").global_lines == lines


@BACKENDS
def test_a_line_that_several_dwords_of_an_access_touch_counts_once(compile_ir: Compile, backend: str) -> None:
    """The simulator makes four accesses of a buffer load of four dwords, each checked against the buffer's end."""
    arguments = "ptr addrspace(1) %x, i16 0, i64 960, i32 159744"
    body = f"""  %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1({arguments})
  %o = mul i32 %t, 16
  %v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)
  %q = getelementptr <4 x i32>, ptr addrspace(1) %y, i32 %t
  store <4 x i32> %v, ptr addrspace(1) %q"""
    for offset_bytes, lines in ((0, 15), (8, 16)):  # 60 of the 64 lanes lie within 960 bytes
        x = aligned(256, offset_bytes)
        counters = count(compile_ir(HEADER + body + FOOTER), x, aligned(256), 0, backend=backend)
        load = only(counters, "buffer_load_dwordx4")
        assert (load.global_bytes, load.global_lines, load.active_lanes) == (960, lines, 64)
    assert only(counters, "global_store_dwordx4").global_lines == 16


def lds_body(stride: int, dwords: int, operation: str) -> str:
    """Every lane reads or writes `dwords` dwords, `stride` dwords after those of the lane before."""
    type_ = "i32" if dwords == 1 else f"<{dwords} x i32>"
    size = 4 * dwords
    access = {
        "read": f"  %v = load volatile {type_}, ptr addrspace(3) %p, align {size}",
        "write": f"  store volatile {type_} %u, ptr addrspace(3) %p, align {size}\n  %v = add {type_} %u, %u",
    }[operation]
    return f"""  %scaled = mul i32 %t, {stride}
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %scaled
  %a = getelementptr {type_}, ptr addrspace(1) %x, i32 %t
  %u = load {type_}, ptr addrspace(1) %a
{access}
  %q = getelementptr {type_}, ptr addrspace(1) %y, i32 %t
  store {type_} %v, ptr addrspace(1) %q"""


@BACKENDS
@pytest.mark.parametrize("stride", [0, 1, 2, 3, 4, 8, 12, 32, 33])
def test_bank_conflicts_of_dwords(compile_ir: Compile, backend: str, stride: int) -> None:
    """32 banks, two phases of 32 lanes: lanes collide as often as the stride and 32 have a common divisor."""
    compiled = compile_ir(HEADER + lds_body(stride, 1, "read") + FOOTER)
    line = only(count(compiled, aligned(64), aligned(64), 0, backend=backend), "ds_read_b32")
    ways = math.gcd(stride, 32) if stride else 1  # one dword for all lanes is a broadcast
    assert (line.lds_max_ways, line.lds_passes, line.lds_conflicts) == (ways, 2 * ways, 2 * (ways - 1))
    assert (line.lds_bytes, line.lds_unknown) == (256, 0)


@BACKENDS
@pytest.mark.parametrize(
    ("operation", "dwords", "stride", "passes", "max_ways"),
    [
        ("read", 2, 2, 4, 1),  # four phases of 16 lanes, a pair of banks each
        ("read", 2, 4, 8, 2),
        ("read", 2, 32, 64, 16),
        ("read", 4, 4, 8, 1),  # eight phases of eight lanes, four banks each
        ("read", 4, 32, 64, 8),
        ("write", 4, 4, 8, 1),
        ("write", 4, 8, 16, 2),
        ("write", 4, 20, 8, 1),
    ],
)
def test_bank_conflicts_of_wide_accesses(
    compile_ir: Compile, backend: str, operation: str, dwords: int, stride: int, passes: int, max_ways: int
) -> None:
    compiled = compile_ir(HEADER + lds_body(stride, dwords, operation) + FOOTER)
    counters = count(compiled, aligned(256), aligned(256), 0, backend=backend)
    line = only(counters, f"ds_{operation}_b{32 * dwords}")
    assert (line.lds_passes, line.lds_max_ways) == (passes, max_ways)


SWIZZLES = {
    "plain": (lambda row, chunk: 128 * row + 16 * chunk, 4),
    "padded": (lambda row, chunk: 144 * row + 16 * chunk, 2),
    "xor": (lambda row, chunk: 128 * row + 16 * (chunk ^ (row & 7)), 1),
}


@BACKENDS
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_bank_conflicts_of_a_tile_of_halves(compile_ir: Compile, backend: str, swizzle: str) -> None:
    """16 rows of 128 bytes, read in chunks of 16 bytes, lane by lane down a column: as measured on hardware."""
    body = """  %pa = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %a = load i32, ptr addrspace(1) %pa
  %p = getelementptr i8, ptr addrspace(3) @tile, i32 %a
  %v = load volatile <4 x i32>, ptr addrspace(3) %p, align 16
  %q = getelementptr <4 x i32>, ptr addrspace(1) %y, i32 %t
  store <4 x i32> %v, ptr addrspace(1) %q"""
    offset, ways = SWIZZLES[swizzle]
    lanes, x = np.arange(64), aligned(64)
    x[:] = offset(lanes % 16, lanes // 16)
    line = only(count(compile_ir(HEADER + body + FOOTER), x, aligned(256), 0, backend=backend), "ds_read_b128")
    assert (line.lds_max_ways, line.lds_passes, line.lds_conflicts) == (ways, 8 * ways, 8 * (ways - 1))


@BACKENDS
@pytest.mark.parametrize("probability", [1, 0.5, 0.1])
def test_lines_of_random_addresses_in_active_lanes(compile_ir: Compile, backend: str, probability: float) -> None:
    """Eight bytes at random dwords: some lie in two lines. Lanes with a negative offset are switched off."""
    body = """  %pa = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %a = load i32, ptr addrspace(1) %pa
  %on = icmp sge i32 %a, 0
  br i1 %on, label %do, label %end
do:
  %p = getelementptr i8, ptr addrspace(1) %y, i32 %a
  %v = load volatile i64, ptr addrspace(1) %p, align 4
  br label %end
end:"""
    random, x = np.random.default_rng(0), aligned(64)
    offsets, on = 4 * random.integers(0, 1000, 64), random.random(64) < probability
    x.view(np.int32)[:] = np.where(on, offsets, -1)
    load = only(count(compile_ir(HEADER + body + FOOTER), x, aligned(1024), 0, backend=backend), "global_load_dwordx2")
    lines = {byte // 64 for start in offsets[on] for byte in range(start, start + 8)}
    assert (load.active_lanes, load.global_bytes, load.global_lines) == (on.sum(), 8 * on.sum(), len(lines))


@BACKENDS
def test_an_access_whose_phases_are_not_published_is_said_to_be_unknown(compile_ir: Compile, backend: str) -> None:
    compiled = compile_ir(HEADER + lds_body(32, 2, "write") + FOOTER)
    counters = count(compiled, aligned(128), aligned(128), 0, backend=backend)
    line = only(counters, "ds_write_b64")
    assert (line.lds_bytes, line.lds_passes, line.lds_unknown) == (512, 0, 1)
    assert any("1 LDS accesses" in sentence and "ds_write_b64" in sentence for sentence in counters.unknown())
    assert "?" in repr(counters)


@BACKENDS
def test_matrix_instructions_of_a_loop(compile_ir: Compile, backend: str) -> None:
    arguments = "<4 x half> %a, <4 x half> %a, <4 x float> %c"
    body = f"""  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %c = phi <4 x float> [ zeroinitializer, %entry ], [ %d, %loop ]
  %pa = getelementptr <4 x half>, ptr addrspace(1) %x, i32 %t
  %a = load <4 x half>, ptr addrspace(1) %pa
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16({arguments}, i32 0, i32 0, i32 0)
  %next = add i32 %k, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %q = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %t
  store <4 x float> %d, ptr addrspace(1) %q"""
    counters = count(compile_ir(HEADER + body + FOOTER), aligned(128), aligned(256), 10, backend=backend)
    totals = counters.totals
    assert totals.by_class["MFMA"] == 10
    assert (totals.mfma_cycles, totals.mfma_operations, totals.mfma_unknown) == (160, 10 * 2 * 16 * 16 * 16, 0)
    assert totals.by_class["branch"] >= 10


def test_counts_do_not_depend_on_the_number_of_threads(compiled_double: tuple[bytes, str]) -> None:
    x, y = aligned(100_000), aligned(100_000)
    one, three = (
        count(compiled_double, x, y, 99_990, grid=(391, 1, 1), block=(256, 1, 1), threads=n, backend="native")
        for n in (1, 3)
    )
    np.testing.assert_array_equal(one.counts, three.counts)
    assert only(one, "global_load").active_lanes == 99_990


def test_only_launches_inside_that_succeed_are_counted(compiled_double: tuple[bytes, str]) -> None:
    program, memory, x = Program.load(*compiled_double), Memory(), aligned(64)
    pointer = memory.map_array(x, name="x")
    options: dict[str, Any] = {"grid": (1, 1, 1), "block": (64, 1, 1), "memory": memory}

    def start(n: int) -> None:
        launch(program, "k", kernarg=struct.pack("<2QI", pointer, pointer, n), **options)

    with counting() as outer:
        start(64)
        with counting() as inner:
            start(64)
        with pytest.raises(MemoryFault):
            launch(program, "k", kernarg=struct.pack("<2QI", pointer, pointer + 4, 64), **options)
    start(64)
    assert (len(outer.launches), len(inner.launches)) == (1, 1)


def test_a_launch_under_checks_is_not_counted(compiled_double: tuple[bytes, str]) -> None:
    """It runs every workgroup several times."""
    with checking(), pytest.raises(LaunchError, match="checked and counted") as caught:
        count(compiled_double, aligned(64), aligned(64), 64)
    assert "launch twice" in str(caught.value)


def test_the_roofline_is_the_longest_of_the_resources(compiled_double: tuple[bytes, str]) -> None:
    counters = count(compiled_double, aligned(1 << 16), aligned(1 << 16), 1 << 16, grid=(256, 1, 1), block=(256, 1, 1))
    bounds = counters.roofline()
    assert bounds.bound == "memory"
    assert bounds.time_us == pytest.approx(2 * 4 * (1 << 16) / 5.3e12 * 1e6)
    assert (bounds.compute_units_used, bounds.simds_used) == (256, 1024)
    assert bounds.valu_us == pytest.approx(counters.totals.valu_cycles / 1024 / 2.1e3)
    assert str(bounds) in repr(counters)
    assert NO_ESTIMATE in str(bounds)
    assert "no estimate of the time: it is made inside `tracing(execute=True)`" in repr(counters)


def test_the_sum_of_lines_is_the_total(compiled_double: tuple[bytes, str]) -> None:
    totals = count(compiled_double, aligned(64), aligned(64), 64).totals
    together = totals + totals
    assert together.executions == 2 * totals.executions
    assert together.global_lines == 2 * totals.global_lines == 16
    assert together.lane_utilization == totals.lane_utilization == 1.0
    assert together.line_utilization == 1.0
