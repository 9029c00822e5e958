"""Matrix products of RDNA are computed by all lanes, whoever uses them."""

from __future__ import annotations

from flydsl.codegen.llvm_bugs.sunk_products import pin_products

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
