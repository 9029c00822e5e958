"""Positions of threads as 32-bit registers: workgroup and work-item ids, and the wave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.atoms.instruction_sets import GFX12, GFX1250
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import call, call_intrinsic, require_target, result_type_first
from flydsl.expr.rocdl.lane import readfirstlane
from flydsl.expr.threads.positions import Tuple3D, block_dim, block_idx, thread_idx
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import target_name

__all__ = [
    "cluster_id_x", "cluster_id_y", "cluster_id_z", "cluster_workgroup_id_x", "cluster_workgroup_id_y",
    "cluster_workgroup_id_z", "wave_id", "wavefrontsize", "workgroup_id_x", "workgroup_id_y", "workgroup_id_z",
    "workitem_id_x", "workitem_id_y", "workitem_id_z",
]  # fmt: skip


def _id(values: Tuple3D, axis: str, meaning: str) -> Callable[..., Any]:
    @result_type_first
    def read(res: Any = None) -> Any:
        return getattr(values, axis)

    read.__doc__ = f"The {meaning} along {axis}, Int32."
    return read


workitem_id_x = _id(thread_idx, "x", "thread's number in its workgroup")
workitem_id_y = _id(thread_idx, "y", "thread's number in its workgroup")
workitem_id_z = _id(thread_idx, "z", "thread's number in its workgroup")
workgroup_id_x = _id(block_idx, "x", "workgroup's number in the grid")
workgroup_id_y = _id(block_idx, "y", "workgroup's number in the grid")
workgroup_id_z = _id(block_idx, "z", "workgroup's number in the grid")


def _of_cluster(name: str, meaning: str) -> Callable[..., Any]:
    @result_type_first
    def read(res: Any = None) -> Any:
        require_target(name, GFX1250)
        return Int32.of(call_intrinsic(f"llvm.amdgcn.{name.replace('_', '.')}", [], Int32.ir_type))

    return described(read, name, f"The {meaning} along {name[-1]}, Int32. {GFX1250[0]}.")


cluster_id_x = _of_cluster("cluster_id_x", "cluster's number in the grid of clusters")
cluster_id_y = _of_cluster("cluster_id_y", "cluster's number in the grid of clusters")
cluster_id_z = _of_cluster("cluster_id_z", "cluster's number in the grid of clusters")
cluster_workgroup_id_x = _of_cluster("cluster_workgroup_id_x", "workgroup's number in its cluster")
cluster_workgroup_id_y = _of_cluster("cluster_workgroup_id_y", "workgroup's number in its cluster")
cluster_workgroup_id_z = _of_cluster("cluster_workgroup_id_z", "workgroup's number in its cluster")


@result_type_first
def wavefrontsize(res: Any = None) -> Any:
    """Lanes of a wave, Int32; known when machine code is generated."""
    return call("wavefrontsize", [], Int32.ir_type)


@result_type_first
def wave_id(res: Any = None) -> Any:
    """The wave's number in its workgroup, Int32, the same in all its lanes."""
    if target_name() in GFX12:
        return Int32.of(call_intrinsic("llvm.amdgcn.wave.id", [], Int32.ir_type))
    x, y, z = thread_idx
    width, height, _ = block_dim
    thread = x + width * (y + height * z)
    return readfirstlane(thread // wavefrontsize())
