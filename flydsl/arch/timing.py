"""The figures that a model of time needs, of the accelerator that stands for an architecture.

Each says where it is from and how sure it is; one, the rate of atomics, is fitted to times of kernels. They stand in
`timing_cdna`, `timing_rdna3` and `timing_rdna4`. Cycles of instructions are in `instruction_costs`, occupancy in
`occupancy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.products import Product, product_of
from flydsl.arch.timing_cdna import MI250X, MI300X, MI355X
from flydsl.arch.timing_figures import Figure, Timing, published
from flydsl.arch.timing_rdna3 import (
    RADEON_780M,
    RADEON_860M,
    RADEON_890M,
    RADEON_8060S,
    RX_7600,
    RX_7800_XT,
    RX_7900_XTX,
)
from flydsl.arch.timing_rdna4 import RX_9060_XT, RX_9070_XT
from flydsl.errors import ArchError

__all__ = ["Figure", "Timing", "is_timed", "timing"]

_TIMINGS: Mapping[str, Timing] = {
    GFX90A.name: MI250X,
    GFX942.name: MI300X,
    GFX950.name: MI355X,
    "gfx1100": RX_7900_XTX,
    "gfx1101": RX_7800_XT,
    "gfx1102": RX_7600,
    "gfx1103": RADEON_780M,
    "gfx1150": RADEON_890M,
    "gfx1151": RADEON_8060S,
    "gfx1152": RADEON_860M,
    GFX1200.name: RX_9060_XT,
    GFX1201.name: RX_9070_XT,
}


def is_timed(arch: Arch) -> bool:
    """True if the project has the figures of an architecture."""
    return arch.name in _TIMINGS


def timing(arch: Arch, product: Product | None = None) -> Timing:
    """The figures of a product of an architecture, by default of the one that stands for it.

    Where a product was not measured, its memory is as much slower or faster than the other one's as its peak is.
    ArchError where the project has no figures, and for a product of another architecture.
    """
    if arch.name not in _TIMINGS:
        raise ArchError(
            f"latencies and bandwidths of {arch.name} are not known: its launches cannot be timed",
            hint=f"known: {', '.join(_TIMINGS)}",
        )
    figures, standard = _TIMINGS[arch.name], product_of(arch.name)
    if product is None or product == standard:
        return figures
    if product.arch != arch.name:
        raise ArchError(
            f"code for {arch.name} is not timed on an {product.name}, which is {product.arch}",
            hint=f"compile it for {product.arch}, or name a GPU that is {arch.name}",
        )
    return _scaled(figures, product, standard)


def _scaled(figures: Timing, product: Product, standard: Product) -> Timing:
    """The figures of a product that differs in its dies, compute units, clock and memory."""
    memory = product.memory_gb_per_s / standard.memory_gb_per_s
    source = f"as of the {standard.name}, by the peaks of their memory"
    read, write = figures.memory_read_bytes_per_second, figures.memory_write_bytes_per_second
    return replace(
        figures,
        xcds=published(product.dies, "dies", product.name),
        compute_units_per_xcd=published(
            product.multiprocessors // product.dies, figures.compute_units_per_xcd.unit, product.name
        ),
        clock_mhz=published(product.clock_mhz, "MHz", product.name),
        memory_read_bytes_per_second=Figure(read.value * memory, read.unit, source, "scaled"),
        memory_write_bytes_per_second=Figure(write.value * memory, write.unit, source, "scaled"),
    )
