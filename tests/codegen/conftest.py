"""LLVM IR that the tests of code generation compile: small kernels with what tends to break."""

from __future__ import annotations

import pytest

VECTOR_ADD = """
define amdgpu_kernel void @vector_add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %w, 256
  %i = add i32 %base, %t
  %inside = icmp ult i32 %i, %n
  br i1 %inside, label %body, label %exit
body:
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr float, ptr addrspace(1) %c, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %z = fadd float %x, %y
  store float %z, ptr addrspace(1) %pc
  br label %exit
exit:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
"""

# A loop, LDS, a barrier, and line tables as MLIR's translation writes them.
LOOP_WITH_LINES = """
@tile = internal addrspace(3) global [256 x float] poison, align 16

define amdgpu_kernel void @row_sum(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %n) #0 !dbg !3 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x(), !dbg !6
  br label %loop, !dbg !7
loop:
  %i = phi i32 [ %next, %body ], [ 0, %entry ], !dbg !7
  %sum = phi float [ %more, %body ], [ 0.0, %entry ], !dbg !7
  %go = icmp slt i32 %i, %n, !dbg !7
  br i1 %go, label %body, label %exit, !dbg !7
body:
  %at = add i32 %i, %t, !dbg !8
  %p = getelementptr float, ptr addrspace(1) %in, i32 %at, !dbg !8
  %v = load float, ptr addrspace(1) %p, !dbg !8
  %more = fadd float %sum, %v, !dbg !9
  %next = add i32 %i, 1, !dbg !7
  br label %loop, !dbg !7
exit:
  %slot = getelementptr float, ptr addrspace(3) @tile, i32 %t, !dbg !10
  store float %sum, ptr addrspace(3) %slot, !dbg !10
  fence syncscope("workgroup") release, !dbg !11
  call void @llvm.amdgcn.s.barrier(), !dbg !11
  fence syncscope("workgroup") acquire, !dbg !11
  %mirror = xor i32 %t, 255, !dbg !12
  %from = getelementptr float, ptr addrspace(3) @tile, i32 %mirror, !dbg !12
  %w = load float, ptr addrspace(3) %from, !dbg !12
  %o = getelementptr float, ptr addrspace(1) %out, i32 %t, !dbg !13
  store float %w, ptr addrspace(1) %o, !dbg !13
  ret void, !dbg !14
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_Python, file: !1, producer: "test", isOptimized: true,
                             runtimeVersion: 0, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "row_sum.py", directory: "/home/user/kernels")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "row_sum", scope: !1, file: !1, line: 3, type: !4, scopeLine: 3,
                            spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 5, column: 2, scope: !3)
!7 = !DILocation(line: 6, column: 2, scope: !3)
!8 = !DILocation(line: 7, column: 9, scope: !3)
!9 = !DILocation(line: 8, column: 9, scope: !3)
!10 = !DILocation(line: 9, column: 2, scope: !3)
!11 = !DILocation(line: 10, column: 2, scope: !3)
!12 = !DILocation(line: 11, column: 2, scope: !3)
!13 = !DILocation(line: 12, column: 2, scope: !3)
!14 = !DILocation(line: 13, column: 2, scope: !3)
"""


@pytest.fixture
def vector_add() -> str:
    return VECTOR_ADD


@pytest.fixture
def loop_with_lines() -> str:
    return LOOP_WITH_LINES
