"""The tensor data mover of gfx1250: copies of tiles between global memory and LDS, described by groups of registers.

    desc = tdm_ops.make_tensor_descriptor_2d(
        global_ptr=A, lds_memref=lds, global_offset=(row, k), tensor_shape=(128, 64), strides=(K, 1),
        tile_shape=(128, 64), elem_bytes=2, pad_interval=64, pad_amount=8, num_warps=4)
    tdm_ops.tensor_load_2d(desc)
    tdm_ops.tensor_wait(0)
    fx.barrier()

A descriptor is the same in all lanes of a wave. In its pairs, the outer dimension (rows) comes first, then the inner
one, whose elements are contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.elements import llvm_pointer_type
from flydsl.dialect.location import argument_error
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numeric import Int32, Int64, Uint32
from flydsl.expr.rocdl.async_copy import global_prefetch
from flydsl.expr.rocdl.intrinsic import bits_of, call, i32_attribute, require_target, value_of
from flydsl.expr.rocdl.scheduling import s_wait_tensorcnt
from flydsl.expr.rocdl.tensor_descriptors import (
    EXTENT_MAX,
    GLOBAL,
    TDMDescriptor2D,
    TDMGatherDescriptor,
    add_addr_with_carry,
    advance_tdm_descriptor,
    compute_padding_encoding,
    compute_warp_distribution,
    global_address,
    make_tensor_descriptor_2d,
    make_tensor_gather_descriptor,
    make_tensor_gather_dgroup0,
    unsigned,
    update_tensor_descriptor_2d_addr64,
    update_tensor_descriptor_2d_addr_lo,
    update_tensor_descriptor_2d_addr_lo_hi,
    update_tensor_descriptor_2d_lds_addr,
    update_tensor_gather_descriptor_addr64,
    update_tensor_gather_descriptor_addr_lo,
    update_tensor_gather_descriptor_addr_lo_hi,
    words_of,
)  # fmt: skip
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "PREFETCH_SCOPE_DEVICE", "PREFETCH_SCOPE_SE", "TDMDescriptor2D", "TDMGatherDescriptor",
    "add_addr_with_carry", "advance_tdm_descriptor", "compute_padding_encoding", "compute_warp_distribution",
    "l2_prefetch_tile", "make_tensor_descriptor_2d", "make_tensor_gather_descriptor",
    "make_tensor_gather_dgroup0", "tensor_load_2d", "tensor_load_gather", "tensor_load_to_lds", "tensor_store_2d",
    "tensor_store_from_lds", "tensor_store_gather", "tensor_wait", "update_tensor_descriptor_2d_addr64",
    "update_tensor_descriptor_2d_addr_lo", "update_tensor_descriptor_2d_addr_lo_hi",
    "update_tensor_descriptor_2d_lds_addr", "update_tensor_gather_descriptor_addr64",
    "update_tensor_gather_descriptor_addr_lo", "update_tensor_gather_descriptor_addr_lo_hi",
]  # fmt: skip

PREFETCH_SCOPE_SE = 8
"""The caches that the workgroups of a shader engine share."""
PREFETCH_SCOPE_DEVICE = 16
"""The caches that all workgroups share."""
_POLICY_MAX = 0x7FFF_FFFF


def _issue(operation: str, groups: Sequence[Any], cache_policy: Any) -> None:
    name = operation.replace(".", "_")
    require_target(name, GFX1250)
    counts = (4, 8, 4, 4)[: len(groups)]
    operands = [words_of(f"group {i} of {name}", g, n) for i, (g, n) in enumerate(zip(groups, counts, strict=True))]
    policy = {"cachePolicy": i32_attribute(immediate(f"the cache_policy of {name}", cache_policy, 0, _POLICY_MAX))}
    call(f"{operation}.d2" if len(groups) == 2 else operation, operands, attributes=policy)


def _all_groups(name: str, listed: Sequence[Any], named: Any) -> tuple[list[Any], Any]:
    """The groups and the cache policy. FlyDSL's builders have a fifth group of 8 words, which is reserved."""
    groups = list(listed)
    policy = groups.pop() if groups and _is_number(groups[-1]) else 0
    if len(groups) not in (2, 4, 5):
        raise argument_error(
            f"{name} takes 2 or 4 groups, not {len(groups)}", "pass what make_tensor_descriptor_2d made"
        )
    return groups[: min(len(groups), 4)], policy if named is None else named


def _is_number(value: Any) -> bool:
    if isinstance(value, int | ir.Attribute):
        return True
    return bits_of(value_of("a group", value).type) <= 32


def tensor_load_to_lds(*groups: Any, cache_policy: Any = None) -> None:
    """Start the copy from global memory to LDS that groups of words describe. A cache policy may follow them."""
    _issue("tensor.load.to.lds", *_all_groups("tensor_load_to_lds", groups, cache_policy))


def tensor_store_from_lds(*groups: Any, cache_policy: Any = None) -> None:
    """Start the copy from LDS to global memory that groups of words describe. A cache policy may follow them."""
    _issue("tensor.store.from.lds", *_all_groups("tensor_store_from_lds", groups, cache_policy))


def tensor_load_2d(desc: TDMDescriptor2D, cache_policy: int = 0) -> None:
    """Start to load a tile into LDS. Call `tensor_wait` and a barrier before its use."""
    _issue("tensor.load.to.lds", (desc.dgroup0, desc.dgroup1), cache_policy)


def tensor_store_2d(desc: TDMDescriptor2D, cache_policy: int = 0) -> None:
    """Start to store a tile from LDS."""
    _issue("tensor.store.from.lds", (desc.dgroup0, desc.dgroup1), cache_policy)


def tensor_load_gather(desc: TDMGatherDescriptor, cache_policy: int = 0) -> None:
    """Start to load rows into LDS."""
    _issue("tensor.load.to.lds", (desc.dgroup0, desc.dgroup1, desc.dgroup2, desc.dgroup3), cache_policy)


def tensor_store_gather(desc: TDMGatherDescriptor, cache_policy: int = 0) -> None:
    """Start to store rows from LDS."""
    _issue("tensor.store.from.lds", (desc.dgroup0, desc.dgroup1, desc.dgroup2, desc.dgroup3), cache_policy)


def tensor_wait(count: int = 0) -> None:
    """Wait until at most `count` of this wave's tensor copies are under way."""
    s_wait_tensorcnt(count)


def l2_prefetch_tile(
    global_ptr: Any,
    global_offset: tuple[Any, Any],
    tile_shape: tuple[int, int],
    strides: tuple[Any, Any],
    elem_bytes: int = 2,
    num_warps: int = 1,
    wave_id: Any = None,
    thread_id: Any = None,
    block_threads: int = 256,
    scope: int = PREFETCH_SCOPE_SE,
) -> None:
    """Bring a tile into the L2 cache: each thread of the workgroup touches one place of a row.

    With more threads than rows, several touch different places of a row; with fewer, each thread has several rows.
    global_offset: (row, column) of the tile's first element; tile_shape: (rows, columns); strides: of rows and columns,
    in elements. thread_id: the thread's number, less than block_threads. num_warps, wave_id: parameters of FlyDSL's,
    which are not needed. scope: PREFETCH_SCOPE_SE or PREFETCH_SCOPE_DEVICE. Raises ArgumentError without thread_id.
    """
    require_target("l2_prefetch_tile", GFX1250)
    rows, columns = (immediate("the tile_shape of l2_prefetch_tile", size, 1, EXTENT_MAX) for size in tile_shape)
    if thread_id is None:
        raise argument_error(
            "l2_prefetch_tile must have thread_id, the thread's number", "pass thread_id=fx.thread_idx.x, for example"
        )
    sharing = max(block_threads // rows, 1)
    thread = Uint32(Int32(thread_id))
    first = [Int64(unsigned(given)) for given in global_offset]
    base = global_address(global_ptr)
    for start in range(0, rows, block_threads):
        row = (thread // sharing + start) % rows
        column = (thread % sharing) * (columns // sharing)
        element = (first[0] + Int64(row)) * Int64(unsigned(strides[0])) + first[1] + Int64(column)
        address = (base + element * elem_bytes).ir_value()
        pointer = emit("llvm.inttoptr", [address], [llvm_pointer_type(GLOBAL)]).result
        global_prefetch(pointer, scope)


__getattr__ = unknown_name(__name__, globals())
