"""Clusters of workgroups (gfx1250): a workgroup's place in its cluster, the cluster's barrier, multicast masks.

A launch makes clusters by `launch(..., cluster=(x, y, z))`. Workgroups of a cluster are numbered along x first.
"""

from __future__ import annotations

from typing import Any

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.location import argument_error
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.gpu import barrier
from flydsl.expr.numeric import Boolean, Int32
from flydsl.expr.rocdl.barriers import s_barrier_signal, s_barrier_wait
from flydsl.expr.rocdl.ids import cluster_workgroup_id_x, cluster_workgroup_id_y, wave_id
from flydsl.expr.rocdl.intrinsic import require_target
from flydsl.expr.threads.guarded import only_where
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "CLUSTER_BARRIER_ID", "CLUSTER_WAIT_ALL", "cluster_barrier", "cluster_signal_once_per_wg", "cluster_wait",
    "compute_cluster_position", "compute_mcast_masks", "is_wave_leader",
]  # fmt: skip

CLUSTER_BARRIER_ID = -3
CLUSTER_WAIT_ALL = CLUSTER_BARRIER_ID
_MOST_WORKGROUPS = 16


def is_wave_leader() -> Boolean:
    """True in the first wave of a workgroup, the one that signals the cluster's barrier."""
    require_target("cluster.is_wave_leader", GFX1250)
    return wave_id() == 0


def cluster_signal_once_per_wg() -> None:
    """Signal the cluster's barrier for this workgroup: its first wave does.

    All waves must have arrived: a workgroup barrier, or its signal and wait, belongs before it.
    """
    with only_where(is_wave_leader()):
        s_barrier_signal(CLUSTER_BARRIER_ID)


def cluster_wait() -> None:
    """Wait until every workgroup of the cluster has signalled."""
    require_target("cluster.cluster_wait", GFX1250)
    s_barrier_wait(CLUSTER_WAIT_ALL)


def cluster_barrier() -> None:
    """Wait until every thread of the cluster arrives."""
    require_target("cluster.cluster_barrier", GFX1250)
    barrier()
    cluster_signal_once_per_wg()
    cluster_wait()


def compute_cluster_position() -> tuple[Int32, Int32]:
    """The workgroup's place in its cluster along x and y."""
    return cluster_workgroup_id_x(), cluster_workgroup_id_y()


def compute_mcast_masks(local_x: Any, local_y: Any, cluster_m: int, cluster_n: int) -> tuple[Int32, Int32]:
    """Masks of the workgroups that share a tile of A, those of the same x, and of B, those of the same y.

    local_x, local_y: the workgroup's place in its cluster of `cluster_m` along x and `cluster_n` along y. Bit i of a
    mask is workgroup i.
    """
    m, n = (
        immediate(f"{name} of compute_mcast_masks", value, 1, _MOST_WORKGROUPS)
        for name, value in (("cluster_m", cluster_m), ("cluster_n", cluster_n))
    )
    if m * n > _MOST_WORKGROUPS:
        raise argument_error(f"a cluster has at most {_MOST_WORKGROUPS} workgroups, got {m} x {n}")
    column, row = sum(1 << (y * m) for y in range(n)), (1 << m) - 1
    return Int32(column) << Int32(local_x), Int32(row) << (Int32(local_y) * m)


__getattr__ = unknown_name(__name__, globals())
