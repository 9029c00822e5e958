"""gfx950: CDNA 4, Instinct MI350 series."""

from __future__ import annotations

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.lds_banks import lane_groups

GFX950 = Arch(
    name="gfx950",
    max_waves_per_simd=8,
    max_multi_wave_workgroups=16,
    vgpr_files={64: RegisterFile(size=512, granule=8, encoding_granule=8)},
    addressable_vgprs=256,
    unified_agprs=True,
    sgprs_limit_waves=True,
    lds_simds=4,
    lds_pool_bytes=160 * 1024,
    lds_bytes_per_workgroup=160 * 1024,
    lds_granule_bytes=1280,
    lds_banks=64,
    lds_phases={
        "read_b32": lane_groups(64, 64),
        "read_b64": lane_groups(64, 32),
        "read_b128": (
            (0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27),
            (32, 33, 34, 35, 44, 45, 46, 47, 52, 53, 54, 55, 56, 57, 58, 59),
            (4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31),
            (36, 37, 38, 39, 40, 41, 42, 43, 48, 49, 50, 51, 60, 61, 62, 63),
        ),
    },
    instruction_sets=("cdna4", "cdna3", "ocp"),
)
