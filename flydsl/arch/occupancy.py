"""Occupancy: the number of waves that fit on a SIMD, and the resource that limits it.

The rules are those of LLVM 22's AMDGPU backend (AMDGPUBaseInfo.cpp, AMDGPUSubtarget.cpp), so that the result equals the
`; Occupancy:` line in its assembly. In two places they are coarser than the hardware: LDS is counted as asked for, not
as rounded up, and scalar registers by a table of steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from flydsl.arch.base import Arch, RegisterFile
from flydsl.errors import ArchError

# SGPRs up to which that many waves fit, and what fits with more.
_SGPR_STEPS = ((80, 10), (88, 9), (100, 8))
_WAVES_WITH_MOST_SGPRS = 7
MAX_SGPRS = 108

RESOURCES = ("VGPR", "SGPR", "LDS", "workgroup")


@dataclass(frozen=True)
class Occupancy:
    """Waves per SIMD, and what each resource alone would allow.

    limits: "VGPR", "SGPR", "LDS" and "workgroup" -> waves per SIMD; "waves_per_eu" too where the kernel asks for few.
    limiter: the resource that allows the fewest, None at the architecture's maximum.
    vgprs_allocated: per wave and lane, rounded as the hardware rounds; lds_bytes_allocated: per workgroup, likewise.
    """

    waves_per_simd: int
    max_waves_per_simd: int
    limits: Mapping[str, int]
    limiter: str | None
    waves_per_workgroup: int
    vgprs_allocated: int
    lds_bytes_allocated: int


def occupancy(
    arch: Arch,
    *,
    vgprs: int,
    agprs: int = 0,
    sgprs: int = 0,
    lds_bytes: int = 0,
    workgroup_size: int,
    wave_size: int | None = None,
    waves_per_eu: int | None = None,
) -> Occupancy:
    """The occupancy of a kernel.

    vgprs, agprs: LLVM's NumVgprs and NumAgprs. sgprs: LLVM's TotalNumSgprs, with VCC and other special registers.
    lds_bytes: per workgroup. workgroup_size: in threads. wave_size: in lanes, the architecture's default when None.
    waves_per_eu: the most waves per SIMD that the kernel itself asks for, None where it does not.
    Raises ArchError for more than the architecture has.

    >>> from flydsl.arch import get_arch
    >>> occupancy(get_arch("gfx942"), vgprs=100, workgroup_size=256).waves_per_simd
    4
    """
    wave_size = arch.wave_size if wave_size is None else wave_size
    _check_wave_size(arch, wave_size)
    _check_range(arch, "workgroup_size", workgroup_size, 1, arch.max_workgroup_size)
    _check_range(arch, "vgprs", vgprs, 0, arch.addressable_vgprs)
    _check_range(arch, "agprs", agprs, 0, arch.addressable_vgprs if arch.unified_agprs else 0)
    _check_range(arch, "sgprs", sgprs, 0, MAX_SGPRS)
    _check_range(arch, "lds_bytes", lds_bytes, 0, arch.lds_bytes_per_workgroup)
    waves_per_workgroup = _ceil_div(workgroup_size, wave_size)
    vgprs_allocated = _allocated_vgprs(arch.vgpr_files[wave_size], vgprs, agprs)
    limits = {
        "VGPR": _clamp(arch, arch.vgpr_files[wave_size].size // max(vgprs_allocated, 1)),
        "SGPR": _sgpr_limit(arch, sgprs),
        "LDS": _lds_limit(arch, lds_bytes, waves_per_workgroup),
        "workgroup": _workgroup_limit(arch, waves_per_workgroup),
    }
    if waves_per_eu is not None:
        _check_range(arch, "waves_per_eu", waves_per_eu, 1, arch.max_waves_per_simd)
        limits["waves_per_eu"] = waves_per_eu
    waves = min(limits.values())
    return Occupancy(
        waves_per_simd=waves,
        max_waves_per_simd=arch.max_waves_per_simd,
        limits=limits,
        limiter=None if waves == arch.max_waves_per_simd else min(limits, key=limits.__getitem__),
        waves_per_workgroup=waves_per_workgroup,
        vgprs_allocated=vgprs_allocated,
        lds_bytes_allocated=_align(lds_bytes, arch.lds_granule_bytes),
    )


@dataclass(frozen=True)
class Usage:
    """The amounts that decide the occupancy of a kernel on an architecture.

    vgprs, agprs: LLVM's NumVgprs and NumAgprs. sgprs: LLVM's TotalNumSgprs, with VCC and other special registers.
    lds_bytes: per workgroup. workgroup_size: in threads. wave_size: in lanes.
    waves_per_eu: the cap on waves per SIMD that the kernel sets itself, None for no cap.
    """

    arch: Arch
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    workgroup_size: int
    wave_size: int
    waves_per_eu: int | None = None

    @property
    def occupancy(self) -> Occupancy:
        """The occupancy with these amounts. Raises ArchError for more than the architecture has."""
        return occupancy(**vars(self))

    def amount(self, resource: str) -> int:
        """The amount of one of `RESOURCES`: vector registers of both files, as allocated; bytes of LDS; threads."""
        amounts = {
            "VGPR": self.occupancy.vgprs_allocated,
            "SGPR": self.sgprs,
            "LDS": self.lds_bytes,
            "workgroup": self.workgroup_size,
        }
        return amounts[resource]

    def with_amount(self, resource: str, amount: int) -> Usage:
        """This usage with another amount of one resource. Vector registers beyond the VGPRs are AGPRs."""
        if resource == "VGPR":
            vgprs = min(amount, self.arch.addressable_vgprs)
            return replace(self, vgprs=vgprs, agprs=amount - vgprs)
        if resource == "SGPR":
            return replace(self, sgprs=amount)
        if resource == "LDS":
            return replace(self, lds_bytes=amount)
        return replace(self, workgroup_size=amount)

    def largest(self, resource: str) -> int:
        """The largest amount of a resource that a kernel can ask for."""
        arch = self.arch
        return {
            "VGPR": arch.addressable_vgprs * (2 if arch.unified_agprs else 1),
            "SGPR": MAX_SGPRS,
            "LDS": arch.lds_bytes_per_workgroup,
            "workgroup": arch.max_workgroup_size,
        }[resource]


def llvm_workgroup_size(
    arch: Arch, smallest: int, largest: int, *, lds_bytes: int = 0, wave_size: int | None = None
) -> int:
    """The workgroup size, in threads, for which LLVM reports the occupancy of a kernel.

    The largest, unless more waves fit in workgroups of the smallest size. These may then be as large as leaves room for
    equally many of them.

    >>> from flydsl.arch import get_arch
    >>> [llvm_workgroup_size(get_arch("gfx942"), 1, n) for n in (768, 1024)]
    [64, 1024]
    """
    wave_size = arch.wave_size if wave_size is None else wave_size
    fewest, most = _ceil_div(smallest, wave_size), _ceil_div(largest, wave_size)
    if _workgroups(arch, fewest, lds_bytes) * fewest <= _workgroups(arch, most, lds_bytes) * most:
        return largest
    room = arch.max_waves_per_simd * arch.lds_simds // _workgroups(arch, fewest, lds_bytes)
    return max(fewest, min(most, room)) * wave_size


def _workgroups(arch: Arch, waves_per_workgroup: int, lds_bytes: int) -> int:
    """The number of workgroups that share an LDS pool."""
    slots = arch.max_waves_per_simd * arch.lds_simds // waves_per_workgroup
    barriers = arch.max_multi_wave_workgroups if waves_per_workgroup > 1 else slots
    return min(slots, barriers, arch.lds_pool_bytes // lds_bytes if lds_bytes else slots)


def max_vgprs(arch: Arch, waves_per_simd: int, wave_size: int | None = None) -> int:
    """The most vector registers, AGPRs included, with which that many waves still fit on a SIMD.

    >>> from flydsl.arch import get_arch
    >>> max_vgprs(get_arch("gfx942"), 4)
    128
    """
    if not 1 <= waves_per_simd <= arch.max_waves_per_simd:
        raise ArchError(f"{arch.name} runs 1 to {arch.max_waves_per_simd} waves per SIMD, not {waves_per_simd}")
    wave_size = arch.wave_size if wave_size is None else wave_size
    _check_wave_size(arch, wave_size)
    file = arch.vgpr_files[wave_size]
    addressable = arch.addressable_vgprs * (2 if arch.unified_agprs else 1)
    return min(file.size // waves_per_simd // file.granule * file.granule, addressable)


def waves_by_descriptor(arch: Arch, encoded_granules: int, wave_size: int) -> int:
    """The waves per SIMD for which the registers in a kernel descriptor suffice.

    These may be more than the kernel uses: LLVM asks for more to keep it to few waves.
    """
    file = arch.vgpr_files[wave_size]
    return _clamp(arch, file.size // _align(encoded_granules * file.encoding_granule, file.granule))


def _allocated_vgprs(file: RegisterFile, vgprs: int, agprs: int) -> int:
    total = _align(vgprs, 4) + agprs if agprs else vgprs
    return _align(total, file.granule)


def _sgpr_limit(arch: Arch, sgprs: int) -> int:
    if not arch.sgprs_limit_waves:
        return arch.max_waves_per_simd
    waves = next((waves for most, waves in _SGPR_STEPS if sgprs <= most), _WAVES_WITH_MOST_SGPRS)
    return _clamp(arch, waves)


def _workgroup_limit(arch: Arch, waves_per_workgroup: int) -> int:
    workgroups = _workgroups(arch, waves_per_workgroup, 0)
    return _clamp(arch, _ceil_div(workgroups * waves_per_workgroup, arch.lds_simds))


def _lds_limit(arch: Arch, lds_bytes: int, waves_per_workgroup: int) -> int:
    if not lds_bytes:
        return arch.max_waves_per_simd
    workgroups = arch.lds_pool_bytes // lds_bytes
    return _clamp(arch, _ceil_div(workgroups * waves_per_workgroup, arch.lds_simds))


def _check_wave_size(arch: Arch, wave_size: int) -> None:
    if wave_size not in arch.vgpr_files:
        sizes = " or ".join(map(str, arch.vgpr_files))
        raise ArchError(f"a wave of {arch.name} has {sizes} lanes, not {wave_size}")


def _check_range(arch: Arch, name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ArchError(f"{name} must be {low} to {high} on {arch.name}, got {value}")


def _clamp(arch: Arch, waves: int) -> int:
    return min(max(waves, 1), arch.max_waves_per_simd)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _align(value: int, granule: int) -> int:
    return _ceil_div(value, granule) * granule
