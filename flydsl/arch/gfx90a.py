"""gfx90a: CDNA 2, Instinct MI200 series."""

from __future__ import annotations

from flydsl.arch.base import Arch, RegisterFile
from flydsl.arch.gfx942 import GFX942

GFX90A = Arch(
    name="gfx90a",
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
    # Not measured here: taken to be as in the next generation, whose LDS has the same size and banks.
    lds_banks=GFX942.lds_banks,
    lds_phases=GFX942.lds_phases,
    instruction_sets=("cdna2",),
)
