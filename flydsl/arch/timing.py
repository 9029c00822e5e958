"""The figures that a model of time needs, of the accelerator that stands for an architecture.

Each says where it is from and how sure it is; none is fitted to a kernel's time. They stand in `timing_cdna` and
`timing_rdna4`. Cycles of instructions are in `instruction_costs`, occupancy in `occupancy`.
"""

from __future__ import annotations

from collections.abc import Mapping

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.timing_cdna import MI250X, MI300X, MI355X
from flydsl.arch.timing_figures import Figure, Timing
from flydsl.arch.timing_rdna4 import RX_9060_XT, RX_9070_XT
from flydsl.errors import ArchError

__all__ = ["Figure", "Timing", "is_timed", "timing"]

_TIMINGS: Mapping[str, Timing] = {
    GFX90A.name: MI250X,
    GFX942.name: MI300X,
    GFX950.name: MI355X,
    GFX1200.name: RX_9060_XT,
    GFX1201.name: RX_9070_XT,
}


def is_timed(arch: Arch) -> bool:
    """True if the project has the figures of an architecture."""
    return arch.name in _TIMINGS


def timing(arch: Arch) -> Timing:
    """The figures of the accelerator that stands for an architecture. ArchError where the project has none."""
    if arch.name not in _TIMINGS:
        raise ArchError(
            f"latencies and bandwidths of {arch.name} are not known: its launches cannot be timed",
            hint=f"known: {', '.join(_TIMINGS)}",
        )
    return _TIMINGS[arch.name]
