"""Kernels of a loop around some assembly, and their traces."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.arch import get_arch
from flydsl.arch.timing import timing
from flydsl.codegen import compile_llvm_ir
from flydsl.simulator import Memory, Program, launch, tracing
from flydsl.simulator.timing import Trace


@dataclass(frozen=True)
class Target:
    """How some things are spelled on a GPU. products: independent matrix instructions, and what they clobber."""

    arch: str
    compute_units: int
    load: str
    loads_wait: str
    read: str
    reads_wait: str
    add: str
    products: tuple[str, ...]
    clobbers: str
    barrier: tuple[str, ...]


CDNA3 = Target(
    arch="gfx942",
    compute_units=304,
    load="global_load_dword",
    loads_wait="s_waitcnt vmcnt(0)",
    read="ds_read_b128",
    reads_wait="s_waitcnt lgkmcnt(0)",
    add="v_add_u32",
    products=tuple(f"v_mfma_f32_32x32x8_f16 {sums}, v[16:17], v[18:19], {sums}" for sums in ("a[0:15]", "a[16:31]")),
    clobbers="a[0:31]",
    barrier=("s_barrier",),
)
RDNA4 = Target(
    arch="gfx1201",
    compute_units=32,
    load="global_load_b32",
    loads_wait="s_wait_loadcnt 0x0",
    read="ds_load_b128",
    reads_wait="s_wait_dscnt 0x0",
    add="v_add_nc_u32",
    products=tuple(f"v_wmma_f32_16x16x16_f16 {sums}, v[16:19], v[16:19], {sums}" for sums in ("v[48:55]", "v[56:63]")),
    clobbers="v[48:63]",
    barrier=("s_barrier_signal -1", "s_barrier_wait -1"),
)


def loop_kernel(body: str, clobbers: str, *, repeats: int, lds_bytes: int = 16384, features: str = "") -> str:
    """A kernel `k(x)` whose waves execute `body` `repeats` times. features: of the target, such as "+cumode".

    In the body, $0 is the address of x, $1 the thread's number, $2 the workgroup's, $3 that of the repetition, $4 the
    address of a tile in LDS.
    """
    operands = "ptr addrspace(1) %x, i32 %t, i32 %w, i32 %i, ptr addrspace(3) @tile"
    target = f'"target-features"="{features}"' if features else ""
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
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" {target} }}
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
    cold: bool = False,
    **options: Any,
) -> Trace:
    """The trace of such a kernel with workgroups of four waves and x of so many bytes."""
    return traced(loop_kernel(body, clobbers, repeats=repeats, **options), workgroups, size_bytes, arch=arch, cold=cold)


def traced(llvm_ir: str, workgroups: int, *sizes_bytes: int, arch: str = "gfx942", cold: bool = False) -> Trace:
    """The trace of kernel `k` of pointers to so many bytes. cold: see `tracing`."""
    memory = Memory()
    arrays = [np.zeros(size, np.uint8) for size in sizes_bytes]
    pointers = [memory.map_array(array, name=f"x{i}") for i, array in enumerate(arrays)]
    kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
    code = compile_llvm_ir(llvm_ir, get_arch(arch))
    program = Program.load(code.hsaco, code.listing)
    with tracing(cold=cold) as session:
        launch(program, "k", grid=(workgroups, 1, 1), block=(256, 1, 1), kernarg=kernarg, memory=memory)
    (one,) = session.launches
    return one.trace


def busy_us(trace: Trace) -> float:
    """The time without what every launch takes."""
    return trace.time_us - timing(get_arch(trace.arch)).launch_us.value


COPY = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %w, 1024
  %i = add i32 %first, %t
  PARTS
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
"""


def copy_kernel(parts: int = 4, *, in_place: bool = False) -> str:
    """Each thread copies some vectors of 16 bytes, all loads first; or changes their signs in place."""
    load = """
  %i{0} = add i32 %i, {1}
  %from{0} = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i{0}
  %v{0} = load <4 x float>, ptr addrspace(1) %from{0}"""
    store = """
  %to{0} = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %i{0}
  %minus{0} = fneg <4 x float> %v{0}
  store <4 x float> %minus{0}, ptr addrspace(1) %to{0}"""
    if in_place:
        store = store.replace("%y", "%x")
    else:
        store = store.replace("%minus{0} = fneg <4 x float> %v{0}", "").replace("%minus", "%v")
    text = "".join(load.format(p, 256 * p) for p in range(parts)) + "".join(store.format(p) for p in range(parts))
    return COPY.replace("PARTS", text)
