"""Cases of `kernels.fp8_gemm_utils`, which two kernels share: those of one of them."""

from __future__ import annotations

from tests.kernels.checked.fp8_gemm_4wave import cases

__all__ = ["cases"]
