"""What modules of other compilers have besides plain kernels: variables, tables of addresses, long branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl import simulator
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import ListingError, checking

Compile = Callable[..., tuple[bytes, str]]
Run = Callable[..., Any]
TID = "declare i32 @llvm.amdgcn.workitem.id.x()\n"


@pytest.mark.parametrize(("other", "expected"), [("", 4 * 5), ("z", 4)])
def test_work_item_ids_that_the_kernel_does_not_ask_for(compile_ir: Compile, other: str, expected: int) -> None:
    """LLVM masks x off v0 only where it asked for y or z."""
    kernel = f"""
declare i32 @llvm.amdgcn.workitem.id.z()
define amdgpu_kernel void @k(ptr addrspace(1) %out) {{
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %z = {"call i32 @llvm.amdgcn.workitem.id.z()" if other else "add i32 0, 0"}
  %z8 = mul i32 %z, 8
  %i = add i32 %x, %z8
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %old = atomicrmw add ptr addrspace(1) %p, i32 1 syncscope("agent") monotonic
  ret void
}}
"""
    out = np.zeros(40 if other else 8, np.int32)
    simulator.load(*compile_ir(TID + kernel)).kernel("k").launch((1, 1, 1), (8, 4, 5), [out])
    np.testing.assert_array_equal(out, expected)


COUNTER = """
@calls = addrspace(1) global i32 40
@history = addrspace(1) global [64 x i32] zeroinitializer
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %x
  %h = getelementptr i32, ptr addrspace(1) @history, i32 %x
  %before = load i32, ptr addrspace(1) %h
  %called = load i32, ptr addrspace(1) @calls
  %sum = add i32 %before, %called
  store i32 %sum, ptr addrspace(1) %h
  store i32 %sum, ptr addrspace(1) %p
  %first = icmp eq i32 %x, 0
  br i1 %first, label %count, label %end
count:
  %next = add i32 %called, 1
  store i32 %next, ptr addrspace(1) @calls
  br label %end
end:
  ret void
}
"""


def test_variables_of_a_module_outlive_a_launch(compile_ir: Compile) -> None:
    hsaco, listing = compile_ir(TID + COUNTER)
    module, other = simulator.load(hsaco, listing), simulator.load(hsaco, listing)
    out = np.zeros(64, np.int32)
    for expected in (40, 40 + 41, 40 + 41 + 42):
        module.kernel("k").launch((1, 1, 1), (64, 1, 1), [out])
        np.testing.assert_array_equal(out, expected)
    other.kernel("k").launch((1, 1, 1), (64, 1, 1), [out])
    np.testing.assert_array_equal(out, 40)


def test_variables_under_checks(compile_ir: Compile) -> None:
    out = np.zeros(64, np.int32)
    module = simulator.load(*compile_ir(TID + COUNTER))
    with checking():
        for expected in (40, 40 + 41):
            module.kernel("k").launch((1, 1, 1), (64, 1, 1), [out])
            np.testing.assert_array_equal(out, expected)


def test_a_table_of_addresses(compile_ir: Compile) -> None:
    kernel = """
@a = internal addrspace(4) constant [2 x i32] [i32 7, i32 8]
@b = internal addrspace(4) constant [2 x i32] [i32 70, i32 80]
@second = addrspace(4) constant [2 x ptr addrspace(4)] [
  ptr addrspace(4) @a, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @b, i64 4)]
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %i = and i32 %x, 1
  %t = getelementptr ptr addrspace(4), ptr addrspace(4) @second, i32 %i
  %q = load ptr addrspace(4), ptr addrspace(4) %t
  %v = load i32, ptr addrspace(4) %q
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %x
  store i32 %v, ptr addrspace(1) %p
  ret void
}
"""
    out = np.zeros(64, np.int32)
    simulator.load(*compile_ir(TID + kernel)).kernel("k").launch((1, 1, 1), (64, 1, 1), [out])
    np.testing.assert_array_equal(out, [7, 80] * 32)


def test_a_variable_with_an_address_is_refused() -> None:
    with pytest.raises(ListingError, match="global variable holds the address of x"):
        read_listing('\t.section .data,"aw"\np:\n\t.quad x+8\n')


def test_a_branch_too_far_for_16_bits(run: Run) -> None:
    """As LLVM's branch relaxation writes it: the distance of two labels, in halves."""
    text = """s_getpc_b64 s[4:5]
.Lpost_getpc0:
s_add_u32 s4, s4, (.Lfar-.Lpost_getpc0)&4294967295
s_addc_u32 s5, s5, (.Lfar-.Lpost_getpc0)>>32
s_setpc_b64 s[4:5]
.Lback:
s_mov_b32 s10, 3
s_endpgm
s_mov_b32 s11, 5
.Lfar:
s_getpc_b64 s[4:5]
.Lpost_getpc1:
s_add_u32 s4, s4, (.Lback-.Lpost_getpc1)&4294967295
s_addc_u32 s5, s5, (.Lback-.Lpost_getpc1)>>32
s_setpc_b64 s[4:5]
s_mov_b32 s11, 7"""
    after = run(text)
    assert (after.s(10), after.s(11)) == (3, 0)


def test_an_old_spelling_in_inline_assembly(run: Run) -> None:
    """1 + sum of 16 products 1 * 2."""
    text = "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[2:3], v[4:7]"
    bits = {0: 0x3C003C00, 1: 0x3C003C00, 2: 0x40004000, 3: 0x40004000, **dict.fromkeys(range(4, 8), 0x3F800000)}
    after = run(text, v={register: np.uint32(value) for register, value in bits.items()})
    for register in range(8, 12):
        np.testing.assert_array_equal(after.v(register, np.float32), 33.0)
