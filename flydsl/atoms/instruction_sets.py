"""Groups of architectures, for instructions that only some of them have. Source: LLVM, AMDGPU.td."""

from __future__ import annotations

CDNA = ("gfx90a", "gfx942", "gfx950")
FROM_CDNA3 = ("gfx942", "gfx950")
CDNA4 = ("gfx950",)
RDNA3 = ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153")
RDNA4 = ("gfx1200", "gfx1201")
GFX1250 = ("gfx1250",)
GFX12 = (*RDNA4, *GFX1250)
WAVE32 = (*RDNA3, *GFX12)  # waves of 32 lanes, unless a kernel asks for 64
