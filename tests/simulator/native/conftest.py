"""Kernels for the tests of the native backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def compiled_double(compile_ir: Callable[[str], tuple[bytes, str]]) -> tuple[bytes, str]:
    """y[i] = x[i] + x[i] for i < n; block of 256. Arguments: x, y, n."""
    return compile_ir("""
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = mul i32 %w, 256
  %i = add i32 %m, %t
  %ok = icmp slt i32 %i, %n
  br i1 %ok, label %body, label %end
body:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px
  %r = fadd float %v, %v
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %r, ptr addrspace(1) %py
  br label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
""")
