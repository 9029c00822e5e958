"""Cases of `kernels.norms`: those of `rmsnorm_kernel`, which is made of it."""

from __future__ import annotations

from tests.kernels.checked.rmsnorm_kernel import cases

__all__ = ["cases"]
