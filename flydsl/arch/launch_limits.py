"""The limits of a launch, and the one wording of a launch that is beyond them.

The compiler checks what it knows, the launcher what only the call knows, and the simulator what a file asks for. All of
them raise LaunchError without a place; who knows the user's line adds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.arch.base import Arch
from flydsl.errors import LaunchError

Dim3 = tuple[int, int, int]

# The grid's size in the dispatch packet is a 32-bit number of work-items (HSA Runtime Specification 1.2, section 2.6).
MAX_GRID_THREADS = (1 << 32) - 1

# AMD Instinct CDNA5 Instruction Set Architecture, 2.3.
MAX_CLUSTER_WORKGROUPS = 16

_AT_LEAST_ONE = {
    "grid": "round up, as in (n + 255) // 256; where n may be 0 there is nothing to launch: `if n > 0:` before it",
    "block": "whole waves are best, such as block=256",
}


def check_extents(what: str, sizes: Sequence[int | None]) -> None:
    """Raise for a dimension of the grid or the block that is below 1; None stands for one that is not known yet."""
    for size in sizes:  # at every launch: a loop is quicker than `any`
        if size is not None and size < 1:
            raise LaunchError(
                f"{what} must be at least 1 in every dimension, got {_shown(sizes)}", hint=_AT_LEAST_ONE.get(what)
            )


def check_grid(grid: Sequence[int], block: Sequence[int]) -> None:
    """Raise for more threads along a dimension than a dispatch can have."""
    for blocks, threads in zip(grid, block, strict=True):
        if blocks * threads > MAX_GRID_THREADS:
            raise LaunchError(
                f"grid={_shown(grid)} of blocks {_shown(block)}: a dimension has at most {MAX_GRID_THREADS} threads",
                hint="use a second dimension of the grid, or a loop over several tiles in each workgroup",
            )


def check_block(arch: Arch, block: Sequence[int]) -> None:
    """Raise for more threads than a workgroup can have."""
    threads = block[0] * block[1] * block[2]
    if threads > arch.max_workgroup_size:
        raise LaunchError(
            f"block={_shown(block)} has {threads} threads; {arch.name} takes at most {arch.max_workgroup_size}",
            hint="take more workgroups instead: grid=",
        )


def check_cluster(arch: Arch, cluster: Sequence[int], grid: Sequence[int | None]) -> None:
    """Raise for clusters of workgroups that the GPU does not have, or that the grid is not made of."""
    workgroups = cluster[0] * cluster[1] * cluster[2]
    if workgroups == 1:
        return
    if not arch.has_clusters:
        raise LaunchError(f"{arch.name} has no clusters of workgroups", hint="cluster=(1, 1, 1)")
    if workgroups > MAX_CLUSTER_WORKGROUPS:
        raise LaunchError(
            f"cluster={_shown(cluster)} has {workgroups} workgroups; {arch.name} takes up to {MAX_CLUSTER_WORKGROUPS}",
            hint="use smaller clusters",
        )
    for extent, size, axis in zip(grid, cluster, "xyz", strict=True):
        if extent is not None and extent % size:
            raise LaunchError(
                f"grid must be a multiple of the cluster, got {extent} workgroups in clusters of {size} along {axis}",
                hint="make the grid a multiple of the cluster",
            )


def check_lds(arch: Arch, static_bytes: int, dynamic_bytes: int = 0) -> None:
    """Raise for more LDS than a workgroup can have: what the kernel has of its own, and the launch's `smem=`."""
    needed, limit = static_bytes + dynamic_bytes, arch.lds_bytes_per_workgroup
    if dynamic_bytes < 0:
        raise LaunchError(
            f"smem={dynamic_bytes}: a number of bytes, at least 0", hint="elements times their size, such as 64 * 4"
        )
    if needed > limit:
        parts = f" ({static_bytes} static, {dynamic_bytes} from smem=)" if dynamic_bytes else ""
        raise LaunchError(
            f"{needed} bytes of LDS{parts}: {needed - limit} bytes more than the {limit} that a workgroup has on "
            f"{arch.name}",
            hint="take smaller tiles or fewer stages",
        )


def _shown(sizes: Sequence[int | None]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in sizes)})"
