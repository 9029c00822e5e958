"""gfx942: CDNA 3, Instinct MI300 series."""

from __future__ import annotations

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.lds_banks import lane_groups

GFX942 = Arch(
    name="gfx942",
    max_waves_per_simd=8,
    max_multi_wave_workgroups=16,
    vgpr_files={64: RegisterFile(size=512, granule=8, encoding_granule=8)},
    addressable_vgprs=256,
    unified_agprs=True,
    sgprs_limit_waves=True,
    lds_simds=4,
    lds_pool_bytes=64 * 1024,
    lds_bytes_per_workgroup=64 * 1024,
    lds_granule_bytes=512,
    lds_banks=32,
    lds_phases={
        "read_b32": lane_groups(64, 32),
        "read_b64": lane_groups(64, 16),
        "read_b128": (
            (0, 1, 2, 3, 20, 21, 22, 23),
            (32, 33, 34, 35, 52, 53, 54, 55),
            (4, 5, 6, 7, 16, 17, 18, 19),
            (36, 37, 38, 39, 48, 49, 50, 51),
            (8, 9, 10, 11, 28, 29, 30, 31),
            (40, 41, 42, 43, 60, 61, 62, 63),
            (12, 13, 14, 15, 24, 25, 26, 27),
            (44, 45, 46, 47, 56, 57, 58, 59),
        ),
        "write_b128": lane_groups(64, 8),
    },
    products_per_sum=8,
    float8_conversions=("f8E4M3FNUZ", "f8E5M2FNUZ"),
    instruction_sets=("cdna3", "xf32", "fnuz"),
)
