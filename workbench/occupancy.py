"""The resources view: registers, LDS and scratch of each kernel, and the occupancy that follows."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.codegen import Kernel
from workbench.html import escape, table

_HEADER = ("kernel", "VGPR", "AGPR", "SGPR", "LDS bytes", "scratch bytes", "spills", "waves per SIMD", "limited by")


def resources_html(kernels: Sequence[Kernel]) -> str:
    """A table with one row per kernel."""
    return table(_HEADER, [_row(kernel) for kernel in kernels], numbers=range(1, 8))


def _row(kernel: Kernel) -> list[str]:
    resources, occupancy = kernel.resources, kernel.occupancy
    numbers = (
        resources.vgprs,
        resources.agprs,
        resources.sgprs,
        resources.lds_bytes,
        resources.scratch_bytes,
        resources.vgpr_spills + resources.sgpr_spills,
        occupancy.waves_per_simd,
    )
    name = f"<code>{escape(kernel.name)}</code>"
    return [name, *map(str, numbers), escape(str(occupancy.limiter or "nothing"))]
