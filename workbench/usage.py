"""What a kernel takes of each resource, and what would follow if it took another amount: the occupancy rules, asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flydsl.arch import Arch, Occupancy, occupancy
from flydsl.codegen import Kernel

MAX_SGPRS = 108
RESOURCES = ("VGPR", "SGPR", "LDS", "workgroup")


@dataclass(frozen=True)
class Usage:
    """The amounts that decide the occupancy, on an architecture.

    vgprs, agprs, sgprs: as LLVM counts them. lds_bytes: per workgroup. workgroup_size: threads.
    waves_per_eu: the most waves per SIMD that the kernel itself asks for, None where it does not.
    """

    arch: Arch
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    workgroup_size: int
    wave_size: int
    waves_per_eu: int | None = None

    @staticmethod
    def of(kernel: Kernel) -> Usage:
        """What a kernel takes, with workgroups of the size that LLVM takes, and with the LDS of its launch."""
        info = kernel.info
        return Usage(
            kernel.arch,
            vgprs=info.vgprs,
            agprs=info.agprs,
            sgprs=info.sgprs,
            lds_bytes=info.lds_bytes + (kernel.dynamic_lds_bytes or 0),
            workgroup_size=kernel.workgroup_size,
            wave_size=info.wave_size,
            waves_per_eu=kernel.waves_per_eu,
        )

    @property
    def occupancy(self) -> Occupancy:
        """What follows. Raises ArchError for more than the architecture has."""
        return occupancy(
            self.arch,
            vgprs=self.vgprs,
            agprs=self.agprs,
            sgprs=self.sgprs,
            lds_bytes=self.lds_bytes,
            workgroup_size=self.workgroup_size,
            wave_size=self.wave_size,
            waves_per_eu=self.waves_per_eu,
        )

    def amount(self, resource: str) -> int:
        """How much it takes of one of `RESOURCES`: vector registers of both files, as allocated; bytes; threads."""
        amounts = {
            "VGPR": self.occupancy.vgprs_allocated,
            "SGPR": self.sgprs,
            "LDS": self.lds_bytes,
            "workgroup": self.workgroup_size,
        }
        return amounts[resource]

    def with_amount(self, resource: str, amount: int) -> Usage:
        """The same with another amount of one resource. Vector registers beyond the VGPRs are AGPRs."""
        if resource == "VGPR":
            vgprs = min(amount, self.arch.addressable_vgprs)
            return replace(self, vgprs=vgprs, agprs=amount - vgprs)
        if resource == "SGPR":
            return replace(self, sgprs=amount)
        if resource == "LDS":
            return replace(self, lds_bytes=amount)
        return replace(self, workgroup_size=amount)

    def largest(self, resource: str) -> int:
        """The most that there is of a resource."""
        arch = self.arch
        return {
            "VGPR": arch.addressable_vgprs * (2 if arch.unified_agprs else 1),
            "SGPR": MAX_SGPRS,
            "LDS": arch.lds_bytes_per_workgroup,
            "workgroup": arch.max_workgroup_size,
        }[resource]


@dataclass(frozen=True)
class Step:
    """What one resource has to change to for more waves. amount: at most that; for a workgroup, exactly that."""

    resource: str
    amount: int


def curve(usage: Usage, resource: str) -> list[tuple[int, int]]:
    """How many waves per SIMD a resource alone allows: (from this amount on, waves), for rising amounts."""
    found: list[tuple[int, int]] = []
    for amount in _amounts(usage, resource):
        waves = usage.with_amount(resource, amount).occupancy.limits[resource]
        if not found or found[-1][1] != waves:
            found.append((amount, waves))
    return found


def _amounts(usage: Usage, resource: str) -> Iterator[int]:
    """Every amount at which the number of waves may change."""
    most = usage.largest(resource)
    if resource == "VGPR":  # a granule is allocated from its first register on
        granule = usage.arch.vgpr_files[usage.wave_size].granule
        yield from range(1, most + 1, granule)
    elif resource == "LDS":
        pool = usage.arch.lds_pool_bytes
        most_workgroups = usage.arch.max_waves_per_simd * usage.arch.lds_simds
        yield from sorted({0} | {pool // n + 1 for n in range(1, most_workgroups + 2) if pool // n < most})
    elif resource == "SGPR":
        yield from range(1, most + 1)
    else:
        yield from range(1, most + 1, usage.wave_size)


def next_steps(usage: Usage) -> list[Step]:
    """What would let at least one more wave run on a SIMD: one step for each resource that limits. Empty at the most.

    Of registers and LDS the most that would do, of workgroups the size nearest to the present one.
    """
    now = usage.occupancy
    if now.limiter is None:
        return []
    if now.limits.get("waves_per_eu") == now.waves_per_simd:
        return []
    steps = []
    for resource in RESOURCES:
        if now.limits[resource] == now.waves_per_simd:
            amount = _amount_for_more(usage, resource, now.waves_per_simd)
            if amount is None:
                return []
            steps.append(Step(resource, amount))
    return steps


def _amount_for_more(usage: Usage, resource: str, waves: int) -> int | None:
    def allows(amount: int) -> int:
        return usage.with_amount(resource, amount).occupancy.limits[resource]

    present = usage.amount(resource)
    if resource == "workgroup":
        sizes = range(usage.wave_size, usage.largest(resource) + 1, usage.wave_size)
        better = [size for size in sizes if allows(size) > waves]
        return min(better, key=lambda size: (abs(size - present), size), default=None)
    # Registers and LDS allow fewer waves the more there are: find the first amount that allows too few. What is
    # allocated may be rounded up to more than a wave can name.
    amounts = range(min(present, usage.largest(resource)) + 1)
    first_too_many = bisect_left(amounts, True, key=lambda amount: allows(amount) <= waves)
    return first_too_many - 1 if first_too_many else None
