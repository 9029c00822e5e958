"""The namespace `fx.gpu`: thread positions, barrier, shuffles, and shared memory."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.dialect.context import context
from flydsl.expr.emit import emit
from flydsl.expr.names import unknown_name
from flydsl.expr.positions import Tuple3D, block_dim, block_id, block_idx, grid_dim, thread_id, thread_idx
from flydsl.expr.shared_allocator import SharedAllocator
from flydsl.expr.shuffle import shuffle, shuffle_down, shuffle_idx, shuffle_up, shuffle_xor

__all__ = [
    "SharedAllocator",
    "Tuple3D",
    "barrier",
    "block_dim",
    "block_id",
    "block_idx",
    "grid_dim",
    "lds_space",
    "shuffle",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
    "smem_space",
    "thread_id",
    "thread_idx",
]  # fmt: skip

# LLVM's AMDGPU address space of LDS.
_LDS_ADDRESS_SPACE = 3


def barrier() -> None:
    """Wait until every thread of the block arrives. LDS writes before the barrier are visible after it."""
    emit("gpu.barrier")


def smem_space(int: bool = False) -> Any:
    """The address space of shared memory (LDS): an attribute for memref types, or 3, LLVM's number, if int=True."""
    if int:
        return _LDS_ADDRESS_SPACE
    return ir.Attribute.parse("#gpu.address_space<workgroup>", context())


lds_space = smem_space

__getattr__ = unknown_name(__name__, globals())
