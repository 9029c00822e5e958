"""gfx1200 and gfx1201: RDNA 4, Radeon RX 9000 series."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.rdna3 import GFX1100

# What LLVM says of its registers, waves and LDS is what it says of the largest chip before it.
GFX1201 = replace(GFX1100, name="gfx1201")
GFX1200 = replace(GFX1201, name="gfx1200")
