"""The amounts of a resource at which the number of waves per SIMD changes, and what would let more waves run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flydsl.arch import Usage
from flydsl.arch.occupancy import RESOURCES


@dataclass(frozen=True)
class ResourceChange:
    """A change of one resource that allows more waves. amount: at most that; for a workgroup, exactly that."""

    resource: str
    amount: int


def curve(usage: Usage, resource: str) -> list[tuple[int, int]]:
    """The waves per SIMD that a resource alone allows: (from this amount on, waves), for rising amounts."""
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


def next_steps(usage: Usage) -> list[ResourceChange]:
    """The changes that allow one more wave per SIMD: one step for each limiting resource. Empty at the maximum.

    For registers and LDS it is the largest sufficient amount, for workgroups the size nearest to the present one.
    """
    now = usage.occupancy
    if now.limiter is None:
        return []
    if now.limits.get("waves_per_eu") == now.waves_per_simd:
        return []
    limiting = [resource for resource in RESOURCES if now.limits[resource] == now.waves_per_simd]
    steps = {}
    # Of the size of a workgroup depends how many fit into the LDS.
    for resource in sorted(limiting, key=lambda resource: resource != "workgroup"):
        amount = _amount_for_more(usage, resource, now.waves_per_simd, limiting)
        if amount is None:
            return []
        steps[resource] = ResourceChange(resource, amount)
        usage = usage.with_amount(resource, amount)
    return [steps[resource] for resource in limiting]


def _amount_for_more(usage: Usage, resource: str, waves: int, limiting: list[str]) -> int | None:
    def limits(amount: int) -> Mapping[str, int]:
        return usage.with_amount(resource, amount).occupancy.limits

    def allows(amount: int) -> int:
        return limits(amount)[resource]

    present = usage.amount(resource)
    if resource == "workgroup":
        kept = ["workgroup", *(other for other in RESOURCES if other not in limiting)]
        sizes = range(usage.wave_size, usage.largest(resource) + 1, usage.wave_size)
        better = [size for size in sizes if min(map(limits(size).__getitem__, kept)) > waves]
        return min(better, key=lambda size: (abs(size - present), size), default=None)
    # Registers and LDS allow fewer waves the more there are: find the first amount that allows too few. What is
    # allocated may be rounded up to more than a wave can name.
    amounts = range(min(present, usage.largest(resource)) + 1)
    first_too_many = bisect_left(amounts, True, key=lambda amount: allows(amount) <= waves)
    return first_too_many - 1 if first_too_many else None
