"""What a wave knows of its lanes: masks by comparison, ballots, counts of lanes, values of one lane, reductions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from flydsl.arch import get_arch
from flydsl.codegen import compile_llvm_ir
from flydsl.simulator import load
from flydsl.simulator.arrays import Array
from flydsl.simulator.loading import LoadedModule
from tests.simulator.conformance.lanes import both_sizes
from tests.simulator.conformance.registry import EVERY, conforms, execute, expect

LO, HI = 0xB6DB6DB6, 0x6DB6DB6D


def expect_mask(arch: str, text: str, vectors: dict[int, Array], holds: Callable[[int], bool], lanes: int) -> None:
    """text: a comparison that writes the mask MASK."""
    mask = "s[10:11]" if lanes == 64 else "s10"
    after = execute(text.replace("MASK", mask), arch, vectors, lanes=lanes)
    wanted = sum(1 << lane for lane in range(lanes) if holds(lane))
    assert after.s(10, lanes // 32) == wanted, f"{arch}, waves of {lanes}: {text}"


@conforms("general/int_isa/compare (U32)", EVERY)
def compare_u32(arch: str) -> None:
    for lanes in both_sizes(arch):
        lane = np.arange(lanes, dtype=np.uint32)
        expect_mask(arch, "v_cmp_eq_u32_e64 MASK, 3, v0", {0: lane % 7}, lambda i: i % 7 == 3, lanes)
        expect_mask(arch, "v_cmp_lt_u32_e64 MASK, v0, v1", {0: 3 * lane + 3, 1: lane * 0 + 50}, lambda i: i < 16, lanes)


@conforms("general/int_isa/compare (I32)", EVERY)
def compare_i32(arch: str) -> None:
    for lanes in both_sizes(arch):
        lane = np.arange(lanes, dtype=np.int32)
        expect_mask(arch, "v_cmp_gt_i32_e64 MASK, -3, v0", {0: lane - 16}, lambda i: i - 16 < -3, lanes)


@conforms("general/int_isa/compare (U64)", EVERY)
def compare_u64(arch: str) -> None:
    for lanes in both_sizes(arch):
        values, limit = (np.arange(lanes, dtype=np.uint64) + 1) * 1000003, np.full(lanes, 20000060, np.uint64)
        wanted = [int(value) >= 20000060 for value in values]
        expect_mask(arch, "v_cmp_ge_u64_e64 MASK, v[0:1], v[2:3]", {0: values, 2: limit}, wanted.__getitem__, lanes)


@conforms("general/int_isa/compare (I64)", EVERY)
def compare_i64(arch: str) -> None:
    for lanes in both_sizes(arch):
        values = (np.arange(lanes, dtype=np.int64) - 12).view(np.uint64)
        expect_mask(arch, "v_cmp_le_i64_e64 MASK, 0, v[0:1]", {0: values}, lambda i: i >= 12, lanes)


@conforms("general/int_isa/ballot", EVERY)
def ballot(arch: str) -> None:
    for lanes in both_sizes(arch):
        lane = np.arange(lanes, dtype=np.uint32)
        odd = lane * 5 % 3
        expect_mask(arch, "v_cmp_ne_u32_e64 MASK, 0, v0", {0: odd}, lambda i: i * 5 % 3 != 0, lanes)


@conforms("general/int_isa/mbcnt", EVERY)
def counts_of_lower_lanes(arch: str) -> None:
    for lanes in both_sizes(arch):
        added = (5 + np.arange(lanes) % 4).astype(np.uint32)
        text = "v_mbcnt_lo_u32_b32 v1, s4, v0\nv_mbcnt_hi_u32_b32 v2, s5, v1"
        after = execute(text, arch, {0: added}, s={4: LO, 5: HI}, lanes=lanes)
        low = [(LO & ((1 << min(i, 32)) - 1)).bit_count() + 5 + i % 4 for i in range(lanes)]
        high = [(HI & ((1 << max(i - 32, 0)) - 1)).bit_count() for i in range(lanes)]
        expect(after.v(1), low, arch)
        expect(after.v(2), [a + b for a, b in zip(low, high, strict=True)], arch)


@conforms("general/int_isa/lane_read", EVERY)
def values_of_one_lane(arch: str) -> None:
    for lanes in both_sizes(arch):
        values = (1000 + 17 * np.arange(lanes)).astype(np.uint32)
        text = "v_readlane_b32 s10, v0, 7\nv_readfirstlane_b32 s11, v0"
        after = execute(text, arch, {0: values}, lanes=lanes)
        assert [after.s(10), after.s(11)] == [1119, 1000]


# --- reductions, as LLVM compiles them: loops over the lanes, or DPP

KERNEL = """
define amdgpu_kernel void @{name}(ptr addrspace(1) %p, ptr addrspace(1) %q) {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %from = getelementptr {type}, ptr addrspace(1) %p, i32 %lane
  %x = load {type}, ptr addrspace(1) %from
  %r = call {type} @llvm.amdgcn.wave.reduce.{op}.{type}({type} %x, i32 {strategy})
  %to = getelementptr {type}, ptr addrspace(1) %q, i32 %lane
  store {type} %r, ptr addrspace(1) %to
  ret void
}}
"""
OPERATIONS = ("umin", "umax", "min", "max", "add", "sub", "and", "or", "xor")


@cache
def reductions(arch: str) -> LoadedModule:
    lines = ["declare i32 @llvm.amdgcn.workitem.id.x()"]
    for type_ in ("i32", "i64"):
        for op in OPERATIONS:
            lines.append(f"declare {type_} @llvm.amdgcn.wave.reduce.{op}.{type_}({type_}, i32 immarg)")
            for strategy in (0, 2):
                name = f"{op}_{type_}_{strategy}"
                lines.append(KERNEL.format(name=name, op=op, type=type_, strategy=strategy))
    code = compile_llvm_ir("\n".join(lines), get_arch(arch))
    return load(code.hsaco, code.listing, check_listing=False)


def reduced(op: str, values: Array) -> int:
    bits = 8 * values.itemsize
    unsigned = [int(x) & ((1 << bits) - 1) for x in values]
    signed = [x - (x >> (bits - 1) << bits) for x in unsigned]
    result = {
        "umin": min(unsigned), "umax": max(unsigned), "min": min(signed), "max": max(signed), "add": sum(unsigned),
        "sub": -sum(unsigned), "and": np.bitwise_and.reduce(values), "or": np.bitwise_or.reduce(values),
        "xor": np.bitwise_xor.reduce(values),
    }[op]  # fmt: skip
    return int(result) & ((1 << bits) - 1)


def expect_reductions(arch: str, type_: str, operations: str, values: Array) -> None:
    unsigned = values.view(np.uint32 if type_ == "i32" else np.uint64)
    for op in operations.split():
        for strategy in (0, 2):
            got, threads = np.zeros_like(unsigned), len(values)
            kernel = reductions(arch).kernel(f"{op}_{type_}_{strategy}")
            kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1), args=[unsigned, got])
            expect(got, [reduced(op, unsigned)] * threads, f"{arch}: {op} of {type_}, strategy {strategy}")


def lane_numbers(arch: str) -> Array:
    return np.arange(get_arch(arch).wave_size)


@conforms("general/int_isa/reduction (U32)", EVERY)
def reduce_u32(arch: str) -> None:
    lane = lane_numbers(arch)
    expect_reductions(arch, "i32", "add sub", (lane + 1).astype(np.uint32))
    expect_reductions(arch, "i32", "umin umax", ((lane * 17 ^ 0x5A) & 0xFF).astype(np.uint32))
    expect_reductions(arch, "i32", "and or xor", (0xFFFF0000 | lane * 37 & 0xFFFF).astype(np.uint32))


@conforms("general/int_isa/reduction (I32)", EVERY)
def reduce_i32(arch: str) -> None:
    expect_reductions(arch, "i32", "add min max", (lane_numbers(arch) - 16).astype(np.int32))


@conforms("general/int_isa/reduction (U64)", EVERY)
def reduce_u64(arch: str) -> None:
    lane = lane_numbers(arch).astype(np.uint64)
    expect_reductions(arch, "i64", "add sub", (lane + 1) * 1000003)
    spread = lane * np.uint64(0x100000001) ^ np.uint64(0x5A5A5A5A12345678)
    expect_reductions(arch, "i64", "umin umax and or xor", spread)


@conforms("general/int_isa/reduction (I64)", EVERY)
def reduce_i64(arch: str) -> None:
    base = lane_numbers(arch).astype(np.int64) * 1000000003 + 17
    expect_reductions(arch, "i64", "min max", np.where(lane_numbers(arch) % 3 == 0, -base, base - 12000000000))
