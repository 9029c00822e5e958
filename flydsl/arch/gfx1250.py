"""gfx1250: the wave32 architecture with 1024 addressable VGPRs."""

from __future__ import annotations

from flydsl.arch.base import Arch, RegisterFile

GFX1250 = Arch(
    name="gfx1250",
    max_waves_per_simd=16,
    max_multi_wave_workgroups=16,
    vgpr_files={32: RegisterFile(size=1024, granule=16, encoding_granule=16)},
    addressable_vgprs=1024,
    unified_agprs=False,
    sgprs_limit_waves=False,
    lds_simds=4,
    lds_pool_bytes=320 * 1024,
    lds_bytes_per_workgroup=320 * 1024,
    lds_granule_bytes=2048,
    lds_banks=None,
    lds_phases={},
    has_clusters=True,
    instruction_sets=("cdna5", "rdna", "ocp"),
    ids_in_trap_registers=True,
)
