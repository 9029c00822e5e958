"""Mathematical functions without a device library: each `math` operation becomes arithmetic and LLVM intrinsics.

What AMDGPU's LLVM selects stays an intrinsic (`expansion`); for the rest there are formulas here, one module per
family, and the polynomials that tools/math_coefficients.py computes. f16 and bf16 are computed in f32.
"""

from flydsl.passes.to_rocdl.math_functions.expansion import expand

__all__ = ["expand"]
