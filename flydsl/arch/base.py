"""The facts about one GPU architecture, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Phases = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class RegisterFile:
    """The vector registers of one SIMD lane, at one wave size.

    size: registers that the waves on the SIMD share.
    granule: a wave is given a multiple of this many.
    encoding_granule: a kernel descriptor counts the registers of a wave in units of this many.
    """

    size: int
    granule: int
    encoding_granule: int


@dataclass(frozen=True, repr=False)
class Arch:
    """The facts of one GPU architecture.

    name: as LLVM's `-mcpu` takes it.
    vgpr_files: wave size in lanes -> register file; the first one is the default wave size.
    addressable_vgprs: VGPRs one wave can name; unified_agprs: the same number of AGPRs besides, from the same file.
    sgprs_limit_waves: the waves of a SIMD share its scalar registers; otherwise every wave has all it can name.
    lds_simds: SIMDs that share one LDS pool of lds_pool_bytes.
    has_cu_mode: whether a kernel can ask to stay on one half of these SIMDs, with one half of the pool.
    ids_in_trap_registers: whether workgroups find their ids in TTMP9 (x) and the halves of TTMP7 (y, z), and waves
    their number in TTMP8, instead of in registers after the user's.
    has_clusters: whether workgroups of a launch can run together as clusters.
    lds_granule_bytes: what the hardware rounds a workgroup's LDS up to.
    lds_banks: None where not known. lds_phases: "read_b128" -> groups of lanes that compete; what is not in it is not
    known (see `lds_banks`).
    products_per_sum: products of f16 or bf16 that a matrix instruction adds at once to an f32, along K; None where not
    known. Source: MMA-Sim (arXiv:2511.10909), after an MI300X; an instruction with a K of 16 rounds twice there.
    float8_conversions: 8-bit floats, by their MLIR names, that the compiler converts with instructions.
    instruction_sets: sets of instructions that some GPUs have and others do not, by the simulator's names for them.

    Source: LLVM's AMDGPUBaseInfo.cpp and AMDGPUSubtarget.cpp, compared with the backend's own occupancy.
    """

    name: str
    max_waves_per_simd: int
    max_multi_wave_workgroups: int
    vgpr_files: Mapping[int, RegisterFile] = field(hash=False)
    addressable_vgprs: int
    unified_agprs: bool
    sgprs_limit_waves: bool
    lds_simds: int
    lds_pool_bytes: int
    lds_bytes_per_workgroup: int
    lds_granule_bytes: int
    lds_banks: int | None
    lds_phases: Mapping[str, Phases] = field(hash=False)
    instruction_sets: tuple[str, ...]
    max_workgroup_size: int = 1024
    products_per_sum: int | None = None
    float8_conversions: tuple[str, ...] = ()
    has_cu_mode: bool = False
    has_clusters: bool = False
    ids_in_trap_registers: bool = False

    @property
    def wave_size(self) -> int:
        """Lanes of a wave, unless the kernel asks for another size."""
        return next(iter(self.vgpr_files))

    @property
    def compute_unit_registers(self) -> int:
        """Vector registers of the SIMDs that share an LDS pool, counted for each lane."""
        return next(iter(self.vgpr_files.values())).size * self.lds_simds * self.wave_size

    def in_cu_mode(self) -> Arch:
        """The architecture as seen by a kernel that stays on one of the two compute units that share an LDS pool."""
        return replace(
            self,
            lds_simds=self.lds_simds // 2,
            lds_pool_bytes=self.lds_pool_bytes // 2,
            max_multi_wave_workgroups=self.max_multi_wave_workgroups // 2,
            has_cu_mode=False,
        )

    def __repr__(self) -> str:
        return f"get_arch({self.name!r})"
