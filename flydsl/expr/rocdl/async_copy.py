"""Copies of gfx1250 between global memory and LDS that do not wait, and prefetches.

A wave's asynchronous copies are counted: `rocdl.s_wait_asynccnt(n)` waits until at most n are under way. A barrier
alone does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import call, call_intrinsic, i32_attribute, operand, require_target, takes_alias_scopes
from flydsl.expr.rocdl.intrinsic import llvm_pointer as pointer_to
from flydsl.expr.rocdl.lds_address import lds_pointer
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.immediates import immediate

_GENERIC, _GLOBAL = 0, 1
_OFFSET_MAX = 0x7F_FFFF
_POLICY_MAX = 0x7FFF_FFFF
_SIZES = {1: "b8", 4: "b32", 8: "b64", 16: "b128"}


# --- copies ----------------------------------------------------------------------------------------------------------


def _attributes(name: str, offset: Any, policy: str, aux: Any) -> dict[str, ir.Attribute]:
    return {
        "offset": i32_attribute(immediate(f"the offset of {name}", offset, -_OFFSET_MAX - 1, _OFFSET_MAX)),
        policy: i32_attribute(immediate(f"{policy} of {name}", 0 if aux is None else aux, 0, _POLICY_MAX)),
    }


def _async_load(suffix: str) -> Callable[..., None]:
    name = f"global_load_async_to_lds_{suffix}"

    @takes_alias_scopes
    def load(global_ptr: Any, lds_ptr: Any, offset: Any = 0, aux: Any = 0) -> None:
        require_target(name, GFX1250)
        addresses = [pointer_to(f"the source of {name}", global_ptr, _GLOBAL), lds_pointer(name, lds_ptr)]
        call(f"global.load.async.to.lds.{suffix}", addresses, attributes=_attributes(name, offset, "aux", aux))

    return described(
        load,
        name,
        f"Start copying {suffix[1:]} bits per lane from global memory to LDS, each lane to its own `lds_ptr`. "
        f"offset: bytes added to both; aux: cache policy; constants. {GFX1250[0]}.",
    )


def _cluster_load(suffix: str) -> Callable[..., None]:
    name = f"cluster_load_async_to_lds_{suffix}"

    @takes_alias_scopes
    def load(global_ptr: Any, lds_ptr: Any, offset: Any = 0, cpol: Any = 0, mask: Any = 0) -> None:
        require_target(name, GFX1250)
        operands = [
            pointer_to(f"the source of {name}", global_ptr, _GLOBAL),
            lds_pointer(name, lds_ptr),
            operand(f"the mask of {name}", mask, Int32),
        ]
        call(f"cluster.load.async.to.lds.{suffix}", operands, attributes=_attributes(name, offset, "cpol", cpol))

    return described(
        load,
        name,
        f"Start copying {suffix[1:]} bits per lane from global memory to LDS, together with other workgroups of the "
        "cluster that ask for the same: memory is read once, and each gets it into its own LDS. mask: one bit for each "
        f"of them and this one, the same in all lanes. offset, cpol: constants. {GFX1250[0]}.",
    )


def _async_store(suffix: str) -> Callable[..., None]:
    name = f"global_store_async_from_lds_{suffix}"

    def store(global_ptr: Any, lds_ptr: Any, offset: Any = 0, aux: Any = 0) -> None:
        require_target(name, GFX1250)
        constants = [
            Int32(immediate(f"the offset of {name}", offset, -_OFFSET_MAX - 1, _OFFSET_MAX)),
            Int32(immediate(f"aux of {name}", 0 if aux is None else aux, 0, _POLICY_MAX)),
        ]
        addresses = [pointer_to(f"the target of {name}", global_ptr, _GLOBAL), lds_pointer(name, lds_ptr)]
        # MLIR has no operation for it.
        call_intrinsic(f"llvm.amdgcn.{name.rpartition('_')[0].replace('_', '.')}.{suffix}",
                       [*addresses, *(constant.ir_value() for constant in constants)])  # fmt: skip

    return described(
        store,
        name,
        f"Start copying {suffix[1:]} bits per lane from LDS to global memory, each lane from its own `lds_ptr`. "
        f"offset: bytes added to both; aux: cache policy; constants. {GFX1250[0]}.",
    )


global_load_async_to_lds_b8, global_load_async_to_lds_b32 = _async_load("b8"), _async_load("b32")
global_load_async_to_lds_b64, global_load_async_to_lds_b128 = _async_load("b64"), _async_load("b128")
global_store_async_from_lds_b8, global_store_async_from_lds_b32 = _async_store("b8"), _async_store("b32")
global_store_async_from_lds_b64, global_store_async_from_lds_b128 = _async_store("b64"), _async_store("b128")
cluster_load_async_to_lds_b8, cluster_load_async_to_lds_b32 = _cluster_load("b8"), _cluster_load("b32")
cluster_load_async_to_lds_b64, cluster_load_async_to_lds_b128 = _cluster_load("b64"), _cluster_load("b128")


def cluster_load_async_to_lds(
    global_ptr: Any, lds_ptr: Any, size_bytes: Any, offset: Any = 0, cpol: Any = 0, mask: Any = 0
) -> None:
    """`cluster_load_async_to_lds_b...` of 1, 4, 8 or 16 bytes."""
    name = "cluster_load_async_to_lds"
    size = immediate(f"the size of {name}", size_bytes, 1, 16)
    if size not in _SIZES:
        raise argument_error(
            f"{name} copies 1, 4, 8 or 16 bytes, not {size}", "copy in several calls, or use another size"
        )
    globals()[f"{name}_{_SIZES[size]}"](global_ptr, lds_ptr, offset, cpol, mask)


# --- prefetches ------------------------------------------------------------------------------------------------------


def _prefetch(name: str, space: int) -> Callable[..., None]:
    def prefetch(ptr: Any, scope: Any = 0) -> None:
        require_target(name, GFX1250)
        address = pointer_to(f"the address of {name}", ptr, space)
        cache = Int32(immediate(f"the scope of {name}", scope, 0, _POLICY_MAX)).ir_value()
        # MLIR has an operation for it, and removes it as one without effect.
        call_intrinsic(f"llvm.amdgcn.{name.replace('_', '.')}", [address, cache])

    return described(
        prefetch,
        name,
        f"Bring the memory at an address into a cache. scope: 0 this CU's, 8 the shader engine's. {GFX1250[0]}.",
    )


global_prefetch, flat_prefetch = _prefetch("global_prefetch", _GLOBAL), _prefetch("flat_prefetch", _GENERIC)

__all__ = [
    "cluster_load_async_to_lds", "cluster_load_async_to_lds_b8", "cluster_load_async_to_lds_b32",
    "cluster_load_async_to_lds_b64", "cluster_load_async_to_lds_b128", "flat_prefetch", "global_load_async_to_lds_b8",
    "global_load_async_to_lds_b32", "global_load_async_to_lds_b64", "global_load_async_to_lds_b128", "global_prefetch",
    "global_store_async_from_lds_b8", "global_store_async_from_lds_b32", "global_store_async_from_lds_b64",
    "global_store_async_from_lds_b128",
]  # fmt: skip
