"""gfx1200 and gfx1201: RDNA 4, Radeon RX 9000 series."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.lds_banks import lane_groups

GFX1201 = Arch(
    name="gfx1201",
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
    lds_phases={
        "read_b32": lane_groups(32, 32),
        "read_b64": lane_groups(32, 16),
        "read_b128": lane_groups(32, 8),
    },
)
GFX1200 = replace(GFX1201, name="gfx1200")
