"""Matrix products of RDNA are computed by all lanes, whoever uses them."""

from __future__ import annotations

import numpy as np

from flydsl.arch import get_arch
from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.llvm_bugs.sunk_products import pin_products
from flydsl.simulator import load
from flydsl.simulator.arrays import Array
from tests.codegen.llvm_bugs.test_llvm_bugs import of_llvm_alone

GFX1100 = get_arch("gfx1100")
PRODUCT_FOR_SOME = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half>, <16 x half>, <8 x float>)
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %rows, half %added) #0 {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %number = and i32 %lane, 15
  %place = getelementptr <16 x half>, ptr addrspace(1) %rows, i32 %number
  %row = load <16 x half>, ptr addrspace(1) %place
  %one = insertelement <16 x half> poison, half %added, i32 0
  %every = shufflevector <16 x half> %one, <16 x half> poison, <16 x i32> zeroinitializer
  %a = fadd <16 x half> %row, %every
  %p = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(
         <16 x half> %a, <16 x half> %a, <8 x float> zeroinitializer)
  %some = icmp ult i32 %lane, 5
  br i1 %some, label %store, label %end
store:
  %to = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %lane
  store <8 x float> %p, ptr addrspace(1) %to
  br label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="32,32" }
"""

_PRODUCT = "  %p = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %a)\n"
_HEAD = "define amdgpu_kernel void @k() {\n  br label %first\n\nfirst:\n"
_BRANCH = "  br i1 %c, label %some, label %all\n\nsome:\n"


def test_a_product_that_only_a_branch_uses_is_pinned() -> None:
    text = pin_products(f"{_HEAD}{_PRODUCT}{_BRANCH}  store <8 x float> %p, ptr %q\n}}\n")
    assert '%p = call <8 x float> asm "", "=v,0"(<8 x float> %"product p") convergent\n' in text


def test_others_stay_as_they_are() -> None:
    another = _PRODUCT.replace("%p =", "%r =").replace("%a)", "%a, <8 x float> %p)")
    phi = "  %x = phi <8 x float> [ %r, %first ], [ %y, %other ]\n}\n"
    for text in (
        f"{_HEAD}{_PRODUCT}  store <8 x float> %p, ptr %q\n  ret void\n}}\n",
        f"{_HEAD}{_PRODUCT}{another}{_BRANCH}{phi}",
    ):
        assert pin_products(text) == text


def products(hsaco: bytes, listing: str) -> tuple[Array, Array]:
    """What the five lanes that store have of (rows + 1) (rows + 1)^T, and what they should have."""
    rows = np.random.default_rng(1).integers(-3, 4, (16, 16)).astype(np.float16)
    out = np.zeros((5, 8), np.float32)
    load(hsaco, listing).kernel("k").launch((1, 1, 1), (32, 1, 1), [out, rows, np.float16(1)])
    a = rows.astype(np.float32) + 1
    return out, (a @ a.T)[:5, ::2]


def test_rows_of_lanes_that_store_nothing_count() -> None:
    code = compile_llvm_ir(PRODUCT_FOR_SOME, GFX1100)
    found, expected = products(code.hsaco, code.listing)
    assert np.array_equal(found, expected)


def test_llvm_still_sinks_products() -> None:
    found, expected = products(*of_llvm_alone(PRODUCT_FOR_SOME, arch=GFX1100))
    assert not np.array_equal(found, expected), (
        "this LLVM leaves WMMA where it is: flydsl/codegen/llvm_bugs/sunk_products.py is not needed any more"
    )
