"""gfx11xx: RDNA 3 and 3.5. Radeon RX 7000, and the graphics of Ryzen 7040 to Ryzen AI Max."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.lds_banks import lane_groups

GFX1100 = Arch(
    name="gfx1100",
    max_waves_per_simd=16,
    max_multi_wave_workgroups=32,
    vgpr_files={
        32: RegisterFile(size=1536, granule=24, encoding_granule=8),
        64: RegisterFile(size=768, granule=12, encoding_granule=4),
    },
    addressable_vgprs=256,
    unified_agprs=False,
    sgprs_limit_waves=False,
    lds_simds=4,
    has_cu_mode=True,
    lds_pool_bytes=128 * 1024,
    lds_bytes_per_workgroup=64 * 1024,
    lds_granule_bytes=1024,
    lds_banks=32,
    instruction_sets=("rdna3", "rdna"),
    lds_phases={"read_b32": lane_groups(32, 32), "read_b64": lane_groups(32, 16), "read_b128": lane_groups(32, 8)},
)
_SMALL_FILES = {
    32: RegisterFile(size=1024, granule=16, encoding_granule=8),
    64: RegisterFile(size=512, granule=8, encoding_granule=4),
}
# The chips of the family differ in their vector registers: these have as many as the first one, ...
GFX1101 = replace(GFX1100, name="gfx1101")
# ... and these two thirds of it (LLVM, AMDGPU.td, Feature1_5xVGPRs; ROCm, "AMD GPU specifications": 768 and 512 KiB).
GFX1102, GFX1103 = (replace(GFX1100, name=name, vgpr_files=_SMALL_FILES) for name in ("gfx1102", "gfx1103"))
# RDNA 3.5 also computes with floats in scalar registers.
GFX1151 = replace(GFX1100, name="gfx1151", instruction_sets=("rdna3.5", *GFX1100.instruction_sets))
GFX1150, GFX1152, GFX1153 = (
    replace(GFX1151, name=name, vgpr_files=_SMALL_FILES) for name in ("gfx1150", "gfx1152", "gfx1153")
)
RDNA3 = (GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1152, GFX1153)
