"""Kernels for the fuzzers of code objects and listings: a few that use what the machine has, compiled by LLVM."""

from __future__ import annotations

import re
from functools import cache

import llvmlite.binding as llvm

from flydsl.arch import Arch
from flydsl.codegen.link import link
from flydsl.hsaco.assembler import assemble
from tests.simulator.conftest import compile_llvm_ir

_DECLARATIONS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare float @llvm.exp2.f32(float)
"""

_ARITHMETIC = """
@table = internal addrspace(4) constant [5 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5], align 4
define amdgpu_kernel void @scale(ptr addrspace(1) %out, ptr addrspace(1) %in, float %factor, i64 %n, half %h) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %w, 64
  %t = add i32 %b, %x
  %wide = zext i32 %t to i64
  %inside = icmp ult i64 %wide, %n
  br i1 %inside, label %then, label %end
then:
  %p = getelementptr float, ptr addrspace(1) %in, i32 %t
  %v = load float, ptr addrspace(1) %p
  %scaled = fmul float %v, %factor
  %power = call float @llvm.exp2.f32(float %scaled)
  %e = fpext half %h to float
  %s = fadd float %power, %e
  %m = urem i32 %t, 5
  %tp = getelementptr i32, ptr addrspace(4) @table, i32 %m
  %tv = load i32, ptr addrspace(4) %tp
  %tf = sitofp i32 %tv to float
  %s2 = fadd float %s, %tf
  %q = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %s2, ptr addrspace(1) %q
  br label %end
end:
  ret void
}
define amdgpu_kernel void @halves(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr <4 x half>, ptr addrspace(1) %in, i32 %x
  %v = load <4 x half>, ptr addrspace(1) %p
  %w = fmul <4 x half> %v, %v
  %f = fpext <4 x half> %w to <4 x float>
  %moved = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 273, i32 15, i32 15, i1 true)
  %first = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %moved)
  %sum = add i32 %moved, %first
  %g = uitofp i32 %sum to float
  %r = insertelement <4 x float> %f, float %g, i32 1
  %d = fpext float %g to double
  %dd = fdiv double 1.0, %d
  %df = fptrunc double %dd to float
  %r2 = insertelement <4 x float> %r, float %df, i32 2
  %q = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %x
  store <4 x float> %r2, ptr addrspace(1) %q
  %old = atomicrmw add ptr addrspace(1) %in, i32 %i syncscope("agent") monotonic
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""

_MEMORIES = """
@tile = internal addrspace(3) global [256 x i32] poison, align 16
define amdgpu_kernel void @reverse(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %n) #0 {
entry:
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %room = alloca [16 x i32], addrspace(5)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i32 %i, %x
  %inside = and i32 %at, 127
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %inside
  %v = load i32, ptr addrspace(1) %p
  %slot = getelementptr [16 x i32], ptr addrspace(5) %room, i32 0, i32 %i
  store volatile i32 %v, ptr addrspace(5) %slot
  %s = getelementptr [256 x i32], ptr addrspace(3) @tile, i32 0, i32 %inside
  store i32 %v, ptr addrspace(3) %s
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %r = sub i32 127, %inside
  %sr = getelementptr [256 x i32], ptr addrspace(3) @tile, i32 0, i32 %r
  %u = load i32, ptr addrspace(3) %sr
  %k = and i32 %u, 15
  %again = getelementptr [16 x i32], ptr addrspace(5) %room, i32 0, i32 %k
  %w = load volatile i32, ptr addrspace(5) %again
  %both = add i32 %u, %w
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %x
  store i32 %both, ptr addrspace(1) %q
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,128" }
"""

_MFMA = """
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
define amdgpu_kernel void @product(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #1 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <4 x half>, ptr addrspace(1) %a, i32 %x
  %va = load <4 x half>, ptr addrspace(1) %pa
  %pb = getelementptr <4 x half>, ptr addrspace(1) %b, i32 %x
  %vb = load <4 x half>, ptr addrspace(1) %pb
  %z = insertelement <16 x float> zeroinitializer, float 1.0, i32 3
  %c = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %va, <4 x half> %vb, <16 x float> %z,
    i32 0, i32 0, i32 0)
  %q = getelementptr <16 x float>, ptr addrspace(1) %out, i32 %x
  store <16 x float> %c, ptr addrspace(1) %q
  ret void
}
attributes #1 = { "amdgpu-flat-work-group-size"="64,64" "amdgpu-agpr-alloc"="32,32" }
"""

_WMMA = """
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half>, <8 x half>, <8 x float>)
define amdgpu_kernel void @product(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #1 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <8 x half>, ptr addrspace(1) %a, i32 %x
  %va = load <8 x half>, ptr addrspace(1) %pa
  %pb = getelementptr <8 x half>, ptr addrspace(1) %b, i32 %x
  %vb = load <8 x half>, ptr addrspace(1) %pb
  %z = insertelement <8 x float> zeroinitializer, float 1.0, i32 3
  %c = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half> %va, <8 x half> %vb, <8 x float> %z)
  %q = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %x
  store <8 x float> %c, ptr addrspace(1) %q
  ret void
}
attributes #1 = { "amdgpu-flat-work-group-size"="32,32" }
"""

# The descriptor of a tile comes from memory, but for what makes it one, so that its fields are mostly plausible.
_TILES = """
@room = internal addrspace(3) global [4096 x i32] poison, align 128
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x32.f16.v8f32.v16f16(i1, <16 x half>, i1, <16 x half>, i16, <8 x float>,
  i1, i1)
declare void @llvm.amdgcn.tensor.load.to.lds(<4 x i32>, <8 x i32>, <4 x i32>, <4 x i32>, i32)
declare void @llvm.amdgcn.tensor.store.from.lds(<4 x i32>, <8 x i32>, <4 x i32>, <4 x i32>, i32)
declare void @llvm.amdgcn.s.wait.tensorcnt(i16)
declare void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1), ptr addrspace(3), i32, i32)
declare void @llvm.amdgcn.s.wait.asynccnt(i16)
define amdgpu_kernel void @product(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #1 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <16 x half>, ptr addrspace(1) %a, i32 %x
  %va = load <16 x half>, ptr addrspace(1) %pa
  %pb = getelementptr <16 x half>, ptr addrspace(1) %b, i32 %x
  %vb = load <16 x half>, ptr addrspace(1) %pb
  %z = insertelement <8 x float> zeroinitializer, float 1.0, i32 3
  %c = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x32.f16.v8f32.v16f16(i1 0, <16 x half> %va, i1 0, <16 x half> %vb,
    i16 0, <8 x float> %z, i1 0, i1 0)
  %q = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %x
  store <8 x float> %c, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @tile(ptr addrspace(1) %out, ptr addrspace(1) %in) #1 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %from = ptrtoint ptr addrspace(1) %in to i64
  %low = trunc i64 %from to i32
  %above = lshr i64 %from, 32
  %high32 = trunc i64 %above to i32
  %high = or i32 %high32, -2147483648
  %g1 = insertelement <4 x i32> <i32 1, i32 64, i32 poison, i32 poison>, i32 %low, i32 2
  %g = insertelement <4 x i32> %g1, i32 %high, i32 3
  call void @llvm.amdgcn.tensor.load.to.lds(<4 x i32> %g, <8 x i32> <i32 131072, i32 1048576, i32 524288, i32 786432,
    i32 4, i32 16, i32 0, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer,
    i32 0)
  call void @llvm.amdgcn.s.wait.tensorcnt(i16 0)
  %mine = getelementptr [4096 x i32], ptr addrspace(3) @room, i32 0, i32 %x
  %theirs = getelementptr i32, ptr addrspace(1) %in, i32 %x
  call void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1) %theirs, ptr addrspace(3) %mine, i32 0, i32 0)
  call void @llvm.amdgcn.s.wait.asynccnt(i16 0)
  fence syncscope("workgroup") acquire
  %v = load i32, ptr addrspace(3) %mine
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %x
  store i32 %v, ptr addrspace(1) %q
  %to = ptrtoint ptr addrspace(1) %out to i64
  %low2 = trunc i64 %to to i32
  %above2 = lshr i64 %to, 32
  %high232 = trunc i64 %above2 to i32
  %high2 = or i32 %high232, -2147483648
  %h1 = insertelement <4 x i32> <i32 1, i32 64, i32 poison, i32 poison>, i32 %low2, i32 2
  %h = insertelement <4 x i32> %h1, i32 %high2, i32 3
  call void @llvm.amdgcn.tensor.store.from.lds(<4 x i32> %h, <8 x i32> <i32 131072, i32 1048576, i32 524288, i32 786432,
    i32 4, i32 16, i32 0, i32 0>, <4 x i32> <i32 1, i32 1, i32 0, i32 0>, <4 x i32> zeroinitializer,
    i32 0)
  call void @llvm.amdgcn.s.wait.tensorcnt(i16 0)
  ret void
}
attributes #1 = { "amdgpu-flat-work-group-size"="32,32" }
"""


# Registers for instructions that a fuzzer puts in. LLVM needs an assembler to make an object of it, and has none.
_ROOM = """  call void asm sideeffect "", "{}"()
  ret void"""


@cache
def modules(arch: Arch) -> tuple[tuple[bytes, str], ...]:
    """Code objects, each with its listing: as LLVM makes them, and with more registers than they need."""
    texts = [text + _DECLARATIONS for text in (_ARITHMETIC, _MEMORIES, _matrices(arch))]
    return tuple(compile_llvm_ir(text, arch.name) for text in texts) + tuple(_with_room(text, arch) for text in texts)


def _matrices(arch: Arch) -> str:
    """What each family of GPUs has of its own."""
    if "cdna5" in arch.instruction_sets:
        return _TILES
    if "rdna3" in arch.instruction_sets:  # whose lanes hold whole rows
        return _WMMA.replace("8 x half", "16 x half").replace("v8f16", "v16f16")
    return _WMMA if arch.wave_size == 32 else _MFMA


def _with_room(text: str, arch: Arch) -> tuple[bytes, str]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch.name, opt=3, reloc="pic")
    clobbered = "~{v63},~{s40}" if arch.wave_size == 32 else "~{v63},~{a31}"
    module = llvm.parse_assembly(text.replace("  ret void", _ROOM.format(clobbered)), llvm.create_context())
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    listing = machine.emit_assembly(module)
    if arch.addressable_vgprs > 256:  # LLVM counts no clobbered ones beyond v255
        listing = re.sub(r"(next_free_vgpr|\.vgpr_count:) +\d+", r"\1 704", listing)
    return link(assemble(listing, arch.name)), listing
