"""y = x / sqrt(mean(x^2) + 1e-5) * gamma, row by row; with a fused addition, and quantised.

    build_rmsnorm_module(M, N, "bf16")(Input, Gamma, Output, m)

Matrices are (M, N) with any row stride, Gamma and XScale (N), YScale (M) in f32. `kernels.norms` has the kernel and the
definitions; every variant is one pass over the row, which stays in registers. Rows of up to 512 elements belong to one
wave, four to a block, and meet no barrier. N = 8192: 512 threads of 16 elements, about 180 instructions in bf16, eight
waves per SIMD, and the time of memory: 2 M N elements, twice that with the addition.
"""

from __future__ import annotations

from typing import Any

from kernels.norms import Norm, build, tuned_norm

DTYPES = ("f32", "f16", "bf16")
# (M, N): a wave for each row, one element, partial vectors, one row, a tail in a block, a whole block.
SHAPES = ((5, 512), (3, 1), (4, 7), (33, 100), (1, 2000), (2, 4099), (2, 8192))


def reference(Input: Any, Gamma: Any) -> Any:
    """The result of torch in f32, rounded once."""
    v = Input.float()
    v = v * (v.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return (v * Gamma.float()).to(Input.dtype)


def build_rmsnorm_module(M: int, N: int, dtype_str: str) -> Any:
    """The launcher (Input, Gamma, Output, m_in, stream). M: rows that are expected; m_in counts."""
    return build(Norm(N, dtype_str, mean=False))


def build_fused_add_rmsnorm_module(M: int, N: int, dtype_str: str) -> Any:
    """The launcher (Input, ResidualIn, Gamma, Output, ResidualOut, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=False, residual=True))


def build_rmsnorm_dynamicquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, Gamma, Output, YScale, m_in, stream). quant_dtype_str: "i8" or "fp8"."""
    return build(Norm(N, dtype_str, mean=False, quant=quant_dtype_str))


def build_rmsnorm_smoothquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, Gamma, XScale, Output, YScale, m_in, stream). XScale: f32."""
    return build(Norm(N, dtype_str, mean=False, smooth=True, quant=quant_dtype_str))


def build_fused_add_rmsnorm_dynamicquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, ResidualIn, Gamma, Output, ResidualOut, YScale, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=False, residual=True, quant=quant_dtype_str))


def build_fused_add_rmsnorm_smoothquant_module(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
    """The launcher (Input, ResidualIn, Gamma, XScale, Output, ResidualOut, YScale, m_in, stream)."""
    return build(Norm(N, dtype_str, mean=False, residual=True, smooth=True, quant=quant_dtype_str))


# (Input, Gamma, Output, columns, stream) for rows of so many elements.
rmsnorm = tuned_norm("rmsnorm", mean=False)
