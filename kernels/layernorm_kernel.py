"""y = (x - mean) / sqrt(var + 1e-5) * gamma + beta, row by row; with a fused addition, and quantised.

    build_layernorm_module(M, N, "bf16")(Input, Gamma, Beta, Output, m)

Matrices are (M, N) with any row stride, Gamma, Beta and XScale (N), YScale (M) in f32. `kernels.norms` has the kernel
and the definitions; every variant is one pass over the row, which stays in registers. N = 8192: 512 threads of 16
elements, about 270 instructions, eight waves per SIMD, and the time of memory: 2 M N elements, twice that with the
addition.
"""

from __future__ import annotations

from typing import Any

from kernels.norms import Norm, build, tuned_norm

DTYPES = ("f32", "f16", "bf16")
# (M, N): a wave for each row, one element, partial vectors, one row, a tail in a block, a whole block.
SHAPES = ((5, 512), (3, 1), (4, 7), (33, 100), (1, 2000), (2, 4099), (2, 8192))


def reference(Input: Any, Gamma: Any, Beta: Any) -> Any:
    """The result of torch in f32, rounded once."""
    v = Input.float()
    v = (v - v.mean(-1, keepdim=True)) * (v.var(-1, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    return (v * Gamma.float() + Beta.float()).to(Input.dtype)


def build_layernorm_module(M: int, N: int, dtype_str: str) -> Any:
    """The launcher (Input, Gamma, Beta, Output, m_in, stream). M: rows that are expected; m_in counts."""
    return build(Norm(N, dtype_str, mean=True))


def build_fused_add_layernorm_module(M: int, N: int, dtype_str: str) -> Any:
    """The launcher (Input, ResidualIn, Gamma, Beta, Output, ResidualOut, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=True, residual=True))


def build_layernorm_dynamicquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, Gamma, Beta, Output, YScale, m_in, stream). quant_dtype_str: "i8" or "fp8"."""
    return build(Norm(N, dtype_str, mean=True, quant=quant_dtype_str))


def build_layernorm_smoothquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, Gamma, Beta, XScale, Output, YScale, m_in, stream). XScale: of the
    matrix's type."""
    return build(Norm(N, dtype_str, mean=True, smooth=True, quant=quant_dtype_str))


def build_fused_add_layernorm_dynamicquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, ResidualIn, Gamma, Beta, Output, ResidualOut, YScale, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=True, residual=True, quant=quant_dtype_str))


def build_fused_add_layernorm_smoothquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, ResidualIn, Gamma, Beta, XScale, Output, ResidualOut, YScale, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=True, residual=True, smooth=True, quant=quant_dtype_str))


# (Input, Gamma, Beta, Output, columns, stream) for rows of so many elements.
layernorm = tuned_norm("layernorm", mean=True)
