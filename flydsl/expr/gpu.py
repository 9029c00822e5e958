"""The namespace `fx.gpu`: thread positions, barrier, shuffles, and shared memory."""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from mlir import ir

from flydsl.arch import DEFAULT_ARCH, get_arch
from flydsl.dialect.context import context
from flydsl.errors import TraceError
from flydsl.errors.places import user_location
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory.shared_allocator import SharedAllocator
from flydsl.expr.threads.block_threads import traced_kernel
from flydsl.expr.threads.positions import Tuple3D, block_dim, block_id, block_idx, grid_dim, thread_id, thread_idx
from flydsl.expr.threads.shuffle import shuffle, shuffle_down, shuffle_idx, shuffle_up, shuffle_xor
from flydsl.expr.tracing.emit import emit, require_trace, target_name

__all__ = [
    "SharedAllocator", "Tuple3D", "barrier", "block_dim", "block_id", "block_idx", "grid_dim", "known_block_size",
    "lds_space", "num_warp_threads", "shuffle", "shuffle_down", "shuffle_idx", "shuffle_up", "shuffle_xor",
    "smem_space", "thread_id", "thread_idx",
]  # fmt: skip

# LLVM's AMDGPU address space of LDS.
_LDS_ADDRESS_SPACE = 3


def barrier() -> None:
    """Wait until every thread of the block arrives. LDS writes before the barrier are visible after it."""
    emit("gpu.barrier")


def smem_space(int: bool = False) -> ir.Attribute | builtins.int:
    """The address space of shared memory (LDS): an attribute for memref types, or 3, LLVM's number, if int=True."""
    if int:
        return _LDS_ADDRESS_SPACE
    return ir.Attribute.parse("#gpu.address_space<workgroup>", context())


lds_space = smem_space


def known_block_size() -> tuple[int, int, int]:
    """The block size of the kernel, as Python ints: that of its decorator, or of its launch.

    Raises BlockSizeError, a TraceError, where neither is known at compile time.
    """
    kernel = traced_kernel()
    sizes = None if kernel is None else kernel.attributes.get("known_block_size")
    if sizes is None:
        raise BlockSizeError(
            "known_block_size() in a kernel whose block size is not known",
            at=user_location(),
            hint="launch(block=256) makes it known, with a Python int, and @flyc.kernel(known_block_size=[256, 1, 1])",
        )
    x, y, z = ir.DenseI32ArrayAttr(sizes)
    return x, y, z


class BlockSizeError(TraceError, RuntimeError):
    """A kernel asks for a block size that is not known."""


def num_warp_threads() -> int:
    """The lanes of a wave of the architecture that is compiled for, as a Python int."""
    require_trace("num_warp_threads()")
    return get_arch(target_name() or DEFAULT_ARCH.name).wave_size


_unknown = unknown_name(__name__, globals())
# Programs call these by `gpu`, too. Their modules need this one.
_OF_CLUSTERS = frozenset({
    "cluster_barrier", "cluster_signal_once_per_wg", "cluster_wait", "compute_cluster_position", "compute_mcast_masks",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    """The functions of clusters, which are in `fx.rocdl.cluster`, and `lane_id`."""
    if name in _OF_CLUSTERS or name == "lane_id":
        module = "cluster" if name in _OF_CLUSTERS else "lane"
        return getattr(importlib.import_module(f"flydsl.expr.rocdl.{module}"), name)
    return _unknown(name)
