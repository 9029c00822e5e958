"""y = x / sqrt(mean(x^2) + 1e-5) * gamma, row by row; with a fused addition, and quantised.

    build_rmsnorm_module(M, N, "bf16")(Input, Gamma, Output, m)

Matrices are (M, N) with any row stride, Gamma and XScale (N), YScale (M) in f32. `kernels.norms` has the kernel and the
definitions; every variant is one pass over the row, which stays in registers. Rows of up to 256 elements belong to one
wave, four to a block, and meet no barrier. N = 8192: 512 threads of 16 elements, about 180 instructions in bf16, eight
waves per SIMD, and the time of memory: 2 M N elements, twice that with the addition.
"""

from __future__ import annotations

from typing import Any

from kernels import norms
from kernels.norms import DTYPES, SHAPES, Norm, builder, tuned_norm

__all__ = ["DTYPES", "SHAPES"]


def reference(Input: Any, Gamma: Any) -> Any:
    """The result of torch, rounded once."""
    return norms.reference(Norm(columns=1, dtype="f32", mean=False), Input, Gamma)[0].to(Input.dtype)


build_rmsnorm_module = builder(mean=False)
build_fused_add_rmsnorm_module = builder(mean=False, residual=True)
# With quant_dtype_str "i8" or "fp8".
build_rmsnorm_dynamicquant_module = builder(mean=False, quant="dynamic")
build_rmsnorm_smoothquant_module = builder(mean=False, quant="smooth")
build_fused_add_rmsnorm_dynamicquant_module = builder(mean=False, residual=True, quant="dynamic")
build_fused_add_rmsnorm_smoothquant_module = builder(mean=False, residual=True, quant="smooth")
# (Input, Gamma, Output, columns, stream) for rows of `columns` elements.
rmsnorm = tuned_norm("rmsnorm", mean=False)
