"""gfx1200 and gfx1201: RDNA 4, Radeon RX 9000 series."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.rdna3 import GFX1100

# What LLVM says of its registers, waves and LDS is what it says of the largest chip before it.
GFX1201 = replace(GFX1100, name="gfx1201", instruction_sets=("rdna4", "rdna", "ocp"), ids_in_trap_registers=True)
GFX1200 = replace(GFX1201, name="gfx1200")
