"""Facts of each GPU as data, and what follows from them: occupancy and LDS bank conflicts.

>>> get_arch("gfx942").lds_pool_bytes
65536
"""

from __future__ import annotations

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.gfx1250 import GFX1250
from flydsl.arch.lds_banks import PhaseConflicts, conflict_ways
from flydsl.arch.occupancy import Occupancy, Usage, llvm_workgroup_size, max_vgprs, occupancy, waves_by_descriptor
from flydsl.arch.rdna3 import RDNA3
from flydsl.errors import ArchError, did_you_mean

ARCHS: tuple[Arch, ...] = (GFX90A, GFX942, GFX950, *RDNA3, GFX1200, GFX1201, GFX1250)
COMPARED: tuple[Arch, ...] = (GFX90A, GFX942, GFX950, GFX1201, GFX1250)
"""One of each kind, for views of several; the LDS of RDNA 3 is that of RDNA 4."""
DEFAULT_ARCH = GFX942  # what is compiled for when there is no GPU to ask

__all__ = [
    "ARCHS", "COMPARED", "DEFAULT_ARCH", "GFX942", "Arch", "Occupancy", "PhaseConflicts", "RegisterFile", "Usage",
    "conflict_ways", "get_arch", "llvm_workgroup_size", "max_vgprs", "occupancy", "waves_by_descriptor",
]  # fmt: skip


def get_arch(name: str) -> Arch:
    """The architecture of that name; a target id as ROCm reports it ("gfx942:sramecc+:xnack-") will do as well.

    Raises ArchError, naming the known ones.
    """
    for arch in ARCHS:
        if isinstance(name, str) and arch.name == name.split(":")[0].strip():
            return arch
    known = [arch.name for arch in ARCHS]
    raise ArchError(f"unknown architecture {name!r}", hint=f"{did_you_mean(str(name), known)}known: {', '.join(known)}")
