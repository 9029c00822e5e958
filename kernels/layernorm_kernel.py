"""y = (x - mean) / sqrt(var + 1e-5) * gamma + beta, row by row; with a fused addition, and quantised.

    build_layernorm_module(M, N, "bf16")(Input, Gamma, Beta, Output, m)

Matrices are (M, N) with any row stride, Gamma, Beta and XScale (N), YScale (M) in f32. `kernels.norms` has the kernel
and the definitions; every variant is one pass over the row, which stays in registers. N = 8192: 512 threads of 16
elements, about 270 instructions, eight waves per SIMD, and the time of memory: 2 M N elements, twice that with the
addition.
"""

from __future__ import annotations

from typing import Any

from kernels import norms
from kernels.norms import DTYPES, SHAPES, Norm, builder, tuned_norm

__all__ = ["DTYPES", "SHAPES"]


def reference(Input: Any, Gamma: Any, Beta: Any) -> Any:
    """The result of torch, rounded once."""
    return norms.reference(Norm(columns=1, dtype="f32", mean=True), Input, Gamma, Beta)[0].to(Input.dtype)


build_layernorm_module = builder(mean=True)
build_fused_add_layernorm_module = builder(mean=True, residual=True)
# With quant_dtype_str "i8" or "fp8".
build_layernorm_dynamicquant_module = builder(mean=True, quant="dynamic")
build_layernorm_smoothquant_module = builder(mean=True, quant="smooth")
build_fused_add_layernorm_dynamicquant_module = builder(mean=True, residual=True, quant="dynamic")
build_fused_add_layernorm_smoothquant_module = builder(mean=True, residual=True, quant="smooth")
# (Input, Gamma, Beta, Output, columns, stream) for rows of `columns` elements.
layernorm = tuned_norm("layernorm", mean=True)
