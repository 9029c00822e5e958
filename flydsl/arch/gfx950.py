"""gfx950: CDNA 4, Instinct MI350 series."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.gfx942 import GFX942
from flydsl.arch.lds_banks import lane_groups

GFX950 = replace(
    GFX942,
    name="gfx950",
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
    products_per_sum=None,
    float8_conversions=(),
    instruction_sets=("cdna4", "cdna3", "ocp"),
)
