"""Cases of `kernels.splitk_hgemm`: those of `hgemm_splitk`, under FlyDSL's other name."""

from __future__ import annotations

from tests.kernels.checked.hgemm_splitk import cases

__all__ = ["cases"]
