"""Kernels of a loop around some assembly, and their traces."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from flydsl.arch import get_arch
from flydsl.arch.timing import timing
from flydsl.codegen import compile_llvm_ir
from flydsl.simulator import Memory, Program, launch, tracing
from flydsl.simulator.timing import Trace


def loop_kernel(body: str, clobbers: str, *, repeats: int, lds_bytes: int = 16384) -> str:
    """A kernel `k(x)` whose waves execute `body` `repeats` times.

    In the body, $0 is the address of x, $1 the thread's number, $2 the workgroup's, $3 that of the repetition, $4 the
    address of a tile in LDS.
    """
    operands = "ptr addrspace(1) %x, i32 %t, i32 %w, i32 %i, ptr addrspace(3) @tile"
    names = ",".join(f"~{{{name}}}" for word in clobbers.split() for name in _registers(word))
    return f"""
@tile = internal addrspace(3) global [{lds_bytes} x i8] undef, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x) #0 {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void asm sideeffect "{body}", "s,v,s,s,v,{names}"({operands})
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {repeats}
  br i1 %more, label %loop, label %end
end:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" }}
"""


def _registers(word: str) -> list[str]:
    """Each register of a range: v[2:3] is v2 and v3."""
    match = re.fullmatch(r"([av])\[(\d+):(\d+)\]", word)
    return [f"{match[1]}{i}" for i in range(int(match[2]), int(match[3]) + 1)] if match else [word]


def lines(*instructions: str, times: int = 1) -> str:
    """Assembly in LLVM's spelling; {i} is the number of the repetition."""
    return "\\0A".join(instruction.replace("{i}", str(i)) for i in range(times) for instruction in instructions)


def trace_of(
    body: str,
    clobbers: str,
    *,
    repeats: int,
    workgroups: int,
    arch: str = "gfx942",
    size_bytes: int = 1 << 20,
    **options: Any,
) -> Trace:
    """The trace of such a kernel with workgroups of four waves and x of so many bytes."""
    return traced(loop_kernel(body, clobbers, repeats=repeats, **options), workgroups, size_bytes, arch=arch)


def traced(llvm_ir: str, workgroups: int, *sizes_bytes: int, arch: str = "gfx942") -> Trace:
    """The trace of kernel `k` of pointers to so many bytes."""
    memory = Memory()
    arrays = [np.zeros(size, np.uint8) for size in sizes_bytes]
    pointers = [memory.map_array(array, name=f"x{i}") for i, array in enumerate(arrays)]
    kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
    code = compile_llvm_ir(llvm_ir, get_arch(arch))
    program = Program.load(code.hsaco, code.listing)
    with tracing() as session:
        launch(program, "k", grid=(workgroups, 1, 1), block=(256, 1, 1), kernarg=kernarg, memory=memory)
    (one,) = session.launches
    return one.trace


def busy_us(trace: Trace) -> float:
    """The time without what every launch takes."""
    return trace.time_us - timing(get_arch(trace.arch)).launch_us.value
